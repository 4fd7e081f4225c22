"""Put an accepted edit on the registry as it stands now, where its verdict still holds there.

A verdict is about what the runs of its trials got: the files of their bundles, and what their boxes were made of. When
``main`` moves and all of that would be the same, nothing that was measured has changed: the edit is committed on the new
base, and may be promoted under the verdict and the consent that it has. What was found is recorded with the candidate.
What changed in any bundle is measured again (``promotion``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from agentos.errors import Conflict, Invalid, Unavailable
from agentos.evolver.promote import PromotionContext, RebaseContext
from agentos.evolver.promote.consent import is_overtaken
from agentos.evolver.states import RecordContext, retry
from agentos.evolver.verdict.gates import judged_rates, safety_ruling
from agentos.evolver.verdict.pairing import judged_trials
from agentos.records.candidates import Candidate, Decision, Rebase
from agentos.records.evolution import Evolution, EvolutionState
from agentos.records.identity import Snapshot, digest
from agentos.records.trials import Arm, SafetyRate, Trial

if TYPE_CHECKING:
    from agentos.ports import Snapshots


def rebase_trailers(judged: Snapshot, rebase: Rebase) -> dict[str, str]:
    """What the commit of such a promotion says of it."""
    return {"Judged-Tree": judged.tree, "Bundles": f"{rebase.bundles_sha256} of {rebase.trials} trials"}


def rebased(parts: RebaseContext, candidate: Candidate) -> Candidate | None:
    """The candidate on what is stable now, stored; None where its verdict does not hold there."""
    base = parts.snapshots.stable()
    if (
        candidate.control is not None
        or candidate.migration is not None
        or not applies(parts, candidate, base)
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


def misplaced(snapshots: Snapshots, candidate: Candidate, trials: Sequence[Trial]) -> Iterator[str]:
    """What is wrong with a candidate that was put on a newer base: it has to be its edit and nothing else there."""
    rebase = candidate.rebase
    if rebase is None:
        return
    # Fresh work, which stands last, goes on to be tried after that.
    judged = judged_trials(candidate, trials)[: rebase.trials]
    seen = sorted((trial.id, trial.bundle) for trial in judged)
    if (
        digest(seen) != rebase.bundles_sha256
        or len(seen) != rebase.trials
        or not all(bundle for _, bundle in seen)
    ):
        yield f"{candidate.id} was put on a newer base on the word of other trials than are on record"
    try:
        before, after = (snapshots.files(side, "") for side in (rebase.base, rebase.snapshot))
    except Unavailable as error:
        yield f"{candidate.id}: the base it was put on cannot be read: {error}"
        return
    changed = {path: after.get(path) for path in {*before, *after} if before.get(path) != after.get(path)}
    edit = {path: text.encode("utf-8", "replace") for path, text in candidate.edit.files.items()}
    if not changed.items() <= edit.items():
        yield f"{candidate.id}: on its newer base stands something else than its edit"


def applies(parts: RecordContext, candidate: Candidate, base: Snapshot) -> bool:
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
    parts.measured(replace(evolution, id=apart, base=base), moved)
    rates = judged_rates(moved, parts.records.find(SafetyRate, evolution_id=apart))
    return not rates or safety_ruling(moved, rates)[0] is Decision.PROMOTE


def settle_overtaken(parts: PromotionContext, evolution: Evolution) -> bool:
    """Whether an evolution that awaits consent had gone stale: then it has ended, and is measured again.

    Where the registry moved and what its trials got is the same, it is put on the new base and goes on waiting.
    """
    take_up_stale(parts, evolution)  # it may have gone stale by this, before a kill
    if evolution.state is not EvolutionState.AWAITING_CONSENT or evolution.candidate_id is None:
        return False
    candidate = parts.records.get(Candidate, evolution.candidate_id)
    with suppress(Conflict):  # a person ended it meanwhile
        if is_overtaken(parts, candidate) and rebased(parts, candidate) is None:
            end_stale(parts, evolution, "the registry moved while it waited for consent")
            return True
    return False


def end_stale(parts: PromotionContext, evolution: Evolution, why: str) -> Evolution:
    """The registry moved: what was measured no longer holds, so it is measured again."""
    return take_up_stale(parts, parts.move(evolution, EvolutionState.STALE, why, end=True))


def take_up_stale(parts: PromotionContext, ended: Evolution) -> Evolution:
    """The same; if it is stale its evidence is taken up again, unless that was done, or as often as the policy says."""
    if ended.state is not EvolutionState.STALE:
        return ended
    every = parts.records.find(Evolution, evidence_id=ended.evidence_id)
    stale = sum(item.state is EvolutionState.STALE for item in every)
    is_done = any(item.takes_up and item.takes_up == ended.candidate_id for item in every)
    if stale <= parts.policy.mine.taken_up and not is_done:
        with suppress(Conflict):  # somebody had it taken up already
            retry(parts, ended, takes_up=ended.candidate_id or "")
    return ended
