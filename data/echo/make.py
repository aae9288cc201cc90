"""Writes example.jsonl: prompts to talk, some over several turns. `python data/echo/make.py`"""

import json
from pathlib import Path

SUBJECTS = (
    "the sea",
    "your kitchen",
    "a long journey",
    "bread",
    "mountains",
    "the night sky",
    "a letter",
    "bicycles",
    "rain",
    "music",
)


def main() -> None:
    lines = [
        json.dumps(
            {
                "task_id": f"echo-{number:02}",
                "responses_create_params": {"input": f"Say something long about {subject}."},
                "turns": 1 + number % 3,
            }
        )
        for number, subject in enumerate(SUBJECTS)
    ]
    Path(__file__).with_name("example.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
