"""Which evolutions go on now: several side by side, never two at one place.

A promotion moves ``main`` by compare-and-swap, so those that go on beside it cannot overwrite each other; the one
that comes second is measured again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agentos.daemon.engine import EVOLVE, FRESH, PROMOTE, SETTLE, Engine
from agentos.domain import RUNNING_STATES, Candidate, Consent, Evolution, EvolutionState
from agentos.errors import NotFound
from agentos.evolver.find.triage import places
from agentos.evolver.promote.consent import is_overtaken
from agentos.evolver.replay.fresh import place_of

if TYPE_CHECKING:
    from agentos.daemon.service import Service

WAITING_MAX = 8  # evolutions that wait for the machinery, beside those that work; each has a thread


def start_due(service: Service, engine: Engine) -> None:
    """Start what may go on: the longest approved first, then what was begun, then what is new, oldest first.

    One that waits for the machinery (a model that is away, a full disk) takes nobody's place. Of two with one
    fingerprint, file or resource the second starts when the first has ended.
    """
    at_work = {name for kind in (EVOLVE, PROMOTE, FRESH, SETTLE) for name in engine.active(kind)}
    free = service.settings.evolutions - len(at_work - service.waiting)
    free = min(free, service.settings.evolutions + WAITING_MAX - len(at_work))
    taken = {place for name in at_work for place in _places(service, name)}
    for evolution in _due(service):
        if free <= 0:
            return
        if evolution.id in at_work:
            continue
        own = places(service.parts, evolution)
        if taken.isdisjoint(own) and _start(service, engine, evolution):
            taken |= own
            free -= 1


def _places(service: Service, evolution_id: str) -> frozenset[str]:
    try:
        return places(service.parts, service.parts.evolution(evolution_id))
    except NotFound:  # a ledger restored from a backup is older than the engine's database
        return frozenset()


def _due(service: Service) -> Sequence[Evolution]:
    found = service.ledger.find(Evolution, state=RUNNING_STATES | {EvolutionState.AWAITING_CONSENT})
    found = sorted(found, key=lambda evolution: evolution.state, reverse=True)
    return sorted(found, key=lambda evolution: evolution.state is not EvolutionState.AWAITING_CONSENT)


def _start(service: Service, engine: Engine, evolution: Evolution) -> bool:
    """Whether it is under way now; one that nothing can take up any more is ended."""
    if evolution.state is EvolutionState.AWAITING_CONSENT:
        if _start_promotion(service, engine, evolution):
            return True
        overtaken = _is_overtaken(service, evolution)
        return (_start_settling if overtaken else _start_fresh)(service, engine, evolution)
    if engine.start(EVOLVE, evolution.id):
        return True
    # a promotion that a dead daemon left is taken up a moment after the launch
    if evolution.state is EvolutionState.PROMOTING and _start_promotion(service, engine, evolution):
        return True
    service.cancel_evolution(evolution.id, "its workflow ended without a result")
    return False


def _start_promotion(service: Service, engine: Engine, evolution: Evolution) -> bool:
    """Whether a promotion under the newest consent is under way now."""
    consents = service.ledger.find(Consent, evolution_id=evolution.id)
    return bool(consents) and engine.start(PROMOTE, evolution.id, f"promote-{consents[-1].id}")


def _is_overtaken(service: Service, evolution: Evolution) -> bool:
    if evolution.candidate_id is None:
        return False
    return is_overtaken(service.parts, service.ledger.get(Candidate, evolution.candidate_id))


def _start_settling(service: Service, engine: Engine, evolution: Evolution) -> bool:
    """Whether it is put on what is stable now: safety probes are run for that, which the daemon's loop must not wait for."""
    name = f"settle-{evolution.id}-{service.registry.stable().commit[:12]}"
    # by the hour: what the machinery lost is tried again in the next one
    return engine.start(SETTLE, evolution.id, f"{name}-{datetime.now(UTC):%y%j%H}")


def _start_fresh(service: Service, engine: Engine, evolution: Evolution) -> bool:
    """Whether it is tried on new work now. Never while it is promoted: both move it on, and here one of them begins."""
    if evolution.id not in service.fresh_due:
        return False
    service.fresh_due.discard(evolution.id)
    place = service.parts.cursor.read(place_of(evolution.id))
    # by the hour: what the machinery lost is tried again in the next one
    return engine.start(FRESH, evolution.id, f"fresh-{evolution.id}-{place}-{datetime.now(UTC):%y%j%H}")
