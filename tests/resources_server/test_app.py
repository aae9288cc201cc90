"""The HTTP face: routes, errors and their shape; real servers on loopback."""

import asyncio
import time
from typing import Any, ClassVar

import pytest

from resources_server import Environment, Response, Task, ToolError, Verdict, tool
from resources_server.app import app_for
from resources_server.environments.counter import Counter
from resources_server.environments.warehouse import Warehouse
from resources_server.settings import ResourcesServerSettings
from tests.resources_server.conftest import Serve
from wire.errors import Failed, UsageError

ROW = {"responses_create_params": {"input": "Bring it to 5."}, "initial_count": 3, "expected_count": 5}
ORDER = {"responses_create_params": {"input": "Reserve two bolts."}, "stock": {"bolt": 2}, "order": {"bolt": 2}}
DONE: dict[str, Any] = {"output": []}


async def test_one_rollout(serve: Serve) -> None:
    """Seed, call, verify, close; the row comes back from verify with the verdict added and nothing dropped."""
    async with serve(Counter) as world:
        seeded = await world.post("/seed_session", ROW)
        assert [each["name"] for each in seeded.json["tools"]] == ["increment_counter", "get_counter_value"]
        assert seeded.json["session_id"] == "s" and seeded.json["remembers_calls"] is True
        assert seeded.json["environment"] == {"name": "Counter", "version": "1"}
        assert seeded.json["parallel_tools"] == ["get_counter_value"]
        assert (await world.post("/increment_counter", {"count": 2})).json == {"success": True}
        assert (await world.post("/get_counter_value", b"")).json == {"count": 5}
        done = await world.post("/verify", {**ROW, "response": DONE})
        assert done.json == {**ROW, "response": DONE, "reward": 1.0, "metrics": {}, "state": {"count": 5}}
        assert (await world.post("/close_session")).json == {"session_id": "s"}


async def test_what_the_model_got_wrong_is_told_to_the_model(serve: Serve) -> None:
    """422 with sentences; nothing changed."""
    async with serve(Warehouse) as world:
        await world.post("/seed_session", ORDER)
        wrong = await world.post("/reserve", {"product": "bolt", "units": "three"})
        assert (wrong.status, wrong.json) == (422, {"error": ["units: should be an integer, got 'three'"]})
        refused = await world.post("/reserve", {"product": "bolt", "units": 9})
        assert (refused.status, refused.json) == (422, {"error": ["cannot reserve 9 units of 'bolt': 2 are left"]})
        done = await world.post("/verify", {**ORDER, "response": DONE})
        assert done.json["state"]["stock"] == {"bolt": 2}


async def test_verify_keeps_the_rows_own_bytes(serve: Serve) -> None:
    """A 30-digit number in a row is not rounded on its way through, and a name that is there already is replaced."""
    body = b' {"initial_count": 1, "expected_count": 1, "big": 123456789012345678901234567890, "response": {"output": []} } \n'
    async with serve(Counter) as world:
        await world.post("/seed_session", ROW)
        first = await world.post("/verify", body)
        assert b"123456789012345678901234567890" in first.body and first.json["reward"] == 0.0
        again = await world.post("/verify", {**ROW, "reward": 7, "response": DONE})
        assert again.body.count(b'"reward"') == 1 and again.json["reward"] == 0.0


class Odd(Environment[Task]):
    """A world whose code goes wrong in every way."""

    blocking: ClassVar[bool] = True

    @tool
    def fail(self) -> str:
        """Raise."""
        raise KeyError("answer")

    @tool
    def late(self) -> str:
        """Raise a time-out of its own."""
        raise TimeoutError("the shop did not answer")

    @tool
    async def later(self) -> str:
        """Raise one, async."""
        raise TimeoutError("the shop did not answer")

    @tool
    def refuse(self) -> str:
        """Refuse."""
        raise ToolError("no")

    @tool
    def thing(self) -> Any:
        """Return what is no JSON."""
        return object()

    @tool
    def raw_bytes(self, what: int) -> Any:
        """Return bytes.

        Args:
            what: Which.
        """
        return [b"\x00\xff\xfeok", "caf\udce9", {"b": b"\xff", "s": {1}}, float("nan"), None][what]

    @tool
    def flood(self, size: int) -> str:
        """Return a long text.

        Args:
            size: Characters.
        """
        return "é" * size

    @tool
    def slow(self, seconds: float) -> str:
        """Sleep.

        Args:
            seconds: How long.
        """
        time.sleep(seconds)
        return "slept"

    @tool
    async def sleep(self, seconds: float) -> str:
        """Sleep politely.

        Args:
            seconds: How long.
        """
        await asyncio.sleep(seconds)
        return "slept"

    def verify(self, response: Response) -> Any:
        match response.text:
            case "raise":
                raise KeyError("answer")
            case "judge":
                raise Failed("judge_unavailable", "the judge answered 503")
            case "slow":
                time.sleep(1)
                return 0.0
            case "verdict":
                return Verdict(reward=1, metrics={"m": 2}, reward_components={"a": 1.0}, reason="so")
            case "bad verdict":
                return Verdict(reward=True)
            case _:
                pass
        odd = {"nan": float("nan"), "inf": float("inf"), "none": None, "text": "1", "bool": True, "int": 3}
        return odd[response.text]


def said(text: str) -> dict[str, Any]:
    return {"response": {"output": [{"type": "message", "role": "assistant", "content": text}]}}


async def test_an_exception_of_the_world_is_its_own_kind(serve: Serve) -> None:
    """500 `environment_error` with type and text; a value without a JSON form is one, too. The server lives on."""
    async with serve(Odd) as world:
        await world.post("/seed_session", {})
        failed = await world.post("/fail")
        assert failed.status == 500 and failed.json["error"]["code"] == "environment_error"
        assert failed.json["error"]["message"].startswith("tool fail raised KeyError: 'answer' (test_app.py:")
        for name in ("thing", "late", "later"):
            assert (await world.post(f"/{name}")).json["error"]["code"] == "environment_error"
        assert (await world.get("/health")).status == 200


class Leaving(Environment[Task]):
    """A world whose code tries to take the server along: in a thread, on the loop, and in its verdict."""

    blocking: ClassVar[bool] = True

    @tool
    def leave(self, how: str) -> str:
        """Raise what is no Exception."""
        raise LEAVING[how]("bye")

    @tool
    async def leave_later(self, how: str) -> str:
        """The same, on the loop."""
        raise LEAVING[how]("bye")

    def verify(self, response: Response) -> Verdict:
        raise LEAVING[response.text]("bye")


LEAVING: dict[str, type[BaseException]] = {
    each.__name__: each for each in (SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError)
}


class LeavingInPlace(Leaving):
    """The same, run on the loop."""

    blocking: ClassVar[bool] = False


@pytest.mark.parametrize("world_class", [Leaving, LeavingInPlace])
@pytest.mark.parametrize("how", LEAVING)
async def test_code_that_leaves_ends_its_own_rollout_only(serve: Serve, world_class: type[Leaving], how: str) -> None:
    """`sys.exit()` and its like are the world's error, by name; the session can be closed, and the server lives on."""
    async with serve(world_class) as world:
        await world.post("/seed_session", {})
        for path in ("/leave", "/leave_later"):
            failed = await world.post(path, {"how": how})
            assert (failed.status, failed.json["error"]["code"]) == (500, "environment_error")
            assert failed.json["error"]["message"].endswith(f"raised RuntimeError: {how}: bye")
        judged = await world.post("/verify", said(how))
        assert judged.json["error"]["code"] == "verifier_error" and how in judged.json["error"]["message"]
        assert (await world.post("/close_session")).status == 200


async def test_any_bytes_become_text(serve: Serve) -> None:
    """What is no UTF-8 is replaced, NaN is a string, and nothing is None."""
    async with serve(Odd) as world:
        await world.post("/seed_session", {})
        told = [(await world.post("/raw_bytes", {"what": what})).text for what in range(5)]
        assert told == ["\x00��ok", "caf�", '{"b":"�","s":[1]}', '"NaN"', "null"]


async def test_a_long_output_is_cut_with_a_mark(serve: Serve) -> None:
    """On a character's boundary; the mark says how much there was."""
    async with serve(Odd, max_output_bytes=1001) as world:
        await world.post("/seed_session", {})
        text = (await world.post("/flood", {"size": 5000})).text
        assert text == "é" * 500 + "\n[output cut: 10000 bytes, of which the first 1001 are shown]"


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        ("raise", "verifier_error", "Odd.verify raised KeyError: 'answer'"),
        ("judge", "judge_unavailable", "the judge answered 503"),
        ("nan", "invalid_reward", "verify gave nan"),
        ("inf", "invalid_reward", "verify gave inf"),
        ("none", "invalid_reward", "verify gave None"),
        ("text", "invalid_reward", "verify gave '1'"),
        ("bool", "invalid_reward", "verify gave True"),
        ("bad verdict", "invalid_reward", "a reward is a finite number, not True"),
    ],
)
async def test_a_verdict_that_is_none_is_a_failure(serve: Serve, answer: str, code: str, message: str) -> None:
    """Never 200, never a reward of 0; the type and text of what was raised are told."""
    async with serve(Odd) as world:
        await world.post("/seed_session", {})
        reply = await world.post("/verify", said(answer))
        assert reply.status >= 500 and reply.json["error"]["code"] == code
        assert message in reply.json["error"]["message"] and "reward" not in reply.json
        assert isinstance(reply.json["state"], dict)  # so that the line can be judged again when the verifier is mended
        assert reply.json["accepted_calls"] == []


async def test_a_whole_number_is_a_reward(serve: Serve) -> None:
    """And leaves as a float."""
    async with serve(Odd) as world:
        await world.post("/seed_session", {})
        assert b'"reward":3.0' in (await world.post("/verify", said("int"))).body


async def test_a_verdict_in_full(serve: Serve) -> None:
    """Metrics, components and the reason are beside the reward."""
    async with serve(Odd) as world:
        await world.post("/seed_session", {})
        done = (await world.post("/verify", said("verdict"))).json
        assert (done["reward"], done["metrics"], done["reward_components"]) == (1.0, {"m": 2.0}, {"a": 1.0})
        assert done["reason"] == "so"


async def test_verify_that_takes_too_long_is_given_up(serve: Serve) -> None:
    """`verifier_timeout` at the limit, while others go on."""
    async with serve(Odd, verify_timeout_s=0.2) as world:
        await world.post("/seed_session", {})
        began = time.monotonic()
        reply = await world.post("/verify", said("slow"))
        assert time.monotonic() - began < 2
        assert (reply.status, reply.json["error"]["code"]) == (504, "verifier_timeout")
        assert world.app.metrics.value("threads_stuck") == 1


@pytest.mark.parametrize("name", ["slow", "sleep"])
async def test_a_tool_that_takes_too_long_breaks_its_session(serve: Serve, name: str) -> None:
    """`tool_timeout`, by the server's limit or the caller's budget; the world may be half changed, so the session is over."""
    async with serve(Odd) as world:
        await world.post("/seed_session", {})
        late = await world.post(f"/{name}", {"seconds": 1.0}, Budget_S="0.1", Call_Id="0.0")
        assert (late.status, late.json["error"]["code"]) == (504, "tool_timeout")
        assert (await world.post(f"/{name}", {"seconds": 1.0}, Call_Id="0.0")).body == late.body
        after = await world.post("/refuse", {})
        assert after.json["error"]["code"] == "session_lost"
        await world.post("/seed_session", {}, session="other")
        assert (await world.post("/refuse", {}, session="other")).json == {"error": ["no"]}


async def test_sync_tools_do_not_stop_the_server(serve: Serve) -> None:
    """Ten sessions sleep a second each at once; health answers meanwhile and all end together."""
    async with serve(Odd) as world:
        for number in range(10):
            await world.post("/seed_session", {}, session=f"s{number}")
        began = time.monotonic()
        calls = [asyncio.create_task(world.post("/slow", {"seconds": 1.0}, session=f"s{n}")) for n in range(10)]
        slowest = 0.0
        while not all(call.done() for call in calls):
            asked = time.monotonic()
            assert (await world.get("/health")).status == 200
            slowest = max(slowest, time.monotonic() - asked)
        assert time.monotonic() - began < 3 and slowest < 0.5


class Rude(Environment[Task]):
    """An async tool that blocks the loop."""

    @tool
    async def block(self) -> str:
        """Block."""
        time.sleep(1.1)  # noqa: ASYNC251  the mistake that the test is about
        return "done"

    def verify(self, response: Response) -> float:
        return 0.0


async def test_a_handler_that_blocks_the_loop_is_named(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    """A warning and a counter, with the tool's name."""
    async with serve(Rude) as world:
        await world.post("/seed_session", {})
        assert (await world.post("/block")).text == "done"
        assert "tool block held the event loop for 1." in caplog.text
        assert world.app.metrics.value("loop_blocked", code="tool block") == 1


async def test_a_row_narrows_the_tools(serve: Serve) -> None:
    """Only tools that the row names may be called, whatever the environment has; a name it does not have is not offered."""
    row = {**ROW, "responses_create_params": {"input": "x", "tools": [{"name": "get_counter_value"}, {"name": "fly"}]}}
    async with serve(Counter) as world:
        seeded = await world.post("/seed_session", row)
        assert [each["name"] for each in seeded.json["tools"]] == ["get_counter_value"]
        told = await world.post("/increment_counter", {"count": 1})
        assert told.status == 422
        assert told.json == {
            "error": ["there is no tool 'increment_counter' in this task; its tools: get_counter_value"]
        }
        assert (await world.post("/fly")).status == 404


async def test_a_row_that_does_not_fit_names_the_field_and_quotes_nothing(serve: Serve) -> None:
    """400, and no session comes of it."""
    async with serve(Counter) as world:
        wrong = await world.post("/seed_session", {"initial_count": 3, "expected_count": "secret"})
        assert wrong.status == 400 and "expected_count" in wrong.text and "secret" not in wrong.text
        assert (await world.post("/seed_session", [1])).status == 400
        assert (await world.post("/seed_session", b"{")).status == 400
        assert (await world.post("/get_counter_value")).status == 401


class Question(Environment[Task]):
    """Needs no session."""

    def verify(self, response: Response) -> float:
        return float(response.text == "42")


async def test_a_verdict_without_state_needs_no_session(serve: Serve) -> None:
    """A row and its response, or a bare Responses object."""
    output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "42"}]}]
    async with serve(Question) as world:
        assert (await world.post("/verify", {"response": {"output": output}}, session=None)).json["reward"] == 1.0
        assert (await world.post("/verify", {"id": "r", "output": output}, session=None)).json["reward"] == 1.0
        assert (await world.post("/verify", {"id": "r"}, session=None)).status == 400
    async with serve(Counter) as world:
        assert (await world.post("/verify", {**ROW, "response": DONE}, session=None)).status == 401


async def test_control_routes_need_the_token_and_tools_do_not(serve: Serve) -> None:
    """A model's code that finds the port can call tools and nothing else."""
    async with serve(Counter, token="t", solutions=True) as world:
        for path in ("/seed_session", "/verify", "/close_session", "/solution"):
            assert (await world.post(path, ROW)).status == 401
        allowed = await world.http.post(
            world.url + "/seed_session", json=ROW, headers={"Authorization": "Bearer t", "X-Session-Id": "s"}
        )
        assert allowed.status == 200
        assert (await world.post("/get_counter_value")).json == {"count": 3}


async def test_solutions_are_served_only_on_request(serve: Serve) -> None:
    """By setting; a world without one says so."""
    async with serve(Counter, solutions=True) as world:
        await world.post("/seed_session", ROW)
        expected = {"calls": [{"name": "increment_counter", "arguments": {"count": 2}}], "text": None}
        assert (await world.post("/solution")).json == expected
    async with serve(Counter) as world:
        await world.post("/seed_session", ROW)
        assert (await world.post("/solution")).status == 404
    async with serve(Odd, solutions=True) as world:
        await world.post("/seed_session", {})
        assert "has no solution()" in (await world.post("/solution")).text


async def test_tools_are_listed_and_documented(serve: Serve) -> None:
    """`/tools` for machines, `/docs` for people."""
    async with serve(Counter) as world:
        assert (await world.get("/tools")).json["tools"][0]["name"] == "increment_counter"
        paths = (await world.get("/openapi.json")).json["paths"]
        assert "count" in str(paths["/increment_counter"]["post"]["requestBody"])


def test_several_workers_need_a_database() -> None:
    """Refused at start, with the reason."""
    with pytest.raises(UsageError, match="workers=2 needs sessions that all of them see"):
        app_for(Counter, ResourcesServerSettings(workers=2))
