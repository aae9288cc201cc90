"""Which tools, with which arguments? One turn of calls, compared with the expected ones; nothing is really done."""

from collections import Counter
from collections.abc import Collection
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from resources_server import Call, Environment, Response, Task, Verdict, tool
from resources_server.grading import trajectory
from resources_server.grading.components import Components
from resources_server.grading.forms import Form

WORDING = Form(case="ignore", unicode="nfkc", collapse=True)  # differences in texts that do not matter
Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
Time = Annotated[str, Field(pattern=r"^([01]\d|2[0-3]):[0-5]\d$")]


class Made(BaseModel):
    """One call, with defaults filled in."""

    name: str
    arguments: dict[str, Any]


class ToolCallsTask(Task):
    expected: list[Made] = Field(min_length=1)  # the ground truth, never shown; their order does not matter
    offer: list[str] = []  # the tools that the model is shown; all where empty


class Weights(BaseModel, extra="forbid"):
    """What each part of the reward is worth; all are 0 when more calls are made than expected."""

    name: float = 0.25
    """The share of the expected tools that were called."""
    arguments: float = 0.625
    """The share of the expected calls that were made with the right arguments."""
    count: float = 0.125
    """As many calls as expected, a right tool among them."""


class ToolCallsOptions(BaseModel, extra="forbid"):
    """The reward's weights."""

    weights: Weights = Weights()


class ToolCalls(Environment[ToolCallsTask]):
    """State is the calls that were made. Calls that the schema refuses are not made."""

    Options = ToolCallsOptions
    blocking = False
    made: list[Made] = []

    def offered(self) -> Collection[str]:
        return self.task.offer or type(self).tools

    def _note(self, name: str, /, **arguments: Any) -> str:
        self.made.append(Made(name=name, arguments=arguments))
        return "done"

    @tool
    def get_weather(self, city: str, day: Day, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
        """Get the weather forecast for a city.

        Args:
            city: Name of the city.
            day: Date, YYYY-MM-DD.
            unit: Of the temperatures.
        """
        return self._note("get_weather", city=city, day=day, unit=unit)

    @tool
    def convert_currency(self, amount: float, source: str, target: str) -> str:
        """Convert an amount of money at today's rate.

        Args:
            amount: How much.
            source: Three-letter code of the currency that it is in.
            target: Three-letter code of the currency that is wanted.
        """
        return self._note("convert_currency", amount=amount, source=source, target=target)

    @tool
    def convert_units(self, value: float, source: str, target: str) -> str:
        """Convert a quantity between units of measure, not money.

        Args:
            value: How much.
            source: Symbol of the unit that it is in, such as km, mi, kg, lb.
            target: Symbol of the unit that is wanted.
        """
        return self._note("convert_units", value=value, source=source, target=target)

    @tool
    def set_timer(self, minutes: int, label: str = "") -> str:
        """Start a countdown that rings when it is over.

        Args:
            minutes: How long.
            label: A name for it, where one is asked for.
        """
        return self._note("set_timer", minutes=minutes, label=label)

    @tool
    def set_alarm(self, time: Time, days: list[str] | None = None) -> str:
        """Set an alarm for a time of day.

        Args:
            time: When it rings, HH:MM in 24 hours.
            days: Lower-case names of the weekdays on which it repeats; once where left out.
        """
        return self._note("set_alarm", time=time, days=days)

    @tool
    def send_message(self, to: str, text: str, channel: Literal["sms", "email", "chat"] = "chat") -> str:
        """Send a message to a person.

        Args:
            to: The person's name.
            text: What it says, word for word.
            channel: How it is sent.
        """
        return self._note("send_message", to=to, text=text, channel=channel)

    @tool
    def call_person(self, name: str, video: bool = False) -> str:
        """Call a person on the telephone.

        Args:
            name: The person's name.
            video: With a picture.
        """
        return self._note("call_person", name=name, video=video)

    @tool
    def add_to_list(self, list_name: str, items: list[str]) -> str:
        """Add things to a list, such as a shopping list.

        Args:
            list_name: Name of the list, without the word list.
            items: What is added, in the order in which it is named.
        """
        return self._note("add_to_list", list_name=list_name, items=items)

    @tool
    def play_music(self, query: str, room: str | None = None, shuffle: bool = False) -> str:
        """Play music.

        Args:
            query: Artist, album or kind of music, as it is asked for.
            room: Where, when it is said.
            shuffle: In random order.
        """
        return self._note("play_music", query=query, room=room, shuffle=shuffle)

    @tool
    def set_lights(self, room: str, brightness: Annotated[int, Field(ge=0, le=100)], colour: str | None = None) -> str:
        """Set the lights of a room.

        Args:
            room: Name of the room.
            brightness: Per cent; 0 is off.
            colour: When it is said.
        """
        return self._note("set_lights", room=room, brightness=brightness, colour=colour)

    @tool
    def find_route(self, start: str, end: str, by: Literal["car", "train", "bike", "foot"] = "car") -> str:
        """Find a way from one place to another.

        Args:
            start: Where it begins.
            end: Where it ends.
            by: Means of transport.
        """
        return self._note("find_route", start=start, end=end, by=by)

    @tool
    def book_table(self, restaurant: str, day: Day, time: Time, people: int) -> str:
        """Reserve a table in a restaurant.

        Args:
            restaurant: Its name.
            day: Date, YYYY-MM-DD.
            time: HH:MM in 24 hours.
            people: How many come.
        """
        return self._note("book_table", restaurant=restaurant, day=day, time=time, people=people)

    def verify(self, response: Response) -> Verdict:
        expected = [each.model_dump() for each in self.task.expected]
        made = [each.model_dump() for each in self.made]
        tools = [each.definition for each in type(self).tools.values()]
        exact = trajectory.match(made, expected, tools, text=WORDING)
        within = len(made) <= len(expected)
        hits = len(expected) if exact.reward == 1 else round(_hits(made, expected, tools)) if within else 0
        names = sum((Counter(each["name"] for each in made) & Counter(each["name"] for each in expected)).values())
        found = {
            "name": names / len(expected) if within else 0.0,
            "arguments": hits / len(expected),
            "count": float(len(made) == len(expected) and names > 0),
        }
        weights = self.options.weights.model_dump()
        return Components(weights).verdict(found, metrics={"calls": float(len(made))}, reason=exact.reason)

    def solution(self) -> list[Call]:
        return [Call(each.name, each.arguments, together=place > 0) for place, each in enumerate(self.task.expected)]


def _hits(made: list[dict[str, Any]], expected: list[dict[str, Any]], tools: list[dict[str, Any]]) -> float:
    """How many of the expected calls were made, out of their F1."""
    return trajectory.match(made, expected, tools, mode="f1", text=WORDING).reward * (len(made) + len(expected)) / 2
