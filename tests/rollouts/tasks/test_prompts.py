"""What a rewording must keep."""

from typing import Any

import pytest

from rollouts.tasks.prompts import entities, lost, prompt_of, with_prompt


def row(prompt: Any, **fields: Any) -> dict[str, Any]:
    return {"responses_create_params": {"input": prompt}, **fields}


@pytest.mark.parametrize(
    ("prompt", "rewording", "gone"),
    [
        ("Move 3 cards to Done.", "Put 3 cards into Done.", []),
        ("Move 3 cards to Done.", "Put three cards into Done.", ["3"]),
        ("Mail ana@x.org on 2024-03-05.", "On 2024-03-05, write to ana@x.org.", []),
        ("Mail ana@x.org on 2024-03-05.", "On March 5, write to ana@x.org.", ["2024-03-05", "5"]),
        ('Call it "Big Plan".', "Its name should be Big Plan.", []),
        ("Ask Ana Silva for all two files.", "Get all two files from Ana.", ["Ana Silva"]),
        ("Reserve two bolts.", "Reserve some bolts.", ["two"]),
        ("Add it.", "Add it 5 times.", ["5"]),
    ],
)
def test_facts_are_kept_and_none_is_added(prompt: str, rewording: str, gone: list[str]) -> None:
    """Numbers, dates, addresses, names, quotations."""
    assert lost(row(prompt), rewording) == gone


def test_values_of_the_row_that_the_prompt_names_are_kept() -> None:
    """Keys of a table, too; what the prompt does not name does not matter."""
    assert entities(row("Reserve bolts.", order={"bolt": 2}, stock={"bolt": 2, "nut": 1})) == ["bolt"]


def test_the_last_user_message_is_the_prompt() -> None:
    """Of items, as of a text; the given row is left alone."""
    given = row(
        [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "input_text", "text": "a"}]}]
    )
    assert prompt_of(given) == "a"
    assert prompt_of(with_prompt(given, "b")) == "b" and prompt_of(given) == "a"
    assert with_prompt(row("a"), "b") == row("b")
