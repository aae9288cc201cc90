"""Tool calls compared as their schemas mean them, and in no way that can be sprayed."""

from typing import Any

import pytest

from resources_server.grading import trajectory
from resources_server.grading.forms import Form

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "units": {"type": "string", "default": "metric"},
            "days": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        "required": ["city"],
    },
}
POWER = {
    "type": "function",
    "name": "power",
    "parameters": {
        "type": "object",
        "properties": {"base": {"type": "integer"}, "exp": {"type": "integer"}},
        "required": ["base", "exp"],
    },
}
TOOLS = [WEATHER, POWER]


def weather(city: str, **more: Any) -> dict[str, Any]:
    return {"name": "get_weather", "arguments": {"city": city, **more}}


def power(base: Any, exp: Any) -> dict[str, Any]:
    return {"name": "power", "arguments": {"base": base, "exp": exp}}


PARIS, ROME = weather("Paris"), weather("Rome")
CASES: list[tuple[list[Any], list[Any], dict[str, Any], float]] = [
    ([[ROME, PARIS]], [PARIS, ROME], {}, 1),
    ([ROME, PARIS], [PARIS, ROME], {}, 1),
    ([ROME, PARIS], [PARIS, ROME], {"mode": "ordered"}, 0),
    ([PARIS, ROME], [PARIS, ROME], {"mode": "ordered"}, 1),
    ([[ROME, PARIS]], [PARIS, ROME], {"mode": "ordered"}, 1),  # one turn: its calls have no order
    ([ROME, PARIS], [[PARIS, ROME]], {"mode": "ordered"}, 1),  # the task says: in any order
    ([[ROME, PARIS], [power(1, 2)]], [PARIS, ROME, power(1, 2)], {"mode": "ordered"}, 1),
    ([[ROME, power(1, 2)], [PARIS]], [PARIS, ROME, power(1, 2)], {"mode": "ordered"}, 0),
    ([PARIS], [PARIS, ROME], {"mode": "ordered"}, 0),
    ([PARIS, ROME, ROME], [PARIS, ROME], {"mode": "ordered"}, 0),
    ([weather("Paris", units="metric"), ROME], [PARIS, ROME], {}, 1),
    ([weather("Paris", units="imperial"), ROME], [PARIS, ROME], {}, 0),
    ([PARIS], [weather("Paris", units="metric")], {}, 1),
    ([weather("Paris", days=None)], [PARIS], {}, 1),
    ([weather("Paris", days=3)], [PARIS], {}, 0),
    ([{"name": "get_weather", "arguments": '{ "units":"metric" ,"city":"Paris"}'}], [PARIS], {}, 1),
    ([{"name": "get_weather", "arguments": '{"city": "Paris", }'}], [PARIS], {}, 0),
    ([{"name": "get_weather", "arguments": "[1]"}], [PARIS], {}, 0),
    ([PARIS, PARIS], [PARIS], {}, 0),
    ([PARIS, PARIS], [PARIS, ROME], {}, 0),
    ([PARIS, PARIS], [PARIS, PARIS], {}, 1),
    ([PARIS, ROME, power(1, 2)], [PARIS, ROME], {}, 0),
    ([], [PARIS], {}, 0),
    ([], [], {}, 1),
    ([PARIS], [], {}, 0),
    ([power(999, 2)], [power(10, 2)], {}, 0),
    ([power(10.0, 2)], [power(10, 2)], {}, 1),
    ([power("10", 2)], [power(10, 2)], {}, 0),
    ([power(True, 2)], [power(1, 2)], {}, 0),
    ([power(10**30 + 1, 2)], [power(10**30, 2)], {}, 0),
    ([weather("Paris", country="FR")], [PARIS], {}, 0),
    ([weather("paris")], [PARIS], {}, 0),
    ([weather("paris")], [PARIS], {"text": Form()}, 1),
    ([weather("paris")], [PARIS], {"text": {"city": Form()}}, 1),
    ([weather("caf\u00e9")], [weather("cafe\u0301")], {}, 1),
    ([{"name": "weather.get_weather", "arguments": {"city": "Paris"}}], [PARIS], {}, 0),
    ([{"name": "weather.get_weather", "arguments": {"city": "Paris"}}], [PARIS], {"namespaces": True}, 1),
    ([{"name": "mcp__w__get_weather", "arguments": {"city": "Paris"}}], [PARIS], {"namespaces": True}, 1),
    ([{"name": "get_weather_now", "arguments": {"city": "Paris"}}], [PARIS], {"namespaces": True}, 0),
    ([PARIS, ROME, power(1, 2)], [PARIS], {"mode": "subset"}, 1),
    ([PARIS, PARIS, ROME], [PARIS], {"mode": "subset"}, 0),
    ([ROME], [PARIS], {"mode": "subset"}, 0),
    ([PARIS, power(1, 2)], [PARIS], {"optional": ["power"]}, 1),
    ([PARIS, ROME], [PARIS, ROME], {"mode": "f1"}, 1),
    ([PARIS], [PARIS, ROME], {"mode": "f1"}, 2 / 3),
    ([PARIS, ROME, power(1, 2), power(1, 3)], [PARIS, ROME], {"mode": "f1"}, 2 / 3),
    ([], [PARIS], {"mode": "f1"}, 0),
    ([], [], {"mode": "f1"}, 1),
    ([{**PARIS, "status": "tool_error"}, PARIS], [PARIS], {}, 1),
    ([{**PARIS, "status": "failed"}], [PARIS], {}, 0),
    ([{**PARIS, "status": "completed", "type": "function_call", "call_id": "c1"}], [PARIS], {}, 1),
]


@pytest.mark.parametrize(("produced", "expected", "options", "reward"), CASES)
def test_calls_are_compared_by_schema(
    produced: list[Any], expected: list[Any], options: dict[str, Any], reward: float
) -> None:
    """Order of independent calls, defaults, spacing and 10.0 cost nothing; anything else that differs does."""
    assert trajectory.match(produced, expected, TOOLS, **options).reward == pytest.approx(reward)


@pytest.mark.parametrize(
    ("produced", "expected", "words"),
    [
        (power("10", 2), power(10, 2), "type differs: string, not number"),
        (power(999, 2), power(10, 2), "'base' is 999, expected 10"),
        (weather("Paris", country="FR"), PARIS, "argument 'country' is unknown"),
        (ROME, power(1, 2), "missing: power"),
    ],
)
def test_the_reason_names_the_difference(produced: Any, expected: Any, words: str) -> None:
    """A person reading the line sees which argument it was."""
    assert words in trajectory.match([produced], [expected], TOOLS).reason


@pytest.mark.parametrize("expected", [None, "get_weather", {"name": "get_weather"}])
def test_a_row_without_its_truth_is_no_zero(expected: Any) -> None:
    """The verdict fails, naming what was expected."""
    with pytest.raises(ValueError, match="expected calls"):
        trajectory.match([PARIS], expected, TOOLS)


def test_defaults_are_filled_inside_nested_objects() -> None:
    """Arguments that are models of their own, referenced as pydantic writes them."""
    place = {"type": "object", "properties": {"city": {"type": "string"}, "country": {"default": "FR"}}}
    tool = {
        "type": "function",
        "function": {
            "name": "visit",
            "parameters": {
                "$defs": {"Place": place},
                "properties": {
                    "place": {"$ref": "#/$defs/Place"},
                    "stops": {"type": "array", "items": {"$ref": "#/$defs/Place"}},
                },
            },
        },
    }
    full = {"city": "Paris", "country": "FR"}
    made = {"name": "visit", "arguments": {"place": {"city": "Paris"}, "stops": [full]}}
    wanted = {"name": "visit", "arguments": {"place": full, "stops": [{"city": "Paris"}]}}
    assert trajectory.match([made], [wanted], [tool]).reward == 1
