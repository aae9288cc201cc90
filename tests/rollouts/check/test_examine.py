"""Planted faults are named, and sound environments pass."""

from typing import Any

import pytest

from resources_server import Environment
from resources_server.app import app_for
from resources_server.settings import ResourcesServerSettings
from rollouts.check.card import Card
from rollouts.check.examine import PROBES, examine
from rollouts.check.world import World
from tests.rollouts.check import planted
from wire.testing import one_server


async def card_of(cls: type[Environment[Any]]) -> Card:
    rows = planted.order_rows() if issubclass(cls, planted.Shop) else planted.question_rows()
    planted.SEEN.clear()
    app = app_for(cls, ResourcesServerSettings(environment="planted", solutions=True), token="t")
    async with one_server(app) as url, World(url, "t", cls.bound()) as world:
        return await examine(world, rows)


def faults(card: Card) -> dict[str, str]:
    return {line.probe: " ".join(line.faults) for line in card.lines if line.status == "fault"}


@pytest.mark.parametrize("cls", [planted.Shop])
async def test_a_sound_environment_passes(cls: type[Environment[Any]]) -> None:
    """No probe finds anything, and each was made."""
    card = await card_of(cls)
    assert card.fit, faults(card)
    assert all(line.trials for line in card.lines)


@pytest.mark.parametrize(
    ("cls", "probe", "words"),
    [
        (planted.LeakyTool, "leak", "tool order shows the field 'order'"),
        (planted.LeakyError, "leak", "tool pay shows the field 'order'"),
        (planted.LeakyObservation, "leak", "the first observation shows the field 'order'"),
        (planted.Sprayable, "spray", "among wrong answers"),
        (planted.AnyOfThem, "spray", "wrong calls around the right ones"),
        (planted.OrderSensitive, "form", "put and put the other way round is worth 0"),
        (planted.OrderInOutputs, "form", "put and put the other way round is worth 0"),
        (planted.LeakyByName, "leak", "tool look_up shows the field 'order'"),
        (planted.Forgetful, "luck", "judged"),
        (planted.Outside, "luck", "stored line"),
        (planted.Tally, "isolation", "alone 1"),
        (planted.Anything, "noise", "random text"),
        (planted.Flaky, "luck", "10 times, is worth 0, 1"),
        (planted.Stateful, "isolation", "beside another session"),
        (planted.Contagious, "isolation", "is worth 1, alone 0"),
        (planted.Generous, "nothing", "nothing is worth 1, the solution 1"),
        (planted.Pedantic, "form", "spaces"),
        (planted.Gullible, "mischief", "orders to the judge"),
        (planted.Fragile, "sturdy", "verifier_error"),
        (planted.Brittle, "sturdy", "environment_error"),
        (planted.Unsolvable, "solution", "the solution is worth 0"),
        (planted.Silent, "solution", "no solution()"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_a_planted_fault_is_named(cls: type[Environment[Any]], probe: str, words: str) -> None:
    """The probe that is there for it fails, and says what happened."""
    found = faults(await card_of(cls))
    assert words in found.get(probe, ""), found


async def test_faults_do_not_spill_over() -> None:
    """A leak is reported as a leak alone."""
    assert faults(await card_of(planted.LeakyTool)).keys() == {"leak"}
    assert faults(await card_of(planted.OrderSensitive)).keys() == {"form"}
    assert faults(await card_of(planted.Sprayable)).keys() == {"spray"}


def test_every_probe_says_in_a_line_what_it_shows() -> None:
    """The card is read by people who have not read the code."""
    assert all(probe.explains and len(probe.explains) < 120 and "\n" not in probe.explains for probe in PROBES)
