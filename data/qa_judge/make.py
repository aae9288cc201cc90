"""Writes train.jsonl, validation.jsonl, example.jsonl and judge.jsonl: questions on invented passages. `python data/qa_judge/make.py`

`judge.jsonl` alone has rows that need a judge.
"""

import json
import random
from pathlib import Path
from typing import Any

SEED = 37
HERE = Path(__file__).parent
Dice = random.Random
SHIPS = ("Halcyon", "Brisling", "Meridian", "Auk", "Coralie", "Tern", "Vantage", "Ostrea")
PORTS = ("Varn", "Ullsby", "Quent", "Mora", "Tarrow", "Isk", "Pell", "Dorne")
GOODS = ("copper", "barley", "salt", "timber", "wool", "glass", "indigo", "tar")
NAMES = ("Ruta", "Osgar", "Mille", "Tevin", "Anouk", "Bram", "Sela", "Corin")
TROUBLES = {
    "the rudder broke in a storm": "because its rudder broke in a storm",
    "fog closed the harbour": "because fog closed the harbour",
    "the cargo was not ready": "because the cargo was not ready",
    "half of the crew fell ill": "because half of the crew fell ill",
}
MONTHS = ("March", "April", "May", "June", "September", "October")


def voyage(dice: Dice) -> dict[str, Any]:
    trouble = dice.choice(list(TROUBLES))
    start, via, end = dice.sample(PORTS, 3)
    return {
        "ship": dice.choice(SHIPS),
        "captain": dice.choice(NAMES),
        "mate": dice.choice(NAMES),
        "start": start,
        "via": via,
        "end": end,
        "goods": dice.choice(GOODS),
        "tons": dice.randint(20, 400),
        "sold": dice.randint(5, 19),
        "day": dice.randint(1, 28),
        "month": dice.choice(MONTHS),
        "late": dice.randint(2, 12),
        "trouble": trouble,
    }


def passage(v: dict[str, Any]) -> str:
    return (
        f"The {v['ship']}, under captain {v['captain']} {v['start'][0]}. Holm, left {v['start']} on {v['month']} {v['day']} with "
        f"{v['tons']} tons of {v['goods']}. In {v['via']} it sold {v['sold']} tons and took on water. It reached {v['end']} {v['late']} "
        f"days late: {v['trouble']}. Nobody in {v['end']} had expected the {v['goods']} to be dry, but it was."
    )


def exact(v: dict[str, Any], dice: Dice) -> tuple[str, str, dict[str, Any]]:
    text = {"type": "string", "case": "ignore", "collapse": True}
    return dice.choice(
        [
            ("Where did the ship take on water?", v["via"], text),
            ("What did the ship carry, in one word?", v["goods"], text),
            (
                "How many tons were left when the ship reached its last port?",
                str(v["tons"] - v["sold"]),
                {"type": "number"},
            ),
            ("How many days late was the ship?", str(v["late"]), {"type": "number"}),
            ("To which port was the ship bound in the end?", v["end"], text),
        ]
    )


def choice(v: dict[str, Any], dice: Dice) -> tuple[str, str, dict[str, str]]:
    question, right, others = dice.choice(
        [
            ("Why was the ship late?", v["trouble"], list(TROUBLES)),
            ("What was in the hold?", v["goods"], list(GOODS)),
            ("From which port did the ship leave?", v["start"], list(PORTS)),
        ]
    )
    texts = [right, *dice.sample([each for each in others if each != right], 3)]
    dice.shuffle(texts)
    labels = dict(zip("ABCD", texts, strict=True))
    return question, next(label for label, text in labels.items() if text == right), labels


def judged(v: dict[str, Any], dice: Dice) -> tuple[str, str]:
    return dice.choice(
        [
            (
                "Explain in one sentence why the ship was late.",
                f"The {v['ship']} was {v['late']} days late {TROUBLES[v['trouble']]}.",
            ),
            (
                "Say in one or two sentences what became of the cargo.",
                f"{v['sold']} of the {v['tons']} tons of {v['goods']} were sold in {v['via']}, and the rest came to {v['end']} dry.",
            ),
        ]
    )


def row(number: int, kind: str, dice: Dice) -> dict[str, Any]:
    told = voyage(dice)
    made: dict[str, Any] = {"task_id": f"qa_judge-{kind}-{number:03}", "kind": kind}
    how, listed = "Give the final answer alone in <answer> </answer> tags.", ""
    if kind == "exact":
        question, answer, made["match"] = exact(told, dice)
    elif kind == "choice":
        question, answer, made["choices"] = choice(told, dice)
        listed = "".join(f"\n{label}) {text}" for label, text in made["choices"].items())
        how = "Give the letter alone in <answer> </answer> tags."
    else:
        question, answer = judged(told, dice)
        how = "Answer in your own words."
    asked = f"{passage(told)}\n\n{question}"
    return made | {
        "responses_create_params": {"input": f"{asked}{listed}\n{how}"},
        "question": asked,
        "answer": answer,
    }


def main() -> None:
    dice = random.Random(SEED)
    plain = [row(number, ("exact", "choice")[number % 2], dice) for number in range(300)]
    open_ended = [row(number, "judge", dice) for number in range(60)]
    parts = {"train": plain[:250], "validation": plain[250:], "example": plain[250:262], "judge": open_ended}
    for name, rows in parts.items():
        HERE.joinpath(f"{name}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))


if __name__ == "__main__":
    main()
