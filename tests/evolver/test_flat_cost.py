"""What an evolution looks at does not grow with those before it, and nothing is forgotten for that."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from agentos.domain import Evolution, EvolutionState, Verdict
from agentos.evolver.find.mining import mine
from agentos.evolver.find.triage import CLOSED, triage
from agentos.evolver.policy import LookBack
from agentos.evolver.promote.promotion import roll_back
from agentos.evolver.select.curate import choose_sets

if TYPE_CHECKING:
    from conftest import World

    from agentos.domain import Sighting


def read_by_triage(world: World) -> list[Sighting]:
    classes = {klass.name for klass in world.parts.taxonomy if klass.evolvable}
    return list(world.ledger.newest_sightings(classes, LookBack().sightings, CLOSED))


def test_mended_failures_are_not_read_again_until_they_come_back(world: World) -> None:
    world.seed()
    first = world.evolve(world.open())
    assert read_by_triage(world)
    assert triage(world.parts) == []
    assert read_by_triage(world) == []
    roll_back(world.parts, first, "by hand")
    assert triage(world.parts) == [], "nothing failed since"
    world.live(world.task(50, "pass   "))
    mine(world.parts)
    assert len(read_by_triage(world)) == 3
    (again,) = triage(world.parts)
    assert again.fingerprint_id == first.fingerprint_id


def test_what_ended_by_a_clock_that_was_ahead_closes_no_failure_that_comes_back(world: World) -> None:
    world.later = timedelta(days=1)
    world.seed()
    first = world.evolve(world.open())
    assert triage(world.parts) == []
    roll_back(world.parts, first, "by hand")
    world.later = timedelta()
    world.live(world.task(50, "pass   "))
    mine(world.parts)
    (again,) = triage(world.parts)
    assert again.fingerprint_id == first.fingerprint_id


def test_lone_failures_of_one_file_are_closed_together(world: World) -> None:
    """Otherwise those that are left would look like another failure."""
    from agentos.domain import Fingerprint, Sighting

    world.seed(hidden=())
    mine(world.parts)
    (known,) = {item.fingerprint.id: item for item in world.ledger.find(Sighting)}.values()
    lone = [
        Fingerprint(f"{number}" * 16, known.fingerprint.resource, known.fingerprint.klass, "calc | x")
        for number in range(4)
    ]
    for number, fingerprint in enumerate(lone):
        task = world.task(50, "p" * number)
        run = world.live(task)
        world.ledger.put(Sighting(run.id, task.id, task.key, fingerprint, world.now()))
    opened = triage(world.parts)
    for evolution in opened:
        world.ledger.put(replace(evolution, state=EvolutionState.PROMOTED, ended_at=world.now()))
    assert triage(world.parts) == []
    assert triage(world.parts) == []
    assert read_by_triage(world) == []


def test_guards_from_past_fixes_are_as_many_as_other_guards(world: World) -> None:
    world.seed()
    done = world.evolve(world.open())
    verdict = world.ledger.find(Verdict)[-1]
    limit = world.policy.evidence.max_guards
    for number in range(3 * limit):
        task = world.task(1000 + number, "pass")
        made = replace(done, id=f"evo-{number}", candidate_id=f"cand-{number}", state=EvolutionState.PROMOTED)
        world.ledger.put(made)
        world.ledger.put(
            replace(
                verdict,
                id=f"v-{number}",
                candidate_id=f"cand-{number}",
                fixed=(task.id,),
                evolution_id=made.id,
            )
        )
    sets = choose_sets(world.parts, world.evidence(), "skill/calc")
    assert len([task_id for task_id in sets.guards if task_id.startswith("task-1")]) <= limit
    assert len(sets.guards) <= 2 * limit


def test_evolutions_are_found_by_the_resource_that_their_diagnosis_named(world: World) -> None:
    world.seed()
    done = world.evolve(world.open())
    assert [item.id for item in world.ledger.newest(Evolution, 5, resource="skill/calc")] == [done.id]
