"""The second model: what it is told, what its opinion can do, and what it cannot."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from agentos.daemon.evolve.evolver_models import Advice, another
from agentos.domain import (
    Budget,
    Candidate,
    Consent,
    Decision,
    Evidence,
    Evolution,
    EvolutionState,
    Json,
    Layer,
    ModelSpec,
    RefusalKind,
    Review,
    ReviewOpinion,
    Verdict,
)
from agentos.errors import Conflict, ModelFailed, NotFound, PromotionRefused, Unavailable
from agentos.evolver.cycle import evolve
from agentos.evolver.dependencies import Dependencies
from agentos.evolver.find.triage import triage
from agentos.evolver.policy import ConsentPolicy, Policy, ReviewPolicy
from agentos.evolver.promote.promotion import approve, promote
from agentos.ports import Brief, Proposal
from agentos.testing import FakeModels, ScriptedProposer
from tests.evolver.conftest import WITHOUT_FRESH

if TYPE_CHECKING:
    from conftest import World

PATH = "skill/calc/tools/grade.py"
FAULTY = "def answer(points):\n    if points > 50:\n        return 'pass'\n    return 'fail'\n"
RIGHT = FAULTY.replace("> 50", ">= 50")
TEMPTING = FAULTY.replace("> 50", "> 40")
ADVISE = replace(WITHOUT_FRESH, review=ReviewPolicy(medium="advise", model="reader"))
SPEC = ModelSpec("reader", "other/reader", "", {})
MEANT = "the author's own secret reasoning"


def says(verdict: str, *reasons: str) -> str:
    return json.dumps({"verdict": verdict, "reasons": reasons})


class Reviewed:
    """A world whose edits a scripted model reviews."""

    def __init__(self, world: World, source: str, *answers: str | Exception, policy: Policy = ADVISE) -> None:
        self.world = world
        self._answers = answers
        self.models = FakeModels(self._say)
        world.policy = policy
        world.proposer = ScriptedProposer(
            [Proposal(MEANT, f"because of {MEANT}", "compare", {PATH: source}, MEANT, (), ())]
        )
        world.seed()
        self.parts: Dependencies = replace(
            world.parts, reviewer=Advice("reader", self.models, lambda: SPEC, Budget())
        )

    def _say(self, request: Mapping[str, Any], number: int) -> Mapping[str, Json]:
        said = self._answers[number]
        if isinstance(said, Exception):
            raise said
        return {"content": said}

    def end(self) -> Evolution:
        opened = self.world.open()
        evolve(self.parts, opened.id, self.world.durable)
        return self.world.ledger.get(Evolution, opened.id)

    @property
    def review(self) -> Review:
        (found,) = self.world.ledger.find(Review)
        return found


@pytest.mark.parametrize("opinion", ["PASS", "WARN", " pass "])
def test_what_it_does_not_fail_is_promoted_and_bound_to_what_was_read(world: World, opinion: str) -> None:
    reviewed = Reviewed(world, RIGHT, says(opinion, "looks right"))
    ended = reviewed.end()
    assert ended.state is EvolutionState.PROBATION, ended.reason
    review = reviewed.review
    candidate = world.ledger.get(Candidate, review.candidate_id)
    assert review.opinion is ReviewOpinion(opinion.strip().lower())
    assert review.reasons == ("looks right",)
    assert review.candidate_tree == candidate.snapshot.tree
    assert review.evidence_sha256 == world.ledger.find(Evidence)[0].sha256


def test_what_it_fails_is_held_and_nothing_moves(world: World) -> None:
    ended = Reviewed(world, RIGHT, says("FAIL", "it hides an error")).end()
    assert ended.state is EvolutionState.HELD
    assert "it hides an error" in ended.reason
    assert world.source() == FAULTY
    assert not world.ledger.find(Consent)
    assert world.ledger.find(Verdict)[-1].decision is Decision.PROMOTE, "the verdict is the trials' alone"


def test_what_it_fails_nobody_can_approve_or_promote(world: World) -> None:
    ask = replace(ADVISE, consent=ConsentPolicy(medium="ask"))
    reviewed = Reviewed(world, RIGHT, says("FAIL", "no"), policy=ask)
    ended = reviewed.end()
    with pytest.raises(PromotionRefused) as raised:
        approve(reviewed.parts, ended, "person:ada")
    assert raised.value.kind == RefusalKind.NOT_WAITING
    # as if its state had been set back by hand, and a person consented
    waiting = replace(ended, state=EvolutionState.AWAITING_CONSENT, ended_at=None)
    world.ledger.put_back(waiting)
    approve(reviewed.parts, waiting, "person:ada")
    with pytest.raises(PromotionRefused) as raised:
        promote(reviewed.parts, waiting)
    assert raised.value.kind == RefusalKind.REVIEW
    assert world.source() == FAULTY


def test_a_deceptive_reviewer_promotes_nothing_that_the_trials_reject(world: World) -> None:
    reviewed = Reviewed(world, TEMPTING, says("PASS", "perfect, promote it at once"))
    ended = reviewed.end()
    assert ended.state is EvolutionState.REJECTED
    assert not reviewed.models.requests, "it is not even asked"
    candidate = world.ledger.find(Candidate)[0]
    # a review that somebody stored for it changes nothing either
    world.ledger.put(
        Review("review-x", ended.id, candidate.id, candidate.snapshot.tree, "", "reader", ReviewOpinion.PASS, (), world.now())
    )  # fmt: skip
    with pytest.raises(Conflict):
        promote(reviewed.parts, replace(ended, candidate_id=candidate.id))
    assert world.source() == FAULTY


def test_it_reads_diff_evidence_and_objective_and_never_what_the_author_meant(world: World) -> None:
    reviewed = Reviewed(world, RIGHT, says("PASS"))
    reviewed.end()
    told = "\n".join(message["content"] for message in reviewed.models.requests[0]["messages"])
    assert MEANT not in told
    assert "-    if points > 50:" in told
    assert "+    if points >= 50:" in told
    assert "grade fifty" in told, "the goal of a failing task"
    assert "no other work may become worse" in told
    for hidden in ("grade 45", "grade 60"):
        assert hidden not in told, "neither hold-out nor guards"


def test_an_answer_that_cannot_be_read_is_asked_for_again(world: World) -> None:
    reviewed = Reviewed(world, RIGHT, "I think it is fine.", f"```json\n{says('WARN', 'odd')}\n```")
    assert reviewed.end().state is EvolutionState.PROBATION
    assert reviewed.review.opinion is ReviewOpinion.WARN
    assert "could not be used" in reviewed.models.requests[1]["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        (["fine", "fine"], "no opinion that can be read"),
        ([says("PROMOTE"), says("YES")], "no opinion that can be read"),
        ([says("PASS") + says("FAIL")] * 2, "beside the JSON object"),
        ([f"It says {says('PASS')}, but no."] * 2, "beside the JSON object"),
        ([ModelFailed("empty", "nothing")] * 2, "it was empty"),
        ([ModelFailed("budget", "used up")], "could not be asked: used up"),
        ([ModelFailed("auth", "no key")], "could not be asked: no key"),
    ],
)
def test_without_an_opinion_that_was_asked_for_it_is_held(
    world: World, answers: list[str | Exception], why: str
) -> None:
    ended = Reviewed(world, RIGHT, *answers).end()
    assert ended.state is EvolutionState.HELD
    assert why in ended.reason
    assert world.source() == FAULTY


def test_a_reviewer_that_is_away_is_waited_for(world: World) -> None:
    reviewed = Reviewed(world, RIGHT, ModelFailed("overloaded", "later"))
    with pytest.raises(Unavailable):
        reviewed.end()
    assert not world.ledger.find(Review)


def test_where_no_reviewer_is_set_up_it_is_held(world: World) -> None:
    reviewed = Reviewed(world, RIGHT)
    reviewed.parts = world.parts
    ended = reviewed.end()
    assert ended.state is EvolutionState.HELD
    assert "no reviewer is set up" in ended.reason


def test_a_tier_that_is_off_costs_nothing(world: World) -> None:
    reviewed = Reviewed(
        world, RIGHT, policy=replace(WITHOUT_FRESH, review=ReviewPolicy(high="advise", model="reader"))
    )
    assert reviewed.end().state is EvolutionState.PROBATION
    assert not reviewed.models.requests


def test_a_review_is_asked_for_once(world: World) -> None:
    from agentos.evolver.cycle import seek_consent

    reviewed = Reviewed(world, RIGHT, says("FAIL", "no"))
    ended = reviewed.end()
    seek_consent(reviewed.parts, ended.id)  # a crash after the step
    assert len(reviewed.models.requests) == 1
    assert len(world.ledger.find(Review)) == 1


def spec(name: str, model: str, *fallbacks: ModelSpec) -> ModelSpec:
    return ModelSpec(name, model, "", {}, fallbacks)


@pytest.mark.parametrize(
    "reader",
    [
        spec("reader", "openai/same"),
        spec("reader", "azure/same"),
        spec("reader", "openai/other", spec("more", "openai/same")),
    ],
)
def test_nobody_reviews_what_he_wrote(world: World, reader: ModelSpec) -> None:
    known = {"reader": reader, "": spec("writer", "openai/same")}
    reviewed = Reviewed(world, RIGHT, says("PASS"))
    advice = Advice("reader", reviewed.models, lambda: another(known.__getitem__, "reader", ""), Budget())
    reviewed.parts = replace(reviewed.parts, reviewer=advice)
    ended = reviewed.end()
    assert ended.state is EvolutionState.HELD
    assert "is the model that writes the edits (same); name one of another family" in ended.reason
    assert not reviewed.models.requests


def test_a_reviewer_without_an_author_beside_it_may_review() -> None:
    def find(name: str) -> ModelSpec:
        if not name:
            raise NotFound("none")
        return SPEC

    assert another(find, "reader", "") == SPEC


# --- proposers that ask -----------------------------------------------------------------------


class Asking(ScriptedProposer):
    """Gives its proposals and then has nobody to ask any more."""

    def propose(self, brief: Any) -> Any:
        yield from super().propose(brief)
        raise ModelFailed("budget", "the evolution may use 1 call of models")


def two(world: World, first: Any, second: Any) -> Evolution:
    world.seed()
    opened = world.open()
    evolve(replace(world.parts, proposers={Layer.SKILL: (first, second)}), opened.id, world.durable)
    return world.ledger.get(Evolution, opened.id)


def edit(source: str) -> Proposal:
    return Proposal("a cause", "an edit", "compare", {PATH: source}, "why", (), ())


def test_a_budget_that_is_gone_leaves_what_was_proposed(world: World) -> None:
    ended = two(world, Asking([edit(RIGHT)], "asking"), ScriptedProposer([]))
    assert ended.state is EvolutionState.PROBATION
    (no_more,) = [item for item in world.ledger.find(Candidate) if item.screened]
    assert no_more.screened == "nothing more could be asked (budget): the evolution may use 1 call of models"


def test_a_budget_that_is_gone_before_anything_was_proposed_is_the_end_that_is_told(world: World) -> None:
    ended = two(world, Asking([], "asking"), ScriptedProposer([]))
    assert ended.state is EvolutionState.CANNOT_FIX
    assert "nothing more could be asked (budget)" in ended.reason


def test_a_proposer_without_a_model_goes_on_where_one_with_a_model_cannot(world: World) -> None:
    assert two(world, Asking([], "asking"), ScriptedProposer([edit(RIGHT)])).state is EvolutionState.PROBATION


class Breaking:
    """Proposes the given edits, then breaks as a bug in a proposer does."""

    name = "breaking"

    def __init__(self, error: Exception, *edits: Any) -> None:
        self.error = error
        self.edits = edits

    def propose(self, brief: Brief) -> Iterator[Proposal]:
        yield from self.edits
        raise self.error


@pytest.mark.parametrize(
    "error", [IndentationError("unexpected indent"), RecursionError(), KeyError("x"), Conflict("c")]
)
def test_a_proposer_that_breaks_is_recorded_and_the_next_one_is_asked(world: World, error: Exception) -> None:
    ended = two(world, Breaking(error), ScriptedProposer([edit(RIGHT)]))
    assert ended.state is EvolutionState.PROBATION
    (broken,) = [item for item in world.ledger.find(Candidate) if item.screened]
    assert (broken.proposer, broken.rank) == ("breaking", 1)
    assert broken.screened.startswith(f"it broke: {type(error).__name__}")
    assert "(test_review.py:" in broken.screened
    assert [asked.proposer for asked in ended.asked] == ["breaking", "scripted"]
    assert "proposal.unusable" in [note.event for note in world.ledger.notes]


def test_where_the_only_proposer_breaks_that_is_the_end_and_counts_as_an_attempt(world: World) -> None:
    ended = two(world, Breaking(ValueError("odd")), ScriptedProposer([]))
    assert ended.state is EvolutionState.CANNOT_FIX
    assert "it broke: ValueError: odd" in ended.reason
    assert triage(world.parts) == []  # nothing is new since: it is not opened again and again


def test_what_was_proposed_before_the_break_is_tried(world: World) -> None:
    assert two(world, Breaking(ValueError(), edit(RIGHT)), ScriptedProposer([])).promoted is not None


def test_what_is_no_proposal_breaks_its_proposer_alone(world: World) -> None:
    ended = two(world, Breaking(ValueError(), None), ScriptedProposer([edit(RIGHT)]))
    assert ended.state is EvolutionState.PROBATION


def test_a_machinery_that_is_away_is_no_fault_of_the_proposer(world: World) -> None:
    with pytest.raises(Unavailable):
        two(world, Breaking(Unavailable("gone")), ScriptedProposer([edit(RIGHT)]))


def test_an_answer_that_is_no_edit_is_counted_and_never_tried(world: World) -> None:
    none = replace(edit(RIGHT), files={}, unusable="no edit: garbage")
    ended = two(world, ScriptedProposer([none, none]), ScriptedProposer([]))
    assert ended.state is EvolutionState.CANNOT_FIX
    assert (
        ended.reason == "nothing was tried: all 2 proposals were screened out: the last one: no edit: garbage"
    )
    assert [item.screened for item in world.ledger.find(Candidate)] == ["no edit: garbage"] * 2
    assert [note.event for note in world.ledger.notes].count("proposal.unusable") == 2
    assert not any(trial.candidate_id for trial in world.trials())


def test_what_a_search_found_spares_the_model(world: World) -> None:
    second = ScriptedProposer([edit(TEMPTING)])
    assert two(world, ScriptedProposer([edit(RIGHT)]), second).state is EvolutionState.PROBATION
    assert not second.briefs
