"""What is taken for the answer to a question with choices."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agentos.daemon.people.answers import chosen
from agentos.domain import Question
from agentos.errors import UserError


def question(*choices: str) -> Question:
    return Question("question-1", "task-1", "task-1", "run-1", "How many?", choices, datetime.now(UTC))


@pytest.mark.parametrize(
    ("text", "number", "given"),
    [("3", 3, "3"), ("10", 10, "10"), ("1", 1, "3"), ("", 2, "5"), ("5", 0, "5")],
)
def test_a_choice_that_is_a_number_is_meant_by_itself(text: str, number: int, given: str) -> None:
    assert chosen(question("3", "5", "10"), text, number) == given


@pytest.mark.parametrize(("text", "number"), [("4", 4), ("", 0), ("six", 0)])
def test_what_is_no_choice_is_refused(text: str, number: int) -> None:
    with pytest.raises(UserError):
        chosen(question("3", "5", "10"), text, number)
