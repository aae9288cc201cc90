"""Tool schemas stand once beside the lines, and come back with them."""

from pathlib import Path
from typing import Any

from rollouts import toolsets
from rollouts.export.export import export
from rollouts.export.formats import FORMATS
from rollouts.export.reading import Selection
from rollouts.journal import Journal
from wire import jsonl, strict_json

TOOLS = [{"type": "function", "name": "add", "parameters": {"type": "object", "properties": {}}}]


def line(tools: list[Any] | None) -> dict[str, Any]:
    """A scored line of an episode with these tools."""
    output = [{"type": "message", "role": "assistant", "content": "2"}]
    response = {"output": output, **({"tools": tools} if tools is not None else {})}
    return {"responses_create_params": {"input": "Add."}, "reward": 1.0, "response": response, "task_index": 0}


def write(path: Path, *lines: dict[str, Any], fresh: bool = False) -> None:
    """Lines as a collector writes them."""
    journal = Journal(path)
    journal.begin(fresh=fresh)
    for each in lines:
        journal.keep_tools(each)
        journal.rollout(strict_json.dumps(each))
    journal.close()


def test_each_set_stands_once(tmp_path: Path) -> None:
    """Also after a resume; a line names its set, and one without tools names none."""
    path = tmp_path / "out.jsonl"
    write(path, line(list(TOOLS)), line(list(TOOLS)), line(None), line([]))
    write(path, line(list(TOOLS)), line([{**TOOLS[0], "name": "other"}]))
    assert len(list(jsonl.read(toolsets.path_of(path)))) == 2
    found = [each for _, each in jsonl.read(path)]
    assert [toolsets.FIELD in each for each in found] == [True, True, False, False, True, True]
    assert not any("tools" in each["response"] for each in found)


def test_fresh_starts_without_old_sets(tmp_path: Path) -> None:
    """What no line names is not kept."""
    path = tmp_path / "out.jsonl"
    write(path, line(list(TOOLS)))
    write(path, line(None), fresh=True)
    assert toolsets.read(path) == {}


def test_an_export_has_the_schemas_again(tmp_path: Path) -> None:
    """Trainers get them with each sample; a torn record of a killed run is left out."""
    path = tmp_path / "out.jsonl"
    write(path, line(list(TOOLS)))
    with toolsets.path_of(path).open("ab") as torn:
        torn.write(b'{"tools_sha256":"x"')
    export(FORMATS["trl-sft"], [path], tmp_path / "sft.jsonl", Selection())
    [(_, record)] = jsonl.read(tmp_path / "sft.jsonl")
    assert record["tools"][0]["function"]["name"] == "add"
    assert toolsets.path_of(tmp_path / "out_failures.jsonl") == toolsets.path_of(path)
