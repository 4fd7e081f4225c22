"""The empty-memory control: what the candidate's tasks come to when nothing at all is remembered.

A memory may look good for no good reason: it outweighs another one that hurts, it dictates an answer that
loose checks let pass, or the memory as a whole has grown into something worse than none. The comparison
with the base shows none of these, so a candidate that touches memories is held against a third arm, the
same snapshot with every lesson taken out (``Candidate.control``). Where the base remembers nothing, that is
the base, and its trials serve. Everything here is a function of stored trials and the policy.

With ``none`` for that arm, a promotion further needs that

- of the evidence that the candidate repairs, enough fails with none as well (not asked of an edit that only
  takes lessons out: there the other arms already agree);
- no guard and no hold-out task that passes with none fails with the candidate;
- the answers of guards and hold-out do not fall together: tasks that pass with none by several answers
  must not all get one and the same with the candidate.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from agentos.domain import (
    COMPARED_SETS,
    Arm,
    Candidate,
    Decision,
    Refusal,
    RefusalKind,
    Result,
    Support,
    SupportKind,
    Trial,
    TrialSet,
    is_memory,
)
from agentos.evolver.policy import Judge, Policy
from agentos.evolver.verdict.sequential import Pair, log_e_above, log_e_below, tally, threshold

ControlFinding = tuple[Decision, Refusal]


def is_asked(candidate: Candidate) -> bool:
    """Whether a verdict on it needs the control."""
    return any(is_memory(path) for path in candidate.edit.files)


def control_trials(candidate: Candidate, trials: Sequence[Trial]) -> list[Trial]:
    """Those made with nothing remembered: an arm of their own, or the base's where it remembers nothing."""
    if candidate.control is None:
        return []
    arm = Arm.BASE if candidate.control.tree == candidate.base.tree else Arm.CONTROL
    return [trial for trial in trials if trial.arm is arm]


def held_against(
    candidate: Candidate, trials: Sequence[Trial], varies: frozenset[str], policy: Policy
) -> ControlFinding | None:
    """What the control has against a promotion, or None. ``varies`` are the tasks that were tried in pairs."""
    if not is_asked(candidate):
        return None
    none = control_trials(candidate, trials)
    own = [trial for trial in trials if trial.arm is Arm.CANDIDATE and not trial.alike]
    if candidate.control is None or not none:
        missing = "it changes what is remembered, and its trials without any memory are missing"
        return Decision.HOLD, Refusal(RefusalKind.UNMEASURED, missing)
    steady = [trial for trial in trials if trial.task_id not in varies and not trial.alike]
    pairs = {which: _pairs(none, own, which, varies) for which in COMPARED_SETS}
    harm = _steady_harm(steady, none) or _varying_harm(pairs, policy.judge)
    if harm:
        return Decision.REJECT, harm
    if (dictated := _dictated(none, own, policy.judge)) is not None:
        return Decision.HOLD, dictated
    if candidate.removes:
        return None
    return _steady_credit(steady, none, policy.judge) or _varying_credit(
        pairs[TrialSet.EVIDENCE], own, policy.judge
    )


def beside_nothing(candidate: Candidate, trials: Sequence[Trial]) -> list[Support]:
    """What a promotion says of the control, in a sentence; none where there is no control."""
    none = [trial for trial in control_trials(candidate, trials) if trial.set is TrialSet.EVIDENCE]
    passed = sum(_passed(trial) for trial in none)
    told = f"with nothing remembered {passed} of {len(none)} trials of the evidence pass"
    return [Support(SupportKind.CONTROL, told)] if none else []


# --- tasks of which every flip counts ---------------------------------------------------------


def _steady_harm(steady: Sequence[Trial], none: Sequence[Trial]) -> Refusal | None:
    """Where a guard or hold-out task passes with none and not with the candidate."""
    after = _passes(trial for trial in steady if trial.arm is Arm.CANDIDATE)
    without = _passes(trial for trial in none if trial.set is not TrialSet.EVIDENCE)
    worse = [
        task_id for task_id, passed in without.items() if passed and after.get(task_id, True) is not True
    ]
    if not worse:
        return None
    hidden = {trial.task_id for trial in none if trial.set is TrialSet.HOLD_OUT}
    named = [task_id for task_id in worse if task_id not in hidden]
    which = ", ".join(
        [*named, *([f"{len(worse) - len(named)} of the hold-out"] if set(worse) & hidden else [])]
    )
    told = f"with nothing remembered at all {which} passes, and with it not: what is remembered does harm"
    return Refusal(RefusalKind.MEMORY_HARMS, told)


def _steady_credit(steady: Sequence[Trial], none: Sequence[Trial], rules: Judge) -> ControlFinding | None:
    """Too much of what it repairs passes with none as well."""
    evidence = [trial for trial in steady if trial.set is TrialSet.EVIDENCE]
    before = _passes(trial for trial in evidence if trial.arm is Arm.BASE)
    after = _passes(trial for trial in evidence if trial.arm is Arm.CANDIDATE)
    without = _passes(trial for trial in none if trial.set is TrialSet.EVIDENCE)
    failing = [task_id for task_id, passed in before.items() if passed is False]
    fixed = [task_id for task_id in failing if after.get(task_id)]
    earned = [task_id for task_id in fixed if without.get(task_id) is False]
    if not fixed or len(earned) >= rules.min_fixed_share * len(failing):
        return None
    return Decision.REJECT, Refusal(
        RefusalKind.MEMORY_IDLE,
        f"{len(fixed) - len(earned)} of the {len(fixed)} tasks that it repairs pass with nothing remembered "
        "as well: it outweighs a memory that hurts; take that one out instead",
    )


def _passes(trials: Iterable[Trial]) -> dict[str, bool | None]:
    """By task: passed in every trial, failed in every trial, or neither (None)."""
    seen: dict[str, set[bool]] = {}
    for trial in trials:
        if trial.outcome.result is not Result.NOT_REPLAYABLE:
            seen.setdefault(trial.task_id, set()).add(_passed(trial))
    return {task_id: results.pop() if len(results) == 1 else None for task_id, results in seen.items()}


# --- tasks that vary --------------------------------------------------------------------------


def _pairs(
    none: Sequence[Trial], own: Sequence[Trial], which: TrialSet, varies: frozenset[str]
) -> dict[str, list[Pair]]:
    """By task: passed with none, passed with the candidate, for each repeat that both have."""
    without = {(trial.task_id, trial.repeat): trial for trial in none}
    found: dict[str, list[Pair]] = {}
    for trial in sorted(own, key=lambda item: item.repeat):
        other = without.get((trial.task_id, trial.repeat))
        if trial.set is which and trial.task_id in varies and trial.number and other is not None:
            found.setdefault(trial.task_id, []).append((_passed(other), _passed(trial)))
    return found


def _varying_harm(pairs: Mapping[TrialSet, Mapping[str, Sequence[Pair]]], rules: Judge) -> Refusal | None:
    for which in (TrialSet.GUARD, TrialSet.HOLD_OUT):
        found = tally(pairs[which])
        if found.losses and log_e_below(found, 0.0) >= math.log(1 / rules.beta):
            return Refusal(
                RefusalKind.MEMORY_HARMS,
                f"{which.value}: with nothing remembered at all it passes oftener "
                f"({found.losses:g} better and {found.wins:g} worse of {found.pairs:g} pairs): "
                "what is remembered does harm",
            )
    return None


def _varying_credit(
    pairs: Mapping[str, Sequence[Pair]], own: Sequence[Trial], rules: Judge
) -> ControlFinding | None:
    """Its gain over none is not shown, at the level at which its gain over the base was."""
    if not pairs:
        return None
    found = tally(pairs)
    number = max((trial.number for trial in own if trial.set is TrialSet.EVIDENCE), default=1)
    if log_e_above(found, 0.0) >= threshold(rules.alpha, max(1, number)):
        return None
    counts = f"{found.wins:g} better and {found.losses:g} worse of {found.pairs:g} pairs"
    if found.wins <= found.losses:
        return Decision.REJECT, Refusal(
            RefusalKind.MEMORY_IDLE,
            f"evidence: it passes no oftener than with nothing remembered at all ({counts}): "
            "it outweighs a memory that hurts; take that one out instead",
        )
    open_yet = f"evidence: a gain over nothing remembered at all is not shown ({counts})"
    return Decision.HOLD, Refusal(RefusalKind.MEMORY_IDLE, open_yet)


# --- answers ----------------------------------------------------------------------------------


def _dictated(none: Sequence[Trial], own: Sequence[Trial], rules: Judge) -> Refusal | None:
    """Where tasks that none answers rightly in several ways get one and the same answer with it.

    One answer is given in ``one_answer`` of the trials, over ``answers_min`` tasks, where without memory none was
    given in more than ``several_answers`` of them.

    Tasks that are answered as without it say nothing: it has no say in them, however many there are.
    """
    others = [trial for trial in none if trial.set is not TrialSet.EVIDENCE and _passed(trial)]
    before, after = _answers(others), _answers(own)
    moved = {task_id for task_id in before.keys() & after.keys() if before[task_id] != after[task_id]}
    if len(moved) < rules.answers_min:
        return None
    without = [trial for trial in others if trial.task_id in moved]
    given = [trial for trial in own if trial.task_id in moved]
    if _commonest(given) < rules.one_answer or _commonest(without) > rules.several_answers:
        return None
    return Refusal(
        RefusalKind.DICTATED,
        f"with it {len(moved)} tasks that pass by different answers without any memory get one and the same: "
        "it seems to dictate an answer that their checks let pass; make the checks stricter, or accept it by hand",
    )


def _answers(trials: Sequence[Trial]) -> dict[str, set[str]]:
    """By task, the answers that were given."""
    found: dict[str, set[str]] = {}
    for trial in trials:
        found.setdefault(trial.task_id, set()).add(trial.answer_sha256)
    return found


def _commonest(trials: Sequence[Trial]) -> float:
    """The share of the answer that is given most often."""
    counts = Counter(trial.answer_sha256 for trial in trials)
    return max(counts.values()) / len(trials)


def _passed(trial: Trial) -> bool:
    return trial.outcome.result is Result.PASSED
