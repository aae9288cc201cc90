"""From method to tool: what the model is told, what it may send, and what it hears when it is wrong."""

import enum
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from pydantic import BaseModel, Field

from resources_server import Environment, Response, Task, Toolkit, tool
from resources_server.environments.warehouse import Warehouse
from resources_server.mistakes import Mistake
from resources_server.tools import Tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    x: int
    title: str = "here"


class Kit(Toolkit):
    sent: list[str] = []

    @tool
    def send(self, to: str) -> str:
        """Send it."""
        self.sent.append(to)
        return "sent"


class World(Environment[Task]):
    kit: Kit = Kit()

    @tool
    async def everything(
        self,
        copy: int,
        json: Literal["a", "b"],
        colour: Colour = Colour.RED,
        points: list[Point] = [],  # noqa: B006  pydantic copies it
        level: Annotated[int, Field(ge=1)] = 1,
        anything: Any = None,
        flag: bool = False,
        maybe: str | None = None,
    ) -> str:
        """Take all kinds of arguments.

        Args:
            copy: A name that pydantic has, too.
        """
        return "ok"

    @tool(read_only=True)
    def nothing(self) -> None:
        """Take nothing."""

    def verify(self, response: Response) -> float:
        return 1.0


def mistakes(each: Tool, arguments: str | bytes) -> list[str]:
    with pytest.raises(Mistake) as caught:
        each.check(arguments.encode() if isinstance(arguments, str) else arguments)
    return caught.value.sentences


def test_a_tool_is_told_in_full() -> None:
    """Types, descriptions and `strict`; no titles that only repeat names."""
    assert Warehouse.tools["reserve"].definition == {
        "type": "function",
        "name": "reserve",
        "description": "Take units of one product off the shelf for the order.",
        "parameters": {
            "type": "object",
            "properties": {
                "product": {"type": "string", "description": "Exact product name, as `list_stock` gives it."},
                "units": {"type": "integer", "description": "How many; at least 1."},
            },
            "required": ["product", "units"],
            "additionalProperties": False,
        },
        "strict": True,
    }
    assert Warehouse.tools["list_stock"].definition["strict"] is False  # an optional argument


def test_toolkits_and_marks() -> None:
    """A toolkit's field prefixes its tools; read-only and async are known."""
    assert list(World.tools) == ["everything", "nothing", "kit_send"]
    assert World.tools["kit_send"].path == ("kit", "send")
    assert (World.tools["nothing"].read_only, World.tools["kit_send"].read_only) == (True, False)
    assert World.tools["everything"].is_async


def test_schemas_are_valid_and_keep_a_property_called_title() -> None:
    """Draft 2020-12, and names that collide with pydantic's own are as good as others."""
    schema = World.tools["everything"].definition["parameters"]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["properties"]) >= {"copy", "json", "points"}
    assert "title" in schema["$defs"]["Point"]["properties"] and "title" not in schema["$defs"]["Point"]


def test_arguments_are_typed_and_defaults_filled_in() -> None:
    """The method gets what its signature says; the record what JSON can hold."""
    values = World.tools["everything"].check(b'{"copy": 1, "json": "a", "points": [{"x": 2}], "colour": "blue"}')
    assert values["points"] == [Point(x=2)] and values["colour"] is Colour.BLUE and values["level"] == 1
    accepted = World.tools["everything"].accepted(b'{"copy": 1, "json": "a", "points": [{"x": 2}]}')
    assert accepted["points"] == [{"x": 2, "title": "here"}] and accepted["colour"] == "red"
    assert World.tools["nothing"].check(b"") == {} == World.tools["nothing"].check(b"{}")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ('{"product": "bolt", "units": "three"}', "units: should be an integer, got 'three'"),
        ('{"product": "bolt", "units": 2.5}', "units: should be an integer, got 2.5"),
        ('{"product": "bolt", "units": null}', "units: should be an integer, got null"),
        ('{"product": 7, "units": 1}', "product: should be a string, got 7"),
        ('{"product": "bolt"}', "units: is missing"),
        (
            '{"product": "bolt", "units": 1, "now": true}',
            "now: is not an argument of reserve (it takes product, units)",
        ),
        ("[1]", "the arguments should be a JSON object, got [1]"),
        ('"bolt"', "the arguments should be a JSON object, got 'bolt'"),
        ('{"product": "bolt", "units": NaN}', "units: should be an integer, got nan"),
        ('{"product": "bolt", "units": "3"}', "units: should be an integer, got '3'"),
        ('{"product": "bolt", "units": true}', "units: should be an integer, got true"),
    ],
)
def test_a_wrong_argument_is_named(arguments: str, sentence: str) -> None:
    """One sentence per mistake, which begins with the field and quotes the value."""
    assert sentence in mistakes(Warehouse.tools["reserve"], arguments)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ('{"copy": 1, "json": "c"}', "json: should be 'a' or 'b', got 'c'"),
        ('{"copy": 1, "json": "a", "colour": "green"}', "colour: should be 'red' or 'blue', got 'green'"),
        ('{"copy": 1, "json": "a", "level": 0}', "level: should be greater than or equal to 1, got 0"),
        ('{"copy": 1, "json": "a", "points": [{"x": "far"}]}', "points.0.x: should be an integer, got 'far'"),
        ('{"copy": 1, "json": "a", "points": 3}', "points: should be a list, got 3"),
        ('{"copy": 1, "json": "a", "flag": "perhaps"}', "flag: should be true or false, got 'perhaps'"),
    ],
)
def test_every_kind_of_type_has_its_sentence(arguments: str, sentence: str) -> None:
    """Choices, bounds, nested fields."""
    assert sentence in mistakes(World.tools["everything"], arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        b'{"city": "Paris", }',
        b"{",
        b'{"product": "\xff", "units": 1}',
        b'{"units": ' + b"1" * 5000 + b"}",
        b'{"units": ' + b"[" * 100_000 + b"}",
        b'{"units": ' + b'{"a":' * 20_000 + b"1" + b"}" * 20_000 + b"}",
        b'{"anything": NaN}',
        b'{"anything": [1e999]}',
    ],
)
def test_absurd_arguments_are_refused_politely(arguments: bytes) -> None:
    """A short sentence, whatever the size of what was sent."""
    for each in (Warehouse.tools["reserve"], World.tools["everything"]):
        assert 0 < sum(map(len, mistakes(each, arguments))) < 1000


def test_whole_numbers_are_exact_at_any_length() -> None:
    """30 digits arrive as 30 digits, typed or not."""
    big = 123456789012345678901234567890
    assert Warehouse.tools["reserve"].check(f'{{"product": "x", "units": {big}}}'.encode())["units"] == big
    text = f'{{"copy": 1, "json": "a", "anything": [{big}]}}'.encode()
    assert World.tools["everything"].check(text)["anything"] == [big]
    assert World.tools["everything"].accepted(text)["anything"] == [big]


def declared(method: Any) -> type[Environment[Any]]:
    return type("Bad", (Environment[Task],), {"__module__": __name__, method.__name__: tool(method)})


def untyped(self: Any, units) -> None:  # type: ignore[no-untyped-def]
    """Text."""


def undocumented(self: Any, units: int) -> None: ...


def misdescribed(self: Any, units: int) -> None:
    """Text.

    Args:
        unit: A typing error.
    """


def starred(self: Any, *units: int) -> None:
    """Text."""


def unfound(self: Any, units: "Nowhere") -> None:  # type: ignore[name-defined]  # noqa: F821
    """Text."""


def verify_session(self: Any) -> None:
    """Text."""


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (untyped, "tool Bad.untyped: argument 'units' has no type"),
        (undocumented, "tool Bad.undocumented has no docstring"),
        (misdescribed, "tool Bad.misdescribed: its docstring describes 'unit', which is no argument of it"),
        (starred, r"tool Bad.starred: argument 'units' must be a plain named one"),
        (unfound, "tool Bad.unfound: a type in its signature cannot be found"),
    ],
)
def test_a_tool_that_cannot_be_told_fails_at_import(method: Any, message: str) -> None:
    """The message names the tool and the argument."""
    with pytest.raises(TypeError, match=message):
        declared(method)


@pytest.mark.parametrize("name", ["seed_session", "close_session", "health", "tools", "mcp", "reset", "v1"])
def test_a_route_of_the_server_is_no_tool(name: str) -> None:
    """Or the model could reach it, or it the model's call."""

    def method(self: Any) -> None:
        """Text."""

    method.__name__ = name
    with pytest.raises(TypeError, match=f"its name '{name}' is a route of the server"):
        declared(method)


def test_a_name_longer_than_models_take_is_refused() -> None:
    """64 letters, digits, _ and -: what OpenAI and vLLM accept."""

    def method(self: Any) -> None:
        """Text."""

    method.__name__ = "x" * 65
    with pytest.raises(TypeError, match="does not match"):
        declared(method)


def test_an_override_without_the_mark_takes_the_tool_away() -> None:
    """So that a subclass can offer less."""

    class Less(World):
        def nothing(self) -> None:
            """No longer a tool."""

    assert "nothing" not in Less.tools and "everything" in Less.tools


def test_a_whole_number_may_have_a_point() -> None:
    """Case E03: 10.0 is 10; a text and a boolean are no numbers, however they read."""
    assert Warehouse.tools["reserve"].check(b'{"product": "bolt", "units": 3.0}')["units"] == 3
