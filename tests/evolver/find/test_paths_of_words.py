"""Where the path of what a person expects leads in an answer: as a check follows it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agentos.domain import Feedback, Json, Rating
from agentos.evolver.find.feedback import expectation, leads_nowhere, of_correction, taken_back, with_values
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


@pytest.mark.parametrize(
    ("first", "second", "opposed"),
    [
        ("total=9", "total=10", True),
        ("total=9", "total=9.0", False),  # said twice
        ("total=9", "items=3", False),  # one more thing that is wrong
        ('={"total": 9, "items": 2}', "total=10", True),
        ("total=10", '={"total": 9, "items": 2}', True),
        ("total=9", '={"total": 9, "items": 2}', False),
    ],
)
def test_of_two_bad_words_that_expect_different_values_the_newer_stands(
    first: str, second: str, opposed: bool
) -> None:
    said = [
        Feedback(
            f"feedback-{at}",
            "run-1",
            "key",
            Rating.BAD,
            "",
            (expectation(text),),
            "ada",
            datetime(2026, 11, 1 + at, tzinfo=UTC),
        )
        for at, text in enumerate((first, second))
    ]
    assert [*taken_back(said)] == ["feedback-0"] * opposed


def test_a_line_that_a_correction_repeats_is_expected_once() -> None:
    """Otherwise rules between paragraphs leave no room among the checks for what they divide."""
    corrected = "\n".join(f"---\nparagraph {number}" for number in range(6))
    wanted = [check.spec["value"] for check in of_correction("---\nold\n" * 9, corrected)[:-1]]
    assert wanted == [f"paragraph {number}" for number in range(6)]
    assert [check.spec["value"] for check in of_correction("a\nb", corrected)[:2]] == ["---", "paragraph 0"]
    assert len(of_correction("a\nb", corrected)) == 9
