"""Predictions beside what was observed: by proposer, model and layer, and as words for the next proposal."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from agentos.domain import (
    Attestation,
    Candidate,
    Decision,
    Edit,
    Evolution,
    EvolutionState,
    Layer,
    Manifest,
    Snapshot,
    Verdict,
)
from agentos.evolver.history.proposers import calibrate, in_words, lately
from agentos.evolver.policy import LookBack
from agentos.evolver.promote.promotion import label
from agentos.evolver.watch.probation import settle
from agentos.testing import MemoryLedger

if TYPE_CHECKING:
    from conftest import World

BASE = Snapshot("c" * 40, "t" * 40)


RECENT = LookBack().calibrated


def candidate(
    number: int,
    *,
    proposer: str = "model",
    model: str = "small",
    layer: Layer = Layer.PROMPT,
    fixes: tuple[str, ...] = ("a", "b"),
    risks: tuple[str, ...] = (),
    screened: str = "",
) -> Candidate:
    manifest = Manifest("evd", "cause", "edit", ("prompt/x/prompt.md",), fixes, risks, layer, "why")
    edit = Edit({"prompt/x/prompt.md": str(number)}, "an edit", "rewrite")
    return Candidate(
        f"cand-{number}", f"evo-{number}", proposer, 1, manifest, edit, BASE, BASE, screened, model=model
    )


def verdict(
    number: int,
    decision: Decision = Decision.REJECT,
    fixed: tuple[str, ...] = (),
    broken: tuple[str, ...] = (),
) -> Verdict:
    names = (f"verdict-{number}", f"evo-{number}", f"cand-{number}")
    return Verdict(*names, decision, ("said so",), fixed, broken, (), "t", "t", "m", "t", "p")


def attestation(number: int, said: str, when: str = "probation") -> Attestation:
    return Attestation(f"att-{number}-{when}", f"evo-{number}", (), (), (), (), said, when)


def test_each_proposer_model_and_layer_has_a_row_of_its_own() -> None:
    tracks = calibrate(
        [
            candidate(1, risks=("g1",)),
            candidate(2),
            candidate(3, screened="outside the surface"),
            candidate(4, layer=Layer.SKILL),
            candidate(5, model="large"),
            candidate(6, proposer="repair", model="", layer=Layer.TOOL),
        ],
        [
            verdict(1, fixed=("a",), broken=("g1", "g2")),
            verdict(2, Decision.PROMOTE, fixed=("a", "b", "c")),
            verdict(4, fixed=("z",)),
        ],
        [attestation(2, "effective", "promotion"), attestation(2, "mixed")],
    )
    assert [(item.proposer, item.model, item.layer) for item in tracks] == [
        ("model", "small", "prompt"),
        ("model", "small", "skill"),
        ("model", "large", "prompt"),
        ("repair", "", "tool"),
    ]
    first = tracks[0]
    assert (first.proposed, first.refused, first.tried, first.accepted) == (3, 1, 2, 1)
    assert (first.predicted, first.came_true, first.fixed) == (4, 3, 4)
    assert (first.precision, first.recall) == (0.75, 0.75)
    assert (first.broken, first.foreseen) == (2, 1)
    assert first.labels == {"mixed": 1}, "what live use said counts, not the replay once more"
    assert tracks[-1].precision is None


def test_one_that_always_predicts_success_is_shown_as_that() -> None:
    tracks = calibrate(
        [candidate(number) for number in range(50)],
        [verdict(number, broken=("g",)) for number in range(50)],
        [],
    )
    assert [(item.precision, item.accepted, item.foreseen) for item in tracks] == [(0.0, 0, 0)]


@pytest.mark.parametrize(
    ("predicted", "observed", "regressions", "said"),
    [
        ("ab", "ab", "", "effective"),
        ("ab", "abc", "", "effective"),
        ("ab", "a", "", "partly"),
        ("ab", "c", "", "partly"),
        ("", "a", "", "partly"),
        ("ab", "", "", "ineffective"),
        ("", "", "", "ineffective"),
        ("ab", "a", "g", "mixed"),
        ("ab", "", "g", "harmful"),
    ],
)
def test_the_five_labels(predicted: str, observed: str, regressions: str, said: str) -> None:
    assert label(predicted, observed, regressions) == said


def over(number: int) -> Evolution:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return Evolution(f"evo-{number}", "evd", "f", EvolutionState.REJECTED, BASE, created_at=now, ended_at=now)


def said(ledger: MemoryLedger, proposer: str = "model", layer: Layer = Layer.PROMPT) -> str:
    return in_words(lately(ledger, RECENT, "evo-now"), layer).get(proposer, "")


def test_the_next_proposal_is_told_how_its_own_edits_fared_and_no_task() -> None:
    ledger = MemoryLedger()
    assert said(ledger) == ""
    for number in (0, 1, 2, 3, 5, 9):
        ledger.put(over(number))
    for number in range(4):
        ledger.put_back(candidate(number, fixes=("task-secret", f"task-{number}")))
        ledger.put(verdict(number, broken=("task-hidden",)))
    ledger.put_back(candidate(9, proposer="repair", model=""))
    ledger.put(verdict(9))
    ledger.put_back(candidate(5))
    ledger.put(verdict(5, Decision.PROMOTE, fixed=("a", "b")))
    ledger.put(attestation(5, "harmful"))
    words = said(ledger)
    assert (
        "Your last 5 edits in the layer prompt, written by small: 0 refused before any trial, 5 tried, "
        "1 accepted." in words
    )
    assert "Of 10 fixes that you predicted 2 came true; 2 tasks were fixed in all." in words
    assert "Of 4 tasks that they broke you had named 0 as at risk." in words
    assert "1 harmful" in words
    assert "task-" not in words
    assert said(ledger, layer=Layer.SKILL) == ""
    assert "written by" not in said(ledger, "repair")


def test_what_the_evolution_itself_stored_before_a_crash_changes_no_word() -> None:
    ledger = MemoryLedger()
    ledger.put(replace(over(1), id="evo-now", ended_at=None))
    ledger.put(candidate(1, screened="no edit"))
    ledger.put(replace(candidate(2, screened="no edit"), evolution_id="evo-now"))
    assert said(ledger) == ""


def test_it_looks_at_the_newest_only() -> None:
    ledger = MemoryLedger()
    for number in range(RECENT + 50):
        ledger.put(over(number))
        ledger.put_back(candidate(number, screened="no"))
    assert f"Your last {RECENT} edits" in said(ledger)


def test_who_could_not_be_asked_has_proposed_nothing() -> None:
    nobody = candidate(1, model="", screened="nothing more could be asked (budget)")
    assert calibrate([replace(nobody, edit=Edit({}, "", "model"))], [], []) == []


def test_a_whole_evolution_is_attested_by_replay_and_by_live_use(world: World) -> None:
    world.seed()
    world.proposer = type(world.proposer)(
        [
            replace(world.proposer.proposals[0], predicted_fixes=(world.failing[0].id,)),
        ]
    )
    world.evolve(world.open())
    world.live(world.task(44, "fail"))
    world.later = timedelta(days=8)
    settle(world.parts)
    (track,) = calibrate(
        world.ledger.find(Candidate), world.ledger.find(Verdict), world.ledger.find(Attestation)
    )
    assert (track.predicted, track.came_true, track.fixed) == (1, 1, 2)
    assert track.labels == {"effective": 1}
    assert "1 effective" in said(world.ledger, "scripted", Layer(track.layer))
