"""Writes train.jsonl and example.jsonl: codes of three to five colours. `python data/mastermind/make.py`"""

import json
import random
from pathlib import Path

SEED = 11
COLOURS = ("red", "green", "blue", "yellow", "orange", "purple")
HERE = Path(__file__).parent


def row(number: int, dice: random.Random) -> dict[str, object]:
    places = 3 + number % 3
    prompt = (
        f"I have a secret code of {places} colours out of {', '.join(COLOURS)}; a colour may come more than once. "
        "Find it with the tool guess, in as few guesses as you can, then name it."
    )
    return {
        "task_id": f"mastermind-{number:03}",
        "responses_create_params": {"input": prompt},
        "code": [dice.choice(COLOURS) for _ in range(places)],
        "guesses": 8 + places,
    }


def main() -> None:
    dice = random.Random(SEED)
    rows = [json.dumps(row(number, dice)) + "\n" for number in range(200)]
    HERE.joinpath("train.jsonl").write_text("".join(rows))
    HERE.joinpath("example.jsonl").write_text("".join(rows[:10]))


if __name__ == "__main__":
    main()
