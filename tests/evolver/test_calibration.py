"""Predictions beside what was observed: by proposer, model and layer, and as words for the next proposal."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agentos.domain import Attestation, Candidate, Decision, Edit, Layer, Manifest, Snapshot, Verdict
from agentos.evolver.attesting import label
from agentos.evolver.calibration import RECENT, calibrate, digest
from agentos.evolver.probation import settle
from agentos.testing import MemoryLedger

if TYPE_CHECKING:
    from conftest import World

BASE = Snapshot("c" * 40, "t" * 40)


def candidate(
    number: int,
    *,
    proposer: str = "model:small",
    layer: Layer = Layer.PROMPT,
    fixes: tuple[str, ...] = ("a", "b"),
    risks: tuple[str, ...] = (),
    screened: str = "",
) -> Candidate:
    manifest = Manifest("evd", "cause", "edit", ("prompt/x/prompt.md",), fixes, risks, layer, "why")
    edit = Edit({"prompt/x/prompt.md": str(number)}, "an edit", "rewrite")
    return Candidate(
        f"cand-{number}", f"evo-{number}", proposer, 1, manifest, edit, BASE, BASE, screened, None
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
            candidate(5, proposer="model:large"),
            candidate(6, proposer="repair", layer=Layer.TOOL),
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


def test_a_digest_says_in_words_how_its_own_edits_fared_and_names_no_task() -> None:
    ledger = MemoryLedger()
    assert digest(ledger, "model:small") == ""
    for number in range(4):
        ledger.put(candidate(number, fixes=("task-secret", f"task-{number}")))
        ledger.put(verdict(number, broken=("task-hidden",)))
    ledger.put(candidate(9, proposer="repair"))
    ledger.put(candidate(5))
    ledger.put(verdict(5, Decision.PROMOTE, fixed=("a", "b")))
    ledger.put(attestation(5, "harmful"))
    said = digest(ledger, "model:small")
    assert (
        "Your last 5 edits in the layer prompt: 0 were refused before any trial, 5 were tried, 1 accepted."
        in said
    )
    assert "Of 10 fixes that you predicted 2 came true; 2 tasks were fixed in all." in said
    assert "They broke 4 tasks; you had named 0 of these as at risk." in said
    assert "1 harmful" in said
    assert "task-" not in said
    assert digest(ledger, "model:other") == ""


def test_a_digest_looks_at_the_newest_only() -> None:
    ledger = MemoryLedger()
    for number in range(RECENT + 50):
        ledger.put(candidate(number, screened="no"))
    assert f"Your last {RECENT} edits" in digest(ledger, "model:small")


def test_a_whole_evolution_is_attested_by_replay_and_by_live_use(world: World) -> None:
    world.seed()
    world.proposer = type(world.proposer)(
        [
            replace(world.proposer.proposals[0], predicted_fixes=(world.failing[0].id,)),
        ]
    )
    world.evolve(world.open())
    world.live(world.failing[0])
    world.later = timedelta(days=8)
    settle(world.parts)
    (track,) = calibrate(
        world.ledger.find(Candidate), world.ledger.find(Verdict), world.ledger.find(Attestation)
    )
    assert (track.predicted, track.came_true, track.fixed) == (1, 1, 2)
    assert track.labels == {"effective": 1}
    assert "1 effective" in digest(world.ledger, "scripted")
