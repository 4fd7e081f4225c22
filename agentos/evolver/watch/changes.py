"""What people did to what was promoted: who takes it back, changes or pins it ends its watch, truthfully."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from agentos.domain import Evolution, EvolutionEnding, EvolutionState, Version
from agentos.errors import NotFound, Unavailable
from agentos.evolver.watch import ChangeContext
from agentos.evolver.watch.live_regression import LiveArms
from agentos.resources import parse_id

RECENT = 20  # settled promotions that are looked at
_OWN = frozenset({"evolution", "rollback"})  # origins of versions that the program made by itself


def follow(parts: ChangeContext, *, settled: bool = False) -> list[Evolution]:
    """End every watch that a person's change ended; with ``settled`` look at past watches too. Cheap."""
    standing = list(parts.records.find(Evolution, state=EvolutionState.PROBATION))
    if settled:
        standing += parts.records.newest(Evolution, RECENT, state=EvolutionState.PROMOTED)
    return [ended for evolution in standing if (ended := _followed(parts, evolution)) is not None]


def _followed(parts: ChangeContext, evolution: Evolution) -> Evolution | None:
    if evolution.promoted is None or evolution.candidate_id is None or not evolution.stands:
        return None
    try:
        return _ended(parts, evolution)
    except (NotFound, Unavailable):  # a registry restored from a backup: nobody knows
        return None


def _ended(parts: ChangeContext, evolution: Evolution) -> Evolution | None:
    sides = LiveArms(parts, evolution)
    now = sides.content(parts.snapshots.stable())
    if now == sides.own:
        pinned = [name for name in sides.touched if parts.evolvable.may_evolve(parse_id(name))]
        if not pinned or evolution.state is not EvolutionState.PROBATION:
            return None
        why = f"a person pinned {pinned[0]}: it is watched no longer ({_so_far(sides)})"
        return parts.move(evolution, EvolutionState.PROMOTED, why, ending=EvolutionEnding.PINNED)
    changes = [version for name in sides.touched for version in _since(parts, evolution, name)]
    people = [version for version in changes if version.origin not in _OWN]
    if not people:  # a later evolution builds on it, or the program is taking it back at this moment
        return None
    at = max(
        [*(version.created_at for version in people), *([evolution.ended_at] if evolution.ended_at else [])]
    )
    changed = replace(evolution, undone_at=at)
    names = ", ".join(sorted({str(version.resource) for version in people}))
    if now == sides.base:
        why = f"a person put back what stood before it ({names})"
        return parts.move(changed, EvolutionState.ROLLED_BACK, why, end=True, ending=EvolutionEnding.REVERTED)
    why = f"a person changed {names}: what runs get now is not what was promoted ({_so_far(sides)})"
    return parts.move(changed, EvolutionState.PROMOTED, why, ending=EvolutionEnding.SUPERSEDED)


def _since(parts: ChangeContext, evolution: Evolution, name: str) -> Sequence[Version]:
    """The versions of the resource that are newer than the one that the evolution made."""
    return list(
        takewhile(lambda version: version.evolution != evolution.id, parts.evolvable.versions(parse_id(name)))
    )


def _so_far(sides: LiveArms) -> str:
    count = len(sides.counted())
    return f"{count} live run{'s' if count != 1 else ''} of new, checked work until then"
