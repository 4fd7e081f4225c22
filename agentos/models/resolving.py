"""From the name of a model resource to what is asked of whom, at one snapshot."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agentos.domain import Kind, ModelSpec, Price, ResourceId, Snapshot
from agentos.durable import flush_folder
from agentos.errors import NotFound
from agentos.home import Home
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
        raise NotFound("No model is set up. Try: agentos model add NAME --model openai/… --default")
    raise NotFound(f"No model '{name}' is in the registry. Try: agentos model list, or agentos model add")


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


# --- Whether models may be asked: a person may stop all calls of a home at once, and let them go on
# A file in the home, so that it is seen by whatever asks a model there, and stands until somebody takes it back.


_NAME = "models.stopped"


@dataclass(frozen=True, slots=True)
class ModelStop:
    """Who stopped the calls, when and why."""

    principal: str
    at: datetime
    reason: str


def model_stop(home: Home) -> ModelStop | None:
    """None where models may be asked. A file that cannot be read stops them, too."""
    path = home.root / _NAME
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError):
        text = ""
    with suppress(ValueError, KeyError, TypeError):
        said = json.loads(text)
        return ModelStop(str(said["principal"]), datetime.fromisoformat(said["at"]), str(said["reason"]))
    return ModelStop("somebody", datetime.now(UTC), f"{path} cannot be read")


def stop_models(home: Home, principal: str, reason: str) -> None:
    """No call is begun from now on; those under way end."""
    said = {"principal": principal, "at": datetime.now(UTC).isoformat(), "reason": reason}
    aside = home.root / f"{_NAME}.{os.getpid()}"
    with aside.open("w", encoding="utf-8") as file:
        json.dump(said, file)
        file.flush()
        os.fsync(file.fileno())
    aside.rename(home.root / _NAME)
    flush_folder(home.root)


def let_models_go_on(home: Home) -> None:
    """Calls are begun again."""
    (home.root / _NAME).unlink(missing_ok=True)
