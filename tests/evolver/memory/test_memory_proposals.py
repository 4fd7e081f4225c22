"""A memory that a run proposed is closed once a memory holds it, and nothing else closes it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agentos.domain import MemoryProposal, ProposalState
from agentos.evolver.memory.lessons import added, changed, lessons_in, settle_proposals
from agentos.testing import FakeRegistry

if TYPE_CHECKING:
    from conftest import World

PATH = "memory/default/memory.md"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
WISH = MemoryProposal("proposal-1", "run-1", "key", "Dates are in UTC,\nalways", "", NOW)


def test_what_an_evolution_brought_is_closed_with_its_name(world: World) -> None:
    registry = FakeRegistry({PATH: "# Lessons\n"})
    parts = replace(world.parts, snapshots=registry, evolvable=registry)
    world.ledger.put(WISH)
    world.ledger.put(replace(WISH, id="proposal-2", text="Totals are gross"))
    world.ledger.put(replace(WISH, id="proposal-3", text="No.", state=ProposalState.REJECTED))
    assert settle_proposals(parts) == []
    base = registry.stable()
    text = added(added("# Lessons\n", "dates are in utc, always!"), "No.")
    candidate = registry.add_candidate("cand-1", base, {PATH: text})
    registry.promote(base, candidate, {"Evolution": "evo-7"}, "Remember dates")
    (closed,) = settle_proposals(parts)
    assert closed == world.ledger.get(MemoryProposal, "proposal-1")
    assert (closed.state, closed.resource) == (ProposalState.ACCEPTED, "memory/default")
    assert closed.reason == "brought by evo-7"
    assert closed.decided_at is not None
    assert world.ledger.get(MemoryProposal, "proposal-2").state is ProposalState.OPEN
    assert world.ledger.get(MemoryProposal, "proposal-3").state is ProposalState.REJECTED
    assert settle_proposals(parts) == [], "once"


def test_a_lesson_in_other_words_is_not_what_was_proposed(world: World) -> None:
    text = added("# Lessons\n", WISH.text)
    registry = FakeRegistry({PATH: changed(text, lessons_in(text)[0].id, "Dates are local")})
    world.ledger.put(WISH)
    assert settle_proposals(replace(world.parts, snapshots=registry, evolvable=registry)) == []
