"""Writes example.jsonl: ten orders of one to three products. `python data/warehouse/make.py`"""

import json
import random
from pathlib import Path

SEED = 1
PRODUCTS = ("bolt", "nut", "washer", "hinge", "bracket", "screw")
NUMBERS = ("no", "one", "two", "three", "four", "five")


def row(number: int, dice: random.Random) -> dict[str, object]:
    stock = {product: dice.randint(5, 20) for product in dice.sample(PRODUCTS, 4)}
    order = {product: dice.randint(1, 5) for product in dice.sample(sorted(stock), 1 + number % 3)}
    wanted = [f"{NUMBERS[units]} {product}{'' if units == 1 else _plural(product)}" for product, units in order.items()]
    listed = wanted[0] if len(wanted) == 1 else f"{', '.join(wanted[:-1])} and {wanted[-1]}"
    return {
        "task_id": f"warehouse-{number:02}",
        "responses_create_params": {"input": [{"role": "user", "content": f"Reserve {listed}, then say done."}]},
        "stock": stock,
        "order": order,
    }


def _plural(product: str) -> str:
    return "es" if product.endswith(("s", "x")) else "s"


def main() -> None:
    dice = random.Random(SEED)
    lines = [json.dumps(row(number, dice), ensure_ascii=False) for number in range(10)]
    Path(__file__).with_name("example.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
