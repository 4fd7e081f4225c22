"""Runs on a snapshot with files of the kernel's beside it, or with some of its resources left out.

By such runs a suite tries a candidate with tools that are in no registry (``evolver/guards/assurance/overlay.py``). They
leave nothing behind and bother nobody: models, tools and memories answer them; people, other agents and
the outside do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentos.daemon.job.bundle import Bundle
from agentos.daemon.job.selection import Finder
from agentos.daemon.requests.run_requests import Answerers, RequestHandler
from agentos.daemon.run.execution import BoxExecutor, RunServices
from agentos.domain import Json, Kind, ResourceId, Snapshot
from agentos.evolver.guards.assurance.overlay import Overlay, OverlayRegistry
from agentos.evolver.safety_probes import ExecutorWith
from agentos.messages import ToolCard
from agentos.ports import Blobs, Executor, Places
from agentos.resources import resources_of
from agentos.retrieval.index import SearchHit
from agentos.sandboxes.choice import Choice

_ANSWERED = frozenset({"model", "tool", "recall", "skills"})


def executors_beside(
    registry: OverlayRegistry, blobs: Blobs, sandbox: Choice, serving: RunServices, places: Places
) -> ExecutorWith:
    """Makes executors that read these files beside a snapshot's, and not these resources."""

    def made(files: Mapping[str, bytes], without: frozenset[ResourceId]) -> Executor:
        overlay = Overlay(registry, files, without)
        served = replace(
            serving,
            finder=_FindsBeside(serving.finder, overlay) if serving.finder else None,
            cards=_without_beside(serving.cards, overlay),
            answerers=_answering(serving.answerers, without),
        )
        return BoxExecutor(overlay, blobs, sandbox, places, served)

    return made


@dataclass(frozen=True, slots=True)
class _FindsBeside:
    """Implements ``selection.Finder``: what stands beside fits first, what is left out not at all."""

    finder: Finder
    overlay: Overlay

    @property
    def plugin(self) -> str:
        """See ``selection.Finder``."""
        return self.finder.plugin

    def find(self, snapshot: Snapshot, query: str, kinds: Sequence[Kind], limit: int) -> Sequence[SearchHit]:
        """See ``selection.Finder``."""
        beside = sorted({found for found in resources_of(self.overlay.files_beside) if found.kind in kinds})
        without = self.overlay.without
        own = self.finder.find(snapshot, query, kinds, limit + len(without))
        kept = [found for found in own if found.resource not in {*without, *beside}]
        return [*(SearchHit(found, float("inf")) for found in beside), *kept][:limit]


def _without_beside(
    cards: Callable[[Bundle], tuple[ToolCard, ...]], overlay: Overlay
) -> Callable[[Bundle], tuple[ToolCard, ...]]:
    """Of the snapshot's own tools: what stands beside it is read in the box, and remembered nowhere."""

    def known(bundle: Bundle) -> tuple[ToolCard, ...]:
        files = {path: data for path, data in bundle.files.items() if path not in overlay.files_beside}
        return cards(replace(bundle, files=files))

    return known


def _answering(answerers: Answerers, without: frozenset[ResourceId]) -> Answerers:
    kept = {what: make for what, make in answerers.items() if what in _ANSWERED}
    if "recall" in kept:
        recall = kept["recall"]
        kept["recall"] = lambda asking: _RecallsWithout(recall(asking), without)
    if "skills" in kept:
        skills = kept["skills"]
        kept["skills"] = lambda asking: _SkillsWithout(skills(asking), without)
    return kept


class _RecallsWithout(RequestHandler):
    """One run's searches, without the memories that are left out."""

    def __init__(self, recalling: RequestHandler, without: frozenset[ResourceId]) -> None:
        self._recalling = recalling
        self._without = {str(resource) for resource in without}

    def answer(self, body: Mapping[str, Any]) -> Mapping[str, Json]:
        """As ``messages.Ask`` says."""
        found = self._recalling.answer(body)["memories"]
        kept = [one for one in found if str(one["id"]).partition("#")[0] not in self._without]
        return {"memories": kept}


class _SkillsWithout(RequestHandler):
    """One run's searches, without the skills that are left out. What stands beside the snapshot it was given."""

    def __init__(self, searching: RequestHandler, without: frozenset[ResourceId]) -> None:
        self._searching = searching
        self._without = {resource.name for resource in without if resource.kind is Kind.SKILL}

    def answer(self, body: Mapping[str, Any]) -> Mapping[str, Json]:
        """As ``messages.Ask`` says."""
        found = self._searching.answer(body)["skills"]
        return {"skills": [one for one in found if one["name"] not in self._without]}
