"""Which rollout is next, and which failures are run again: pure."""

import pytest

from rollouts.filtering import Filter
from rollouts.keys import OK, PERMANENT, SERVER_LOST, SPENT, WAITING, Counts, Keys
from rollouts.schedule import Key, Part, Schedule, longest_first
from rollouts.settings import GroupSettings


def schedule(keys: Keys, *parts: Part, by_task: bool = True, attempts: int = 3, **groups: object) -> Schedule:
    """Over consecutive tasks of each part."""
    owner = {task: index for index, part in enumerate(parts) for task in part.tasks}
    settings = GroupSettings.model_validate(groups)
    return Schedule(keys, parts, owner.__getitem__, settings, attempts=attempts, by_task=by_task)


def drained(planned: Schedule, now: float = 0.0) -> list[Key]:
    """Everything that can start now."""
    return list(iter(lambda: planned.take(now), None))


def test_what_has_ended_is_not_started() -> None:
    """A verdict, spent attempts, a permanent cause; one that has an attempt left is."""
    keys = Keys(4, 1, rewards=False)
    keys.succeed(0, 0, 1.0)
    keys.fail(1, 0, "timeout", SPENT)
    keys.fail(2, 0, "timeout", WAITING)
    assert drained(schedule(keys, Part(range(4), 1))) == [(2, 0), (3, 0)]


def test_a_retry_waits_for_its_time() -> None:
    """It is not given out before, and comes before what has not started then."""
    planned = schedule(Keys(3, 1, rewards=False), Part(range(3), 1))
    assert planned.take(0.0) == (0, 0)
    planned.again((0, 0), 5.0)
    assert planned.take(1.0) == (1, 0) and planned.next_at() == 5.0
    assert planned.take(6.0) == (0, 0) and planned.take(6.0) == (2, 0) and planned.take(6.0) is None


def lost(keys: Keys, planned: Schedule, *taken: Key) -> None:
    """A server died under these, which were in flight together."""
    for key in taken:
        keys.fail(*key, "agent_lost", WAITING, SERVER_LOST)
        planned.ended(key)
        planned.again(key, 0.0)


def well(keys: Keys, planned: Schedule, *taken: Key) -> None:
    """These have a verdict."""
    for key in taken:
        keys.succeed(*key, 1.0)
        planned.ended(key)


def test_the_last_attempt_of_a_suspect_is_alone() -> None:
    """Of two attempts one is lost: each waits until nothing else is left or in flight, and nothing starts beside it."""
    keys = Keys(5, 2, rewards=False)
    planned = schedule(keys, Part(range(5), 1), attempts=2, policy="refill")
    first, second = planned.take(0.0), planned.take(0.0)
    assert first and second
    lost(keys, planned, first, second)
    assert drained(planned) == [(2, 0), (3, 0), (4, 0)], "what is new comes first"
    for key in ((2, 0), (3, 0)):
        assert planned.take(0.0) is None, "not while anything is in flight"
        well(keys, planned, key)
    keys.fail(4, 0, "timeout", WAITING)
    planned.ended((4, 0))
    planned.again((4, 0), 9.0)
    assert planned.take(0.0) is None and planned.next_at() == 9.0, "nor while anything is still to come"
    assert planned.take(9.0) == (4, 0)
    well(keys, planned, (4, 0))

    assert drained(planned, 9.0) == [first], "one at a time"
    planned.again((first[0], 1), 0.0)
    assert planned.take(9.0) is None and planned.next_at() is None, "not even what is called for meanwhile"
    keys.fail(*first, "agent_lost", SPENT, SERVER_LOST)
    planned.ended(first)
    assert planned.take(9.0) == (first[0], 1)
    well(keys, planned, (first[0], 1))
    assert drained(planned, 9.0) == [second]


def test_suspects_that_end_meanwhile_or_do_not_fit_are_not_waited_for() -> None:
    """Their group has enough, or the time is short: the next one is asked."""
    keys = Keys(3, 1, rewards=False)
    planned = schedule(keys, Part(range(3), 1), attempts=2)
    lost(keys, planned, *drained(planned))
    keys.succeed(0, 0, 1.0)
    assert planned.take(0.0, lambda task: task != 1) == (2, 0)


def test_suspects_with_attempts_to_spare_run_few_at_a_time() -> None:
    """About the square root of them; one more for each that ends well, and few again when a server dies."""
    keys = Keys(30, 1, rewards=False)
    planned = schedule(keys, Part(range(17), 1))
    lost(keys, planned, *drained(planned))
    at_first = drained(planned)
    assert at_first == [(task, 0) for task in range(4)]
    well(keys, planned, *at_first[:2])
    more = drained(planned)
    assert len(more) == 4, "in place of the two that ended, and two more"
    lost(keys, planned, *at_first[2:], *more)
    assert len(drained(planned)) == 3, "of nine that are left, and the six wait for the end"


@pytest.mark.parametrize("killers", [{7}, {0, 100, 255}])
def test_killers_cost_few_rounds_and_nobody_else(killers: set[int]) -> None:
    """256 at once, one or three of them kill the server whenever they run; one by one would be 256 rounds and more."""
    keys = Keys(256, 1, rewards=False)
    planned = schedule(keys, Part(range(256), 1))
    rounds = 0
    while taken := drained(planned):
        rounds += 1
        if killers.isdisjoint(task for task, _ in taken):
            well(keys, planned, *taken)
            continue
        for key in taken:
            spent = keys.attempts(*key) == 2
            keys.fail(*key, "agent_lost", SPENT if spent else WAITING, SERVER_LOST)
            planned.ended(key)
            if not spent:
                planned.again(key, 0.0)
    assert {task for task in range(256) if keys.state(task, 0) != OK} == killers
    assert rounds < 110


def test_a_task_that_does_not_fit_is_left_out() -> None:
    """The shorter ones behind it still start."""
    planned = schedule(Keys(3, 1, rewards=False), Part(range(3), 1))
    assert planned.take(0.0, lambda task: task == 2) == (2, 0)


def test_a_hedged_group_that_has_enough_starts_nothing_more() -> None:
    """Of two and one extra, the third is not started when two have ended."""
    keys = Keys(1, 3, rewards=True)
    planned = schedule(keys, Part(range(1), 2), policy="hedge", extra=1)
    keys.succeed(0, 0, 1.0)
    keys.succeed(0, 2, 1.0)
    assert drained(planned) == [] and planned.closed(0)


def test_replacements_are_bounded_and_survive_a_restart() -> None:
    """Each member that failed for good calls for one, up to `extra`; a resumed run calls for what is left."""
    keys = Keys(1, 5, rewards=True)
    first = schedule(keys, Part(range(1), 3), policy="refill", extra=2)
    assert drained(first) == [(0, 0), (0, 1), (0, 2)]
    keys.fail(0, 0, "model_refused", PERMANENT)
    first.replace(0)
    assert drained(first) == [(0, 3)] and not first.closed(0)

    again = schedule(keys, Part(range(1), 3), policy="refill", extra=2)
    assert drained(again) == [(0, 1), (0, 2), (0, 3)]


def test_longest_first() -> None:
    """Unknown ones count as the mean of the known."""
    assert list(longest_first([0, 1, 2, 3], [1.0, 0.0, 9.0, 2.0])) == [2, 1, 3, 0]
    assert list(longest_first(range(2), [0.0, 0.0])) == [0, 1]


def test_counts_add_up() -> None:
    """ok + failed + missing is the group's size; what stands in for a failed member is counted apart."""
    keys = Keys(1, 4, rewards=False)
    keys.succeed(0, 0, 1.0)
    keys.fail(0, 1, "timeout", WAITING)
    assert keys.counts(0, 2, 2, over=False) == Counts(ok=1, missing=1)
    assert keys.counts(0, 2, 2) == Counts(ok=1, failed=1)
    keys.succeed(0, 2, 1.0)
    assert keys.counts(0, 2, 2) == Counts(ok=2, extra=1) and keys.state(0, 2) == OK


def test_a_later_failure_does_not_undo_a_verdict() -> None:
    """A key counts once, and a success wins."""
    keys = Keys(1, 1, rewards=False)
    keys.succeed(0, 0, 1.0)
    keys.fail(0, 0, "timeout", SPENT)
    assert keys.state(0, 0) == OK and keys.attempts(0, 0) == 1


def test_what_is_filtered_is_capped() -> None:
    """At most half of the last ten; as others end well there is room again."""
    window = Filter(0.5, 1.0, window=10)
    assert [window.failed(may_filter=True) for _ in range(6)] == [True] * 5 + [False]
    for _ in range(6):
        window.ok()
    assert window.failed(may_filter=True)


def test_a_run_is_stopped_only_on_a_full_window() -> None:
    """A few failures at the start are not a broken service."""
    window = Filter(0.5, 0.8, window=10)
    for _ in range(9):
        window.failed(may_filter=False)
    assert window.too_many() is None
    window.failed(may_filter=False)
    assert "10 of the last 10" in (window.too_many() or "")
