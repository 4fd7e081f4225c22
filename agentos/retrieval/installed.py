"""Ranking by a plug-in: it scores texts beside a query, and never learns which resources these are of."""

from __future__ import annotations

import math
from collections.abc import Sequence

from agentos.domain import Kind, ResourceId, Snapshot
from agentos.errors import Unavailable, UserError
from agentos.plugins import registry
from agentos.retrieval.embedding import WordLlama
from agentos.retrieval.index import Digests, Index
from agentos.retrieval.storage import Storage
from agentos.retrieval.texts import entries

_KEPT = 50_000  # texts of versions that are kept in memory
_PATIENCE_S = 60.0  # for one search: a run waits for it
_BODY = 2_000  # characters of a body that a plug-in is given


def index_of(name: str, storage: Storage, snapshots: Digests) -> Index:
    """What the setting ``retrieval`` names. Raises UserError where it is not installed."""
    if name in registry.KINDS["retrievers"].built_ins():
        return Index(storage, snapshots, WordLlama() if name == "hybrid" else None)
    return InstalledIndex(registry.named("retrievers", name), storage, snapshots)


class InstalledIndex(Index):
    """An index whose scores are a plug-in's: ``scores(query, texts)``, one number for each text, 0 for no match."""

    def __init__(self, plugin: registry.Plugin, storage: Storage, snapshots: Digests) -> None:
        super().__init__(storage, snapshots)
        self._plugin = plugin
        self.plugin = plugin.label
        self._texts: dict[tuple[str, str], Sequence[str]] = {}

    def _scores(
        self, snapshot: Snapshot, query: str, kinds: tuple[Kind, ...], limit: int
    ) -> dict[tuple[str, int], float]:
        places: list[tuple[str, int]] = []
        texts: list[str] = []
        for resource, digest in sorted(self._registry.digests(snapshot).items()):
            if resource.kind in kinds:
                found = self._of(snapshot, resource, digest)
                places += [(str(resource), part) for part in range(len(found))]
                texts += found
        if not texts or not query.strip():
            return {}
        scores = self._asked(query, texts)
        return {place: score for place, score in zip(places, scores, strict=True) if score > 0}

    def _of(self, snapshot: Snapshot, resource: ResourceId, digest: str) -> Sequence[str]:
        key = (str(resource), digest)
        if key not in self._texts:
            if len(self._texts) >= _KEPT:
                self._texts.clear()
            read = entries(resource, self._registry.files(snapshot, str(resource)))
            self._texts[key] = [f"{entry.whole} {entry.body[:_BODY]}".strip() for entry in read]
        return self._texts[key]

    def _asked(self, query: str, texts: list[str]) -> list[float]:
        try:
            score = registry.load(self._plugin)
        except UserError as error:
            raise Unavailable(str(error)) from None

        def scores() -> list[float]:
            scored = [float(one) for one in score(query, texts)]
            if len(scored) != len(texts) or not all(map(math.isfinite, scored)):
                raise ValueError(f"{len(scored)} scores for {len(texts)} texts, or one that is no number")
            return scored

        scored, why = registry.within(_PATIENCE_S, scores)
        if why:
            raise Unavailable(str(self._plugin.failed(why)))
        return list(scored)
