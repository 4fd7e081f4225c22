"""What happens around a call, in order. Add a function, then name it in a list below.

A hook takes the ``Turn`` and changes it, or leaves it; the next hook sees what the one before left.
"""

from __future__ import annotations

from collections.abc import Callable

from turn_state import Turn

Hook = Callable[[Turn], None]


def say_what_to_do(turn: Turn) -> None:
    """A failed call's message says which tool it was, so that it can be read on its own."""
    if turn.fault is not None and turn.tool not in turn.fault.message:
        turn.fault = turn.fault.model_copy(update={"message": f"{turn.tool}: {turn.fault.message}"})


def tidy(turn: Turn) -> None:
    """Texts are told without the blanks around them."""
    if isinstance(turn.answer, dict):
        turn.answer = {name: tidied(value) for name, value in turn.answer.items()}


def tidied(value: object) -> object:
    """The value; a text without the blanks around it."""
    return value.strip() if isinstance(value, str) else value


before_act: list[Hook] = []
after_observe: list[Hook] = [say_what_to_do, tidy]
on_finish: list[Hook] = []
