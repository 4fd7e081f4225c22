"""Runs on a snapshot with files of the kernel's beside it, or with some of its resources left out.

By such runs a suite brings its own tools and agents to a candidate, without a commit that anybody could read. They
leave nothing behind and bother nobody: models, tools and memories answer them; people, other agents and
the outside do not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentos.daemon.job.bundle import Bundle, Tools
from agentos.daemon.job.selection import Finder
from agentos.daemon.requests.run_requests import Answerers, RequestHandler, RunContext
from agentos.daemon.run.execution import BoxExecutor, RunServices
from agentos.domain import Json, Kind, ResourceId, SearchHit, Snapshot, digest
from agentos.evolver.safety_probes import ExecutorWith
from agentos.messages import ToolCard
from agentos.ports import Blobs, Executor, Places
from agentos.resources import resource_of, resources_of
from agentos.sandboxes.choice import Choice

_ANSWERED = frozenset({"model", "tool", "recall", "skills"})


@dataclass(frozen=True, slots=True)
class Overlay:
    """``registry`` with ``files`` beside it and without the resources in ``without``."""

    registry: Tools
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
    registry: Tools, blobs: Blobs, sandbox: Choice, serving: RunServices, places: Places
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
    return kept | {what: _finding(kept[what], what, without) for what in ("recall", "skills") if what in kept}


def _finding(
    search: Callable[[RunContext], RequestHandler], what: str, without: frozenset[ResourceId]
) -> Callable[[RunContext], RequestHandler]:
    return lambda asking: _FindsWithout(search(asking), what, {str(resource) for resource in without})


@dataclass(frozen=True, slots=True)
class _FindsWithout(RequestHandler):
    """One run's searches, without what is left out. What stands beside the snapshot it was given."""

    search: RequestHandler
    what: str
    without: Collection[str]

    def answer(self, body: Mapping[str, Any]) -> Mapping[str, Json]:
        """As ``messages.Ask`` says."""
        return {
            key: [one for one in found if self._name(one) not in self.without]
            for key, found in self.search.answer(body).items()
        }

    def _name(self, one: Mapping[str, Json]) -> str:
        return f"skill/{one['name']}" if self.what == "skills" else str(one["id"]).partition("#")[0]
