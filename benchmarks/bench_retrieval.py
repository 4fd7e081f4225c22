"""Retrieval: does it find what was meant (a labelled set), and how long does it take at 10,000 resources.

python benchmarks/bench_retrieval.py [--quick] [--half dev]
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from agentos.domain import Snapshot
from agentos.errors import UserError
from agentos.registry.store import Registry
from agentos.resources import parse_id
from agentos.retrieval.embedding import Embedder, WordLlama
from agentos.retrieval.index import Index
from agentos.retrieval.texts import telling_words, words
from agentos.testing.registry import FakeRegistry

DATA = Path(__file__).resolve().parent / "data" / "retrieval.toml"
SIZES = (100, 1_000, 10_000)
QUERIES = 200


@dataclass(frozen=True, slots=True)
class Query:
    """A text, what answers it, and in what way it was worded."""

    text: str
    answers: frozenset[str]
    kind: str


@dataclass(frozen=True, slots=True)
class Labelled:
    """The set, and the two halves of its queries."""

    resources: Sequence[tuple[str, str, str]]
    halves: Mapping[str, Sequence[Query]]


Search = Callable[[str], Sequence[str]]  # ids, best first


def labelled() -> Labelled:
    """The set as it stands in benchmarks/data."""
    table = tomllib.loads(DATA.read_text("utf-8"))
    queries = [Query(text, frozenset(answers), kind) for text, answers, kind in table["queries"]]
    # Two queries in a row mostly mean one resource, the first in more distant words: so by turns.
    dev = [query for number, query in enumerate(queries) if (number + number // 2) % 2 == 0]
    test = [query for number, query in enumerate(queries) if (number + number // 2) % 2 == 1]
    return Labelled(table["resources"], {"dev": dev, "test": test})


def files_of(name: str, description: str, body: str) -> dict[str, str]:
    """A resource of this text, as valid as a real one."""
    resource = parse_id(name)
    if resource.kind == "skill":
        front = f"---\nname: {resource.name}\ndescription: {description!r}\n---\n"
        return {f"{name}/SKILL.md": f"{front}\n{body}\n"}
    document = {f"{name}/resource.toml": f"description = {description!r}\n"}
    if resource.kind == "memory":
        return {**document, f"{name}/memory.md": f"# Lessons\n\n- {body}\n"}
    card = {"name": resource.name.replace("-", "_"), "description": description, "effects": ["pure"]}
    fields = "".join(f"    {word}: str\n" for word in body.split())
    source = f'"""A tool."""\nTOOL = {card!r}\n\n\nclass Input:\n{fields}\n\nclass Output:\n    done: bool\n'
    return {**document, f"{name}/tool.py": f"{source}\n\ndef run(input):\n    return Output()\n"}


# --- quality ----------------------------------------------------------------------------------


def by_name(resources: Sequence[tuple[str, str, str]]) -> Search:
    """Baseline: how many words of the query stand in the name."""
    names = {name: set(words(name)) for name, _, _ in resources}

    def search(text: str) -> Sequence[str]:
        asked = set(telling_words(text))
        scores = {name: len(asked & mine) for name, mine in names.items()}
        return sorted((name for name in names if scores[name]), key=lambda name: (-scores[name], name))

    return search


def by_chance(resources: Sequence[tuple[str, str, str]]) -> Search:
    """Baseline: any order."""
    dice = random.Random(4)
    return lambda text: dice.sample([name for name, _, _ in resources], len(resources))


def by_index(index: Index, snapshot: Snapshot) -> Search:
    """What is measured."""
    return lambda text: [str(found.resource) for found in index.find(snapshot, text, limit=20)]


def quality(search: Search, queries: Sequence[Query]) -> str:
    """Recall@1 and @5 (is one of the answers among them) and mean reciprocal rank."""
    ranks = []
    for query in queries:
        if query.answers:
            places = [place for place, name in enumerate(search(query.text), 1) if name in query.answers]
            ranks.append(places[0] if places else 0)
    first, five = (sum(0 < rank <= most for rank in ranks) / len(ranks) for most in (1, 5))
    mrr = sum(1 / rank for rank in ranks if rank) / len(ranks)
    return f"R@1 {first:.2f}, R@5 {five:.2f}, MRR {mrr:.2f}"


def measure_quality(data: Labelled, embedder: Embedder | None, halves: Sequence[str], place: Path) -> None:
    """Each way of searching on each half."""
    registry = FakeRegistry({k: v for item in data.resources for k, v in files_of(*item).items()})
    snapshot = registry.stable()
    searches = {
        "chance": by_chance(data.resources),
        "words of the name": by_name(data.resources),
        "bm25": by_index(Index(place / "bm25.db", registry), snapshot),
    }
    if embedder is not None:
        searches["hybrid"] = by_index(Index(place / "hybrid.db", registry, embedder), snapshot)
    for half in halves:
        queries = data.halves[half]
        asked = sum(bool(query.answers) for query in queries)
        for name, search in searches.items():
            row(f"{half} half: {name}", quality(search, queries), "", f"n={asked}")
    kinds = sorted({query.kind for query in data.halves["test"] if query.answers})
    for kind in kinds if "test" in halves else []:
        some = [query for query in data.halves["test"] if query.kind == kind]
        beside = quality(searches["hybrid"], some) if "hybrid" in searches else ""
        row(f"test half, {kind}: bm25", quality(searches["bm25"], some), beside, f"n={len(some)}")
    for name in ("bm25", "hybrid"):
        if name in searches and "test" in halves:
            none = [query for half in halves for query in data.halves[half] if not query.answers]
            silent = sum(not searches[name](query.text) for query in none)
            row(f"no answer exists: {name} gives none", f"{silent} of {len(none)}", "", "")


# --- time -------------------------------------------------------------------------------------


def many(data: Labelled, count: int) -> dict[str, str]:
    """``count`` resources whose texts are mixed from those of the set."""
    dice = random.Random(count)
    pool = [word for _, description, body in data.resources for word in words(f"{description} {body}")]
    nouns = sorted({word for name, _, _ in data.resources for word in words(name.split("/")[1])})
    files: dict[str, str] = {}
    for number in range(count):
        kind = ("tool", "skill", "memory")[number % 3]
        name = f"{kind}/{'-'.join(dice.sample(nouns, 2))}-{number}"
        body = " ".join(dict.fromkeys(f"p{word}" for word in dice.sample(pool, 4)))
        if kind != "tool":
            body = " ".join(
                [*dice.sample(pool, 60), *(f"{dice.choice(pool)}{dice.randrange(300)}" for _ in range(40))]
            )
        files |= files_of(name, " ".join(dice.sample(pool, 14)), body)
    return files


def measure_time(data: Labelled, count: int, embedder: Embedder | None, place: Path) -> None:
    """Build, search, update."""
    contents = {path: text.encode() for path, text in many(data, count).items()}
    registry = Registry.init(place / "registry.git", contents)
    snapshot = registry.stable()
    label = f"{count:,} resources" + (", hybrid" if embedder else "")
    path = place / "index.db"
    index = Index(path, registry, embedder)
    built = timed(lambda: index.refresh(snapshot))
    row(f"build, {label}", f"{built / 1e3:.2f} s", "", f"{path.stat().st_size / 1e6:.1f} MB")
    texts = [query.text for half in data.halves.values() for query in half]
    took = [timed(partial(index.find, snapshot, text)) for text in (texts * 2)[:QUERIES]]
    ordered = sorted(took)
    p95 = ordered[int(0.95 * len(ordered))]
    row(f"search, {label}", f"{statistics.median(took):.2f} ms", f"p95 {p95:.2f} ms", f"n={len(took)}")
    updates = []
    for number in range(5):
        name = f"memory/new-{number}"
        after = registry.commit(
            {k: v.encode() for k, v in files_of(name, "New", "A new lesson.").items()}, "New", "edit"
        )
        updates.append(timed(partial(index.find, after, "lesson")))
    row(f"first search after an edit, {label}", f"{statistics.median(updates):.1f} ms", "", "n=5")
    fresh = Index(path, registry, embedder)
    opened = timed(lambda: fresh.find(registry.stable(), "lesson"))
    row(f"first search of a process, {label}", f"{opened:.1f} ms", "", "n=1")


def timed(work: Callable[[], object]) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


def row(what: str, value: str, beside: str, remarks: str) -> None:
    """One result line."""
    print(f"| {what} | {value} | {beside} | {remarks} |", flush=True)


def main() -> None:
    """Quality first, then time at each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without the largest size")
    parser.add_argument("--half", choices=("dev", "test"), help="only the quality on this half")
    chosen = parser.parse_args()
    data = labelled()
    embedder: Embedder | None = None
    try:
        embedder = WordLlama()
    except UserError as error:
        print(error)
    with tempfile.TemporaryDirectory() as folder:
        halves = [chosen.half] if chosen.half else ["dev", "test"]
        measure_quality(data, embedder, halves, Path(folder))
    for count in () if chosen.half else SIZES[:2] if chosen.quick else SIZES:
        for used in (None, embedder) if embedder else (None,):
            with tempfile.TemporaryDirectory() as folder:
                measure_time(data, count, used, Path(folder))


if __name__ == "__main__":
    main()
