"""`trivium profile`: two files side by side, failures counted once, the page complete in itself."""

import json
import re
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from rollouts.profile.page import page
from rollouts.profile.reading import read
from rollouts.profile.report import Prices, as_json, comparisons, findings, sentence, to_terminal
from wire import jsonl


def line(task: int, repeat: int, reward: float | None, model: str, **more: Any) -> dict[str, Any]:
    """A rollout line as `collect` writes it, as far as a profile reads it."""
    output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": str(reward)}]}]
    return {
        "task_index": task,
        "rollout_index": repeat,
        "reward": reward,
        "response": {"output": output, "usage": {"input_tokens": 100, "output_tokens": 10}},
        "environment_ref": {"name": "shop", "version": "1"},
        "provenance": {"model": model},
        **more,
    }


def write(path: Path, *lines: dict[str, Any]) -> Path:
    with jsonl.Appender(path) as out:
        for each in lines:
            out.append(each)
    return path


def runs(folder: Path) -> list[Path]:
    """A weak and a strong model on eight tasks, two repeats; one rollout of the weak one failed twice for good, one once."""
    failure = {"failure": {"kind": "model_timeout"}, "failure_kind": "model_timeout", "mask_sample": True}
    weak = write(
        folder / "weak.jsonl", *(line(task, each, float(task == 0), "weak") for task in range(8) for each in (0, 1))
    )
    write(
        folder / "weak_failures.jsonl",
        line(3, 0, None, "weak", **failure),
        line(8, 0, None, "weak", **failure),
        line(8, 0, None, "weak", **failure),
    )
    strong = write(
        folder / "strong.jsonl", *(line(task, each, float(each == 0), "strong") for task in range(8) for each in (0, 1))
    )
    return [weak, strong]


def test_two_models_side_by_side(tmp_path: Path) -> None:
    """Means over tasks; a failure that was tried again with success is none."""
    profile = read(runs(tmp_path))
    weak, strong = profile.by_key["shop", "weak"], profile.by_key["shop", "strong"]
    weak_mean, strong_mean = weak.mean(), strong.mean()
    assert weak_mean is not None
    assert strong_mean is not None
    assert (weak_mean.mean, strong_mean.mean) == (1 / 8, 0.5)
    assert dict(weak.failures) == {"model_timeout": 1}
    assert (weak.spread_share(), strong.spread_share()) == (0.0, 1.0)


def test_the_stronger_model_is_named_with_its_lead(tmp_path: Path) -> None:
    """Seven tasks up by a half and one down: the mean difference is 3/8."""
    [comparison] = comparisons(read(runs(tmp_path)))
    assert (comparison.first, comparison.second, comparison.result.difference.mean) == ("weak", "strong", 3 / 8)
    assert sentence(comparison).startswith("shop: strong scores +0.375 against weak")


def test_findings_say_what_a_trainer_would_find_out_later(tmp_path: Path) -> None:
    """No spread within groups, and rollouts without a reward."""
    told = list(findings(read(runs(tmp_path)).by_key["shop", "weak"]))
    assert any("teach nothing" in each for each in told)
    assert any("model_timeout" in each for each in told)


def test_json_holds_the_same_figures(tmp_path: Path) -> None:
    """Strict JSON, cost included."""
    told = json.loads(json.dumps(as_json(read(runs(tmp_path)), Prices(input=1.0, output=10.0)), allow_nan=False))
    weak = told["environments"][0]
    assert (weak["mean_reward"], weak["rollouts"], weak["failed"]) == (1 / 8, 16, 1)
    assert weak["cost"] == (16 * 100 * 1.0 + 16 * 10 * 10.0) / 1e6
    assert len(weak["by_task"]) == 9


def test_the_terminal_report_names_both(tmp_path: Path) -> None:
    """Tables and sentences."""
    console = Console(record=True, width=200, file=(tmp_path / "shown").open("w"))
    to_terminal(read(runs(tmp_path)), Prices(), console)
    text = console.export_text()
    assert "weak" in text
    assert "pass@2" in text
    assert "too hard" in text
    console.file.close()


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    """No script, no address outside; names from lines are escaped."""
    files = [*runs(tmp_path), write(tmp_path / "evil.jsonl", line(0, 0, 1.0, "<script>alert(1)</script>"))]
    text = page(read(files), Prices())
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert not re.search(r"(src|href)=|url\(|https?://", text)
    assert text.count("<svg") >= 6


def test_twenty_thousand_lines_are_read_in_a_pass(tmp_path: Path) -> None:
    """The bound is thirty seconds for five times as many; figures stay right."""
    path = tmp_path / "many.jsonl"
    with path.open("w") as out:
        for number in range(20_000):
            out.write(json.dumps(line(number // 8, number % 8, float(number % 8 < 2), "m")) + "\n")
    began = time.process_time()
    figures = read([path]).by_key["shop", "m"]
    assert time.process_time() - began < 6
    assert (len(figures.tasks), figures.pass_at()[1]) == (2500, 0.25)
