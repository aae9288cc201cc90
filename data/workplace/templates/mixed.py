"""Tasks across several toolkits."""

from datetime import date, timedelta

import company
from company import SALES, Dice
from office import (
    FIRST,
    LENGTHS,
    TIMES,
    TODAY,
    Draft,
    Office,
    call,
    check,
    few,
    latest,
    others,
    past_day,
    say_day,
    say_time,
    template,
    workday,
)

from templates.calendar import NEW_NAMES
from templates.customers import new_name
from templates.email import LETTERS, REPLIES
from templates.projects import STAFFED, overdue

TOMORROW = TODAY + timedelta(days=1)


@template("customer_relationship_manager", "email")
def write_to_owner(office: Office, dice: Dice) -> Draft:
    customer = dice.pick(office.customers)
    subject, body = f"About {customer['customer_name']}", dice.pick(REPLIES)
    ask = dice.pick(
        (
            "Email whoever looks after the customer {name}: subject '{subject}', text '{body}'",
            "Find out who is responsible for {name} in the CRM and send them an email titled '{subject}' that says '{body}'",
            "The colleague to whom {name} is assigned should get an email with the subject '{subject}' and the body '{body}'",
        )
    )
    query = ask.format(name=customer["customer_name"], subject=subject, body=body)
    return Draft(query, [_send(customer["assigned_to_email"], subject, body)])


@template("project_management", "calendar")
def meet_about_task(office: Office, dice: Dice) -> Draft:
    task, day, time, minutes = dice.pick(office.tasks), workday(dice), dice.pick(TIMES), dice.pick(LENGTHS)
    name = f"About: {task['task_name']}"
    ask = dice.pick(
        (
            "Book {minutes} minutes with the person who is assigned to the task '{task}', on {day} at {time}. Call it '{name}'.",
            "Whoever works on '{task}' should meet me on {day} at {time} for {minutes} minutes; name the event '{name}'.",
            "Schedule '{name}' on {day}, {time}, {minutes} minutes, with the assignee of '{task}'.",
        )
    )
    query = ask.format(task=task["task_name"], name=name, day=say_day(day), time=say_time(time), minutes=minutes)
    return Draft(query, [_meet(name, task["assigned_to_email"], day, time, minutes)])


@template("email", "calendar")
def reply_and_meet(office: Office, dice: Dice) -> Draft:
    who, body, name, time = dice.pick(FIRST), dice.pick(REPLIES), dice.pick(NEW_NAMES), dice.pick(TIMES)
    mail = latest(office.received(who))
    ask = dice.pick(
        (
            "Answer {who}'s latest email to me with '{body}' and book a 30-minute meeting '{name}' with {who} for tomorrow at {time}.",
            "Reply '{body}' to the last email I received from {who}. Then put '{name}' with {who} into my calendar: tomorrow, {time}, "
            "half an hour.",
            "Two things about {who}: reply '{body}' to their newest email, and schedule '{name}' with them tomorrow at "
            "{time} for 30 minutes.",
        )
    )
    query = ask.format(who=who, body=body, name=name, time=say_time(time))
    reply = call("email_reply_email", email_id=mail["email_id"], body=body)
    return Draft(query, [reply, _meet(name, company.address(who), TOMORROW, time, 30)])


@template("email", "project_management")
def task_from_mail(office: Office, dice: Dice) -> Draft:
    sender, board = dice.pick(FIRST), dice.pick(list(company.TEAMS))
    who, day = others(dice, sender, among=company.TEAMS[board]), workday(dice, date(2023, 12, 4))
    mail = latest(office.received(sender))
    ask = dice.pick(
        (
            "Create a Backlog task on the {board} board for {who}, due {day}. Its name is the subject of the last email I "
            "got from {sender}.",
            "Take the subject of {sender}'s latest email to me as the name of a new task for {who}: board {board}, list "
            "Backlog, due on {day}.",
            "Make the newest email from {sender} a task: use its subject as the name, assign {who}, {board} board, "
            "Backlog, due by {day}.",
        )
    )
    query = ask.format(board=board, who=who, day=say_day(day), sender=sender)
    task = call(
        "project_management_create_task",
        task_name=mail["subject"],
        assigned_to_email=company.address(who),
        list_name="Backlog",
        due_date=str(day),
        board=board,
    )
    return Draft(query, [task])


@template("customer_relationship_manager", "email")
def note_contact_and_tell(office: Office, dice: Dice) -> Draft:
    customer = dice.pick(office.customers)
    check(customer["last_contact_date"] != str(TODAY))
    name, body = (
        customer["customer_name"],
        dice.pick(("We spoke today.", "I called them today.", "They visited us today.")),
    )
    ask = dice.pick(
        (
            "I was in touch with {name} today: set the last contact date, and email the colleague in charge of them, "
            "subject '{name}', text '{body}'",
            "Record today as the last contact with {name} and let the responsible colleague know by email: '{body}' "
            "Use '{name}' as the subject.",
            "Update {name}'s last contact date to today. Then write to whoever is assigned to them; the subject is "
            "'{name}', the body '{body}'",
        )
    )
    key = customer["customer_id"]
    update = call(
        "customer_relationship_manager_update_customer",
        customer_id=key,
        field="last_contact_date",
        new_value=str(TODAY),
    )
    return Draft(ask.format(name=name, body=body), [update, _send(customer["assigned_to_email"], name, body)])


@template("calendar", "email")
def cancel_and_tell(office: Office, dice: Dice) -> Draft:
    day = workday(dice)
    event = few(office.on(day), most=20, least=2)[0]
    body = dice.pick(
        ("I am ill, sorry.", "Something urgent came up.", "My train is late.", "Let us find a new date next week.")
    )
    ask = dice.pick(
        (
            "Cancel my first meeting on {day} and send its participant an email: subject 'Cancelled', text '{body}'",
            "Delete the first event on {day}, then tell the person I was to meet by email with the subject 'Cancelled' and "
            "the body '{body}'",
            "I can't make my earliest meeting on {day}. Remove it and email the participant '{body}' under the subject 'Cancelled'.",
        )
    )
    delete = call("calendar_delete_event", event_id=event["event_id"])
    return Draft(
        ask.format(day=say_day(day), body=body), [delete, _send(event["participant_email"], "Cancelled", body)]
    )


@template("analytics", "email")
def plot_and_send(office: Office, dice: Dice) -> Draft:
    first, who = past_day(dice, 15, 85), dice.pick(FIRST)
    last, kind = first + timedelta(days=dice.between(4, 12)), dice.pick(("bar", "line", "scatter"))
    path = f"plots/{first}_{last}_total_visits_{kind}.png"
    ask = dice.pick(
        (
            "Make a {kind} chart of total visits from {first} to {last} and email its path to {who}: subject 'Chart', "
            "body nothing but the path.",
            "{who} needs a {kind} chart of the total visits between {first} and {last}. Create it, then send {who} an email with the "
            "subject 'Chart' and only the file's path as the body.",
            "Plot total visits of {first} through {last} ({kind} chart). Email {who} with the subject 'Chart'; the body is just "
            "the plot's path.",
        )
    )
    query = ask.format(kind=kind, first=say_day(first), last=say_day(last), who=who)
    plot = call(
        "analytics_create_plot", time_min=str(first), time_max=str(last), value_to_plot="total_visits", plot_type=kind
    )
    return Draft(query, [plot, _send(company.address(who), "Chart", path)])


@template("calendar", "project_management")
def cover_for_leave(office: Office, dice: Dice) -> Draft:
    board = dice.pick(list(company.TEAMS))
    old = dice.pick(company.TEAMS[board])
    new, first = others(dice, old, among=company.TEAMS[board]), workday(dice, last=date(2023, 12, 13))
    last = first + timedelta(days=dice.between(4, 8))
    events = few(
        [row for row in office.ahead(first_name=old) if str(first) <= row["event_start"][:10] <= str(last)], most=3
    )
    tasks = few(office.tasks_of(old, list_name="In Review"), most=3)
    ask = dice.pick(
        (
            "{old} is away from {first} to {last}, both days included. Cancel our meetings in that time and give {old}'s "
            "In Review tasks "
            "to {new}.",
            "Because {old} is on leave from {first} until {last}: delete all my meetings with {old} on those days, and "
            "reassign whatever "
            "{old} has in In Review to {new}.",
            "Please do two things: reassign {old}'s tasks in the In Review list to {new}, and cancel every meeting with "
            "{old} from {first} "
            "through {last}.",
        )
    )
    query = ask.format(old=old, new=new, first=say_day(first), last=say_day(last))
    cancelled = [call("calendar_delete_event", event_id=event["event_id"]) for event in events]
    return Draft(query, cancelled + [_assign(task["task_id"], new) for task in tasks])


@template("customer_relationship_manager", "calendar")
def lead_with_meeting(office: Office, dice: Dice) -> Draft:
    name, who, day, time = new_name(office, dice), dice.pick(SALES), workday(dice), dice.pick(TIMES)
    ask = dice.pick(
        (
            "Add {name} as a new Lead for {who} in the CRM and book 'Intro {name}' with {who} on {day} at {time}, 60 minutes.",
            "{who} gets a new Lead, {name}. Enter it into the CRM, and schedule an hour with {who} called 'Intro {name}' "
            "on {day} at {time}.",
            "New Lead: {name}, assigned to {who}. Also put a 60-minute 'Intro {name}' with {who} into the calendar, {day}, {time}.",
        )
    )
    query = ask.format(name=name, who=who, day=say_day(day), time=say_time(time))
    address = company.address(who)
    add = call(
        "customer_relationship_manager_add_customer", customer_name=name, assigned_to_email=address, status="Lead"
    )
    return Draft(query, [add, _meet(f"Intro {name}", address, day, time, 60)])


@template("project_management", "calendar", conditional=True)
def meet_if_overdue(office: Office, dice: Dice, holds: bool) -> Draft:
    who, limit, time = dice.pick(STAFFED), dice.between(1, 6), dice.pick(TIMES)
    late = len(overdue(office, who))
    check((late > limit) == holds)
    ask = dice.pick(
        (
            "If {who} has more than {limit} overdue tasks that are not completed, book 30 minutes with {who} tomorrow at {time}, "
            "called 'Overdue tasks'.",
            "How many unfinished tasks of {who}'s were due before today? More than {limit}: schedule 'Overdue tasks' with "
            "{who} for half an "
            "hour tomorrow at {time}. Otherwise do nothing.",
            "Put 'Overdue tasks' with {who} into my calendar for tomorrow at {time} (30 minutes), but only if more than "
            "{limit} of {who}'s "
            "uncompleted tasks are overdue.",
        )
    )
    query = ask.format(who=who, limit=limit, time=say_time(time))
    return Draft(query, [_meet("Overdue tasks", company.address(who), TOMORROW, time, 30)] if holds else [])


@template("analytics", "email", conditional=True)
def warn_if_few_engaged(office: Office, dice: Dice, holds: bool) -> Draft:
    day, limit, who = past_day(dice, 1, 80), dice.between(2, 6), dice.pick(FIRST)
    visits = office.visits_on(day)
    engaged = sum(row["user_engaged"] == "True" for row in visits)
    check(bool(visits) and (engaged < limit) == holds)
    ask = dice.pick(
        (
            "If fewer than {limit} users were engaged on {day}, email {who}: subject 'Low engagement', text 'Please look at {day}.'",
            "Were there less than {limit} engaged users on {day}? If so, send {who} an email titled 'Low engagement' saying "
            "'Please look at {day}.'; if not, send nothing.",
            "Check the engaged users of {day}. Below {limit}, {who} gets an email with the subject 'Low engagement' and the body "
            "'Please look at {day}.'",
        )
    )
    query = ask.format(limit=limit, day=say_day(day), who=who)
    send = _send(company.address(who), "Low engagement", f"Please look at {say_day(day)}.")
    return Draft(query, [send] if holds else [])


@template("email", "calendar", conditional=True)
def invite_if_asked_about(office: Office, dice: Dice, holds: bool) -> Draft:
    who, event, time = dice.pick(FIRST), dice.pick(company.EVENT_NAMES), dice.pick(TIMES)
    day = workday(dice)
    asked = [row for row in office.received(who) if row["subject"].lower() == f"question about {event}".lower()]
    check(bool(asked) == holds)
    subject, name = f"Question about {event}", f"{event}: questions"
    ask = dice.pick(
        (
            "If {who} ever sent me an email with the subject '{subject}', book '{name}' with {who} on {day} at {time} for 30 minutes. "
            "If not, do nothing.",
            "Is there an email from {who} called '{subject}' in my inbox? Then schedule '{name}' with {who}, {day}, "
            "{time}, 30 minutes.",
        )
    )
    query = ask.format(who=who, subject=subject, name=name, day=say_day(day), time=say_time(time))
    return Draft(query, [_meet(name, company.address(who), day, time, 30)] if holds else [])


@template("customer_relationship_manager", "email", conditional=True)
def remind_if_lagging(office: Office, dice: Dice, holds: bool) -> Draft:
    who, limit, status = dice.pick(SALES), dice.between(2, 9), dice.pick(("Lead", "Proposal"))
    count = len(office.customers_of(who, status=status))
    check((count >= limit) == holds)
    subject, body = dice.pick(LETTERS)
    ask = dice.pick(
        (
            "If {who} looks after at least {limit} customers with the status {status}, write to {who}: subject "
            "'{subject}', text '{body}'",
            "Count {who}'s customers that are {status}. With {limit} or more of them, send {who} an email titled '{subject}' that says "
            "'{body}' With fewer, send nothing.",
        )
    )
    query = ask.format(who=who, limit=limit, status=status, subject=subject, body=body)
    return Draft(query, [_send(company.address(who), subject, body)] if holds else [])


def _send(address: str, subject: str, body: str) -> dict[str, str]:
    return call("email_send_email", recipient=address, subject=subject, body=body)


def _meet(name: str, address: str, day: date, time: str, minutes: int) -> dict[str, str]:
    return call(
        "calendar_create_event",
        event_name=name,
        participant_email=address,
        event_start=f"{day} {time}:00",
        duration=str(minutes),
    )


def _assign(task: str, who: str) -> dict[str, str]:
    return call(
        "project_management_update_task", task_id=task, field="assigned_to_email", new_value=company.address(who)
    )
