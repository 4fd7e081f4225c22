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


before_act: list[Hook] = []
after_observe: list[Hook] = [say_what_to_do]
on_finish: list[Hook] = []
