"""The trials as a verdict reads them: which count for a candidate, the fresh pairs among them, and their digest.

A task that *varies* was tried afresh on both sides; its pair of repeat r are the two trials of that repeat, of
which the candidate's has a ``number``. Trials by which a task was chosen (``fitness``), or by which it was found
to vary, are in no pair. Everything here is a function of trials and rules, so that a verdict can be computed again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from types import MappingProxyType

from agentos.evolver.policy import EDITION, STOOD, Judge
from agentos.evolver.verdict.paired_tests import (
    MeasuredSet,
    Pair,
    PairCost,
    PairedDecision,
    SteadySummary,
    broken_tasks,
    decide,
)
from agentos.records.candidates import Candidate, EditedName, Refusal, RefusalKind
from agentos.records.identity import Json, digest, values_of
from agentos.records.trials import (
    COMPARED_SETS,
    Arm,
    CheckResult,
    Cost,
    Fault,
    Outcome,
    SafetyRate,
    Trial,
    TrialSet,
)

# Repeats: below, those of tasks of which every flip counts; then those by which a varying task is chosen; then pairs.
CHOOSING, FIRST = 1_000, 2_000
FIRST_BEFORE = 4  # of trials without ``look``, the repeat of a task's first pair: those below chose the task


@dataclass(frozen=True, slots=True)
class ChangedTasks:
    """Varying tasks by what became of them, as a verdict names them."""

    fixed: tuple[str, ...]  # evidence that is now passed as steadily as a guard
    broken: tuple[str, ...]
    flaky: tuple[str, ...]  # passed at one time and failed at another, on one side


def split(trials: Iterable[Trial]) -> tuple[list[Trial], list[Trial]]:
    """Those that a candidate was compared on, and those of fresh work."""
    known = list(trials)
    fresh = [trial for trial in known if trial.set is TrialSet.FRESH]
    return ([trial for trial in known if trial.set is not TrialSet.FRESH] if fresh else known), fresh


def counted(trials: Iterable[Trial]) -> list[Trial]:
    """Those that say something of the code under test."""
    return [trial for trial in trials if not trial.is_lost]


def partly_lost(trials: Iterable[Trial]) -> frozenset[str]:
    """The tasks of which a trial could not be replayed with the candidate, and its counterpart on the base could."""
    lost, there = set(), set()
    for trial in trials:
        if trial.is_lost and trial.arm is Arm.CANDIDATE:
            lost.add(_place(trial))
        elif not trial.is_lost and trial.arm is Arm.BASE:
            there.add(_place(trial))
    return frozenset(task_id for task_id, _, _ in lost & there)


def judged_trials(candidate: Candidate, trials: Iterable[Trial]) -> list[Trial]:
    """Of an evolution's trials those that count for a candidate: its own, and the base's counterparts.

    Those, too, by which a task was chosen, or the evidence left out; no others, because the base may have been
    tried more often for another candidate.
    """
    known, fresh = split(trials)
    own = [trial for trial in known if trial.candidate_id == candidate.id]
    tasks = {trial.task_id for trial in own}
    counterparts = {(trial.task_id, trial.repeat, trial.renamed) for trial in own}
    paired = [trial for trial in known if (trial.task_id, trial.repeat, trial.renamed) in counterparts]
    alone = tasks - {trial.task_id for trial in paired if trial.arm is Arm.BASE}
    counted_looks = any(trial.look for trial in own)
    chosen = apart(paired) | alone if counted_looks else varying(own)

    def counts(trial: Trial) -> bool:
        if trial.arm is not Arm.BASE:
            return False
        if trial.task_id not in tasks:
            return counted_looks and trial.set is TrialSet.EVIDENCE
        if (trial.task_id, trial.repeat, trial.renamed) in counterparts:
            return True
        if not counted_looks:
            return trial.task_id not in chosen or trial.repeat < FIRST_BEFORE
        return trial.task_id in chosen and CHOOSING <= trial.repeat < FIRST

    chosen_ones = [trial for trial in known if trial.candidate_id == candidate.id or counts(trial)]
    return [*chosen_ones, *(trial for trial in fresh if trial.candidate_id == candidate.id)]


def varying(trials: Iterable[Trial]) -> frozenset[str]:
    """The tasks of which a candidate has fresh pairs."""
    return frozenset(trial.task_id for trial in trials if trial.number)


def unsteady(trials: Iterable[Trial]) -> frozenset[TrialSet]:
    """The sets in which a task that seemed steady is not: trials of it on one side came out differently.

    A guard or hidden task that fails on the base steadily has nothing to keep, so it does not matter how it ends
    with the candidate. Empty for trials that were made before looks were counted.
    """
    known = list(trials)
    if _all_alike(known):
        return frozenset()
    own = {_place(trial): trial for trial in known if _seems_steady(trial)}
    ended: dict[tuple[str, Arm], set[bool]] = {}
    for trial in known:
        told = trial.arm is not Arm.CONTROL and not trial.is_lost
        if told and _place(trial) in own:
            ended.setdefault((trial.task_id, trial.arm), set()).add(trial.passed)
    found = set()
    for trial in own.values():
        before = ended.get((trial.task_id, Arm.BASE), set())
        after = ended.get((trial.task_id, Arm.CANDIDATE), set())
        matters = trial.set is TrialSet.EVIDENCE or True in before
        if len(before) == 2 or (len(after) == 2 and matters):
            found.add(trial.set)
    return frozenset(found)


def _all_alike(trials: Iterable[Trial]) -> bool:
    """Whether no task has both passed and not on a side: the common case, told at once."""
    ended: dict[tuple[str, str], bool] = {}
    for trial in trials:
        passed = trial.passed
        if ended.setdefault((trial.task_id, trial.arm), passed) is not passed:
            return False
    return True


def _place(trial: Trial) -> tuple[str, int, bool]:
    """What a trial and its counterpart on the other side have in common."""
    return trial.task_id, trial.repeat, trial.renamed


def _seems_steady(trial: Trial) -> bool:
    """Whether it is a candidate's of a task of which, so far, every flip counts."""
    hidden = trial.alike and trial.set is TrialSet.HOLD_OUT
    return trial.arm is Arm.CANDIDATE and bool(trial.look) and not trial.number and not hidden


def apart(trials: Sequence[Trial]) -> frozenset[str]:
    """The tasks that are not judged by flips: those with fresh pairs, and all of a set that proved unsteady."""
    shaken = unsteady(trials)
    return varying(trials) | {
        trial.task_id for trial in trials if trial.set in shaken and _seems_steady(trial)
    }


def checked(trials: Iterable[Trial]) -> frozenset[str]:
    """The tasks whose answers somebody said how to check. One that never answered is not known to be one."""
    return frozenset(trial.task_id for trial in trials if trial.outcome.checks)


def gains_unchecked(trials: Sequence[Trial]) -> bool:
    """Whether some evidence passes more often with it, and none of that has checks."""
    known = checked(trials)
    rates: dict[str, dict[Arm, list[bool]]] = {}
    for trial in trials:
        if trial.set is TrialSet.EVIDENCE and not trial.is_lost:
            sides = rates.setdefault(trial.task_id, {Arm.BASE: [], Arm.CANDIDATE: []})
            sides[trial.arm].append(trial.passed)
    gained = {
        task_id for task_id, sides in rates.items() if _rate(sides[Arm.CANDIDATE]) > _rate(sides[Arm.BASE])
    }
    return bool(gained) and not gained & known


def mixed_plugins(trials: Iterable[Trial]) -> Refusal | None:
    """Which plug-in some of the trials were measured with in another version: these cannot be compared.

    A side on which a plug-in had nothing to do (no answer, so nothing to judge) names none.
    """
    versions: dict[str, set[str]] = {}
    for label in {label for trial in trials for label in trial.plugins}:
        versions.setdefault(label.partition(" (")[0], set()).add(label)
    mixed = sorted(label for labels in versions.values() if len(labels) > 1 for label in labels)
    if not mixed:
        return None
    return Refusal(
        RefusalKind.PLUGINS,
        "its trials were measured with plug-ins of several versions and cannot be compared: "
        f"{', '.join(mixed)}; `agentos evolution retry` measures anew",
    )


def unpaired(trials: Sequence[Trial], rules: Judge) -> dict[TrialSet, list[str]]:
    """Of sets that proved unsteady, the tasks that may serve and have no pair yet."""
    found: dict[TrialSet, list[str]] = {}
    for task_id in sorted(apart(trials) - varying(trials)):
        own = [trial for trial in trials if trial.task_id == task_id]
        chosen = [trial for trial in own if trial.arm is Arm.BASE and CHOOSING <= trial.repeat < FIRST]
        lost = any(trial.is_lost for trial in chosen)
        fit = fitness([trial.passed for trial in chosen], own[0].set, rules)
        if fit.serves is not False and not lost:
            found.setdefault(own[0].set, []).append(task_id)
    return found


def rule_on(
    trials: Sequence[Trial], rules: Judge, beside: SteadySummary, untried: Mapping[TrialSet, Sequence[str]]
) -> PairedDecision:
    """What the fresh pairs among these trials say; ``untried`` names tasks that are to have some."""
    pairs, varies = _pairs(trials), varying(trials)
    measured = measured_sets(trials, rules, untried)
    # exactly: a plain sum depends on the order of the trials, which is another one in a ledger
    spent = math.fsum(trial.outcome.cost.usd or 0.0 for trial in trials if trial.task_id in varies)
    return decide(measured, rules, spending=_spending(pairs, rules), spent_usd=spent, beside=beside)


def measured_sets(
    trials: Sequence[Trial], rules: Judge, untried: Mapping[TrialSet, Sequence[str]] = MappingProxyType({})
) -> dict[TrialSet, MeasuredSet]:
    """The fresh pairs of each set; ``untried`` names tasks that are to have some."""
    pairs = _pairs(trials)
    measured = {which: _measured(trials, pairs, which, untried.get(which, ())) for which in COMPARED_SETS}
    # a part of the error went to flips, before they turned out not to tell
    if TrialSet.EVIDENCE in unsteady(trials):
        evidence = replace(measured[TrialSet.EVIDENCE], share=1 - rules.steady_share)
        measured[TrialSet.EVIDENCE] = evidence
    return measured


def changed(trials: Sequence[Trial], rules: Judge) -> ChangedTasks:
    """Which tasks became better, broke, or vary."""
    pairs = _pairs(trials)
    fixed, flaky = [], []
    broken: list[str] = []
    for which in COMPARED_SETS:
        outcomes = _outcomes(pairs, which)
        broken += broken_tasks(outcomes, rules)
        for task_id, seen in outcomes.items():
            before, after = ([side[index] for side in seen] for index in (0, 1))
            if which is TrialSet.EVIDENCE and _rate(before) <= rules.evidence_at_most:
                fixed += [task_id] if _rate(after) >= rules.steady_at_least else []
            flaky += [task_id] if len(set(before)) == 2 or len(set(after)) == 2 else []
    return ChangedTasks(tuple(fixed), tuple(broken), tuple(flaky))


def _rate(passed: Sequence[bool]) -> float:
    return sum(passed) / len(passed) if passed else 0.0


def _pairs(trials: Sequence[Trial]) -> dict[str, list[tuple[Trial, Trial]]]:
    """Base and candidate by task, in the order of their repeats, up to the first that the base has not."""
    bases = {(trial.task_id, trial.repeat): trial for trial in trials if trial.arm is Arm.BASE}
    owns = {
        (trial.task_id, trial.repeat): trial
        for trial in trials
        if trial.arm is Arm.CANDIDATE and trial.number
    }
    found: dict[str, list[tuple[Trial, Trial]]] = {task_id: [] for task_id in sorted(varying(trials))}
    ended = set()
    for (task_id, repeat), own in sorted(owns.items()):
        base = bases.get((task_id, repeat))
        if base is None:
            ended.add(task_id)
        elif task_id not in ended:
            found[task_id].append((base, own))
    return found


def _measured(
    trials: Sequence[Trial],
    pairs: Mapping[str, Sequence[tuple[Trial, Trial]]],
    which: TrialSet,
    untried: Sequence[str],
) -> MeasuredSet:
    found: dict[str, list[Pair]] = {task_id: [] for task_id in untried}
    found |= _outcomes(pairs, which)
    own = [trial for trial in trials if trial.arm is Arm.CANDIDATE and trial.set is which]
    numbers = [trial.number or (trial.look if which is TrialSet.EVIDENCE else 0) for trial in own]
    return MeasuredSet(found, max([*numbers, 1]))


def _outcomes(pairs: Mapping[str, Sequence[tuple[Trial, Trial]]], which: TrialSet) -> dict[str, list[Pair]]:
    return {
        task_id: [_outcome(base, own) for base, own in seen]
        for task_id, seen in pairs.items()
        if seen and seen[0][1].set is which
    }


def _outcome(base: Trial, own: Trial) -> Pair:
    """What cannot be replayed on the base is no difference; on the candidate alone it is no success.

    Otherwise an edit would get past a guard by making it impossible to measure.
    """
    if base.is_lost:
        return (False, False)
    return base.passed, own.passed


def _spending(pairs: Mapping[str, Sequence[tuple[Trial, Trial]]], rules: Judge) -> list[PairCost]:
    """Of guards and hold-out where both sides pass: a run that fails at once is cheap for no good reason."""
    seen = [pair for own in pairs.values() for pair in own if pair[1].set is not TrialSet.EVIDENCE]
    if not seen:
        return []
    both = [(base.outcome.cost, own.outcome.cost) for base, own in seen if base.passed and own.passed]
    units: dict[str, list[tuple[float, float]]] = {
        "usd": [(base.usd, own.usd) for base, own in both if base.usd is not None and own.usd is not None],
        "tokens": [(base.tokens, own.tokens) for base, own in both],
        "seconds": [(base.wall_s, own.wall_s) for base, own in both],
    }
    if both and not units["usd"]:
        del units["usd"]  # the price of a model is not known
    # Differences that say nothing: a reply a little longer, a machine a little busier.
    slack = {"usd": rules.slack_usd, "tokens": rules.slack_tokens, "seconds": rules.slack_s}
    return [PairCost(unit, found, slack[unit]) for unit, found in units.items()]


def too_costly(trials: Sequence[Trial], rules: Judge) -> Refusal | None:
    """Where tasks that pass on both sides use much more CPU with the candidate."""
    spent: dict[Arm, dict[str, float]] = {Arm.BASE: {}, Arm.CANDIDATE: {}}
    for trial in trials:
        if trial.passed:
            tasks = spent[trial.arm]
            tasks[trial.task_id] = min(tasks.get(trial.task_id, float("inf")), trial.outcome.cost.cpu_s)
    both = spent[Arm.BASE].keys() & spent[Arm.CANDIDATE].keys()
    # exactly: a plain sum depends on the order of a set, which differs from process to process
    before = math.fsum(spent[Arm.BASE][task] for task in both)
    after = math.fsum(spent[Arm.CANDIDATE][task] for task in both)
    allowed = before * rules.max_cpu_ratio + rules.cpu_slack_s * len(both)
    if not both or after <= allowed:
        return None
    told = f"it uses {after:.2f} s of CPU where the base uses {before:.2f} s; {allowed:.2f} s are allowed"
    return Refusal(RefusalKind.COSTLY, told)


# --- How steadily a task passes on the base, measured before it serves as evidence or guard ------
# Measuring saves trials, it is no part of any proof: the paired tests are right for tasks however flaky, but
# a guard that fails by itself needs many pairs and evidence that mostly passes has little to gain. Because
# a task is chosen by these trials, they must not be paired afterwards: among tasks that failed four times
# are some that were unlucky, and those pass more often next time with any candidate.


def log_luck(tasks: int, fixed: int, repeats: int) -> float:
    """Logarithm of a bound for the chance that an edit that makes no task better seems to fix so many of these.

    A task seems fixed that failed ``repeats`` times on the base and passed as often with the candidate. Where it
    passes with chance p on the base, and no more often with the candidate, that has a chance of at most
    ((1-p)p)^repeats <= 4^-repeats. Any ``fixed`` of the ``tasks`` may be the ones, and any number of them (union
    bound), so it does not matter that tasks were chosen by these very trials, as long as ``tasks`` counts those that
    were left out as well.
    """
    return math.log(tasks * math.comb(tasks, fixed)) - fixed * repeats * math.log(4)


def repeats_needed(tasks: int, fixed: int, number: int, rules: Judge) -> int:
    """Trials on each side after which so many fixed tasks are no luck, for the failure's candidate of this number."""
    may = -rules.threshold(number, rules.steady_share)
    return max(1, math.ceil((log_luck(tasks, fixed, 0) - may) / (fixed * math.log(4))))


@dataclass(frozen=True, slots=True)
class Screening:
    """``serves`` is None until ``further`` more trials were made."""

    serves: bool | None
    says: str
    further: int = 0


def fitness(passed: Sequence[bool], which: TrialSet, rules: Judge) -> Screening:
    """Can a task with these fresh trials on the base serve in this set?"""
    if len(passed) < rules.sieve_trials:
        missing = rules.sieve_trials - len(passed)
        return Screening(None, f"{missing} more fresh trials on the base are needed", missing)
    rate = sum(passed) / len(passed)
    seen = f"it passed {sum(passed)} of {len(passed)} trials on the base"
    if which is TrialSet.EVIDENCE:
        serves, limit = rate <= rules.evidence_at_most, f"at most {rules.evidence_at_most:.0%} are"
    else:
        serves, limit = rate >= rules.steady_at_least, f"at least {rules.steady_at_least:.0%} are"
    return Screening(serves, seen if serves else f"{seen}, {limit} needed for {which.value}")


# -------------------------------------------------------------------------------------------------
# The digest of the trials that a verdict was computed from, the same for records that earlier
# versions stored.


# Fields that trials did not have when the first were stored and digested.
_ADDED = (
    "run_id",
    "recording",
    "drift",
    "steps_sha256",
    "number",
    "alike",
    "image",
    "look",
    "renamed",
    "bundle",
    "reached",
    "taken_from",
    "plugins",
    "host",
    "work",
    "steps_in",
)
_ADDED_COST = ("calls", "live_calls")
_ADDED_FAULT = ("origin", "kind")
_ADDED_CHECK = ("plugin",)


def trials_sha256(trials: Sequence[Trial], rates: Sequence[SafetyRate]) -> str:
    """Over all of them, in whatever order they come."""
    said = [*map(_as_first_stored, trials), *map(_rate_as_first_stored, rates)]
    return digest(sorted(digest(item) for item in said))


def _as_first_stored(trial: Trial) -> Json:
    """The trial without what later versions added, as long as it says nothing: old digests stay."""
    outcome = trial.outcome
    ended = _fields(outcome, ()) | {"cost": _fields(outcome.cost, _ADDED_COST)}
    ended["checks"] = [_fields(check, _ADDED_CHECK) for check in outcome.checks]
    if outcome.fault:
        ended["fault"] = _fields(outcome.fault, _ADDED_FAULT)
    return _fields(trial, _ADDED) | {"outcome": ended}


def _rate_as_first_stored(rate: SafetyRate) -> Json:
    return _fields(rate, ("image",))


def _fields(
    record: Trial | Outcome | Cost | Fault | CheckResult | SafetyRate, added: Sequence[str]
) -> dict[str, Json]:
    """Its fields by name, but for ``added`` ones that say nothing; records in them are left as they are."""
    values = values_of(record)
    for name in added:
        if not values[name]:
            del values[name]
    return values


# --- which tasks guard an edit -----------------------------------------------------------------


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
    stood = {trial.task_id for trial in trials if edition < STOOD or (trial.arm is Arm.BASE and trial.passed)}
    own = [
        trial
        for trial in trials
        if trial.arm is Arm.CANDIDATE
        and trial.set in (TrialSet.GUARD, TrialSet.HOLD_OUT)
        and trial.work not in same
        and not trial.is_lost
    ]
    varies = {trial.task_id for trial in own if trial.number}
    failed = {trial.task_id for trial in own if not trial.passed} - varies
    serving = (checked(trials) & stood) - failed
    found: dict[str, frozenset[str]] = {}
    for trial in own:
        if trial.passed and trial.task_id in serving:
            found[trial.task_id] = found.get(trial.task_id, frozenset()) | frozenset(trial.reached)
    return found


def reaches(candidate: Candidate, reached: Iterable[str]) -> bool:
    """Whether some of what it edits was entered. Of an edit that only brings new files nothing could have been: yes."""
    there = [part for part in candidate.edited if not part.new_file]
    entered = frozenset(reached)
    return not there or any(ran(part, entered) for part in there)


def ran(part: EditedName, reached: Set[str]) -> bool:
    """Whether one of the functions that show it was entered."""
    return not reached.isdisjoint(part.shown_by)
