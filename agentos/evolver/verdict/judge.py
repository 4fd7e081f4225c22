"""Judge: a pure function from trials to a verdict. Computed, never generated.

For deterministic tasks every flip counts:

- a task that failed on the base in every trial and passes with the candidate in every trial is *fixed*;
- one that passed on the base in every trial and does not with the candidate is *broken*;
- where trials of a task on one side differ, the whole set is *unsteady*: its flips say nothing, and it is
  judged by pairs, as what varies is;
- enough failed and passed that luck is excluded, for all candidates of the failure together (``pairing.log_luck``);
- a trial that could not be replayed counts neither way, and a task of which one side has no other
  is *left out*. A guard that passes on the base and cannot be replayed with the candidate holds the
  promotion: an edit must not get past what it makes impossible to measure.

A task that *varies*, because it asks models or was seen to, was tried afresh in pairs; such tasks are judged
together by how often they pass (``pairing``, ``paired_tests``). Where there are both, a promotion needs both. What the
comparison says goes through ``GATES``, in their order.

The verdict is bound by hashes to the candidate's and base's trees, the manifest, the trials (with the
rates of the safety probes, where they were measured) and the policy. ``recompute`` gives it again from
what is stored, offline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from agentos.evolver.policy import ASKED, CHECKED, EDITION, PARTLY_LOST, STOOD, Policy
from agentos.evolver.verdict.doubts import FreshWork, doubts, fresh_work, with_fresh, worn_out
from agentos.evolver.verdict.gates import (
    Ruling,
    beside_nothing,
    goes_by_names,
    held_against,
    over_fitted,
    safety_ruling,
)
from agentos.evolver.verdict.paired_tests import PairedDecision, SteadySummary, as_said_now
from agentos.evolver.verdict.pairing import (
    ChangedTasks,
    apart,
    changed,
    checked,
    counted,
    mixed_plugins,
    partly_lost,
    repeats_needed,
    rule_on,
    split,
    too_costly,
    trials_sha256,
    unpaired,
)
from agentos.records.candidates import (
    Candidate,
    Decision,
    Ground,
    Refusal,
    RefusalKind,
    Support,
    SupportKind,
    Verdict,
)
from agentos.records.identity import digest
from agentos.records.trials import COMPARED_SETS, Arm, SafetyRate, Trial, TrialSet


class TaskTrials(StrEnum):
    """A task's trials on one side, taken together."""

    PASSES = "passes"
    FAILS = "fails"
    FLAKY = "flaky"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Flip:
    """One task before and after: a row of the table of trials."""

    task_id: str
    set: TrialSet
    before: TaskTrials
    after: TaskTrials
    left_out: bool = False  # one side had no trial that could be replayed
    checked: bool = True  # some answer of it was held against checks

    @property
    def fixed(self) -> bool:
        return self.before is TaskTrials.FAILS and self.after is TaskTrials.PASSES

    @property
    def broken(self) -> bool:
        return self.before is TaskTrials.PASSES and self.after in (TaskTrials.FAILS, TaskTrials.FLAKY)


_SETS = tuple(TrialSet)


def flips(trials: Iterable[Trial], edition: int = EDITION) -> list[Flip]:
    """One row a task, in the order evidence, guards, hold-out."""
    gone = partly_lost(trials := list(trials)) if edition >= PARTLY_LOST else frozenset[str]()
    rows: dict[str, dict[Arm, list[Trial]]] = {}
    for trial in trials:
        if trial.arm is not Arm.CONTROL:
            rows.setdefault(trial.task_id, {Arm.BASE: [], Arm.CANDIDATE: []})[trial.arm].append(trial)
    table = [
        _row(task_id, arms, partly=task_id in gone)
        for task_id, arms in rows.items()
        if arms[Arm.CANDIDATE]  # evidence that did not fail again is in no comparison
    ]
    return sorted(table, key=lambda flip: (_SETS.index(flip.set), flip.task_id))


def _row(task_id: str, arms: Mapping[Arm, Sequence[Trial]], *, partly: bool) -> Flip:
    """``partly``: it is passed as far as it can be replayed with the edit, and may fail in what cannot."""
    base, own = arms[Arm.BASE], arms[Arm.CANDIDATE]
    unsure = partly and _standing(own) is TaskTrials.PASSES
    left_out = unsure or any(side and not counted(side) for side in (base, own))
    is_checked = any(trial.outcome.checks for trial in (*base, *own))
    after = TaskTrials.ABSENT if unsure else _standing(own)
    return Flip(task_id, own[0].set, _standing(base), after, left_out=left_out, checked=is_checked)


def _standing(trials: Sequence[Trial]) -> TaskTrials:
    results = {trial.passed for trial in counted(trials)}
    if not results:
        return TaskTrials.ABSENT
    if len(results) == 2:
        return TaskTrials.FLAKY
    return TaskTrials.PASSES if results == {True} else TaskTrials.FAILS


def ruling(
    trials: Sequence[Trial], policy: Policy, untried: Mapping[TrialSet, Sequence[str]] | None = None
) -> PairedDecision:
    """On the tasks that vary, ``untried`` ones included; the others are counted beside them.

    By itself it knows those of the untried ones that a set which proved unsteady has.
    """
    aside = apart(trials)
    every = flips(trials, policy.edition)
    table = [flip for flip in every if flip.task_id not in aside and not flip.left_out]
    beside = SteadySummary(
        evidence=any(flip.set is TrialSet.EVIDENCE and flip.before is TaskTrials.FAILS for flip in table),
        tasks=sum(flip.after is TaskTrials.PASSES for flip in table if _is_beside(flip, policy)),
    )
    # a doubt since then
    rules = policy.judge if policy.edition < ASKED else replace(policy.judge, min_tasks=0)
    return rule_on(trials, rules, beside, untried or unpaired(trials, rules))


def _is_beside(flip: Flip, policy: Policy) -> bool:
    """Whether it counts for ``min_tasks``."""
    if policy.edition < CHECKED:
        return True
    stood = flip.before is TaskTrials.PASSES or policy.edition < STOOD
    return flip.checked and stood and flip.set is not TrialSet.EVIDENCE


def _is_fixed(flip: Flip, policy: Policy) -> bool:
    """Of work without checks nobody says that it is right now: it only ends."""
    return flip.fixed and (flip.checked or policy.edition < CHECKED)


def judge(
    candidate: Candidate, trials: Sequence[Trial], policy: Policy, rates: Sequence[SafetyRate] = ()
) -> Verdict:
    """The verdict on a candidate. Needs the trials of both arms that its replay ran.

    ``rates`` of the safety probes are measured where the trials alone would promote. With trials of fresh work it is
    another verdict, beside the one that was made without them.
    """
    compared, later = split(trials)
    case = JudgedCase(
        candidate, compared, trials, policy, rates, apart(compared), fresh_work(candidate, trials, policy)
    )
    decision, reasons = beside_base(candidate, compared, policy)
    for gate in GATES:
        if decision in gate.asked and (said := gate.says(case, decision)):
            decision, reasons = _joined(decision, reasons, said, keeps=gate.keeps)
    tasks, name = _changed_tasks(case), f"verdict-{candidate.id.removeprefix('cand-')}"
    return Verdict(
        id=with_fresh(name) if later else name,
        evolution_id=candidate.evolution_id,
        candidate_id=candidate.id,
        decision=decision,
        reasons=tuple(ground.reason for ground in reasons),
        fixed=tasks.fixed,
        broken=tasks.broken,
        flaky=tasks.flaky,
        candidate_tree=candidate.snapshot.tree,
        base_tree=candidate.base.tree,
        manifest_sha256=digest(candidate.manifest),
        trials_sha256=trials_sha256(trials, rates),
        policy_sha256=policy.sha256,
        kinds=tuple(ground.kind for ground in reasons),
    )


def _changed_tasks(case: JudgedCase) -> ChangedTasks:
    """By flips, by pairs, and of fresh work."""
    table = flips((one for one in case.trials if one.task_id not in case.aside), case.policy.edition)
    noisy = changed(case.trials, case.policy.judge) if case.aside else ChangedTasks((), (), ())
    known = checked(case.trials)
    mended = [task_id for task_id in noisy.fixed if task_id in known or case.policy.edition < CHECKED]
    fixed = [flip.task_id for flip in table if _is_fixed(flip, case.policy)]
    broken = [flip.task_id for flip in table if flip.broken]
    flaky = [flip.task_id for flip in table if TaskTrials.FLAKY in (flip.before, flip.after)]
    return ChangedTasks(
        (*fixed, *mended, *case.fresh.mended),
        (*broken, *noisy.broken, *case.fresh.broken),
        (*flaky, *noisy.flaky),
    )


# --- gates: what is asked of a comparison's ruling, in this order --------------------------------


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """What a verdict is computed from."""

    candidate: Candidate
    trials: Sequence[Trial]  # without those of fresh work
    every: Sequence[Trial]
    policy: Policy
    rates: Sequence[SafetyRate]
    aside: frozenset[str]  # the tasks that are not judged by flips
    fresh: FreshWork


@dataclass(frozen=True, slots=True)
class Gate:
    """One question to the ruling so far, put where that is among ``asked``; None: nothing against it, nor to add."""

    says: Callable[[JudgedCase, Decision], Ruling | None]
    asked: tuple[Decision, ...] = (Decision.PROMOTE,)
    keeps: bool = False  # what was said before stays said beside a hold or a rejection of this gate


def _joined(decision: Decision, reasons: list[Ground], said: Ruling, *, keeps: bool) -> Ruling:
    """What a promotion adds comes last, what rejects first; and earlier reasons for something else go."""
    found, grounds = said
    if found is Decision.PROMOTE:
        return found, [*reasons, *grounds]
    stay = keeps or (decision is found is Decision.REJECT)
    return found, [*grounds, *(reasons if stay else [])]


def _over_fitted(case: JudgedCase, decision: Decision) -> Ruling | None:
    """What fits only what was shown is not mended by more tasks. Rates that are undecided may still change."""
    if decision is Decision.HOLD and (case.aside or not case.policy.judge.hidden_share):
        return None
    fitted = over_fitted(case.trials, case.policy.judge, case.policy.edition)
    return (Decision.REJECT, [fitted]) if fitted else None


def _goes_by_names(case: JudgedCase, _: Decision) -> Ruling | None:
    named = goes_by_names(case.trials, case.policy)
    return (Decision.REJECT, [named]) if named else None


def _breaks_fresh_work(case: JudgedCase, _: Decision) -> Ruling | None:
    if not (broken := case.fresh.broken):
        return None
    told = f"{len(broken)} of {len(case.fresh.tried)} fresh tasks passed on the base and failed with it"
    return Decision.REJECT, [Refusal(RefusalKind.BROKEN, told)]


def _hold_out_is_worn(case: JudgedCase, _: Decision) -> Ruling | None:
    """Of earlier editions; since then a person is asked (``doubts``)."""
    if case.policy.edition >= STOOD or not (worn := worn_out(case.trials, case.policy)):
        return None
    told = f"{worn.reason}; new runs of other work with the same resource renew it, then retry"
    return Decision.HOLD, [Refusal(worn.kind, told)]


def _memory_is_no_better(case: JudgedCase, _: Decision) -> Ruling | None:
    return held_against(case.candidate, case.trials, case.aside, case.policy)


def _without_memory(case: JudgedCase, _: Decision) -> Ruling | None:
    return Decision.PROMOTE, [*beside_nothing(case.candidate, case.trials)]


def _plugins_are_mixed(case: JudgedCase, _: Decision) -> Ruling | None:
    mixed = mixed_plugins(case.trials)
    return (Decision.HOLD, [mixed]) if mixed else None


def _safety(case: JudgedCase, _: Decision) -> Ruling | None:
    return safety_ruling(case.candidate, case.rates, case.policy.edition) if case.rates else None


def _person_is_asked(case: JudgedCase, _: Decision) -> Ruling | None:
    asked = doubts(case.candidate, case.every, case.policy)
    return Decision.PROMOTE, [Refusal(each.kind, f"a person is asked: {each.reason}") for each in asked]


GATES = (
    Gate(_over_fitted, asked=(Decision.PROMOTE, Decision.HOLD)),
    Gate(_goes_by_names, asked=tuple(Decision)),
    Gate(_breaks_fresh_work, asked=tuple(Decision)),
    Gate(_hold_out_is_worn),
    Gate(_memory_is_no_better),
    Gate(_without_memory),
    Gate(_plugins_are_mixed, asked=tuple(Decision)),
    Gate(_safety, keeps=True),
    Gate(_person_is_asked),
)


# --- the comparison with the base -----------------------------------------------------------------


def beside_base(candidate: Candidate, trials: Sequence[Trial], policy: Policy) -> Ruling:
    """What the comparison with the base alone says; a promotion may need more (``control``, safety probes)."""
    both = [trial for trial in trials if trial.arm is not Arm.CONTROL]
    judged = {Arm.BASE: candidate.base, Arm.CANDIDATE: candidate.snapshot, Arm.CONTROL: candidate.control}
    if any((side := judged[trial.arm]) is None or trial.snapshot.tree != side.tree for trial in trials):
        told = "some trials ran on other trees than the candidate's and its base's"
        return Decision.HOLD, [Refusal(RefusalKind.OTHER_TREES, told)]
    if mixed := mixed_plugins(trials):
        return Decision.HOLD, [mixed]
    aside = apart(both)
    if not aside:
        return _decide(flips(both, policy.edition), both, policy)
    steady = [trial for trial in both if trial.task_id not in aside]
    return _decide_both(flips(steady, policy.edition), steady, ruling(both, policy), policy)


def recompute(
    verdict: Verdict,
    candidate: Candidate,
    trials: Sequence[Trial],
    policy: Policy,
    rates: Sequence[SafetyRate] = (),
) -> list[str]:
    """Why the stored verdict is not what the stored trials give: one sentence a difference, or none."""
    # Fresh work may have come after the verdict.
    if trials_sha256(compared := split(trials)[0], rates) == verdict.trials_sha256:
        trials = compared
    again = judge(candidate, trials, policy, rates)
    # Both: a reason quotes tasks, and these may say what an earlier version said.
    verdict, again = (
        replace(item, reasons=tuple(map(as_said_now, item.reasons))) for item in (verdict, again)
    )
    return [
        f"{name} is {getattr(verdict, name)!r}, computed again it is {getattr(again, name)!r}"
        for name in Verdict.__dataclass_fields__
        if (name != "kinds" or verdict.kinds) and _as_compared(verdict, name) != _as_compared(again, name)
    ]


def _as_compared(verdict: Verdict, name: str) -> object:
    """Of tasks no order: those of fresh work come as their trials do, and a copied ledger may hold these in another one."""
    return sorted(getattr(verdict, name)) if name in ("fixed", "broken", "flaky") else getattr(verdict, name)


def _decide_both(
    table: Sequence[Flip], steady: Sequence[Trial], varying: PairedDecision, policy: Policy
) -> Ruling:
    """Promote if both say so; a rejection goes before a hold."""
    said = list(varying.grounds)
    if varying.decision is Decision.HOLD:
        said = [Refusal(RefusalKind(said[0].kind), "; ".join(varying.reasons))]
    both = [(varying.decision, said)]
    if table:
        both.insert(0, _decide(table, steady, policy, alone=False))
    order = (Decision.REJECT, Decision.HOLD, Decision.PROMOTE)
    worst = min((found for found, _ in both), key=order.index)
    return worst, [reason for found, reasons in both if found is worst for reason in reasons]


def _decide(table: Sequence[Flip], trials: Sequence[Trial], policy: Policy, *, alone: bool = True) -> Ruling:
    """On the tasks that do not vary; ``alone`` when they are all there are."""
    left_out = [flip for flip in table if flip.left_out]
    there = [flip for flip in table if not flip.left_out]
    decision, reasons = _by_flips(there, trials, policy)
    if alone and not _failing(there):
        told = "no evidence fails on the base: there is nothing to fix"
        decision, reasons = Decision.REJECT, [Refusal(RefusalKind.NO_EVIDENCE, told)]
    elif alone and decision is Decision.PROMOTE and (few := _too_few(there, policy)):
        decision, reasons = Decision.HOLD, [few]
    unknown = [
        flip for flip in left_out if flip.set is not TrialSet.EVIDENCE and flip.before is TaskTrials.PASSES
    ]
    if decision is Decision.PROMOTE and unknown:
        told = (
            f"{len(unknown)} guards or hold-out tasks pass on the base and cannot be replayed with it: "
            "whether it breaks them cannot be told"
        )
        decision, reasons = Decision.HOLD, [Refusal(RefusalKind.UNREPLAYABLE, told)]
    return decision, [*reasons, *([_left_out(left_out)] if left_out else [])]


def _too_few(table: Sequence[Flip], policy: Policy) -> Refusal | None:
    """By the first edition; since then a person is asked (``doubts``)."""
    good, needed = sum(flip.after is TaskTrials.PASSES for flip in table), policy.judge.min_tasks
    if policy.edition >= CHECKED or good >= needed:
        return None
    told = (
        f"{good} tasks pass with it, {needed} are needed to tell: "
        f"add {needed - good} more with checks for the same tool, then retry"
    )
    return Refusal(RefusalKind.FEW_TASKS, told)


def _failing(table: Sequence[Flip]) -> list[Flip]:
    return [flip for flip in table if flip.set is TrialSet.EVIDENCE and flip.before is TaskTrials.FAILS]


def _by_flips(table: Sequence[Flip], trials: Sequence[Trial], policy: Policy) -> Ruling:
    """By what is fixed and what is broken; how many tasks there are is asked of all together."""
    rules = policy.judge
    failing = _failing(table)
    fixed = [flip for flip in failing if _is_fixed(flip, policy)]
    ended = [flip for flip in failing if flip.fixed and flip not in fixed]
    if broken := [flip for flip in table if flip.broken]:
        return Decision.REJECT, [Refusal(RefusalKind.BROKEN, _broken_sentence(flip)) for flip in broken]
    if failing and not _mends_enough(failing, fixed, ended, rules.min_fixed_share):
        told = (
            f"{len(fixed)} of {len(failing)} failing evidence tasks pass with it, "
            f"at least {rules.min_fixed_share:.0%} are needed"
        )
        return Decision.REJECT, [Refusal(RefusalKind.FEW_FIXED, told)]
    if (more := _further_repeats(fixed, trials, policy)) > 0:
        told = f"{len(fixed)} tasks may pass with it by luck; {more} more trials of each would tell"
        return Decision.HOLD, [Refusal(RefusalKind.LUCK, told)]
    if slow := too_costly(trials, rules):
        return Decision.REJECT, [slow]
    mended = f"{len(fixed)} of {len(failing)} failing evidence tasks pass with it, in every trial"
    unsaid = f"{len(ended)} of {len(failing)} end with it and have no checks, which is no repair"
    return Decision.PROMOTE, [
        *([Support(SupportKind.FIXED, mended)] if failing else []),
        *([Support(SupportKind.ENDED, unsaid)] if ended else []),
        *_kept(table),
    ]


def _kept(table: Sequence[Flip]) -> Iterator[Support]:
    """What is said of guards and hold-out where nothing broke."""
    guards = sum(flip.set is TrialSet.GUARD for flip in table)
    hidden = [flip for flip in table if flip.set is TrialSet.HOLD_OUT]
    before = sum(flip.before is TaskTrials.PASSES for flip in hidden)
    after = sum(flip.after is TaskTrials.PASSES for flip in hidden)
    stood = f"the hold-out did not fall ({before} → {after} of {len(hidden)} pass)"
    kept = f"none of {guards} guards broke" if guards else "there are no guards"
    yield Support(SupportKind.GUARDS_KEPT, kept)
    yield Support(SupportKind.HOLD_OUT_KEPT, stood if hidden else "there is no hold-out")


def _mends_enough(
    failing: Sequence[Flip], fixed: Sequence[Flip], ended: Sequence[Flip], share: float
) -> bool:
    """Of all that failed, and of what is known to have checks by itself."""
    wanted = [flip for flip in failing if flip.checked]
    return (
        bool(fixed or ended)
        and len(fixed) + len(ended) >= share * len(failing)
        and len(fixed) >= share * len(wanted)
    )


def further_repeats(trials: Sequence[Trial], policy: Policy) -> tuple[int, tuple[str, ...]]:
    """How many more trials on each side, of which tasks, tell what was fixed from luck; 0 or less: none."""
    aside = apart(trials)
    steady = [trial for trial in trials if trial.task_id not in aside]
    fixed = [flip for flip in _failing(flips(steady, policy.edition)) if _is_fixed(flip, policy)]
    return _further_repeats(fixed, steady, policy), tuple(flip.task_id for flip in fixed)


def _further_repeats(fixed: Sequence[Flip], trials: Sequence[Trial], policy: Policy) -> int:
    evidence = [trial for trial in counted(trials) if trial.set is TrialSet.EVIDENCE]
    number = max((trial.look for trial in evidence), default=0)
    if not fixed or not number:  # judged as before looks were counted
        return 0
    made = Counter((trial.task_id, trial.arm) for trial in evidence)
    least = min(made[flip.task_id, arm] for flip in fixed for arm in (Arm.BASE, Arm.CANDIDATE))
    tasks = {trial.task_id for trial in evidence}
    return repeats_needed(len(tasks), len(fixed), number, policy.judge) - least


def _broken_sentence(flip: Flip) -> str:
    how = "is flaky" if flip.after is TaskTrials.FLAKY else "fails"
    # A hold-out task is named nowhere that a proposer could read: the set is all that is said.
    which = "a hold-out task" if flip.set is TrialSet.HOLD_OUT else f"{flip.set.value} task {flip.task_id}"
    return f"{which} passed on the base and {how} with it"


def _left_out(flips: Sequence[Flip]) -> Support:
    counts = {which: sum(flip.set is which for flip in flips) for which in COMPARED_SETS}
    which = ", ".join(f"{count} {name.value}" for name, count in counts.items() if count)
    return Support(SupportKind.LEFT_OUT, f"left out, because they cannot be replayed: {which}")
