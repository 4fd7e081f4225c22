"""Every refusal on the way to ``main``, each with somebody who tries to get past it.

Nothing is mined or replayed: the records are made as they would stand, or as somebody would wish them to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agentos.domain import (
    Arm,
    Attestation,
    Candidate,
    Consent,
    Decision,
    Edit,
    Evidence,
    Evolution,
    EvolutionState,
    Fingerprint,
    Layer,
    Manifest,
    Rebase,
    RefusalKind,
    Review,
    ReviewOpinion,
    Snapshot,
    Trial,
    TrialSet,
    Verdict,
    digest,
)
from agentos.errors import Conflict, ErrorKind, NotFound, PromotionRefused, UserError
from agentos.evolver.dependencies import Dependencies
from agentos.evolver.policy import ConsentPolicy, Policy
from agentos.evolver.promote.consent import (
    Approval,
    expiry,
    genuine,
    issue,
    make_key,
    person,
    read_key,
    verify,
)
from agentos.evolver.promote.probing import probe_fault, probe_promotion
from agentos.evolver.promote.promotion import (
    approve,
    consent_by_policy,
    decline,
    measure_again,
    promote,
    roll_back,
    take_back,
    verdict_on,
    vouch,
    why_asked,
)
from agentos.evolver.promote.rebasing import settle_overtaken
from agentos.ledger.rows.codec import to_json
from agentos.testing import FakeRegistry, attempt
from tests.refusals import raises

if TYPE_CHECKING:
    from conftest import World

PATH = "skill/calc/tools/grade.py"
RIGHT = "def answer(points):\n    return 'pass' if points >= 50 else 'fail'\n"
KEY = bytes(32)  # the world's
S, R = EvolutionState, RefusalKind
PROMPT = "agent/default/agent.yaml"


class Recording(FakeRegistry):
    """Keeps what each promotion said, and may be made to promote another tree than it was given."""

    said: Mapping[str, str] = {}
    other: Snapshot | None = None

    def promote(
        self, base: Snapshot, candidate: Snapshot, trailers: Mapping[str, str], message: str
    ) -> Snapshot:
        self.said = trailers
        return self.other or super().promote(base, candidate, trailers, message)


@dataclass
class Case:
    """A candidate that was judged worth promoting, and waits."""

    world: World
    parts: Dependencies
    registry: Recording
    evolution: Evolution
    candidate: Candidate
    verdict: Verdict

    def consent(self, principal: str = "person:ada", claimed: str = "", **over: Any) -> Consent:
        given = issue(
            KEY, self.candidate, self.verdict, Approval(principal, datetime.now(UTC) + timedelta(hours=1))
        )
        given = replace(given, **over, principal=claimed or principal)
        self.parts.records.put(given)
        return given

    def now(self) -> Evolution:
        return self.parts.evolution(self.evolution.id)

    def set(self, **over: Any) -> Evolution:
        self.world.ledger.put_back(replace(self.now(), **over))
        return self.now()

    def source(self) -> str:
        return self.registry.files(self.registry.stable(), PATH)[PATH].decode()


def made(world: World, files: dict[str, str]) -> Case:
    registry = Recording({PATH: "x = 1\n", "skill/calc/SKILL.md": "x", PROMPT: "harness: harness/default\n"})
    world.registry = registry
    base = registry.stable()
    fingerprint = Fingerprint("f", "skill/calc", "wrong", PATH)
    evidence = Evidence("evd-1", fingerprint, (), (), datetime.now(UTC), "0")
    snapshot = registry.add_candidate("cand-1-1", base, files)
    manifest = Manifest("evd-1", "c", "e", tuple(files), (), (), Layer.SKILL, "why")
    candidate = Candidate(
        "cand-1-1", "evo-1", "scripted", 1, manifest, Edit(files, "an edit", "o"), base, snapshot
    )
    verdict = Verdict(
        "verdict-1",
        "evo-1",
        candidate.id,
        Decision.PROMOTE,
        ("it fixes",),
        (),
        (),
        (),
        candidate_tree=snapshot.tree,
        base_tree=base.tree,
        manifest_sha256=digest(manifest),
        trials_sha256="t",
        policy_sha256=world.parts.policy.sha256,
    )
    evolution = Evolution("evo-1", "evd-1", "f", S.AWAITING_CONSENT, base, candidate_id=candidate.id)
    for record in (evidence, candidate, verdict, evolution):
        world.ledger.put(record)
    return Case(world, world.parts, registry, evolution, candidate, verdict)


@pytest.fixture
def case(world: World) -> Case:
    return made(world, {PATH: RIGHT})


def refused(
    case: Case, kind: R | None, act: Callable[[Dependencies, Evolution], object] = promote
) -> PromotionRefused | None:
    """By kind; None where another part says no, by a plain Conflict or NotFound."""
    before = case.registry.stable()
    with pytest.raises((Conflict, NotFound)) as raised:
        act(case.parts, case.now())
    assert case.registry.stable() == before, "nothing may have moved"
    found = raised.value if isinstance(raised.value, PromotionRefused) else None
    assert (found.kind if found is not None else None) == kind, raised.value
    return found


def test_what_is_judged_consented_to_and_current_is_promoted_and_says_so(case: Case) -> None:
    consent = case.consent()
    ended = promote(case.parts, case.now())
    assert (ended.state, ended.promoted, ended.reason) == (
        S.PROBATION,
        case.registry.stable(),
        "promoted, on probation",
    )
    assert ended.ended_at is not None
    assert case.now() == ended
    assert case.source() == RIGHT
    assert case.registry.said == {
        "Evolution": "evo-1",
        "Evidence": "evd-1",
        "Candidate-Tree": case.candidate.snapshot.tree,
        "Verdict": case.verdict.sha256,
        "Consent": f"person:ada {consent.id}",
    }


def test_without_a_candidate_or_a_verdict(case: Case) -> None:
    case.consent()
    case.set(candidate_id=None)
    refused(case, R.NO_CANDIDATE)
    case.set(candidate_id="cand-1-1")
    case.world.ledger._records[Verdict].clear()
    refused(case, None)


@pytest.mark.parametrize("decision", [Decision.REJECT, Decision.HOLD])
def test_a_verdict_that_does_not_promote_whoever_consents_to_it(case: Case, decision: Decision) -> None:
    case.verdict = replace(case.verdict, id="verdict-2", decision=decision)
    case.parts.records.put(case.verdict)
    case.consent()
    refused(case, R.VERDICT)
    refused(case, R.VERDICT, probe_promotion)


def test_a_verdict_on_another_tree_whoever_consents_to_it(case: Case) -> None:
    case.verdict = replace(case.verdict, id="verdict-2", candidate_tree=case.candidate.base.tree)
    case.parts.records.put(case.verdict)
    case.consent()
    refused(case, R.VERDICT)


def test_a_verdict_on_another_base_whoever_consents_to_it(case: Case) -> None:
    case.consent()
    case.parts.records.put(replace(case.candidate, base=replace(case.candidate.base, tree="another")))
    refused(case, R.VERDICT)


EVIL = "def answer(points):\n    return 'pass'\n"


def test_an_edit_whose_record_was_changed_is_neither_consented_to_nor_promoted(case: Case) -> None:
    """What the page shows is the record, and so is what is put on a newer base; the consent is to a tree."""
    case.consent()
    case.parts.records.put(replace(case.candidate, edit=Edit({PATH: EVIL}, "an edit", "o")))
    refused(case, R.UNTESTED)
    refused(case, R.UNTESTED, probe_promotion)
    refused(case, R.UNTESTED, lambda parts, it: approve(parts, it, "person:ada"))
    case.registry.edit({"skill/other/SKILL.md": "another skill"})
    refused(case, R.UNTESTED)


def test_a_newer_base_that_nobody_put_the_edit_on(case: Case) -> None:
    case.consent()
    base = case.registry.edit({"skill/other/SKILL.md": "another skill"})
    other = case.registry.add_candidate("cand-1-1-on-it", base, {PATH: EVIL})
    rebase = Rebase(base, other, digest([]), 0, datetime.now(UTC))
    case.parts.records.put(replace(case.candidate, rebase=rebase))
    refused(case, R.UNTESTED)


def test_the_newest_verdict_counts(case: Case) -> None:
    case.consent()
    newer = replace(case.verdict, id="verdict-2", reasons=("again",))
    case.parts.records.put(newer)
    assert verdict_on(case.parts, case.candidate.id) == newer
    refused(case, R.OTHER)


def test_nobody_consented(case: Case) -> None:
    refused(case, R.NO_CONSENT)
    refused(case, R.NO_CONSENT, probe_promotion)


@pytest.mark.parametrize(
    "over",
    [{"token": "0" * 64}, {"claimed": "person:ceo"}, {"expires_at": datetime(2099, 1, 1, tzinfo=UTC)}],
)
def test_a_consent_that_was_tampered_with(case: Case, over: dict[str, Any]) -> None:
    case.consent(**over)
    refused(case, R.FORGED)


def test_a_consent_that_is_over(case: Case) -> None:
    case.consent()
    case.world.later = timedelta(hours=2)
    refused(case, R.EXPIRED)


def test_the_newest_consent_that_stands_is_the_one_that_is_named(case: Case) -> None:
    case.consent("person:ada")
    newer = case.consent("person:bob")
    case.consent("person:eve", token="0" * 64)
    promote(case.parts, case.now())
    assert case.registry.said["Consent"] == f"person:bob {newer.id}"


def test_where_none_stands_the_newest_ones_fault_is_told(case: Case) -> None:
    case.consent("person:ada", token="0" * 64)
    newest = case.consent("person:bob", token="1" * 64)
    found = refused(case, R.FORGED)
    assert found is not None
    assert newest.id in str(found)


def review(case: Case, opinion: ReviewOpinion, tree: str = "") -> None:
    tree = tree or case.candidate.snapshot.tree
    found = Review("review-1", "evo-1", "cand-1-1", tree, "s", "m", opinion, ("why",), datetime.now(UTC))
    case.parts.records.put(found)


def test_a_review_that_fails_it_goes_before_any_consent(case: Case) -> None:
    review(case, ReviewOpinion.FAIL)
    case.consent()
    refused(case, R.REVIEW)


def test_a_review_of_another_tree_says_nothing(case: Case) -> None:
    review(case, ReviewOpinion.FAIL, "another")
    case.consent()
    assert promote(case.parts, case.now()).state is S.PROBATION


def test_the_registry_moved_on(case: Case) -> None:
    case.consent()
    case.registry.edit({"skill/calc/SKILL.md": "changed"})
    before = case.registry.stable()
    ended = promote(case.parts, case.now())
    assert (ended.state, ended.promoted) == (S.STALE, None)
    assert ended.ended_at is not None
    assert case.registry.stable() == before
    (again,) = case.world.ledger.find(Evolution, state=S.MINED)
    assert again.evidence_id == "evd-1"


def tried(case: Case, **more: Any) -> None:
    """A trial of the candidate is on record."""
    guard = (TrialSet.GUARD, Arm.CANDIDATE, 0, case.candidate.snapshot, attempt(passed=True).outcome)
    trial = Trial("trial-1", "evo-1", case.candidate.id, "task-1", *guard, "", "fake", "none", **more)
    case.parts.records.put(trial)


def test_what_is_made_of_something_else_now_is_stale_before_anything_moves(case: Case) -> None:
    case.consent()
    tried(case, image="another")
    ended = promote(case.parts, case.now())
    assert (ended.state, case.registry.said) == (S.STALE, {})
    assert "not made of what it was" in ended.reason


@pytest.mark.parametrize(("host", "state"), [("liar", S.STALE), ("honest", S.PROBATION), ("", S.PROBATION)])
def test_what_a_distrusted_worker_measured_is_measured_again(case: Case, host: str, state: S) -> None:
    case.consent()
    tried(case, host=host)
    parts = replace(case.parts, distrusted=lambda name: "it lies" if name == "liar" else "")
    ended = promote(parts, case.now())
    assert ended.state is state
    assert (len(case.world.ledger.find(Evolution, state=S.MINED)) == 1) is (state is S.STALE)


@pytest.mark.parametrize(("before", "again"), [(2, True), (3, False)])
def test_stale_evidence_is_taken_up_again_a_few_times(case: Case, before: int, again: bool) -> None:
    for number in range(before):
        case.parts.records.put(replace(case.evolution, id=f"evo-old-{number}", state=S.STALE))
    case.parts.records.put(replace(case.evolution, id="evo-other", state=S.REJECTED))
    case.consent()
    case.registry.edit({"skill/calc/SKILL.md": "changed"})
    assert promote(case.parts, case.now()).state is S.STALE
    assert bool(case.world.ledger.find(Evolution, state=S.MINED)) is again


def test_a_registry_that_promoted_another_tree_than_the_tested_one(case: Case) -> None:
    case.consent()
    case.registry.other = Snapshot("c" * 40, "another tree")
    with pytest.raises(PromotionRefused) as raised:
        promote(case.parts, case.now())
    assert raised.value.kind == R.UNTESTED
    assert case.now().promoted is None
    assert case.now().state is S.PROMOTING


def test_a_promotion_is_attested_by_its_replay(case: Case) -> None:
    case.consent()
    promote(case.parts, case.now())
    assert [found.when for found in case.world.ledger.find(Attestation)] == ["promotion"]


@pytest.mark.parametrize(
    "stricter",
    [
        lambda policy: replace(policy, surface=replace(policy.surface, allow=("memory/*/memory.md",))),
        # no trial of it is there
        lambda policy: replace(policy, judge=replace(policy.judge, min_fixed_share=0.9)),
    ],
    ids=["surface", "judge"],
)
def test_a_policy_that_became_stricter_is_held_to(case: Case, stricter: Callable[[Policy], Policy]) -> None:
    case.consent()  # of before, as one out of a backup
    case.parts = replace(case.parts, policy=stricter(case.parts.policy))
    refused(case, R.STALE, lambda parts, waiting: approve(parts, waiting, "person:ada"))
    before = case.registry.stable()
    promote(case.parts, case.now())
    assert (case.now().state, case.registry.stable()) == (S.STALE, before)
    (again,) = [one for one in case.parts.records.find(Evolution) if one.id != case.evolution.id]
    assert again.takes_up == case.candidate.id  # measured again, by the policy of now


def test_the_policys_own_consent_does_not_open_what_a_person_is_asked_for(case: Case) -> None:
    consent_by_policy(case.parts, case.candidate)
    assert "min_tasks" in str(refused(case, R.DOUBT)), "of all doubts this one"
    refused(case, R.DOUBT, probe_promotion)


def test_doing_it_again_after_a_kill_promotes_once(case: Case) -> None:
    case.consent()
    first = promote(case.parts, case.now())
    assert promote(case.parts, case.now()).promoted == first.promoted, "it is on probation, and goes on"
    case.set(state=S.PROMOTING, promoted=None, ended_at=None)
    again = promote(case.parts, case.now())
    assert (again.state, again.promoted) == (S.PROBATION, first.promoted)


@pytest.mark.parametrize("path", [PATH])
def test_what_was_pinned_meanwhile(case: Case, path: str) -> None:
    case.consent()
    case.registry.pinned = {*case.registry.names(case.registry.stable())}  # type: ignore[assignment]
    before = case.registry.stable()
    assert promote(case.parts, case.now()).state is S.STALE
    assert case.registry.stable() == before


# --- what drives runs -------------------------------------------------------------------------


@pytest.fixture
def driving(world: World) -> Case:
    return made(world, {PROMPT: "harness: harness/other\n"})


def test_what_drives_runs_is_not_promoted_without_a_probe(driving: Case) -> None:
    driving.consent()
    refused(driving, R.UNPROBED)


def test_a_probe_that_fails_ends_it_and_nothing_moves(driving: Case) -> None:
    driving.consent()
    before = driving.registry.stable()
    fault = probe_fault(driving.parts, driving.candidate)
    assert fault is not None
    assert fault.kind is R.PROBE
    ended = probe_promotion(driving.parts, driving.now())
    assert (ended.state, ended.reason) == (S.ROLLED_BACK, fault.reason)
    assert ended.ended_at is not None
    assert driving.registry.stable() == before
    refused(driving, R.OVER)


def test_what_drives_nothing_needs_no_probe(case: Case) -> None:
    case.consent()
    assert probe_fault(case.parts, case.candidate) is None
    assert probe_promotion(case.parts, case.now()).state is S.PROMOTING


def test_what_was_overtaken_is_not_probed(driving: Case) -> None:
    driving.consent()
    driving.registry.edit({"skill/calc/SKILL.md": "changed"})
    assert probe_promotion(driving.parts, driving.now()).state is S.PROMOTING


def test_what_passed_its_probe_is_promoted(driving: Case) -> None:
    vouch(driving.parts, driving.candidate.snapshot, "tried by hand")
    driving.consent()
    assert promote(driving.parts, driving.now()).state is S.PROBATION


def test_what_was_overtaken_while_it_was_probed_is_stale(driving: Case) -> None:
    driving.consent()
    driving.registry.edit({"skill/calc/SKILL.md": "changed"})
    ended = promote(driving.parts, driving.now())
    assert (ended.state, ended.promoted) == (S.STALE, None)
    assert "while it was probed" in ended.reason


def killed_after_promotion(driving: Case) -> Evolution:
    """Promoted; its record was lost, and in the meantime its probe failed."""
    probe = vouch(driving.parts, driving.candidate.snapshot, "tried by hand")
    driving.consent()
    first = promote(driving.parts, driving.now())
    driving.parts.records.put(replace(probe, id="probe-later", passed=False))
    driving.set(state=S.PROMOTING, promoted=None, ended_at=None)
    return first


def test_what_was_promoted_before_a_kill_is_not_held_against_a_later_probe(driving: Case) -> None:
    first = killed_after_promotion(driving)
    again = promote(driving.parts, driving.now())
    assert (again.state, again.promoted) == (S.PROBATION, first.promoted)


def test_what_somebody_changed_after_the_kill_was_promoted_all_the_same(driving: Case) -> None:
    """A person's change ends its watch, as that of any promotion; searched for once more it would overrule them."""
    first = killed_after_promotion(driving)
    changed = driving.registry.edit({PROMPT: "harness: harness/third\n"})
    again = promote(driving.parts, driving.now())
    assert (again.state, again.promoted) == (S.PROBATION, first.promoted)
    assert driving.registry.stable() == changed


# --- people -----------------------------------------------------------------------------------

NOT_WAITING = [state for state in S if state is not S.AWAITING_CONSENT]


@pytest.mark.parametrize("state", NOT_WAITING)
def test_only_what_waits_can_be_approved(case: Case, state: EvolutionState) -> None:
    case.set(state=state)
    refused(case, R.NOT_WAITING, lambda parts, it: approve(parts, it, "person:ada"))
    assert case.world.ledger.find(Consent) == []


def test_what_has_no_candidate_cannot_be_approved(case: Case) -> None:
    case.set(candidate_id=None)
    refused(case, R.NOT_WAITING, lambda parts, it: approve(parts, it, "person:ada"))
    assert case.world.ledger.find(Consent) == []


def test_an_approval_is_a_consent_that_stands_as_long_as_the_policy_says(case: Case) -> None:
    given = approve(case.parts, case.now(), "person:ada")
    assert case.world.ledger.find(Consent) == [given]
    seconds = case.parts.policy.consent.expires_s
    left = given.expires_at - datetime.now(UTC)
    assert timedelta(seconds=seconds - 60) < left <= timedelta(seconds=seconds)
    assert ("consent", {"consent": given.id, "principal": "person:ada", "given": ""}) in [
        (note.event, note.detail) for note in case.world.ledger.notes
    ]
    assert promote(case.parts, case.now()).state is S.PROBATION


def test_the_policy_asks_for_the_tier_and_consents_in_its_own_name(case: Case) -> None:
    asking = replace(case.parts, policy=Policy(consent=ConsentPolicy(medium="ask")))
    kinds = [found.kind for parts in (case.parts, asking) if (found := why_asked(parts, case.candidate))]
    assert kinds == [R.DOUBT, R.TIER], "its trials leave something open in any case: there are none"
    assert consent_by_policy(case.parts, case.candidate).principal == "policy:medium=auto"


OVER = [S.REJECTED, S.STALE, S.HELD, S.CANCELLED, S.ROLLED_BACK, S.PROMOTED]


@pytest.mark.parametrize("state", OVER)
def test_what_ended_after_somebody_consented_is_not_promoted(case: Case, state: EvolutionState) -> None:
    approve(case.parts, case.now(), "person:ada")
    ended = case.set(state=state, ended_at=datetime.now(UTC))
    refused(case, R.OVER)
    refused(case, R.OVER, probe_promotion)
    assert case.now() == ended


def test_nobody_moves_on_what_somebody_else_has_ended(case: Case) -> None:
    """Who read it before that would put its record back to what it was."""
    before = case.now()
    declined = decline(case.parts, before, "person:ada", "no")
    refused(case, None, lambda parts, _: parts.move(before, S.PROMOTING))
    assert case.now() == declined
    on_probation = case.set(state=S.PROBATION, promoted=case.registry.stable())
    gone = case.set(state=S.ROLLED_BACK)
    refused(case, None, lambda parts, _: parts.move(on_probation, S.PROMOTED))
    assert case.now() == gone


@pytest.mark.parametrize("state", [S.AWAITING_CONSENT, S.HELD])
def test_what_waits_or_is_held_can_be_declined(case: Case, state: EvolutionState) -> None:
    case.set(state=state)
    ended = decline(case.parts, case.now(), "person:ada", "no")
    assert (ended.state, ended.reason) == (S.REJECTED, "declined by person:ada: no")
    assert ended.ended_at is not None


@pytest.mark.parametrize("state", [state for state in NOT_WAITING if state is not S.HELD])
def test_nothing_else_can_be_declined(case: Case, state: EvolutionState) -> None:
    case.set(state=state)
    refused(case, R.NOT_WAITING, lambda parts, it: decline(parts, it, "person:ada", "no"))


@pytest.mark.parametrize("state", [S.AWAITING_CONSENT, S.HELD, S.REJECTED, S.ROLLED_BACK])
def test_what_waits_or_is_over_can_be_measured_again(case: Case, state: EvolutionState) -> None:
    case.set(state=state)
    again = measure_again(case.parts, case.now())
    assert (again.state, again.evidence_id) == (S.MINED, case.evolution.evidence_id)
    assert again.id != case.evolution.id
    was = case.now()
    assert was.state is (S.STALE if state is S.AWAITING_CONSENT else state)
    assert (was.ended_at is not None) is (state is S.AWAITING_CONSENT)


@pytest.mark.parametrize("state", [S.REPRODUCING, S.PROPOSING, S.REPLAYING, S.PROMOTING])
def test_what_is_at_work_is_not_measured_twice(case: Case, state: EvolutionState) -> None:
    case.set(state=state)
    refused(case, R.AT_WORK, measure_again)
    assert case.now().state is state


@pytest.mark.parametrize("state", [S.PROBATION, S.PROMOTED])
def test_what_stands_promoted_is_undone_before_it_is_measured_again(
    case: Case, state: EvolutionState
) -> None:
    case.set(state=state)
    refused(case, R.OVER, measure_again)
    assert len(case.parts.records.find(Evolution)) == 1


def test_what_went_stale_while_it_waited_is_settled_once(case: Case) -> None:
    assert not settle_overtaken(case.parts, case.now())
    case.registry.edit({"skill/calc/SKILL.md": "changed"})
    assert not settle_overtaken(case.parts, replace(case.now(), state=S.HELD))
    assert not settle_overtaken(case.parts, replace(case.now(), candidate_id=None))
    assert case.now().state is S.AWAITING_CONSENT
    assert settle_overtaken(case.parts, case.now())
    assert case.now().state is S.STALE
    assert not settle_overtaken(case.parts, case.now())


def test_only_what_was_promoted_and_stands_is_rolled_back(case: Case) -> None:
    refused(case, R.NOT_PROMOTED, lambda parts, it: roll_back(parts, it, "why"))
    case.consent()
    promoted = promote(case.parts, case.now())
    case.world.later = timedelta(minutes=1)
    ended = take_back(case.parts, case.now(), "person:ada", "worse")
    assert promoted.ended_at is not None
    assert ended.ended_at is not None
    assert ended.ended_at > promoted.ended_at, "what is undone ended then"
    assert (ended.state, ended.reason) == (S.ROLLED_BACK, "taken back by person:ada: worse")
    assert case.source() == "x = 1\n"
    refused(case, R.OVER, lambda parts, it: roll_back(parts, it, "why"))


def test_what_others_built_on_is_not_rolled_back(case: Case) -> None:
    case.consent()
    promote(case.parts, case.now())
    case.registry.edit({PATH: "x = 3\n"})
    refused(case, None, lambda parts, it: roll_back(parts, it, "why"))
    assert case.now().state is S.PROBATION


# --- the key and the token --------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o640, 0o620, 0o610, 0o604, 0o602, 0o601])
def test_a_key_that_anybody_else_may_touch_is_refused(tmp_path: Path, mode: int) -> None:
    make_key(tmp_path / "key")
    assert len(read_key(tmp_path / "key")) == 32
    (tmp_path / "key").chmod(mode)
    with raises(UserError, ErrorKind.EXPOSED):
        read_key(tmp_path / "key")


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_key_of_another_size_is_refused(tmp_path: Path, size: int) -> None:
    (tmp_path / "key").write_bytes(b"x" * size)
    (tmp_path / "key").chmod(0o600)
    with raises(UserError, ErrorKind.DAMAGED, names=[f"{size} bytes"]):
        read_key(tmp_path / "key")


def test_two_keys_are_not_the_same(tmp_path: Path) -> None:
    make_key(tmp_path / "one")
    make_key(tmp_path / "two")
    assert read_key(tmp_path / "one") != read_key(tmp_path / "two")
    assert read_key(tmp_path / "one") == (tmp_path / "one").read_bytes()


def test_the_principal_is_whoever_runs_the_process() -> None:
    assert person().startswith("person:")
    assert len(person()) > len("person:")


def test_a_consent_ends_at_its_very_moment(case: Case) -> None:
    ends = expiry(datetime(2026, 1, 1, tzinfo=UTC), 60)
    assert ends == datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
    given = issue(KEY, case.candidate, case.verdict, Approval("person:ada", ends))
    verify(KEY, given, case.candidate, case.verdict, ends - timedelta(microseconds=1))
    with pytest.raises(PromotionRefused) as raised:
        verify(KEY, given, case.candidate, case.verdict, ends)
    assert raised.value.kind == R.EXPIRED


def test_a_stored_consent_is_genuine_with_its_key_and_every_word_of_it(case: Case) -> None:
    given = issue(KEY, case.candidate, case.verdict, Approval("person:ada", datetime(2026, 1, 1, tzinfo=UTC)))
    stored = to_json(given)
    assert genuine(KEY, stored)
    assert genuine(KEY, to_json(replace(given)))
    assert not genuine(bytes(range(32)), stored)
    for name in stored:
        assert not genuine(KEY, {**stored, name: "another"}), name
        assert not genuine(KEY, {key: value for key, value in stored.items() if key != name}), name


def test_a_consent_from_before_it_said_how_it_was_given_is_genuine_still(case: Case) -> None:
    old = issue(
        KEY, case.candidate, case.verdict, Approval("person:ada", datetime(2026, 1, 1, tzinfo=UTC), "")
    )
    stored = to_json(old)
    assert genuine(KEY, stored)
    assert genuine(KEY, {name: value for name, value in stored.items() if name != "given"})
    assert not genuine(KEY, {**stored, "given": "terminal"}), "how it was given cannot be put in later"
    nobody = issue(KEY, case.candidate, case.verdict, Approval("", datetime(2026, 1, 1, tzinfo=UTC)))
    assert genuine(KEY, to_json(nobody)), "nothing else that is empty is left out"


RULE = "rule/never/resource.toml"
NEVER = "description = 'd'\non = 'before_call'\nwhen = \"tool == 'rm'\"\nenforce = 'stop'\n"


def test_an_edit_that_weakens_a_rule_whoever_consents_to_it(world: World) -> None:
    case = made(world, {PATH: RIGHT})
    base = FakeRegistry({RULE: NEVER}).files  # what stood there, whatever the edit says it touches
    known = case.registry.files

    def files(snapshot: Snapshot, prefix: str) -> Mapping[str, bytes]:
        if prefix == "rule" and snapshot == case.candidate.base:
            return base(FakeRegistry({RULE: NEVER}).stable(), prefix)
        return known(snapshot, prefix)

    case.registry.files = files  # type: ignore[method-assign]
    case.consent()
    refused(case, R.RULE)
    refused(case, R.RULE, probe_promotion)
