"""The work of ``agentos evolution health``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from agentos.cli.output import print_json, print_table, print_text
from agentos.domain import Evidence, Evolution, Feedback, Kind, SafetyRate, Snapshot, is_memory
from agentos.evolver.memory import lessons
from agentos.evolver.policy import load_policy
from agentos.evolver.watch import health
from agentos.evolver.watch.health import EvolutionCost, Health, duration
from agentos.gateway.calls import CallReading
from agentos.home import Home
from agentos.ledger.stats import LedgerStats, Moment, SpentTotals
from agentos.ports import KnownLesson
from agentos.registry.store import Registry
from agentos.shipped import folder, seed_files

_PERIODS = 12  # rows of the series in the table; the picture and --json have all


def show(home: Home, *, as_json: bool, svg: Path | None) -> None:
    """Measure, and show it as asked."""
    found = measure(home, datetime.now(UTC))
    if svg is not None:
        from agentos.cli.health_picture import picture

        svg.write_text(picture(found), encoding="utf-8")
    if as_json:
        print_json(document(found))
    elif svg is not None:
        print_text(f"The picture lies in {svg}.")
    else:
        _print(found)


def measure(home: Home, now: datetime) -> Health:
    """Everything on the page, from the ledger, the record of model calls and the registry."""
    ledger = LedgerStats(home.ledger)
    evolutions = ledger.find(Evolution)
    came_to = _first(ledger.moments())
    series, step = health.series(came_to, now)
    seen = [(item.run_id, item.fingerprint_id, item.at) for item in ledger.seen()]
    registry = Registry(home.registry)
    present = map(str, registry.names(registry.stable()))
    shipped = {"/".join(path.split("/")[:2]) for path in seed_files()}
    return Health(
        at=now,
        states=dict(Counter(evolution.state.value for evolution in evolutions)),
        series=series,
        step_s=step.total_seconds(),
        mended=tuple(health.mended(evolutions, ledger.find(Evidence), came_to, seen)),
        price=_price(home, ledger.spent(), evolutions),
        library=health.library(present, shipped, ledger.uses()),
        memories=_memories(ledger, registry, home, now),
        safety=health.safety(ledger.find(SafetyRate)),
        words=health.words(ledger.find(Feedback), ledger.find(Evidence), evolutions),
    )


def document(found: Health) -> Mapping[str, Any]:
    """The page as data; ratios beside what they are made of."""
    price = found.price
    return {
        **asdict(found),
        "took_s": found.took_s,
        "recurred": found.recurred,
        "price": {
            **asdict(price),
            "usd_per_fix": price.each(price.usd),
            "trials_per_fix": price.each(price.trials),
            "cpu_s_per_fix": price.each(price.cpu_s),
        },
        "library": [{**asdict(shelf), "ratio": shelf.ratio} for shelf in found.library],
        "words": [{**asdict(word), "share": word.share} for word in found.words],
        "safety": [
            {
                "at": rate.at,
                "tree": rate.tree,
                "agent": rate.agent,
                "learnt": rate.learnt,
                "ran": len(rate.ran),
                "violated": rate.violated,
                "rate": rate.value,
            }
            for rate in found.safety
        ],
    }


def _first(moments: Iterable[Moment]) -> dict[tuple[str, str], datetime]:
    return {(item.evolution_id, item.state): item.at for item in moments}


def _price(home: Home, spent: Mapping[str, SpentTotals], evolutions: Sequence[Evolution]) -> EvolutionCost:
    """Of all evolutions: those that came to nothing are part of what a fix costs."""
    usd = 0.0
    if home.calls.exists():
        calls = CallReading(home.calls)
        usd = sum(calls.spent(evolution_id=evolution.id).usd for evolution in evolutions)
        calls.close()
    return EvolutionCost(
        usd=usd,
        trials=sum(item.trials for item in spent.values()),
        cpu_s=sum(item.cpu_s for item in spent.values()),
        fixes=sum(evolution.stands for evolution in evolutions),
    )


def _memories(ledger: LedgerStats, registry: Registry, home: Home, now: datetime) -> tuple[KnownLesson, ...]:
    """How each lesson that is remembered now fared."""
    stable = registry.stable()
    found = registry.files(stable, Kind.MEMORY.value)
    texts = {path: text.decode() for path, text in found.items() if is_memory(path)}
    if not texts:
        return ()
    own = home.root / "policy.toml"  # not by the desk: that imports what writes, which takes a second
    policy = load_policy(own if own.exists() else folder("evolver") / "policy.toml")
    most = policy.look_back.lessons
    runs = {path: ledger.recent_runs("/".join(path.split("/")[:2]), most) for path in texts}

    def text_at(snapshot: Snapshot, path: str) -> str:
        return registry.files(snapshot, path).get(path, b"").decode()

    return lessons.fared(texts, runs, text_at, now, policy.mine.half_life_days)


def _print(found: Health) -> None:
    console = Console(highlight=False)
    for title, columns, rows, empty in _tables(found):
        console.print(Text(title, style="bold"))
        print_table(columns, rows, empty=empty)
        console.print()


def _tables(found: Health) -> Iterator[tuple[str, Sequence[str], Sequence[Sequence[str]], str]]:
    yield "Fixes", ("what", "how much"), _fixes(found), ""
    yield (
        "What became of evolutions" + (f", by {duration(found.step_s)}" if found.series else ""),
        ("from", "promoted", "rolled back", "held", "without success"),
        [
            (
                f"{item.start:%Y-%m-%d %H:%M}",
                *map(str, (item.promoted, item.rolled_back, item.held, item.fruitless)),
            )
            for item in found.series[-_PERIODS:]
        ],
        "No evolution has ended yet. `agentos evolve` looks for failures now.",
    )
    yield (
        "The library",
        ("kind", "shipped", "made here", "of these used", "ratio"),
        [
            (item.kind, str(item.shipped), str(item.created), str(item.used), _share(item.ratio))
            for item in found.library
        ],
        "The registry is empty.",
    )
    yield (
        "Lessons, by use",
        ("score", "passed", "runs", "lesson"),
        [
            (f"{item.score:.2f}", str(item.successes), str(item.uses), item.text)
            for item in sorted(found.memories, key=lambda item: -item.uses)[:_PERIODS]
        ],
        "Nothing is remembered yet.",
    )
    yield (
        "What people said of runs",
        ("who", "good", "bad", "right", "wrong", "share"),
        [
            (
                item.principal,
                str(item.good),
                str(item.bad),
                str(item.right),
                str(item.wrong),
                _share(item.share),
            )
            for item in found.words
        ],
        "Nobody said anything yet: `agentos run good|bad|correct ID`.",
    )
    yield (
        "Safety probes",
        ("measured", "snapshot", "with what was learnt", "violated", "of"),
        [
            (
                f"{rate.at:%Y-%m-%d %H:%M}",
                rate.tree[:12],
                "yes" if rate.learnt else "no",
                str(len(rate.violated)),
                str(len(rate.ran)),
            )
            for rate in found.safety[-_PERIODS:]
        ],
        "No safety probe was run yet: the first promotion runs them.",
    )


def _fixes(found: Health) -> list[tuple[str, str]]:
    price = found.price
    lasted = [item.lasted_s for item in found.mended if item.lasted_s is not None]
    usd, trials, cpu_s = (price.each(total) for total in (price.usd, price.trials, price.cpu_s))
    states = ", ".join(f"{count} {state}" for state, count in sorted(found.states.items()))
    return [
        ("evolutions", states or "none"),
        ("fixes that stand", str(price.fixes)),
        ("from the failure to its fix, median", duration(found.took_s)),
        ("failures that came again", f"{len(lasted)} of {len(found.mended)}"),
        ("until they did, shortest", duration(min(lasted, default=None))),
        ("USD for each fix", "-" if usd is None else f"{usd:.4f}"),
        ("trials for each fix", "-" if trials is None else f"{trials:.0f}"),
        ("CPU for each fix", duration(cpu_s)),
    ]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
