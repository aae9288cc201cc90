"""A stream of groups over HTTP, for a trainer in another process or on another machine.

`GET /group?wait_s=30`  the next group, or 204 when none ends in time
`POST /pause`           nothing new begins; answers when nothing is in flight
`POST /resume`          `{"policy_version": 8}` goes on with new weights, `{}` with the old
`GET /stream`           version, paused, in flight, ready, and what became of the groups so far
"""

import asyncio
import math
from urllib.parse import parse_qs

from rollouts.trainers.stream import Stream
from wire.app import App, HotReply, HotRequest
from wire.errors import UsageError

WAIT_S, LONGEST_WAIT_S = 30.0, 600.0  # for a group, where the caller does not say; at most


class Endpoint:
    """The routes of one stream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._next: asyncio.Task[HotReply] | None = None

    def app(self, token: str | None) -> App:
        """The server; every route asks for the token, unless there is none."""
        app = App("stream", token=token)
        app.hot("GET", "/group", self.group, summary="The next complete group", control=True)
        app.hot("POST", "/pause", self.pause, summary="Begin no more rollouts; wait for those in flight", control=True)
        app.hot("POST", "/resume", self.resume, summary="Go on, with new weights", control=True)
        app.hot("GET", "/stream", self.status, summary="How the stream stands", control=True)
        return app

    async def group(self, request: HotRequest) -> HotReply:
        """A group is given to one caller; one whom nobody waited for any longer is kept for the next."""
        wait_s = _seconds(parse_qs(request.query.decode("latin-1")).get("wait_s", [str(WAIT_S)])[0])
        taking = self._next or asyncio.create_task(self._take())
        self._next = None
        try:
            async with asyncio.timeout(wait_s):
                return await asyncio.shield(taking)
        except TimeoutError:
            self._next = taking
            return HotReply(status=204)
        except asyncio.CancelledError:
            self._next = taking
            raise

    async def pause(self, request: HotRequest) -> HotReply:
        """Answers when nothing is in flight."""
        await self._stream.pause()
        return await self.status(request)

    async def resume(self, request: HotRequest) -> HotReply:
        """A version is a whole number."""
        version = (request.json() if request.body else {}).get("policy_version")
        if version is not None and type(version) is not int:
            raise UsageError(f"policy_version is {version!r}; it is a whole number", param="policy_version")
        self._stream.resume(version)
        return await self.status(request)

    async def status(self, request: HotRequest) -> HotReply:
        """As JSON."""
        return HotReply.json(self._stream.status)

    async def _take(self) -> HotReply:
        group = await anext(self._stream)
        told = {"task_index": group.task, "policy_version": group.version, "lag": group.lag, "stale": group.stale}
        return HotReply.json({**told, "lines": group.lines})


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found <= LONGEST_WAIT_S:
        raise UsageError(f"wait_s is {text}; it is a number of seconds from 0 to {LONGEST_WAIT_S:g}", param="wait_s")
    return found
