"""Promote and roll back: the only places from which the evolver moves the stable pointer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentos.errors import Conflict, NotFound, PromotionRefused
from agentos.evolver.history import AT_PROMOTION, HistoryContext
from agentos.evolver.promote import (
    ConsentContext,
    PromotionContext,
    RollBackContext,
)
from agentos.evolver.promote.consent import (
    STANDING,
    Approval,
    expiry,
    failing_review,
    is_overtaken,
    issue,
    misquoted,
    verify,
)
from agentos.evolver.promote.rebasing import (
    applies,
    end_stale,
    misplaced,
    rebase_trailers,
    rebased,
)
from agentos.evolver.states import RecordContext, retry
from agentos.evolver.verdict.behaviour_doubts import Doubt
from agentos.evolver.verdict.doubts import fresh_work, questions, with_fresh
from agentos.evolver.verdict.pairing import judged_trials
from agentos.records.candidates import Candidate, Decision, Refusal, RefusalKind, Verdict
from agentos.records.evolution import (
    AT_WORK,
    PROMOTED_STATES,
    Attestation,
    Consent,
    Evolution,
    EvolutionEnding,
    EvolutionState,
    Pass,
    Probe,
)
from agentos.records.identity import Kind, ResourceId, Snapshot, content_sha256, digest, new_id, tier_of
from agentos.records.trials import Trial

if TYPE_CHECKING:
    from agentos.ports import Snapshots

BY_POLICY = "policy:"  # how the principal of the policy's own consent begins


def verdict_on(parts: RollBackContext, candidate_id: str) -> Verdict:
    """The verdict on a candidate; raises NotFound when it was not judged."""
    found = parts.records.find(Verdict, candidate_id=candidate_id)
    if not found:
        raise NotFound(f"{candidate_id} has no verdict yet.")
    return found[-1]


def why_asked(parts: ConsentContext, candidate: Candidate) -> Refusal | None:
    """Why the policy may not consent to this edit and a person is asked; None where it may.

    Of the kind of the first reason, but DOUBT for what its trials leave open.
    """
    return _asked(_questions(parts, candidate))


def _asked(asked_for: Sequence[Doubt]) -> Refusal | None:
    if not asked_for:
        return None
    first = asked_for[0].kind
    kind = first if first in (RefusalKind.TIER, RefusalKind.SCREEN) else RefusalKind.DOUBT
    return Refusal(kind, "; ".join(question.reason for question in asked_for))


def why_waiting(parts: ConsentContext, candidate: Candidate) -> Refusal | None:
    """As ``why_asked``, to whoever waits for it: where nothing but fresh work is wanted, that this would do."""
    questions = _questions(parts, candidate)
    if [question.kind for question in questions] != [RefusalKind.FRESH]:
        return _asked(questions)
    trials = judged_trials(candidate, parts.records.find(Trial, evolution_id=candidate.evolution_id))
    fresh = fresh_work(candidate, trials, parts.policy)
    return Refusal(RefusalKind.FRESH, fresh.waits_for(", ".join(candidate.edit.resources)))


def _questions(parts: ConsentContext, candidate: Candidate) -> list[Doubt]:
    trials = judged_trials(candidate, parts.records.find(Trial, evolution_id=candidate.evolution_id))
    return questions(candidate, trials, parts.policy, lambda: parts.screened(candidate))


def consent_by_policy(parts: ConsentContext, candidate: Candidate) -> Consent:
    """The policy's own consent, for tiers that it lets pass."""
    tier = tier_of(candidate.manifest.files)
    return _store(parts, candidate, f"{BY_POLICY}{tier.value}=auto", STANDING)


def approve(parts: ConsentContext, evolution: Evolution, principal: str, given: str = "") -> Consent:
    """A person's consent, given as ``given`` says; raises PromotionRefused when there is nothing to approve or it is stale.

    That the registry moved elsewhere is no refusal: whoever approves several moves it with the first. What the consent
    is for is bound to what was judged, and the promotion looks whether that still holds.
    """
    if evolution.state is not EvolutionState.AWAITING_CONSENT or evolution.candidate_id is None:
        raise PromotionRefused(
            RefusalKind.NOT_WAITING,
            f"{evolution.id} is {evolution.state.value}; only one that awaits consent can be approved.",
        )
    candidate = parts.records.get(Candidate, evolution.candidate_id)
    if not applies(parts, candidate, parts.snapshots.stable()):
        raise PromotionRefused(
            RefusalKind.STALE,
            f"{evolution.id} is stale: what it changes was changed since it was judged; "
            f"type `agentos evolution retry {evolution.id}` to measure it again.",
        )
    if (why := parts.outgrown(candidate, verdict_on(parts, candidate.id))) is not None:
        raise PromotionRefused(
            why.kind,
            f"{evolution.id} is stale: {why.reason}; type `agentos evolution retry {evolution.id}` to measure it again.",
        )
    for fault in misquoted(parts.snapshots, candidate):  # what was shown is the record
        raise PromotionRefused(RefusalKind.UNTESTED, f"There is nothing to consent to: {fault}.")
    return _store(parts, candidate, principal, given)


def _measured_otherwise(parts: PromotionContext, candidate: Candidate) -> Refusal | None:
    """Why its trials say nothing any more, the base's among them; None where they do."""
    own = parts.records.find(Trial, evolution_id=candidate.evolution_id)
    trials = [trial for trial in own if trial.candidate_id in ("", candidate.id)]
    tried_in = {(trial.sandbox, trial.image) for trial in trials if trial.image and trial.candidate_id}
    if any(parts.image_of(sandbox) != image for sandbox, image in tried_in):
        told = "the sandbox is not made of what it was when this was tried"
        return Refusal(RefusalKind.STALE, told)
    for host in sorted({trial.host for trial in trials} - {""}):
        if why := parts.distrusted(host):
            told = f"the worker {host} measured some of it, and is distrusted: {why}"
            return Refusal(RefusalKind.STALE, told)
    return None


def decline(parts: RollBackContext, evolution: Evolution, principal: str, reason: str) -> Evolution:
    """A person says no: the same failure is not taken up again until someone reconsiders it."""
    if evolution.state not in (EvolutionState.AWAITING_CONSENT, EvolutionState.HELD):
        raise PromotionRefused(
            RefusalKind.NOT_WAITING,
            f"{evolution.id} is {evolution.state.value}; only one that awaits consent or is held can be rejected.",
        )
    return parts.move(
        evolution,
        EvolutionState.REJECTED,
        f"declined by {principal}: {reason}",
        end=True,
        ending=EvolutionEnding.DECLINED,
    )


def promote(parts: PromotionContext, evolution: Evolution) -> Evolution:
    """Move ``main`` to the candidate's tree, under a consent that stands.

    STALE when it moved meanwhile, or when the sandbox is made of something else than at the trials.

    Raises PromotionRefused when its consent, verdict or review does not stand, or when it changes what runs are driven by and
    did not pass a probe.
    """
    candidate, verdict, consent = consented(parts, evolution)
    if is_overtaken(parts, candidate) and not is_done(parts, candidate):
        candidate = rebased(parts, candidate) or candidate
        if not _may_drive(parts, candidate):
            return end_stale(parts, evolution, "the registry moved while it was probed")
    base, snapshot = candidate.stands_on
    if not is_overtaken(parts, candidate):  # by itself before a kill, or by others
        # also for a consent of before the policy was changed, as one out of a backup: it opens no gate
        if why := parts.outgrown(candidate, verdict) or _measured_otherwise(parts, candidate):
            return end_stale(parts, evolution, why.reason)
        if not _may_drive(parts, candidate):
            raise PromotionRefused(
                RefusalKind.UNPROBED, f"{candidate.id} changes what runs are driven by, and passed no probe."
            )
    evolution = parts.move(evolution, EvolutionState.PROMOTING)
    trailers = {
        "Evolution": evolution.id,
        "Evidence": evolution.evidence_id,
        "Candidate-Tree": snapshot.tree,
        "Verdict": verdict.sha256,
        "Consent": f"{consent.principal} {consent.id}",
    }
    if candidate.rebase:
        trailers |= rebase_trailers(candidate.snapshot, candidate.rebase)
    if candidate.migration:
        trailers["Migrates"] = str(candidate.migration)
    try:
        promoted = parts.candidates.promote(base, snapshot, trailers, candidate.edit.summary)
    except Conflict as error:
        return end_stale(parts, evolution, str(error))
    if promoted.tree != (snapshot.tree if candidate.rebase else verdict.candidate_tree):
        raise PromotionRefused(RefusalKind.UNTESTED, f"{promoted.commit} is not the tree that was tested.")
    attest_replay(parts, candidate, verdict)
    return _on_probation(parts, evolution, base, promoted)


def consented(parts: PromotionContext, evolution: Evolution) -> tuple[Candidate, Verdict, Consent]:
    """The candidate, its verdict, and the consent that stands; raises PromotionRefused when one is missing."""
    if evolution.candidate_id is None:
        raise PromotionRefused(RefusalKind.NO_CANDIDATE, f"{evolution.id} has no accepted candidate.")
    if evolution.ended_at is not None and evolution.state is not EvolutionState.PROBATION:
        # declined, or measured again, after somebody consented; on probation it goes on where a kill cut it short
        raise PromotionRefused(
            RefusalKind.OVER,
            f"{evolution.id} is {evolution.state.value}: it is over, whoever consented to it.",
        )
    candidate = parts.records.get(Candidate, evolution.candidate_id)
    consent, verdict = _standing_consent(parts, candidate)
    if _is_by_policy(consent) and (asking := why_asked(parts, candidate)) is not None:
        raise PromotionRefused(asking.kind, f"The policy may not consent to {candidate.id}: {asking.reason}.")
    last = verdict_on(parts, candidate.id)
    judged = (Decision.PROMOTE, candidate.base.tree, candidate.snapshot.tree)
    if any((item.decision, item.base_tree, item.candidate_tree) != judged for item in (verdict, last)):
        raise PromotionRefused(
            RefusalKind.VERDICT, f"The verdict on {candidate.id} does not promote this tree on its base."
        )
    # Of a record the consent binds the tree that was judged: neither the edit's text, which is what is put on a newer
    # base, nor that base.
    faults = [*misquoted(parts.snapshots, candidate)]
    if candidate.rebase:
        trials = parts.records.find(Trial, evolution_id=candidate.evolution_id)
        faults += misplaced(parts.snapshots, candidate, trials)
    for fault in faults:
        raise PromotionRefused(RefusalKind.UNTESTED, f"Nobody consented to what is on record: {fault}.")
    if failing_review(parts.records, candidate) is not None:
        raise PromotionRefused(RefusalKind.REVIEW, f"The review of {candidate.id} fails it.")
    if (weaker := parts.weakened(candidate)) is not None:
        raise PromotionRefused(
            weaker.kind, f"{candidate.id} may not be promoted, whoever consents: {weaker.reason}."
        )
    return candidate, verdict, consent


def is_done(parts: PromotionContext, candidate: Candidate) -> bool:
    """It was promoted before a kill, and only the record of that is missing: whatever people made of it since."""
    return any(
        version.evolution == candidate.evolution_id
        for kind, name in (resource.split("/") for resource in candidate.edit.resources)
        for version in parts.evolvable.versions(ResourceId(Kind(kind), name))
    )


def _may_drive(parts: PromotionContext, candidate: Candidate) -> bool:
    """Whether it changes nothing of what runs are driven by, or passed its probe."""
    base, snapshot = candidate.stands_on
    return not concerns(parts.snapshots, snapshot, base) or passed(parts, snapshot) is not None


def measure_again(parts: ConsentContext, evolution: Evolution) -> Evolution:
    """Take its evidence up again at a person's wish, on what is stable now: the fresh evolution.

    One that awaits consent goes stale by it. Raises PromotionRefused for one at work, or that stands promoted.
    """
    if evolution.state in AT_WORK - {EvolutionState.AWAITING_CONSENT}:
        raise PromotionRefused(
            RefusalKind.AT_WORK, f"{evolution.id} is still at work ({evolution.state.value})."
        )
    if evolution.state in PROMOTED_STATES:
        raise PromotionRefused(
            RefusalKind.OVER,
            f"{evolution.id} stands promoted; `agentos evolution revert {evolution.id}` undoes it.",
        )
    if evolution.state is EvolutionState.AWAITING_CONSENT:
        parts.move(evolution, EvolutionState.STALE, "measured again at a person's wish", end=True)
    return retry(parts, evolution)


def take_back(parts: RollBackContext, evolution: Evolution, principal: str, reason: str) -> Evolution:
    """Undo a promotion on a person's word: the failure stays closed until someone reconsiders it."""
    why = f"taken back by {principal}: {reason}"
    return roll_back(parts, evolution, why, origin="revert", ending=EvolutionEnding.REVERTED)


def roll_back(
    parts: RollBackContext,
    evolution: Evolution,
    reason: str,
    *,
    origin: str = "rollback",
    ending: EvolutionEnding = EvolutionEnding.UNSAID,
) -> Evolution:
    """Undo a promotion by new versions; raises PromotionRefused when there is nothing to undo, Conflict when later versions build on it."""
    if evolution.promoted is None:
        raise PromotionRefused(
            RefusalKind.NOT_PROMOTED,
            f"{evolution.id} is {evolution.state.value}: nothing of it was promoted.",
        )
    if evolution.state is EvolutionState.ROLLED_BACK:
        raise PromotionRefused(RefusalKind.OVER, f"{evolution.id} was rolled back already.")
    parts.candidates.revert_evolution(evolution.id, reason, origin)
    return parts.move(evolution, EvolutionState.ROLLED_BACK, reason, end=True, ending=ending)


def _on_probation(
    parts: PromotionContext, evolution: Evolution, base: Snapshot, promoted: Snapshot
) -> Evolution:
    stored = parts.evolution(evolution.id)
    moved = Evolution(
        **{name: getattr(stored, name) for name in Evolution.__dataclass_fields__}
        | {"base": base, "promoted": promoted}
    )
    return parts.move(moved, EvolutionState.PROBATION, "promoted, on probation", end=True)


def _store(parts: ConsentContext, candidate: Candidate, principal: str, given: str) -> Consent:
    verdict = verdict_on(parts, candidate.id)
    expires = expiry(parts.now(), parts.policy.consent.expires_s)
    consent = issue(parts.consent_key, candidate, verdict, Approval(principal, expires, given))
    said = {"consent": consent.id, "principal": principal, "given": given}
    parts.audit.note("consent", candidate.evolution_id, said, (consent,))
    return consent


def _standing_consent(parts: PromotionContext, candidate: Candidate) -> tuple[Consent, Verdict]:
    """The newest consent that verifies, with the verdict that it was given for; raises PromotionRefused with the newest
    one's fault when none does.

    A person's may be for the one before a verdict that differs by fresh work: that took nothing from what they saw.
    """
    verdicts = parts.records.find(Verdict, candidate_id=candidate.id)
    if not verdicts:
        raise NotFound(f"{candidate.id} has no verdict yet.")
    faults = []
    for consent in reversed(parts.records.find(Consent, candidate_id=candidate.id)):
        verdict = verdicts[-1]
        for earlier in () if _is_by_policy(consent) else verdicts:
            if earlier.sha256 == consent.verdict_sha256 and verdict.id == with_fresh(earlier.id):
                verdict = earlier
        try:
            verify(parts.consent_key, consent, candidate, verdict, parts.now())
            return consent, verdict
        except PromotionRefused as error:
            faults.append(error)
    raise (
        faults[0]
        if faults
        else PromotionRefused(RefusalKind.NO_CONSENT, f"Nobody consented to {candidate.id}.")
    )


def _is_by_policy(consent: Consent) -> bool:
    return consent.principal.startswith(BY_POLICY)


# --- What runs are driven by, and which snapshots may drive them: those that passed a probe, or that somebody vouched for

DRIVING = (Kind.HARNESS, Kind.AGENT, Kind.ENVIRONMENT)  # what runs are driven by


def driving_sha256(snapshots: Snapshots, snapshot: Snapshot) -> str:
    """Identity of all that runs on the snapshot are driven by."""
    return digest([content_sha256(snapshots.files(snapshot, kind)) for kind in DRIVING])


def concerns(snapshots: Snapshots, snapshot: Snapshot, base: Snapshot) -> bool:
    """Whether runs on the snapshot are driven by something else than runs on the base."""
    return driving_sha256(snapshots, snapshot) != driving_sha256(snapshots, base)


def changed(snapshots: Snapshots, snapshot: Snapshot, base: Snapshot) -> list[ResourceId]:
    """The resources that are new in the snapshot, or another than in the base."""
    return [
        name
        for name in snapshots.names(snapshot)
        if files_of(snapshots, snapshot, name) != files_of(snapshots, base, name)
    ]


def only_adds(snapshots: Snapshots, snapshot: Snapshot, base: Snapshot) -> bool:
    """Whether all that drove runs in the base does so unchanged: what is new drives nobody's runs yet."""
    return all(
        files_of(snapshots, snapshot, name) == files_of(snapshots, base, name)
        for name in snapshots.names(base)
        if name.kind in DRIVING
    )


def files_of(snapshots: Snapshots, snapshot: Snapshot, name: ResourceId) -> Mapping[str, bytes]:
    return snapshots.files(snapshot, str(name))


def passed(parts: RecordContext, snapshot: Snapshot) -> Probe | None:
    """The probe by which the snapshot may drive runs, if there is one: the newest says so."""
    found = parts.records.find(Probe, driving_sha256=driving_sha256(parts.snapshots, snapshot))
    return found[-1] if found and found[-1].passed else None


def vouch(parts: RecordContext, snapshot: Snapshot, why: str) -> Probe:
    """Let the snapshot count as probed, on somebody's word."""
    return passed(parts, snapshot) or keep_probe(parts, snapshot, why, ProbeShown(), passed=True)


@dataclass(frozen=True, slots=True)
class ProbeShown:
    """What a probe showed, beside whether it passed."""

    evolution_id: str = ""
    passes: tuple[Pass, ...] = ()
    canaries: tuple[str, ...] = ()
    seconds: float = 0.0


def keep_probe(
    parts: RecordContext, snapshot: Snapshot, reason: str, shown: ProbeShown, *, passed: bool
) -> Probe:
    made = Probe(
        id=new_id("probe"),
        snapshot=snapshot,
        driving_sha256=driving_sha256(parts.snapshots, snapshot),
        passed=passed,
        reason=reason,
        at=parts.now(),
        evolution_id=shown.evolution_id,
        passes=shown.passes,
        canaries=shown.canaries,
        seconds=shown.seconds,
    )
    detail = {"probe": made.id, "tree": snapshot.tree, "reason": reason}
    parts.audit.note(
        f"probe.{'passed' if passed else 'failed'}", shown.evolution_id or made.id, detail, (made,)
    )
    return made


# --- Attest: what a manifest predicted beside what was observed, at the promotion and after the probation
# At the promotion the replay is what was observed; after the probation it is live use. Both are kept:
# the first says how well a proposer knew its edit, the second how well the replay knew the world.


def attest_replay(parts: HistoryContext, candidate: Candidate, verdict: Verdict) -> Attestation:
    """Compare the manifest with the replay that promoted the candidate."""
    return attest(parts, candidate, AT_PROMOTION, verdict.fixed, verdict.broken)


def label(predicted: Collection[str], observed: Collection[str], regressions: Collection[str]) -> str:
    """AHE's five labels: predicted fixes that came true, beside regressions."""
    if regressions:
        return "mixed" if observed else "harmful"
    if not observed:
        return "ineffective"
    return "effective" if predicted and set(predicted) <= set(observed) else "partly"


def attest(
    parts: HistoryContext,
    candidate: Candidate,
    when: str,
    fixes: Sequence[str],
    regressions: Sequence[str],
) -> Attestation:
    manifest = candidate.manifest
    attestation = Attestation(
        id=f"att-{candidate.evolution_id.removeprefix('evo-')}{'-replay' if when == AT_PROMOTION else ''}",
        evolution_id=candidate.evolution_id,
        predicted_fixes=manifest.predicted_fixes,
        observed_fixes=tuple(fixes),
        predicted_risks=manifest.tasks_at_risk,
        observed_regressions=tuple(regressions),
        verdict=label(manifest.predicted_fixes, fixes, regressions),
        when=when,
    )
    parts.records.put(attestation)
    return attestation
