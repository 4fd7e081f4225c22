"""Where the path of what a person expects leads in an answer: as a check follows it."""

from __future__ import annotations

import pytest

from agentos.domain import Json
from agentos.evolver.find.feedback import expectation, leads_nowhere, with_values
from agentos.proposers.repair.reading.failures import answer_at


@pytest.mark.parametrize(
    ("answer", "path"), [([1, 2], "-1"), ({"a": [None]}, "a.0"), ({"²": 1}, "²"), ([[1]], "0.0")]
)
def test_it_leads_to_what_is_there(answer: Json, path: str) -> None:
    said = [expectation(f"{path}=7")]
    assert leads_nowhere(answer, said) == ""
    assert answer_at(with_values(answer, said), path) == 7


@pytest.mark.parametrize("path", ["²", "2", "-3", "9" * 5_000, "a", "0.1"])
def test_or_nowhere_and_changes_nothing(path: str) -> None:
    said = [expectation(f"{path}=7")]
    assert leads_nowhere([1, 2], said)
    assert with_values([1, 2], said) == [1, 2]
