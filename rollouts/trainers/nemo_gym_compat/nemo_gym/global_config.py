"""What the servers are started with."""

from rollouts.trainers.nemo_gym_compat.running import HEAD_SERVER_KEY_NAME, GlobalConfigDictParserConfig

__all__ = ["HEAD_SERVER_KEY_NAME", "GlobalConfigDictParserConfig"]
