"""Rulings on outcomes that vary: three paired sequential tests and one of what runs cost.

- evidence: the candidate passes more often than the base (mean advantage above 0);
- guards, and apart from them the hold-out: it does not pass less often by ``margin`` or more;
- costs: it seldom costs more than ``max_ratio`` times the base's run.

A promotion needs all of them, each at the level ``alpha`` divided among the candidates of one failure, so
each of these errors has at most that chance for a failure, however often ``decide`` is asked (an
intersection-union test needs no further correction: Berger, Technometrics 24, 1982). A rejection needs that
the opposite was shown, at ``beta`` for each candidate and test. In between it is a hold, with the number of
further pairs that would decide if the rates seen so far went on. docs/understand/judging.md explains it to a user.

A test that may be looked at after every trial needs other arithmetic than one that is looked at once: a game (Ville
1939; Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", JRSS B 86, 2024). We start
with 1 and bet at each trial against the claim "the mean is at most m". If the claim is true no way of betting makes the
expected fortune grow, so the chance that it *ever* reaches 1/alpha is at most alpha, however often one looks and
whenever one stops. The fortune is the *e-value*; its logarithm is computed here.

The stakes are fixed beforehand (a mixture over ``STAKES``), so the e-value depends on the counts alone,
not on their order. Fixed stakes also make a fixed list of tasks, each with its own mean, a fair sample:
for independent trials the expected factor of a complete round is the product of ``1 + stake * (mean_i - m)``,
and by the inequality of the arithmetic and geometric means that is at most 1 when the *average* of the
means is at most m. Hence e-values are taken at complete rounds only (``tally``).

Whoever tries twenty edits that do nothing finds one that looks good. So all candidates of one failure share one
allowance (``Judge.threshold``): the k-th gets 1/(k(k+1)) of it, which sums to 1 for any number of candidates, also those of
a later evolution. docs/decisions/sequential-judge.md says why not otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING

from agentos.records.candidates import Decision, Ground, Refusal, RefusalKind, Support, SupportKind
from agentos.records.trials import COMPARED_SETS, TrialSet

if TYPE_CHECKING:
    from agentos.evolver.policy import Judge

# A trial of the same task on both sides: passed on the base, passed with the candidate.
Pair = tuple[bool, bool]

# Share of the largest stake that cannot lose more than everything, and its part of the first fortune. A
# quarter more stands on the boldest, which is the best where nothing contradicts; the rest loses little to
# the best stake in hindsight.
STAKES = tuple((step / 16, 0.75 / 16 + (0.25 if step == 16 else 0.0)) for step in range(1, 17))

_FIRST = tuple(math.log(part) for _, part in STAKES)

FAR = 100_000  # trials; what needs more is called out of reach


@dataclass(frozen=True, slots=True)
class PairTally:
    """Pairs in which the candidate did better than the base, as well, and worse."""

    wins: float = 0
    ties: float = 0
    losses: float = 0

    @property
    def pairs(self) -> float:
        return self.wins + self.ties + self.losses

    def mirrored(self) -> PairTally:
        """Base and candidate exchanged."""
        return PairTally(self.losses, self.ties, self.wins)


def complete_rounds(tasks: Mapping[str, Sequence[Pair]]) -> int:
    """How often every task was tried; 0 without tasks."""
    return min((len(pairs) for pairs in tasks.values()), default=0)


def tally(tasks: Mapping[str, Sequence[Pair]]) -> PairTally:
    """Counts over complete rounds. Pairs beyond them are left out: a round counts whole or not at all."""
    rounds = complete_rounds(tasks)
    counted = [after - before for pairs in tasks.values() for before, after in pairs[:rounds]]
    return PairTally(counted.count(1), counted.count(0), counted.count(-1))


def log_e(seen: Sequence[tuple[float, float]], *, at_most: float, low: float) -> float:
    """Logarithm of the e-value against "the mean is at most ``at_most``".

    ``seen`` holds values and how often each was seen; no value is below ``low``, which is below ``at_most``.
    """
    logs = list(_FIRST)
    for value, count in seen:
        if count:
            factors = _log_factors(value, at_most, low)
            logs = [log + count * factor for log, factor in zip(logs, factors, strict=True)]
    top = max(logs)
    return top + math.log(sum(math.exp(log - top) for log in logs)) if top > -math.inf else top


@lru_cache(maxsize=256)
def _log_factors(value: float, at_most: float, low: float) -> tuple[float, ...]:
    """By what one such value multiplies the fortune, for each stake; the boldest loses all at ``low``."""
    gains = (1 + share * (value - at_most) / (at_most - low) for share, _ in STAKES)
    return tuple(math.log(gain) if gain > 1e-12 else -math.inf for gain in gains)


@lru_cache(maxsize=4096)
def log_e_above(found: PairTally, mean: float) -> float:
    """For "the candidate's mean advantage is above ``mean``", against at most it; -1 < mean < 1."""
    seen = ((1.0, found.wins), (0.0, found.ties), (-1.0, found.losses))
    return log_e(seen, at_most=mean, low=-1.0)


def log_e_below(found: PairTally, mean: float) -> float:
    """For "the candidate's mean advantage is below ``mean``", against at least it; -1 < mean < 1."""
    return log_e_above(found.mirrored(), -mean)


def log_e_rarer(hits: float, misses: float, share: float) -> float:
    """For "hits are rarer than ``share``", against at least as frequent; 0 < share < 1."""
    return log_e(((1.0, misses), (0.0, hits)), at_most=1 - share, low=0.0)


def log_e_more_often(hits: float, misses: float, share: float) -> float:
    """For "hits are more frequent than ``share``", against at most as frequent; 0 < share < 1."""
    return log_e(((1.0, hits), (0.0, misses)), at_most=share, low=0.0)


@dataclass(frozen=True, slots=True)
class MeasuredSet:
    """One set's fresh pairs by task, and how many candidates of this failure were measured on the set, this one included.

    Fresh: no run for which the task was chosen is in a pair (docs/understand/judging.md, "Fresh trials"). ``share`` of the
    error is for these pairs, where the rest went to trials of which every flip counted.
    """

    tasks: Mapping[str, Sequence[Pair]]
    number: int = 1
    share: float = 1.0

    def __post_init__(self) -> None:
        for task, pairs in self.tasks.items():
            if any(side not in (True, False) for pair in pairs for side in pair):
                raise ValueError(f"{task}: an outcome is passed or not, void trials are run again")


@dataclass(frozen=True, slots=True)
class PairCost:
    """What pairs of runs cost, (base, candidate), in one unit: usd, tokens or seconds. ``slack`` is no difference."""

    unit: str
    pairs: Sequence[tuple[float, float]]
    slack: float = 0.0


@dataclass(frozen=True, slots=True)
class SteadySummary:
    """What the tasks that do not vary add to a judgement; they are judged by flips, elsewhere."""

    evidence: bool = False  # some of it does not vary, so that none of it need vary
    tasks: int = 0  # that pass with the candidate


ALONE = SteadySummary()
NOTHING, A_WIN, A_TIE = PairTally(), PairTally(wins=1), PairTally(ties=1)


class PairedState(StrEnum):
    """What a test says."""

    SHOWN = "shown"
    REFUTED = "refuted"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class EValueTest:
    """What counts may show: its e-value, and what the logarithm of that must reach."""

    log_e: Callable[[PairTally], float]
    needed: float

    def passed(self, found: PairTally) -> bool:
        return self.log_e(found) >= self.needed

    def further(self, found: PairTally, rates: PairTally) -> int | None:
        """Pairs still needed if pairs like ``rates`` go on as in ``found``; None if no number is enough.

        The log e-value of n pairs at constant rates is a convex function of n that begins at 0: once
        above 0 it only grows, so a bisection finds the place.
        """

        def passes(pairs: int) -> bool:
            factor = pairs / rates.pairs
            return self.passed(PairTally(rates.wins * factor, rates.ties * factor, rates.losses * factor))

        low = int(found.pairs)
        high = max(1, low)
        while not passes(high):
            low, high = high, high * 2
            if high > FAR:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if passes(middle) else (middle, high)
        return high - int(found.pairs)


@dataclass(frozen=True, slots=True)
class PairedFinding:
    """What these counts say of a claim and of its opposite."""

    standing: PairedState
    ground: Ground
    found: PairTally = NOTHING
    claims: tuple[EValueTest, ...] = ()  # shown, refuted
    best: PairTally = A_TIE  # the pair that would help most: a forecast without any

    @property
    def says(self) -> str:
        return self.ground.reason

    def further(self) -> int | None:
        """Pairs that would decide if the rates seen so far went on, 0 when decided, None when out of reach."""
        if self.standing is not PairedState.OPEN:
            return 0
        if not self.found.pairs:
            return self.claims[0].further(self.found, self.best)
        ways = [claim.further(self.found, self.found) for claim in self.claims]
        return min((pairs for pairs in ways if pairs is not None), default=None)


@dataclass(frozen=True, slots=True)
class PairedDecision:
    """A hold names the set whose pairs are missing; ``exhausted`` when no more of them are allowed, or would help."""

    decision: Decision
    grounds: tuple[Ground, ...]
    undecided: TrialSet | None = None
    further: int | None = None
    exhausted: bool = False

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(ground.reason for ground in self.grounds)

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(ground.kind for ground in self.grounds)


def decide(
    measured: Mapping[TrialSet, MeasuredSet],
    rules: Judge,
    *,
    spending: Sequence[PairCost] = (),
    spent_usd: float = 0.0,
    beside: SteadySummary = ALONE,
) -> PairedDecision:
    """The ruling on what was measured so far. Sets that were not tried yet have tasks with no pairs.

    Raises ValueError for rules of which an error rate or a size of an effect is none.
    """
    for name in ("alpha", "beta", "min_effect", "margin", "dear_share"):
        if not 0 < getattr(rules, name) < 1:
            raise ValueError(f"{name} must lie between 0 and 1, not be {getattr(rules, name)}")
    sets = {which: measured.get(which, MeasuredSet({})) for which in COMPARED_SETS}
    if not sets[TrialSet.EVIDENCE].tasks and not beside.evidence:
        nothing = Refusal(RefusalKind.NO_EVIDENCE, "there is no evidence: nothing to improve")
        return PairedDecision(Decision.REJECT, (nothing,))
    findings = {which: _finding(which, found, rules) for which, found in sets.items()}
    costs = [cost_bounded(item, sets[TrialSet.EVIDENCE].number, rules) for item in spending]
    refuted = [item.ground for item in (*findings.values(), *costs) if item.standing is PairedState.REFUTED]
    if refuted:
        return PairedDecision(Decision.REJECT, tuple(refuted))
    for which, finding in findings.items():
        if finding.standing is PairedState.OPEN:
            return _hold(which, finding, sets[which], rules, spent_usd)
    for finding in costs:
        if finding.standing is PairedState.OPEN:
            where = TrialSet.GUARD if sets[TrialSet.GUARD].tasks else TrialSet.HOLD_OUT
            return _hold(where, finding, sets[where], rules, spent_usd)
    tasks = len(sets[TrialSet.GUARD].tasks) + len(sets[TrialSet.HOLD_OUT].tasks) + beside.tasks
    if tasks < rules.min_tasks:
        return PairedDecision(
            Decision.HOLD, (Refusal(RefusalKind.FEW_TASKS, too_few(tasks, rules.min_tasks)),), exhausted=True
        )
    return PairedDecision(Decision.PROMOTE, tuple(item.ground for item in (*findings.values(), *costs)))


def too_few(tasks: int, needed: int) -> str:
    """Why nothing can be told of a candidate, and what to do."""
    return (
        f"guards and hold-out are fewer than {needed} tasks: "
        f"add {needed - tasks} more with checks for the same resource, then retry"
    )


def claims_of(
    which: TrialSet, number: int, rules: Judge, share: float = 1.0
) -> tuple[EValueTest, EValueTest]:
    """What the pairs of a set may show, and what they may refute it by: a gain on the evidence, no fall elsewhere."""
    against = math.log(1 / rules.beta)
    needed = rules.threshold(number, share)
    if which is TrialSet.EVIDENCE:
        gained = EValueTest(lambda counts: log_e_above(counts, 0.0), needed)
        return gained, EValueTest(lambda counts: log_e_below(counts, rules.min_effect), against)
    held = EValueTest(lambda counts: log_e_above(counts, -rules.margin), needed)
    return held, EValueTest(lambda counts: log_e_below(counts, 0.0), against)


def improved(found: PairTally, number: int, rules: Judge, share: float = 1.0) -> PairedFinding:
    """Does the candidate pass the evidence more often than the base? Refuted when the gain is below ``min_effect``."""
    shown, small = claims_of(TrialSet.EVIDENCE, number, rules, share)
    counts = _counts(found)
    gains = Support(SupportKind.GAINED, f"it passes more often than the base ({counts})")
    little = Refusal(RefusalKind.FEW_FIXED, f"it gains less than {rules.min_effect:g} ({counts})")
    untold = Refusal(RefusalKind.UNDECIDED, f"a gain is not shown ({counts})")
    return _first(
        found,
        (shown, PairedFinding(PairedState.SHOWN, gains)),
        (small, PairedFinding(PairedState.REFUTED, little)),
        otherwise=PairedFinding(PairedState.OPEN, untold, found, (shown, small), A_WIN),
    )


def kept(
    found: PairTally, number: int, rules: Judge, share: float = 1.0, which: TrialSet = TrialSet.GUARD
) -> PairedFinding:
    """Is a fall by the margin excluded? Refuted as soon as any fall is shown."""
    shown, fell = claims_of(which, number, rules, share)
    counts = _counts(found)
    less = Refusal(RefusalKind.FELL, f"it passes less often than the base ({counts})")
    kind = SupportKind.HOLD_OUT_KEPT if which is TrialSet.HOLD_OUT else SupportKind.GUARDS_KEPT
    excluded = Support(kind, f"a fall by {rules.margin:g} is excluded ({counts})")
    untold = Refusal(RefusalKind.UNDECIDED, f"a fall by {rules.margin:g} is not excluded ({counts})")
    return _first(
        found,
        (fell, PairedFinding(PairedState.REFUTED, less)),
        (shown, PairedFinding(PairedState.SHOWN, excluded)),
        otherwise=PairedFinding(PairedState.OPEN, untold, found, (shown, fell)),
    )


def cost_bounded(spending: PairCost, number: int, rules: Judge) -> PairedFinding:
    """Does it cost more than ``max_ratio`` times the base's run in fewer than ``dear_share`` of pairs?"""
    if not all(math.isfinite(value) and value >= 0 for pair in spending.pairs for value in pair):
        raise ValueError(f"{spending.unit}: costs are numbers of at least 0")
    dear = sum(after > before * rules.max_ratio + spending.slack for before, after in spending.pairs)
    found = PairTally(0, len(spending.pairs) - dear, dear)
    share, needed, against = rules.dear_share, rules.threshold(number), math.log(1 / rules.beta)
    shown = EValueTest(lambda seen: log_e_rarer(seen.losses, seen.ties, share), needed)
    dearer = EValueTest(lambda seen: log_e_more_often(seen.losses, seen.ties, share), against)
    says = f"more than {rules.max_ratio:g} times the base's {spending.unit} in {dear} of {len(spending.pairs)} pairs"
    untold = Refusal(RefusalKind.UNDECIDED, f"{says}, which is too few to tell")
    return _first(
        found,
        (dearer, PairedFinding(PairedState.REFUTED, Refusal(RefusalKind.COSTLY, says))),
        (shown, PairedFinding(PairedState.SHOWN, Support(SupportKind.AFFORDABLE, says))),
        otherwise=PairedFinding(PairedState.OPEN, untold, found, (shown, dearer)),
    )


def _first(
    found: PairTally, *ways: tuple[EValueTest, PairedFinding], otherwise: PairedFinding
) -> PairedFinding:
    """What the first of these tests that is passed says."""
    return next((finding for test, finding in ways if test.passed(found)), otherwise)


def broken_tasks(tasks: Mapping[str, Sequence[Pair]], rules: Judge) -> tuple[str, ...]:
    """Tasks that the base passed and the candidate failed in every round, once there are rounds enough to say so.

    An average over many guards hides one that breaks. With independent sides a task that does not get worse
    is passed and then failed with chance p(1-p) <= 1/4 in a pair, so betting everything on that multiplies
    by 4; the mean of these e-values over the tasks is one for "some task got worse" (Vovk and Wang 2021).
    """
    rounds = complete_rounds(tasks)
    lost = tuple(
        task for task, pairs in tasks.items() if all(pair == (True, False) for pair in pairs[:rounds])
    )
    if not lost:
        return ()
    log_mean = rounds * math.log(4) + math.log(len(lost) / len(tasks))
    return lost if log_mean >= math.log(1 / rules.beta) else ()


def rounds_to_tell(tasks: int, rules: Judge) -> int:
    """Rounds after which one broken task among these would be seen."""
    return max(rules.min_rounds, math.ceil(math.log(max(1, tasks) / rules.beta) / math.log(4)))


def _finding(which: TrialSet, measured: MeasuredSet, rules: Judge) -> PairedFinding:
    """One set's finding; a task that broke refutes it whatever the average says."""
    if not measured.tasks:
        none = Support(SupportKind.NO_TASKS, f"{which.value}: there are no tasks")
        return PairedFinding(PairedState.SHOWN, none)
    broken = broken_tasks(measured.tasks, rules)
    if broken:
        # A hold-out task is named nowhere that a proposer could read.
        what = f"{len(broken)} tasks" if which is TrialSet.HOLD_OUT else ", ".join(broken)
        says = f"{which.value}: {what} passed on the base and failed with it in every round"
        return PairedFinding(PairedState.REFUTED, Refusal(RefusalKind.BROKEN, says))
    counts = tally(measured.tasks)
    if which is TrialSet.EVIDENCE:
        finding = improved(counts, measured.number, rules, measured.share)
    else:
        finding = kept(counts, measured.number, rules, measured.share, which)
    says = f"{which.value}: {finding.says}"
    if finding.standing is PairedState.SHOWN and complete_rounds(measured.tasks) < _least(
        which, measured, rules
    ):
        says = f"{says}, but each task needs {_least(which, measured, rules)} rounds"
        return PairedFinding(PairedState.OPEN, Refusal(RefusalKind.UNDECIDED, says))
    return replace(finding, ground=replace(finding.ground, reason=says))


def _least(which: TrialSet, measured: MeasuredSet, rules: Judge) -> int:
    """Rounds before a promotion: guards and hold-out are tried until one broken task would have been seen."""
    return rules.min_rounds if which is TrialSet.EVIDENCE else rounds_to_tell(len(measured.tasks), rules)


def _hold(
    which: TrialSet, finding: PairedFinding, measured: MeasuredSet, rules: Judge, spent_usd: float
) -> PairedDecision:
    tasks, rounds = len(measured.tasks), complete_rounds(measured.tasks)
    further = finding.further() if finding.claims else 0
    if further is not None:
        further = tasks * max(_least(which, measured, rules) - rounds, math.ceil(further / tasks))
    grounds = [finding.ground, Refusal(RefusalKind.UNDECIDED, _forecast(further))]
    full, dear = (rounds + 1) * tasks > rules.max_pairs, spent_usd >= rules.max_usd
    if full:
        told = f"no more pairs of it are allowed (max_pairs {rules.max_pairs})"
        grounds.append(Refusal(RefusalKind.EXHAUSTED, told))
    if dear:
        told = f"{spent_usd:.2f} USD are spent, {rules.max_usd:.2f} are allowed (max_usd)"
        grounds.append(Refusal(RefusalKind.EXHAUSTED, told))
    return PairedDecision(Decision.HOLD, tuple(grounds), which, further, full or dear)


def _forecast(further: int | None) -> str:
    if further is None:
        return "no number of trials decides if the rates seen so far go on"
    return f"{further} further pairs decide if the rates seen so far go on"


def _counts(found: PairTally) -> str:
    return f"{found.wins:g} better and {found.losses:g} worse of {found.pairs:g} pairs"


EARLIER_WORDS = (  # in stored reasons, and what is said now
    ("oftener", "more often"),
    ("then reconsider", "then retry"),
    ("none of 0 guards broke", "there are no guards"),
    ("the hold-out did not fall (0 → 0 of 0 pass)", "there is no hold-out"),
)


def as_said_now(reason: str) -> str:
    """A reason of a verdict, also of one that an earlier version stored, in the words of this one."""
    for before, now in EARLIER_WORDS:
        reason = reason.replace(before, now)
    return reason
