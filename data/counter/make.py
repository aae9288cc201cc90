"""Writes example.jsonl: twenty counters, from a plain instruction to a small sum. `python data/counter/make.py`"""

import json
import random
from pathlib import Path

SEED = 1
PROMPTS = (
    "Call increment_counter with count {missing}. Then say done.",
    "Add {missing} to the counter, then say done.",
    "Increase the counter by {missing}. When it is increased, say done.",
    "The counter stands at {start}. Bring it to {goal}, then say done.",
)


def row(number: int, dice: random.Random) -> dict[str, object]:
    start = dice.randint(0, 9)
    missing = dice.randint(1, 9)
    prompt = PROMPTS[number % len(PROMPTS)].format(start=start, missing=missing, goal=start + missing)
    return {
        "task_id": f"counter-{number:02}",
        "responses_create_params": {"input": [{"role": "user", "content": prompt}]},
        "initial_count": start,
        "expected_count": start + missing,
    }


def main() -> None:
    dice = random.Random(SEED)
    lines = [json.dumps(row(number, dice), ensure_ascii=False) for number in range(20)]
    Path(__file__).with_name("example.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
