"""What a tool returns, as the text that the model reads."""

from typing import Any

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from resources_server.sessions import Reply
from wire import strict_json

TEXTS = (str, bytes, bytearray, memoryview)
TEXT = b"text/plain; charset=utf-8"


def output(value: Any, max_bytes: int) -> Reply:
    """The reply for a tool's return value: text as it is, anything else as JSON; cut where it is too long, with a mark.

    Bytes that are no UTF-8 become replacement characters; NaN and infinities become the strings "NaN" and "Infinity".

    Raises:
        TypeError: The value has no JSON form.
    """
    if isinstance(value, TEXTS):
        body, content_type = _text(value), TEXT
    else:
        body, content_type = _json(value), b"application/json"
    if len(body) > max_bytes:
        return Reply(cut(body, max_bytes), 200, TEXT)
    return Reply(body, 200, content_type)


def step_output(step: dict[str, Any], max_bytes: int) -> Reply:
    """The reply for a game's step: JSON at any size, since only what the player sees is cut. Raises as `output`."""
    body = _json(step)
    if len(body) > max_bytes:
        body = _json({**step, "observation": output(step["observation"], max_bytes).body.decode()})
    return Reply(body, 200, b"application/json")


def cut(body: bytes, max_bytes: int) -> bytes:
    """The beginning of a text, on a character's boundary, and a mark that says how much is missing."""
    mark = f"\n[output cut: {len(body)} bytes, of which the first {max_bytes} are shown]".encode()
    return body[:max_bytes].decode(errors="ignore").encode() + mark


def _text(value: str | bytes | bytearray | memoryview) -> bytes:
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError:  # lone surrogates, such as os.fsdecode makes of bytes that are no UTF-8
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
    return bytes(value).decode(errors="replace").encode()


def _json(value: Any) -> bytes:
    try:
        return to_json(value, bytes_mode="utf8", inf_nan_mode="strings")
    except (PydanticSerializationError, UnicodeDecodeError):
        try:
            return strict_json.dumps(_plain(to_jsonable_python(_plain(value), inf_nan_mode="strings")))
        except (PydanticSerializationError, strict_json.JSONError, RecursionError) as error:
            raise TypeError(str(error)) from None


def _plain(value: Any) -> Any:
    """The value with bytes and lone surrogates made into text; other types are left alone."""
    if isinstance(value, dict):
        return {_plain(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    if isinstance(value, TEXTS):
        return _text(value).decode()
    return value
