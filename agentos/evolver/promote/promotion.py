"""Promote and roll back: the only places from which the evolver moves the stable pointer."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from agentos.domain import (
    Arm,
    Candidate,
    Consent,
    Decision,
    Evolution,
    EvolutionEnding,
    EvolutionState,
    Kind,
    Rebase,
    SafetyRate,
    Snapshot,
    Trial,
    Verdict,
    digest,
    tier_of,
)
from agentos.errors import Conflict, Invalid, NotFound, Unavailable
from agentos.evolver.find.triage import AT_WORK, retry
from agentos.evolver.guards.assurance.dynamic import measure
from agentos.evolver.guards.static.check import asked
from agentos.evolver.history.calibration import attest_replay
from agentos.evolver.promote import (
    ConsentContext,
    PromotionContext,
    RebaseContext,
    RollBackContext,
    VouchContext,
)
from agentos.evolver.promote.consent import STANDING, expiry, issue, verify
from agentos.evolver.promote.probing import concerns, passed, probe
from agentos.evolver.promote.review import failing_review
from agentos.evolver.verdict.doubts import doubts
from agentos.evolver.verdict.fresh import fresh_work, with_fresh
from agentos.evolver.verdict.judge import judged_trials
from agentos.evolver.verdict.safety import judged_rates, ruling
from agentos.resources import parse_id
from agentos.rules.document import is_rule_file, weakened

BY_POLICY = "policy:"  # how the principal of the policy's own consent begins


def verdict_on(parts: RollBackContext, candidate_id: str) -> Verdict:
    """The verdict on a candidate; raises NotFound when it was not judged."""
    found = parts.records.find(Verdict, candidate_id=candidate_id)
    if not found:
        raise NotFound(f"{candidate_id} has no verdict yet.")
    return found[-1]


def why_asked(parts: ConsentContext, candidate: Candidate) -> str:
    """Why a person has to approve this edit, "" where the policy may."""
    if parts.policy.consent.asks(tier_of(candidate.manifest.files)):
        return "the policy asks a person for this tier"
    trials = judged_trials(candidate, parts.records.find(Trial, evolution_id=candidate.evolution_id))
    told = asked(_sources(parts, candidate), candidate.edit.files, parts.policy.screen)
    return "; ".join(filter(None, [told, *doubts(candidate, trials, parts.policy)]))


def why_waiting(parts: ConsentContext, candidate: Candidate) -> str:
    """As ``why_asked``, to whoever waits for it: where nothing but fresh work is wanted, that this would do."""
    asked_for = why_asked(parts, candidate)
    trials = judged_trials(candidate, parts.records.find(Trial, evolution_id=candidate.evolution_id))
    fresh = fresh_work(candidate, trials, parts.policy)
    if fresh.missing and fresh.doubts() == [asked_for]:
        return fresh.waits_for(
            ", ".join(sorted({"/".join(path.split("/")[:2]) for path in candidate.edit.files}))
        )
    return asked_for


def _sources(parts: ConsentContext, candidate: Candidate) -> dict[str, str]:
    """The Python files that stood on its base in the resources that it edits."""
    resources = {"/".join(path.split("/")[:2]) for path in candidate.edit.files}
    return {
        path: content.decode("utf-8", "replace")
        for resource in sorted(resources)
        for path, content in parts.snapshots.files(candidate.base, resource).items()
        if path.endswith(".py")
    }


def consent_by_policy(parts: ConsentContext, candidate: Candidate) -> Consent:
    """The policy's own consent, for tiers that it lets pass."""
    tier = tier_of(candidate.manifest.files)
    return _store(parts, candidate, f"{BY_POLICY}{tier.value}=auto", STANDING)


def approve(parts: ConsentContext, evolution: Evolution, principal: str, given: str = "") -> Consent:
    """A person's consent, given as ``given`` says; raises Conflict when there is nothing to approve or it is stale."""
    if evolution.state is not EvolutionState.AWAITING_CONSENT or evolution.candidate_id is None:
        raise Conflict(
            f"{evolution.id} is {evolution.state.value}; only one that awaits consent can be approved."
        )
    candidate = parts.records.get(Candidate, evolution.candidate_id)
    if is_overtaken(parts, candidate):
        raise Conflict(
            f"{evolution.id} is stale: the registry moved since it was judged; "
            f"type `agentos evolution retry {evolution.id}` to measure it again."
        )
    return _store(parts, candidate, principal, given)


def _measured_otherwise(parts: PromotionContext, candidate: Candidate) -> str:
    """Why its trials say nothing any more, the base's among them; "" where they do."""
    own = parts.records.find(Trial, evolution_id=candidate.evolution_id)
    trials = [trial for trial in own if trial.candidate_id in ("", candidate.id)]
    tried_in = {(trial.sandbox, trial.image) for trial in trials if trial.image and trial.candidate_id}
    if any(parts.image_of(sandbox) != image for sandbox, image in tried_in):
        return "the sandbox is not made of what it was when this was tried"
    for host in sorted({trial.host for trial in trials} - {""}):
        if why := parts.distrusted(host):
            return f"the worker {host} measured some of it, and is distrusted: {why}"
    return ""


def settle_overtaken(parts: PromotionContext, evolution: Evolution) -> bool:
    """Whether an evolution that awaits consent had gone stale: then it has ended, and is measured again.

    Where the registry moved and what its trials got is the same, it is put on the new base and goes on waiting.
    """
    if evolution.state is not EvolutionState.AWAITING_CONSENT or evolution.candidate_id is None:
        return False
    candidate = parts.records.get(Candidate, evolution.candidate_id)
    if not is_overtaken(parts, candidate) or rebased(parts, candidate) is not None:
        return False
    _stale(parts, evolution, "the registry moved while it waited for consent")
    return True


def decline(parts: RollBackContext, evolution: Evolution, principal: str, reason: str) -> Evolution:
    """A person says no: the same failure is not taken up again until someone reconsiders it."""
    if evolution.state not in (EvolutionState.AWAITING_CONSENT, EvolutionState.HELD):
        raise Conflict(
            f"{evolution.id} is {evolution.state.value}; only one that awaits consent or is held can be rejected."
        )
    return parts.move(
        evolution,
        EvolutionState.REJECTED,
        f"declined by {principal}: {reason}",
        end=True,
        ending=EvolutionEnding.DECLINED,
    )


def probe_promotion(parts: PromotionContext, evolution: Evolution) -> Evolution:
    """Under a consent that stands: probe the candidate where it changes what runs are driven by.

    One that does not pass ends ROLLED_BACK, and nothing was moved. ``promote`` follows.
    """
    candidate, _, _ = _consented(parts, evolution)
    evolution = parts.move(evolution, EvolutionState.PROMOTING)
    if is_overtaken(parts, candidate):  # by itself, before a kill, or by others
        if (moved := rebased(parts, candidate)) is None:
            return evolution  # ``promote`` finds out which
        candidate = moved
    if why := probe_fault(parts, candidate):
        return parts.move(evolution, EvolutionState.ROLLED_BACK, why, end=True)
    return evolution


def promote(parts: PromotionContext, evolution: Evolution) -> Evolution:
    """Move ``main`` to the candidate's tree, under a consent that stands.

    STALE when it moved meanwhile, or when the sandbox is made of something else than at the trials.

    Raises Conflict when it changes what runs are driven by and did not pass a probe.
    """
    candidate, verdict, consent = _consented(parts, evolution)
    if is_overtaken(parts, candidate) and not _is_done(parts, candidate):
        candidate = rebased(parts, candidate) or candidate
        if not _may_drive(parts, candidate):
            return _stale(parts, evolution, "the registry moved while it was probed")
    base, snapshot = stands_on(candidate)
    if not is_overtaken(parts, candidate):  # by itself before a kill, or by others
        if why := _measured_otherwise(parts, candidate):
            return _stale(parts, evolution, why)
        if not _may_drive(parts, candidate):
            raise Conflict(f"{candidate.id} changes what runs are driven by, and passed no probe.")
    evolution = parts.move(evolution, EvolutionState.PROMOTING)
    trailers = {
        "Evolution": evolution.id,
        "Evidence": evolution.evidence_id,
        "Candidate-Tree": snapshot.tree,
        "Verdict": digest(verdict),
        "Consent": f"{consent.principal} {consent.id}",
    }
    if candidate.rebase:
        trailers |= rebase_trailers(candidate.snapshot, candidate.rebase)
    if candidate.migration:
        trailers["Migrates"] = str(candidate.migration)
    try:
        promoted = parts.candidates.promote(base, snapshot, trailers, candidate.edit.summary)
    except Conflict as error:
        return _stale(parts, evolution, str(error))
    if promoted.tree != (snapshot.tree if candidate.rebase else verdict.candidate_tree):
        raise Conflict(f"{promoted.commit} is not the tree that was tested.")
    attest_replay(parts, evolution, candidate, verdict)
    return _on_probation(parts, evolution, base, promoted)


def _consented(parts: PromotionContext, evolution: Evolution) -> tuple[Candidate, Verdict, Consent]:
    """The candidate, its verdict, and the consent that stands; raises Conflict when one is missing."""
    if evolution.candidate_id is None:
        raise Conflict(f"{evolution.id} has no accepted candidate.")
    if evolution.ended_at is not None and evolution.state is not EvolutionState.PROBATION:
        # declined, or measured again, after somebody consented; on probation it goes on where a kill cut it short
        raise Conflict(f"{evolution.id} is {evolution.state.value}: it is over, whoever consented to it.")
    candidate = parts.records.get(Candidate, evolution.candidate_id)
    consent, verdict = _standing_consent(parts, candidate)
    if _is_by_policy(consent) and (why := why_asked(parts, candidate)):
        raise Conflict(f"The policy may not consent to {candidate.id}: {why}.")
    last = verdict_on(parts, candidate.id)
    if any(
        item.decision is not Decision.PROMOTE or item.candidate_tree != candidate.snapshot.tree
        for item in (verdict, last)
    ):
        raise Conflict(f"The verdict on {candidate.id} does not promote this tree.")
    if failing_review(parts, candidate) is not None:
        raise Conflict(f"The review of {candidate.id} fails it.")
    if why := _weakened(parts, candidate):
        raise Conflict(f"{candidate.id} may not be promoted, whoever consents: {why}.")
    return candidate, verdict, consent


def _weakened(parts: PromotionContext, candidate: Candidate) -> str:
    """Which rule of the home or of a touched skill it weakens, "" when none: by the trees, whatever the edit says."""
    skills = {"/".join(path.split("/")[:2]) for path in candidate.edit.files if path.startswith("skill/")}
    before, after = (
        {
            path: content.decode("utf-8", "replace")
            for place in (Kind.RULE.value, *sorted(skills))
            for path, content in parts.snapshots.files(snapshot, place).items()
            if is_rule_file(path)
        }
        for snapshot in stands_on(candidate)
    )
    paths = sorted(before.keys() | after.keys())
    return weakened(before, {path: after.get(path) for path in paths if before.get(path) != after.get(path)})


def _is_done(parts: PromotionContext, candidate: Candidate) -> bool:
    """It was promoted before a kill, and only the record of that is missing."""
    names = {"/".join(path.split("/")[:2]) for path in candidate.manifest.files}
    return any(
        version.evolution == candidate.evolution_id
        for name in names
        for version in parts.evolvable.versions(parse_id(name))[:1]
    )


def _may_drive(parts: PromotionContext, candidate: Candidate) -> bool:
    """Whether it changes nothing of what runs are driven by, or passed its probe."""
    base, snapshot = stands_on(candidate)
    return not concerns(parts.snapshots, snapshot, base) or passed(parts, snapshot) is not None


def probe_fault(parts: PromotionContext, candidate: Candidate) -> str:
    """Why the candidate may not drive runs, "" when it may, or when it changes nothing of that."""
    base, snapshot = stands_on(candidate)
    if not concerns(parts.snapshots, snapshot, base):
        return ""
    shown = probe(parts, snapshot, base, candidate.evolution_id)
    return "" if shown.passed else f"its probe failed, and nothing was moved: {shown.reason}"


def measure_again(parts: ConsentContext, evolution: Evolution) -> Evolution:
    """Take its evidence up again at a person's wish, on what is stable now: the fresh evolution.

    One that awaits consent goes stale by it. Raises Conflict for one at work, or that stands promoted.
    """
    if evolution.state in AT_WORK - {EvolutionState.AWAITING_CONSENT}:
        raise Conflict(f"{evolution.id} is still at work ({evolution.state.value}).")
    if evolution.state in (EvolutionState.PROBATION, EvolutionState.PROMOTED):
        raise Conflict(
            f"{evolution.id} stands promoted; `agentos evolution revert {evolution.id}` undoes it."
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
    """Undo a promotion by new versions; raises Conflict when later versions build on it."""
    if evolution.promoted is None:
        raise Conflict(f"{evolution.id} is {evolution.state.value}: nothing of it was promoted.")
    if evolution.state is EvolutionState.ROLLED_BACK:
        raise Conflict(f"{evolution.id} was rolled back already.")
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


def _stale(parts: PromotionContext, evolution: Evolution, why: str) -> Evolution:
    """The registry moved: what was measured no longer holds, so it is measured again."""
    ended = parts.move(evolution, EvolutionState.STALE, why, end=True)
    stale = [
        item
        for item in parts.records.find(Evolution, evidence_id=evolution.evidence_id)
        if item.state is EvolutionState.STALE
    ]
    if len(stale) <= parts.policy.mine.taken_up:
        with suppress(Conflict):  # somebody had it taken up already
            retry(parts, ended, takes_up=evolution.candidate_id or "")
    return ended


def _store(parts: ConsentContext, candidate: Candidate, principal: str, given: str) -> Consent:
    verdict = verdict_on(parts, candidate.id)
    expires = expiry(parts.now(), parts.policy.consent.expires_s)
    consent = issue(parts.consent_key, candidate, verdict, principal, expires, given)
    said = {"consent": consent.id, "principal": principal, "given": given}
    parts.audit.note("consent", candidate.evolution_id, said, (consent,))
    return consent


def _standing_consent(parts: PromotionContext, candidate: Candidate) -> tuple[Consent, Verdict]:
    """The newest consent that verifies, with the verdict that it was given for; raises Conflict with the newest
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
            if digest(earlier) == consent.verdict_sha256 and verdict.id == with_fresh(earlier.id):
                verdict = earlier
        try:
            verify(parts.consent_key, consent, candidate, verdict, parts.now())
            return consent, verdict
        except Conflict as error:
            faults.append(error)
    raise faults[0] if faults else Conflict(f"Nobody consented to {candidate.id}.")


def _is_by_policy(consent: Consent) -> bool:
    return consent.principal.startswith(BY_POLICY)


# -------------------------------------------------------------------------------------------------
# What the commit of a promotion on a newer base says; apart from what makes one, for the audit reads
# it too.


def rebase_trailers(judged: Snapshot, rebase: Rebase) -> dict[str, str]:
    """What the commit of such a promotion says of it."""
    return {"Judged-Tree": judged.tree, "Bundles": f"{rebase.bundles_sha256} of {rebase.trials} trials"}


# --- Put an accepted edit on the registry as it stands now, where its verdict still holds there
# A verdict is about what the runs of its trials got: the files of their bundles, and what their boxes were made
# of. When ``main`` moves and all of that would be the same, nothing that was measured has changed: the edit is
# committed on the new base, and may be promoted under the verdict and the consent that it has. What was found is
# recorded with the candidate. What changed in any bundle is measured again (``promotion``).


def stands_on(candidate: Candidate) -> tuple[Snapshot, Snapshot]:
    """Base and snapshot with which it would be promoted now."""
    if candidate.rebase is None:
        return candidate.base, candidate.snapshot
    return candidate.rebase.base, candidate.rebase.snapshot


def is_overtaken(parts: VouchContext, candidate: Candidate) -> bool:
    """The registry moved since the candidate was judged, or was put on a newer base."""
    return parts.snapshots.stable().tree != stands_on(candidate)[0].tree


def rebased(parts: RebaseContext, candidate: Candidate) -> Candidate | None:
    """The candidate on what is stable now, stored; None where its verdict does not hold there."""
    base = parts.snapshots.stable()
    if (
        candidate.control is not None
        or candidate.migration is not None
        or not _applies(parts, candidate, base)
    ):
        return None
    try:
        name = f"{candidate.id}-on-{base.commit[:8]}"
        snapshot = parts.candidates.add_candidate(name, base, candidate.edit.files)
        seen = _bundles(parts, candidate, base, snapshot)
        if not seen or not _is_as_safe(parts, candidate, base, snapshot):
            return None
    except (Conflict, Invalid, Unavailable):  # it cannot be told here: then it is measured again
        return None
    found = Rebase(base, snapshot, digest(seen), len(seen), parts.now())
    moved = replace(candidate, rebase=found)
    detail = {
        "candidate": candidate.id,
        "base": base.commit,
        "bundles": found.bundles_sha256,
        "trials": len(seen),
    }
    parts.audit.note("candidate.rebased", candidate.evolution_id, detail, (moved,))
    return moved


def _applies(parts: RebaseContext, candidate: Candidate, base: Snapshot) -> bool:
    """Nobody changed the files that it changes."""
    return all(
        parts.snapshots.files(candidate.base, path).get(path) == parts.snapshots.files(base, path).get(path)
        for path in candidate.edit.files
    )


def _bundles(
    parts: RebaseContext, candidate: Candidate, base: Snapshot, snapshot: Snapshot
) -> list[tuple[str, str]]:
    """(trial, bundle) of all that the verdict was made of, if a run of each would get the same there; else none."""
    trials = judged_trials(candidate, parts.records.find(Trial, evolution_id=candidate.evolution_id))
    sides = {Arm.BASE: base, Arm.CANDIDATE: snapshot}
    known: dict[tuple[str, Arm], str] = {}
    seen = []
    for trial in trials:
        if not trial.bundle or trial.arm not in sides:
            return []
        key = trial.task_id, trial.arm
        if key not in known:
            known[key] = parts.executor.given(parts.journal.task(trial.task_id), sides[trial.arm])
        if known[key] != trial.bundle:
            return []
        seen.append((trial.id, trial.bundle))
    return sorted(seen)


def _is_as_safe(parts: RebaseContext, candidate: Candidate, base: Snapshot, snapshot: Snapshot) -> bool:
    """The safety probes get another snapshot, so they are run on it, and stored apart from the verdict's."""
    evolution = parts.records.get(Evolution, candidate.evolution_id)
    apart = f"{evolution.id}-on-{base.commit[:8]}"
    moved = replace(candidate, evolution_id=apart, base=base, snapshot=snapshot)
    measure(parts, replace(evolution, id=apart, base=base), moved)
    rates = judged_rates(moved, parts.records.find(SafetyRate, evolution_id=apart))
    return not rates or ruling(moved, rates)[0] is Decision.PROMOTE
