"""Exports: every line is a sample or left out for a reason, groups are over valid members only, nothing is made up."""

import json
from pathlib import Path
from typing import Any

import pytest

from rollouts.export.export import export
from rollouts.export.formats import FORMATS
from rollouts.export.reading import Selection, Tally
from wire import jsonl
from wire.errors import UsageError

GOLDEN = Path(__file__).parent / "golden"
TOOLS = [{"type": "function", "name": "add", "description": "Add.", "parameters": {"type": "object", "properties": {}}}]
STEPS: list[dict[str, Any]] = [
    {
        "started_at": 1_700_000_000.0,
        "usage": {"input_tokens": 3, "output_tokens": 3},
        "tokens": {
            "prompt_token_ids": [1, 10, 11],
            "generation_token_ids": [20, 21, 2],
            "generation_log_probs": [-0.1, -0.2, -0.3],
            "fidelity": "exact",
        },
    },
    {
        "started_at": 1_700_000_001.0,
        "usage": {"input_tokens": 9, "output_tokens": 2},
        "tokens": {
            "prompt_token_ids": [198, 30, 31],
            "generation_token_ids": [40, 2],
            "generation_log_probs": [-0.4, -0.5],
            "fidelity": "exact",
        },
    },
]
OUTPUT: list[dict[str, Any]] = [
    {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"n": 2}'},
    {"type": "function_call_output", "call_id": "c1", "output": "2"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is 2."}]},
]


def line(task: int, repeat: int, reward: float | None, **more: Any) -> dict[str, Any]:
    """A line as `collect` writes it: one tool call, one answer, tokens of both."""
    return {
        "responses_create_params": {"input": "Add two.", "temperature": 0.7},
        "expected": 2,
        "task_index": task,
        "rollout_index": repeat,
        "group_size": 4,
        "reward": reward,
        "metrics": {"calls": 1.0},
        "response": {"output": OUTPUT, "tools": TOOLS, "usage": {"input_tokens": 12, "output_tokens": 5}},
        "steps": STEPS,
        "outcome": "completed",
        "failure": None,
        "mask_sample": False,
        "environment_ref": {"name": "adder", "version": "1"},
        "agent_ref": {"type": "responses_api_agents", "name": "tool_loop"},
        "provenance": {"run_id": "r1", "model": "m", "trivium": "0.1.0"},
        **more,
    }


def failure(task: int, repeat: int) -> dict[str, Any]:
    return line(task, repeat, None, failure={"kind": "model_timeout"}, failure_kind="model_timeout", mask_sample=True)


def run(folder: Path, name: str, lines: list[dict[str, Any]], **selection: Any) -> tuple[list[dict[str, Any]], Tally]:
    """Export lines; the records and the tally, whose counts add up."""
    path, output = folder / "in.jsonl", folder / "out.jsonl"
    path.unlink(missing_ok=True)
    with jsonl.Appender(path) as out:
        for each in lines:
            out.append(each)
    tally = export(FORMATS[name], [path], output, Selection(**selection))
    assert tally.lines == len(lines) == tally.exported + sum(tally.left_out.values())
    return [record for _, record in jsonl.read(output)], tally


GROUPS = [  # case F05
    *(line(1, place, reward) for place, reward in enumerate([1.0, 0.0])),
    failure(1, 2),
    line(1, 3, 0.0),
    *(line(2, place, 1.0) for place in range(4)),
    *(failure(3, place) for place in range(4)),
    line(4, 0, 1.0),
    *(failure(4, place) for place in range(1, 4)),
    *(line(5, place, 0.35 if place else 0.95) for place in range(8)),
]


def test_group_figures_are_over_valid_members(tmp_path: Path) -> None:
    """Case F05: G1 centred by 1/3, G2 zeros and flagged, G3 and G4 left out, G5 bounded."""
    records, tally = run(tmp_path, "trl", GROUPS, normalise=False)
    by_task: dict[int, list[dict[str, Any]]] = {}
    for record in records:
        by_task.setdefault(record["task_index"], []).append(record)
    assert [round(each["advantage"], 4) for each in by_task[1]] == [0.6667, -0.3333, -0.3333]
    assert {(each["advantage"], each["zero_variance"]) for each in by_task[2]} == {(0.0, True)}
    assert sorted(by_task) == [1, 2, 5]
    assert max(abs(each["advantage"]) for each in by_task[5]) < 10
    assert tally.left_out == {"failed": 8, "group with fewer than 2 rewards": 1}
    assert by_task[1][0]["n_valid"] == 3
    assert by_task[1][0]["sampling"] == {"temperature": 0.7}


def test_normalised_advantages_are_bounded(tmp_path: Path) -> None:
    """Case F05, G5."""
    records, _ = run(tmp_path, "trl", GROUPS)
    assert max(abs(each["advantage"]) for each in records) < 10


def test_groups_with_equal_rewards_can_be_dropped(tmp_path: Path) -> None:
    """By choice, and counted."""
    records, tally = run(tmp_path, "trl", GROUPS, drop_equal=True)
    assert {each["task_index"] for each in records} == {1, 5}
    assert tally.left_out["group with equal rewards"] == 4


def test_a_message_the_policy_did_not_write_is_not_trained_on(tmp_path: Path) -> None:
    """Case F04 a: an item without tokens of its own adds none."""
    apology = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Stopped: step limit reached"}],
    }
    told = line(0, 0, 1.0)
    told["response"] = {**told["response"], "output": [*OUTPUT, apology]}
    [record] = run(tmp_path, "tokens", [told], min_valid=1)[0]
    assert sum(record["loss_mask"]) == 5


APOLOGY: dict[str, Any] = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Stopped: step limit reached"}],
}
THOUGHT: dict[str, Any] = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
SUPERVISED = ["trl-sft", "nemo-rl-sft", "unsloth", "openai"]


def told(output: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A line with these items, two model calls and no token ids."""
    return line(0, 0, 1.0, response={"output": output, "tools": TOOLS}, **{"steps": [{}, {}], **more})


@pytest.mark.parametrize("name", SUPERVISED)
@pytest.mark.parametrize(
    ("output", "more"),
    [
        (OUTPUT[:2], {"steps": [{}]}),
        (OUTPUT[:2], {"steps": None}),
        ([{**OUTPUT[0], "generation_token_ids": [7]}, OUTPUT[1]], {"steps": None, "outcome": "completed"}),
    ],
    ids=["one model call", "no steps known", "ids on the call"],
)
def test_the_last_words_of_a_harness_are_no_target(
    tmp_path: Path, name: str, output: list[dict[str, Any]], more: dict[str, Any]
) -> None:
    """Case F04 a: without them the episode ends with what a tool answered, and is left out."""
    records, tally = run(tmp_path, name, [told([*output, APOLOGY], **{"outcome": "max_steps", **more})])
    assert (records, dict(tally.left_out)) == ([], {"the last message is not the model's": 1})


def test_what_the_model_said_before_a_harness_spoke_is_kept(tmp_path: Path) -> None:
    """Its own answer is the target; the words behind it are not in the sample. Its last words otherwise stay."""
    [record] = run(tmp_path, "trl-sft", [told([*OUTPUT, APOLOGY], outcome="max_steps")])[0]
    assert record["messages"][-1] == {"role": "assistant", "content": "It is 2."}
    for outcome in ("completed", "max_output_tokens", "max_steps"):
        assert run(tmp_path, "trl-sft", [told(OUTPUT, outcome=outcome)])[0] == [record]


@pytest.mark.parametrize("name", [*SUPERVISED, "trl-kto"])
@pytest.mark.parametrize("output", [[], [THOUGHT], [THOUGHT, {**APOLOGY, "content": []}]])
def test_an_episode_of_reasoning_alone_is_no_target(tmp_path: Path, name: str, output: list[dict[str, Any]]) -> None:
    """Case F04 c; also where its input ends with an assistant's message, which is not the model's."""
    params = {"input": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}
    records, tally = run(tmp_path, name, [told(output, responses_create_params=params, outcome="stalled", steps=[{}])])
    assert (records, dict(tally.left_out)) == ([], {"no_generation: no text and no call, at most reasoning": 1})


@pytest.mark.parametrize("name", SUPERVISED)
def test_an_episode_that_stalled_is_no_target(tmp_path: Path, name: str) -> None:
    """A last turn without a word would teach to fall silent."""
    records, tally = run(tmp_path, name, [told([*OUTPUT[:2], THOUGHT], outcome="stalled")])
    assert (records, dict(tally.left_out)) == ([], {"the last turn is only reasoning": 1})


def test_pairs_are_made_of_episodes_that_say_something(tmp_path: Path) -> None:
    """The worst that says anything stands for its group."""
    lines = [line(0, 0, 1.0), line(0, 1, 0.5), line(0, 2, 0.0, response={"output": [THOUGHT]})]
    [record], tally = run(tmp_path, "trl-dpo", lines)
    assert record["rejected_reward"] == 0.5
    assert dict(tally.left_out) == {"no_generation: no text and no call, at most reasoning": 1}


@pytest.mark.parametrize(
    "steps",
    [
        [],
        [{"tokens": None}],
        [{"tokens": {**STEPS[0]["tokens"], "generation_token_ids": [], "generation_log_probs": []}}],
    ],
    ids=["overflow on the first call", "reasoning without ids", "empty ids"],
)
def test_an_episode_without_a_generation_is_left_out(tmp_path: Path, steps: list[Any]) -> None:
    """Case F04 b, c."""
    records, tally = run(tmp_path, "trl", [line(0, 0, 0.0, steps=steps)], min_valid=1)
    assert (records, dict(tally.left_out)) == ([], {"no_generation": 1})


@pytest.mark.parametrize("name", ["trl", "tokens", "nemo-rl"])
def test_placeholders_are_never_samples_and_the_tally_says_so(tmp_path: Path, name: str) -> None:
    """Case F04: a step of zeros is nobody's generation, whatever its label and whatever is asked for."""
    zeros = {**STEPS[1]["tokens"], "generation_token_ids": [0, 0]}
    lines = [line(0, 0, 1.0), line(0, 1, 1.0, steps=[STEPS[0], {"tokens": zeros}])]
    records, tally = run(tmp_path, name, lines, min_valid=1, any_fidelity=True)
    assert len(records) == 1
    [reason] = tally.left_out
    assert reason == "token fields are wrong (step 1: every generated id is 0, which stands for ids that nobody had)"


def test_what_is_not_exact_is_left_out_unless_asked_for(tmp_path: Path) -> None:
    """Ruling 6: a forked episode comes in pieces, each with its own prompt."""
    forked = [STEPS[0], {"tokens": {**STEPS[1]["tokens"], "prompt_token_ids": [7, 8], "fidelity": "forked"}}]
    records, tally = run(tmp_path, "trl", [line(0, 0, 1.0, steps=forked)], min_valid=1)
    assert (records, dict(tally.left_out)) == ([], {"tokens are forked, not exact": 1})
    records, tally = run(tmp_path, "trl", [line(0, 0, 1.0, steps=forked)], min_valid=1, any_fidelity=True)
    pieces = [(each["prompt_ids"], each["segment"], each["fidelity"]) for each in records]
    assert pieces == [
        ([1, 10, 11], 0, "forked"),
        ([7, 8], 1, "forked"),
    ]


ODD: list[tuple[dict[str, Any], str]] = [
    ({"steps": [None]}, "steps[0] is None: should be an object"),
    ({"steps": "two"}, "steps is 'two': should be a valid list"),
    ({"group_size": "4"}, "group_size is '4': should be a valid integer"),
    ({"task_index": [1]}, "task_index is [1]: should be a whole number or a text"),
    ({"reward": 10**400}, "reward is 1000"),
    ({"outcome": {}}, "outcome is {}: should be a valid string"),
    ({"provenance": "r1"}, "provenance is 'r1': should be an object"),
    ({"agent_ref": "tool_loop"}, "agent_ref is 'tool_loop': should be an object"),
    ({"responses_create_params": {"input": 5}}, "responses_create_params.input is 5: should be a valid"),
    ({"responses_create_params": {"input": [{"content": "x"}]}}, "responses_create_params.input[0] is {'content'"),
    ({"response": {"output": [{**THOUGHT, "content": "hm"}]}}, "should have its content as a list of parts"),
    ({"response": {"output": [None]}}, "response.output[0] is None: should be an object"),
    ({"response": {"output": [{**APOLOGY, "content": 5}]}}, "response.output[0].content is 5: should be a valid"),
    ({"response": {"output": [{**APOLOGY, "content": [None]}]}}, "response.output[0].content[0] is None: should be an"),
    ({"response": {"output": [{**OUTPUT[0], "name": None}]}}, "response.output[0] is {'type'"),
    ({"response": {"output": [{**OUTPUT[0], "arguments": 5}]}}, "should have arguments as the text of a JSON object"),
    ({"response": {"output": OUTPUT, "tools": ["add"]}}, "response.tools[0] is 'add': should be an object"),
    (
        {"response": {"output": OUTPUT, "usage": {"input_tokens_details": 3}}},
        "response.usage.input_tokens_details is 3",
    ),
]


@pytest.mark.parametrize(("change", "words"), ODD)
@pytest.mark.parametrize("name", FORMATS)
def test_an_odd_line_is_one_sentence_and_the_others_are_exported(
    tmp_path: Path, name: str, change: dict[str, Any], words: str
) -> None:
    """What another maker's agent wrote and `collect` let through: `file:line`, what it is, what would be right."""
    records, tally = run(tmp_path, name, [line(0, 0, 1.0), line(0, 1, 0.0) | change, line(0, 2, 0.0)])
    assert len(records) == (1 if FORMATS[name].pair else 2)
    assert tally.left_out["faulty"] == 1
    [fault] = tally.faults
    assert fault.startswith(f"{tmp_path / 'in.jsonl'}:2: ") and words in fault and "\n" not in fault


@pytest.mark.parametrize("name", FORMATS)
def test_a_call_without_a_name_is_the_models_own_mistake_and_no_fault_of_its_line(tmp_path: Path, name: str) -> None:
    """It is recorded as "", and has the reward that it earned: to leave it out would spare the policy that."""
    nameless = line(0, 1, 0.0, response={"output": [{**OUTPUT[0], "name": ""}, *OUTPUT[1:]]})
    records, tally = run(tmp_path, name, [line(0, 0, 1.0), nameless, line(0, 2, 0.0)])
    assert (records != [], tally.faults) == (True, [])


@pytest.mark.parametrize("name", ["trl-sft", "trl-dpo", "trl-kto", "unsloth", "openai"])
def test_an_item_without_a_form_in_chat_is_a_fault_of_its_line(tmp_path: Path, name: str) -> None:
    """For the formats of messages only."""
    strange = line(0, 1, 0.0, response={"output": [{"type": "web_search_call"}, *OUTPUT]})
    records, tally = run(tmp_path, name, [line(0, 0, 1.0), strange, line(0, 2, 0.0)])
    assert records and tally.left_out["faulty"] == 1
    assert f"{tmp_path / 'in.jsonl'}:2: input[1]: an item of type 'web_search_call'" in tally.faults[0]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "change",
    [
        {"metrics": None, "provenance": None, "agent_ref": None, "steps": None, "task_index": None, "group_size": None},
        {"task_input": None, "responses_create_params": None},
        {"steps": [{"started_at": "noon"}, {"started_at": 1e300}]},
        {"response": {"output": []}},
        {"response": {"output": None}},
        {"response": {"output": [{**OUTPUT[0], "arguments": {"n": 2}}, *OUTPUT[1:]]}},
    ],
)
def test_what_may_be_left_out_may_be_null(tmp_path: Path, name: str, change: dict[str, Any]) -> None:
    """No fault and no traceback."""
    told = {key: value for key, value in (line(0, 0, 1.0) | change).items() if key != "task_index" or value is not None}
    assert run(tmp_path, name, [told], min_valid=1)[1].faults == []


def test_members_that_their_group_does_not_count_can_be_left_out(tmp_path: Path) -> None:
    """By the records that `collect` wrote beside the lines; they are in no mean either."""
    with jsonl.Appender(tmp_path / "in_groups.jsonl") as out:
        out.append({"task_index": 1, "counted": [0, 1]})
        out.append({"task_index": 2, "counted": []})
    records, tally = run(tmp_path, "trl", GROUPS, counted=True, normalise=False)
    assert [each["advantage"] for each in records if each["task_index"] == 1] == [0.5, -0.5]
    assert {each["task_index"] for each in records} == {1, 5}
    assert tally.left_out["not counted by its group's record"] == 5


def test_best_of_and_rejection_sampling(tmp_path: Path) -> None:
    """One per group; or all from a reward on."""
    assert len(run(tmp_path, "trl-sft", GROUPS, best_of=True)[0]) == 4
    assert run(tmp_path, "trl-sft", GROUPS, min_reward=0.9)[1].left_out["reward too low"] == 9


def test_pairs_are_best_against_worst(tmp_path: Path) -> None:
    """Groups without a gap have no pair."""
    records, tally = run(tmp_path, "trl-dpo", GROUPS, min_gap=0.7)
    assert [(each["chosen_reward"], each["rejected_reward"]) for each in records] == [(1.0, 0.0)]
    assert tally.exported == 2
    ranked = run(tmp_path, "nemo-rl-preference", GROUPS, min_gap=0.5)[0]
    assert [[each["rank"] for each in record["completions"]] for record in ranked] == [[0, 1], [0, 1]]


@pytest.mark.parametrize("name", FORMATS)
def test_the_golden_file_of_each_format(tmp_path: Path, name: str) -> None:
    """What is written, to the byte; a change here is one that trainers see."""
    lines = [line(0, 0, 1.0, reward_components={"right": 1.0}), line(0, 1, 0.0)]
    records, _ = run(tmp_path, name, lines)
    golden = GOLDEN / f"{name}.jsonl"
    assert records == [json.loads(each) for each in golden.read_text().splitlines()]


def test_nemo_rls_assertions_hold(tmp_path: Path) -> None:
    """For each item with generated ids the prompt begins with all ids before it; components sum to the reward."""
    [record, _] = run(
        tmp_path, "nemo-rl", [line(0, 0, 1.0, reward_components={"a": 0.25, "b": 0.75}), line(0, 1, 0.0)]
    )[0]
    seen: list[int] = []
    for item in record["response"]["output"]:
        if "generation_token_ids" in item:
            assert item["prompt_token_ids"][: len(seen)] == seen
            assert len(item["generation_token_ids"]) == len(item["generation_log_probs"])
            seen = item["prompt_token_ids"] + item["generation_token_ids"]
    assert seen == [1, 10, 11, 20, 21, 2, 198, 30, 31, 40, 2]
    assert sum(record["reward_components"].values()) == record["reward"]
    assert record["instance_config"]["mask_sample"] is False


def test_an_output_that_is_an_input_is_refused(tmp_path: Path) -> None:
    """Nothing is lost."""
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps(line(0, 0, 1.0)) + "\n")
    with pytest.raises(UsageError, match="is one of the rollouts files"):
        export(FORMATS["trl"], [path], path, Selection())
    assert len(path.read_text().splitlines()) == 1


def test_parquet_holds_the_same_samples(tmp_path: Path) -> None:
    """Read back with pyarrow."""
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "in.jsonl"
    with jsonl.Appender(path) as out:
        for each in GROUPS:
            out.append(each)
    export(FORMATS["tokens"], [path], tmp_path / "out.parquet", Selection())
    table = parquet.read_table(tmp_path / "out.parquet")
    assert table.num_rows == 15
    assert table["input_ids"][0].as_py() == [1, 10, 11, 20, 21, 2, 198, 30, 31, 40, 2]


def test_parquet_keeps_each_tools_arguments_as_they_were(tmp_path: Path) -> None:
    """Records whose arguments have nothing in common, or one name with two types, gain no keys and lose none."""
    parquet = pytest.importorskip("pyarrow.parquet")
    path, lines = tmp_path / "in.jsonl", []
    for task, arguments in enumerate(('{"n": 2}', '{"text": "x", "in": ["a"]}', '{"n": "two"}', "{}")):
        call = {"type": "function_call", "call_id": "c1", "name": "add", "arguments": arguments}
        lines += [
            line(task, repeat, 1.0, response={"output": [call, *OUTPUT[1:]], "tools": TOOLS}) for repeat in (0, 1)
        ]
    with jsonl.Appender(path) as out:
        for each in lines:
            out.append(each)
    for name in ("trl-sft", "trl-kto", "openai", "atif", "nemo-rl", "verl"):
        export(FORMATS[name], [path], tmp_path / "out.jsonl", Selection())
        export(FORMATS[name], [path], tmp_path / "out.parquet", Selection())
        found = parquet.read_table(tmp_path / "out.parquet").to_pylist()
        told = [each for _, each in jsonl.read(tmp_path / "out.jsonl")]
        assert [_columns(each) for each in found] == [_columns(each) for each in told]


def _columns(record: dict[str, Any]) -> dict[str, Any]:
    """JSON columns as values again; a column that a record does not have is null in a table."""
    return {name: _objects(each) for name, each in record.items() if each is not None}


def _objects(value: Any) -> Any:
    if isinstance(value, list):
        return [_objects(each) for each in value]
    return json.loads(value) if isinstance(value, str) and value[:1] == "{" else value
