"""The rows that a trainer's prompts name."""

from collections.abc import Sequence
from pathlib import Path

from rollouts.inputs import row_check
from rollouts.lines import Line
from rollouts.plan import Source
from rollouts.rows import Rows
from rollouts.settings import RolloutsSettings
from rollouts.sources import sources
from rollouts.stack import Stack
from wire.strict_json import loads


class Tasks:
    """The rows of a stack's environments, or of another file in their place.

    Args:
        stack: Whose environments.
        given: Rows to play in place of the environments' own.

    Raises:
        UsageError: a row is wrong; the message names `file:line`.
    """

    def __init__(self, stack: Stack, given: Path | None = None) -> None:
        self.sources: Sequence[Source] = sources(stack, given=given, mix=None, away=False)
        settings = stack.config.section("rollouts", RolloutsSettings)
        self.rows = Rows(self.sources, settings.limit, [row_check(each) for each in self.sources])

    def row(self, task: int) -> Line:
        """A row by its index."""
        row: Line = loads(self.rows.read(task))
        return row

    def close(self) -> None:
        """Close the files."""
        self.rows.close()
