"""Playing rows."""

from rollouts.trainers.nemo_gym_compat.collection import RolloutCollectionHelper

__all__ = ["RolloutCollectionHelper"]
