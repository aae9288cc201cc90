"""Rows in, scored lines out: starts rollouts while slots are free, commits each as it ends, decides what is run again.

`collect` runs a plan; `check_inputs` does everything that can fail before the first call. What is on disk is right at any instant: a
collector that is killed and started again goes on where it was.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from rollouts import groups, lines, schedule
from rollouts.attempt import Player, Timing
from rollouts.filtering import WINDOW, Filter
from rollouts.findings import findings
from rollouts.fingerprint import Record
from rollouts.gate import Gate
from rollouts.inputs import Inputs, check_inputs, group_size
from rollouts.keys import PERMANENT, SPENT, WAITING, Counts
from rollouts.lines import Identity, Line
from rollouts.plan import Plan, Reporter
from rollouts.schedule import Key, Part, Schedule
from rollouts.statistics import failure_of
from rollouts.summary import EnvironmentSummary, Summary, Tick
from wire import strict_json
from wire.client import Client
from wire.errors import Failed, TriviumError

__all__ = ["Inputs", "check_inputs", "collect"]

INTERRUPTED = "interrupted"
LONGEST_RETRY_WAIT_S = 60.0
SHORTEST_RETRY_WAIT_S = 0.1  # where there is a wait at all


async def collect(plan: Plan, reporter: Reporter, inputs: Inputs | None = None) -> Summary:
    """Run a plan to its end, or to where it is told to stop.

    Args:
        plan: With the client, which has the addresses of the sources' servers.
        reporter: Hears how it goes.
        inputs: What `check_inputs` returned; it is called here where it was not before. Its files are closed at the end.

    Raises:
        UsageError: as `check_inputs`; or a file can no longer be read or written. What was written until then is whole.
    """
    assert plan.client is not None, "a plan needs a client to be run"
    inputs = inputs or check_inputs(plan)
    try:
        return await _Collector(plan, plan.client, reporter, inputs).run()
    finally:
        inputs.close()


class _Collector:
    """The state of one run."""

    def __init__(self, plan: Plan, client: Client, reporter: Reporter, inputs: Inputs) -> None:
        self._plan, self._settings, self._reporter, self._inputs = plan, plan.settings, reporter, inputs
        self._gates = {
            name: Gate(client, name, plan.settings.agent_wait_s, reporter.note)
            for name in sorted({each.agent_server for each in plan.sources})
        }
        self._players = [
            Player(client, each, self._gates[each.agent_server], plan.settings.timeout_s, plan.settings.grace_s)
            for each in plan.sources
        ]
        self._schedule = _schedule(inputs)
        window = max(WINDOW, 4 * plan.settings.concurrency)
        self._filter = Filter(plan.settings.max_filtered_share, plan.settings.max_failure_share, window)
        self._config_sha256 = inputs.run.config_sha256
        self._in_flight: dict[Key, asyncio.Task[None]] = {}
        self._again: dict[
            Key, float
        ] = {}  # when what failed may be given out again, once its attempt has left its slot
        self._closed = bytearray(inputs.rows.tasks)
        self._groups: Counter[str] = Counter()
        self._counts = inputs.counts()
        self._began, self._tokens_before = time.monotonic(), inputs.statistics.output_tokens
        self._done_before = self._counts.ok + self._counts.failed
        self._ran = self._retried = self._cancelled = self._failed = self._left_out = 0
        self._told: set[str] = set()
        self._stopped: str | None = None
        self._interrupted = False
        self._finished = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    async def run(self) -> Summary:
        torn = self._inputs.journal.begin(fresh=self._plan.fresh)
        Record(self._inputs.journal.run, self._inputs.journal.rows).save(self._inputs.run, self._inputs.digests)
        if torn:
            self._reporter.note(f"cut a torn last line ({torn} bytes); its rollout is run again")
        for note in self._inputs.notes:
            self._reporter.note(note)
        for task in () if self._inputs.keys.untouched else self._inputs.rows:
            self._close_group(task)
        self._reporter.started(self._tick())
        await self._play_all()
        summary = self._summary()
        self._reporter.finished(summary)
        return summary

    async def _play_all(self) -> None:
        watchers = [asyncio.create_task(each) for each in (self._watch_stop(), self._watch_clock())]
        broken: list[BaseException] = []  # raised below: Python before 3.11.4 wraps what an `except*` raises
        try:
            async with asyncio.TaskGroup() as self._tasks:
                self._fill()
                await self._until_finished()
        except* TriviumError as errors:
            broken.extend(errors.exceptions)
        finally:
            if self._timer is not None:
                self._timer.cancel()
            for each in watchers:
                each.cancel()
            await asyncio.gather(*watchers, *(gate.close() for gate in self._gates.values()), return_exceptions=True)
        if broken:
            raise broken[0]

    async def _until_finished(self) -> None:
        try:
            await self._finished.wait()
        except asyncio.CancelledError:
            self._stopped = self._stopped or INTERRUPTED
            raise

    def _fill(self) -> None:
        """Start rollouts while slots are free; notice when nothing is left."""
        now = time.monotonic()
        while self._stopped is None and len(self._in_flight) < self._settings.concurrency:
            key = self._schedule.take(now, self._fits)
            if key is None:
                break
            started = self._in_flight[key] = self._tasks.create_task(self._rollout(key))
            started.add_done_callback(partial(self._ended, key))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._stopped is None and len(self._in_flight) < self._settings.concurrency:
            self._wake_at(self._schedule.next_at(), now)
        if self._timer is None and not self._in_flight:
            self._finished.set()

    def _wake_at(self, due: float | None, now: float) -> None:
        """Fill the free slots when the next rollout that waits may start."""
        if due is not None:
            self._timer = asyncio.get_running_loop().call_later(max(0.001, due - now), self._fill)

    async def _rollout(self, key: Key) -> None:
        """One attempt, from its row to its line."""
        task, sample = key
        timing = Timing()
        source = self._inputs.rows.source_index(task)
        line = await self._players[source].play(self._inputs.rows.read(task), timing)
        self._commit(task, sample, line, timing)

    def _ended(self, key: Key, ended: "asyncio.Task[None]") -> None:
        """Give the slot to the next; a callback, since a task that is cancelled before it has begun runs no `finally`."""
        del self._in_flight[key]
        self._schedule.ended(key)
        if (due := self._again.pop(key, None)) is not None:
            self._schedule.again(key, due)
        self._cancelled += ended.cancelled()
        if not ended.cancelled() and ended.exception() is not None:
            self._stopped = self._stopped or "an error"
        self._fill()

    def _commit(self, task: int, sample: int, line: Line, timing: Timing) -> None:
        """Write the line and decide what follows from it."""
        before, identity = self._count(task), self._identity(task, sample, timing)
        self._inputs.journal.keep_tools(line)
        try:
            text = lines.stamp(line, identity)
        except strict_json.JSONError as error:
            line = lines.without_verdict(self._inputs.rows.parsed(task), Failed("unserialisable", str(error)))
            text = lines.stamp(line, identity)
        self._ran += 1
        if lines.failed(line):
            self._inputs.journal.failure(text)
            self._commit_failure(task, sample, line)
        else:
            self._inputs.journal.rollout(text)
            self._inputs.note(task, line)
            self._filter.ok()
            self._plan.on_verdict()
        self._counts += self._count(task) - before
        self._close_group(task)
        self._stop_if_hopeless()
        self._reporter.ticked(self._tick())

    def _commit_failure(self, task: int, sample: int, line: Line) -> None:
        attempts = self._inputs.keys.attempts(task, sample) + 1
        passes, left = lines.retryable(line), attempts < self._settings.attempts
        alive = self._gates[self._inputs.rows.source(task).agent_server].dead is None
        again = self._filter.failed(may_filter=passes and left and alive)
        again |= (
            passes and left and alive and lines.server_lost(line)
        )  # whoever was there: it may be nobody's but one row's doing
        self._tell_first(line)
        self._inputs.note_failure(task, line, WAITING if again else SPENT if passes else PERMANENT)
        if again:
            self._retried += 1
            self._again[task, sample] = time.monotonic() + self._retry_wait_s(attempts)
        else:
            self._failed += 1
            self._schedule.replace(task)

    def _tell_first(self, line: Line) -> None:
        """The first failure of each kind at once: a person may want to mend its cause and start again."""
        kind, message = failure_of(line)
        if kind not in self._told:
            self._told.add(kind)
            self._reporter.note(f"task {line['task_index']}, repeat {line['rollout_index']}: {kind}: {message}")

    def _identity(self, task: int, sample: int, timing: Timing) -> Identity:
        source = self._inputs.rows.source(task)
        return Identity(
            task_index=task,
            rollout_index=sample,
            attempt=self._inputs.keys.attempts(task, sample) + 1,
            group_size=group_size(self._plan, source),
            environment=source.name,
            agent=source.agent_server,
            run_id=self._inputs.run.run_id,
            config_sha256=self._config_sha256,
            started_at=timing.started_at,
            duration_s=timing.seconds,
        )

    def _retry_wait_s(self, attempts: int) -> float:
        if self._settings.retry_wait_s == 0:
            return 0.0
        longest = min(LONGEST_RETRY_WAIT_S, self._settings.retry_wait_s * 2.0 ** (attempts - 1))
        return max(SHORTEST_RETRY_WAIT_S, random.uniform(longest / 2, longest))

    def _count(self, task: int) -> Counts:
        return self._inputs.keys.counts(task, self._inputs.size(task), self._inputs.extra, over=False)

    def _close_group(self, task: int) -> None:
        """Write the record of a group of which nothing more will be run, and give up what is still in flight of it."""
        size, extra = self._inputs.size(task), self._inputs.extra
        if self._closed[task] or size + extra == 1 or not self._schedule.closed(task):
            return
        self._closed[task] = 1
        record = groups.record(self._inputs.keys, task, size, extra, self._settings.groups)
        for sample in range(size + extra if extra else 0):
            in_flight = self._in_flight.get((task, sample))
            if in_flight is not None and in_flight is not asyncio.current_task():
                in_flight.cancel()
        self._groups.update([record["status"], *record["reasons"]])
        self._inputs.journal.group({**record, "environment": self._inputs.rows.source(task).name})

    def _stop_if_hopeless(self) -> None:
        limit = self._settings.max_failures
        if limit is not None and self._failed >= max(1, limit):
            self._halt(f"{self._failed} rollouts failed (--max-failures {limit})")
        reason = self._filter.too_many()
        if reason is not None:
            gone = [gate.dead for gate in self._gates.values() if gate.dead]
            self._halt("; ".join([reason, *gone]))

    def _halt(self, reason: str) -> None:
        """Start nothing more."""
        if self._stopped is None:
            self._stopped = reason
            self._reporter.note(f"stopping: {reason}")

    def _drop_in_flight(self) -> None:
        for each in self._in_flight.values():
            each.cancel()
        if not self._in_flight:
            self._finished.set()

    async def _watch_stop(self) -> None:
        await self._plan.stop.asked.wait()
        self._interrupted = True
        self._halt(INTERRUPTED)
        self._drop_in_flight()
        await self._plan.stop.at_once.wait()
        self._drop_in_flight()

    async def _watch_clock(self) -> None:
        if self._plan.stop_by is not None:
            await asyncio.sleep(max(0.0, self._plan.stop_by - time.time()))
            self._halt("the time of --stop-by has come")
            self._drop_in_flight()

    def _fits(self, task: int) -> bool:
        """Whether a task can end before the run has to."""
        if self._plan.stop_by is None:
            return True
        known = self._inputs.seconds[task] if self._inputs.seconds else 0.0
        expected = known or self._inputs.statistics.expected_s() or 0.0
        fits = time.time() + expected <= self._plan.stop_by
        self._left_out += not fits
        return fits

    def _tick(self) -> Tick:
        counts, statistics = self._counts, self._inputs.statistics
        done = counts.ok + counts.failed
        seconds = time.monotonic() - self._began
        new = done - self._done_before
        return Tick(
            done=done,
            total=counts.total,
            ok=counts.ok,
            failed=counts.failed,
            in_flight=len(self._in_flight),
            mean_reward=statistics.rewards.mean if statistics.rewards.n else None,
            tokens_per_s=(statistics.output_tokens - self._tokens_before) / seconds if seconds > 0 else 0.0,
            seconds=seconds,
            left_s=seconds / new * (counts.total - done) if new > 0 else None,
        )

    def _summary(self) -> Summary:
        inputs, kinds = self._inputs, Counter[str]()
        for task in inputs.rows:
            size = inputs.size(task)
            if inputs.keys.counts(task, size, inputs.extra).failed:
                kinds.update(inputs.keys.failed_kinds(task, size + inputs.extra))
        parts = [
            EnvironmentSummary(source.name, inputs.counts(index, over=True), inputs.by_source[index])
            for index, source in enumerate(self._plan.sources)
        ]
        summary = Summary(
            output=self._plan.output,
            run_id=inputs.run.run_id,
            tasks=len(inputs.rows),
            counts=sum((each.counts for each in parts), Counts()),
            kinds=kinds,
            statistics=inputs.statistics,
            environments=parts,
            seconds=time.monotonic() - self._began,
            ran=self._ran,
            retried=self._retried,
            cancelled=self._cancelled,
            outside=inputs.outside,
            groups=self._groups,
            stopped=self._stopped or (f"{self._left_out} could not end by --stop-by" if self._left_out else None),
            interrupted=self._interrupted,
        )
        return replace(summary, findings=findings(summary))


def _schedule(inputs: Inputs) -> Schedule:
    plan = inputs.plan
    parts = [
        Part(_ordered(inputs, tasks), group_size(plan, source), source.weight)
        for source, tasks in zip(plan.sources, inputs.rows.by_source(), strict=True)
    ]
    by_task = plan.settings.order == "task"
    return Schedule(
        inputs.keys,
        parts,
        inputs.rows.source_index,
        plan.settings.groups,
        attempts=plan.settings.attempts,
        by_task=by_task,
    )


def _ordered(inputs: Inputs, tasks: Sequence[int]) -> Sequence[int]:
    return schedule.longest_first(tasks, inputs.seconds) if inputs.seconds else tasks
