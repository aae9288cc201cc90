"""The learning curve and the statistic that README.md declares, of the lines alone: `python examples/grpo_cpu/plot.py RESULTS`

Writes curve.svg beside the lines and prints a table. Nothing but the standard library is needed.
"""

import json
import random
import statistics
import sys
from collections import defaultdict
from pathlib import Path

ENDS = 10  # steps at each end that are compared
PERMUTATIONS = 10_000
T_95 = {1: 6.314, 2: 2.920, 3: 2.353, 4: 2.132}  # one-sided 5% points of Student's t by degrees of freedom
COLOURS = ("#0b6e99", "#d9730d", "#0f7b6c")
WIDTH, HEIGHT, LEFT, BOTTOM = 560, 300, 44, 34


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results/grpo_cpu")
    files = sorted(path for path in folder.glob("seed-*.jsonl") if path.stem.count("_") == 0)
    curves = {path.stem: means(path) for path in files}
    curves = {name: curve for name, curve in curves.items() if len(curve) >= 2 * ENDS}
    if not curves:
        sys.exit(f"{folder} holds no seed-N.jsonl with {2 * ENDS} steps")
    differences = [report(name, curve) for name, curve in curves.items()]
    if len(differences) > 1:
        t = paired_t(differences)
        print(
            f"over {len(differences)} seeds: mean d {statistics.mean(differences):+.3f}, t {t:.2f} (5% point {T_95[len(differences) - 1]})"
        )
    (folder / "curve.svg").write_text(svg(curves), encoding="utf-8")
    print(f"-> {folder / 'curve.svg'}")


def means(path: Path) -> list[float]:
    """Mean reward of each step, in order."""
    steps: dict[int, list[float]] = defaultdict(list)
    for text in path.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        steps[int(line["provenance"]["policy_version"])].append(line["reward"])
    return [statistics.mean(steps[step]) for step in sorted(steps)]


def report(name: str, curve: list[float]) -> float:
    """Print one seed's figures; its difference."""
    first, last = curve[:ENDS], curve[-ENDS:]
    difference = statistics.mean(last) - statistics.mean(first)
    print(
        f"{name}: {len(curve)} steps, first ten {statistics.mean(first):.3f}, last ten {statistics.mean(last):.3f}, "
        f"d {difference:+.3f}, permutation p {permutation_p(first, last):.4f}"
    )
    return difference


def permutation_p(first: list[float], last: list[float]) -> float:
    """How often a random split of the same means differs at least as much, one-sided."""
    dice, both, seen = random.Random(0), [*first, *last], sum(last) - sum(first)
    hits = 0
    for _ in range(PERMUTATIONS):
        dice.shuffle(both)
        hits += sum(both[len(first) :]) - sum(both[: len(first)]) >= seen - 1e-12
    return (hits + 1) / (PERMUTATIONS + 1)


def paired_t(differences: list[float]) -> float:
    """Of differences against 0."""
    spread = statistics.stdev(differences)
    return statistics.mean(differences) / (spread / len(differences) ** 0.5) if spread else float("inf")


def svg(curves: dict[str, list[float]]) -> str:
    """One line per seed, and thick the mean of all over the steps that every seed has."""
    steps = max(len(curve) for curve in curves.values())
    shared = min(len(curve) for curve in curves.values())
    mean = [statistics.mean(curve[step] for curve in curves.values()) for step in range(shared)]

    def place(step: int, value: float) -> str:
        x = LEFT + step / max(1, steps - 1) * (WIDTH - LEFT - 12)
        return f"{x:.1f},{HEIGHT - BOTTOM - value * (HEIGHT - BOTTOM - 14):.1f}"

    def line(values: list[float], colour: str, width: float) -> str:
        points = " ".join(place(step, value) for step, value in enumerate(values))
        return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linejoin="round"/>'

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">'
    ]
    parts.append(f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>')
    for tick in (0, 0.25, 0.5, 0.75, 1):
        y = place(0, tick).split(",")[1]
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 12}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{float(y) + 4:.1f}" text-anchor="end">{tick}</text>')
    for number, (name, curve) in enumerate(curves.items()):
        parts.append(line(curve, COLOURS[number % len(COLOURS)], 1))
        parts.append(
            f'<text x="{LEFT + 8 + 70 * number}" y="{HEIGHT - 20 - BOTTOM + 10}" fill="{COLOURS[number % len(COLOURS)]}">{name}</text>'
        )
    parts.append(line(mean, "#222", 2.5))
    parts.append(
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle">step (8 rollouts each); mean reward; thick: mean of the seeds</text>'
    )
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    main()
