"""The state of an evolution as it is coloured everywhere; apart from the screen, whose imports a list need not pay."""

from __future__ import annotations

from rich.text import Text

from agentos.domain import Evolution, EvolutionState

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
    return Text(evolution.state.value, style=STATE_STYLE.get(evolution.state, "cyan"))
