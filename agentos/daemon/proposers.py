"""Which proposers work on which layer: those that search, and, where a model is set up, those that ask it."""

from __future__ import annotations

from collections.abc import Mapping

from agentos.domain import Layer
from agentos.evolver.proposers.harness_repair import HarnessBenches, HarnessRepairProposer
from agentos.evolver.proposers.lesson import LessonProposer
from agentos.evolver.proposers.repair import RepairProposer
from agentos.evolver.proposers.skill import SkillProposer
from agentos.ports import Benches, Proposer


def proposers_of(
    benches: Benches,
    runs: HarnessBenches,
    parallel: int,
    writer: Proposer | None,
    learning: tuple[LessonProposer, SkillProposer],
) -> Mapping[Layer, tuple[Proposer, ...]]:
    """By layer, in the order in which they are asked. ``writer`` is None where no model is set up."""
    repair = RepairProposer(benches, parallel)
    lesson, skill = learning
    asked = (writer,) if writer else ()
    return {
        Layer.MEMORY: (lesson, *asked),
        Layer.PROMPT: asked,
        Layer.SKILL: (repair, skill, *asked),
        Layer.TOOL: (repair, *asked),
        Layer.HARNESS: (HarnessRepairProposer(runs, parallel), *asked),
    }
