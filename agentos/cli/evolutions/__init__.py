"""What the program changed in itself; and the state of an evolution, as it is coloured everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentos.domain import Evolution, EvolutionState

if TYPE_CHECKING:
    from rich.text import Text

STATE_STYLE = {
    EvolutionState.PROMOTED: "bold green",
    EvolutionState.PROBATION: "bold green",
    EvolutionState.AWAITING_CONSENT: "bold yellow",
    EvolutionState.HELD: "yellow",
    EvolutionState.ROLLED_BACK: "bold magenta",
    EvolutionState.REJECTED: "red",
    EvolutionState.CANNOT_FIX: "red",
    EvolutionState.CIRCUIT_BROKEN: "red",
}


def state_text(evolution: Evolution) -> Text:
    """The state in its colour."""
    from rich.text import Text

    return Text(evolution.state.value, style=STATE_STYLE.get(evolution.state, "cyan"))
