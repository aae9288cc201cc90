"""Health of a run: one sentence for each thing that a person would otherwise find a day later."""

from collections.abc import Iterator

from rollouts.statistics import Statistics
from rollouts.summary import Summary

FEW = 3  # calls or rollouts below which nothing is said about a share
MANY_CUT_OFF = 0.1  # share of rollouts
MANY_EMPTY = 0.05
MANY_RETRIES = 0.1  # failed attempts by attempts
MANY_WRONG_CALLS = 0.5  # of one tool's calls


def findings(summary: Summary) -> list[str]:
    """What is remarkable about a run, the worst first."""
    found = [*_failures(summary)]
    for part in summary.environments:
        prefix = f"{part.name}: " if len(summary.environments) > 1 else ""
        found += [prefix + each for each in of_environment(part.statistics)]
    return found + list(_groups(summary))


def _failures(summary: Summary) -> Iterator[str]:
    for kind, count in summary.kinds.most_common():
        message = summary.statistics.first_messages.get(kind, "")
        yield f"{count} failed with {kind}" + (f", the first: {message}" if message else "")
    ended = summary.statistics.n + sum(summary.statistics.failed_attempts.values())
    failed = sum(summary.statistics.failed_attempts.values())
    if ended >= FEW and failed > summary.counts.failed and failed / ended >= MANY_RETRIES:
        yield f"{failed} of {ended} attempts failed ({_most(summary.statistics)}); most of the time of a retried rollout is lost"


def of_environment(statistics: Statistics) -> Iterator[str]:
    """What is remarkable about the rollouts of one environment."""
    n = statistics.n
    yield from _tools(statistics)
    cut = statistics.outcomes["max_output_tokens"]
    if n and cut / n >= MANY_CUT_OFF:
        yield f"{cut} of {n} answers were cut off by the token limit: raise max_output_tokens, or expect low rewards"
    for outcome, advice in _ADVICE.items():
        if n and statistics.outcomes[outcome] / n >= MANY_CUT_OFF:
            yield f"{statistics.outcomes[outcome]} of {n} episodes ended with {outcome}: {advice}"
    if n >= FEW and statistics.empty / n >= MANY_EMPTY:
        yield f"{statistics.empty} of {n} answers are empty"
    rewards = statistics.rewards
    if rewards.n >= FEW and rewards.lowest == rewards.highest:
        yield f"all {rewards.n} rewards are {rewards.lowest:g}: nothing to learn from, or a verdict that does not look"
    drifted = statistics.fidelity["retokenized"] + statistics.fidelity["forked"]
    if drifted:
        steps = sum(statistics.fidelity.values())
        yield f"tokens of {drifted} of {steps} steps do not continue the step before: they are left out of token-level exports"


_ADVICE = {
    "context_window": "the model's context is too short for them",
    "max_steps": "raise agent_server.max_steps if they were on their way",
    "stalled": "the model answers with neither text nor a call",
    "content_filter": "the model's server withholds its answers",
}


def _tools(statistics: Statistics) -> Iterator[str]:
    for name, calls in statistics.calls.most_common():
        wrong = statistics.wrong_calls[name]
        if calls >= FEW and wrong == calls:
            yield f"tool {name} never worked: all {calls} calls of it failed"
        elif calls >= FEW and wrong / calls >= MANY_WRONG_CALLS:
            yield f"tool {name}: {wrong} of {calls} calls failed"


def _groups(summary: Summary) -> Iterator[str]:
    closed = sum(summary.groups.values())
    equal = summary.groups["equal_reward"]
    if equal and closed >= FEW and equal / closed >= 0.5:
        yield f"{equal} of {closed} groups have equal rewards: they give a group-relative trainer nothing"


def _most(statistics: Statistics) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in statistics.failed_attempts.most_common(3))
