"""Counters and gauges of one server, as Prometheus text."""

from collections.abc import Callable

Labels = tuple[tuple[str, str], ...]


class Counter:
    """One number that only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def add(self, n: float = 1) -> None:
        """Count."""
        self.value += n


class Metrics:
    """Numbers that a server counts as it goes; reading them costs nothing until `/metrics` is asked."""

    def __init__(self, prefix: str = "trivium") -> None:
        self._prefix = prefix
        self._counters: dict[tuple[str, Labels], Counter] = {}
        self._gauges: dict[tuple[str, Labels], Callable[[], float]] = {}

    def counter(self, name: str, **labels: str) -> Counter:
        """The counter of that name, which gets the suffix `_total`; to be kept by who counts often."""
        key = (name, tuple(labels.items()))
        found = self._counters.get(key)
        if found is None:
            found = self._counters[key] = Counter()
        return found

    def count(self, name: str, n: float = 1, **labels: str) -> None:
        """Add to a counter."""
        self.counter(name, **labels).add(n)

    def gauge(self, name: str, read: Callable[[], float], **labels: str) -> None:
        """Ask `read` for the value whenever `/metrics` is read."""
        self._gauges[name, tuple(labels.items())] = read

    def value(self, name: str, **labels: str) -> float:
        """A counter's or gauge's value now; 0 where nothing was counted."""
        key = (name, tuple(labels.items()))
        if key in self._gauges:
            return self._gauges[key]()
        return self._counters[key].value if key in self._counters else 0

    def text(self) -> str:
        """The Prometheus exposition format, version 0.0.4."""
        lines: list[str] = []
        for (name, labels), counter in sorted(self._counters.items(), key=_name):
            lines.append(f"{self._prefix}_{name}_total{_braces(labels)} {_number(counter.value)}")
        for (name, labels), read in sorted(self._gauges.items(), key=_name):
            lines.append(f"{self._prefix}_{name}{_braces(labels)} {_number(read())}")
        return "\n".join(lines) + "\n"


def _name(entry: tuple[tuple[str, Labels], object]) -> tuple[str, Labels]:
    return entry[0]


def _number(value: float) -> str:
    """Every digit of it: a counter that is rounded stands still, and then jumps."""
    whole = isinstance(value, int) or value.is_integer()
    return str(int(value)) if whole else repr(value)


def _braces(labels: Labels) -> str:
    if not labels:
        return ""
    inside = ",".join(f'{key}="{_escaped(value)}"' for key, value in labels)
    return "{" + inside + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
