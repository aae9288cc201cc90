"""Everything that can be wrong before the first rollout: rows, files, and whether what is on disk belongs to this run."""

import importlib
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollouts import durations, fingerprint, lines, schedule
from rollouts.fingerprint import Record, Run
from rollouts.journal import Journal, Line, read
from rollouts.keys import MASKED, NEW, OVER_LONG, PERMANENT, SERVER_LOST, WAITING, Counts, Keys
from rollouts.plan import Plan, Source
from rollouts.rows import RowCheck, Rows
from rollouts.statistics import Statistics, cut_off, duration_s, failure_of
from wire import plugins, strict_json
from wire.errors import Failed, UsageError
from wire.rollout import flat_row

_VERSION_DIGITS = 18  # of a policy version; a training step, or a time in nanoseconds
ENVIRONMENTS = "resources_server.environments"


@dataclass
class Inputs:
    """A run that is ready to start, with what earlier runs have done; holds the output's files until `close`.

    Attributes:
        seconds: How long each task took at most, by task index; 0 where it is not known.
        outside: Lines of tasks or repeats that this run does not ask for.
        notes: What a person should hear before it begins.
    """

    plan: Plan
    rows: Rows
    journal: Journal
    run: Run
    digests: bytes
    keys: Keys
    statistics: Statistics = field(default_factory=Statistics)
    by_source: list[Statistics] = field(default_factory=list)
    seconds: "array[float]" = field(default_factory=lambda: array("f"))
    outside: int = 0
    notes: list[str] = field(default_factory=list)

    def size(self, task: int) -> int:
        """Rollouts of a task that were asked for."""
        return group_size(self.plan, self.rows.source(task))

    @property
    def extra(self) -> int:
        """Samples that a group may have beyond its size."""
        return schedule.extra_samples(self.plan.settings.groups)

    def counts(self, source: int | None = None, *, over: bool = False) -> Counts:
        """How the run stands, or one source's part of it."""
        found = Counts()
        if source is None and self.keys.untouched and len(self.plan.sources) == 1:
            return Counts(missing=len(self.rows) * group_size(self.plan, self.plan.sources[0]))
        for task in self.rows:
            if source is None or self.rows.source_index(task) == source:
                found += self.keys.counts(task, self.size(task), self.extra, over=over)
        return found

    def note(self, task: int, line: Line) -> None:
        """Take a rollout with a verdict into account."""
        provenance = line.get("provenance")
        version = provenance.get("policy_version") if isinstance(provenance, dict) else None
        flags = (OVER_LONG if cut_off(line) else 0) | (MASKED if line.get("mask_sample") else 0)
        self.keys.succeed(task, line["rollout_index"], line["reward"], flags, _number(version))
        source = self.rows.source_index(task)
        for statistics in self._both(source):
            statistics.add(line, self.rows.sources[source].name)
        if self.seconds:
            self.seconds[task] = max(self.seconds[task], duration_s(line) or 0.0)

    def note_failure(self, task: int, line: Line, state: int) -> None:
        """Take a failed attempt into account."""
        kind, _ = failure_of(line)
        self.keys.fail(task, line["rollout_index"], kind, state, SERVER_LOST if lines.server_lost(line) else 0)
        for statistics in self._both(self.rows.source_index(task)):
            statistics.add_failure(line)

    def _both(self, source: int) -> tuple[Statistics, ...]:
        """What a line is added to: the run's sums, and the source's, where those are not the same."""
        if len(self.by_source) == 1:
            return (self.statistics,)
        return self.statistics, self.by_source[source]

    def close(self) -> None:
        """Let go of the files."""
        self.journal.close()
        self.rows.close()


def check_inputs(plan: Plan) -> Inputs:
    """The run, ready to start. Nothing that an earlier run has written is changed.

    Raises:
        UsageError: the rows or the output cannot be used, or the output was made with other rows, config or model.
    """
    rows = Rows(plan.sources, plan.settings.limit, [row_check(source) for source in plan.sources])
    if not plan.output.name:
        raise UsageError(f"cannot write {str(plan.output)!r}: --output names no file")
    try:
        _refuse_own_inputs(plan)
    except OSError as error:  # a name that is too long, a folder that may not be entered
        raise UsageError(f"cannot write {plan.output}: {error.strerror}") from error
    journal = Journal(plan.output)
    try:
        _refuse_foreign(journal)
        return _with_earlier(plan, rows, journal)
    except UsageError:
        journal.close()
        raise


def group_size(plan: Plan, source: Source) -> int:
    """Rollouts per task of a source."""
    return source.repeats or plan.settings.repeats


def row_check(source: Source) -> RowCheck | None:
    """What the source's environment has to say about rows; None for a server that is not ours.

    Raises:
        UsageError: there is no such environment.
    """
    if source.environment is None:
        return None
    room: Any = importlib.import_module("resources_server")
    world: Any = plugins.load(ENVIRONMENTS, source.environment, room.Environment)

    def check(row: Mapping[str, Any]) -> str | None:
        try:
            world.of_row(flat_row(dict(row)))
        except UsageError as error:
            return str(error)
        return None

    return check


def _number(version: Any) -> int | None:
    """A policy version that is a whole number, as a number or in words; None for others."""
    text = str(version)
    return int(text) if text.isdecimal() and len(text) <= _VERSION_DIGITS else None


def _refuse_own_inputs(plan: Plan) -> None:
    beside = [
        plan.output,
        *(plan.output.with_name(f"{plan.output.stem}_{name}.jsonl") for name in ("failures", "groups")),
    ]
    for source in plan.sources:
        for path in beside:
            if source.dataset is not None and path.exists() and path.samefile(source.dataset):
                raise UsageError(f"{path} is the data set itself: give another --output")


def _refuse_foreign(journal: Journal) -> None:
    """Somebody's file of one unfinished line is no torn rollouts file, which has a record beside it: cutting its tail would empty it."""
    if journal.run.exists() or not journal.output.exists() or not journal.output.stat().st_size:
        return
    with journal.output.open("rb") as file:
        if not file.readline().endswith(b"\n"):
            raise UsageError(f"{journal.output} holds something else: give another --output, or delete it first")


def _with_earlier(plan: Plan, rows: Rows, journal: Journal) -> Inputs:
    record = Record(journal.run, journal.rows)
    settings = strict_json.loads(strict_json.dumps(dict(plan.fingerprint)))
    run = Run(settings, [each.name for each in plan.sources], code=dict(plan.code))
    digests = rows.digests()
    samples = max(group_size(plan, each) for each in plan.sources) + schedule.extra_samples(plan.settings.groups)
    keys = Keys(rows.tasks, samples, rewards=samples > 1, versions=plan.settings.groups.stale != "keep")
    inputs = Inputs(plan, rows, journal, run, digests, keys)
    several = len(plan.sources) > 1
    inputs.by_source = [Statistics() if several else inputs.statistics for _ in plan.sources]
    if plan.settings.longest_first:
        inputs.seconds = _earlier_seconds(plan, rows)
    if plan.fresh or not journal.holds_lines():
        return inputs
    before = record.load()
    if before is not None:
        earlier = record.digests()
        fingerprint.refuse_other_config(plan.output, before, run)
        limited = plan.settings.limit is not None or any(each.limit is not None for each in plan.sources)
        fingerprint.refuse_other_rows(plan.output, earlier, rows, limited=limited)
        inputs.run = Run(run.fingerprint, run.sources, before.run_id, before.started_at, code=run.code)
        changed = [name for name, digest in run.code.items() if before.code.get(name, digest) != digest]
        inputs.notes += [
            f"the code of {name} has changed since {plan.output} was begun: what is kept has its old verdicts "
            "(`trivium reverify` judges again, --fresh plays again)"
            for name in changed
        ]
        inputs.digests = fingerprint.extended(earlier, digests)
    _read(inputs, compare=before is None)
    return inputs


def _earlier_seconds(plan: Plan, rows: Rows) -> "array[float]":
    """How long each task took in the run that is named, or in the one that is about to be cleared; the run's own lines come later."""
    seconds = array("f", bytes(4 * rows.tasks))
    earlier = Path(plan.settings.earlier) if plan.settings.earlier else plan.output if plan.fresh else None
    known = durations.of_run(earlier) if earlier else {}
    for task in rows if known else ():
        seconds[task] = known.get(rows.digest(task), 0.0)
    return seconds


def _read(inputs: Inputs, *, compare: bool) -> None:
    """Take the lines of earlier runs into account."""
    for where, line in read(inputs.journal.output):
        key = _key(where, line)
        if lines.failed({"reward": None, **line}) or line.get("failure"):
            raise UsageError(f"{where}: no reward: failed rollouts belong into {inputs.journal.failures}")
        if not _asked_for(inputs, key):
            inputs.outside += 1
            continue
        if inputs.keys.state(*key) != NEW:
            raise UsageError(f"{where}: task {key[0]}, repeat {key[1]} stands in an earlier line too")
        if compare:
            _refuse_other(inputs, where, key[0], line)
        _check_written(where, line)
        inputs.note(key[0], line)
    for where, line in read(inputs.journal.failures):
        key = _key(where, line)
        if not isinstance(failure_of(line)[0], str) or not isinstance((line.get("failure") or {}).get("kind", ""), str):
            raise UsageError(f"{where}: failure.kind is no text; mend the line, or --fresh starts anew")
        if _asked_for(inputs, key):
            inputs.note_failure(key[0], line, WAITING if lines.retryable(line) else PERMANENT)
        else:
            inputs.outside += 1
    settings = inputs.plan.settings
    inputs.keys.settle(settings.attempts, retry_permanent=settings.retry_permanent)
    _tell(inputs)


def _tell(inputs: Inputs) -> None:
    """What is kept is said, and what is not tried again although it failed."""
    counts = inputs.counts()
    if counts.ok:
        inputs.notes.append(f"{counts.ok} rollouts are kept from an earlier run")
    if counts.failed:
        inputs.notes.append(
            f"{counts.failed} rollouts failed there and are not tried again: their attempts are spent (--attempts N gives more) or "
            "their cause was permanent (rollouts.retry_permanent=true); --fresh starts anew"
        )


def _check_written(where: str, line: Line) -> None:
    """Raise, naming the place, for a line that is not as we write it."""
    try:
        lines.check(line)
    except Failed as error:
        raise UsageError(f"{where}: {error}; mend the line, or --fresh starts anew") from None


def _key(where: str, line: Line) -> tuple[int, int]:
    """A line's task and repeat.

    Raises:
        UsageError: it is no rollout line.
    """
    key = line.get("task_index"), line.get("rollout_index")
    if not all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in key):
        raise UsageError(
            f"{where}: no task_index and rollout_index: not a rollout line; give another --output, or --fresh"
        )
    return line["task_index"], line["rollout_index"]


def _asked_for(inputs: Inputs, key: tuple[int, int]) -> bool:
    return key in inputs.keys and key[0] in inputs.rows


def _refuse_other(inputs: Inputs, where: str, task: int, line: Line) -> None:
    """Compare a line with the row it should come from, for want of a record of the run."""
    row = strict_json.loads(inputs.rows.read(task))
    for name in row:
        if name in line and row[name] != line[name]:
            raise UsageError(
                f"{where}: field {name!r} is not that of {inputs.rows.place(task)}, the row of task {task}; --fresh starts anew"
            )
