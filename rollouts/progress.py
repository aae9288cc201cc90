"""What a person sees of a run: a live line on a terminal, plain lines elsewhere, a table at the end."""

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from rollouts.statistics import Slow, Statistics
from rollouts.summary import EnvironmentSummary, Summary, Tick

LINE_EVERY_S = 10.0  # without a terminal
REDRAW_EVERY_S = 0.1
METRICS_SHOWN = 8


class Quiet:
    """Says nothing."""

    def started(self, tick: Tick) -> None: ...
    def ticked(self, tick: Tick) -> None: ...
    def note(self, message: str) -> None: ...
    def finished(self, summary: Summary) -> None: ...


class Lines:
    """A line every few seconds, for logs.

    Args:
        console: Where to.
        every_s: Seconds between two lines.
    """

    def __init__(self, console: Console, every_s: float = LINE_EVERY_S) -> None:
        self._console, self._every_s = console, every_s
        self._last = 0.0

    def started(self, tick: Tick) -> None:
        self._say(tick)

    def ticked(self, tick: Tick) -> None:
        if time.monotonic() - self._last >= self._every_s or tick.done == tick.total:
            self._say(tick)

    def note(self, message: str) -> None:
        plain(self._console, message)

    def finished(self, summary: Summary) -> None:
        show(summary, self._console)

    def _say(self, tick: Tick) -> None:
        self._last = time.monotonic()
        plain(self._console, describe(tick))


class Bar:
    """One line that is drawn again and again, for a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), console=console, transient=True, auto_refresh=False
        )
        self._drawn = 0.0

    def started(self, tick: Tick) -> None:
        self._task = self._progress.add_task(describe(tick), total=tick.total, completed=tick.done)
        self._progress.start()
        self._progress.refresh()

    def ticked(self, tick: Tick) -> None:
        if time.monotonic() - self._drawn >= REDRAW_EVERY_S or tick.done == tick.total:
            self._drawn = time.monotonic()
            self._progress.update(self._task, description=describe(tick), completed=tick.done, refresh=True)

    def note(self, message: str) -> None:
        plain(self._console, message)

    def finished(self, summary: Summary) -> None:
        self._progress.stop()
        show(summary, self._console)


class Patient(Console):
    """A console whose reader may leave (`| head`, a closed terminal): what follows is not shown, and the run goes on."""

    def on_broken_pipe(self) -> None:
        """Send what is left, and what the interpreter flushes at its end, nowhere."""
        self.quiet = True
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), self.file.fileno())


def reporter(console: Console) -> Lines | Bar:
    """What suits the console."""
    return Bar(console) if console.is_terminal else Lines(console)


def describe(tick: Tick) -> str:
    """`12/40 · 11 ok · 1 failed · mean reward 0.73 · 310 tokens/s · 1 min 20 s left`."""
    parts = [f"{tick.done}/{tick.total}", f"{tick.ok} ok", f"{tick.failed} failed"]
    if tick.mean_reward is not None:
        parts.append(f"mean reward {tick.mean_reward:.3g}")
    if tick.tokens_per_s > 0:
        parts.append(f"{tick.tokens_per_s:.0f} tokens/s")
    if tick.left_s is not None and tick.done < tick.total:
        parts.append(f"{duration(tick.left_s)} left")
    return " · ".join(parts)


def show(summary: Summary, console: Console) -> None:
    """The tables, the findings, and last the line that counts everything."""
    console.print(_environments(summary.environments))
    for line in _details(summary):
        plain(console, line)
    for finding in summary.findings:
        plain(console, f"! {finding}")
    if summary.stopped:
        plain(console, f"stopped early: {summary.stopped}; the same command goes on")
    plain(console, f"{summary.line} -> {summary.output}")


def duration(seconds: float) -> str:
    """`0.31 s`, `42 s`, `3 min 5 s`, `2 h 4 min`."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def plain(console: Console, text: str) -> None:
    """Print a text as it is: no markup is looked for, no line broken."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _environments(parts: Sequence[EnvironmentSummary]) -> Table:
    table = Table("environment", "ok", "failed", "missing", "mean reward", "steps", "tokens")
    for part in parts:
        statistics = part.statistics
        rewards = statistics.rewards
        table.add_row(
            part.name,
            *(str(each) for each in (part.counts.ok, part.counts.failed, part.counts.missing)),
            f"{rewards.mean:.3f} ± {rewards.std:.3f}" if rewards.n else "-",
            f"{statistics.steps.mean:.1f}" if statistics.steps.n else "-",
            str(statistics.output_tokens),
        )
    return table


def _details(summary: Summary) -> Iterator[str]:
    statistics = summary.statistics
    if statistics.outcomes:
        yield "outcomes: " + ", ".join(f"{name} {count}" for name, count in statistics.outcomes.most_common())
    if statistics.metrics:
        shown = list(statistics.metrics.items())[:METRICS_SHOWN]
        yield "metrics: " + ", ".join(f"{name} {mean.mean:.4g}" for name, mean in shown)
    if summary.kinds:
        yield "failed: " + ", ".join(f"{kind} {count}" for kind, count in summary.kinds.most_common())
    if statistics.timed:
        yield f"time: {_where_time_went(statistics)}"
        yield "slowest: " + ", ".join(_slow(each) for each in sorted(statistics.slowest, reverse=True))
    if summary.groups:
        yield "groups: " + ", ".join(f"{name} {count}" for name, count in summary.groups.most_common())
    apart = {
        "retried": summary.retried,
        "extra": summary.counts.extra,
        "cancelled": summary.cancelled,
        "not of this run": summary.outside,
    }
    if any(apart.values()):
        yield "beside these: " + ", ".join(f"{count} {name}" for name, count in apart.items() if count)


def _where_time_went(statistics: Statistics) -> str:
    total = statistics.total_s
    parts = {
        "model": statistics.model_s,
        "tools": statistics.tool_s,
        "seed": statistics.seed_s,
        "verify": statistics.verify_s,
    }
    parts["waiting"] = max(0.0, total - sum(parts.values()))
    each = total / statistics.timed
    return f"{duration(each)} each: " + ", ".join(
        f"{name} {seconds / (total or 1):.0%}" for name, seconds in parts.items()
    )


def _slow(slow: Slow) -> str:
    return f"{duration(slow.seconds)} (task {slow.task_index}, repeat {slow.rollout_index}, {slow.outcome})"
