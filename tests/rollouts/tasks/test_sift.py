"""No two tasks alike; no template in both parts."""

from typing import Any

from rollouts.tasks.sift import distinct, split


def row(prompt: str, **fields: Any) -> dict[str, Any]:
    return {"responses_create_params": {"input": prompt}, **fields}


def test_tasks_alike_but_for_form_are_one() -> None:
    """The truth has to be the same exactly; its keys may come in another order."""
    rows = [
        row("Add 2, please!", a=1, b=2),
        row("add  2 please", b=2, a=1),
        row("add 2 please", a=1, b=3),
        row("add 3 please", a=1, b=2),
    ]
    assert distinct(rows) == [rows[0], rows[2], rows[3]]


def test_no_template_is_in_both_parts() -> None:
    """A template is held out whole, as its field or the task id names it."""
    rows = [row("x", task_id=f"{name}-{number}") for name in "abcdefghij" for number in range(3)]
    train, validation = split(rows, 0.2)
    assert len(train) == 24 and len(validation) == 6
    assert not {each["task_id"][0] for each in train} & {each["task_id"][0] for each in validation}
    assert split(rows, 0.2) == (train, validation)


def test_one_template_cannot_be_split() -> None:
    """Then nothing is held out."""
    rows = [row("x", template="t"), row("y", template="t")]
    assert split(rows, 0.5) == (rows, [])
