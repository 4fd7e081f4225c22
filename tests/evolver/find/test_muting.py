"""A muted failure is seen and counted, and nothing is opened for it."""

from __future__ import annotations

import pytest

from agentos.domain import Share, Sighting
from agentos.errors import Conflict
from agentos.evolver.find.mining import mine
from agentos.evolver.find.triage import is_muted, mute, triage, unmute
from tests.evolver.conftest import World


def test_no_evolution_is_opened_for_it_until_it_is_unmuted(world: World) -> None:
    for _ in range(3):
        world.live(world.task(50, "pass"))
    assert mine(world.parts) > 0
    cursor = world.parts.cursor
    prints = {item.fingerprint.id for item in world.ledger.find(Sighting)}
    for name in prints:
        mute(cursor, name, "person:ann(1)", "known")
    assert triage(world.parts) == []
    world.live(world.task(50, "pass"))
    mine(world.parts)
    assert triage(world.parts) == [], "also for what is seen later"
    with pytest.raises(Conflict):
        mute(cursor, min(prints), "person:ann(1)", "")
    for name in prints:
        unmute(cursor, name, "person:ann(1)", "")
        assert not is_muted(cursor, name)
    assert len(triage(world.parts)) == 1
    with pytest.raises(Conflict):
        unmute(cursor, min(prints), "person:ann(1)", "")


def test_the_hold_out_gives_nothing_away_for_it(world: World) -> None:
    for points in (50, 47, 48):
        hidden = world.task(points, "pass", Share.HOLD_OUT)
        world.live(hidden, Share.HOLD_OUT)
    mine(world.parts)
    (name,) = {item.fingerprint.id for item in world.ledger.find(Sighting)}
    mute(world.parts.cursor, name, "person:ann(1)", "known")
    assert triage(world.parts) == []
    unmute(world.parts.cursor, name, "person:ann(1)", "")
    (opened,) = triage(world.parts)
    assert len(opened.given) == 3
