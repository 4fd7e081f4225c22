"""The rules that ship: their own examples, and what is promised of them on the set that was not looked at."""

from __future__ import annotations

import pytest

from agentos.rules.document import RunRule
from agentos.rules.trying import faults_of
from benchmarks.bench_rules import shipped, worth

RULES = shipped()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_has_examples_of_both_kinds_and_all_hold(rule: RunRule) -> None:
    assert len(rule.stops) >= 4
    assert len(rule.passes) >= 4
    assert faults_of(rule) == []


def test_the_figures_of_the_page_are_no_better_than_the_rules() -> None:
    found = worth(RULES, show=False)["test"]
    assert found["stopped"] >= 30
    assert found["false_alarms"] <= 3
