"""The sequential tests round by round: the last round says what the verdict says."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from agentos.domain import Arm, Outcome, Result, Snapshot, Trial, TrialSet
from agentos.evolver.policy import Judge
from agentos.evolver.verdict.paired_tests import SteadySummary
from agentos.evolver.verdict.pairing import FIRST, rule_on
from agentos.web.pages.charts import progress_of

RULES = Judge()


def pair(task: str, which: TrialSet, turn: int, before: bool, after: bool) -> list[Trial]:
    return [
        Trial(
            f"{task}-{arm}-{turn}", "evo", "cand" if number else "", task, which, arm, FIRST + turn, Snapshot("c", "t"),
            Outcome(Result.PASSED if passed else Result.FAILED, float(passed), ""), "", "fake", "none", number=number,
        )
        for arm, passed, number in ((Arm.BASE, before, 0), (Arm.CANDIDATE, after, 1))
    ]  # fmt: skip


def trials(rounds: int, after: bool) -> Sequence[Trial]:
    tasks = [f"task-{number}" for number in range(3)]
    return [
        it
        for turn in range(rounds)
        for task in tasks
        for it in pair(task, TrialSet.EVIDENCE, turn, False, after)
    ]


@pytest.mark.parametrize("after", [True, False])
def test_a_bound_is_reached_with_the_verdict_and_not_before(after: bool) -> None:
    for rounds in range(1, 12):
        (course,) = progress_of(trials(rounds, after), RULES)
        assert [it.pairs for it in course.rounds] == [3 * number for number in range(rounds + 1)]
        assert course.rounds[0].log_for == pytest.approx(0.0)
        ruling = rule_on(trials(rounds, after), RULES, SteadySummary(), {})
        last = course.rounds[-1]
        refuted = ruling.decision.value == "reject"
        assert (last.log_against >= course.needed_against) is refuted
        if last.log_for >= course.needed_for:
            assert after
    assert math.isclose(course.needed_against, math.log(1 / RULES.beta))


def test_where_every_flip_counts_there_is_no_test() -> None:
    plain = [Trial("t", "evo", "cand", "task", TrialSet.EVIDENCE, Arm.CANDIDATE, 0, Snapshot("c", "t"),
                   Outcome(Result.PASSED, 1.0, ""), "", "fake", "none")]  # fmt: skip
    assert progress_of(plain, RULES) == []
