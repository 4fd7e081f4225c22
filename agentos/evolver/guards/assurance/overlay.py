"""A registry with files of the kernel's beside those of a snapshot, or with some of a snapshot's left out.

So a suite brings its own tools and agents to a candidate without a commit that anybody could read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agentos.domain import ResourceId, Snapshot, digest
from agentos.ports import Snapshots
from agentos.resources import resource_of, resources_of


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
