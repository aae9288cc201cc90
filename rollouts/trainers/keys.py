"""How a prompt says which row it is: TRL hands a `rollout_func` nothing but prompts, so the key travels in the first message."""

from typing import Any

from wire.errors import UsageError

KEY = "trivium_row"  # a column, and a field of the messages of a prompt
SEPARATOR = "#"  # between the rows' file and the index in it


def write_key(task: int, file: str = "") -> str:
    """`17` for a row of the config's own data set, `/path/rows.jsonl#17` for one of another file."""
    return f"{file}{SEPARATOR}{task}" if file else str(task)


def read_key(key: str) -> tuple[str, int]:
    """The file ("" for the config's own) and the index."""
    file, _, task = key.rpartition(SEPARATOR)
    if not task.isdecimal():
        raise UsageError(f"{KEY} is {key!r}; it is an index, or FILE{SEPARATOR}INDEX")
    return file, int(task)


def key_of(prompt: Any) -> tuple[str, int]:
    """The key of a prompt.

    Raises:
        UsageError: it has none.
    """
    first = prompt[0] if isinstance(prompt, list) and prompt else None
    key = first.get(KEY) if isinstance(first, dict) else None
    if not isinstance(key, str):
        raise UsageError(
            f"a prompt does not say which row it is ({KEY}); take train_dataset from rollouts.trainers.trl.dataset"
        )
    return read_key(key)
