"""From the name of a model resource to what is asked of whom, at one snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentos.domain import Kind, ModelSpec, Price, ResourceId, Snapshot
from agentos.errors import NotFound, meant, to_type
from agentos.ports import Snapshots
from agentos.resources import read

DEFAULT = "default"  # what an agent names that leaves the choice to the settings


def spec_of(snapshots: Snapshots, snapshot: Snapshot, name: str, default: str) -> ModelSpec:
    """The model resource ``name``, with its fallbacks, theirs after them, each once.

    ``default`` (the setting ``model``) is what "default" means; without one, a resource of that
    name. Raises NotFound when it or a fallback does not exist, and Invalid when one breaks its rules.
    """
    wanted = default if name in ("", DEFAULT) and default else name or DEFAULT
    found: dict[str, ModelSpec] = {}
    waiting = [wanted]
    while waiting:
        current = waiting.pop(0)
        if current in found:
            continue
        settings = _settings(snapshots, snapshot, current, wanted)
        found[current] = _spec(current, settings)
        waiting += settings["fallbacks"]
    first, *others = found.values()
    return ModelSpec(
        first.name,
        first.model,
        first.provider,
        first.parameters,
        tuple(others),
        first.price,
        first.context_tokens,
    )


def _settings(snapshots: Snapshots, snapshot: Snapshot, name: str, wanted: str) -> Mapping[str, Any]:
    resource = ResourceId(Kind.MODEL, name)
    files = snapshots.files(snapshot, f"{resource}/")
    if files:
        return read(resource, files).settings
    if name != wanted:
        raise NotFound(f"The model '{wanted}' falls back to '{name}', which is not in the registry")
    if name == DEFAULT:
        raise NotFound(
            "No model is set up. Try: ", to_type("agentos model add NAME --model openai/… --default")
        )
    known = [found.name for found in snapshots.names(snapshot) if found.kind is Kind.MODEL]
    hint = meant(name, known, "Try: ", to_type("agentos model list"), ", or ", to_type("agentos model add"))
    raise NotFound(f"No model '{name}' is in the registry. ", hint)


def _spec(name: str, settings: Mapping[str, Any]) -> ModelSpec:
    price = settings["price"]
    return ModelSpec(
        name=name,
        model=settings["model"],
        provider=settings["provider"],
        parameters=settings["parameters"],
        price=price_of(price) if price else None,
        context_tokens=settings["context_tokens"],
    )


def price_of(table: Mapping[str, Any]) -> Price:
    """The price as it stands in the resource's document."""
    return Price(table["input_per_mtok"], table["output_per_mtok"], table.get("cached_per_mtok"))
