"""Writes train.jsonl, validation.jsonl and example.jsonl from a list of common words. `python data/wordle/make.py`"""

import json
import random
from pathlib import Path

SEED = 7
HERE = Path(__file__).parent
PROMPT = "Let us play Wordle. Think about what the marks say before each guess."


def row(word: str) -> dict[str, object]:
    return {"task_id": f"wordle-{word}", "responses_create_params": {"input": PROMPT}, "secret": word}


def main() -> None:
    words = HERE.joinpath("words.txt").read_text().split()
    random.Random(SEED).shuffle(words)
    parts = {"validation": words[:60], "train": words[60:], "example": words[:12]}
    for name, chosen in parts.items():
        HERE.joinpath(f"{name}.jsonl").write_text("".join(json.dumps(row(word)) + "\n" for word in chosen))


if __name__ == "__main__":
    main()
