"""Row -> collector -> agent -> model interface -> model -> tool -> state -> verdict -> line, over real sockets with the real command."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.stack import run, stack, trivium
from wire import jsonl, strict_json
from wire.testing import serving
from wire.testing.upstream import MSG, TC, Reply, Upstream

ROOT = Path(__file__).parent.parent
WEATHER = '''
"""A world that only a test knows."""

from typing import Any

from resources_server import Environment, Response, Task, tool


class WeatherTask(Task):
    verifier_metadata: dict[str, Any]


class Weather(Environment[WeatherTask]):
    asked: list[str] = []
    count: int = 0

    @tool
    def get_weather(self, city: str, units: str = "metric") -> str:
        """Look at the sky.

        Args:
            city: Where.
            units: metric or imperial.
        """
        self.asked.append(city)
        return f"sun in {city}"

    @tool
    def increment(self, by: int = 1) -> int:
        """Count.

        Args:
            by: How much.
        """
        self.count += by
        return self.count

    def verify(self, response: Response) -> float:
        calls = self.task.verifier_metadata["expected_calls"]
        return float(self.asked == [each["arguments"]["city"] for each in calls])
'''
ROW = {
    "task_id": "t1",
    "agent_ref": {"name": "weather_agent"},
    "responses_create_params": {
        "input": [{"role": "user", "content": "Weather in Paris?"}],
        "tools": [
            {
                "type": "function",
                "name": "get_weather",
                "parameters": {
                    "type": "object",
                    "properties": {"city": {"type": "string"}, "units": {"type": "string", "default": "metric"}},
                    "required": ["city"],
                },
            }
        ],
    },
    "verifier_metadata": {"expected_calls": [{"name": "get_weather", "arguments": {"city": "Paris"}}]},
}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The dotted name of the test's own environment, on the Python path."""
    (tmp_path / "weather_world.py").write_text(WEATHER)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "weather_world:Weather"


async def play(
    world: str, *answers: Any, row: dict[str, Any] = ROW, backend: str = "chat", **agent: Any
) -> tuple[dict[str, Any], Upstream]:
    """One rollout through the whole stack in front of a model that answers as given; a strict server refused nothing."""
    upstream = Upstream(list(answers))
    model = {"backend": backend}
    async with (
        serving(up=upstream) as up,
        stack(up["up"], resources_server={"environment": world}, agent_server=agent, model_interface=model) as urls,
    ):
        line = await run(urls, row)
    assert upstream.refused == []
    return line, upstream


async def test_a_row_becomes_a_scored_line(world: str) -> None:
    """Two model calls, one tool call, reward 1; the row's own fields are in the line."""
    line, upstream = await play(world, TC(("call_1", "get_weather", '{"city": "Paris"}')), MSG("Sunny."))
    assert (line["reward"], line["outcome"], line["task_id"]) == (1.0, "completed", "t1")
    assert [item["type"] for item in line["response"]["output"]] == ["function_call", "function_call_output", "message"]
    assert line["state"]["asked"] == ["Paris"]
    assert upstream.bodies[1]["messages"][-1] == {"role": "tool", "tool_call_id": "call_1", "content": "sun in Paris"}
    assert "expected_calls" not in str(upstream.bodies)
    assert (line["provenance"]["backend"], line["provenance"]["model"]) == ("chat", "m")


async def test_arguments_that_are_no_json_are_told_and_kept(world: str) -> None:
    """Case A01: the record has the model's own 19 bytes, the wire something a strict server takes."""
    line, upstream = await play(
        world,
        TC(("call_1", "get_weather", '{"city": "Paris", }')),
        TC(("call_2", "get_weather", '{"city": "Paris"}')),
    )
    output = line["response"]["output"]
    assert output[0]["arguments"] == '{"city": "Paris", }'
    assert "not valid JSON" in output[1]["output"]
    assert (line["reward"], line["state"]["asked"], len(upstream.bodies)) == (1.0, ["Paris"], 3)


async def test_names_that_do_not_exist_never_reach_the_world(world: str) -> None:
    """Case A05: misspelt, mangled, doubled, and one that exists but is not in this row's tools."""
    names = ["get_wether", 'get_weather" />', "get_weatherget_weather", "increment", "verify", "../close_session"]
    calls = [TC((f"call_{place}", name, '{"city": "Paris"}')) for place, name in enumerate(names)]
    line, _ = await play(world, *calls, TC(("last", "get_weather", '{"city": "Paris"}')))
    output = line["response"]["output"]
    assert [item["name"] for item in output if item["type"] == "function_call"][:-1] == names
    told = [item["output"] for item in output if item["type"] == "function_call_output"]
    assert all("get_weather" in each for each in told[:-1])
    assert (line["reward"], line["state"]) == (1.0, {"asked": ["Paris"], "count": 0})


async def test_the_step_limit_ends_an_episode_and_it_is_scored(world: str) -> None:
    """Case A05: two model calls, verified, reward 0, no failure."""
    line, upstream = await play(world, *[TC((f"c{each}", "get_wether", "{}")) for each in range(4)], max_steps=2)
    assert (line["reward"], line["outcome"], line["failure"], len(upstream.bodies)) == (0.0, "max_steps", None, 2)


@pytest.mark.parametrize(
    "arguments",
    [
        '{"city": ' + "1" * 5000 + "}",
        '{"city": ' + "[" * 100_000 + "}",
        '{"city": ' + '{"a":' * 20_000 + "1" + "}" * 20_001,
    ],
    ids=["5000 digits", "100000 brackets", "20000 objects"],
)
async def test_absurd_arguments_end_nothing(world: str, arguments: str) -> None:
    """Case A11: an error for the model, the world untouched, the loop goes on."""
    line, _ = await play(world, TC(("c1", "get_weather", arguments)), TC(("c2", "get_weather", '{"city": "Paris"}')))
    assert (line["reward"], line["state"]["asked"]) == (1.0, ["Paris"])
    assert line["response"]["output"][0]["arguments"] == arguments


@pytest.mark.parametrize(
    "arguments",
    [
        '{"city": ' + "1" * 5000 + "}",
        '{"city": ' + "[" * 300 + "]" * 300 + "}",
        '{"city": ' + "[" * 100_000 + "]" * 100_000 + "}",
    ],
    ids=["5000 digits", "300 brackets", "100000 brackets"],
)
@pytest.mark.parametrize("backend", ["chat", "vllm"])
async def test_absurd_arguments_that_a_server_has_parsed_end_nothing(world: str, arguments: str, backend: str) -> None:
    """Cases A03 and A11 together: the body holds an object that no parser takes, and the record its text."""
    body = strict_json.dumps(TC(("c1", "get_weather", "HERE"))).replace(b'"HERE"', arguments.encode())
    answers = [Reply(body), TC(("c2", "get_weather", '{"city": "Paris"}'))]
    line, upstream = await play(world, *answers, backend=backend)
    assert (line["reward"], line["state"]["asked"], upstream.calls) == (1.0, ["Paris"], 3)
    recorded = line["response"]["output"][0]["arguments"]
    assert recorded.replace(" ", "") == arguments.replace(" ", "")
    assert "not valid JSON" in line["response"]["output"][1]["output"]


@pytest.mark.parametrize("name", [5, None, ["get_weather"], {"name": "get_weather"}])
async def test_a_name_that_is_no_string_is_told_to_the_model(world: str, name: Any) -> None:
    """Case A05: the record shows its JSON, the next request is one that a strict server takes."""
    calls = [TC(("c1", name, '{"city": "Paris"}')), TC(("c2", "get_weather", '{"city": "Paris"}'))]
    line, upstream = await play(world, *calls)
    assert (line["reward"], line["state"]["asked"], upstream.refused) == (1.0, ["Paris"], [])
    assert strict_json.loads(line["response"]["output"][0]["name"]) == name
    assert "there is no tool" in line["response"]["output"][1]["output"]


async def test_a_world_that_raises_is_no_reward_of_zero(world: str) -> None:
    """Case E05: verify raises KeyError; the episode is kept for a verdict later."""
    row = {**ROW, "verifier_metadata": {}}
    line, _ = await play(world, MSG("Sunny."), row=row)
    assert (line["reward"], line["mask_sample"], line["failure"]["kind"]) == (None, True, "verifier_error")
    assert "KeyError" in line["failure"]["message"]
    assert line["response"]["output"][0]["content"][0]["text"] == "Sunny."


async def test_two_hundred_rollouts_at_once_do_not_touch(world: str) -> None:
    """Every rollout has its own counter, however they interleave."""
    settings = {"options": {"turns": [{"calls": [{"name": "increment", "arguments": {"by": 3}}]}, {"text": "done"}]}}
    async with stack(
        resources_server={"environment": world}, model_interface={"backend": "scripted", **settings}
    ) as urls:
        row = {**ROW, "responses_create_params": {"input": "Count."}}
        lines = await asyncio.gather(*(run(urls, row) for _ in range(200)))
    assert {line["state"]["count"] for line in lines} == {3}


def test_any_server_and_any_world_by_command(tmp_path: Path) -> None:
    """The command line of the README: a world on the Python path, the scripted model, rows of one's own."""
    (tmp_path / "my_module.py").write_text(WEATHER.replace("class Weather(", "class MyWorld("))
    (tmp_path / "rows.jsonl").write_bytes(strict_json.dumps(ROW) + b"\n")
    (tmp_path / "mine.yaml").write_text("extends: base.yaml\nrollouts: {dataset: rows.jsonl}\n")
    done = trivium(
        "collect",
        "mine.yaml",
        "model_interface.backend=scripted",
        "resources_server.environment=my_module:MyWorld",
        "--output",
        "out.jsonl",
        cwd=tmp_path,
        path=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    [(_, line)] = jsonl.read(tmp_path / "out.jsonl")
    assert (line["reward"], line["group_size"]) == (0.0, 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("collect", "configs/nope.yaml"), "there is no config"),
        (("collect", str(ROOT / "configs/counter.yaml"), "agent_server.max_stps=3"), "did you mean 'max_steps'"),
        (("collect", str(ROOT / "configs/counter.yaml"), "--input", "missing.jsonl"), "missing.jsonl"),
        (("colect", "counter"), "did you mean 'collect'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    """No traceback, nothing started, nothing written."""
    done = trivium(*arguments, cwd=tmp_path)
    assert (done.returncode, words in done.stderr, "Traceback" in done.stderr) == (2, True, False), done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
