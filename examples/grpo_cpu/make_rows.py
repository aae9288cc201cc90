"""Writes rows.jsonl: 60 tasks of the heating. `python examples/grpo_cpu/make_rows.py`"""

import json
import random
from pathlib import Path

PROMPTS = ("Make it {} degrees.", "{} degrees, please.", "It should be {} degrees.")


def main() -> None:
    dice = random.Random(1)
    lines = []
    for number in range(60):
        degrees = dice.randint(12, 28)
        text = PROMPTS[number % len(PROMPTS)].format(degrees)
        row = {
            "task_id": f"heating-{number:02}",
            "responses_create_params": {"input": [{"role": "user", "content": text}]},
            "degrees": degrees,
        }
        lines.append(json.dumps(row))
    Path(__file__).with_name("rows.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
