"""Ten kinds of procedural reasoning tasks with levels of difficulty; rows as reasoning-gym has them, whose own kinds run too."""

from resources_server.environments.reasoning.world import Reasoning

__all__ = ["Reasoning"]
