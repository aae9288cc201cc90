"""Untrusted code in its own process: no network, no view of our files, environment, ports or processes, bounded use.

`open_sandbox()` gives the strongest walls this machine has, or refuses with `SandboxUnavailable`; it never falls
back to running code unprotected.
"""

from resources_server.sandbox.choice import Deferred, open_sandbox
from resources_server.sandbox.limits import Limits, Result
from resources_server.sandbox.provider import Sandbox, SandboxUnavailable
from resources_server.sandbox.session import Session

__all__ = ["Deferred", "Limits", "Result", "Sandbox", "SandboxUnavailable", "Session", "open_sandbox"]
