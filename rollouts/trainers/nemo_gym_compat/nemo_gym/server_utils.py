"""Where the head server is."""

from rollouts.trainers.nemo_gym_compat.running import HEAD_SERVER_KEY_NAME, BaseServerConfig

__all__ = ["HEAD_SERVER_KEY_NAME", "BaseServerConfig"]
