"""Doubts: why a person is asked before a promotion that the comparison of both sides would allow.

Several things can be true of an edit that mends its evidence and breaks nothing: all that it gained is work
without checks, of which nobody says that its answers are right; it leaves some of the evidence as it was; too
little work beside the evidence was there to break; some of what it changes ran in none of that work; or the hidden part of that work has told of so
many edits that this one may have been found by trying. A pure function of candidate, trials
and policy, as the verdict is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agentos.domain import (
    Ambiguity,
    Arm,
    Behaviour,
    Candidate,
    EditedName,
    Refusal,
    RefusalKind,
    Result,
    Trial,
    TrialSet,
)
from agentos.evolver.policy import CHECKED, EDITION, STOOD, Policy
from agentos.evolver.verdict.fresh import fresh_work, ran, reaches, split
from agentos.evolver.verdict.overfitting import mended
from agentos.evolver.verdict.pairing import apart

_NAMED = 3  # parts of an edit that a sentence names


def doubts(candidate: Candidate, trials: Sequence[Trial], policy: Policy) -> tuple[Refusal, ...]:
    """What a person is asked about; none where the policy may consent by itself."""
    if policy.edition < CHECKED:
        return ()
    compared, _ = split(trials)
    known = [trial for trial in compared if trial.arm is not Arm.CONTROL]
    found = list(_of_trials(candidate, known, policy))
    if 0 < candidate.prior < policy.replay.prior_min:
        told = (
            f"it is far-fetched, 1 in {round(1 / candidate.prior):,} of all edits of its file by how faults are mended: "
            "among so many one may pass by luck"
        )
        found.append(Refusal(RefusalKind.UNLIKELY, told))
    if candidate.behaviour is not None:
        idle = any(doubt.kind is RefusalKind.UNGUARDED for doubt in found)
        found += _of_behaviour(candidate.behaviour, policy, idle=idle)
    if policy.edition >= STOOD and (worn := worn_out(known, policy)):
        found.append(worn)
    return (*found, *fresh_work(candidate, trials, policy).doubts())


def _of_trials(candidate: Candidate, known: Sequence[Trial], policy: Policy) -> Iterator[Refusal]:
    if _gains_unchecked(known):
        told = "its only gain is work without checks: it ends now, and nobody says that its answers are right"
        yield Refusal(RefusalKind.UNCHECKED, told)
    if left := _leaves(candidate, known, policy):
        yield left
    serving = guarding(candidate, known, policy.edition)
    if len(serving) < (needed := max(1, policy.judge.min_tasks)):
        yield Refusal(RefusalKind.FEW_GUARDS, _too_few(candidate, len(serving), needed))
    if idle := idle_parts(candidate, known, policy.edition):
        yield Refusal(RefusalKind.UNGUARDED, f"what it edits ran in no guard: {_listed(idle)}")


def _of_behaviour(seen: Behaviour, policy: Policy, *, idle: bool) -> Iterator[Refusal]:
    """``idle``: that something of it ran nowhere is said already."""
    if seen.unguarded and not idle:
        told = "no working call runs the lines that it changes, so nothing shows what it breaks there"
        yield Refusal(RefusalKind.UNGUARDED, told)
    if seen.unmended:
        yield Refusal(RefusalKind.UNMENDED, f"the failure is still there for {seen.unmended}")
    if seen.breaks:
        yield Refusal(RefusalKind.BREAKS, f"it ends where its base answers: {seen.breaks}")
    if seen.broad:
        told = "it changes most of what the tool answers next to work that passes, which is not the repair of a slip"
        yield Refusal(RefusalKind.BROAD, told)
    if seen.loosened:
        told = f"it takes away {seen.loosened}, and puts nothing in its place: what did that keep out?"
        yield Refusal(RefusalKind.LOOSENED, told)
    if seen.unread:
        told = f"nothing reads {seen.unread}, with it either: is that what is missing?"
        yield Refusal(RefusalKind.UNREAD, told)
    if 0 < seen.share < policy.replay.share_min:
        told = f"of its search's belief in all edits that pass the known tasks it has {seen.share:.0%}: another one is likelier meant"
        yield Refusal(RefusalKind.UNLIKELY, told)
    if seen.ambiguity is not None:
        yield Refusal(RefusalKind.AMBIGUOUS, _question(seen.ambiguity))


def _question(found: Ambiguity) -> str:
    others = "another edit passes" if found.rivals == 1 else f"{found.rivals} other edits pass"
    return (
        f"it is ambiguous: {others} the same tasks, and for {found.call} this one answers {found.answer}, "
        f"{found.rival} {found.other}: which is right?"
    )


def worn_out(trials: Iterable[Trial], policy: Policy) -> Refusal | None:
    """Why the hidden tasks tell nothing of it; None where they do or there are none."""
    looks = [trial.look for trial in trials if trial.set is TrialSet.HOLD_OUT and trial.look]
    most = policy.judge.hold_out_looks
    if not looks or min(looks) <= most:
        return None
    told = (
        f"the hold-out is used up: {most} candidates of this failure were tried on each of its tasks before"
    )
    return Refusal(RefusalKind.WORN_OUT, told)


def _too_few(candidate: Candidate, there: int, needed: int) -> str:
    ran = " and ran what it edits" if candidate.edited else ""
    return (
        f"of guards and hold-out tasks with checks, {there} pass with it{ran}, and with fewer than {needed} "
        "(min_tasks) nobody can tell what it breaks"
    )


def checked(trials: Iterable[Trial]) -> frozenset[str]:
    """The tasks whose answers somebody said how to check. One that never answered is not known to be one."""
    return frozenset(trial.task_id for trial in trials if trial.outcome.checks)


def guarding(candidate: Candidate, trials: Sequence[Trial], edition: int = EDITION) -> frozenset[str]:
    """Guards and hold-out tasks that pass with it, are checked, and ran some of what it edits: one of each work.

    What failed on the base each time had nothing to break: it is one more case of a failure. Of an edit that only brings new files nothing could have run before: there, all of them.
    """
    work = {trial.task_id: trial.work or trial.task_id for trial in trials}
    beside = sorted(_beside(trials, edition).items(), reverse=True)
    first = {work[task_id]: task_id for task_id, reached in beside if reaches(candidate, reached)}
    return frozenset(first.values())


def idle_parts(candidate: Candidate, trials: Sequence[Trial], edition: int = EDITION) -> list[EditedName]:
    """Of what it edits, what ran in no such task."""
    reached = frozenset[str]().union(*_beside(trials, edition).values())
    return [part for part in candidate.edited if not ran(part, reached)]


def _beside(trials: Sequence[Trial], edition: int) -> dict[str, frozenset[str]]:
    """Checked guards and hold-out tasks that pass with the candidate, with all that their trials entered.

    What asks for the very work of the evidence, with other checks, may break and stands for nothing else.
    """
    same = {trial.work for trial in trials if trial.work and trial.set is TrialSet.EVIDENCE}
    stood = {
        trial.task_id
        for trial in trials
        if edition < STOOD or (trial.arm is Arm.BASE and trial.outcome.result is Result.PASSED)
    }
    own = [
        trial
        for trial in trials
        if trial.arm is Arm.CANDIDATE
        and trial.set in (TrialSet.GUARD, TrialSet.HOLD_OUT)
        and trial.work not in same
        and trial.outcome.result is not Result.NOT_REPLAYABLE
    ]
    varies = {trial.task_id for trial in own if trial.number}
    failed = {trial.task_id for trial in own if trial.outcome.result is not Result.PASSED} - varies
    known = checked(trials)
    found: dict[str, frozenset[str]] = {}
    for trial in own:
        if trial.outcome.result is Result.PASSED and trial.task_id in known & stood - failed:
            found[trial.task_id] = found.get(trial.task_id, frozenset()) | frozenset(trial.reached)
    return found


def _gains_unchecked(trials: Sequence[Trial]) -> bool:
    """Whether some evidence passes more often with it, and none of that has checks."""
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


def _leaves(candidate: Candidate, trials: Sequence[Trial], policy: Policy) -> Refusal | None:
    """That some of the evidence fails with it as before; None where none does. What varies is judged by pairs."""
    own = [trial for trial in trials if trial.set is TrialSet.EVIDENCE and trial.candidate_id == candidate.id]
    aside = apart(trials) if own else frozenset[str]()
    ends = mended([trial for trial in own if trial.task_id not in aside], policy.judge)
    if sum(ends) >= policy.judge.unattended_share * len(ends):
        return None
    told = f"it mends {sum(ends)} of the {len(ends)} failing tasks that it was found for: is that the cause?"
    return Refusal(RefusalKind.PARTIAL, told)


def _share(passed: Sequence[bool]) -> float:
    return sum(passed) / len(passed) if passed else 0.0


def _listed(parts: Sequence[EditedName]) -> str:
    more = len(parts) - _NAMED
    names = ", ".join(part.name for part in parts[:_NAMED])
    return f"{names} and {more} more" if more > 0 else names
