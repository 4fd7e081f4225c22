"""An edit that waits, compared with others once more: with the fresh tasks that it passes among the known ones.

Of an edit that passes what was known a person is asked what nothing known tells. Work that came since may tell it: what
one of two edits fails is no question any more. What was seen at first stays on record, and verdicts without fresh work
go by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from agentos.checks import compared
from agentos.domain import (
    Arm,
    Candidate,
    EvolutionState,
    Reexamination,
    RefusalKind,
    Task,
    Trial,
    TrialSet,
    canonical,
    is_reference,
)
from agentos.errors import NotFound
from agentos.evolver.policy import REEXAMINED, Policy
from agentos.evolver.promote import ConsentContext
from agentos.evolver.promote.promotion import why_asked
from agentos.evolver.propose import BehaviourContext
from agentos.evolver.propose.behaviour import reexamined
from agentos.evolver.replay import FreshContext
from agentos.evolver.select.curate import TaskSets, is_hidden
from agentos.evolver.states import EvolutionStates
from agentos.evolver.verdict.doubts import doubts, fresh_work
from agentos.evolver.verdict.pairing import apart, split

if TYPE_CHECKING:
    from agentos.ports import Audit


class ReexaminationContext(BehaviourContext, ConsentContext, FreshContext, EvolutionStates, Protocol):
    """What an edit is compared, and what that found stored with."""

    audit: Audit


def to_reexamine(
    parts: ReexaminationContext, candidate: Candidate, trials: Sequence[Trial]
) -> tuple[str, ...]:
    """The fresh tasks with which it is due; () where it is not, or a person is asked about something else in any case."""
    if parts.benches is None or not (later := comparable(candidate, trials, parts.policy)):
        return ()
    asked = why_asked(parts, candidate)
    return later if asked is not None and asked.kind is RefusalKind.DOUBT else ()


def comparable(candidate: Candidate, trials: Sequence[Trial], policy: Policy) -> tuple[str, ...]:
    """The fresh tasks among which a waiting edit is due to be compared again; () where it is not.

    Where so many count as are wanted, and once more for each time as many; and where nothing is asked that would stay.
    """
    before = candidate.behaviour
    if policy.edition < REEXAMINED or before is None or not before.known:
        return ()
    fresh = fresh_work(candidate, trials, policy)
    again = candidate.reexamination
    wanted = fresh.wanted + (len(again.task_ids) if again is not None else 0)
    if not fresh.wanted or fresh.broken or fresh.doubts() or len(fresh.passed) < wanted:
        return ()
    _, tried = split(trials)
    if any(trial.arm is Arm.CANDIDATE and not trial.passed for trial in tried):
        return ()  # whatever it fails for, nobody can say that it does all that it should
    asked = doubts(candidate, trials, policy)
    return fresh.passed if asked and all(doubt.compared for doubt in asked) else ()


def reexamine(
    parts: ReexaminationContext, candidate: Candidate, trials: Sequence[Trial], later: Sequence[str]
) -> Candidate:
    """The candidate with what was found, which is stored, and the reason why its evolution waits now.

    Where it cannot be compared any more that is stored as well, with what was seen before: it is not tried over and over.
    """
    seen = candidate.behaviour
    assert seen is not None
    try:
        sets = known_sets(parts, candidate, trials, refusing(parts, later, seen.known))
        seen = reexamined(parts, candidate, sets, later) or seen
    except NotFound:  # of what was known then some was cleared away
        pass
    again = replace(candidate, reexamination=Reexamination(tuple(later), seen))
    waiting = parts.evolution(candidate.evolution_id)
    before, after = (doubts(each, trials, parts.policy) for each in (candidate, again))
    said = {"candidate": candidate.id, "tasks": len(later), "asked": len(before), "left": len(after)}
    changed: list[object] = [again]
    if after and waiting.state is EvolutionState.AWAITING_CONSENT:
        changed.append(replace(waiting, reason="; ".join(doubt.reason for doubt in after)))
    parts.audit.note("fresh.reexamined", waiting.id, said, changed)
    return again


def refusing(parts: ReexaminationContext, task_ids: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Of fresh tasks that an edit passes, those whose checks refuse most answers to others: of any others a pass says little.

    Answers to ``known`` tasks count, too. Checks that only a box can make are taken to refuse nothing.
    """
    tasks, others_known = parts.tasks(tuple(task_ids)), parts.tasks(tuple(known))
    runs = {
        run.task_id: run for task in (*tasks, *others_known) for run in parts.journal.runs_of(task.key, 1)
    }
    said = {task_id: run.answer for task_id, run in runs.items() if not is_reference(run.answer)}

    def refuses(task: Task) -> bool:
        run = runs.get(task.id)
        if run is None or (not run.passed and run.answer is not None):
            return run is not None  # what it was answered before
        own = canonical(run.answer) if run.passed else b""
        others = {canonical(answer): answer for answer in said.values() if canonical(answer) != own}
        refused = [
            any(compared(check.kind, check.spec, answer) for check in task.checks)
            for answer in others.values()
            if answer is not None
        ]
        return 2 * sum(refused) > len(refused)

    return tuple(task.id for task in tasks if refuses(task))


def known_sets(
    parts: ReexaminationContext, candidate: Candidate, trials: Sequence[Trial], later: Sequence[str]
) -> TaskSets:
    """What was known when it was found, and the tasks ``later``: as evidence where they failed before, else as guards."""
    assert candidate.behaviour is not None
    known, _ = split(trials)
    mended = fresh_work(candidate, trials, parts.policy).mended
    failing = {trial.task_id for trial in known if trial.set is TrialSet.EVIDENCE} | {*mended}
    hold_out = dict.fromkeys(trial.task_id for trial in known if trial.set is TrialSet.HOLD_OUT)
    held_back = parts.evolution(candidate.evolution_id).held_back
    hidden = [task.id for task in parts.tasks(tuple(later)) if is_hidden(parts, task)]
    shown = (*candidate.behaviour.known, *(task_id for task_id in later if task_id not in hidden))
    held_back = (*held_back, *(task_id for task_id in hidden if task_id in failing))
    return TaskSets(
        (*(task_id for task_id in shown if task_id in failing), *held_back),
        tuple(task_id for task_id in shown if task_id not in failing),
        (*hold_out, *(task_id for task_id in hidden if task_id not in failing)),
        # what was compared at first is compared again, also where it turned out unsteady since
        tuple(apart(known) - {*candidate.behaviour.known}),
        held_back,
    )
