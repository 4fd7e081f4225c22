"""Runs the trials of an evolution once more, each from its own record, and holds the two together; says what
a promotion should rest on and does not.

Nothing is asked and nothing is stored: a model call or an outside effect that is not on the trial's
record ends it. What differs is machinery that is not deterministic, or a record that is not whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agentos.domain import Candidate, Consent, Decision, Evolution, Mode, Step, Trial, Verdict, digest
from agentos.errors import NotFound, Unavailable
from agentos.evolver.history.recordings import asks, recording_of, told, unpacked
from agentos.evolver.select.renaming import in_other_names
from agentos.evolver.verdict.judge import judged_trials

if TYPE_CHECKING:  # the audit compares only, and need not import what runs trials
    from agentos.evolver.replay import ReplayContext
    from agentos.ports import Attempt, Snapshots


@dataclass(frozen=True, slots=True)
class TrialComparison:
    """One trial and what was different this time, a sentence each."""

    trial: Trial
    differences: tuple[str, ...]


def unfounded(
    evolution: Evolution,
    verdicts: Sequence[Verdict],
    consents: Sequence[Consent],
    candidates: Sequence[Candidate] = (),
    sha256_of: Callable[[Verdict], str] = digest,
) -> Iterator[str]:
    """What a promotion rests on and is not on record, a sentence each; nothing of what was not promoted."""
    if evolution.promoted is None:
        return
    verdict = next((item for item in verdicts if item.candidate_id == evolution.candidate_id), None)
    if verdict is None or verdict.decision is not Decision.PROMOTE:
        yield f"{evolution.id} was promoted, and no verdict on record promotes {evolution.candidate_id}"
        return
    rebase = next((item.rebase for item in candidates if item.id == evolution.candidate_id), None)
    if evolution.promoted.tree != (rebase.snapshot.tree if rebase else verdict.candidate_tree):
        yield f"{evolution.id}: the tree that was promoted is not the one that was judged"
    given = {(item.candidate_tree, item.verdict_sha256) for item in consents}
    if (verdict.candidate_tree, sha256_of(verdict)) not in given:
        yield f"{evolution.id} was promoted, and no consent on record was given for its verdict"


def misquoted(snapshots: Snapshots, candidate: Candidate) -> Iterator[str]:
    """Each file of the edit that is on record with another text than in the candidate's snapshot."""
    brought = candidate.migration.files if candidate.migration else {}
    for path, text in {**candidate.edit.files, **brought}.items():
        try:
            found = snapshots.files(candidate.snapshot, path).get(path)
        except Unavailable as error:
            yield f"{candidate.id}: its snapshot cannot be read: {error}"
            return
        if found != text.encode("utf-8", "replace"):
            yield f"{candidate.id}: {path} on record is not what stands in its snapshot"


def misplaced(snapshots: Snapshots, candidate: Candidate, trials: Sequence[Trial]) -> Iterator[str]:
    """What is wrong with a candidate that was put on a newer base: it has to be its edit and nothing else there."""
    rebase = candidate.rebase
    if rebase is None:
        return
    seen = sorted((trial.id, trial.bundle) for trial in judged_trials(candidate, trials))
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


def borrowed(trials: Sequence[Trial], known: Callable[[str], Sequence[Trial]]) -> Iterator[str]:
    """Trials that were taken from another evolution and are not what is on record there; ``known`` finds by id."""
    own = ("id", "evolution_id", "candidate_id", "snapshot", "number", "look", "taken_from")
    for trial in trials:
        same = {name: getattr(trial, name) for name in own}
        if trial.taken_from and not any(
            replace(one, **same) == trial and one.bundle for one in known(trial.taken_from)
        ):
            yield f"{trial.id} is said to be {trial.taken_from}, and is not what is on record of it"


def run_again(
    parts: ReplayContext, evolution_id: str, done: Callable[[TrialComparison], None] = lambda compared: None
) -> list[TrialComparison]:
    """Every stored trial of the evolution; ``done`` is called with each, on any thread."""

    def compare(trial: Trial) -> TrialComparison:
        compared = TrialComparison(trial, tuple(_differences(parts, trial)))
        done(compared)
        return compared

    return list(parts.replayer.map(compare, parts.records.find(Trial, evolution_id=evolution_id)))


def _differences(parts: ReplayContext, trial: Trial) -> list[str]:
    try:
        steps = unpacked(parts.blobs.get(trial.steps_sha256)) if trial.steps_sha256 else []
        again = _again(parts, trial, steps)
    except (NotFound, Unavailable) as error:
        return [f"it could not be run again: {error}"]
    found = [
        f"{name} was {before}, is {now}"
        for name, before, now in (
            ("the result", trial.outcome.result.value, again.outcome.result.value),
            ("the score", trial.outcome.score, again.outcome.score),
            ("the answer", trial.answer_sha256[:12], again.answer_sha256[:12]),
        )
        if before != now
    ]
    if not found and trial.steps_sha256 and told(steps) != told(again.steps):
        found = [_parting(steps, again.steps)]
    return found


def _again(parts: ReplayContext, trial: Trial, steps: Sequence[Step]) -> Attempt:
    """Under the trial's own run id, which is the one that its record knows it by."""
    from agentos.ports import Plan

    run_id = trial.run_id or trial.id
    recording = None
    if asks(steps):
        recording = recording_of(trial.snapshot, [(run_id, steps)], parts.journal.answers(trial.task_id))
    plan = Plan(mode=Mode.REPLAY, recording=recording, evolution_id=trial.evolution_id, prefer=trial.sandbox)
    task = parts.journal.task(trial.task_id)
    other = in_other_names(parts, task) if trial.renamed else None
    done = parts.executor.execute(other.task if other else task, trial.snapshot, run_id, plan=plan)
    return replace(done, answer_sha256=digest(other.as_before(done.answer))) if other else done


def _parting(before: Sequence[Step], now: Sequence[Step]) -> str:
    one, other = told(before), told(now)
    at = next(
        (index for index, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )
    return f"the result is the same, and the way there differs from step {at} on"
