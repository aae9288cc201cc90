"""The client of the step's calls, over raw sockets, on asyncio's loop and on uvloop's: what servers send, and how they stop sending."""

import asyncio
import gzip
import socket
import ssl
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st
from yarl import URL

from wire.http import Answer, Broken, NoConnection, NotHttp, Origin, Pool, TooLarge, head, lines
from wire.testing import free_port

LOOPS = [pytest.param(asyncio.run, id="asyncio"), pytest.param(uvloop.run, id="uvloop")]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CERTIFICATE = Path(__file__).with_name("localhost.pem")  # of nobody's: for a hundred years, and its key lies beside it
Wait = asyncio.Event  # in a script: do not go on until it is set


class Scripted:
    """A server whose connections each send their script: bytes, one item per request; None closes, an event waits."""

    def __init__(self, *scripts: list[Any], context: ssl.SSLContext | None = None) -> None:
        self.scripts, self.opened, self.heard, self.context = list(scripts), 0, b"", context

    async def __aenter__(self) -> "Scripted":
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0, ssl=self.context)
        self.url = URL(f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/x?y=1")
        self.pool = Pool(connections=8, connect_s=2, keep_alive_s=30, max_bytes=4096)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.pool.close()
        self._server.close()

    async def post(self, body: bytes | None = b"{}", limit_s: float = 5, extra: str = "") -> Answer:
        origin = Origin.of(self.url)
        return await self.pool.call(origin, head("POST", self.url, {}) + extra, body, limit_s)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        try:
            for item in self.scripts[min(self.opened, len(self.scripts)) - 1]:
                self.heard = first = await reader.readuntil(b"\r\n\r\n")
                size = first.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
                self.heard += await reader.readexactly(int(size or 0))
                for piece in item if isinstance(item, list) else [item]:
                    if isinstance(piece, Wait):
                        await piece.wait()
                    elif piece is not None:
                        writer.write(piece)
                        await writer.drain()
            if item is not None and not (isinstance(item, list) and item[-1] is None):
                await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def until(met: Callable[[], bool]) -> None:
    """Let the loop turn until something is so."""
    async with asyncio.timeout(5):
        while not met():  # noqa: ASYNC110 - a socket's end has no event of ours
            await asyncio.sleep(0)


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Callable[[Awaitable[Any]], Any]:
    """Runs a coroutine to its end on one of the loops that our processes use."""
    return request.param  # type: ignore[no-any-return]


ANSWERS: list[Any] = [
    pytest.param(OK, 200, b"{}", id="length"),
    pytest.param(CHUNKED + b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", 200, b"{}", id="chunked"),
    pytest.param(CHUNKED + b"2 \r\n{}\r\n0\r\nContent-Encoding: br\r\n\r\n", 200, b"{}", id="trailer"),
    pytest.param(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\nRetry-After: 3\r\n\r\n", 503, b"", id="status"),
    pytest.param(b"HTTP/1.1 204 Nothing\r\n\r\n", 204, b"", id="204"),
    pytest.param(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" + OK, 200, b"{}", id="interim"),
    pytest.param(b"HTTP/1.1 200 OK\nContent-Length: 2\n\n{}", 200, b"{}", id="line feeds alone"),
    pytest.param(b"HTTP/1.1 200 OK\r\nContent-Encoding: none\r\nContent-Length: 2\r\n\r\n{}", 200, b"{}", id="no coding"),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "status", "body"), ANSWERS)
def test_every_form_of_an_answer_is_read_and_the_connection_used_again(
    run: Any, raw: bytes, status: int, body: bytes
) -> None:
    """Whole, and byte by byte."""

    async def talk() -> None:
        slowly = [raw[at : at + 1] for at in range(len(raw))]
        async with Scripted([raw, slowly, raw]) as server:
            for _ in range(3):
                answer = await server.post()
                assert (answer.status, answer.body) == (status, body)
            assert server.opened == 1
            assert answer.headers.get("retry-after") == ("3" if status == 503 else None)
            assert answer.headers.get("content-encoding") in (None, "none"), "a trailer is no header"

    run(talk())


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
def test_an_answer_without_a_length_ends_with_its_connection(run: Any, version: bytes) -> None:
    """And the next call makes a new one."""

    async def talk() -> None:
        async with Scripted([[b"HTTP/" + version + b" 200 OK\r\n\r\n", b"{}", None]]) as server:
            assert [(await server.post()).body for _ in range(2)] == [b"{}", b"{}"] and server.opened == 2

    run(talk())


def test_a_server_that_says_close_is_not_asked_again_on_the_same_connection(run: Any) -> None:
    """Nor one whose connection was closed while it was idle."""

    async def talk() -> None:
        closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
        async with Scripted([closing], [[OK, None]], [OK]) as server:
            for _ in range(2):
                await server.post()
                await until(lambda: not server.pool._all)
            assert (await server.post()).status == 200 and server.opened == 3

    run(talk())


def test_what_comes_unasked_ends_the_connection(run: Any) -> None:
    """Bytes behind an answer are nobody's answer."""

    async def talk() -> None:
        async with Scripted([OK + b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother"], [OK]) as server:
            assert (await server.post()).body == b"{}"
            await until(lambda: not server.pool._all)
            assert (await server.post()).body == b"{}" and server.opened == 2

    run(talk())


FAULTS: list[Any] = [
    pytest.param([None], Broken, id="no answer"),
    pytest.param([[b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", None]], Broken, id="half a body"),
    pytest.param([[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", None]], Broken, id="half a chunk"),
    pytest.param([[b"HTTP/1.1 200 OK\r\nConte", None]], Broken, id="half a head"),
    pytest.param([b"<html>no</html>\r\n\r\n"], NotHttp, id="no HTTP"),
    pytest.param([b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"], NotHttp, id="a length that is none"),
    pytest.param([b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}"], NotHttp, id="two lengths"),
    pytest.param([b"HTTP/1.1 101 Switch\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"], NotHttp, id="upgrade"),
    pytest.param([b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" + b"x" * 9999], TooLarge, id="too large"),
    pytest.param([b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 9999], TooLarge, id="too many headers"),
    pytest.param([[b"HTTP/1.1 200 OK\r\nX: ", *[b"y" * 999] * 9]], TooLarge, id="an endless header"),
    pytest.param(
        [[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ", *[b"y" * 999] * 9]],
        TooLarge,
        id="an endless trailer",
    ),
    pytest.param([[b"HTTP/1.1 100 Continue\r\n\r\n", None]], Broken, id="no more than an interim answer"),
]


@pytest.mark.parametrize(("script", "fault"), FAULTS)
def test_every_fault_has_a_name_and_leaves_nothing_behind(run: Any, script: list[Any], fault: type[Exception]) -> None:
    """The next call is answered, on a connection of its own."""

    async def talk() -> None:
        async with Scripted(script, [OK]) as server:
            with pytest.raises(fault) as raised:
                await server.post()
            assert str(raised.value)
            if isinstance(raised.value, Broken):
                assert raised.value.silent is (script == [None])
            assert (await server.post()).body == b"{}" and server.opened == 2

    run(talk())


def test_what_had_come_of_a_broken_answer_is_kept(run: Any) -> None:
    """Its status, its headers and its first bytes."""

    async def talk() -> None:
        async with Scripted(
            [[b"HTTP/1.1 502 Bad\r\nRetry-After: 3\r\nContent-Length: 99\r\n\r\nupstream", None]]
        ) as server:
            with pytest.raises(Broken) as raised:
                await server.post()
            assert (raised.value.status, raised.value.body) == (502, b"upstream")
            assert raised.value.headers == {"retry-after": "3", "content-length": "99"}

    run(talk())


def raw_deflate(text: bytes) -> bytes:
    made = zlib.compressobj(wbits=-15)
    return made.compress(text) + made.flush()


CODINGS: list[Any] = [
    pytest.param("GZIP", gzip.compress, id="gzip"),
    pytest.param("x-gzip", lambda text: gzip.compress(text[:9]) + gzip.compress(text[9:]), id="two members"),
    pytest.param("deflate", zlib.compress, id="deflate"),
    pytest.param("deflate", raw_deflate, id="raw deflate"),
    pytest.param("identity", bytes, id="identity"),
]


@pytest.mark.parametrize(("coding", "pack"), CODINGS)
def test_an_encoding_that_nobody_asked_for_is_undone(run: Any, coding: str, pack: Callable[[bytes], bytes]) -> None:
    """Within the bound on an answer's size."""

    def answer(text: bytes) -> bytes:
        packed = pack(text)
        lines = f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {len(packed)}\r\n\r\n"
        return lines.encode() + packed

    async def talk() -> None:
        async with Scripted([answer(b"{}" * 999), answer(b"x" * 9999)]) as server:
            assert (await server.post()).body == b"{}" * 999
            assert b"accept-encoding: identity" in server.heard.lower()
            with pytest.raises(TooLarge):
                await server.post()

    run(talk())


@pytest.mark.parametrize("encoding", [b"br", b"gzip"])
def test_a_body_that_cannot_be_read_leaves_the_connection_whole(run: Any, encoding: bytes) -> None:
    """An encoding that we do not know, or that the body is not in: where the answer ends is plain all the same."""

    async def talk() -> None:
        bad = (
            b"HTTP/1.1 429 Slow\r\nRetry-After: 2\r\nContent-Encoding: " + encoding + b"\r\nContent-Length: 2\r\n\r\n{}"
        )
        async with Scripted([bad, OK]) as server:
            with pytest.raises(Broken, match=encoding.decode()) as raised:
                await server.post()
            assert (raised.value.status, raised.value.body) == (429, b"{}")
            assert raised.value.headers["retry-after"] == "2"
            assert (await server.post()).body == b"{}" and server.opened == 1

    run(talk())


def test_time_is_up_and_a_cancelled_call_ends_its_connection(run: Any) -> None:
    """The server sees both leave; neither connection is used again."""

    async def talk() -> None:
        async with Scripted([[never := Wait()]], [[never]], [OK]) as server:
            with pytest.raises(TimeoutError):
                await server.post(limit_s=0.05)
            await until(lambda: not server.pool._all)
            asking = asyncio.create_task(server.post())
            await until(lambda: server.opened == 2)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            assert asking.cancelled()
            await until(lambda: not server.pool._all)
            never.set()
            assert (await server.post()).status == 200 and server.opened == 3

    run(talk())


def test_who_is_cancelled_as_its_answer_comes_ends_nobody_elses_connection(run: Any) -> None:
    """The connection is free at once, and another call may have it by the time that the first one wakes."""

    async def talk() -> None:
        for turns in range(6):
            async with Scripted([[gate := Wait(), OK], OK, OK]) as server:
                first = asyncio.create_task(server.post())
                await until(lambda: bool(server.heard))
                gate.set()
                await until(lambda: bool(server.pool._idle))
                second = asyncio.create_task(server.post())
                for _ in range(turns):
                    await asyncio.sleep(0)
                first.cancel()
                assert (await second).body == b"{}"
                await asyncio.gather(first, return_exceptions=True)

    run(talk())


def test_a_call_that_was_answered_as_it_was_cancelled_gives_its_connection_to_the_next(run: Any) -> None:
    """All in one turn of the loop: the answer, the cancel, and the next call's request."""

    async def talk() -> None:
        async with Scripted([OK, OK]) as server:
            first = asyncio.create_task(server.post())
            await until(lambda: any(each._answered for each in server.pool._all))
            [connection] = server.pool._all
            connection.data_received(OK)
            first.cancel()
            again = connection.send(b"POST /x HTTP/1.1\r\nContent-Length: 0\r\n\r\n", None)
            await asyncio.gather(first, return_exceptions=True)
            assert first.cancelled() and (await again).body == b"{}"

    run(talk())


def test_a_pool_that_is_closed_makes_no_call(run: Any) -> None:
    """Those in flight end, those that wait and those to come find no connection; none is left open."""

    async def talk() -> None:
        async with Scripted([[Wait()]]) as server:
            server.pool = Pool(connections=2, connect_s=2, keep_alive_s=30)
            calls = [asyncio.create_task(server.post()) for _ in range(4)]
            await until(lambda: server.opened == 2)
            await server.pool.close()
            ended = await asyncio.gather(*calls, return_exceptions=True)
            assert sorted(type(each).__name__ for each in ended) == ["Broken", "Broken", "NoConnection", "NoConnection"]
            with pytest.raises(NoConnection, match="closed"):
                await server.post()
            await until(lambda: not server.pool._all)
            assert server.opened == 2

    run(talk())


def test_nothing_is_left_of_calls_that_end_in_any_way(run: Any) -> None:
    """Two hundred over eight connections, cancelled at any turn or out of time: every place and connection comes back."""

    async def talk() -> None:
        async with Scripted([OK] * 40, [[OK, None]], [OK] * 3) as server:
            calls = [asyncio.create_task(server.post(limit_s=5 if each % 5 else 0.001)) for each in range(200)]
            for number, each in enumerate(calls):
                if number % 3 == 0:
                    each.cancel()
                    await asyncio.sleep(0)
            await asyncio.gather(*calls, return_exceptions=True)
            assert server.pool._places._value == 8
            await until(lambda: all(each.usable for each in server.pool._all))
            assert len(server.pool._all) == sum(map(len, server.pool._idle.values())) <= 8

    run(talk())


def test_no_time_is_no_fault_of_the_server(run: Any) -> None:
    """A deadline that ends while a connection is made is told as such, not as a server that is not there."""

    async def talk() -> None:
        async with Scripted([OK]) as server:
            with pytest.raises(TimeoutError):
                await server.post(limit_s=0)

    run(talk())


def test_a_hosts_addresses_are_looked_up_once_and_each_is_tried(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """For all who ask at a time; the first address answers nobody, the second does."""

    async def talk() -> None:
        asked = 0

        async def look_up(host: str, port: int, **_: Any) -> Any:
            nonlocal asked
            asked += 1
            await asyncio.sleep(0)
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in ("240.0.0.1", "127.0.0.1")]

        async with Scripted([OK]) as server:
            server.url = server.url.with_host("models.test")
            server.pool._names.look_up = look_up
            answers = await asyncio.gather(*(server.post() for _ in range(5)))
            assert [each.status for each in answers] == [200] * 5 and asked == 1

    run(talk())


def test_no_more_connections_than_allowed(run: Any) -> None:
    """Further calls wait for one, and may run out of time."""

    async def talk() -> None:
        async with Scripted([[gate := Wait(), OK], OK], [[gate, OK], OK]) as server:
            server.pool = Pool(connections=2, connect_s=2, keep_alive_s=30)
            calls = [asyncio.create_task(server.post()) for _ in range(4)]
            await until(lambda: server.opened == 2)
            with pytest.raises(TimeoutError):
                await server.post(limit_s=0.05)
            gate.set()
            assert [each.status for each in await asyncio.gather(*calls)] == [200] * 4 and server.opened == 2

    run(talk())


def test_an_idle_connection_is_let_go_of_in_time(run: Any) -> None:
    """Before its server would close it under a call; also where no call follows."""

    async def talk() -> None:
        async with Scripted([OK, OK]) as server:
            server.pool = Pool(connections=2, connect_s=2, keep_alive_s=0.01)
            await server.post()
            await until(lambda: not server.pool._all)
            assert (await server.post()).status == 200 and server.opened == 2

    run(talk())


def test_a_server_with_tls_is_spoken_to(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its certificate is trusted; where it is not, there is no connection."""

    async def talk() -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(CERTIFICATE)
        async with Scripted([OK, OK], context=context) as server:
            server.url = server.url.with_scheme("https").with_host("localhost")
            with pytest.raises(NoConnection, match="certificate"):
                await server.post()
            monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
            server.pool = Pool(connections=2, connect_s=2, keep_alive_s=30)
            assert [(await server.post()).body for _ in range(2)] == [b"{}", b"{}"]

    run(talk())


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:{port}", "http://no.such.host.invalid", "https://127.0.0.1:{port}", "http://a..b/"]
)
def test_no_connection_is_told_as_such(run: Any, url: str) -> None:
    """Nothing was sent, so the call may be made again."""

    async def talk() -> None:
        target = URL(url.format(port=free_port()))
        with pytest.raises(NoConnection):
            await Pool(connections=1, connect_s=5, keep_alive_s=1).call(
                Origin.of(target), head("GET", target, {}), None, 5
            )

    run(talk())


def test_a_server_without_tls_is_no_https(run: Any) -> None:
    """A plain server asked for by https is unreachable, not a crash."""

    async def talk() -> None:
        async with Scripted([OK]) as server:
            server.url = server.url.with_scheme("https")
            with pytest.raises(NoConnection):
                await server.post()

    run(talk())


@pytest.mark.parametrize("url", ["ftp://x/", "/x", "unix:///tmp/x"])
def test_what_is_no_http_url_is_refused(url: str) -> None:
    """By its name."""
    with pytest.raises(NoConnection, match="is no http"):
        Origin.of(URL(url))


def test_a_request_is_what_it_should_be(run: Any) -> None:
    """Path, query, host, own headers, the credentials of the URL, the length; a large body arrives whole."""

    async def talk() -> None:
        async with Scripted([OK, OK, OK]) as server:
            server.url = server.url.with_user("me").with_password("p:w")
            await server.post(b"abc", extra=lines({"X-Session-Id": "é"}))
            first, *rest, body = server.heard.split(b"\r\n")
            assert (first, body) == (b"POST /x?y=1 HTTP/1.1", b"abc")
            port = str(server.url.port).encode()
            assert set(rest) == {
                b"Host: 127.0.0.1:" + port, b"Accept-Encoding: identity", b"Authorization: Basic bWU6cDp3", "X-Session-Id: é".encode(),
                b"Content-Length: 3", b"",
            }  # fmt: skip
            await server.post(b"x" * 300_000)
            assert server.heard.endswith(b"\r\n\r\n" + b"x" * 300_000)
            await server.post(None)
            assert b"Content-Length" not in server.heard

    run(talk())


@settings(max_examples=200)
@given(st.text(), st.text(st.characters()))
def test_no_header_can_hold_another(name: str, value: str) -> None:
    """Whatever is in a name or a value, one line comes of it, or none."""
    try:
        made = lines({name: value})
    except ValueError:
        return
    assert made == f"{name}: {value}\r\n" and made.count("\n") == made.count("\r") == 1
