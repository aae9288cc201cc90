"""A room of the smallest kind, for the launcher's tests: a real server that can be told to misbehave by its config."""

import asyncio
import os
import sys
import time

from wire.app import App, HotReply, HotRequest
from wire.config import Config
from wire.errors import UsageError


def build(config: Config, urls: dict[str, str], token: str | None, name: str) -> App:
    """`refuse`, `crash`, `hang`, `regret` act at the start; POST /die, /spawn and /whoami act later."""
    if "refuse" in config.data:
        raise UsageError(config.data["refuse"])
    if "crash" in config.data:
        print(config.data["crash"])  # noqa: T201 - what a crash leaves behind
        os._exit(7)
    if "hang" in config.data:
        time.sleep(3600)
    app = App(name, token=token, depends_on=urls)

    async def regret() -> None:
        raise UsageError(config.data["regret"])

    if "regret" in config.data:
        app.on_start(regret)

    async def die(_: HotRequest) -> HotReply:
        os._exit(9)

    async def spawn(_: HotRequest) -> HotReply:
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(3600)")
        return HotReply.json({"pid": child.pid})

    async def whoami(_: HotRequest) -> HotReply:
        return HotReply.json(
            {
                "pid": os.getpid(),
                "urls": urls,
                "token": token,
                "argv": sys.orig_argv,
                "env": os.environ.get("TRIVIUM_TOKEN"),
            }
        )

    app.hot("POST", "/die", die, summary="End the process at once")
    app.hot("POST", "/spawn", spawn, summary="Start a process that does not end")
    app.hot("POST", "/whoami", whoami, summary="What the launcher told this server")
    return app
