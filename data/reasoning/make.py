"""Writes train.jsonl, validation.jsonl and example.jsonl: ten kinds at five levels. `python data/reasoning/make.py`"""

import json
import random
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))

from resources_server.environments.reasoning.kinds import KINDS, LEVELS  # noqa: E402 - after the path is set

SEED = 17
PROMPT = "{question}\nThink step by step, then give the answer alone in <answer> </answer> tags."


def row(kind: str, level: int, number: int, dice: random.Random) -> dict[str, object]:
    made = KINDS[kind](dice, level)
    return {
        "task_id": f"{kind}-{level}-{number}",
        "responses_create_params": {"input": PROMPT.format(question=made.question)},
        "question": made.question,
        "answer": made.answer,
        "metadata": {"source_dataset": kind, "difficulty": {"level": level}, **made.metadata},
    }


def main() -> None:
    dice = random.Random(SEED)
    for name, count in (("train", 10), ("validation", 2)):
        rows = [row(kind, level, number, dice) for number in range(count) for level in LEVELS for kind in KINDS]
        HERE.joinpath(f"{name}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
        if name == "validation":
            HERE.joinpath("example.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows[:10]))


if __name__ == "__main__":
    main()
