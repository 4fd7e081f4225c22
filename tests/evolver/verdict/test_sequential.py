"""The bets: no fortune grows in expectation while the claim is false, checked exactly; looking often costs nothing."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from functools import cache, partial
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentos.evolver.policy import Judge
from agentos.evolver.verdict.paired_tests import (
    STAKES,
    PairTally,
    complete_rounds,
    log_e_above,
    log_e_below,
    log_e_more_often,
    log_e_rarer,
    tally,
)
from tests.refusals import raises

WIN, TIE, LOSS = (False, True), (True, True), (True, False)
STEPS = {1: PairTally(wins=1), 0: PairTally(ties=1), -1: PairTally(losses=1)}


def plus(one: PairTally, other: PairTally) -> PairTally:
    return PairTally(one.wins + other.wins, one.ties + other.ties, one.losses + other.losses)


def expected(
    start: PairTally, tasks: list[tuple[float, float]], log_e: Callable[[PairTally], float]
) -> float:
    """Exact expected e-value after one more round; each task has its chances of a win and of a loss."""
    total = 0.0
    for outcome in product((1, 0, -1), repeat=len(tasks)):
        chance, found = 1.0, start
        for step, (win, loss) in zip(outcome, tasks, strict=True):
            chance *= {1: win, 0: 1 - win - loss, -1: loss}[step]
            found = plus(found, STEPS[step])
        if chance > 0:
            total += chance * math.exp(log_e(found))
    return total


@st.composite
def rounds_of_tasks(draw: st.DrawFn, mean: float) -> list[tuple[float, float]]:
    """Up to four tasks with chances whose average advantage is at most ``mean``: some may gain, others lose."""
    count = draw(st.integers(1, 4))
    sides = st.tuples(st.floats(0, 1), st.floats(0, 1))
    tasks = [(before, after) for before, after in draw(st.lists(sides, min_size=count, max_size=count))]
    chances = [(after * (1 - before), before * (1 - after)) for before, after in tasks]
    over = sum(win - loss for win, loss in chances) / count - mean
    if over > 0:  # lower the wins until the claim under test is false, just so
        wins = sum(win for win, _ in chances)
        keep = max(0.0, 1 - over * count / wins) if wins else 0.0
        chances = [(win * keep, loss) for win, loss in chances]
        lacking = sum(win - loss for win, loss in chances) / count - mean
        if lacking > 1e-12:
            chances = [(0.0, 1.0)] * count
    return chances


starts = st.builds(PairTally, st.integers(0, 6), st.integers(0, 12), st.integers(0, 6))


def test_the_first_fortune_is_one() -> None:
    assert sum(part for _, part in STAKES) == pytest.approx(1)
    assert log_e_above(PairTally(), 0.0) == pytest.approx(0)


@pytest.mark.parametrize("mean", [0.0, -0.1, -0.3, 0.2])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_round_never_raises_the_expected_fortune_of_a_false_claim(mean: float, data: st.DataObject) -> None:
    """The supermartingale: from any state, for tasks that differ, when their average is at most the claim's."""
    tasks, start = data.draw(rounds_of_tasks(mean)), data.draw(starts)
    before = math.exp(log_e_above(start, mean))
    assert expected(start, tasks, lambda found: log_e_above(found, mean)) <= before * (1 + 1e-9)


@pytest.mark.parametrize("mean", [0.0, 0.2])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_the_opposite_claim_bets_as_fairly(mean: float, data: st.DataObject) -> None:
    tasks, start = data.draw(rounds_of_tasks(-mean)), data.draw(starts)
    turned = [(loss, win) for win, loss in tasks]  # their average is at least ``mean``
    before = math.exp(log_e_below(start, mean))
    assert expected(start, turned, lambda found: log_e_below(found, mean)) <= before * (1 + 1e-9)


@given(share=st.floats(0.05, 0.95), hits=st.integers(0, 20), misses=st.integers(0, 20), less=st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_bets_on_frequencies_are_fair(share: float, hits: int, misses: int, less: float) -> None:
    def after(log_e: Callable[[float, float, float], float], chance: float) -> float:
        hit, miss = log_e(hits + 1, misses, share), log_e(hits, misses + 1, share)
        return chance * math.exp(hit) + (1 - chance) * math.exp(miss)

    rarer, more_often = share + (1 - share) * less, share * less
    assert after(log_e_rarer, rarer) <= math.exp(log_e_rarer(hits, misses, share)) * (1 + 1e-9)
    assert after(log_e_more_often, more_often) <= math.exp(log_e_more_often(hits, misses, share)) * (1 + 1e-9)


def ever_reached(
    chances: list[tuple[float, float]], rounds: int, reached: Callable[[PairTally], bool]
) -> float:
    """Exact chance that somebody who looks after every round, and stops when it suits, is convinced."""
    going: dict[PairTally, float] = {PairTally(): 1.0}
    convinced = 0.0
    for _ in range(rounds):
        for win, loss in chances:
            after: dict[PairTally, float] = defaultdict(float)
            for found, chance in going.items():
                for step, odds in ((1, win), (0, 1 - win - loss), (-1, loss)):
                    if odds:
                        after[plus(found, STEPS[step])] += chance * odds
            going = after
        for found in [found for found in going if reached(found)]:
            convinced += going.pop(found)
    return convinced


fortune = cache(partial(log_e_above, mean=0.0))


def convinced(needed: float, found: PairTally) -> bool:
    return fortune(found) >= needed


@pytest.mark.parametrize(
    "chances", [[(0.5, 0.5)], [(0.25, 0.25)] * 3, [(0.02, 0.02)] * 4, [(0.5, 0.0), (0.0, 0.5)]], ids=str
)
@pytest.mark.slow
def test_looking_after_every_round_convinces_by_chance_at_most_as_often_as_promised(
    chances: list[tuple[float, float]],
) -> None:
    rounds = 60 // len(chances)
    for alpha in (0.05, 0.2):
        needed = math.log(1 / alpha)
        assert ever_reached(chances, rounds, partial(convinced, needed)) <= alpha


def test_the_same_by_an_uncorrected_test_convinces_far_too_often() -> None:
    """That the check above can fail: a sign test at 5 %, looked at after every pair."""

    def significant(found: PairTally) -> bool:
        count = int(found.wins + found.losses)
        return sum(math.comb(count, more) for more in range(int(found.wins), count + 1)) / 2**count <= 0.05

    assert ever_reached([(0.5, 0.5)], 60, significant) > 0.15


@pytest.mark.parametrize("ties", [0.4, 0.9])
@pytest.mark.slow
def test_a_fall_by_the_margin_is_excluded_by_chance_at_most_as_often_as_promised(ties: float) -> None:
    chances = [((1 - ties - 0.1) / 2, (1 - ties + 0.1) / 2)]
    assert ever_reached(chances, 70, lambda found: log_e_above(found, -0.1) >= math.log(20)) <= 0.05


@pytest.mark.slow
def test_twenty_candidates_without_effect_share_one_allowance() -> None:
    total = sum(
        ever_reached([(0.3, 0.3)], 40, partial(convinced, Judge(alpha=0.05).threshold(number)))
        for number in range(1, 21)
    )
    assert 0 < total <= 0.05


def test_the_parts_of_the_allowance_add_up_to_it() -> None:
    parts = [math.exp(-Judge(alpha=0.05).threshold(number)) for number in range(1, 5000)]
    assert 0.049 < sum(parts) <= 0.05
    assert parts[0] == pytest.approx(0.025)
    with raises(ValueError, message="pairs.candidate_number"):
        Judge(alpha=0.05).threshold(0)


def test_a_few_clean_repairs_are_enough_and_a_few_lucky_ones_are_not() -> None:
    needed = Judge(alpha=0.05).threshold(1)
    assert log_e_above(PairTally(wins=7), 0.0) >= needed > log_e_above(PairTally(wins=6), 0.0)
    assert log_e_above(PairTally(wins=8, losses=3), 0.0) < needed
    assert log_e_above(PairTally(ties=43), -0.1) >= needed > log_e_above(PairTally(ties=42), -0.1)


@given(wins=st.integers(0, 10**5), ties=st.integers(0, 10**5), losses=st.integers(0, 10**5))
def test_any_counts_give_a_number_and_both_sides_are_never_convinced(
    wins: int, ties: int, losses: int
) -> None:
    found = PairTally(wins, ties, losses)
    above, below = log_e_above(found, 0.0), log_e_below(found, 0.0)
    assert not math.isnan(above + below) or math.inf in (above, below)
    assert not (above > math.log(2) and below > math.log(2))
    assert log_e_above(plus(found, STEPS[1]), 0.0) > above or above == math.inf


def test_only_complete_rounds_count() -> None:
    """More pairs of the task that gains would make any candidate look good."""
    tasks = {"gains": [WIN] * 40, "loses": [LOSS] * 2}
    assert complete_rounds(tasks) == 2
    assert tally(tasks) == PairTally(2, 0, 2)
    assert tally({"a": [WIN, TIE], "b": []}) == tally({}) == PairTally()
