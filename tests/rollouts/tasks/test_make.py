"""Tasks that a model words and thinks up, with real servers and a fake upstream: only what holds up is kept."""

from pathlib import Path
from typing import Any

from rollouts.tasks.make import Made, Order, make
from wire import jsonl, strict_json
from wire.testing import serving
from wire.testing.upstream import MSG, TC, Upstream

ROW = {
    "task_id": "w-0",
    "responses_create_params": {"input": "Reserve two bolts, then say done."},
    "stock": {"bolt": 5, "nut": 9, "hinge": 4},
    "order": {"bolt": 2},
}


def task(prompt: str, order: dict[str, int]) -> str:
    return strict_json.dumps({"prompt": prompt, "stock": {"hinge": 3, "nut": 2}, "order": order}).decode()


def model(*proposals: str, reworded: str = "") -> Any:
    """Rewords and proposes what it is told to; as an agent it reserves one hinge, whatever it is asked."""
    left = list(proposals)

    def answer(body: dict[str, Any]) -> Any:
        first, last = body["messages"][0], body["messages"][-1]
        if "Reword" in str(first["content"]):
            return MSG(reworded)
        if "You make tasks" in str(first["content"]):
            return MSG(f"Here it is:\n```json\n{left.pop(0)}\n```")
        if last["role"] == "tool":
            return MSG("done")
        return TC(("call_1", "reserve", '{"product": "hinge", "units": 1}'))

    return answer


async def made_with(after: Any, order: Order) -> tuple[Made, Upstream]:
    upstream = Upstream(after=after)
    async with serving(up=upstream) as urls:
        overrides = [f"model_interface.base_url={urls['up']}/v1", "model_interface.backend=chat"]
        overrides += ["model_interface.model=m", "model_interface.api_key=k"]
        made = await make("warehouse", overrides, order, lambda _: None)
    assert upstream.refused == []
    return made, upstream


def rows_file(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "rows.jsonl"
    path.write_bytes(b"".join(strict_json.dumps(row) + b"\n" for row in rows))
    return path


async def test_a_rewording_that_keeps_the_facts_is_a_task(tmp_path: Path) -> None:
    """The truth is the old one, and was carried out again."""
    order = Order(given=rows_file(tmp_path, ROW), reword=1)
    made, _ = await made_with(model(reworded="Could you put two of our bolts aside? Say done."), order)
    assert [row["task_id"] for row in made.rows] == ["w-0", "w-0-worded-0"]
    assert made.rows[1]["order"] == {"bolt": 2}


async def test_a_rewording_that_loses_a_fact_is_dropped(tmp_path: Path) -> None:
    """Here the number; the reason says so."""
    order = Order(given=rows_file(tmp_path, ROW), reword=1)
    made, _ = await made_with(model(reworded="Could you put some bolts aside? Say done."), order)
    assert [row["task_id"] for row in made.rows] == ["w-0"]
    assert made.dropped == ["w-0-worded-0: the rewording has lost or added two"]


async def test_a_proposal_is_kept_when_it_changes_the_world_and_solvers_agree(tmp_path: Path) -> None:
    """What cannot be carried out, wants nothing, or says something else than its prompt is dropped."""
    proposals = (
        task("Reserve one hinge, then say done.", {"hinge": 1}),
        task("Reserve nine hinges, then say done.", {"hinge": 9}),  # three are there
        task("Reserve nothing, then say done.", {}),
        task("Reserve one hinge, please.", {"nut": 1}),  # solvers see the prompt only
        '{"prompt": "Reserve one hinge.", "ordre": {}}',
        "{",
    )
    order = Order(given=rows_file(tmp_path, ROW), propose=len(proposals), solves=2)
    made, upstream = await made_with(model(*proposals), order)
    assert [row["task_id"] for row in made.rows] == ["w-0", "proposed-0"]
    reasons = "\n".join(made.dropped)
    assert "tool reserve refuses a call of the solution" in reasons
    assert "nothing is to be done" in reasons
    assert "proposed-3: 0 of 2 independent solves agree with it" in reasons
    assert "fields that rows have not: ordre" in reasons and "no JSON object" in reasons
    solves = [body for body in upstream.bodies if body.get("tools")]
    assert solves and not any(b'"order"' in strict_json.dumps(body) for body in solves)


async def test_a_row_whose_solution_does_not_hold_up_is_dropped(tmp_path: Path) -> None:
    """Without any model."""
    broken = ROW | {"task_id": "w-1", "order": {"bolt": 50}}
    made = await make("warehouse", [], Order(given=rows_file(tmp_path, ROW, broken, ROW)), lambda _: None)
    assert [row["task_id"] for row in made.rows] == ["w-0"]  # the third is the first once more
    assert "w-1: tool reserve refuses" in made.dropped[0]


async def test_tasks_are_kept_by_their_pass_rate(tmp_path: Path) -> None:
    """Neither solved always nor never; one that nobody tried is not kept."""
    rows = [ROW | {"task_id": name} for name in ("always", "never", "sometimes", "untried")]
    rewards = {"always": (1, 1), "never": (0, 0), "sometimes": (0, 1)}
    lines = [ROW | {"task_id": name, "reward": float(each)} for name, both in rewards.items() for each in both]
    rollouts = tmp_path / "rollouts.jsonl"
    rollouts.write_bytes(b"".join(strict_json.dumps(line) + b"\n" for line in lines))
    made = await make("warehouse", [], Order(given=rows_file(tmp_path, *rows), rollouts=rollouts), lambda _: None)
    assert [row["task_id"] for row in made.rows] == ["sometimes"]


def test_the_rows_are_read_by_the_collector(tmp_path: Path) -> None:
    """The fixture above is a row like any other."""
    assert [row for _, row in jsonl.read(rows_file(tmp_path, ROW))] == [ROW]
