"""What a check found, as a card: one line per probe, for people, for programs, for a page."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any, Literal

SHOWN = 3  # examples of one fault


@dataclass(frozen=True)
class Trial:
    """One thing that was tried on one row.

    Attributes:
        kind: What, in a word or two: trials of one kind are judged together.
        bad: 0 as it should be, 1 as bad as can be; for answers without merit the share of the full reward that they got.
        detail: What happened, for the report of a fault.
        hard: A single bad one is a fault, whatever is tolerated on average.
    """

    kind: str
    bad: float = 0.0
    detail: str = ""
    hard: bool = False


@dataclass(frozen=True)
class Line:
    """A probe's line in the card."""

    probe: str
    explains: str
    status: Literal["ok", "fault", "waived", "not tried"]
    trials: int = 0
    faults: list[str] = field(default_factory=list)
    waived: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Card:
    """Everything that was found out about one environment."""

    environment: str
    version: str
    rows: int
    lines: list[Line]
    notes: list[str] = field(default_factory=list)
    augmented: bool = False

    @property
    def fit(self) -> bool:
        """Whether no probe found a fault and rows could be judged at all."""
        return self.rows > 0 and not any(line.status == "fault" for line in self.lines)

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"fit": self.fit, **asdict(self)}

    def as_markdown(self) -> str:
        """A section of a page."""
        under = ", under augmentation" if self.augmented else ""
        lines = [
            f"## {self.environment} (version {self.version}{under}): {'fit' if self.fit else 'NOT fit'} to train on",
            "",
            f"{self.rows} rows tried.",
            "",
            "| probe | result | trials | what it shows |",
            "| --- | --- | ---: | --- |",
            *(f"| {each.probe} | {each.status} | {each.trials} | {each.explains} |" for each in self.lines),
        ]
        told = [f"- **{each.probe}**: {fault}" for each in self.lines for fault in each.faults]
        told += [f"- waived, {name}: {reason}" for each in self.lines for name, reason in each.waived.items()]
        told += [f"- {note}" for note in self.notes]
        return "\n".join([*lines, *([""] if told else []), *told, ""])


def judged(probe: str, explains: str, tolerated: float, trials: Sequence[Trial], waivers: Mapping[str, str]) -> Line:
    """The line of one probe: a kind of trial is a fault where it is bad on average by more than is tolerated.

    Args:
        probe: Its name.
        explains: What it shows, in one line.
        tolerated: Mean of `bad` up to which a kind is no fault.
        trials: Of all rows.
        waivers: The environment's own: `probe` or `probe.kind` -> the reason.
    """
    kinds: dict[str, list[Trial]] = defaultdict(list)
    for each in trials:
        kinds[each.kind].append(each)
    faults: list[str] = []
    waived = {probe: waivers[probe]} if probe in waivers else {}
    for kind, tried in kinds.items():
        certain = any(each.bad and each.hard for each in tried)
        if not certain and fmean(each.bad for each in tried) <= tolerated + 1e-9:
            continue
        name = f"{probe}.{kind}"
        if name in waivers:
            waived[name] = waivers[name]
        elif not waived.get(probe):
            faults.append(_told(kind, tried))
    return Line(probe, explains, _status(trials, faults, waived), len(trials), faults, waived)


def _status(trials: Sequence[Trial], faults: Sequence[str], waived: Mapping[str, str]) -> Any:
    if faults:
        return "fault"
    if waived:
        return "waived"
    return "ok" if trials else "not tried"


def _told(kind: str, tried: Iterable[Trial]) -> str:
    bad = sorted((each for each in tried if each.bad > 0), key=lambda each: -each.bad)
    details = list(dict.fromkeys(each.detail for each in bad if each.detail))
    more = f" (and {len(details) - SHOWN} more)" if len(details) > SHOWN else ""
    return f"{kind}: {'; '.join(details[:SHOWN])}{more}"
