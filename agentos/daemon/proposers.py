"""Which proposers work on which layer: those that search, and, where a model is set up, those that ask it."""

from __future__ import annotations

from collections.abc import Mapping

from agentos.domain import Layer
from agentos.evolver.proposers.repair import RepairProposer
from agentos.ports import Benches, Proposer


def proposers_of(
    benches: Benches, parallel: int, writer: Proposer | None
) -> Mapping[Layer, tuple[Proposer, ...]]:
    """By layer, in the order in which they are asked. ``writer`` is None where no model is set up."""
    repair = RepairProposer(benches, parallel)
    asked = (writer,) if writer else ()
    return {
        Layer.MEMORY: asked,
        Layer.PROMPT: asked,
        Layer.SKILL: (repair, *asked),
        Layer.TOOL: (repair, *asked),
        Layer.HARNESS: asked,
    }
