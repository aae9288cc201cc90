"""The invented company behind `workplace`: who works there and what is in its five tables.

Everything is drawn from one seed, so the same company comes out on every machine and every Python. Columns and value formats are
those of WorkBench's CSV files; names, sentences and numbers are our own.
"""

import random
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import TypeVar

T = TypeVar("T")
Row = dict[str, str]

DOMAIN = "ternvale.example"  # RFC 2606: never a real address
NOW = datetime(2023, 11, 30, 23, 59)  # the clock of the world; nothing was sent or visited after it

STAFF = (
    "Amara Okafor", "Bruno Keller", "Chiara Lombardi", "Dmitri Volkov", "Elif Demir", "Farid Nassar", "Greta Lindholm",
    "Hiro Tanabe", "Ines Carvalho", "Jonas Weber", "Kavya Menon", "Liam Gallagher", "Maren Olsen", "Noor Haddad", "Oskar Novak",
    "Priya Raman", "Quentin Dubois", "Rosa Jimenez", "Soren Madsen", "Tomas Horvath",
)  # fmt: skip
"""Twenty colleagues; no first name or surname occurs inside another, so a name is enough to tell one from the rest."""

TEAMS = {
    "Back end": ("Bruno", "Dmitri", "Farid", "Hiro", "Jonas"),
    "Front end": ("Elif", "Kavya", "Liam", "Noor", "Oskar"),
    "Design": ("Chiara", "Greta", "Ines", "Maren"),
}
SALES = ("Amara", "Priya", "Quentin", "Rosa", "Soren", "Tomas")
LISTS = ("Backlog", "In Progress", "In Review", "Completed")
SOURCES = ("direct", "social media", "search engine", "referral")
STATUSES = ("Lead", "Qualified", "Proposal", "Won", "Lost")
PRODUCTS = ("Hosting", "Analytics suite", "Data pipeline", "Support plan", "Training")

EVENT_NAMES = (
    "Sprint planning", "Budget review", "Roadmap check-in", "Design critique", "Release rehearsal", "Hiring panel",
    "Customer feedback round", "Security walkthrough", "Quarterly numbers", "Retrospective", "Accessibility review",
    "Pricing workshop", "Incident follow-up", "Onboarding chat", "Partner call", "Backlog grooming", "Launch countdown",
    "Data quality hour", "Support handover", "Architecture forum", "Marketing sync", "Usability test", "Contract check",
    "Brand refresh talk", "Capacity planning", "One-to-one", "Training preview", "Forecast update", "Vendor demo", "Team lunch",
)  # fmt: skip

WORK = {
    "Back end": (
        ("Speed up", "Add tests for", "Document", "Fix time-outs in", "Split up"),
        ("the billing service", "the search index", "the login flow", "the export job", "the mail queue", "the audit log",
         "the rate limiter", "the backup script", "the webhook sender", "the import parser", "the session store",
         "the report builder", "the image resizer", "the permission check", "the cache layer", "the health probe",
         "the payment adapter", "the tenant router", "the currency table", "the job scheduler"),
    ),
    "Front end": (
        ("Rebuild", "Translate", "Fix keyboard focus in", "Add loading states to", "Trim the bundle of"),
        ("the settings page", "the pricing table", "the sign-up form", "the dashboard header", "the date picker",
         "the invoice view", "the search box", "the help panel", "the team list", "the cookie banner", "the chart legend",
         "the upload dialog", "the error page", "the onboarding tour", "the profile menu", "the notification tray",
         "the filter bar", "the mobile menu", "the checkout steps", "the plan switcher"),
    ),
    "Design": (
        ("Sketch", "Test colours for", "Redraw icons for", "Write guidelines for", "Prototype"),
        ("the welcome screen", "the annual report", "the trade fair stand", "the newsletter", "the empty states",
         "the dark theme", "the mobile app", "the status page", "the landing page", "the product tour", "the sales deck",
         "the print brochure", "the avatar set", "the map view", "the career page", "the survey form", "the partner portal",
         "the gift cards", "the event badges", "the loading animation"),
    ),
}  # fmt: skip

CUSTOMER_FIRST = (
    "Adele", "Bashir", "Celine", "Darius", "Edith", "Felix", "Gloria", "Hamid", "Isolde", "Jasper", "Katya", "Leander",
    "Mirela", "Nestor", "Odile", "Pavel", "Ramona", "Silvio", "Thelma", "Ulrich",
)  # fmt: skip
CUSTOMER_LAST = (
    "Abernathy", "Brandt", "Castellan", "Drummond", "Eastwick", "Fairbairn", "Grimaldi", "Hollis", "Ivarsson", "Jankowski",
    "Kessler", "Lockhart", "Montague", "Nyberg", "Ostrander", "Pemberton", "Quillfeather", "Rasmussen", "Sandoval", "Thackeray",
)  # fmt: skip
FIRMS = ("northgate", "bluefin", "cedarworks", "harborline", "millstone", "oakfield", "redkite", "stonebridge")

SUBJECTS = (
    "Notes from {event}", "Agenda for {event}", "Question about {event}", "Moving {event}", "Status of '{task}'",
    "Help wanted: {task}", "Review of '{task}'", "{customer}: next steps", "Quote for {customer}", "Complaint from {customer}",
    "Visitor numbers for {month}", "Travel plans for {month}", "Invoices of {month}", "Holiday cover in {month}",
)  # fmt: skip
OPENINGS = (
    "Hi,", "Hello,", "Hi there,", "Good morning,", "Hello again,", "Quick one:", "Hi team,", "Afternoon,",
)  # fmt: skip
MIDDLES = {
    "event": (
        "the notes from {event} are in the shared folder.",
        "could we give {event} another half hour next time?",
        "two points about {event} are still open, mostly on timing.",
        "I will be ten minutes late to {event}, please start without me.",
        "{event} went well and everyone agreed on the plan.",
    ),
    "task": (
        "'{task}' is further along than it looks on the board.",
        "I am stuck on '{task}' and could use a second pair of eyes.",
        "please have a look at '{task}' before the end of the week.",
        "'{task}' turned out bigger than we thought; I would split it.",
    ),
    "customer": (
        "{customer} asked for a call about the offer.",
        "{customer} is happy with the trial and wants to talk about terms.",
        "the last invoice to {customer} had the wrong address on it.",
        "{customer} would like a reference from someone in the same trade.",
    ),
    "month": (
        "the figures for {month} are complete now.",
        "I still need your dates for {month}.",
        "{month} looks a little better than the month before.",
        "please send me what is missing for {month}.",
    ),
}
CLOSINGS = (
    "Let me know what you think.", "Thanks a lot.", "No rush.", "Can you confirm by tomorrow?", "Happy to talk it through.",
    "I have put the details into the folder.", "More when we meet.", "Tell me if that does not suit you.",
)  # fmt: skip
NOTES = (
    "Met at the spring fair.", "Prefers to be called in the morning.", "Asked for a longer trial.", "Compares us with two others.",
    "Budget is decided in January.", "Wants a demo for the whole team.", "Was recommended by a partner.", "Price is the open point.",
)  # fmt: skip


class Dice:
    """Draws from one seed by `random()` alone, whose numbers never changed between Python versions."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # str seeds are hashed with SHA-512: the same everywhere

    def below(self, limit: int) -> int:
        """0 … limit - 1."""
        return int(self._random.random() * limit)

    def between(self, low: int, high: int) -> int:
        """low … high, both included."""
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """All items in a drawn order."""
        return [item for _, _, item in sorted((self._random.random(), place, item) for place, item in enumerate(items))]


def address(name: str) -> str:
    """The mail address of a colleague, from the first name or the full one."""
    full = next(each for each in STAFF if each == name or each.split()[0] == name)
    return full.lower().replace(" ", ".") + "@" + DOMAIN


def tables() -> dict[str, list[Row]]:
    """Every table by the name of its file, rows in the order of the file."""
    customers, tasks = _customers(Dice("customers")), _tasks(Dice("tasks"))
    return {
        "emails": _emails(Dice("emails"), tasks, customers),
        "calendar_events": _events(Dice("events")),
        "analytics_data": _visits(Dice("visits")),
        "project_tasks": tasks,
        "customer_relationship_manager_data": customers,
        "email_addresses": [{"email_address": address(name)} for name in STAFF],
    }


def _weekdays(first: date, last: date) -> list[date]:
    days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    return [day for day in days if day.weekday() < 5]


def _numbered(key: str, rows: Sequence[Row]) -> list[Row]:
    return [{key: f"{number:08d}", **row} for number, row in enumerate(rows)]


def _events(dice: Dice) -> list[Row]:
    """300 meetings that never overlap, so that "the next free slot" has one answer."""
    pool: list[Row] = []
    for day in _weekdays(date(2023, 10, 23), date(2023, 12, 22)):
        start = datetime(day.year, day.month, day.day, 9)
        while True:
            minutes = dice.pick((30, 30, 60, 60, 90))
            if start + timedelta(minutes=minutes) > datetime(day.year, day.month, day.day, 18):
                break
            pool.append(
                {
                    "event_name": dice.pick(EVENT_NAMES),
                    "participant_email": address(dice.pick(STAFF)),
                    "event_start": f"{start}",
                    "duration": str(minutes),
                }
            )
            start += timedelta(minutes=minutes)
    return _numbered("event_id", dice.shuffled(pool)[:300])


def _tasks(dice: Dice) -> list[Row]:
    days = _weekdays(date(2023, 11, 6), date(2023, 12, 22))
    names = [
        (board, f"{verb} {thing}") for board, (verbs, things) in WORK.items() for verb in verbs for thing in things
    ]
    rows = [
        {
            "task_name": name,
            "assigned_to_email": address(dice.pick(TEAMS[board])),
            "list_name": dice.pick(LISTS),
            "due_date": str(dice.pick(days)),
            "board": board,
        }
        for board, name in dice.shuffled(names)
    ]
    return _numbered("task_id", rows)


def _customers(dice: Dice) -> list[Row]:
    names = dice.shuffled([f"{first} {last}" for first in CUSTOMER_FIRST for last in CUSTOMER_LAST])[:200]
    rows = []
    for number, name in enumerate(names):
        contact = NOW.date() - timedelta(days=dice.between(0, 75))
        rows.append(
            {
                "assigned_to_email": address(dice.pick(SALES)),
                "customer_name": name,
                "customer_email": f"{name.lower().replace(' ', '.')}@{dice.pick(FIRMS)}.example",
                "customer_phone": f"555-{100 + number:04d}",
                "last_contact_date": str(contact),
                "product_interest": dice.pick(PRODUCTS),
                "status": dice.pick(STATUSES),
                "follow_up_by": str(date(2023, 12, 1) + timedelta(days=dice.below(30))),
                "notes": f"{contact - timedelta(days=dice.between(1, 40))}: {dice.pick(NOTES)}",
            }
        )
    return _numbered("customer_id", rows)


def _visits(dice: Dice) -> list[Row]:
    rows = []
    for _ in range(1000):
        seconds = dice.between(3, 90) + (dice.between(60, 900) if dice.below(3) == 0 else 0)
        rows.append(
            {
                "date_of_visit": str(date(2023, 9, 1) + timedelta(days=dice.below(91))),
                "visitor_id": f"{dice.below(900):04d}",
                "page_views": str(1 + seconds // 45 + dice.below(4)),
                "session_duration_seconds": str(seconds),
                "traffic_source": dice.pick(SOURCES),
                "user_engaged": str(seconds > 60),
            }
        )
    return rows


def _emails(dice: Dice, tasks: Sequence[Row], customers: Sequence[Row]) -> list[Row]:
    minutes = dice.shuffled(range(61 * 14 * 60))[:500]  # October and November, 06:00 to 20:00, no two in one minute
    rows = []
    for number in minutes:
        day, minute = divmod(number, 14 * 60)
        sent = datetime(2023, 10, 1, 6) + timedelta(days=day, minutes=minute, seconds=dice.below(60))
        subject, body = _letter(dice, tasks, customers)
        rows.append(
            {
                "inbox/outbox": "outbox" if dice.below(10) < 3 else "inbox",
                "sender/recipient": address(dice.pick(STAFF)),
                "subject": subject,
                "sent_datetime": f"{sent}",
                "body": body,
            }
        )
    return _numbered("email_id", rows)


def _letter(dice: Dice, tasks: Sequence[Row], customers: Sequence[Row]) -> tuple[str, str]:
    words = {
        "event": dice.pick(EVENT_NAMES),
        "task": dice.pick(tasks)["task_name"],
        "customer": dice.pick(customers)["customer_name"],
        "month": dice.pick(("September", "October", "November", "December")),
    }
    subject = dice.pick(SUBJECTS)
    topic = next(word for word in words if f"{{{word}}}" in subject)
    body = f"{dice.pick(OPENINGS)} {dice.pick(MIDDLES[topic])} {dice.pick(CLOSINGS)}"
    return subject.format(**words), body.format(**words)
