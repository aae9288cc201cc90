"""A real server on loopback for any environment class, and a client that speaks to it."""

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from resources_server import Environment
from resources_server.app import app_for
from resources_server.settings import ResourcesServerSettings, SessionsSettings
from wire import strict_json
from wire.app import App
from wire.testing import one_server


@dataclass
class Answer:
    """One HTTP answer."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def json(self) -> Any:
        return strict_json.loads(self.body)

    @property
    def cookie(self) -> str:
        """The cookie that was set, as the next request sends it."""
        return self.headers["Set-Cookie"].split(";")[0]

    @property
    def text(self) -> str:
        return self.body.decode()


class World:
    """A server under test, as one caller sees it."""

    def __init__(self, url: str, app: App, http: aiohttp.ClientSession) -> None:
        self.url, self.app, self.http = url, app, http

    async def post(self, path: str, body: Any = None, session: str | None = "s", **headers: str) -> Answer:
        """POST JSON (or bytes as they are); `call_id="1.0"` becomes the header X-Call-Id."""
        sent = {f"X-{name.replace('_', '-')}": value for name, value in headers.items() if name != "cookie"}
        if "cookie" in headers:
            sent["Cookie"] = headers["cookie"]
        if session is not None:
            sent["X-Session-Id"] = session
        data = body if isinstance(body, bytes) else strict_json.dumps({} if body is None else body)
        async with self.http.post(self.url + path, data=data, headers=sent) as reply:
            return Answer(reply.status, await reply.read(), reply.headers)

    async def get(self, path: str, **headers: str) -> Answer:
        async with self.http.get(self.url + path, headers=headers) as reply:
            return Answer(reply.status, await reply.read(), reply.headers)


Serve = Callable[..., "contextlib.AbstractAsyncContextManager[World]"]


@contextlib.asynccontextmanager
async def serve(
    environment: type[Environment[Any]], *, secret: str | None = None, token: str | None = None, **settings: Any
) -> AsyncIterator[World]:
    """Serve an environment; `sessions=dict(ttl_s=2)` and other settings as in config."""
    settings["sessions"] = SessionsSettings(**settings.get("sessions", {}))
    app = app_for(environment, ResourcesServerSettings(**settings), secret=secret, token=token)
    async with (
        one_server(app) as url,
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), connector=aiohttp.TCPConnector(limit=0)) as http,
    ):
        yield World(url, app, http)


@pytest.fixture(name="serve")
def _serve() -> Serve:
    return serve
