"""Whole numbers that a model writes with a point or an exponent: taken where they fit, the model's own mistake where not."""

import pytest

from resources_server import Environment, Task, tool
from resources_server.mistakes import Mistake
from resources_server.tools import Tool


class Counter(Environment[Task]):
    @tool
    def add(self, count: int, more: list[int] = []) -> str:  # noqa: B006  pydantic copies it
        """Add to the count."""
        return str(count)


ADD: Tool = Counter.tools["add"]


@pytest.mark.parametrize("number", ["1e19", "1e22", "-1e30", "1e300", "123456789012345678901.0"])
@pytest.mark.parametrize("form", ['{"count": %s}', '{"count": 1.0, "more": [2, %s]}'])
def test_a_whole_number_too_large_for_a_float_is_the_models_mistake(number: str, form: str) -> None:
    """Told by the field's name, by `check` and by `accepted` alike."""
    field = "more.1" if "more" in form else "count"
    for reader in (ADD.check, ADD.accepted):
        with pytest.raises(Mistake, match=rf"^{field}: should be an integer") as raised:
            reader((form % number).encode())
        assert len(raised.value.sentences) == 1


@pytest.mark.parametrize(("number", "value"), [("3.0", 3), ("1e3", 1000), ("-2E2", -200), ("9" * 30, int("9" * 30))])
def test_one_that_fits_is_taken(number: str, value: int) -> None:
    """As before."""
    assert ADD.check(b'{"count": %s}' % number.encode())["count"] == value
