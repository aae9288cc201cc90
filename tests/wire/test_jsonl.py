"""JSON lines: odd but legal files are read, bad ones named by line, torn tails cut back."""

from pathlib import Path

import pytest

from wire import jsonl
from wire.errors import UsageError


def test_windows_files_are_read(tmp_path: Path) -> None:
    """Byte order mark, CRLF, blank lines, no newline at the end: physical line numbers are kept."""
    path = tmp_path / "odd.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a":1}\r\n\r\n   \n{"a":2}')
    assert list(jsonl.read(path)) == [(1, {"a": 1}), (4, {"a": 2})]


def test_a_line_separator_inside_a_text_does_not_split_the_record(tmp_path: Path) -> None:
    """U+2028 is an ordinary character: records end at a newline only."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"a":"x\u2028y"}\n', encoding="utf-8")
    assert [value for _, value in jsonl.read(path)] == [{"a": "x\u2028y"}]


@pytest.mark.parametrize(
    ("line", "words"), [('{"task_id": "t2",', "not JSON"), ("[1,2]", "a list"), ('{"a": NaN}', "not JSON")]
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, words: str) -> None:
    """The message has file and physical line."""
    path = tmp_path / "bad.jsonl"
    path.write_text(f'{{"a":1}}\n\n{line}\n')
    with pytest.raises(UsageError, match=rf"bad\.jsonl:3: .*{words}"):
        list(jsonl.read(path))


@pytest.mark.parametrize(("content", "kept"), [(b'{"a":1}\n{"a', 8), (b'{"a":1}\n', 8), (b'{"a', 0), (b"", 0)])
def test_a_torn_tail_is_cut_back_to_the_last_newline(tmp_path: Path, content: bytes, kept: int) -> None:
    """Whole lines stay as they are."""
    path = tmp_path / "torn.jsonl"
    path.write_bytes(content)
    assert jsonl.mend_tail(path) == len(content) - kept
    assert path.read_bytes() == content[:kept]


def test_a_torn_tail_longer_than_a_block_is_found(tmp_path: Path) -> None:
    """A line of a long episode is larger than what is read at a time."""
    path = tmp_path / "torn.jsonl"
    path.write_bytes(b"{}\n" + b"x" * 300_000)
    assert jsonl.mend_tail(path) == 300_000


def test_a_record_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    """The line is built whole before the first byte is written."""
    path = tmp_path / "out.jsonl"
    with jsonl.Appender(path) as out:
        out.append({"a": 1})
        with pytest.raises(ValueError, match="nan"):
            out.append({"a": float("nan")})
    assert path.read_bytes() == b'{"a":1}\n'
