"""What a tool says that it does to the world, read in its source without running anything."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Sequence
from functools import lru_cache

from agentos.domain import Effect, Snapshot
from agentos.domain.records import dataclass
from agentos.ports import Snapshots
from agentos.programs import SCRIPT_EFFECTS, is_manifest, is_script
from agentos.syntax import parse


@dataclass(frozen=True, slots=True)
class Effects:
    """What a tool's source declares of its effects."""

    effects: frozenset[str]
    idempotent: bool  # making the same call twice is as good as making it once


@lru_cache(maxsize=256)
def declared(path: str, source: bytes) -> Effects:
    """Read ``TOOL`` without running anything. What cannot be read counts as acting on the outside."""
    if is_script(path):
        return Effects(frozenset(SCRIPT_EFFECTS), False)
    cards = []
    try:
        if is_manifest(path):
            says = json.loads(source)
            return Effects(frozenset(map(str, says["effects"])), says.get("idempotent") is True)
        for node in parse(source.decode("utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            named = any(isinstance(target, ast.Name) and target.id == "TOOL" for target in targets)
            if named and isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                cards.append(ast.literal_eval(node.value))
        # A file that says it twice is held to all that it says.
        effects = frozenset(str(effect) for card in cards for effect in card["effects"])
        idempotent = bool(cards) and all(card.get("idempotent") is True for card in cards)
    except (SyntaxError, ValueError, TypeError, KeyError, AttributeError, RecursionError, MemoryError):
        effects, idempotent = frozenset(), False
    return Effects(effects or frozenset({Effect.EXTERNAL}), idempotent)


def recorded_effects(snapshots: Snapshots) -> Callable[[Snapshot, str], Sequence[str]]:
    """What a tool said that it does, as a run on the snapshot had it: sorted, () for a path that is not there.

    Each is read once. Raises Unavailable.
    """
    known: dict[tuple[str, str], Sequence[str]] = {}

    def effects(snapshot: Snapshot, path: str) -> Sequence[str]:
        key = (snapshot.tree, path)
        if key not in known:
            source = snapshots.files(snapshot, path).get(path) if path else None
            known[key] = sorted(declared(path, source).effects) if source is not None else ()
        return known[key]

    return effects
