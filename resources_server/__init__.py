"""What an environment author imports."""

from resources_server.environment import Call, Environment, Task
from resources_server.game import Game, Step
from resources_server.tools import ToolError, Toolkit, tool
from wire.responses import Response
from wire.rollout import AcceptedCall, Verdict

__all__ = [
    "AcceptedCall",
    "Call",
    "Environment",
    "Game",
    "Response",
    "Step",
    "Task",
    "ToolError",
    "Toolkit",
    "Verdict",
    "tool",
]
