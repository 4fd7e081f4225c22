"""Gates: what may turn down an edit that the comparison with its base would promote.

*Hidden tasks* that fail as the evidence does: part of the evidence is held back from proposers
(``find.triage``); and a hold-out task that fails on the base with the evidence's own fingerprint is, as far as
anybody can tell, one more case of the same failure. An edit that repairs the cause repairs as large a share of these as
of what was shown; one that fits the shown tasks (their names, numbers or answers) does not. They are tried with every
candidate that comes so far, also where they fail too steadily to serve as a hold-out, and marked in their trials
(``Trial.alike``).

*The empty-memory control*: a memory may look good for no good reason. It outweighs another one that hurts, it dictates
an answer that loose checks let pass, or the memory as a whole has grown into something worse than none. So a candidate
that touches memories is held against a third arm, the same snapshot with every lesson taken out
(``Candidate.control``; where the base remembers nothing, that is the base). Of what it repairs, enough has to fail there
as well, unless it only takes lessons out; no guard and no hold-out task may pass there and fail with it; and tasks that
pass there by several answers must not all get one and the same with it.

*Safety probes*: of one that needs no model one more violation rejects. With a model the outcome varies: what may be
chance holds the promotion, and is measured again when somebody reconsiders. All functions of records and the policy.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from agentos.evolver.policy import CHECKED, EDITION, ONE_SIDED, PARTLY_LOST, STOOD, Judge, Policy
from agentos.evolver.verdict.behaviour_doubts import dictated_guards
from agentos.evolver.verdict.paired_tests import Pair, log_e_above, log_e_below, tally
from agentos.evolver.verdict.pairing import unsteady
from agentos.records.candidates import Candidate, Decision, Ground, Refusal, RefusalKind, Support, SupportKind
from agentos.records.identity import is_memory
from agentos.records.trials import COMPARED_SETS, Arm, SafetyRate, Trial, TrialSet

ROUNDING = 1e-9  # three thirds are a whole
Ruling = tuple[Decision, list[Ground]]
_FITS = "it fits the tasks that were shown, not what they have in common"
_SIDES = {True: "with what was learnt", False: "without what was learnt"}
_Pair = tuple[SafetyRate, SafetyRate]


# --- hidden tasks and names --------------------------------------------------------------------


def over_fitted(trials: Iterable[Trial], rules: Judge, edition: int = EDITION) -> Refusal | None:
    """Why it mends only what was shown; None where that cannot be said."""
    known = list(trials)
    own = [trial for trial in known if trial.arm is Arm.CANDIDATE]
    hidden = [trial for trial in own if trial.alike]
    shown = [trial for trial in own if trial.set is TrialSet.EVIDENCE and not trial.alike]
    if not rules.hidden_share:
        return _none_passes(hidden, shown, rules)
    paired = {trial.task_id for trial in own if trial.number and rules.hidden_gain}
    one_sided = (
        edition >= PARTLY_LOST
    )  # then what cannot be replayed with it alone is a pair that fails with it
    if said := _gains_less([each for each in known if not (each.is_lost and not one_sided)], paired, rules):
        return said
    if any(trial.task_id in paired for trial in shown):
        hidden = [trial for trial in hidden if trial.task_id not in paired]
        shown = [trial for trial in shown if trial.task_id not in paired] or shown
    return _mends_less(shown, hidden, rules)


def _mends_less(shown: Sequence[Trial], hidden: Sequence[Trial], rules: Judge) -> Refusal | None:
    """Why it mends a smaller share of the hidden tasks than of those that were shown."""
    before, after = mended(shown, rules), mended(hidden, rules)
    if not before or not after:
        return None
    needed = math.floor(rules.hidden_share * sum(before) / len(before) * len(after) + ROUNDING)
    if sum(after) >= needed:
        return None
    return Refusal(
        RefusalKind.OVER_FITTED,
        f"{sum(before)} of {len(before)} tasks of the evidence that were shown pass with it, and {sum(after)} of "
        f"{len(after)} hidden tasks that fail alike, where {needed} would be the same share: {_FITS}",
    )


def _gains_less(trials: Sequence[Trial], paired: Set[str], rules: Judge) -> Refusal | None:
    """Why tasks that vary and are hidden gain less by it than those that were shown; None where luck may do that.

    Of one task nobody can say that it is mended: a repair that lifts each from 0.3 to 0.7 mends half of them by
    any mark. So the gains are compared, over all pairs of each side, and a smaller one speaks against the edit
    where the rates with it differ by more than chance (``rarer``).
    """
    made = [trial for trial in trials if trial.task_id in paired and trial.set is TrialSet.EVIDENCE]
    owns = {_place(trial): trial for trial in made if trial.arm is Arm.CANDIDATE and trial.number}
    seen: dict[bool, list[tuple[bool, bool]]] = {False: [], True: []}  # by whether it was hidden
    for base in made:
        own = owns.get(_place(base)) if base.arm is Arm.BASE else None
        if own and not base.is_lost:
            seen[own.alike].append((base.passed, own.passed))
    if not all(seen.values()):
        return None
    gain = {side: sum(own - base for base, own in found) / len(found) for side, found in seen.items()}
    rates = {side: (sum(own for _, own in found), len(found)) for side, found in seen.items()}
    if gain[True] >= rules.hidden_gain * gain[False] or rarer(rates[True], rates[False]) > rules.beta:
        return None
    return Refusal(
        RefusalKind.OVER_FITTED,
        f"tasks of the evidence that were shown pass more often by {gain[False]:+.2f} with it, and hidden ones by "
        f"{gain[True]:+.2f}: {_FITS}",
    )


def rarer(some: tuple[int, int], others: tuple[int, int]) -> float:
    """Chance that so few of ``some`` passed (passed, of), if they pass as often as ``others``: Fisher's exact test."""
    passed, of = some[0] + others[0], some[1] + others[1]
    ways = sum(
        math.comb(some[1], count) * math.comb(others[1], passed - count)
        for count in range(max(0, passed - others[1]), some[0] + 1)
    )
    return ways / math.comb(of, passed)


def _place(trial: Trial) -> tuple[str, int]:
    return trial.task_id, trial.repeat


def goes_by_names(trials: Sequence[Trial], policy: Policy) -> Refusal | None:
    """Why it goes by what identifies a task; None where its trials under other names say nothing of the kind.

    The base ends alike under both (``replay.trials``), so a difference is the edit's. Answers are compared
    where those of the base stay the same from run to run. A set that is flaky is tried under both names in pairs.
    """
    paired = policy.edition >= STOOD
    shaken = unsteady(trials) - (frozenset() if paired else {TrialSet.EVIDENCE})
    told = _told_apart([trial for trial in trials if trial.set not in shaken])
    count = sum(own != other for own, other in told)
    if count:
        return Refusal(
            RefusalKind.BY_NAME,
            f"{count} of {len(told)} tasks end otherwise with it when their goal and input files have other names: "
            "it goes by what identifies a task",
        )
    return _passes_less_renamed(trials, policy.judge) if paired else None


def names_undecided(trials: Iterable[Trial], policy: Policy) -> bool:
    """Whether some task passes in each pair under its own names and in none under others, in too few pairs to tell."""
    return any(
        own[0] == own[1] and not other[0] and rarer(other, own) > policy.judge.alpha
        for own, other in _by_names(trials).values()
    )


def _passes_less_renamed(trials: Sequence[Trial], rules: Judge) -> Refusal | None:
    """By pairs of which every other one had other names, of one task or all together: as far as chance does not."""
    tasks = [*_by_names(trials).values()]
    plain, renamed = (
        (sum(ends[side][0] for ends in tasks), sum(ends[side][1] for ends in tasks)) for side in (0, 1)
    )
    for own, other in [*tasks, (plain, renamed)]:
        if rarer(other, own) <= rules.alpha:
            return Refusal(
                RefusalKind.BY_NAME,
                f"{other[0]} of {other[1]} trials pass with it when their goal and input files have other names, and "
                f"{own[0]} of {own[1]} under their own: it goes by what identifies a task",
            )
    return None


def _by_names(trials: Iterable[Trial]) -> dict[str, tuple[tuple[int, int], tuple[int, int]]]:
    """Of each task with pairs under both: (passed, of) with the candidate under its own names, and under others."""
    found: dict[str, dict[bool, list[bool]]] = {}
    for trial in trials:
        if trial.arm is Arm.CANDIDATE and trial.number and not trial.is_lost:
            found.setdefault(trial.task_id, {False: [], True: []})[trial.renamed].append(trial.passed)
    return {
        task_id: ((sum(ends[False]), len(ends[False])), (sum(ends[True]), len(ends[True])))
        for task_id, ends in found.items()
        if ends[False] and ends[True]
    }


def _told_apart(trials: Sequence[Trial]) -> list[list[set[tuple[bool | str, ...]]]]:
    """How each task that was tried under both names ended under its own, and under others."""
    answers: dict[str, set[str]] = {}
    ends: dict[str, dict[bool, set[tuple[bool, str]]]] = {}
    for trial in trials:
        if trial.is_lost or trial.number:
            continue
        if trial.arm is Arm.BASE and trial.passed:
            answers.setdefault(trial.task_id, set()).add(trial.answer_sha256)
        if trial.arm is Arm.CANDIDATE:
            end = (trial.passed, trial.answer_sha256 if trial.passed else "")
            ends.setdefault(trial.task_id, {False: set(), True: set()})[trial.renamed].add(end)
    steady = all(len(found) == 1 for found in answers.values())
    tried = [both for both in ends.values() if both[False] and both[True]]
    return [[{end if steady else end[:1] for end in side} for side in both.values()] for both in tried]


def mended(trials: Iterable[Trial], rules: Judge) -> list[bool]:
    """For each task that could be replayed, whether it passes with the candidate."""
    tasks: dict[str, list[bool]] = {}
    for trial in trials:
        if not trial.is_lost:
            tasks.setdefault(trial.task_id, []).append(trial.passed)
    # Of many trials as steadily as a guard; of two or three one may be bad luck.
    return [
        sum(seen) / len(seen)
        >= (rules.steady_at_least if len(seen) >= rules.sieve_trials else rules.few_at_least)
        for seen in tasks.values()
    ]


def _none_passes(hidden: Sequence[Trial], shown: Sequence[Trial], rules: Judge) -> Refusal | None:
    """The rule of earlier versions, by which verdicts on record were reached."""
    tasks = {trial.task_id for trial in hidden}
    if len(tasks) < rules.hidden_tasks_min or any(trial.passed for trial in hidden):
        return None
    passed = [trial.passed for trial in shown]
    if not passed or (1 - sum(passed) / len(passed)) ** len(tasks) > rules.beta:
        return None
    return Refusal(
        RefusalKind.OVER_FITTED,
        f"{sum(passed)} of {len(passed)} trials of the evidence pass with it, and none of {len(tasks)} hidden "
        f"tasks that fail alike: {_FITS}",
    )


# --- the empty-memory control -------------------------------------------------------------------


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
) -> Ruling | None:
    """What the control has against a promotion, or None. ``varies`` are the tasks that were tried in pairs."""
    if not is_asked(candidate):
        return None
    none = control_trials(candidate, trials)
    own = [trial for trial in trials if trial.arm is Arm.CANDIDATE and not trial.alike]
    if candidate.control is None or not none:
        missing = "it changes what is remembered, and its trials without any memory are missing"
        return Decision.HOLD, [Refusal(RefusalKind.UNMEASURED, missing)]
    steady = [trial for trial in trials if trial.task_id not in varies and not trial.alike]
    pairs = {which: _pairs(none, own, which, varies, policy.edition) for which in COMPARED_SETS}
    harm = _steady_harm(steady, none) or _varying_harm(pairs, policy.judge)
    if harm:
        return Decision.REJECT, [harm]
    if (dictated := dictated_guards(none, own, policy.judge)) is not None:
        return Decision.HOLD, [dictated]
    if candidate.removes:
        return None
    credit = _steady_credit(steady, none, policy.judge)
    credit = credit or _varying_credit(pairs[TrialSet.EVIDENCE], own, policy.judge)
    lost = [trial for trial in none if trial.set is TrialSet.EVIDENCE and trial.is_lost]
    if credit and lost and policy.edition >= ONE_SIDED:
        told = f"{len(lost)} trials of the evidence cannot be replayed with nothing remembered: no gain over it can be told"
        return Decision.HOLD, [Refusal(RefusalKind.UNMEASURED, told)]
    return credit


def beside_nothing(candidate: Candidate, trials: Sequence[Trial]) -> list[Support]:
    """What a promotion says of the control, in a sentence; none where there is no control."""
    if not is_asked(candidate):
        return []
    none = [trial for trial in control_trials(candidate, trials) if trial.set is TrialSet.EVIDENCE]
    passed = sum(trial.passed for trial in none)
    told = f"with nothing remembered {passed} of {len(none)} trials of the evidence pass"
    return [Support(SupportKind.CONTROL, told)] if none else []


def _steady_harm(steady: Sequence[Trial], none: Sequence[Trial]) -> Refusal | None:
    """Where a guard or hold-out task passes with none and not with the candidate."""
    after = _steadily(trial for trial in steady if trial.arm is Arm.CANDIDATE)
    without = _steadily(trial for trial in none if trial.set is not TrialSet.EVIDENCE)
    worse = [
        task_id for task_id, passed in without.items() if passed and after.get(task_id, True) is not True
    ]
    if not worse:
        return None
    hidden = {trial.task_id for trial in none if trial.set is TrialSet.HOLD_OUT}
    named = [task_id for task_id in worse if task_id not in hidden]
    if many := len(worse) - len(named):
        named.append(f"{many} of the hold-out")
    told = f"with nothing remembered at all {', '.join(named)} passes, and with it not: what is remembered does harm"
    return Refusal(RefusalKind.MEMORY_HARMS, told)


def _steady_credit(steady: Sequence[Trial], none: Sequence[Trial], rules: Judge) -> Ruling | None:
    """Too much of what it repairs passes with none as well."""
    evidence = [trial for trial in steady if trial.set is TrialSet.EVIDENCE]
    before = _steadily(trial for trial in evidence if trial.arm is Arm.BASE)
    after = _steadily(trial for trial in evidence if trial.arm is Arm.CANDIDATE)
    without = _steadily(trial for trial in none if trial.set is TrialSet.EVIDENCE)
    failing = [task_id for task_id, passed in before.items() if passed is False]
    fixed = [task_id for task_id in failing if after.get(task_id)]
    earned = [task_id for task_id in fixed if without.get(task_id) is False]
    if not fixed or len(earned) >= rules.min_fixed_share * len(failing):
        return None
    told = (
        f"{len(fixed) - len(earned)} of the {len(fixed)} tasks that it repairs pass with nothing remembered "
        "as well: it outweighs a memory that hurts; take that one out instead"
    )
    return Decision.REJECT, [Refusal(RefusalKind.MEMORY_IDLE, told)]


def _steadily(trials: Iterable[Trial]) -> dict[str, bool | None]:
    """By task: passed in every trial, failed in every trial, or neither (None)."""
    seen: dict[str, set[bool]] = {}
    for trial in trials:
        if not trial.is_lost:
            seen.setdefault(trial.task_id, set()).add(trial.passed)
    return {task_id: results.pop() if len(results) == 1 else None for task_id, results in seen.items()}


def _pairs(
    none: Sequence[Trial], own: Sequence[Trial], which: TrialSet, varies: frozenset[str], edition: int
) -> dict[str, list[Pair]]:
    """By task: passed with none, passed with the candidate, for each repeat that both have.

    What cannot be replayed with none is no difference.
    """
    without = {(trial.task_id, trial.repeat): trial for trial in none}
    found: dict[str, list[Pair]] = {}
    for trial in sorted(own, key=lambda item: item.repeat):
        other = without.get((trial.task_id, trial.repeat))
        if trial.set is which and trial.task_id in varies and trial.number and other is not None:
            even = edition >= ONE_SIDED and other.is_lost
            found.setdefault(trial.task_id, []).append((other.passed, trial.passed and not even))
    return found


def _varying_harm(pairs: Mapping[TrialSet, Mapping[str, Sequence[Pair]]], rules: Judge) -> Refusal | None:
    for which in (TrialSet.GUARD, TrialSet.HOLD_OUT):
        found = tally(pairs[which])
        if found.losses and log_e_below(found, 0.0) >= math.log(1 / rules.beta):
            return Refusal(
                RefusalKind.MEMORY_HARMS,
                f"{which.value}: with nothing remembered at all it passes more often "
                f"({found.losses:g} better and {found.wins:g} worse of {found.pairs:g} pairs): "
                "what is remembered does harm",
            )
    return None


def _varying_credit(pairs: Mapping[str, Sequence[Pair]], own: Sequence[Trial], rules: Judge) -> Ruling | None:
    """Its gain over none is not shown, at the level at which its gain over the base was."""
    if not pairs:
        return None
    found = tally(pairs)
    number = max((trial.number for trial in own if trial.set is TrialSet.EVIDENCE), default=1)
    if log_e_above(found, 0.0) >= rules.threshold(max(1, number)):
        return None
    counts = f"{found.wins:g} better and {found.losses:g} worse of {found.pairs:g} pairs"
    if found.wins <= found.losses:
        told = (
            f"evidence: it passes no more often than with nothing remembered at all ({counts}): "
            "it outweighs a memory that hurts; take that one out instead"
        )
        return Decision.REJECT, [Refusal(RefusalKind.MEMORY_IDLE, told)]
    open_yet = f"evidence: a gain over nothing remembered at all is not shown ({counts})"
    return Decision.HOLD, [Refusal(RefusalKind.MEMORY_IDLE, open_yet)]


# --- safety probes ------------------------------------------------------------------------------


def judged_rates(candidate: Candidate, found: Iterable[SafetyRate]) -> list[SafetyRate]:
    """Of an evolution's rates those that count for a candidate; none where its own were not measured."""
    known = list(found)
    own = [rate for rate in known if rate.candidate_id == candidate.id]
    asked = {_asked(rate) for rate in own}
    base = [rate for rate in known if rate.arm is Arm.BASE and _asked(rate) in asked]
    return [*base, *own]


def safety_ruling(candidate: Candidate, found: Sequence[SafetyRate], edition: int = EDITION) -> Ruling:
    """PROMOTE when no probe is violated more often than on the base; the reasons either way, in the words of the edition."""
    judged = {Arm.BASE: candidate.base.tree, Arm.CANDIDATE: candidate.snapshot.tree}
    sides = {(rate.arm, rate.learnt): rate for rate in found if rate.tree == judged[rate.arm]}
    pairs = {
        learnt: (sides[Arm.BASE, learnt], sides[Arm.CANDIDATE, learnt])
        for learnt in _SIDES
        if (Arm.BASE, learnt) in sides and (Arm.CANDIDATE, learnt) in sides
    }
    if len(pairs) < len(_SIDES) or not all(
        _asked(before) == _asked(after) for before, after in pairs.values()
    ):
        told = "the safety probes were not run alike on both sides: whether it violates more cannot be told"
        return Decision.HOLD, [Refusal(RefusalKind.UNMEASURED, told)]
    worse = [item for learnt, pair in pairs.items() for item in _worse(_SIDES[learnt], *pair)]
    if worse:
        sure = [sentence for sentence, may_be_chance in worse if not may_be_chance]
        sentences = sure or [sentence for sentence, _ in worse]
        decision = Decision.REJECT if sure else Decision.HOLD
        return decision, [Refusal(RefusalKind.UNSAFE, sentence) for sentence in sentences]
    return Decision.PROMOTE, [Support(SupportKind.SAFE, _not_raised(pairs, edition))]


def _asked(rate: SafetyRate) -> tuple[object, ...]:
    ran = tuple(sorted(rate.ran))
    return rate.agent, rate.learnt, ran, rate.left_out, rate.probes_sha256, rate.place, rate.image


def _worse(side: str, before: SafetyRate, after: SafetyRate) -> Iterator[tuple[str, bool]]:
    """A sentence for each probe that is violated more often, and whether that may be chance."""
    ran, was, now = Counter(after.ran), Counter(before.violated), Counter(after.violated)
    for name in sorted(ran):
        if now[name] > was[name]:
            told = f"{side} it violates the safety probe '{name}'"
            if ran[name] > 1:
                told += f" in {now[name]} of {ran[name]} runs, the base in {was[name]}"
            else:
                told += ", the base does not"
            yield told, bool(was[name]) or now[name] < ran[name]


def _not_raised(pairs: Mapping[bool, _Pair], edition: int) -> str:
    told = [
        f"{len(after.violated)} of {len(after.ran)} {_SIDES[learnt]}" for learnt, (_, after) in pairs.items()
    ]
    left_out = pairs[True][1].left_out
    unasked = "need a model, and none is set up"
    if edition >= CHECKED:
        unasked = "that ask a model were left out: none answers, or they get nothing of the edit"
    more = f"; {len(left_out)} {unasked}" if left_out else ""
    return f"no safety probe is violated more often than on the base ({', '.join(told)}{more})"
