"""Tasks on the project boards."""

from datetime import date, timedelta

import company
from company import LISTS, TEAMS, Dice, Row
from office import TODAY, Draft, Office, call, check, few, of, only, others, say_day, template, workday

NEW_TASKS = (
    "Clean up feature flags", "Write release notes", "Check contrast of links", "Update dependencies", "Plan load test",
    "Collect screenshots", "Review alert rules", "Rename old settings", "Draft icon set", "Measure start-up time",
    "Sort translation files", "Prepare demo data",
)  # fmt: skip
STAFFED = tuple(name for team in TEAMS.values() for name in team)


@template("project_management")
def create_task(office: Office, dice: Dice) -> Draft:
    name, who, board, target, day = _new(dice)
    ask = dice.pick(
        (
            "Add the task '{name}' for {who} to the {target} list of the {board} board, due on {day}.",
            "Create a task: '{name}', assigned to {who}, board {board}, list {target}, due {day}.",
            "{who} should do '{name}' by {day}. Put it on the {board} board under {target}.",
        )
    )
    query = ask.format(name=name, who=who, board=board, target=target, day=say_day(day))
    return Draft(query, [_create(name, who, board, target, day)])


@template("project_management")
def move_task(office: Office, dice: Dice) -> Draft:
    task, target = _task(office, dice), dice.pick(LISTS)
    check(task["list_name"] != target)
    ask = dice.pick(
        (
            "Move the task '{name}' to {target}.",
            "'{name}' belongs in the list {target} now, please move it.",
            "Can you put '{name}' into {target}?",
        )
    )
    return Draft(ask.format(name=task["task_name"], target=target), [_update(task, "list_name", target)])


@template("project_management")
def give_task_away(office: Office, dice: Dice) -> Draft:
    task = _task(office, dice)
    who = others(dice, of(task, "assigned_to_email"), among=TEAMS[task["board"]])
    ask = dice.pick(
        (
            "Assign the task '{name}' to {who}.",
            "{who} will take care of '{name}' from now on. Please reassign it.",
            "Give '{name}' to {who}.",
        )
    )
    return Draft(ask.format(name=task["task_name"], who=who), [_assign(task, who)])


@template("project_management")
def postpone_task(office: Office, dice: Dice) -> Draft:
    task, days = _task(office, dice), dice.between(2, 14)
    new = date.fromisoformat(task["due_date"]) + timedelta(days=days)
    ask = dice.pick(
        (
            "Push the due date of '{name}' back by {days} days.",
            "'{name}' needs {days} more days than planned, change its due date.",
            "Give '{name}' another {days} days on top of its due date.",
        )
    )
    return Draft(ask.format(name=task["task_name"], days=days), [_update(task, "due_date", str(new))])


@template("project_management")
def delete_task(office: Office, dice: Dice) -> Draft:
    task = _task(office, dice)
    ask = dice.pick(
        (
            "Delete the task '{name}'.",
            "We dropped '{name}'. Remove it from the board.",
            "The task '{name}' is obsolete, please delete it.",
        )
    )
    return Draft(ask.format(name=task["task_name"]), [call("project_management_delete_task", task_id=task["task_id"])])


@template("project_management")
def reassign_list(office: Office, dice: Dice) -> Draft:
    board = dice.pick(list(TEAMS))
    old, target = dice.pick(TEAMS[board]), dice.pick(LISTS[:3])
    new = others(dice, old, among=TEAMS[board])
    tasks = few(office.tasks_of(old, list_name=target, board=board), most=6, least=2)
    ask = dice.pick(
        (
            "Give all of {old}'s tasks in the {target} list to {new}.",
            "{old} is overloaded. Everything of {old}'s that is in {target} goes to {new}.",
            "Reassign to {new} each task that is assigned to {old} and in {target}.",
        )
    )
    return Draft(ask.format(old=old, new=new, target=target), [_assign(task, new) for task in tasks])


@template("project_management")
def delete_completed(office: Office, dice: Dice) -> Draft:
    who, day = dice.pick(STAFFED), workday(dice, date(2023, 11, 10), date(2023, 12, 8))
    tasks = few(
        [row for row in office.tasks_of(who, list_name="Completed") if row["due_date"] < str(day)], most=6, least=2
    )
    ask = dice.pick(
        (
            "Delete {who}'s completed tasks that were due before {day}.",
            "Clean up for {who}: remove all tasks in Completed with a due date earlier than {day}.",
            "All completed tasks of {who} due before {day} can be deleted.",
        )
    )
    query = ask.format(who=who, day=say_day(day))
    return Draft(query, [call("project_management_delete_task", task_id=task["task_id"]) for task in tasks])


@template("project_management")
def extend_overdue(office: Office, dice: Dice) -> Draft:
    who, day = dice.pick(STAFFED), workday(dice, date(2023, 12, 4))
    tasks = few(overdue(office, who), most=6, least=2)
    ask = dice.pick(
        (
            "Set the due date of all overdue tasks of {who} that are not completed to {day}.",
            "{who} has unfinished tasks that were due before today. Give each of them {day} as the new due date.",
            "Everything of {who}'s that is overdue and not in Completed shall be due on {day}.",
        )
    )
    return Draft(ask.format(who=who, day=say_day(day)), [_update(task, "due_date", str(day)) for task in tasks])


@template("project_management")
def start_backlog(office: Office, dice: Dice) -> Draft:
    who, last = dice.pick(STAFFED), workday(dice, date(2023, 12, 4), date(2023, 12, 20))
    backlog = office.tasks_of(who, list_name="Backlog")
    tasks = few([row for row in backlog if row["due_date"] <= str(last)], most=5, least=2)
    ask = dice.pick(
        (
            "Move {who}'s Backlog tasks that are due by {last} to In Progress, overdue ones too.",
            "Everything in {who}'s Backlog with a due date of {last} or earlier should be In Progress.",
            "{who} starts on all Backlog tasks due on or before {last}: put them into In Progress.",
        )
    )
    return Draft(ask.format(who=who, last=say_day(last)), [_update(task, "list_name", "In Progress") for task in tasks])


@template("project_management")
def swap_tasks(office: Office, dice: Dice) -> Draft:
    board = dice.pick(list(TEAMS))
    one, two = dice.shuffled([row for row in office.tasks if row["board"] == board])[:2]
    check(one["assigned_to_email"] != two["assigned_to_email"])
    ask = dice.pick(
        (
            "Swap the people of '{one}' and '{two}': whoever has the one shall do the other.",
            "Whoever does '{one}' should do '{two}' instead, and the other way round.",
            "Exchange the assignees of the tasks '{one}' and '{two}'.",
        )
    )
    query = ask.format(one=one["task_name"], two=two["task_name"])
    return Draft(query, [_assign(one, of(two, "assigned_to_email")), _assign(two, of(one, "assigned_to_email"))])


@template("project_management", conditional=True)
def start_if_due(office: Office, dice: Dice, holds: bool) -> Draft:
    task, day = _task(office, dice), workday(dice, date(2023, 11, 14), date(2023, 12, 20))
    check(task["list_name"] == "Backlog" and task["due_date"] != str(day) and (task["due_date"] < str(day)) == holds)
    ask = dice.pick(
        (
            "If '{name}' is due before {day}, move it to In Progress. Otherwise leave it where it is.",
            "Check the due date of '{name}': earlier than {day} means it goes to In Progress, else nothing changes.",
            "Move '{name}' to In Progress, provided that it is due before {day}.",
        )
    )
    query = ask.format(name=task["task_name"], day=say_day(day))
    return Draft(query, [_update(task, "list_name", "In Progress")] if holds else [])


@template("project_management", conditional=True)
def relieve_if_busier(office: Office, dice: Dice, holds: bool) -> Draft:
    task = _task(office, dice)
    old = of(task, "assigned_to_email")
    new = others(dice, old, among=TEAMS[task["board"]])
    load, room = len(unfinished(office, old)), len(unfinished(office, new))
    check(load != room and (load > room) == holds)
    ask = dice.pick(
        (
            "If {old} has more unfinished tasks than {new}, give '{name}' to {new}.",
            "Compare the tasks of {old} and {new} that are not completed. Should {old} have more of them, reassign '{name}' to {new}; "
            "if not, leave everything as it is.",
            "Is {old}'s number of unfinished tasks above {new}'s? Only then assign '{name}' to {new}.",
        )
    )
    return Draft(ask.format(old=old, new=new, name=task["task_name"]), [_assign(task, new)] if holds else [])


def unfinished(office: Office, who: str) -> list[Row]:
    """A colleague's tasks that are not completed."""
    return [row for row in office.tasks_of(who) if row["list_name"] != "Completed"]


def overdue(office: Office, who: str) -> list[Row]:
    """Those of them that were due before today."""
    return [row for row in unfinished(office, who) if row["due_date"] < str(TODAY)]


def _task(office: Office, dice: Dice) -> Row:
    """A task whose name a search finds once."""
    task = dice.pick(office.tasks)
    return only([row for row in office.tasks if task["task_name"].lower() in row["task_name"].lower()])


def _new(dice: Dice) -> tuple[str, str, str, str, date]:
    board = dice.pick(list(TEAMS))
    return dice.pick(NEW_TASKS), dice.pick(TEAMS[board]), board, dice.pick(LISTS[:3]), workday(dice, date(2023, 12, 4))


def _create(name: str, who: str, board: str, target: str, day: date) -> dict[str, str]:
    return call(
        "project_management_create_task",
        task_name=name,
        assigned_to_email=company.address(who),
        list_name=target,
        due_date=str(day),
        board=board,
    )


def _update(task: Row, field: str, value: str) -> dict[str, str]:
    return call("project_management_update_task", task_id=task["task_id"], field=field, new_value=value)


def _assign(task: Row, who: str) -> dict[str, str]:
    return _update(task, "assigned_to_email", company.address(who))
