"""Writes train.jsonl, validation.jsonl and example.jsonl: nine families of file tasks. `python data/terminal/make.py`"""

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

SEED = 43
EACH = 25  # rows of each family
HERE = Path(__file__).parent
Dice = random.Random
Files = dict[str, str]
Made = tuple[str, Files, Files]  # what is asked, the files before, and after
PROMPT = (
    "You work in a folder by the tools shell and write_file. {task} Change no other file and leave no other file behind. Say when "
    "it is done."
)
WORDS = "amber basil cedar dune ember fjord grove haze iris jade kelp lark moss nova opal pine quill reed sage tide umber vale".split()  # noqa: SIM905
PEOPLE = ("ana", "bo", "cai", "dag", "eva", "finn", "gil", "hana")


def lines(texts: list[str]) -> str:
    return "".join(f"{each}\n" for each in texts)


def prose(dice: Dice, least: int = 3, most: int = 9) -> str:
    return " ".join(dice.choice(WORDS) for _ in range(dice.randint(least, most)))


def several(dice: Dice, folder: str, ending: str, least: int = 3, most: int = 7) -> Files:
    return {
        f"{folder}{name}.{ending}": lines([prose(dice) for _ in range(dice.randint(1, 4))])
        for name in dice.sample(WORDS, dice.randint(least, most))
    }


def rename(dice: Dice) -> Made:
    folder, (old, new) = dice.choice(["notes/", "drafts/", ""]), dice.sample(["txt", "md", "rst", "text"], 2)
    stay = several(dice, folder, "log", 1, 3)
    move = several(dice, folder, old)
    where = f"in the folder {folder.rstrip('/')}" if folder else "here"
    after = {name.removesuffix(old) + new: text for name, text in move.items()}
    return (
        f"Rename every file {where} that ends in .{old} so that it ends in .{new} instead.",
        {**stay, **move},
        {**stay, **after},
    )


def replace(dice: Dice) -> Made:
    before, (old, new) = several(dice, "docs/", "txt", 4, 8), dice.sample(WORDS, 2)
    before = {name: text + (f"{old} {old}ed {old}\n" if dice.random() < 0.5 else "") for name, text in before.items()}
    after = {
        name: lines([" ".join(new if word == old else word for word in line.split(" ")) for line in text.splitlines()])
        for name, text in before.items()
    }
    return (
        f"In all files in docs, replace the word {old} by {new}; longer words that begin with it stay as they are.",
        before,
        after,
    )


def totals(dice: Dice) -> Made:
    rows = [(dice.choice(PEOPLE[:5]), dice.choice(WORDS[:4]), dice.randint(1, 99)) for _ in range(dice.randint(6, 25))]
    column = dice.choice([0, 1])
    sums: Counter[str] = Counter()
    for row in rows:
        sums[row[column]] += row[2]
    table = "name,item,amount\n" + lines([",".join(map(str, row)) for row in rows])
    what = ("name", "item")[column]
    return (
        f"sales.csv has the columns name, item and amount. Write totals.csv with the header {what},total and, for each {what} in "
        "alphabetical order, the sum of its amounts.",
        {"sales.csv": table},
        {"sales.csv": table, "totals.csv": f"{what},total\n" + lines([f"{key},{sums[key]}" for key in sorted(sums)])},
    )


def unique(dice: Dice) -> Made:
    words = [dice.choice(WORDS) for _ in range(dice.randint(10, 40))]
    backwards = dice.random() < 0.5
    order = "in reverse alphabetical order" if backwards else "in alphabetical order"
    before = {"words.txt": lines(words)}
    return (
        f"words.txt has one word on each line. Bring it {order} and leave each word in it only once.",
        before,
        {"words.txt": lines(sorted(set(words), reverse=backwards))},
    )


def errors(dice: Dice) -> Made:
    level, count = dice.choice(["ERROR", "WARN"]), dice.randint(2, 4)
    logs: Files = {}
    for number in range(count):
        entries = [
            f"2026-03-{dice.randint(1, 28):02} {dice.choice(['INFO', 'WARN', 'ERROR', 'DEBUG'])} {prose(dice, 2, 5)}"
            for _ in range(dice.randint(4, 12))
        ]
        logs[f"logs/app-{number + 1}.log"] = lines([*entries, f"2026-03-01 INFO no {level} here"])
    found = [line for name in sorted(logs) for line in logs[name].splitlines() if line.split()[1] == level]
    return (
        f"The second word of each line in logs/app-*.log is its level. Write all lines with the level {level} to {level.lower()}s.log, in "
        "the order of the files' names and, within a file, in their own order.",
        logs,
        {**logs, f"{level.lower()}s.log": lines(found)},
    )


def settings(dice: Dice) -> Made:
    value: dict[str, object] = {
        "name": dice.choice(WORDS),
        "server": {"host": "localhost", "port": dice.randint(1000, 9999), "tls": dice.random() < 0.5},
        "limits": {"users": dice.randint(1, 50), "tags": dice.sample(WORDS, 3)},
    }
    wanted = json.loads(json.dumps(value))
    port, tag, gone = dice.randint(1000, 9999), dice.choice(PEOPLE), dice.choice(["tls", "host"])
    wanted["server"]["port"] = port
    wanted["limits"]["tags"].append(tag)
    del wanted["server"][gone]
    return (
        f'In config.json set the port of the server to {port}, add the tag "{tag}" at the end of the tags under limits, and take out the '
        f"server's {gone}.",
        {"config.json": json.dumps(value, indent=2) + "\n"},
        {"config.json": json.dumps(wanted, indent=2) + "\n"},
    )


def sort_into(dice: Dice) -> Made:
    before = {
        name: text
        for ending in dice.sample(["txt", "csv", "py", "cfg"], 3)
        for name, text in several(dice, "inbox/", ending, 1, 3).items()
    }
    after = {name.replace("inbox/", f"inbox/{name.rpartition('.')[2]}/"): text for name, text in before.items()}
    return (
        "Sort the files in inbox into folders below it that are named after their endings: inbox/a.txt becomes inbox/txt/a.txt.",
        before,
        after,
    )


def frequent(dice: Dice) -> Made:
    text = lines([prose(dice, 8, 14) for _ in range(dice.randint(4, 9))])
    most, counts = dice.randint(2, 5), Counter(text.split())
    ranked = sorted(counts, key=lambda word: (-counts[word], word))[:most]
    return (
        f"Write top.txt with the {most} most frequent words of story.txt, one 'count word' on each line, the most frequent first, words "
        "that are equally frequent in alphabetical order.",
        {"story.txt": text},
        {"story.txt": text, "top.txt": lines([f"{counts[word]} {word}" for word in ranked])},
    )


def join(dice: Dice) -> Made:
    people = dice.sample(PEOPLE, 6)
    ids = dice.sample(range(100, 999), 6)
    known = dict(zip(ids, people, strict=True))
    orders = [(dice.choice([*ids[:4], 42]), dice.choice(WORDS)) for _ in range(dice.randint(5, 12))]
    before = {
        "people.csv": "id,name\n" + lines([f"{number},{name}" for number, name in known.items()]),
        "orders.csv": "id,item\n" + lines([f"{number},{item}" for number, item in orders]),
    }
    joined = lines([f"{known[number]},{item}" for number, item in orders if number in known])
    return (
        "orders.csv and people.csv share the column id. Write joined.csv with the header name,item and a line for each order, in the order "
        "of orders.csv; orders of an unknown id are left out.",
        before,
        {**before, "joined.csv": "name,item\n" + joined},
    )


FAMILIES: tuple[Callable[[Dice], Made], ...] = (
    rename,
    replace,
    totals,
    unique,
    errors,
    settings,
    sort_into,
    frequent,
    join,
)


def main() -> None:
    dice, rows = random.Random(SEED), []
    for number in range(EACH):
        for family in FAMILIES:
            task, before, after = family(dice)
            while before == after:
                task, before, after = family(dice)
            rows.append(
                {
                    "task_id": f"terminal-{family.__name__}-{number:02}",
                    "responses_create_params": {"input": PROMPT.format(task=task)},
                    "family": family.__name__,
                    "files": before,
                    "wanted": after,
                }
            )
    cut = (EACH - 5) * len(FAMILIES)
    parts = {"train": rows[:cut], "validation": rows[cut:], "example": rows[cut : cut + len(FAMILIES)]}
    for name, each in parts.items():
        HERE.joinpath(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in each))


if __name__ == "__main__":
    main()
