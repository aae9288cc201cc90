"""Tasks about the web site's visits. The world judges plots; the numbers that are only told are in nobody's way."""

from collections import Counter
from datetime import date, timedelta

from company import SOURCES, Dice
from office import TODAY, Draft, Office, call, check, past_day, say_day, template

METRICS = {
    "total_visits": "total visits",
    "session_duration_seconds": "session duration",
    "user_engaged": "engaged users",
    "visits_direct": "direct visits",
    "visits_referral": "visits by referral",
    "visits_search_engine": "visits from search engines",
    "visits_social_media": "visits from social media",
}
TYPES = ("bar", "line", "scatter", "histogram")
BY_SOURCE = {source: f"visits_{source.replace(' ', '_')}" for source in SOURCES}


@template("analytics")
def plot_since(office: Office, dice: Dice) -> Draft:
    day, metric, kind = past_day(dice, 5, 85), dice.pick(list(METRICS)), dice.pick(TYPES)
    ask = dice.pick(
        (
            "Make a {kind} chart of {metric} since {day}.",
            "Can you plot {metric} from {day} until today as a {kind} chart?",
            "I would like to see {metric} since {day}, {kind} chart please.",
        )
    )
    query = ask.format(kind=kind, metric=METRICS[metric], day=say_day(day))
    yesterday = TODAY - timedelta(days=1)  # the day is not over: both ends are right, as WorkBench's makers came to see
    return Draft(query, [_plot(day, TODAY, metric, kind)], [[_plot(day, yesterday, metric, kind)]])


@template("analytics")
def plot_range(office: Office, dice: Dice) -> Draft:
    first, last = _range(dice)
    metric, kind = dice.pick(list(METRICS)), dice.pick(TYPES)
    ask = dice.pick(
        (
            "Make a {kind} chart of {metric} from {first} to {last}.",
            "Plot {metric} between {first} and {last} as a {kind} chart, please.",
            "A {kind} chart with the {metric} of {first} through {last} would help.",
        )
    )
    query = ask.format(kind=kind, metric=METRICS[metric], first=say_day(first), last=say_day(last))
    return Draft(query, [_plot(first, last, metric, kind)])


@template("analytics")
def plot_two(office: Office, dice: Dice) -> Draft:
    (first, last), kind = _range(dice), dice.pick(TYPES)
    one, two = dice.shuffled(list(METRICS))[:2]
    ask = dice.pick(
        (
            "I need two {kind} charts for {first} to {last}: one of {one}, one of {two}.",
            "Plot {one} and, in a chart of its own, {two} from {first} to {last}. Use {kind} charts.",
            "Two separate {kind} charts please, {one} and {two}, both from {first} until {last}.",
        )
    )
    query = ask.format(kind=kind, one=METRICS[one], two=METRICS[two], first=say_day(first), last=say_day(last))
    return Draft(query, [_plot(first, last, metric, kind) for metric in (one, two)])


@template("analytics")
def plot_month(office: Office, dice: Dice) -> Draft:
    month, last = dice.pick(((9, 30), (10, 31)))
    metric, kind = dice.pick(list(METRICS)), dice.pick(TYPES)
    first = date(2023, month, 1)
    ask = dice.pick(
        (
            "Show me {metric} for the whole of {month} as a {kind} chart.",
            "Draw a {kind} chart of {metric} in {month}, all days of the month.",
            "How did {metric} look in {month}? A {kind} chart of the full month, please.",
        )
    )
    query = ask.format(kind=kind, metric=METRICS[metric], month=f"{first:%B}")
    return Draft(query, [_plot(first, date(2023, month, last), metric, kind)])


@template("analytics")
def plot_every_source(office: Office, dice: Dice) -> Draft:
    (first, last), kind = _range(dice), dice.pick(TYPES)
    ask = dice.pick(
        (
            "Make one {kind} chart of the visits of each traffic source from {first} to {last}, so four charts in all.",
            "For {first} to {last} I want a {kind} chart for every single traffic source.",
            "Plot the visits of all four traffic sources from {first} until {last}, each in a {kind} chart of its own.",
        )
    )
    query = ask.format(kind=kind, first=say_day(first), last=say_day(last))
    return Draft(query, [_plot(first, last, metric, kind) for metric in BY_SOURCE.values()])


@template("analytics")
def plot_busiest_day(office: Office, dice: Dice) -> Draft:
    (first, last), metric = _range(dice), dice.pick(("session_duration_seconds", "user_engaged"))
    counts = Counter(row["date_of_visit"] for row in office.visits_between(first, last)).most_common(2)
    check(len(counts) == 2 and counts[0][1] > counts[1][1])
    ask = dice.pick(
        (
            "Which day from {first} to {last} had the most visits? Make a histogram of {metric} for that one day.",
            "Find the busiest day on the web site between {first} and {last} and plot its {metric} as a histogram.",
            "Plot a histogram of the {metric} on the day with the most visits from {first} through {last}.",
        )
    )
    query = ask.format(first=say_day(first), last=say_day(last), metric=METRICS[metric])
    day = date.fromisoformat(counts[0][0])
    return Draft(query, [_plot(day, day, metric, "histogram")])


@template("analytics", conditional=True)
def plot_if_busy(office: Office, dice: Dice, holds: bool) -> Draft:
    day, limit, kind = past_day(dice, 2, 80), dice.between(6, 16), dice.pick(TYPES)
    visits = len(office.visits_on(day))
    check(visits > 0 and (visits > limit) == holds)
    first = day - timedelta(days=6)
    ask = dice.pick(
        (
            "If there were more than {limit} visits on {day}, make a {kind} chart of total visits from {first} to {day}.",
            "Did {day} have over {limit} visits? Then plot total visits of {first} to {day} as a {kind} chart; otherwise no plot.",
            "Plot total visits from {first} to {day} as a {kind} chart, but only if {day} itself had more than {limit}.",
        )
    )
    query = ask.format(limit=limit, kind=kind, first=say_day(first), day=say_day(day))
    return Draft(query, [_plot(first, day, "total_visits", kind)] if holds else [])


@template("analytics", conditional=True)
def plot_if_source_leads(office: Office, dice: Dice, holds: bool) -> Draft:
    first, last = _range(dice)
    one, two = dice.shuffled(SOURCES)[:2]
    counts = Counter(row["traffic_source"] for row in office.visits_between(first, last))
    check(counts[one] != counts[two] and (counts[one] > counts[two]) == holds)
    ask = dice.pick(
        (
            "Did more visits come from '{one}' than from '{two}' between {first} and {last}? If so, plot the '{one}' "
            "visits of those days "
            "as a line chart.",
            "From {first} to {last}: if '{one}' brought more visits than '{two}', make a line chart of the visits from '{one}'. "
            "If not, do nothing.",
            "Make a line chart of '{one}' visits for {first} to {last} only if they outnumber the '{two}' visits of that time.",
        )
    )
    query = ask.format(one=one, two=two, first=say_day(first), last=say_day(last))
    return Draft(query, [_plot(first, last, BY_SOURCE[one], "line")] if holds else [])


def _range(dice: Dice) -> tuple[date, date]:
    first = past_day(dice, 12, 88)
    return first, first + timedelta(days=dice.between(3, 10))


def _plot(first: date, last: date, metric: str, kind: str) -> dict[str, str]:
    return call("analytics_create_plot", time_min=str(first), time_max=str(last), value_to_plot=metric, plot_type=kind)
