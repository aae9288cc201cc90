"""Episodes ask in the background; the trainer's thread answers those who wait together."""

import asyncio
from collections.abc import Iterator, Sequence

import pytest

from rollouts.trainers.background import Background
from rollouts.trainers.desk import Answer, Desk, Job


@pytest.fixture
def background() -> Iterator[Background]:
    """A loop in a thread of its own."""
    loop = Background("test")
    yield loop
    loop.close()


def echo(jobs: Sequence[Job]) -> list[Answer]:
    return [Answer(job.prompt, [0.0] * len(job.prompt), True, "1") for job in jobs]


async def ask(desk: Desk, numbers: Sequence[int]) -> list[list[int]]:
    answers = await asyncio.gather(*(desk.ask([each], None, None) for each in numbers))
    return [each.ids for each in answers]


def test_requests_that_wait_together_are_one_batch(background: Background) -> None:
    """Each gets its own answer."""
    desk = Desk()
    asking = background.start(ask(desk, range(8)))
    assert desk.serve(asking, lambda: 8, echo) == [[each] for each in range(8)]
    assert desk.batches == [8]


def test_what_the_generator_raises_is_raised_to_the_trainer(background: Background) -> None:
    """And the episodes learn of it too, so that nobody waits for ever."""
    desk = Desk()

    def broken(jobs: Sequence[Job]) -> list[Answer]:
        raise MemoryError("no room")

    asking = background.start(ask(desk, [1]))
    with pytest.raises(MemoryError):
        desk.serve(asking, lambda: 1, broken)
    assert isinstance(asking.exception(5), MemoryError)


def test_a_request_that_was_given_up_is_not_generated(background: Background) -> None:
    """A rollout out of time does not cost the trainer anything more."""
    desk = Desk()
    given_up = background.start(ask(desk, [1]))
    while desk._jobs.empty():
        pass
    given_up.cancel()
    seen: list[int] = []

    def note(jobs: Sequence[Job]) -> list[Answer]:
        seen.extend(job.prompt[0] for job in jobs)
        return echo(jobs)

    background.run(asyncio.sleep(0))
    assert desk.serve(background.start(ask(desk, [2])), lambda: 1, note) == [[2]]
    assert seen == [2]


def test_what_a_background_holds_is_left_when_it_closes() -> None:
    """The last one first, and a second close does nothing."""
    left: list[int] = []

    class Held:
        def __init__(self, number: int) -> None:
            self.number = number

        async def __aenter__(self) -> int:
            return self.number

        async def __aexit__(self, *_: object) -> None:
            left.append(self.number)

    background = Background("test")
    assert [background.hold(Held(1)), background.hold(Held(2))] == [1, 2]
    background.close()
    background.close()
    assert left == [2, 1]


def test_what_cannot_be_entered_is_told_to_who_asked(background: Background) -> None:
    """With its own error."""

    class Shut:
        async def __aenter__(self) -> int:
            raise OSError("shut")

        async def __aexit__(self, *_: object) -> None: ...

    with pytest.raises(OSError, match="shut"):
        background.hold(Shut())
