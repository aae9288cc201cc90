"""JSON in and out: exact, strict, and one exception class whatever the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire import strict_json
from wire.strict_json import JSONError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_what_is_written_is_read_back(value: object) -> None:
    """Whole numbers of any size, floats and any text without lone surrogates survive the round trip."""
    assert strict_json.loads(strict_json.dumps(value)) == value


def test_thirty_digits_stay_thirty_digits() -> None:
    """orjson alone would read a float and write 1.2e29."""
    text = b'{"value":123456789012345678901234567890}'
    assert strict_json.dumps(strict_json.loads(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "[Infinity]",
        '{"a": -Infinity}',
        "",
        "{",
        '{"a": 1,}',
        "[1] 2",
        "[" * 100_000,
        '{"a":' * 20_000,
        '{"value": ' + "1" * 5000 + "}",
        "'a'",
        "\ufeff1",
    ],
    ids=range(12),
)
def test_what_the_rfc_does_not_allow_is_one_exception(text: str) -> None:
    """Neither RecursionError nor a bare ValueError reaches the caller."""
    with pytest.raises(JSONError):
        strict_json.loads(text)


def test_not_a_number_is_named_by_its_path() -> None:
    """The writer refuses what readers would choke on."""
    with pytest.raises(JSONError, match=r"\$\.metrics\.f1\[1\] is nan"):
        strict_json.dumps({"metrics": {"f1": [1.0, float("nan")]}})
    with pytest.raises(JSONError, match="inf"):
        strict_json.dumps({"big": 2**70, "f": float("inf")})


def test_a_lone_surrogate_stays_the_escape_it_was() -> None:
    """Such text is legal JSON and has no UTF-8 form."""
    assert strict_json.dumps(strict_json.loads('"\\ud800"')) == b'"\\ud800"'


def test_a_value_without_json_form_is_refused() -> None:
    """A type we forgot to convert is told, not guessed."""
    with pytest.raises(JSONError, match="set"):
        strict_json.dumps({"a": {1, 2}})


def test_a_surrogate_in_the_text_itself_is_text_like_any_other() -> None:
    """A model's arguments may hold one once their own escapes are read; no exception but ours comes of it."""
    assert strict_json.loads('{"value": "\ud800"}') == {"value": "\ud800"}
    with pytest.raises(JSONError):
        strict_json.loads('{"value": "\ud800"')


def test_a_number_past_every_float_is_named_where_it_must_come_back() -> None:
    """1e999 is legal JSON; read as an infinity, it would be written as null."""
    with pytest.raises(JSONError, match=r"\$\.a\[0\] is inf"):
        strict_json.refuse_overflow(strict_json.loads('{"a": [1e999]}'))


def test_what_is_too_deep_or_too_long_to_write_is_said_to_be_so() -> None:
    """Never a RecursionError; the reason is the right one."""
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(JSONError, match="nested too deeply"):
        strict_json.dumps(deep)
    with pytest.raises(JSONError, match="digits"):
        strict_json.dumps({"n": 10**5000})
