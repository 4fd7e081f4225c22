"""Runs on a snapshot with files of the kernel's beside it, or with some of its resources left out.

By such runs a suite brings its own tools and agents to a candidate, without a commit that anybody could read. They
leave nothing behind and bother nobody: models, tools and memories answer them; people, other agents and
the outside do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from agentos.daemon.job.bundle import Bundle
from agentos.daemon.job.selection import Finder
from agentos.daemon.requests.run_requests import Answerers, RequestHandler
from agentos.daemon.run.execution import BoxExecutor, RunServices
from agentos.domain import Json, Kind, ResourceId, SearchHit, Snapshot, digest
from agentos.evolver.safety_probes import ExecutorWith
from agentos.messages import ToolCard
from agentos.ports import Blobs, Executor, Places, Snapshots
from agentos.resources import resource_of, resources_of
from agentos.sandboxes.choice import Choice

_ANSWERED = frozenset({"model", "tool", "recall", "skills"})


class OverlayRegistry(Snapshots, Protocol):
    """What an executor reads; see ``agentos/daemon/job/bundle.py``."""

    def digests(self, snapshot: Snapshot) -> Mapping[ResourceId, str]:
        """Every resource with the digest of its files."""
        ...

    def find_tool(self, snapshot: Snapshot, reference: str) -> str:
        """The registry path of the tool's file; raises UserError."""
        ...

    def wheels_of(self, files: Mapping[str, bytes]) -> Mapping[str, Mapping[str, bytes]]:
        """kind/name -> the modules that the locks among these files stand for; raises Unavailable."""
        ...


@dataclass(frozen=True, slots=True)
class Overlay:
    """``registry`` with ``files`` beside it and without the resources in ``without``."""

    registry: OverlayRegistry
    files_beside: Mapping[str, bytes] = field(default_factory=dict)
    without: frozenset[ResourceId] = frozenset()

    def stable(self) -> Snapshot:
        """The registry's own."""
        return self.registry.stable()

    def files(self, snapshot: Snapshot, prefix: str) -> Mapping[str, bytes]:
        """See ports.Snapshots."""
        own = self.registry.files(snapshot, prefix)
        kept = {path: content for path, content in own.items() if not self._left_out(path)}
        below = prefix.rstrip("/")
        beside = {
            path: content
            for path, content in self.files_beside.items()
            if not below or path == below or path.startswith(f"{below}/")
        }
        return {**kept, **beside}

    def names(self, snapshot: Snapshot) -> Sequence[ResourceId]:
        """See ports.Snapshots."""
        beside = resources_of(self.files_beside)
        return sorted(({*self.registry.names(snapshot)} - self.without) | beside)

    def digests(self, snapshot: Snapshot) -> Mapping[ResourceId, str]:
        """As the registry; of a resource of the files beside, of all that it is now."""
        own = {
            item: known for item, known in self.registry.digests(snapshot).items() if item not in self.without
        }
        for item in resources_of(self.files_beside):
            files = self.files(snapshot, str(item))
            own[item] = digest({path: digest(content) for path, content in files.items()})
        return own

    def find_tool(self, snapshot: Snapshot, reference: str) -> str:
        """As the registry; a tool of the files beside goes first."""
        path = f"tool/{reference.replace('_', '-')}/tool.py"
        return path if path in self.files_beside else self.registry.find_tool(snapshot, reference)

    def wheels_of(self, files: Mapping[str, bytes]) -> Mapping[str, Mapping[str, bytes]]:
        """The registry's own."""
        return self.registry.wheels_of(files)

    def _left_out(self, path: str) -> bool:
        return bool(self.without) and path.count("/") > 1 and resource_of(path) in self.without


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
