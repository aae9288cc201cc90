"""Tasks in the mailbox."""

from datetime import date, timedelta

import company
from company import Dice
from office import (
    FIRST,
    TODAY,
    Draft,
    Office,
    call,
    check,
    few,
    latest,
    only,
    others,
    past_day,
    say_day,
    say_names,
    template,
)

REPLIES = (
    "Thanks, that works for me.",
    "I will get back to you tomorrow.",
    "Please go ahead as planned.",
    "Could you send me the details?",
    "Let us talk about it on Monday.",
    "Agreed, no objections from my side.",
    "Sorry for the delay, I am on it.",
    "Good news, thank you!",
)
LETTERS = (
    ("Offsite agenda", "Please send me your topics for the offsite by Friday."),
    ("Office closed", "The office stays closed on December 27."),
    ("New laptop", "Your new laptop is ready at the help desk."),
    ("Survey", "Please fill in the survey before the end of the week."),
    ("Fire drill", "There is a fire drill on Tuesday at ten."),
    ("Coffee machine", "The coffee machine on the second floor is fixed."),
    ("Badge photos", "Photos for the new badges are taken on Wednesday."),
    ("Year-end party", "The year-end party starts at six in the canteen."),
    ("Expense reports", "Expense reports for November are due on December 5."),
)


@template("email")
def send_to_colleague(office: Office, dice: Dice) -> Draft:
    who, (subject, body) = dice.pick(FIRST), dice.pick(LETTERS)
    ask = dice.pick(
        (
            "Send {who} an email with the subject '{subject}' that says '{body}'",
            "Can you write to {who}? Subject '{subject}', text '{body}'",
            "I need an email to {who} titled '{subject}'. It should read: '{body}'",
        )
    )
    return Draft(ask.format(who=who, subject=subject, body=body), [_send(who, subject, body)])


@template("email")
def send_to_several(office: Office, dice: Dice) -> Draft:
    names, (subject, body) = dice.shuffled(FIRST)[: dice.between(2, 4)], dice.pick(LETTERS)
    ask = dice.pick(
        (
            "Write to {names}, each in an email of their own, with the subject '{subject}' and the text '{body}'",
            "{names} should each get an email called '{subject}' with the words '{body}'",
            "Email {names} separately: subject '{subject}', body '{body}'",
        )
    )
    return Draft(
        ask.format(names=say_names(names), subject=subject, body=body), [_send(name, subject, body) for name in names]
    )


@template("email")
def delete_latest_from(office: Office, dice: Dice) -> Draft:
    who = dice.pick(FIRST)
    mail = latest(office.received(who))
    ask = dice.pick(
        (
            "Delete the last email that I received from {who}.",
            "Please get rid of the most recent email {who} sent me.",
            "{who}'s latest email to me can go, delete it.",
        )
    )
    return Draft(ask.format(who=who), [_delete(mail)])


@template("email")
def reply_to_latest(office: Office, dice: Dice) -> Draft:
    who, body = dice.pick(FIRST), dice.pick(REPLIES)
    mail = latest(office.received(who))
    ask = dice.pick(
        (
            "Answer the last email I got from {who} with '{body}'",
            "Reply '{body}' to the most recent email that {who} sent me",
            "{who} is waiting: reply to their latest email with the text '{body}'",
        )
    )
    return Draft(ask.format(who=who, body=body), [_reply(mail, body)])


@template("email")
def forward_about_subject(office: Office, dice: Dice) -> Draft:
    who = dice.pick(FIRST)
    mail = dice.pick(few(office.received(who), most=100))
    only([row for row in office.received(who) if mail["subject"].lower() in row["subject"].lower()])
    to = others(dice, who)
    ask = dice.pick(
        (
            'Forward the email from {who} with the subject "{subject}" to {to}.',
            '{to} needs {who}\'s email "{subject}", please forward it.',
            'Can you pass on the email that {who} sent me about "{subject}" to {to}?',
        )
    )
    return Draft(ask.format(who=who, to=to, subject=mail["subject"]), [_forward(mail, to)])


@template("email")
def delete_received_since(office: Office, dice: Dice) -> Draft:
    who, day = dice.pick(FIRST), past_day(dice, 5, 25)
    mails = few([row for row in office.received(who) if row["sent_datetime"] >= str(day)], most=5, least=2)
    ask = dice.pick(
        (
            "Delete every email {who} has sent me since {day}, that day included.",
            "Clear out all emails I received from {who} on {day} or later.",
            "I don't need the emails from {who} any more that came in from {day} on. Delete them.",
        )
    )
    return Draft(ask.format(who=who, day=say_day(day)), [_delete(mail) for mail in mails])


@template("email")
def delete_sent_between(office: Office, dice: Dice) -> Draft:
    who, first = dice.pick(FIRST), past_day(dice, 20, 58)
    last = first + timedelta(days=dice.between(7, 18))
    mails = few([row for row in office.sent(who) if str(first) <= row["sent_datetime"][:10] <= str(last)], most=4)
    ask = dice.pick(
        (
            "Delete the emails that I sent to {who} from {first} to {last}.",
            "Please remove from my outbox what I wrote to {who} between {first} and {last}, both days included.",
            "All my outgoing emails to {who} dated {first} through {last} should be deleted.",
        )
    )
    return Draft(ask.format(who=who, first=say_day(first), last=say_day(last)), [_delete(mail) for mail in mails])


@template("email")
def forward_mentions_of_customer(office: Office, dice: Dice) -> Draft:
    name, to = dice.pick(office.customers)["customer_name"], dice.pick(FIRST)
    mails = few(office.mentioning(name), most=4)
    check(all(name in row["subject"] for row in mails))
    ask = dice.pick(
        (
            "Forward every email that mentions {name} to {to}, sent ones included.",
            "{to} takes over {name}. Send {to} all emails in my mailbox about this customer.",
            "Everything in my mailbox that mentions {name}, received or sent, should be forwarded to {to}.",
        )
    )
    return Draft(ask.format(name=name, to=to), [_forward(mail, to) for mail in mails])


@template("email", conditional=True)
def reply_if_wrote_today(office: Office, dice: Dice, holds: bool) -> Draft:
    who, body = dice.pick(FIRST), dice.pick(REPLIES)
    mails = [row for row in office.received(who) if row["sent_datetime"] >= str(TODAY)]
    check(len(mails) == int(holds))
    ask = dice.pick(
        (
            "If I got an email from {who} today, reply to it with '{body}' Otherwise do nothing.",
            "Did {who} write to me today? If so, answer '{body}'",
            "Check whether {who} has emailed me today, and only in that case reply '{body}'",
        )
    )
    return Draft(ask.format(who=who, body=body), [_reply(mail, body) for mail in mails])


@template("email", conditional=True)
def delete_if_old(office: Office, dice: Dice, holds: bool) -> Draft:
    who = dice.pick(FIRST)
    mail = latest(office.received(who))
    age = (TODAY - date.fromisoformat(mail["sent_datetime"][:10])).days
    limit = dice.pick((3, 5, 7, 10, 14))
    check(abs(age - limit) >= 2 and (age > limit) == holds)
    ask = dice.pick(
        (
            "If the last email I received from {who} is more than {limit} days old, delete it; if not, leave it.",
            "Look at the newest email {who} sent me. Older than {limit} days? Then delete it.",
            "Delete the latest email from {who} to me, but only if it is over {limit} days old.",
        )
    )
    return Draft(ask.format(who=who, limit=limit), [_delete(mail)] if holds else [])


def _send(to: str, subject: str, body: str) -> dict[str, str]:
    return call("email_send_email", recipient=company.address(to), subject=subject, body=body)


def _delete(mail: company.Row) -> dict[str, str]:
    return call("email_delete_email", email_id=mail["email_id"])


def _reply(mail: company.Row, body: str) -> dict[str, str]:
    return call("email_reply_email", email_id=mail["email_id"], body=body)


def _forward(mail: company.Row, to: str) -> dict[str, str]:
    return call("email_forward_email", email_id=mail["email_id"], recipient=company.address(to))
