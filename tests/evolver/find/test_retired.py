"""A failure of what its owner took out of the registry opens nothing; one of what never was there does."""

from __future__ import annotations

from agentos.domain import Fingerprint, Sighting
from agentos.evolver.find.mining import mine
from agentos.evolver.find.triage import is_retired, triage
from tests.evolver.conftest import FAULTY, PATH, World


def _retire(world: World) -> None:
    world.registry.edit(dict.fromkeys(world.registry.files(world.registry.stable(), "skill/calc"), None))


def test_what_was_retired_is_not_repaired_until_it_is_back(world: World) -> None:
    for _ in range(3):
        world.live(world.task(50, "pass"))
    assert mine(world.parts) > 0
    _retire(world)
    assert triage(world.parts) == []
    world.registry.edit({PATH: FAULTY, "skill/calc/SKILL.md": "x"})
    assert len(triage(world.parts)) == 1


def test_only_what_was_there_can_be_retired(world: World) -> None:
    world.live(world.task(50, "pass"))
    mine(world.parts)
    seen: Fingerprint = world.ledger.find(Sighting)[0].fingerprint
    assert not is_retired(world.registry, seen.resource)
    _retire(world)
    assert is_retired(world.registry, seen.resource)
    for name in ("skill/of-another-home", "", "no resource"):
        assert not is_retired(world.registry, name)
