"""A profile as one HTML file: no script, no font, no address outside itself; plots are SVG."""

import math
from collections.abc import Iterable, Sequence
from html import escape

from rollouts.profile.reading import Profile
from rollouts.profile.report import Prices, comparisons, findings, sentence
from wire.figures import Figures

WIDTH, HEIGHT, LEFT, BOTTOM = 460, 200, 44, 26  # of a plot, in pixels; the last two for its labels
BINS = 20

STYLE = """
:root{color-scheme:light dark;--ink:#1c2333;--soft:#667;--line:#d5d9e2;--mark:#2b6cb0;--paper:#fff}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9f0;--soft:#99a;--line:#3a4152;--mark:#6db1ff;--paper:#151922}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:1000px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem;border-top:1px solid var(--line);padding-top:1rem}
table{border-collapse:collapse;margin:.6rem 0;font-variant-numeric:tabular-nums}
td,th{padding:.2rem .8rem .2rem 0;text-align:right;border-bottom:1px solid var(--line)}
td:first-child,th:first-child{text-align:left}th{color:var(--soft);font-weight:500}
figure{display:inline-block;margin:.5rem 1.2rem .5rem 0}figcaption{color:var(--soft);font-size:.85rem}
svg text{fill:var(--soft);font-size:11px}svg .mark{fill:var(--mark)}svg .axis{stroke:var(--line)}
.note{background:color-mix(in srgb,var(--mark) 10%,transparent);padding:.3rem .7rem;border-left:3px solid var(--mark);margin:.3rem 0}
"""


def page(profile: Profile, prices: Prices) -> str:
    """The whole document."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>Profile</title>",
        f"<style>{STYLE}</style><h1>Is the reward signal any good?</h1>",
        f"<p>{escape(', '.join(str(path) for path in profile.paths))}</p>",
        *(f"<p class=note>{escape(sentence(each))}</p>" for each in comparisons(profile)),
    ]
    for (environment, model), figures in profile.by_key.items():
        parts += _section(environment, model, figures, prices)
    return "\n".join(parts) + "\n"


def _section(environment: str, model: str, figures: Figures, prices: Prices) -> Iterable[str]:
    yield f"<h2>{escape(environment)} — {escape(model)}</h2>"
    yield from (f"<p class=note>{escape(each)}</p>" for each in findings(figures))
    yield _table("what", "value", _facts(figures, prices))
    rewards = [each.rewards.mean for each in figures.scored]
    yield _figure("tasks by mean reward", _histogram(rewards))
    yield _figure("reward against output tokens, one point a rollout", _scatter(figures.points))
    curve = [(float(k), value) for k, value in figures.pass_at().items()]
    if len(curve) > 1:
        yield _figure("pass@k", _scatter(curve, joined=True))
    yield _table("outcome", "rollouts", [(name, str(count)) for name, count in figures.outcomes.most_common()])
    if figures.failures:
        yield _table("no reward", "rollouts", [(name, str(count)) for name, count in figures.failures.most_common()])
    if figures.calls:
        tools = [
            (name, f"{count} ({figures.call_errors[name]} failed)") for name, count in figures.calls.most_common(40)
        ]
        yield _table("tool", "calls", tools)
    if figures.metrics or figures.components:
        numbers = [(name, f"{each.mean:.4g}") for name, each in {**figures.components, **figures.metrics}.items()]
        yield _table("metric", "mean", numbers)


def _facts(figures: Figures, prices: Prices) -> list[tuple[str, str]]:
    mean = figures.mean()
    facts = [
        ("tasks", str(len(figures.tasks))),
        ("rollouts with a reward", str(figures.rewards.n)),
        ("mean reward", "-" if mean is None else f"{mean.mean:.3f} ({mean.low:.3f} to {mean.high:.3f})"),
        *((f"pass@{k}", f"{value:.3f}") for k, value in figures.pass_at().items()),
        *((f"pass^{k}", f"{value:.3f}") for k, value in figures.pass_hat().items() if k > 1),
        ("steps", f"{figures.steps.mean:.2f}"),
        ("output tokens", f"{figures.output_tokens.mean:.0f}"),
        ("seconds in the model / in tools", f"{figures.model_s:.1f} / {figures.tool_s:.1f}"),
    ]
    for label, value in (("best of a group", figures.best()), ("majority answer", figures.majority())):
        if value is not None:
            facts.append((label, f"{value:.3f}"))
    if (share := figures.spread_share()) is not None:
        facts.append(("groups with different rewards", f"{share:.0%}"))
    if prices != Prices():
        facts.append(("cost", f"{prices.of(figures):.4g}"))
    return facts


def _table(left: str, right: str, rows: Sequence[tuple[str, str]]) -> str:
    cells = "".join(f"<tr><td>{escape(name)}<td>{escape(value)}" for name, value in rows)
    return f"<table><tr><th>{left}<th>{right}{cells}</table>"


def _figure(caption: str, svg: str) -> str:
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def _histogram(values: Sequence[float]) -> str:
    if not values:
        return _frame("", (0, 1), (0, 1))
    low, high = min(values), max(values)
    low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
    counts = [0] * BINS
    for value in values:
        counts[min(BINS - 1, int((value - low) / (high - low) * BINS))] += 1
    wide, top = (WIDTH - LEFT) / BINS, max(counts)
    bars = "".join(
        f'<rect class=mark x="{LEFT + place * wide + 1:.1f}" width="{wide - 2:.1f}" '
        f'y="{_y(count, 0, top):.1f}" height="{_y(0, 0, top) - _y(count, 0, top):.1f}"/>'
        for place, count in enumerate(counts)
        if count
    )
    return _frame(bars, (low, high), (0, top))


def _scatter(points: Sequence[tuple[float, float]], *, joined: bool = False) -> str:
    if not points:
        return _frame("", (0, 1), (0, 1))
    xs, ys = [x for x, _ in points], [y for _, y in points]
    x_range, y_range = _range(xs), _range(ys)
    places = [(_x(x, *x_range), _y(y, *y_range)) for x, y in points]
    marks = "".join(f'<circle class=mark r="2.5" fill-opacity=".5" cx="{x:.1f}" cy="{y:.1f}"/>' for x, y in places)
    if joined:
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        marks += f'<polyline points="{line}" fill="none" stroke="var(--mark)"/>'
    return _frame(marks, x_range, y_range)


def _frame(inside: str, x_range: tuple[float, float], y_range: tuple[float, float]) -> str:
    base = HEIGHT - BOTTOM
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">'
        f'<path class=axis fill="none" d="M{LEFT} 4V{base}H{WIDTH - 2}"/>{inside}'
        f'<text x="{LEFT}" y="{HEIGHT - 8}">{x_range[0]:.4g}</text>'
        f'<text x="{WIDTH - 2}" y="{HEIGHT - 8}" text-anchor="end">{x_range[1]:.4g}</text>'
        f'<text x="{LEFT - 6}" y="{base}" text-anchor="end">{y_range[0]:.4g}</text>'
        f'<text x="{LEFT - 6}" y="14" text-anchor="end">{y_range[1]:.4g}</text></svg>'
    )


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (math.floor(low - 0.5), math.ceil(high + 0.5))


def _x(value: float, low: float, high: float) -> float:
    return LEFT + 6 + (value - low) / ((high - low) or 1) * (WIDTH - LEFT - 12)


def _y(value: float, low: float, high: float) -> float:
    return HEIGHT - BOTTOM - (value - low) / ((high - low) or 1) * (HEIGHT - BOTTOM - 10)
