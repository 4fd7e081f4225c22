"""Which proposers work on which layer: those that search, and, where a model is set up, those that ask it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from agentos.domain import Layer
from agentos.ports import Adviser, Proposer
from agentos.proposers.lesson import LessonProposer
from agentos.proposers.pin import PinProposer
from agentos.proposers.rule import RuleProposer
from agentos.proposers.search_process import SearchProcess
from agentos.proposers.skill import SkillProposer


class ConfiguredProposers(Mapping[Layer, tuple[Proposer, ...]]):
    """Those that search, and those that ask a model from when one is set up, for as long as it is.

    ``made`` makes them, for the evolver's model or without any; ``adviser`` finds it.
    """

    def __init__(
        self,
        made: Callable[[Adviser | None], Mapping[Layer, tuple[Proposer, ...]]],
        adviser: Callable[[], Adviser | None],
    ) -> None:
        """Raises what ``made`` raises."""
        self._make = made
        self._adviser = adviser
        self._made: dict[str, Mapping[Layer, tuple[Proposer, ...]]] = {}
        self._now()

    def __getitem__(self, layer: Layer) -> tuple[Proposer, ...]:
        return self._now()[layer]

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())

    def _now(self) -> Mapping[Layer, tuple[Proposer, ...]]:
        adviser = self._adviser()
        name = adviser.name if adviser else ""
        if name not in self._made:
            self._made[name] = self._make(adviser)
        return self._made[name]


def proposers_of(
    repair: SearchProcess,
    harness: SearchProcess,
    writer: Proposer | None,
    own: tuple[LessonProposer, SkillProposer, RuleProposer, PinProposer],
) -> Mapping[Layer, tuple[Proposer, ...]]:
    """By layer, in the order in which they are asked. ``writer`` is None where no model is set up."""
    lesson, skill, rule, pin = own
    asked = (writer,) if writer else ()
    return {
        Layer.MEMORY: (lesson, *asked),
        Layer.PROMPT: asked,
        Layer.SKILL: (pin, repair, skill, *asked),
        Layer.TOOL: (pin, repair, *asked),
        Layer.AGENT: asked,
        Layer.ENVIRONMENT: asked,
        Layer.RULE: (rule,),
        Layer.HARNESS: (harness, *asked),
    }
