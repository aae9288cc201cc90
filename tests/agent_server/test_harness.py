"""An outside program as the agent: real processes, their calls read from the model interface's record."""

import sys
from pathlib import Path
from typing import Any

import pytest

from agent_server.agents.harness import Harness, replay
from agent_server.episode import Transcript
from agent_server.settings import AgentServerSettings
from tests.agent_server import stage as stages
from tests.agent_server.stage import Answer, Model, Sent, call, text
from tests.stack import run, stack
from wire.errors import UsageError
from wire.testing import serving
from wire.testing.upstream import MSG, TC, Upstream

PROGRAM = """
import json, os, sys, urllib.request
def post(url, body):
    headers = {"content-type": "application/json", "x-session-id": os.environ["TRIVIUM_SESSION_ID"]}
    return json.load(urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)))
asked = [{"role": "user", "content": sys.stdin.read()}]
model = os.environ["OPENAI_BASE_URL"] + "/responses"
made = post(model, {"input": asked})["output"]
value = post(os.environ["TRIVIUM_TOOLS_URL"] + "/increment", json.loads(made[0]["arguments"]))
asked += made + [{"type": "function_call_output", "call_id": made[0]["call_id"], "output": str(value)}]
post(model, {"input": asked})
"""


def alive(pid: str) -> bool:
    """Whether a process is there and is no zombie."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


class Recording(Model):
    """A model interface that records what is asked under `/rollouts/<id>/`."""

    calls: list[dict[str, Any]]

    async def answer(self, request: Sent) -> Answer:
        """The record, or a turn that goes into it."""
        if not hasattr(self, "calls"):
            self.calls = []
        if not request.path.endswith("/v1/responses"):
            return 200, {"calls": self.calls}
        status, reply, *_ = await super().answer(request)
        told = reply.pop("trivium")
        number = len(self.calls)
        self.calls.append(
            {
                "request": request.json,
                "response": reply,
                "tokens": told["tokens"],
                "usage": reply["usage"],
                "started_at": 100.0 + 2 * number,
                "s": 0.5,
            }
        )
        return status, reply


def python(code: str, **more: Any) -> dict[str, Any]:
    """Options that run a few lines of Python."""
    return {"command": [sys.executable, "-c", code], **more}


async def test_a_program_plays_and_its_record_is_the_episode() -> None:
    """Its tool call changed the world; items, usage and times come from the record."""
    model = Recording(turns=[[call("increment", '{"by": 4}')], [text("four")]])
    async with stages.stage(model=model, agent=Harness, options=python(PROGRAM)) as on:
        line = await on.run(headers={"X-Session-Id": "s1"})
        asked, later = "/rollouts/s1/v1/responses", ["/rollouts/s1/close", "/rollouts/s1"]
        assert [each.path for each in on.model.sent] == [asked, asked, *later]
        assert on.model.sent[0].json["input"][0]["content"] == "Count."
    assert (line["outcome"], line["reward"]) == ("completed", 4.0), line["failure"]
    assert [item["type"] for item in line["response"]["output"]] == ["function_call", "function_call_output", "message"]
    assert [(step["model_s"], step["tool_s"]) for step in line["steps"]] == [(0.5, 1.5), (0.5, 0.0)]
    assert line["response"]["usage"]["total_tokens"] == 50


async def test_a_program_that_ends_badly_is_an_agent_error() -> None:
    """The failure has the end of what it printed."""
    options = python("import sys; sys.exit('no such model')")
    async with stages.stage(model=Recording(), agent=Harness, options=options) as on:
        line = await on.run()
    assert line["failure"]["kind"] == "agent_error"
    assert "no such model" in line["failure"]["message"]


async def test_a_program_that_does_not_end_is_killed_with_its_children(tmp_path: Path) -> None:
    """`timeout`; the child that it left behind in its group is gone too."""
    code = f"import os, time; pid = os.fork(); open({str(tmp_path / 'pid')!r}, 'a').write(f'{{os.getpid()}} '); time.sleep(600)"
    async with stages.stage(model=Recording(), agent=Harness, options=python(code, timeout_s=1.0)) as on:
        line = await on.run()
    assert line["failure"]["kind"] == "timeout"
    pids = (tmp_path / "pid").read_text().split()
    assert len(pids) == 2
    assert not any(alive(pid) for pid in pids)


async def test_a_program_sees_nothing_of_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a key nor the stack's token; what is named in the options it does see."""
    monkeypatch.setenv("TRIVIUM_TOKEN", "secret")
    monkeypatch.setenv("MY_FLAG", "yes")
    code = "import os, sys; sys.exit(' '.join(sorted(os.environ)) + os.environ['MY_FLAG'])"
    options = python(code, pass_env=["MY_FLAG"], env={"ADDED": "1"})
    async with stages.stage(model=Recording(), agent=Harness, options=options) as on:
        line = await on.run()
    message = line["failure"]["message"]
    assert "TRIVIUM_TOKEN" not in message
    assert "ADDED" in message
    assert message.endswith("yes")


async def test_a_program_that_is_not_there_is_an_agent_error() -> None:
    """The message names it."""
    async with stages.stage(model=Recording(), agent=Harness, options={"command": ["/no/such/program"]}) as on:
        line = await on.run()
    assert "/no/such/program" in line["failure"]["message"]


def test_a_history_that_was_rewritten_adds_no_turn_twice() -> None:
    """With a shorter history than before only what comes after it is new; `previous_response_id` makes all of it new."""
    asked = {"role": "user", "content": "a"}
    answer = {"output": [text("b")]}
    transcript = Transcript()
    replay(
        [
            {"request": {"input": [asked]}, "response": answer},
            {"request": {"previous_response_id": "r", "input": [{"role": "user", "content": "c"}]}, "response": answer},
            {"request": {"input": [{"role": "user", "content": "summary"}]}, "response": answer},
        ],
        transcript,
    )
    assert [item.get("role") for item in transcript.items] == ["assistant", "user", "assistant", "assistant"]
    assert len(transcript.steps) == 3


def test_a_harness_without_a_command_is_refused_at_start() -> None:
    """The message names the option."""
    with pytest.raises(UsageError, match=r"options\.command"):
        Harness(AgentServerSettings())


OPENAI_PROGRAM = """
import json, os, sys, urllib.request
from openai import OpenAI
client = OpenAI()
def world(path, arguments):
    headers = {"content-type": "application/json", "x-session-id": os.environ["TRIVIUM_SESSION_ID"]}
    url = os.environ["TRIVIUM_TOOLS_URL"] + path
    return urllib.request.urlopen(urllib.request.Request(url, arguments.encode(), headers)).read().decode()
parameters = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
tools = [{"type": "function", "function": {"name": "increment_counter", "parameters": parameters}}]
messages = [{"role": "user", "content": sys.argv[1]}]
while True:
    message = client.chat.completions.create(model="any", messages=messages, tools=tools).choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    if not message.tool_calls:
        break
    for each in message.tool_calls:
        output = world("/" + each.function.name, each.function.arguments)
        messages.append({"role": "tool", "tool_call_id": each.id, "content": output})
"""


async def test_a_program_with_the_openai_client_plays_through_the_real_servers() -> None:
    """Chat Completions on its side, a record in items on ours; the call's output follows the call, and nothing is there twice."""
    answers = [
        TC(("c1", "increment_counter", '{"count": 1}')),
        TC(("c2", "increment_counter", '{"count": 2}'), text="And two."),
        MSG("three"),
    ]
    agent = {"agent": "harness", "options": {"command": [sys.executable, "-c", OPENAI_PROGRAM, "{prompt}"]}}
    row = {"responses_create_params": {"input": "Count to three."}, "initial_count": 0, "expected_count": 3}
    async with (
        serving(up=Upstream(answers)) as up,
        stack(up["up"], resources_server={"environment": "counter"}, agent_server=agent) as urls,
    ):
        line = await run(urls, row)
    assert line["failure"] is None
    assert (line["outcome"], line["reward"]) == ("completed", 1.0)
    types = [item["type"] for item in line["response"]["output"]]
    call_and_output = ["function_call", "function_call_output"]
    assert types == [*call_and_output, "message", *call_and_output, "message"]
    assert [len(step["calls"]) for step in line["steps"]] == [1, 1, 0]
    assert line["response"]["usage"]["output_tokens"] == 16 + 16 + 5


def test_a_boolean_is_no_number_among_options() -> None:
    """`timeout_s: true` is not one second."""
    with pytest.raises(UsageError, match=r"agent_server\.options\.timeout_s is True: a number is wanted"):
        Harness(AgentServerSettings(options={"command": ["x"], "timeout_s": True}))
