"""What a promotion rests on: taken away or changed on record, it is told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agentos.domain import Candidate, Consent, Decision, Edit, Evolution, Snapshot, Verdict
from agentos.evolver.promote.consent import misquoted
from agentos.evolver.replay.verification import unfounded

if TYPE_CHECKING:
    from conftest import World

PATH = "skill/calc/tools/grade.py"


@pytest.fixture
def promoted(world: World) -> Evolution:
    world.seed()
    return world.evolve(world.open())


def told(world: World, evolution: Evolution, verdict: Verdict | None, *consents: Consent) -> str:
    return "; ".join(unfounded(evolution, [verdict] if verdict else [], consents))


def test_what_a_promotion_rests_on_is_looked_at(world: World, promoted: Evolution) -> None:
    (verdict,), (consent,) = world.ledger.find(Verdict), world.ledger.find(Consent)
    assert told(world, promoted, verdict, consent) == ""
    assert "no verdict" in told(world, promoted, None, consent)
    assert "no verdict" in told(world, promoted, replace(verdict, decision=Decision.REJECT), consent)
    assert "no consent" in told(world, promoted, verdict)
    assert "no consent" in told(world, promoted, replace(verdict, reasons=("another",)), consent)
    assert "no verdict" in told(world, replace(promoted, candidate_id="cand-other"), verdict, consent)
    other = replace(promoted, promoted=Snapshot("1" * 40, "2" * 40))
    assert "is not the one that was judged" in told(world, other, verdict, consent)
    assert told(world, replace(promoted, promoted=None), None) == ""


def test_an_edit_that_is_shown_as_another_than_it_is_is_found(world: World, promoted: Evolution) -> None:
    (candidate,) = world.ledger.find(Candidate)
    assert [*misquoted(world.registry, candidate)] == []
    shown = replace(candidate, edit=Edit({PATH: candidate.edit.files[PATH] + "\n"}, "an edit", "compare"))
    assert [*misquoted(world.registry, shown)] == [
        f"{candidate.id}: {PATH} on record is not what stands in its snapshot"
    ]
    lost = replace(candidate, snapshot=Snapshot("1" * 40, "2" * 40))
    assert "cannot be read" in "; ".join(misquoted(world.registry, lost))
