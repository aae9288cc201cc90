"""The author's contract: state, rows, options, what is shared."""

from typing import ClassVar

import pytest
from pydantic import BaseModel

from resources_server import AcceptedCall, Environment, Response, Task, ToolError, tool
from resources_server.environments.counter import Counter
from resources_server.environments.warehouse import Warehouse, WarehouseTask
from wire.errors import UsageError


class Library(Environment[Task]):
    class Options(BaseModel):
        books: int = 3

    options: ClassVar[Options]
    shared: ClassVar[list[str]]
    loads: ClassVar[list[int]] = []

    lent: list[str] = []

    @classmethod
    def load(cls, options: Options) -> list[str]:
        cls.loads.append(options.books)
        return [f"book {number}" for number in range(options.books)]

    @tool
    def lend(self) -> str:
        """Lend the next book."""
        self.lent.append(self.shared[len(self.lent)])
        return self.lent[-1]

    def verify(self, response: Response) -> float:
        return float(len(self.lent) == self.options.books and len(self.calls) == self.options.books)


def test_an_order_is_reserved_exactly() -> None:
    """Asking for more than is left changes nothing; the exact order is worth 1. No server is needed."""
    world = Warehouse(task=WarehouseTask(stock={"bolt": 2}, order={"bolt": 2}))
    world.seed()
    with pytest.raises(ToolError, match="3 units of 'bolt': 2 are left"):
        world.reserve("bolt", 3)
    assert world.stock == {"bolt": 2}

    world.reserve("bolt", 2)
    assert world.verify(Response()).reward == 1.0


def test_a_verdict_can_be_had_again_from_a_line() -> None:
    """State goes into the line, as plain JSON values; no server is needed to judge it again."""
    row = {"stock": {"bolt": 2}, "order": {"bolt": 2}}
    world = Warehouse.of_row(row)
    world.seed()
    world.reserve("bolt", 2)
    state = world.state()
    assert "task" not in state
    assert Warehouse.model_validate({"task": row, **state}).verify(Response()) == world.verify(Response())


def test_defaults_are_each_rollouts_own() -> None:
    """A mutable default of the class is copied, never shared."""
    first, second = Library.of_row({}), Library.of_row({})
    first.lend()
    assert (first.lent, second.lent) == (["book 0"], [])


def test_accepted_calls_are_not_state_and_can_be_restored() -> None:
    """They are kept beside the state, since most verdicts do not look at them."""
    calls = [AcceptedCall(name="lend", arguments={}, status="ok", order=order) for order in range(3)]
    world = Library.restored({}, {"lent": ["a", "b", "c"]}, [call.model_dump() for call in calls])
    assert world.state() == {"lent": ["a", "b", "c"]}
    assert world.calls == calls and world.verify(Response()) == 1.0


def test_options_bind_a_class_of_their_own() -> None:
    """Two servers in one process may give one class different options; the class itself keeps its defaults."""
    Library.loads.clear()
    few, many = Library.bound({"books": 1}), Library.bound({"books": 9})
    assert (len(few.shared), len(many.shared), Library.options.books) == (1, 9, 3)
    assert issubclass(few, Library) and few.of_row({}).shared is few.shared
    assert Library.loads == [1, 9]  # once each, at first use


def test_a_wrong_option_is_refused_with_the_nearest() -> None:
    """An unknown one, and one of the wrong type."""
    with pytest.raises(UsageError, match=r"environment Library has no option 'book'.*did you mean 'books'"):
        Library.bound({"book": 1})
    with pytest.raises(UsageError, match=r"options\.books"):
        Library.bound({"books": "many"})
    with pytest.raises(UsageError, match="has no option 'x'"):
        Counter.bound({"x": 1})


def test_all_wrong_options_are_told_at_once() -> None:
    """A boolean for a number among them."""
    with pytest.raises(UsageError, match=r"no option 'book'.*, no option 'y'.*; options\.books is True: a number"):
        Library.bound({"book": 1, "y": 1, "books": True})


def test_a_row_that_lacks_a_field_says_which_and_quotes_nothing() -> None:
    """Values of a row may be ground truth."""
    with pytest.raises(UsageError, match=r"field 'order' is missing \(a Warehouse row has stock, order\)"):
        Warehouse.of_row({"stock": {}})
    with pytest.raises(UsageError, match=r"field 'order\.bolt'") as caught:
        Warehouse.of_row({"stock": {}, "order": {"bolt": "secret"}})
    assert "secret" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:Field name:UserWarning")  # pydantic's own, which does not say what to do
def test_a_name_that_every_environment_has_is_refused() -> None:
    """As a field it would hide what the platform reads; as a tool the model could seed its own world."""
    with pytest.raises(TypeError, match=r"field 'version' .* write version: ClassVar"):
        type("Bad", (Environment[Task],), {"__module__": __name__, "__annotations__": {"version": str}, "version": "2"})

    def method(self: object) -> None:
        """Start again."""

    for name in ("seed", "load", "offered", "state", "model_dump"):
        with pytest.raises(TypeError, match=f"tool Bad.{name}: every environment has a method of that name"):
            type("Bad", (Environment[Task],), {"__module__": __name__, name: tool(method)})


def test_a_world_without_tools_and_fields_needs_no_session() -> None:
    """Its verdict depends on the row and the response only; a class may also say so itself."""

    class Question(Environment[Task]):
        pass

    class Remembering(Environment[Task]):
        seen: int = 0

    assert Question.needs_no_session() and Question.bound().needs_no_session()
    assert not Remembering.needs_no_session() and not Counter.needs_no_session()
