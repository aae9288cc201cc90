"""Counters and gauges of one server, as Prometheus text."""

from collections.abc import Callable

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Numbers that a server counts as it goes; reading them costs nothing until `/metrics` is asked."""

    def __init__(self, prefix: str = "trivium") -> None:
        self._prefix = prefix
        self._counts: dict[tuple[str, Labels], float] = {}
        self._gauges: dict[tuple[str, Labels], Callable[[], float]] = {}

    def count(self, name: str, n: float = 1, **labels: str) -> None:
        """Add to a counter; its name gets the suffix `_total`."""
        key = (name, tuple(labels.items()))
        self._counts[key] = self._counts.get(key, 0) + n

    def gauge(self, name: str, read: Callable[[], float], **labels: str) -> None:
        """Ask `read` for the value whenever `/metrics` is read."""
        self._gauges[name, tuple(labels.items())] = read

    def value(self, name: str, **labels: str) -> float:
        """A counter's or gauge's value now; 0 where nothing was counted."""
        key = (name, tuple(labels.items()))
        return self._gauges[key]() if key in self._gauges else self._counts.get(key, 0)

    def text(self) -> str:
        """The Prometheus exposition format, version 0.0.4."""
        lines: list[str] = []
        for (name, labels), value in sorted(self._counts.items()):
            lines.append(f"{self._prefix}_{name}_total{_braces(labels)} {value:g}")
        for (name, labels), read in sorted(self._gauges.items()):
            lines.append(f"{self._prefix}_{name}{_braces(labels)} {read():g}")
        return "\n".join(lines) + "\n"


def _braces(labels: Labels) -> str:
    if not labels:
        return ""
    inside = ",".join(f'{key}="{_escaped(value)}"' for key, value in labels)
    return "{" + inside + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
