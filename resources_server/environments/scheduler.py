"""A week's calendar and a user who keeps asking for more, and for something else: the last word on each thing counts.

Played by the agent `dialogue`: the row's prompt is the first thing that the user says, the others come as the model answers.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from resources_server import Call, Game, Response, Step, Task, ToolError, Verdict, tool
from resources_server.grading.forms import Form

Day = Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]
Time = Annotated[str, Field(pattern=r"^([01]\d|2[0-3]):[0-5]\d$")]
OPEN, CLOSE = "08:00", "18:00"  # appointments lie between them
TITLE = Form(collapse=True, unicode="nfkc")  # how titles are compared


class Appointment(BaseModel):
    """An entry of the calendar."""

    title: str
    day: Day
    start: Time
    minutes: int = Field(ge=5, le=600)

    @property
    def end(self) -> str:
        """When it is over."""
        return clock(minute_of(self.start) + self.minutes)

    def told(self) -> str:
        """As the model reads it."""
        return f"{self.day} {self.start}-{self.end} {self.title}"


class Want(BaseModel):
    """One thing that the user wants to be so in the end."""

    kind: Literal["at", "gone", "after"]
    title: str
    day: Day | None = None  # the following are of "at"
    earliest: Time = OPEN
    latest: Time = CLOSE  # end
    minutes: int | None = None
    other: str | None = None  # of "after": on the same day as this one, and not before it is over


class Turn(BaseModel):
    """One thing that the user says."""

    say: str
    wants: list[Want]


class Planned(BaseModel):
    """A call of the row's own solution."""

    name: str
    arguments: dict[str, str | int]


class SchedulerTask(Task):
    calendar: list[Appointment]
    turns: list[Turn] = Field(
        min_length=1
    )  # the first is in the prompt; later ones are the ground truth until they are said
    plan: list[list[Planned]]  # one way, for each turn; never shown


class Scheduler(Game[SchedulerTask]):
    """State is the calendar, what was said so far, and whether the wants so far held at the end of each turn."""

    blocking = False
    appointments: list[Appointment] = []
    heard: int = 1
    kept: list[bool] = []

    def reset(self) -> None:
        self.appointments = [each.model_copy() for each in self.task.calendar]

    def step(self, action: str) -> Step:
        """What the model says to the user; the observation is what the user says next."""
        self.kept.append(not list(self._open(self.heard)))
        if self.heard == len(self.task.turns):
            return Step("", done=True)
        self.heard += 1
        return Step(self.task.turns[self.heard - 1].say)

    @tool(read_only=True)
    def list_appointments(self, day: Day | None = None) -> list[str]:
        """List the appointments, in order.

        Args:
            day: Of this day only.
        """
        days = Day.__args__  # type: ignore[attr-defined]  # the week in its order
        found = [each for each in self.appointments if day in (None, each.day)]
        return [each.told() for each in sorted(found, key=lambda each: (days.index(each.day), each.start))]

    @tool
    def add_appointment(self, title: str, day: Day, start: Time, minutes: Annotated[int, Field(ge=5, le=600)]) -> str:
        """Put a new appointment into the calendar. It is refused where it would overlap another one.

        Args:
            title: A name that no other appointment has.
            day: The weekday.
            start: HH:MM in 24 hours; appointments lie between 08:00 and 18:00.
            minutes: How long it takes.
        """
        if not title.strip():
            raise ToolError("an appointment needs a title")
        if self._find(title) is not None:
            raise ToolError(f"there is an appointment {title!r} already")
        new = Appointment(title=title.strip(), day=day, start=start, minutes=minutes)
        self._refuse(new)
        self.appointments.append(new)
        return f"added: {new.told()}"

    @tool
    def move_appointment(self, title: str, day: Day, start: Time) -> str:
        """Move an appointment; it stays as long as it is. It is refused where it would overlap another one.

        Args:
            title: The appointment's.
            day: The new weekday.
            start: The new start, HH:MM in 24 hours.
        """
        old = self._there(title)
        new = old.model_copy(update={"day": day, "start": start})
        self._refuse(new, instead_of=old)
        self.appointments[self.appointments.index(old)] = new
        return f"moved: {new.told()}"

    @tool
    def remove_appointment(self, title: str) -> str:
        """Take an appointment out of the calendar.

        Args:
            title: The appointment's.
        """
        old = self._there(title)
        self.appointments.remove(old)
        return f"removed: {old.told()}"

    def verify(self, response: Response) -> Verdict:
        turns = len(self.task.turns)
        open_wants = list(self._open(turns))
        wants = len(goals(self.task.turns))
        metrics = {
            "turns_heard": self.heard / turns,
            "turns_kept": sum(self.kept) / turns,
            "wants_open": float(len(open_wants)),
            "wants": float(wants),
        }
        if self.heard < turns:
            return Verdict(
                reward=0.0, metrics=metrics, reason=f"heard {self.heard} of {turns} things that the user said"
            )
        return Verdict(reward=float(not open_wants), metrics=metrics, reason="; ".join(open_wants[:3]) or None)

    def solution(self) -> list[Call]:
        return [
            call
            for planned in self.task.plan
            for call in (*(Call(each.name, dict(each.arguments)) for each in planned), Call("act", {"action": "Done."}))
        ]

    def _find(self, title: str) -> Appointment | None:
        return next((each for each in self.appointments if same(each.title, title)), None)

    def _there(self, title: str) -> Appointment:
        found = self._find(title)
        if found is None:
            raise ToolError(f"there is no appointment {title!r}; list_appointments names them")
        return found

    def _refuse(self, new: Appointment, instead_of: Appointment | None = None) -> None:
        if new.start < OPEN or minute_of(new.start) + new.minutes > minute_of(CLOSE):
            raise ToolError(f"appointments lie between {OPEN} and {CLOSE}")
        for each in self.appointments:
            if each is not instead_of and each.day == new.day and each.start < new.end and new.start < each.end:
                raise ToolError(f"that overlaps {each.told()}")

    def _open(self, heard: int) -> Iterator[str]:
        """What is not as the user wants it after so many turns, in words."""
        wants = goals(self.task.turns[:heard])
        named = [want.title for want in wants]
        for want in wants:
            if (fault := self._fault(want)) is not None:
                yield fault
        for before in self.task.calendar:
            if not any(same(before.title, each) for each in named) and before not in self.appointments:
                yield f"{before.title} was not to be touched"
        known = [*named, *(each.title for each in self.task.calendar)]
        yield from (
            f"nobody asked for {e.title}" for e in self.appointments if not any(same(e.title, k) for k in known)
        )

    def _fault(self, want: Want) -> str | None:
        found = self._find(want.title)
        if want.kind == "gone":
            return None if found is None else f"{want.title} is still there"
        if found is None:
            return f"{want.title} is missing"
        if want.kind == "after":
            other = self._find(str(want.other))
            late = other is not None and other.day == found.day and other.end <= found.start
            return None if late else f"{want.title} is not after {want.other}"
        if want.day not in (None, found.day) or found.start < want.earliest or found.end > want.latest:
            return f"{want.title} is on {found.day} from {found.start} to {found.end}"
        return None if want.minutes in (None, found.minutes) else f"{want.title} takes {found.minutes} minutes"


def goals(turns: Sequence[Turn]) -> list[Want]:
    """What is wanted in the end: of each thing the last word. A new place takes back that it is to be after another one."""
    last: dict[tuple[str, str], Want] = {}
    for want in (want for turn in turns for want in turn.wants):
        name = TITLE.of(want.title)
        for kind in ("after", "gone") if want.kind == "after" else ("at", "after", "gone"):
            last.pop((name, kind), None)
        last[name, want.kind] = want
    return list(last.values())


def same(one: str, other: str) -> bool:
    """Whether two titles name the same appointment."""
    return TITLE.of(one) == TITLE.of(other)


def minute_of(time: str) -> int:
    """Of the day."""
    return int(time[:2]) * 60 + int(time[3:])


def clock(minute: int) -> str:
    """HH:MM of a minute of the day."""
    return f"{minute // 60:02}:{minute % 60:02}"
