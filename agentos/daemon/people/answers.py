"""A person's answer to the question of a run: what may be answered, and where it is kept."""

from __future__ import annotations

from contextlib import closing

from agentos.domain import Question
from agentos.errors import UserError
from agentos.home import Home

ANSWER_MAX = 20_000  # characters


def chosen(question: Question, text: str, choice: int) -> str:
    """The answer that was typed, held against what may be answered. Raises UserError.

    ``choice`` is a number from 1, 0 for none. A text that is a choice is that one, also where it is a number.
    """
    if choice and text not in question.choices:
        if choice > len(question.choices):
            raise UserError(
                f"There is no choice {choice}; the question has {len(question.choices) or 'none'}."
            )
        return question.choices[choice - 1]
    if question.choices and text not in question.choices:
        raise UserError(f"Expected one of: {', '.join(question.choices)}; found '{text}'.")
    if not text.strip() or len(text) > ANSWER_MAX:
        raise UserError(f"An answer is a text of 1 to {ANSWER_MAX:,} characters.")
    return text


def give(home: Home, question: Question, answer: str) -> None:
    """Store the answer; the daemon goes on with the task. Raises Conflict when it was answered already."""
    from agentos.ledger.store import Ledger

    with closing(Ledger(home.ledger)) as ledger:
        ledger.answer(question.id, answer)
