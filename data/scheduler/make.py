"""Writes train.jsonl, validation.jsonl and example.jsonl: dialogues of two to five turns. `python data/scheduler/make.py`

Each is played while it is made: a request is kept only when the calendar can satisfy it beside all that was asked before.
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))

from resources_server import Call, ToolError  # noqa: E402 - after the path is set
from resources_server.environments.scheduler import Scheduler, Want, clock, minute_of  # noqa: E402

SEED = 41
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
FIRST = (
    "Team meeting",
    "Budget review",
    "Lunch with Farah",
    "Car service",
    "Call with Osgar",
    "Training",
    "Site visit",
    "Interview",
)
NEW = (
    "Dentist",
    "Haircut",
    "Call with Bela",
    "Planning",
    "Yoga",
    "Bank appointment",
    "Coffee with Mille",
    "Parcel pickup",
)
WINDOWS = {
    "in the morning": ("08:00", "12:00"),
    "in the afternoon": ("12:00", "18:00"),
    "before 11:00": ("08:00", "11:00"),
    "after 15:00": ("15:00", "18:00"),
    "between 10:00 and 14:00": ("10:00", "14:00"),
    "at any time": ("08:00", "18:00"),
}
SYSTEM = (
    "You keep the user's calendar from Monday to Friday, 08:00 to 18:00, with the tools you have. Do what the user asks, change nothing "
    "else, and say shortly what you did when it is done."
)
Dice = random.Random
Asked = tuple[str, list[Want], list[Call]]


def slot(
    world: Scheduler, want: Want, minutes: int, but: str | None = None, after: str | None = None
) -> tuple[str, str] | None:
    """Day and start of the first free place that fits."""
    other = world._find(after) if after else None
    for day in [other.day] if other else [want.day] if want.day else DAYS:
        earliest = max(want.earliest, other.end) if other else want.earliest
        for start in range(minute_of(earliest), minute_of(want.latest) - minutes + 1, 15):
            taken = [each for each in world.appointments if each.day == day and each.title != but]
            if all(minute_of(each.end) <= start or start + minutes <= minute_of(each.start) for each in taken):
                return day, clock(start)
    return None


def add(world: Scheduler, dice: Dice) -> Asked | None:
    free = [each for each in NEW if world._find(each) is None]
    title, minutes, day, (told, (earliest, latest)) = (
        dice.choice(free),
        dice.choice([15, 30, 45, 60, 90]),
        dice.choice(DAYS),
        dice.choice(list(WINDOWS.items())),
    )
    want = Want(kind="at", title=title, day=day, earliest=earliest, latest=latest, minutes=minutes)
    place = slot(world, want, minutes)
    if place is None:
        return None
    say = f"put '{title}' on {day} {told}, for {minutes} minutes"
    return (
        say,
        [want],
        [Call("add_appointment", {"title": title, "day": place[0], "start": place[1], "minutes": minutes})],
    )


def move(world: Scheduler, dice: Dice) -> Asked | None:
    old = dice.choice(world.appointments)
    day, (told, (earliest, latest)) = dice.choice(DAYS), dice.choice(list(WINDOWS.items()))
    want = Want(kind="at", title=old.title, day=day, earliest=earliest, latest=latest, minutes=old.minutes)
    place = slot(world, want, old.minutes, but=old.title)
    fits = old.day == day and old.start >= earliest and old.end <= latest
    if place is None or fits:
        return None
    say = f"move '{old.title}' to {day} {told}"
    return say, [want], [Call("move_appointment", {"title": old.title, "day": place[0], "start": place[1]})]


def drop(world: Scheduler, dice: Dice) -> Asked | None:
    if len(world.appointments) < 4:
        return None
    old = dice.choice(world.appointments)
    return (
        f"cancel '{old.title}'",
        [Want(kind="gone", title=old.title)],
        [Call("remove_appointment", {"title": old.title})],
    )


def after(world: Scheduler, dice: Dice) -> Asked | None:
    """A new one behind one that is there."""
    free, other, minutes = (
        [e for e in NEW if world._find(e) is None],
        dice.choice(world.appointments),
        dice.choice([30, 45, 60]),
    )
    title = dice.choice(free)
    at = Want(kind="at", title=title, minutes=minutes)
    place = slot(world, at, minutes, after=other.title)
    if place is None:
        return None
    say = f"put '{title}' on the same day as '{other.title}', at some time after it, for {minutes} minutes"
    wants = [at, Want(kind="after", title=title, other=other.title)]
    return (
        say,
        wants,
        [Call("add_appointment", {"title": title, "day": place[0], "start": place[1], "minutes": minutes})],
    )


def played(world: Scheduler, calls: list[Call]) -> None:
    for call in calls:
        getattr(world, call.name)(**call.arguments)


def dialogue(dice: Dice, turns: int) -> dict[str, Any] | None:
    """One that can be satisfied to the end, or None."""
    world = Scheduler.of_row({"calendar": [], "turns": [{"say": "", "wants": []}], "plan": []})
    for title in dice.sample(FIRST, dice.randint(4, 7)):
        start, minutes = clock(dice.randrange(8 * 60, 16 * 60, 15)), dice.choice([30, 60, 90, 120])
        try:
            world.add_appointment(title, dice.choice(DAYS), start, minutes)
        except ToolError:
            continue
    row: dict[str, Any] = {"calendar": [each.model_dump() for each in world.appointments], "turns": [], "plan": []}
    opening = ("Please ", "Then ", "Also, ", "I have thought again: ", "One last thing: ")
    for number in range(turns):
        asked = [
            found
            for _ in range(dice.randint(1, 2))
            if (found := dice.choice([add, add, move, drop, after])(world, dice))
        ]
        if not asked:
            return None
        says, wants, calls = [], [], []
        for say, wanted, made in asked[:1] if number else asked[:2]:
            says.append(say)
            wants += [each.model_dump(exclude_none=True) for each in wanted]
            calls += made
            try:
                played(world, made)
            except (ToolError, StopIteration):
                return None
        row["turns"].append({"say": f"{opening[number]}{' and '.join(says)}.", "wants": wants})
        row["plan"].append([{"name": call.name, "arguments": call.arguments} for call in calls])
    return row if solved(row) else None


def solved(row: dict[str, Any]) -> bool:
    """Whether the plan comes out right, and no turn could be left out of it."""

    def reward(left_out: int | None) -> float:
        world = Scheduler.of_row(row)
        world.reset()
        for number, calls in enumerate(row["plan"]):
            if number != left_out:
                for each in calls:
                    try:
                        getattr(world, each["name"])(**each["arguments"])
                    except ToolError:
                        return 0.0
            world.step("done")
        return world.verify(None).reward  # type: ignore[arg-type]  # the verdict does not look at it

    return reward(None) == 1.0 and all(reward(number) == 0.0 for number in range(len(row["plan"])))


def main() -> None:
    dice, rows = random.Random(SEED), []
    while len(rows) < 250:
        made = dialogue(dice, 2 + len(rows) % 4)
        if made is not None:
            first = made["turns"][0]["say"]
            items = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": first}]
            rows.append(
                {
                    "task_id": f"scheduler-{len(rows):03}",
                    "responses_create_params": {"input": items},
                    "n_turns": len(made["turns"]),
                }
                | made
            )
    parts = {"train": rows[:200], "validation": rows[200:], "example": rows[200:212]}
    for name, each in parts.items():
        HERE.joinpath(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in each))


if __name__ == "__main__":
    main()
