"""Doubts: why a person is asked before a promotion that the comparison of both sides would allow.

Three things can be true of an edit that mends its evidence and breaks nothing: all that it gained is work
without checks, of which nobody says that its answers are right; too little work beside the evidence was
there to break; or some of what it changes ran in none of that work. A pure function of candidate, trials
and policy, as the verdict is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from agentos.domain import Arm, Candidate, Edited, Result, Trial, TrialSet
from agentos.evolver.policy import CHECKED, Policy

_NAMED = 3  # parts of an edit that a sentence names


def doubts(candidate: Candidate, trials: Sequence[Trial], policy: Policy) -> tuple[str, ...]:
    """One sentence each; none where the policy may consent by itself."""
    if policy.edition < CHECKED:
        return ()
    known = [trial for trial in trials if trial.arm is not Arm.CONTROL]
    found = []
    if _gains_unchecked(known):
        found.append(
            "its only gain is work without checks: it ends now, and nobody says that its answers are right"
        )
    serving = guarding(candidate, known)
    if len(serving) < (needed := max(1, policy.judge.min_tasks)):
        found.append(_too_few(candidate, len(serving), needed))
    if idle := idle_parts(candidate, known):
        found.append(f"what it edits ran in no guard: {_listed(idle)}")
    return tuple(found)


def _too_few(candidate: Candidate, there: int, needed: int) -> str:
    ran = " and ran what it edits" if candidate.edited else ""
    return (
        f"of guards and hold-out tasks with checks, {there} pass with it{ran}, and with fewer than {needed} "
        "(min_tasks) nobody can tell what it breaks"
    )


def checked(trials: Iterable[Trial]) -> frozenset[str]:
    """The tasks whose answers somebody said how to check. One that never answered is not known to be one."""
    return frozenset(trial.task_id for trial in trials if trial.outcome.checks)


def guarding(candidate: Candidate, trials: Sequence[Trial]) -> frozenset[str]:
    """Guards and hold-out tasks that pass with it, are checked, and ran some of what it edits.

    Of an edit that only brings new files nothing could have run before: there, all of them.
    """
    there = [part for part in candidate.edited if not part.new_file]
    return frozenset(
        task_id
        for task_id, reached in _beside(trials).items()
        if not there or any(ran(part, reached) for part in there)
    )


def idle_parts(candidate: Candidate, trials: Sequence[Trial]) -> list[Edited]:
    """Of what it edits, what ran in no such task."""
    reached = frozenset[str]().union(*_beside(trials).values())
    return [part for part in candidate.edited if not ran(part, reached)]


def ran(part: Edited, reached: Set[str]) -> bool:
    """Whether one of the functions that show it was entered."""
    return not reached.isdisjoint(part.shown_by)


def _beside(trials: Sequence[Trial]) -> dict[str, frozenset[str]]:
    """Checked guards and hold-out tasks that pass with the candidate, with all that their trials entered."""
    own = [
        trial
        for trial in trials
        if trial.arm is Arm.CANDIDATE
        and trial.set is not TrialSet.EVIDENCE
        and trial.outcome.result is not Result.NOT_REPLAYABLE
    ]
    varies = {trial.task_id for trial in own if trial.number}
    failed = {trial.task_id for trial in own if trial.outcome.result is not Result.PASSED} - varies
    known = checked(trials)
    found: dict[str, frozenset[str]] = {}
    for trial in own:
        if trial.outcome.result is Result.PASSED and trial.task_id in known - failed:
            found[trial.task_id] = found.get(trial.task_id, frozenset()) | frozenset(trial.reached)
    return found


def _gains_unchecked(trials: Sequence[Trial]) -> bool:
    """Whether some evidence passes oftener with it, and none of that has checks."""
    known = checked(trials)
    rates: dict[str, dict[Arm, list[bool]]] = {}
    for trial in trials:
        if trial.set is TrialSet.EVIDENCE and trial.outcome.result is not Result.NOT_REPLAYABLE:
            sides = rates.setdefault(trial.task_id, {Arm.BASE: [], Arm.CANDIDATE: []})
            sides[trial.arm].append(trial.outcome.result is Result.PASSED)
    gained = {
        task_id for task_id, sides in rates.items() if _share(sides[Arm.CANDIDATE]) > _share(sides[Arm.BASE])
    }
    return bool(gained) and not gained & known


def _share(passed: Sequence[bool]) -> float:
    return sum(passed) / len(passed) if passed else 0.0


def _listed(parts: Sequence[Edited]) -> str:
    more = len(parts) - _NAMED
    names = ", ".join(part.name for part in parts[:_NAMED])
    return f"{names} and {more} more" if more > 0 else names
