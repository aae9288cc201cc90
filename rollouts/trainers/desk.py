"""Where episodes wait for the trainer's own thread: they ask in the background, it generates for all that have asked.

A trainer's model may be used in one thread only, the trainer's. So the servers and episodes live in a background loop, and the thread
that called for rollouts serves their requests until the last episode has ended.
"""

import asyncio
import queue
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

GATHER_S = 0.05  # to wait for more requests while episodes are between two of them
LOOK_S = 0.5  # between two looks whether anything is still running

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Answer:
    """What the model made of one prompt."""

    ids: list[int]
    log_probs: list[float]  # natural log under the distribution that was sampled from, one per id
    ended: bool  # by the model's own end of turn
    version: str  # of the weights


@dataclass(frozen=True)
class Job:
    """One prompt that waits."""

    prompt: list[int]
    limit: int | None  # ids of the answer at most
    schema: dict[str, Any] | None  # that the answer is held to, where the generator can
    answer: "Future[Answer]" = field(default_factory=Future)


Generate = Callable[[Sequence[Job]], Sequence[Answer]]


class Desk:
    """Takes requests from the background and has them answered in the trainer's thread."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self.batches: list[int] = []
        """How many prompts each generation of the last `serve` had."""

    async def ask(self, prompt: list[int], limit: int | None, schema: dict[str, Any] | None) -> Answer:
        """An answer, in the background loop. Cancelled, the request is not generated for any more."""
        job = Job(prompt, limit, schema)
        self._jobs.put(job)
        return await asyncio.wrap_future(job.answer)

    def serve(self, episodes: "Future[ResultT]", live: Callable[[], int], generate: Generate) -> ResultT:
        """Generate until `episodes` is done; its result.

        Args:
            episodes: All of them together.
            live: How many are still running: so many requests at most can be waiting at once.
            generate: Called with requests that wait together; what it raises fails those episodes and is raised here.
        """
        self.batches.clear()
        episodes.add_done_callback(lambda _: self._jobs.put(None))
        while not episodes.done():
            waiting = self._gather(live)
            if waiting:
                self._answer(waiting, generate)
        return episodes.result()

    def _gather(self, live: Callable[[], int]) -> list[Job]:
        """Those who wait, once all do or nobody has come for a moment."""
        waiting: list[Job] = []
        until = time.monotonic() + LOOK_S
        while (left := until - time.monotonic()) > 0 and (not waiting or len(waiting) < live()):
            try:
                job = self._jobs.get(timeout=left)
            except queue.Empty:
                break
            if job is None:
                break
            if job.answer.set_running_or_notify_cancel():
                waiting.append(job)
                until = time.monotonic() + GATHER_S
        return waiting

    def _answer(self, waiting: list[Job], generate: Generate) -> None:
        self.batches.append(len(waiting))
        try:
            answers = generate(waiting)
        except BaseException as error:
            for job in waiting:
                job.answer.set_exception(error if isinstance(error, Exception) else RuntimeError(repr(error)))
            raise
        for job, answer in zip(waiting, answers, strict=True):
            job.answer.set_result(answer)
