"""Rulings on varying outcomes: what promotes, what rejects, what is held and why; and what must not get through."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentos.domain import Decision, RefusalKind, SupportKind, TrialSet
from agentos.evolver.policy import Judge
from agentos.evolver.verdict.paired_tests import (
    MeasuredSet,
    Pair,
    PairCost,
    PairedDecision,
    PairedState,
    PairTally,
    broken_tasks,
    cost_bounded,
    decide,
    improved,
    kept,
    rounds_to_tell,
)
from tests.refusals import raises

RULE = Judge()
SIGNS = {"+": (False, True), "=": (True, True), "0": (False, False), "-": (True, False)}


def some(*tasks: str, number: int = 1, name: str = "t") -> MeasuredSet:
    """One string a task, one sign a pair: + better, = both pass, 0 both fail, - worse."""
    return MeasuredSet(
        {f"{name}{index}": [SIGNS[sign] for sign in signs] for index, signs in enumerate(tasks)}, number
    )


def rule_on(
    evidence: MeasuredSet | None = None,
    guards: MeasuredSet | None = None,
    hold_out: MeasuredSet | None = None,
    **more: object,
) -> PairedDecision:
    """A ruling where everything is as good as can be, but for what is given."""
    sets = {
        TrialSet.EVIDENCE: evidence or some(*["++++"] * 3),
        TrialSet.GUARD: guards or some(*["=" * 6] * 8),
        TrialSet.HOLD_OUT: hold_out or some(*["=" * 12] * 4, name="hidden"),
    }
    return decide(sets, **{"rules": RULE, **more})  # type: ignore[arg-type]


def test_a_clean_repair_is_promoted_with_few_trials() -> None:
    ruling = rule_on()
    assert ruling.decision is Decision.PROMOTE
    assert ruling.kinds == (SupportKind.GAINED, SupportKind.GUARDS_KEPT, SupportKind.HOLD_OUT_KEPT)
    assert [re.findall(r"[\d.]+", reason) for reason in ruling.reasons] == [
        ["12", "0", "12"],
        *[["0.1", "0", "0", "48"]] * 2,
    ]


def test_sets_are_asked_for_one_after_another() -> None:
    nothing = some(*[""] * 8)
    evidence = rule_on(some("", ""), nothing, nothing)
    assert (evidence.undecided, evidence.further) == (TrialSet.EVIDENCE, 8)
    guards = rule_on(guards=nothing, hold_out=nothing)
    assert (guards.undecided, guards.further) == (TrialSet.GUARD, 48)
    hidden = rule_on(hold_out=nothing)
    assert (hidden.undecided, hidden.further) == (TrialSet.HOLD_OUT, 48)
    assert not any(ruling.exhausted for ruling in (evidence, guards, hidden))


@settings(max_examples=60, deadline=None)
@given(signs=st.lists(st.sampled_from("+=0-"), min_size=3, max_size=12), tasks=st.integers(1, 5))
def test_the_forecast_comes_true_if_the_rates_go_on(signs: list[str], tasks: int) -> None:
    """Whole repetitions of what was seen: held before the forecast's number of pairs, decided at or soon after it."""
    unit = "".join(signs)
    ruling = rule_on(evidence=some(*[unit] * tasks))
    if ruling.undecided is not TrialSet.EVIDENCE or ruling.further is None:
        return
    assert ruling.further % tasks == 0
    pairs = len(unit) * tasks
    enough = -(-(pairs + ruling.further) // pairs)
    later = rule_on(evidence=some(*[unit * enough] * tasks), rules=replace(RULE, max_pairs=10**6))
    assert later.undecided is not TrialSet.EVIDENCE


def test_an_edit_without_effect_is_given_up() -> None:
    ruling = rule_on(evidence=some(*["0000"] * 4))
    assert ruling.decision is Decision.REJECT
    assert ruling.kinds == (RefusalKind.FEW_FIXED,)
    assert re.findall(r"[\d.]+", ruling.reasons[0]) == ["0.2", "0", "0", "16"]


def test_a_lucky_start_is_held() -> None:
    ruling = rule_on(evidence=some("++", "++", "+0"))
    assert ruling.decision is Decision.HOLD
    assert ruling.kinds == (RefusalKind.UNDECIDED,) * 2
    assert "5 better and 0 worse of 6 pairs" in ruling.reasons[0]
    assert ruling.further == 3


def test_a_later_candidate_must_show_more() -> None:
    good = ["+++"] * 3
    assert rule_on(evidence=some(*good)).decision is Decision.PROMOTE
    assert rule_on(evidence=some(*good, number=20)).decision is Decision.HOLD
    guards = ["=" * 6] * 8
    assert rule_on(guards=some(*guards, number=20)).decision is Decision.HOLD


def test_a_guard_that_breaks_is_not_hidden_by_the_average() -> None:
    """One of 100 is a fall of 0.01, which the margin alone lets pass."""
    assert kept(PairTally(0, 99, 1), 1, RULE).standing is PairedState.SHOWN
    once = rule_on(guards=some(*["="] * 99, "-"))
    assert once.decision is Decision.HOLD
    ruling = rule_on(guards=some(*["=" * 4] * 15, "-" * 4))
    assert kept(PairTally(0, 60, 4), 1, RULE).standing is PairedState.OPEN
    assert ruling.decision is Decision.REJECT
    assert ruling.kinds == (RefusalKind.BROKEN,)
    assert ruling.reasons[0].startswith("guard: t15 ")


def test_guards_are_tried_until_one_broken_one_would_be_seen() -> None:
    """Many guards fill the pairs that the margin needs in a single round: not enough for any one of them."""
    ruling = rule_on(guards=some(*["="] * 60))
    assert ruling.decision is Decision.HOLD
    assert ruling.kinds[0] is RefusalKind.UNDECIDED
    assert "each task needs 5 rounds" in ruling.reasons[0]
    assert ruling.further == 240
    assert rounds_to_tell(60, RULE) == 5


def test_what_breaks_in_the_hold_out_is_not_named() -> None:
    ruling = rule_on(hold_out=some(*["=" * 5] * 3, "-" * 5, name="hidden"))
    assert ruling.decision is Decision.REJECT
    assert ruling.kinds == (RefusalKind.BROKEN,)
    assert "hold-out: 1 tasks" in ruling.reasons[0]
    assert "hidden" not in str(ruling)


def test_calling_a_task_broken_errs_as_seldom_as_promised() -> None:
    """Exactly, for the worst case: tasks that pass every other time on both sides, looked at after every round."""
    tasks, rule = 2, replace(RULE, beta=0.2)
    outcomes = list(product((False, True), repeat=2))

    def ever(so_far: tuple[tuple[Pair, ...], ...], rounds: int) -> float:
        if so_far and broken_tasks({str(index): pairs for index, pairs in enumerate(zip(*so_far))}, rule):  # noqa: B905
            return 1.0
        if rounds == 0:
            return 0.0
        futures = [ever((*so_far, one), rounds - 1) for one in product(outcomes, repeat=tasks)]
        return sum(futures) / len(futures)

    assert 0 < ever((), 3) <= rule.beta


def test_many_rounds_overflow_nothing() -> None:
    tasks = {"kept": [SIGNS["="]] * 5000, "lost": [SIGNS["-"]] * 5000}
    assert broken_tasks(tasks, RULE) == ("lost",)
    assert rule_on(guards=MeasuredSet(tasks)).decision is Decision.REJECT


@pytest.mark.parametrize("which", ["evidence", "guards", "hold_out"])
def test_more_losses_than_wins_promote_in_no_set(which: str) -> None:
    worse = some(*["==-=+-=-" * 4] * 6)
    assert rule_on(**{which: worse}).decision is not Decision.PROMOTE  # type: ignore[arg-type]


@given(
    wins=st.integers(0, 300), ties=st.integers(0, 300), losses=st.integers(0, 300), number=st.integers(1, 50)
)
@settings(deadline=None)
def test_no_counts_show_a_gain_without_more_wins_than_losses(
    wins: int, ties: int, losses: int, number: int
) -> None:
    if improved(PairTally(wins, ties, losses), number, RULE).standing is PairedState.SHOWN:
        assert wins > losses
        assert improved(PairTally(losses, ties, wins), number, RULE).standing is not PairedState.SHOWN


def test_order_of_tasks_and_of_rounds_is_nothing() -> None:
    dice = random.Random(5)
    tasks = {str(index): [(dice.random() < 0.3, dice.random() < 0.6) for _ in range(9)] for index in range(5)}
    turned = {name: list(reversed(tasks[name])) for name in reversed(tasks)}
    assert rule_on(evidence=MeasuredSet(tasks)) == rule_on(evidence=MeasuredSet(turned))


def test_choosing_which_tasks_to_try_more_often_gains_nothing() -> None:
    """The pairs beyond a complete round are not looked at, however good."""
    uneven = MeasuredSet({"easy": [SIGNS["+"]] * 50, "hard": [SIGNS["0"]] * 2})
    assert rule_on(evidence=uneven) == rule_on(evidence=some("++", "00"))


def test_without_evidence_or_with_too_few_tasks_nothing_is_promoted() -> None:
    assert decide({}, RULE).decision is Decision.REJECT
    few = decide({TrialSet.EVIDENCE: some(*["++++"] * 3), TrialSet.GUARD: some("=" * 50)}, RULE)
    assert (few.decision, few.exhausted) == (Decision.HOLD, True)
    assert few.kinds == (RefusalKind.FEW_TASKS,)
    assert "fewer than 3 tasks" in few.reasons[0]
    assert decide({}, RULE).kinds == (RefusalKind.NO_EVIDENCE,)


def test_an_empty_hold_out_is_said() -> None:
    sets = {TrialSet.EVIDENCE: some(*["++++"] * 3), TrialSet.GUARD: some(*["=" * 6] * 8)}
    ruling = decide(sets, RULE)
    assert ruling.decision is Decision.PROMOTE
    assert ruling.kinds == (SupportKind.GAINED, SupportKind.GUARDS_KEPT, SupportKind.NO_TASKS)
    assert ruling.reasons[-1].startswith("hold-out: ")


def test_the_bounds_end_a_judgement_undecided() -> None:
    noisy = some(*["+-" * 3] * 8)
    bounded = rule_on(guards=noisy, rules=replace(RULE, max_pairs=50))
    assert (bounded.decision, bounded.exhausted) == (Decision.HOLD, True)
    assert bounded.kinds[-1] is RefusalKind.EXHAUSTED
    assert "max_pairs 50" in bounded.reasons[-1]
    assert bounded.further is not None
    assert bounded.further > 0
    assert not rule_on(guards=noisy).exhausted
    dear = rule_on(guards=noisy, spent_usd=5.0)
    assert dear.exhausted
    assert dear.kinds[-1] is RefusalKind.EXHAUSTED
    assert "5.00 USD" in dear.reasons[-1]


@pytest.mark.parametrize(("pair", "ends"), [((1, 1.9), Decision.PROMOTE), ((1, 2.1), Decision.REJECT)])
def test_a_run_that_costs_much_more_rejects(pair: tuple[float, float], ends: Decision) -> None:
    ruling = rule_on(spending=[PairCost("usd", [pair] * 30)])
    assert ruling.decision is ends
    assert ruling.kinds[-1] is (SupportKind.AFFORDABLE if ends is Decision.PROMOTE else RefusalKind.COSTLY)
    assert " usd " in ruling.reasons[-1]


def test_costs_are_held_until_they_can_be_told() -> None:
    ruling = rule_on(spending=[PairCost("tokens", [(100, 90)] * 5)])
    assert (ruling.decision, ruling.undecided) == (Decision.HOLD, TrialSet.GUARD)
    assert ruling.further is not None
    assert rule_on(spending=[PairCost("tokens", [])]).decision is Decision.HOLD


def test_what_was_free_and_is_not_any_more_is_dear_beyond_the_slack() -> None:
    def finding(pairs: Sequence[tuple[float, float]], slack: float) -> PairedState:
        return cost_bounded(PairCost("usd", pairs, slack), 1, RULE).standing

    assert finding([(0.0, 0.0)] * 30, 0.0) is PairedState.SHOWN
    assert finding([(0.0, 0.01)] * 30, 0.0) is PairedState.REFUTED
    assert finding([(0.0, 0.01)] * 30, 0.02) is PairedState.SHOWN


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1.0])
def test_what_is_no_cost_is_refused(bad: float) -> None:
    with raises(ValueError, message="pairs.negative_cost"):
        cost_bounded(PairCost("usd", [(1.0, bad)]), 1, RULE)


def test_what_is_no_outcome_or_no_rate_is_refused() -> None:
    with raises(ValueError, message="pairs.void"):
        MeasuredSet({"t": [(True, None)]})  # type: ignore[list-item]
    with raises(ValueError, message="pairs.margin"):
        decide({}, Judge(margin=0))
    with raises(ValueError, message="pairs.alpha"):
        decide({}, Judge(alpha=1))


@pytest.mark.slow
def test_null_candidates_are_promoted_less_often_than_promised() -> None:
    """400 evolutions with five candidates each that change nothing, looked at after every round."""
    dice, promoted = random.Random(20260101), 0
    for _ in range(400):
        chances = [dice.uniform(0.1, 0.9) for _ in range(4)]
        for number in range(1, 6):
            pairs: list[list[Pair]] = [[], [], [], []]
            standing = PairedState.OPEN
            while standing is PairedState.OPEN and len(pairs[0]) < 30:
                for chance, seen in zip(chances, pairs, strict=True):
                    seen.append((dice.random() < chance, dice.random() < chance))
                flat = [after - before for seen in pairs for before, after in seen]
                counts = PairTally(flat.count(1), flat.count(0), flat.count(-1))
                standing = improved(counts, number, RULE).standing
            if standing is PairedState.SHOWN:
                promoted += 1
                break
    assert promoted <= 20
