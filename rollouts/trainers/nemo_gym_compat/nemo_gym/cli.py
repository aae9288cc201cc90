"""Starting and stopping the servers."""

from rollouts.trainers.nemo_gym_compat.running import GlobalConfigDictParserConfig, RunHelper

__all__ = ["GlobalConfigDictParserConfig", "RunHelper"]
