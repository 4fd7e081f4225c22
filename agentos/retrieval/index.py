"""The index: entries of every version that was asked about, searched within one snapshot.

A version is read once, by its digest, however many snapshots hold it. What a snapshot holds is kept
in memory for the snapshots used last.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from agentos.domain import Json, Kind, ResourceId, SearchHit, Snapshot
from agentos.ports import Snapshots
from agentos.retrieval.embedding import Embedder
from agentos.retrieval.ranking import (
    COLUMNS,
    HEAD,
    Occurrences,
    SearchScope,
    TermScores,
    Weights,
    best_first,
    blended,
    bm25,
    coverage,
    leading,
    mentions,
    nearest_together,
    rarity,
    total,
)
from agentos.retrieval.storage import Storage, one_state, passages, passages_of, stems, transaction
from agentos.retrieval.texts import SEARCHED, IndexedText, entries, lessons, telling_words, words

_VIEWS = 4  # snapshots that are held in memory
_QUERY_CHARACTERS = 4_000
_QUERY_WORDS = 48  # each costs about a millisecond at 10,000 resources
_BATCH = 500  # resources in one transaction: others may write between
_SPARE = 2_000  # entries of versions of the past that are kept before they are cleared away
_FEW = 200  # entries of which all words are looked at; a word in the bodies of more brings none by itself
_TELLING = 3  # words that are enough to leave out those that stand everywhere
_DEPTH = 100  # places of each ranking, at least, that are looked at when they become one


class Digests(Snapshots, Protocol):
    """Snapshots that also tell at once what all resources are (the registry)."""

    def digests(self, snapshot: Snapshot) -> Mapping[ResourceId, str]:
        """Every resource's digest: equal exactly where the content is."""
        ...


@dataclass(frozen=True, slots=True)
class _Place:
    """Which resource, and which part of it, an entry of the index stands for."""

    resource: str
    part: int
    lengths: tuple[int, int, int]

    def key(self, entry: int) -> str:
        """Sorts by resource and part, and ends with the entry's number."""
        return f"{self.resource}#{self.part:06}#{entry}"


@dataclass(frozen=True, slots=True)
class _View:
    """What one snapshot holds of the index, as of one opening and one clearing of the file."""

    state: tuple[int, int]
    places: Mapping[int, _Place]
    scopes: dict[tuple[Kind, ...], SearchScope] = field(default_factory=dict)
    vectors: dict[tuple[Kind, ...], Any] = field(default_factory=dict)
    # stems that stand almost everywhere; and in how many entries those stand that many bodies hold
    common: set[tuple[tuple[Kind, ...], str]] = field(default_factory=set)
    often: dict[tuple[tuple[Kind, ...], str], int] = field(default_factory=dict)

    def scope(self, kinds: tuple[Kind, ...], weights: Weights) -> SearchScope:
        if kinds not in self.scopes:
            lengths = {
                entry: place.lengths
                for entry, place in self.places.items()
                if place.resource.partition("/")[0] in kinds
            }
            self.scopes[kinds] = SearchScope.of(lengths, weights)
        return self.scopes[kinds]


@dataclass(frozen=True, slots=True)
class _BodyTerm:
    """One term of the query in all of the text: what it is worth, and whose bodies hold it where these are few."""

    rarity: float
    few: Sequence[int] | None


class Index:
    """Finds resources by text. Safe from any thread; several processes may share the file.

    The file can be deleted at any time, and is made anew when it is damaged. With an ``embedder``
    the ranking by words is fused with one by meaning.
    """

    plugin = ""  # the label of what ranks in its place

    def __init__(
        self,
        storage: Storage | Path,
        registry: Digests,
        embedder: Embedder | None = None,
        weights: Weights | None = None,
    ) -> None:
        self._storage = storage if isinstance(storage, Storage) else Storage(storage)
        self._registry = registry
        self._embedder = embedder
        self._weights = weights or Weights()
        self._views: OrderedDict[str, _View] = OrderedDict()

    def find(
        self, snapshot: Snapshot, query: str, kinds: Sequence[Kind] = SEARCHED, limit: int = 10
    ) -> Sequence[SearchHit]:
        """The resources of the snapshot that fit the text, best first; equal ones by name.

        Fewer than ``limit`` when no more have anything in common with it. The same snapshot,
        text and limit give the same answer always. Raises Unavailable.
        """
        scores = self._scores(snapshot, query, tuple(sorted(kinds)), limit)
        best: dict[str, float] = {}
        for (resource, _), score in scores.items():
            best[resource] = max(score, best.get(resource, 0.0))
        return [SearchHit(_resource(name), round(best[name], 9)) for name in best_first(best)[:limit]]

    def recall(self, snapshot: Snapshot, query: str, limit: int = 5) -> list[dict[str, Json]]:
        """The lessons of the snapshot's memories that fit, best first: {"id", "text", "score"}.

        ``id`` is ``memory/<name>#<number>``, the number being the lesson's place from 1.
        """
        scores = self._scores(snapshot, query, (Kind.MEMORY,), limit)
        by_id = {f"{resource}#{part:06}": score for (resource, part), score in scores.items()}
        found: list[dict[str, Json]] = []
        texts: dict[str, list[str]] = {}
        for key in best_first(by_id)[:limit]:
            name, _, part = key.partition("#")
            if name not in texts:
                texts[name] = lessons(self._registry.files(snapshot, name), _resource(name))
            if int(part) < len(texts[name]):  # a memory without a lesson is found by its name
                text = texts[name][int(part)]
                found.append({"id": f"{name}#{int(part) + 1}", "text": text, "score": round(by_id[key], 9)})
        return found

    def refresh(self, snapshot: Snapshot) -> None:
        """Read what is new in the snapshot, so that the first search need not. Raises Unavailable."""
        self._storage.use(lambda connection: self._view(connection, snapshot))

    def close(self) -> None:
        """Let go of the file."""
        self._storage.close()

    # --- searching ------------------------------------------------------------------------

    def _scores(
        self, snapshot: Snapshot, query: str, kinds: tuple[Kind, ...], limit: int
    ) -> dict[tuple[str, int], float]:
        query = query[:_QUERY_CHARACTERS]
        if not words(query):
            return {}

        def search(connection: sqlite3.Connection) -> dict[tuple[str, int], float]:
            while True:  # until no other process clears the index between the two
                view = self._view(connection, snapshot)
                with one_state(connection):
                    if self._state(connection) == view.state:
                        scores = self._search(connection, view, kinds, query, max(limit, _DEPTH))
                        places = {view.places[entry]: score for entry, score in scores.items()}
                        return {(place.resource, place.part): score for place, score in places.items()}

        return self._storage.use(search)

    def _search(
        self, connection: sqlite3.Connection, view: _View, kinds: tuple[Kind, ...], query: str, depth: int
    ) -> dict[int, float]:
        """Entry -> score: shares of the best by words, coverage and meaning, of the ``depth`` that lead by one of them."""
        scope = view.scope(kinds, self._weights)
        asked = telling_words(query)[:_QUERY_WORDS]
        terms = self._terms(connection, view, kinds, asked)
        in_words = total((terms[stem] for stem in sorted(terms)), self._weights.k1)
        bodies = self._bodies(connection, view, kinds, terms)
        looked = dict.fromkeys(leading(in_words, depth, lambda entry: view.places[entry].key(entry)))
        looked |= dict.fromkeys(self._told_of(view, bodies, in_words, depth))
        if len(looked) < depth and any(body.few is None for body in bodies.values()):
            looked |= dict.fromkeys(scope.entries)  # only bodies tell of it, and many do
        near: dict[int, float] = {}
        if self._embedder is not None and scope.entries:
            rows, matrix = self._matrix(connection, view, kinds, self._embedder.name)
            nearness = _nearness(matrix, self._embedder.encode([query])[0])
            looked |= dict.fromkeys(_nearest([*rows], nearness, depth))
            near = {entry: float(nearness[rows[entry]]) for entry in looked if entry in rows}
        rarities = {stem: bodies[stem].rarity for stem in sorted(bodies)}
        places = _places(connection, [*looked], terms)
        return blended(
            [
                (1.0, {entry: in_words[entry] for entry in looked if entry in in_words}),
                (self._weights.coverage, coverage(rarities, places)),
                (self._weights.together, nearest_together(rarities, places)),
                (self._weights.mentions, mentions(rarities, places)),
                (self._weights.meaning, near),
            ]
        )

    def _terms(
        self, connection: sqlite3.Connection, view: _View, kinds: tuple[Kind, ...], asked: Sequence[str]
    ) -> dict[str, TermScores]:
        """By stem. What stands in a third of many entries tells little and costs most: it is left out where enough
        other words are there, and in a snapshot it is looked up for that only once."""
        scope = view.scope(kinds, self._weights)
        third = max(_FEW, len(scope.entries) // 3)
        found: dict[str, TermScores] = {}
        common: list[str] = []
        for stem in stems(asked):
            if (kinds, stem) not in view.common:
                (found[stem],) = bm25(scope, _occurrences(connection, [stem]))
                if len(found[stem].often) > third:
                    del found[stem]
                    view.common.add((kinds, stem))
            if stem not in found:
                common.append(stem)
        if sum(bool(term.often) for term in found.values()) < _TELLING:
            found |= dict(zip(common, bm25(scope, _occurrences(connection, common)), strict=True))
        return found

    def _bodies(
        self,
        connection: sqlite3.Connection,
        view: _View,
        kinds: tuple[Kind, ...],
        terms: Mapping[str, TermScores],
    ) -> dict[str, _BodyTerm]:
        """By stem. Those that stand in many bodies are counted once in a snapshot."""
        entries = view.scope(kinds, self._weights).worth[COLUMNS[0]]
        found: dict[str, _BodyTerm] = {}
        for stem, term in terms.items():
            count, few = view.often.get((kinds, stem)), None
            if count is None:
                rows = connection.execute("SELECT doc FROM body_terms WHERE term = ?", (stem,))
                held = [entry for (entry,) in rows if entry in entries]
                count = len({*held, *term.often})
                if len(held) > _FEW:
                    view.often[kinds, stem] = count
                else:
                    few = held
            found[stem] = _BodyTerm(rarity(len(entries), count), few)
        return found

    def _told_of(
        self, view: _View, bodies: Mapping[str, _BodyTerm], in_words: Mapping[int, float], depth: int
    ) -> list[int]:
        """The entries whose bodies hold most of what is rare, with what the rest of them is worth."""
        whole = sum(body.rarity for body in bodies.values()) or 1.0
        best = max(in_words.values(), default=1.0)
        scores: dict[int, float] = {}
        for stem in sorted(bodies):
            share = self._weights.coverage * bodies[stem].rarity / whole
            for entry in bodies[stem].few or ():
                scores[entry] = scores.get(entry, in_words.get(entry, 0.0) / best) + share
        return leading(scores, depth, lambda entry: view.places[entry].key(entry))

    def _matrix(
        self, connection: sqlite3.Connection, view: _View, kinds: tuple[Kind, ...], model: str
    ) -> tuple[Mapping[int, int], Any]:
        """Entry -> its row, and the vectors as rows."""
        import numpy

        if kinds not in view.vectors:
            rows = connection.execute(
                "SELECT entry, vector FROM vectors WHERE model = ? ORDER BY entry", (model,)
            )
            mine = [
                (entry, vector)
                for entry, vector in rows
                if entry in view.scope(kinds, self._weights).worth[COLUMNS[0]]
            ]
            content = numpy.frombuffer(b"".join(vector for _, vector in mine), dtype=numpy.float32)
            rows_of = {entry: row for row, (entry, _) in enumerate(mine)}
            view.vectors[kinds] = (rows_of, content.reshape(len(mine), -1))
        found: tuple[Mapping[int, int], Any] = view.vectors[kinds]
        return found

    # --- what a snapshot holds ------------------------------------------------------------

    def _view(self, connection: sqlite3.Connection, snapshot: Snapshot) -> _View:
        view = self._views.get(snapshot.tree)
        if view is None or view.state != self._state(connection):
            view = self._fresh(connection, snapshot)
            self._clear(connection, view)
            self._views[snapshot.tree] = view
            while len(self._views) > _VIEWS:
                self._views.popitem(last=False)
        self._views.move_to_end(snapshot.tree)
        return view

    def _fresh(self, connection: sqlite3.Connection, snapshot: Snapshot) -> _View:
        found = self._registry.digests(snapshot)
        digests = {str(resource): digest for resource, digest in found.items() if resource.kind in SEARCHED}
        while True:
            self._read_new(connection, snapshot, digests)
            with one_state(connection):
                view = self._load(connection, digests)
            if view is not None:
                return view

    def _state(self, connection: sqlite3.Connection) -> tuple[int, int]:
        return self._storage.opened, connection.execute("SELECT times FROM pruned").fetchone()[0]

    def _load(self, connection: sqlite3.Connection, digests: Mapping[str, str]) -> _View | None:
        """None when another process has just cleared away a part of it."""
        places = {
            entry: _Place(resource, part, (name, description, headings))
            for entry, resource, digest, part, name, description, headings in connection.execute(
                "SELECT id, resource, digest, part, name, description, headings FROM entries ORDER BY id"
            )
            if digests.get(resource) == digest
        }
        if len({place.resource for place in places.values()}) < len(digests):
            return None
        return _View(self._state(connection), places)

    def _read_new(
        self, connection: sqlite3.Connection, snapshot: Snapshot, digests: Mapping[str, str]
    ) -> None:
        """Add the versions that the index lacks: only those are read from the registry."""
        have = set(connection.execute("SELECT DISTINCT resource, digest FROM entries"))
        embedded = self._embedded(connection)
        new = [
            version
            for version in digests.items()
            if version not in have or (embedded is not None and version not in embedded)
        ]
        for start in range(0, len(new), _BATCH):
            read = [
                (name, digest, entries(_resource(name), self._registry.files(snapshot, name)))
                for name, digest in new[start : start + _BATCH]
            ]
            vectors = self._encode([entry for _, _, found in read for entry in found])
            with transaction(connection):
                for name, digest, found in read:
                    for part, entry in enumerate(found):
                        number = _add(connection, name, digest, part, entry)
                        if self._embedder is not None:
                            row = (number, self._embedder.name, next(vectors).tobytes())
                            connection.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", row)

    def _embedded(self, connection: sqlite3.Connection) -> set[tuple[str, str]] | None:
        """The versions that have vectors of the present model; None when none is used."""
        if self._embedder is None:
            return None
        rows = connection.execute(
            "SELECT DISTINCT resource, digest FROM entries JOIN vectors ON entry = id WHERE model = ?",
            (self._embedder.name,),
        )
        return set(rows)

    def _encode(self, found: Sequence[IndexedText]) -> Any:
        if self._embedder is None or not found:
            return iter(())
        return iter(self._embedder.encode([entry.whole for entry in found]))

    def _clear(self, connection: sqlite3.Connection, view: _View) -> None:
        """Drop versions of the past once there are many: they cost time in every search."""
        (count,) = connection.execute("SELECT count(*) FROM entries").fetchone()
        if count <= 2 * len(view.places) + _SPARE:
            return
        keep = set(view.places).union(*(other.places for other in self._views.values()))
        with transaction(connection):
            for (entry,) in connection.execute("SELECT id FROM entries").fetchall():
                if entry not in keep:
                    connection.execute("DELETE FROM texts WHERE rowid = ?", (entry,))
                    connection.execute("DELETE FROM bodies WHERE rowid = ?", (entry,))
                    connection.execute("DELETE FROM entries WHERE id = ?", (entry,))
                    connection.execute("DELETE FROM vectors WHERE entry = ?", (entry,))
            connection.execute("UPDATE pruned SET times = times + 1")


def _resource(name: str) -> ResourceId:
    kind, _, rest = name.partition("/")
    return ResourceId(Kind(kind), rest)


def _add(connection: sqlite3.Connection, resource: str, digest: str, part: int, entry: IndexedText) -> int:
    """The entry's number, new or as another process has given it."""
    key = (resource, digest, part)
    columns = [words(text) for text in (entry.name, entry.description, entry.headings)]
    made = connection.execute(
        "INSERT OR IGNORE INTO entries (resource, digest, part, name, description, headings)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (*key, *map(len, columns)),
    )
    if made.rowcount:
        name, *rest = columns
        if len(name) > 1:  # "wordcount" is to find word-count
            name = [*name, "".join(name)]
        row = (made.lastrowid, *(" ".join(column) for column in (name, *rest)))
        connection.execute("INSERT INTO texts (rowid, name, description, headings) VALUES (?, ?, ?, ?)", row)
        if entry.body:
            row = (made.lastrowid, passages(entry.body))
            connection.execute("INSERT INTO bodies (rowid, stems) VALUES (?, ?)", row)
        return int(made.lastrowid or 0)
    row = connection.execute(
        "SELECT id FROM entries WHERE resource = ? AND digest = ? AND part = ?", key
    ).fetchone()
    return int(row[0])


def _places(
    connection: sqlite3.Connection, looked: Sequence[int], terms: Mapping[str, TermScores]
) -> dict[int, dict[str, str]]:
    """Entry -> stem -> the passages that hold it, a character each: the columns are one, those of its body the others."""
    found = {entry: {stem: HEAD for stem, term in terms.items() if entry in term.often} for entry in looked}
    for start in range(0, len(looked), _BATCH):
        some = looked[start : start + _BATCH]
        wanted = f"SELECT rowid, stems FROM bodies WHERE rowid IN ({','.join('?' * len(some))})"  # noqa: S608
        for entry, body in connection.execute(wanted, some):
            for stem in terms:
                if held := passages_of(stem, body):
                    found[entry][stem] = found[entry].get(stem, "") + held
    return found


def _nearness(matrix: Any, vector: Any) -> Any:
    """Of every row; the last digits depend on the processor and the order of rows."""
    import numpy

    return numpy.round(matrix @ vector, 5)


def _nearest(numbers: Sequence[int], nearness: Any, depth: int) -> list[int]:
    """The nearest entries; more than ``depth`` only where equal ones share the last place."""
    import numpy

    least = numpy.partition(nearness, -depth)[-depth] if len(numbers) > depth else -numpy.inf
    return [numbers[place] for place in numpy.nonzero(nearness >= least)[0].tolist()]


def _occurrences(connection: sqlite3.Connection, asked: Sequence[str]) -> list[Occurrences]:
    """Where each stem stands. The words are data here, never FTS5's query language."""
    return [
        Occurrences(connection.execute("SELECT doc, col FROM terms WHERE term = ?", (stem,)).fetchall())
        for stem in asked
    ]
