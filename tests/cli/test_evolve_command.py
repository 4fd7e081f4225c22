"""What `agentos evolve` says of evolutions that it did not open."""

from __future__ import annotations

from agentos.cli.evolutions.evolve import _under_way, trials_of
from agentos.domain import Evolution, EvolutionState, Snapshot
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger


def test_what_is_under_way_is_told(home: Home) -> None:
    ledger = Ledger(home.ledger)
    base = Snapshot("c" * 40, "d" * 40)
    for name, state in (("evo-1", EvolutionState.REPLAYING), ("evo-2", EvolutionState.REJECTED)):
        ledger.put(Evolution(name, "evd-1", "f", state, base))
    ledger.close()
    assert [item.id for item in _under_way(home)] == ["evo-1"]
    assert trials_of(Reader(home.ledger), "evo-1") == 0
