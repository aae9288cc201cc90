"""Tasks in the calendar."""

from datetime import date, timedelta

import company
from company import EVENT_NAMES, Dice, Row
from office import (
    FIRST,
    LENGTHS,
    TIMES,
    Draft,
    Office,
    call,
    check,
    ends,
    few,
    latest,
    only,
    others,
    say_day,
    say_time,
    starts,
    template,
    workday,
)

NEW_NAMES = (
    "Budget catch-up", "Pilot review", "Hiring plan", "Kick-off", "Risk check", "Demo dry run", "Team coffee", "Policy update",
    "Numbers talk", "Offer discussion", "Quality circle", "Planning session",
)  # fmt: skip


@template("calendar")
def create_meeting(office: Office, dice: Dice) -> Draft:
    name, who, day, time, minutes = _drawn(dice)
    ask = dice.pick(
        (
            "Schedule a {minutes}-minute meeting called '{name}' with {who} on {day} at {time}.",
            "Put '{name}' with {who} into my calendar for {day}, {time}, {minutes} minutes.",
            "Book {who} for '{name}' on {day} at {time}. It takes {minutes} minutes.",
        )
    )
    query = ask.format(name=name, who=who, day=say_day(day), time=say_time(time), minutes=minutes)
    return Draft(query, [_create(name, who, day, time, minutes)])


@template("calendar")
def cancel_first_of_day(office: Office, dice: Dice) -> Draft:
    day = workday(dice)
    events = few(office.on(day), most=20, least=2)
    ask = dice.pick(
        (
            "Cancel my first meeting on {day}.",
            "I will be late on {day}: delete the first event of that day.",
            "Please take the earliest meeting on {day} out of my calendar.",
        )
    )
    return Draft(ask.format(day=say_day(day)), [_delete(events[0])])


@template("calendar")
def rename_last_of_day(office: Office, dice: Dice) -> Draft:
    day, name = workday(dice), dice.pick(NEW_NAMES)
    event = latest(office.on(day))
    ask = dice.pick(
        (
            "Rename my last event on {day} to '{name}'.",
            "The final meeting on {day} should be called '{name}'.",
            "Change the name of the last thing in my calendar on {day} to '{name}'.",
        )
    )
    return Draft(ask.format(day=say_day(day), name=name), [_update(event, "event_name", name)])


@template("calendar")
def cancel_all_with(office: Office, dice: Dice) -> Draft:
    who, first = dice.pick(FIRST), workday(dice, last=date(2023, 12, 13))
    last = first + timedelta(days=dice.between(5, 9))
    events = few(
        [row for row in office.ahead(first_name=who) if str(first) <= row["event_start"][:10] <= str(last)],
        most=5,
        least=2,
    )
    ask = dice.pick(
        (
            "{who} is on leave from {first} to {last}. Cancel all our meetings in that time, both days included.",
            "Delete every meeting with {who} between {first} and {last} (inclusive).",
            "Please clear my calendar of all events with {who} from {first} through {last}.",
        )
    )
    return Draft(ask.format(who=who, first=say_day(first), last=say_day(last)), [_delete(event) for event in events])


@template("calendar")
def delay_next_with(office: Office, dice: Dice) -> Draft:
    who, minutes = dice.pick(FIRST), dice.pick((15, 30, 45, 60))
    event = few(office.ahead(first_name=who), most=100)[0]
    check((ends(event) + timedelta(minutes=minutes)).strftime("%H:%M") <= "18:00")
    ask = dice.pick(
        (
            "Push my next meeting with {who} back by {minutes} minutes.",
            "My next meeting with {who} should start {minutes} minutes later.",
            "{who} asked to begin {minutes} minutes later: change our next meeting.",
        )
    )
    start = starts(event) + timedelta(minutes=minutes)
    return Draft(ask.format(who=who, minutes=minutes), [_update(event, "event_start", str(start))])


@template("calendar")
def change_length_of_next(office: Office, dice: Dice) -> Draft:
    name, minutes = dice.pick(EVENT_NAMES), dice.pick(LENGTHS)
    event = few(office.ahead(name=name), most=100)[0]
    check(event["duration"] != str(minutes))
    ask = dice.pick(
        (
            "Make the next {name} {minutes} minutes long.",
            "The next '{name}' in my calendar should take {minutes} minutes.",
            "Change the length of my next {name} to {minutes} minutes.",
        )
    )
    return Draft(ask.format(name=name, minutes=minutes), [_update(event, "duration", str(minutes))])


@template("calendar")
def move_to_other_day(office: Office, dice: Dice) -> Draft:
    event = dice.pick(office.ahead())
    old, new = starts(event).date(), workday(dice)
    only([row for row in office.on(old) if row["event_name"] == event["event_name"]])
    check(old != new)
    ask = dice.pick(
        (
            "Move the {name} on {old} to {new}, at the same time of day.",
            "'{name}' on {old} should take place on {new} instead, same time.",
            "Please shift {name} from {old} to {new} and keep the time.",
        )
    )
    query = ask.format(name=event["event_name"], old=say_day(old), new=say_day(new))
    return Draft(query, [_update(event, "event_start", f"{new} {starts(event):%H:%M:%S}")])


@template("calendar")
def swap_participant(office: Office, dice: Dice) -> Draft:
    old, first = dice.pick(FIRST), workday(dice, last=date(2023, 12, 13))
    new, last = others(dice, old), first + timedelta(days=dice.between(6, 9))
    events = few(
        [row for row in office.ahead(first_name=old) if str(first) <= row["event_start"][:10] <= str(last)],
        most=4,
        least=2,
    )
    ask = dice.pick(
        (
            "{new} stands in for {old} from {first} to {last}: make {new} the participant of my meetings with {old} on those days.",
            "All my meetings with {old} between {first} and {last}, both included, will be with {new} instead. Update the participant.",
            "From {first} through {last}, replace {old} by {new} as the participant of our meetings.",
        )
    )
    query = ask.format(old=old, new=new, first=say_day(first), last=say_day(last))
    return Draft(query, [_update(event, "participant_email", company.address(new)) for event in events])


@template("calendar")
def book_first_free(office: Office, dice: Dice) -> Draft:
    name, who, day, _, _ = _drawn(dice)
    minutes = dice.pick((30, 60))
    time = office.first_free(day, minutes)
    ask = dice.pick(
        (
            "Book a {minutes}-minute meeting '{name}' with {who} at the first time I am free on {day}.",
            "Find the earliest free {minutes} minutes on {day} and put '{name}' with {who} there.",
            "'{name}' with {who} should go into the first free slot of {minutes} minutes on {day}.",
        )
    )
    query = ask.format(name=name, who=who, day=say_day(day), minutes=minutes)
    return Draft(query, [_create(name, who, day, time, minutes)])


@template("calendar", conditional=True)
def book_if_free(office: Office, dice: Dice, holds: bool) -> Draft:
    name, who, day, time, _ = _drawn(dice)
    check(office.busy(day, time, 30) != holds)
    ask = dice.pick(
        (
            "If I am free from {time} for half an hour on {day}, book '{name}' with {who} then. If not, leave it.",
            "Am I free at {time} on {day} for 30 minutes? If so, schedule '{name}' with {who} at that time; otherwise change nothing.",
            "Only if nothing is in the way, put a 30-minute '{name}' with {who} into my calendar at {time} on {day}.",
        )
    )
    query = ask.format(name=name, who=who, day=say_day(day), time=say_time(time))
    return Draft(query, [_create(name, who, day, time, 30)] if holds else [])


@template("calendar", conditional=True)
def cancel_if_overloaded(office: Office, dice: Dice, holds: bool) -> Draft:
    day, hours = workday(dice), dice.between(3, 7)
    events = few(office.on(day), most=20, least=3)
    total = sum(int(row["duration"]) for row in events)
    check(total != hours * 60 and (total > hours * 60) == holds)
    ask = dice.pick(
        (
            "If my meetings on {day} add up to more than {hours} hours, cancel the last one of the day.",
            "I don't want over {hours} hours of meetings on {day}. If there are more than that, delete the last meeting of the day.",
            "Add up the lengths of my events on {day}. Above {hours} hours, drop the final one; otherwise leave the day as it is.",
        )
    )
    return Draft(ask.format(day=say_day(day), hours=hours), [_delete(events[-1])] if holds else [])


@template("calendar", conditional=True)
def book_if_nothing_planned(office: Office, dice: Dice, holds: bool) -> Draft:
    name, who, day, time, minutes = _drawn(dice)
    first = dice.pick((date(2023, 12, 4), date(2023, 12, 11), date(2023, 12, 18)))
    day, last = first + timedelta(days=day.weekday()), first + timedelta(days=4)
    planned = [row for row in office.ahead(first_name=who) if str(first) <= row["event_start"][:10] <= str(last)]
    check((not planned) == holds)
    ask = dice.pick(
        (
            "If I have no meeting with {who} from {first} to {last}, book '{name}' with them on {day} at {time} for {minutes} minutes.",
            "Check the days {first} to {last}: should there be nothing with {who}, add '{name}' with {who} on {day}, {time}, "
            "{minutes} minutes.",
            "I want to see {who} at least once between {first} and {last}. If nothing is planned, schedule '{name}' for "
            "{minutes} minutes "
            "on {day} at {time}; if something is, do nothing.",
        )
    )
    query = ask.format(
        name=name,
        who=who,
        first=say_day(first),
        last=say_day(last),
        day=say_day(day),
        time=say_time(time),
        minutes=minutes,
    )
    return Draft(query, [_create(name, who, day, time, minutes)] if holds else [])


def _drawn(dice: Dice) -> tuple[str, str, date, str, int]:
    return dice.pick(NEW_NAMES), dice.pick(FIRST), workday(dice), dice.pick(TIMES), dice.pick(LENGTHS)


def _create(name: str, who: str, day: date, time: str, minutes: int) -> dict[str, str]:
    return call(
        "calendar_create_event",
        event_name=name,
        participant_email=company.address(who),
        event_start=f"{day} {time}:00",
        duration=str(minutes),
    )


def _delete(event: Row) -> dict[str, str]:
    return call("calendar_delete_event", event_id=event["event_id"])


def _update(event: Row, field: str, value: str) -> dict[str, str]:
    return call("calendar_update_event", event_id=event["event_id"], field=field, new_value=value)
