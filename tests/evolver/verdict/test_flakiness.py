"""Flaky tasks are measured before they serve."""

import pytest

from agentos.domain import TrialSet
from agentos.evolver.policy import Judge
from agentos.evolver.verdict.pairing import fitness


@pytest.mark.parametrize(
    ("passed", "evidence", "guard"),
    [
        ("ffff", True, False),
        ("pfff", True, False),
        ("pfpf", True, False),
        ("pppf", False, True),
        ("pppp", False, True),
    ],
)
def test_evidence_has_something_to_gain_and_guards_stand(passed: str, *, evidence: bool, guard: bool) -> None:
    trials = [letter == "p" for letter in passed]
    assert fitness(trials, TrialSet.EVIDENCE, Judge()).serves is evidence
    assert fitness(trials, TrialSet.GUARD, Judge()).serves is guard
    assert fitness(trials, TrialSet.HOLD_OUT, Judge()).serves is guard


def test_too_few_trials_say_how_many_are_missing() -> None:
    found = fitness([True], TrialSet.GUARD, Judge())
    assert (found.serves, found.further) == (None, 3)
    assert found.says == "3 more fresh trials on the base are needed"


def test_why_a_task_does_not_serve_is_said() -> None:
    found = fitness([True, False, False, True], TrialSet.GUARD, Judge())
    assert found.says == "it passed 2 of 4 trials on the base, at least 75% are needed for guard"
