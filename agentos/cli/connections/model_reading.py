"""What ``agentos model list`` knows: the registry's models, the settings' providers, today's calls."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from agentos.domain import Kind, Price
from agentos.gateway.calls import CallReading, ModelToday
from agentos.home import Home
from agentos.models.keys import read_keys
from agentos.models.resolving import price_of
from agentos.registry.store import Registry
from agentos.resources import read
from agentos.settings import Settings, load_settings


@dataclass(frozen=True, slots=True)
class Line:
    """One model as ``list`` shows it. ``key`` is yes, no, or "" when none is needed; never the key."""

    name: str
    model: str
    default: bool
    provider: str
    api_base: str
    key: str
    price: Price | None
    context_tokens: int
    calls: int = 0
    served: int = 0
    tokens: int = 0
    usd: float | None = None
    faults: Mapping[str, int] = field(default_factory=dict)


def lines(home: Home) -> list[Line]:
    """Every model of the registry's newest state, by name."""
    settings, keys = load_settings(home.settings), read_keys(home.keys)
    registry = Registry(home.registry)
    snapshot = registry.stable()
    today = _today(home)
    found = []
    for resource in registry.names(snapshot):
        if resource.kind is not Kind.MODEL:
            continue
        about = read(resource, registry.files(snapshot, f"{resource}/")).settings
        where = settings.providers.get(about["provider"])
        used = today.get(resource.name)
        found.append(
            Line(
                name=resource.name,
                model=about["model"],
                default=resource.name == (settings.model or "default"),
                provider=about["provider"],
                api_base=where.api_base if where else "",
                key=_key(settings, about["provider"], keys),
                price=price_of(about["price"]) if about["price"] else None,
                context_tokens=about["context_tokens"],
                calls=used.calls if used else 0,
                served=used.served if used else 0,
                tokens=used.tokens if used else 0,
                usd=used.usd if used else None,
                faults=used.faults if used else {},
            )
        )
    return found


def _key(settings: Settings, provider: str, keys: Mapping[str, str]) -> str:
    if not provider:
        return ""
    where = settings.providers.get(provider)
    if where is None:
        return "no provider"
    if not where.key_env:
        return ""
    return "yes" if where.key_env in keys or os.environ.get(where.key_env) else "no"


def _today(home: Home) -> Mapping[str, ModelToday]:
    if not home.calls.exists():
        return {}
    start = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    reading = CallReading(home.calls)
    try:
        used: Sequence[ModelToday] = reading.models_since(start.timestamp())
    finally:
        reading.close()
    return {one.model: one for one in used}
