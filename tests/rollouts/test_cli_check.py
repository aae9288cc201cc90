"""`trivium check` as a person calls it."""

from pathlib import Path

from tests.rollouts.command import trivium
from wire import strict_json

LEAKY = """
from resources_server import Environment, Response, Task, tool


class LeakyTask(Task):
    word: str


class Leaky(Environment[LeakyTask]):
    @tool
    def look(self) -> str:
        \"\"\"Look around.\"\"\"
        return f"On the wall stands {self.task.word}."

    def verify(self, response: Response) -> float:
        return float(response.text.strip().lower() == self.task.word)

    def solution(self) -> str:
        return self.task.word
"""
ROWS = "".join(
    f'{{"responses_create_params": {{"input": "Which word?"}}, "word": "{word}"}}\n' for word in ("marigold", "teapot")
)


def test_an_unfit_environment_is_named_and_told_why(tmp_path: Path) -> None:
    """Exit status 1, the fault on the terminal, in JSON and in Markdown."""
    (tmp_path / "leaky.py").write_text(LEAKY)
    (tmp_path / "rows.jsonl").write_text(ROWS)
    (tmp_path / "leaky.yaml").write_text(
        "extends: base.yaml\nresources_server: {environment: 'leaky:Leaky'}\nrollouts: {dataset: rows.jsonl}\n"
    )
    said = trivium("check", "leaky.yaml", "--json", "card.json", "--markdown", "card.md", folder=tmp_path)
    assert said.status == 1, said.err
    assert "leak: word: row 1: tool look shows the field 'word'" in said.out and "NOT fit" in said.out
    (card,) = strict_json.loads((tmp_path / "card.json").read_bytes())
    assert not card["fit"] and [line["probe"] for line in card["lines"] if line["status"] == "fault"] == ["leak"]
    assert "| leak | fault |" in (tmp_path / "card.md").read_text()


def test_an_augmented_environment_has_a_second_card(tmp_path: Path) -> None:
    """Its tasks must stay solvable under what befalls them."""
    troubles = ("renamed=0.5", "failing=0.5", "missing=1", "wording=1", "disturbed=1", "slow=0.5", "slow_s=0.01")
    overrides = [f"resources_server.augment.{each}" for each in troubles]
    said = trivium("check", "warehouse", "--rows", "2", "--json", "cards.json", *overrides, folder=tmp_path)
    assert said.status == 0, said.out + said.err
    cards = strict_json.loads((tmp_path / "cards.json").read_bytes())
    assert [card["augmented"] for card in cards] == [False, True]


def test_a_probe_that_there_is_not_is_refused(tmp_path: Path) -> None:
    """With those that there are."""
    said = trivium("check", "counter", "--only", "leaks", folder=tmp_path)
    assert said.status == 2 and "have: solution, nothing" in said.err
