"""What a tool's docstring tells the model: the description of the tool, and of each argument."""

import inspect
import re
import textwrap
from dataclasses import dataclass

SECTION = re.compile(r"^(Args|Arguments|Parameters|Returns|Return|Raises|Yields|Examples?|Notes?):\s*$")
ARGUMENT = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")
ARGUMENT_SECTIONS = {"Args", "Arguments", "Parameters"}
HIDDEN_SECTIONS = {"Raises"}  # for readers of the code; the model gets the sentence itself when it happens


@dataclass(frozen=True)
class Described:
    """A docstring, taken apart."""

    summary: str  # everything but the arguments
    arguments: dict[str, str]  # argument -> its description, on one line


def describe(docstring: str) -> Described:
    """The parts of a docstring in Google's style; an argument's description may run over several lines."""
    summary: list[str] = []
    listed: list[str] = []
    section = ""
    for line in inspect.cleandoc(docstring).splitlines():
        if heading := SECTION.match(line):
            section = heading[1]
        elif line and not line[0].isspace():
            section = ""  # text at the margin: the section is over
        if section in ARGUMENT_SECTIONS:
            listed += [] if heading else [line]
        elif section not in HIDDEN_SECTIONS:
            summary.append(line)
    return Described(re.sub(r"\n{3,}", "\n\n", "\n".join(summary)).strip(), _arguments("\n".join(listed)))


def _arguments(section: str) -> dict[str, str]:
    """`name: text` at the section's own indent; what is indented deeper belongs to the argument above."""
    found: dict[str, list[str]] = {}
    for line in textwrap.dedent(section).splitlines():
        argument = ARGUMENT.match(line)
        if argument:
            found[argument[1]] = [argument[2]]
        elif found and line.strip():
            found[next(reversed(found))].append(line.strip())
    return {name: " ".join(lines).strip() for name, lines in found.items()}
