"""A row's question: finding it, replacing it, and what in it must survive a rewording."""

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any

NUMBER_WORDS = (
    "no|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|first|second|third|last|half|all|each|every|none"
)
PATTERNS = (
    re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]*\w"),  # addresses
    re.compile(r"\d[\d.,:/-]*\d|\d"),  # numbers, dates, times, ids
    re.compile(r"[\"“'‘]([^\"”'’\n]{2,80})[\"”'’](?!\w)"),  # quotations
    re.compile(r"(?<=[\w,;:] )[A-Z][\w&-]*(?: [A-Z][\w&-]*)*"),  # names, where no sentence begins
    re.compile(rf"\b(?:{NUMBER_WORDS})\b", re.IGNORECASE),
)
SHORTEST, LONGEST = 3, 40  # characters of a value of the row that is looked for in its prompt


def prompt_of(row: Mapping[str, Any]) -> str:
    """The text of the last user message."""
    message = _last_user(row["responses_create_params"]["input"])
    return message if isinstance(message, str) else _text(message["content"])


def with_prompt(row: Mapping[str, Any], prompt: str) -> dict[str, Any]:
    """The row with another text in its last user message."""
    made: dict[str, Any] = copy.deepcopy(dict(row))
    params = made["responses_create_params"]
    if isinstance(params["input"], str):
        params["input"] = prompt
    else:
        _last_user(params["input"])["content"] = prompt
    return made


def entities(row: Mapping[str, Any]) -> list[str]:
    """What a rewording has to keep: numbers, dates, addresses, names, quotations, and values of the row that its prompt names."""
    prompt = prompt_of(row)
    found = [each if isinstance(each, str) else each[0] for pattern in PATTERNS for each in pattern.findall(prompt)]
    named = [each for each in _leaves(list(truth_of(row).values())) if re.search(rf"(?<!\w){re.escape(each)}", prompt)]
    return list(dict.fromkeys([*found, *named]))


def lost(row: Mapping[str, Any], rewording: str) -> list[str]:
    """Entities that a rewording lacks, and numbers that it has added."""
    kept = rewording.casefold()
    missing = [each for each in entities(row) if each.casefold() not in kept]
    numbers = set(PATTERNS[1].findall(prompt_of(row)))
    return missing + [each for each in PATTERNS[1].findall(rewording) if each not in numbers]


def truth_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row without its prompt and its names."""
    return {key: value for key, value in row.items() if key not in NOT_TRUTH}


NOT_TRUTH = ("responses_create_params", "task_id", "template", "environment", "agent_ref")


def _last_user(items: Any) -> Any:
    if isinstance(items, str):
        return items
    return next(each for each in reversed(items) if each.get("role") == "user")


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves([key, each])
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    elif isinstance(value, str) and SHORTEST <= len(value) <= LONGEST:
        yield value
