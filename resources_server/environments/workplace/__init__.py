"""The `workplace` environment: a package, since its world outgrew a file."""

from resources_server.environments.workplace.world import Workplace

__all__ = ["Workplace"]
