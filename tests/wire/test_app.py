"""The shape of a server: health that names it, errors as JSON, control routes behind the token."""

import json
import logging
from collections.abc import AsyncIterator

from wire.app import App, HotReply, HotRequest, StreamReply
from wire.client import Client
from wire.deadline import Deadline
from wire.errors import Gone
from wire.logs import JSONFormatter
from wire.testing import serving


async def hello(request: HotRequest) -> HotReply:
    """Echo what came."""
    return HotReply.json({"path": request.path, "got": request.json()})


async def gone(request: HotRequest) -> HotReply:
    """Refuse."""
    raise Gone(f"session {request.header(b'x-session-id')} is closed", param="X-Session-Id")


async def broken(request: HotRequest) -> HotReply:
    """A mistake of ours."""
    raise KeyError("answer-42")


class Written(logging.Handler):
    """Keeps the lines that a server would write."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JSONFormatter("demo"))
        self.lines: list[dict[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        self.lines.append(json.loads(self.format(record)))


def app(token: str | None = None) -> App:
    made = App("demo", token=token, depends_on={"other": "http://x"})
    made.hot("POST", "/hello", hello, summary="Say hello", request_schema={"type": "object"})
    made.hot("POST", "/gone", gone, summary="Refuse")
    made.hot("POST", "/broken", broken, summary="Break")
    made.hot("POST", "/control", hello, summary="Only for the stack", control=True)
    made.hot_prefix("/below/", hello, summary="Everything below")
    return made


async def test_health_says_who_answers() -> None:
    """A launcher must be able to tell our server from a stranger on the same port."""
    async with serving(demo=app()) as urls, Client(urls) as client:
        for path in ("/", "/health", "/livez", "/readyz", "/healthz"):
            body = json.loads((await client.get("demo", path, deadline=Deadline(5))).body)
            assert (body["server"], body["depends_on"]) == ("demo", {"other": "http://x"})


async def test_hot_routes_are_answered_and_documented() -> None:
    """Exact paths and prefixes; both are in the OpenAPI document."""
    async with serving(demo=app()) as urls, Client(urls) as client:
        exact = await client.post("demo", "/hello", b'{"a":1}', deadline=Deadline(5))
        below = await client.post("demo", "/below/1/v1", b"2", deadline=Deadline(5))
        document = json.loads((await client.get("demo", "/openapi.json", deadline=Deadline(5))).body)
    assert json.loads(exact.body) == {"path": "/hello", "got": {"a": 1}}
    assert json.loads(below.body) == {"path": "/below/1/v1", "got": 2}
    assert {"/hello", "/below/{path}"} <= document["paths"].keys()


async def test_errors_are_json_and_give_nothing_away() -> None:
    """Ours on purpose keep their status and sentence; a mistake of ours says only where to look."""
    async with serving(demo=app()) as urls, Client(urls) as client:
        told = await client.post("demo", "/gone", b"{}", {"X-Session-Id": "s1"}, deadline=Deadline(5))
        broke = await client.post("demo", "/broken", b"{}", deadline=Deadline(5))
        torn = await client.post("demo", "/hello", b'{"a":', deadline=Deadline(5))
    assert (told.status, told.code(), told.message()) == (410, "gone", "session s1 is closed")
    assert (broke.status, b"answer-42" in broke.body) == (500, False)
    assert (torn.status, torn.code()) == (400, "invalid_json")


async def test_a_path_that_is_none_is_an_error_of_ours() -> None:
    """Unknown, or asked for by another method, on a hot path and on an ordinary one: the body that clients read."""
    async with serving(demo=app()) as urls, Client(urls) as client:
        missing = await client.post("demo", "/nothing", b"{}", deadline=Deadline(5))
        hot = await client.get("demo", "/hello", deadline=Deadline(5))
        ordinary = await client.post("demo", "/health", b"{}", deadline=Deadline(5))
    assert (missing.status, missing.code()) == (404, "not_found")
    assert missing.message() == "POST /nothing: demo has no such route (/docs lists them)"
    assert (hot.status, hot.code(), hot.headers["allow"]) == (405, "method_not_allowed", "POST")
    assert (ordinary.status, ordinary.message()) == (405, "POST /health: demo answers GET here")


async def test_a_line_that_is_logged_names_its_rollout_and_not_its_key() -> None:
    """The beginning of the session's id finds all lines of a rollout; the whole of it would open its session."""
    written = Written()
    logger = logging.getLogger("wire.app")
    logger.addHandler(written)
    try:
        async with serving(demo=app()) as urls, Client(urls) as client:
            await client.post("demo", "/broken", b"{}", {"X-Session-Id": "abcdefghijklmnop"}, deadline=Deadline(5))
    finally:
        logger.removeHandler(written)
    assert [line["rollout"] for line in written.lines] == ["abcdefgh"]


async def test_control_routes_need_the_token() -> None:
    """As bearer or as `x-api-key`; other routes do not ask."""
    async with serving(demo=app("t0ken")) as urls, Client(urls) as stranger, Client(urls, token="t0ken") as friend:
        refused = await stranger.post("demo", "/control", b"{}", deadline=Deadline(5))
        key = await stranger.post("demo", "/control", b"{}", {"x-api-key": "t0ken"}, deadline=Deadline(5))
        let_in = await friend.post("demo", "/control", b"{}", deadline=Deadline(5))
        open_route = await stranger.post("demo", "/hello", b"{}", deadline=Deadline(5))
    assert [each.status for each in (refused, key, let_in, open_route)] == [401, 200, 200, 200]


async def test_a_stream_is_closed_when_the_reply_ends() -> None:
    """Chunks arrive in order and the generator's clean-up runs."""
    events = []

    async def stream(request: HotRequest) -> StreamReply:
        async def chunks() -> AsyncIterator[bytes]:
            try:
                yield b"data: 1\n\n"
                yield b"data: 2\n\n"
            finally:
                events.append("closed")

        return StreamReply(chunks())

    made = app()
    made.hot("POST", "/stream", stream, summary="Stream")
    async with serving(demo=made) as urls, Client(urls) as client:
        reply = await client.post("demo", "/stream", b"{}", deadline=Deadline(5))
    assert (reply.body, events) == (b"data: 1\n\ndata: 2\n\n", ["closed"])


async def test_mistakes_below_a_prefix_do_not_fill_the_metrics() -> None:
    """Ids in paths would make a series each."""
    made = app()
    made.hot_prefix("/rollouts/", broken, summary="Break, for each rollout")
    async with serving(demo=made) as urls, Client(urls) as client:
        for number in range(20):
            assert (await client.post("demo", f"/rollouts/{number}/v1", b"{}", deadline=Deadline(5))).status == 500
        assert (await client.post("demo", "/broken", b"{}", deadline=Deadline(5))).status == 500
    told = [line for line in made.metrics.text().splitlines() if "internal_errors" in line]
    assert sorted(told) == [
        'trivium_internal_errors_total{path="/broken"} 1',
        'trivium_internal_errors_total{path="below a prefix"} 20',
    ]
