"""Counters and gauges as Prometheus reads them."""

import pytest

from wire.metrics import Metrics


def test_large_counts_keep_their_last_digit() -> None:
    """Tokens pass a million in minutes; a rounded counter stands still and then jumps, which a rate shows as spikes."""
    metrics = Metrics()
    metrics.count("input_tokens", 12_345_678)
    metrics.counter("input_tokens").add()
    metrics.gauge("load", lambda: 0.125)
    assert metrics.text() == "trivium_input_tokens_total 12345679\ntrivium_load 0.125\n"
    assert metrics.value("input_tokens") == 12_345_679
    assert metrics.value("never_counted") == 0


def test_labels_tell_counters_apart() -> None:
    """One series each, in one order, quoted."""
    metrics = Metrics()
    metrics.count("calls", status='a"b')
    metrics.count("calls", 2, status="200")
    assert metrics.text() == 'trivium_calls_total{status="200"} 2\ntrivium_calls_total{status="a\\"b"} 1\n'


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (-3, "-3"), (True, "1"), (0.5, "0.5"), (1e-7, "1e-07"), (float("inf"), "inf"), (float("nan"), "nan")],
)
def test_numbers_are_written_as_prometheus_reads_them(value: float, text: str) -> None:
    """Whole ones without a point; also those that are none."""
    metrics = Metrics()
    metrics.gauge("load", lambda: value)
    assert metrics.text() == f"trivium_load {text}\n"


def test_a_number_that_no_float_holds_does_not_take_the_others_with_it() -> None:
    """All are in one text."""
    metrics = Metrics()
    metrics.count("absurd", 10**400)
    assert metrics.text() == f"trivium_absurd_total {10**400}\n"
