"""Where a person is asked to consent, the opinion of the second model stands beside the verdict."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from agentos.cli.evolutions.screen import Scene, draw
from agentos.domain import (
    Candidate,
    Diagnosis,
    Edit,
    Evolution,
    EvolutionState,
    Layer,
    Manifest,
    Review,
    ReviewOpinion,
    Snapshot,
)
from agentos.evolver.policy import Probation
from agentos.ledger.reading import EvolutionRecords

BASE, TRIED = Snapshot("b" * 40, "c" * 40), Snapshot("d" * 40, "e" * 40)
PATH = "memory/default/memory.md"


def test_opinion_and_dropped_answers_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = Manifest("ev-1", "a unit was not known", "-", (PATH,), (), (), Layer.MEMORY, "-")
    edit = Edit({PATH: "# Lessons\n\n- Amounts are in cents.\n"}, "the unit", "model (writer)")
    taken = Candidate("cand-1-2", "evo-1", "model", 2, manifest, edit, BASE, TRIED)
    dropped = replace(
        taken,
        id="cand-1-1",
        rank=1,
        manifest=replace(manifest, cause="", files=()),
        edit=Edit({}, "answer 1 for the memory layer was no edit", "model (writer)"),
        snapshot=BASE,
        screened="no edit: there is no JSON object in it",
    )
    where = Diagnosis(Layer.MEMORY, "memory/default", PATH, "the cheapest layer goes first")
    evolution = Evolution("evo-1", "ev-1", "f", EvolutionState.AWAITING_CONSENT, BASE, "", where, taken.id)
    review = Review(
        "review-1-2",
        "evo-1",
        taken.id,
        TRIED.tree,
        "9" * 64,
        "reader",
        ReviewOpinion.WARN,
        ("not every amount is one",),
        datetime.now(UTC),
    )
    story = EvolutionRecords(evolution, None, (dropped, taken), (), (), (), None, (), (review,))
    monkeypatch.setenv("COLUMNS", "90")
    draw(Scene(story, {}, {}, {PATH: "# Lessons\n"}, [], Probation()))
    shown = capsys.readouterr().out
    assert "Review     warn  (reader)" in shown
    assert "not every amount is one" in shown
    assert "answer 1 for the memory layer was no edit" in shown
    assert "screened out: no edit: there is no JSON object in it" in shown


def test_what_a_review_holds_is_not_helped_by_more_tasks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = Manifest("ev-1", "a cause", "-", (PATH,), (), (), Layer.MEMORY, "-")
    candidate = Candidate("cand-1-1", "evo-1", "model", 1, manifest, Edit({}, "-", "-"), BASE, TRIED)
    evolution = Evolution("evo-1", "ev-1", "f", EvolutionState.HELD, BASE, "a review fails it")
    bound = ("review-1-1", "evo-1", candidate.id, TRIED.tree, "9" * 64, "reader")
    review = Review(*bound, ReviewOpinion.FAIL, ("no",), datetime.now(UTC))
    monkeypatch.setenv("COLUMNS", "90")
    for reviews, advice in (((review,), "repairs it by hand"), ((), "add tasks with checks")):
        story = EvolutionRecords(evolution, None, (candidate,), (), (), (), None, (), reviews)
        draw(Scene(story, {}, {}, {}, [], Probation()))
        assert advice in capsys.readouterr().out
