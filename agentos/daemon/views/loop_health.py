"""How the loop does: gathered from the ledger, the record of model calls and the registry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from agentos.domain import (
    Evidence,
    Evolution,
    Feedback,
    Kind,
    SafetyRate,
    Snapshot,
    SupervisorWorth,
    is_memory,
)
from agentos.evolver.documents import load_policy
from agentos.evolver.memory import lessons
from agentos.evolver.watch import health
from agentos.evolver.watch.health import EvolutionCost, Health
from agentos.gateway.calls import CallReading
from agentos.home import Home
from agentos.ledger.listing import LedgerStats, SpentTotals, StateChange
from agentos.ledger.reading import Reader
from agentos.ports import KnownLesson
from agentos.registry.store import Registry
from agentos.shipped import folder, seed_files
from agentos.supervisor import worth

FITTED = "supervisor.fitted"  # memo in the ledger: {"norms", "worth"}


def measure(home: Home, now: datetime) -> Health:
    """Everything on the page, from the ledger, the record of model calls and the registry."""
    ledger = LedgerStats(home.ledger)
    evolutions, evidence = ledger.find(Evolution), ledger.find(Evidence)
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
        mended=tuple(health.mended(evolutions, evidence, came_to, seen)),
        price=_price(home, ledger.spent(), evolutions),
        library=health.library(present, shipped, ledger.uses()),
        memories=_memories(ledger, registry, home, now),
        safety=health.safety(ledger.find(SafetyRate)),
        words=health.words(ledger.find(Feedback), evidence, evolutions),
        supervisor=worth_of(ledger),
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
        "supervisor": [{**asdict(one), "lost_share": one.lost_share} for one in found.supervisor],
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


def _first(moments: Iterable[StateChange]) -> dict[tuple[str, str], datetime]:
    return {(item.evolution_id, item.state): item.at for item in moments}


def _price(home: Home, spent: Mapping[str, SpentTotals], evolutions: Sequence[Evolution]) -> EvolutionCost:
    """Of all evolutions: those that came to nothing are part of what a fix costs."""
    calls = CallReading(home.calls)
    try:
        usd = sum(calls.spent(evolution_id=evolution.id).usd for evolution in evolutions)
    finally:
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


def worth_of(ledger: Reader) -> tuple[SupervisorWorth, ...]:
    """What the supervisor's checks are worth, as the daemon measured it last; before that, what nothing measured allows."""
    kept = ledger.get_kv(FITTED)
    return tuple(SupervisorWorth(**one) for one in kept["worth"]) if kept else worth.measure((), 0.0, 0.0)
