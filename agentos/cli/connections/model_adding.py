"""What ``agentos model add``, ``default`` and ``remove`` write: resources of the registry, and agentos.toml."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import tomlkit

from agentos.cli.resources.registry_edit import author
from agentos.domain import Kind, Price, ResourceId
from agentos.durable import write_whole
from agentos.errors import Conflict, Invalid, NotFound, UserError
from agentos.gateway.calls import CallReading, ModelToday
from agentos.home import Home
from agentos.models.requests import RESOURCE_PARAMETERS
from agentos.models.resolving import price_of
from agentos.models.secrets import read_keys
from agentos.registry.store import Registry
from agentos.resources import examine, read
from agentos.resources.documents import MAIN_FILE
from agentos.settings import Settings, load_settings, settings_text

CONTEXT_TOKENS = 32_768  # of a model that is added without a word on it
_COMMENTED = re.compile(r"^# model = [^\r\n]*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TypedModel:
    """What a person typed; what is empty was not, and stays as it is where the model is there already."""

    name: str
    model: str
    provider: str
    api_base: str
    key_env: str
    parameters: tuple[str, ...]
    fallbacks: tuple[str, ...]
    prices: tuple[float, float] | None
    context_tokens: int | None
    description: str
    default: bool


@dataclass(frozen=True, slots=True)
class ModelAdded:
    """``change`` is added, changed, unchanged or removed; ``settings`` whether agentos.toml is different now."""

    name: str
    change: str
    default: bool
    settings: bool


def add_model(home: Home, wanted: TypedModel) -> ModelAdded:
    """Write both; nothing is written when either would be refused. Raises UserError."""
    registry = Registry(home.registry)
    base = registry.stable()
    resource = ResourceId(Kind.MODEL, wanted.name)
    path = f"{resource}/{MAIN_FILE[Kind.MODEL]}"
    present = registry.files(base, f"{resource}/").get(path)
    document = _document(wanted, present or b"")
    if faults := examine(resource, {path: document}).faults:
        raise Invalid(f"The model '{wanted.name}' was refused", list(faults))
    _check_named(wanted, {found.name for found in registry.names(base) if found.kind is Kind.MODEL})
    settings = load_settings(home.settings)
    _check_provider(wanted, settings)
    default = wanted.default or not settings.model
    changed = _write_settings(home.settings, wanted, default=default)
    if present != document:
        what = "Change" if present else "Add"
        registry.commit({path: document}, f"{what} {resource}", "edit", base=base, author=author())
    change = "unchanged" if present == document else "changed" if present else "added"
    return ModelAdded(wanted.name, change, default, changed)


def _check_named(wanted: TypedModel, known: Collection[str]) -> None:
    """Raises UserError for an address that is none, and for a model to fall back to that is not among the ``known``."""
    if wanted.api_base and not wanted.api_base.startswith(("http://", "https://")):
        raise UserError(
            f"Expected --api-base as an address such as http://127.0.0.1:11434/v1; found '{wanted.api_base}'"
        )
    if missing := [name for name in wanted.fallbacks if name not in known]:
        raise NotFound(
            f"No model '{missing[0]}' to fall back to is in the registry. Try: `agentos model list`"
        )


def _check_provider(wanted: TypedModel, settings: Settings) -> None:
    """Raises UserError where nobody says how the provider is reached, or whose address or key it is."""
    if not wanted.provider and (wanted.api_base or wanted.key_env):
        raise UserError("--api-base and --key-env belong to a provider: name it with --provider")
    if (
        wanted.provider
        and wanted.provider not in settings.providers
        and not (wanted.api_base or wanted.key_env)
    ):
        raise UserError(
            f"agentos.toml has no [providers.{wanted.provider}]: say where it is with --api-base, or with "
            "which key it is reached with --key-env"
        )  # fmt: skip


def set_default(home: Home, name: str) -> bool:
    """Whether the setting changed; "" clears it. Raises NotFound for a model that the registry does not have."""
    if name:
        registry = Registry(home.registry)
        if ResourceId(Kind.MODEL, name) not in registry.names(registry.stable()):
            raise NotFound(f"No model '{name}' is in the registry. Try: `agentos model list`")
    before = settings_text(home.settings)
    document = _with_model(before, name)
    return _written(home.settings, before, tomlkit.dumps(document))


def check_unused(registry: Registry, name: str) -> ResourceId:
    """The model of that name. Raises NotFound, and Conflict where something would be left without it."""
    stable = registry.stable()
    resource = ResourceId(Kind.MODEL, name)
    names = registry.names(stable)
    if resource not in names:
        raise NotFound(f"No model '{name}' is in the registry. Try: `agentos model list`")
    for other in names:
        if other == resource or other.kind not in (Kind.MODEL, Kind.AGENT):
            continue
        found = examine(other, registry.files(stable, f"{other}/")).resource
        named = [] if found is None else [found.settings.get("model"), *found.settings.get("fallbacks", ())]
        if other.kind is Kind.MODEL:
            named = named[1:]  # the first says what is asked, not which resource
        if name in named:
            how = "falls back to it" if other.kind is Kind.MODEL else "names it"
            raise Conflict(f"The model '{name}' is in use: {other} {how}. Change that first")
    return resource


def remove_model(home: Home, name: str) -> ModelAdded:
    """Retire it, and clear the default where it was that; nothing is changed when it is refused. Raises UserError."""
    registry = Registry(home.registry)
    resource = check_unused(registry, name)
    is_default = load_settings(home.settings).model == name
    if is_default:
        set_default(home, "")
    registry.retire(resource, f"removed by {author() or 'a person'}")
    return ModelAdded(name, "removed", is_default, is_default)


def _document(wanted: TypedModel, present: bytes) -> bytes:
    document = tomlkit.parse(present.decode())
    if wanted.description or document.get("description") in (None, f"The model {document.get('model')}"):
        document["description"] = wanted.description or f"The model {wanted.model}"
    document["model"] = wanted.model
    if wanted.provider:
        document["provider"] = wanted.provider
    if wanted.fallbacks:
        document["fallbacks"] = list(wanted.fallbacks)
    if wanted.context_tokens or "context_tokens" not in document:
        document["context_tokens"] = wanted.context_tokens or CONTEXT_TOKENS
    if wanted.prices:
        document["price"] = {"input_per_mtok": wanted.prices[0], "output_per_mtok": wanted.prices[1]}
    if wanted.parameters:
        document["parameters"] = dict(_parameter(text) for text in wanted.parameters)
    return tomlkit.dumps(document).encode()


def _parameter(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UserError(f"Expected --parameter KEY=VALUE; found '{text}'")
    if key not in RESOURCE_PARAMETERS:
        known = ", ".join(sorted(RESOURCE_PARAMETERS))
        raise UserError(f"'{key}' is no parameter that is sent to a model; there are: {known}")
    found: Any = value
    with suppress(ValueError):
        found = json.loads(value)
    try:
        json.dumps(tomlkit.item(found).unwrap(), allow_nan=False)
    except ValueError:
        raise UserError(f"--parameter {key} can be neither null nor NaN: leave it out instead") from None
    return key, found


def _write_settings(path: Path, wanted: TypedModel, *, default: bool) -> bool:
    """Whether anything changed. Comments and order stay as they are."""
    before = settings_text(path)
    document = _with_model(before, wanted.name) if default else tomlkit.parse(before)
    given = {"api_base": wanted.api_base, "key_env": wanted.key_env}
    if any(given.values()):
        providers = document.setdefault("providers", tomlkit.table(is_super_table=True))
        provider = providers.setdefault(wanted.provider, tomlkit.table())
        provider.update({key: value for key, value in given.items() if value})
    return _written(path, before, tomlkit.dumps(document))


def _with_model(text: str, name: str) -> tomlkit.TOMLDocument:
    """The settings with this default, "" for none."""
    document = tomlkit.parse(text)
    if name and "model" not in document:  # where the first settings have it as a comment: above all tables
        document = tomlkit.parse(_COMMENTED.sub(f'model = "{name}"', text, count=1))
    if name:
        document["model"] = name
    else:
        document.pop("model", None)
    return document


def _written(path: Path, before: str, after: str) -> bool:
    if after == before:
        return False
    write_whole(path, after.encode(), load_settings)
    return True


# --- What ``agentos model list`` knows: the registry's models, the settings' providers, today's calls


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
    start = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    reading = CallReading(home.calls)
    try:
        used: Sequence[ModelToday] = reading.models_on(start.timestamp())
    finally:
        reading.close()
    return {one.model: one for one in used}
