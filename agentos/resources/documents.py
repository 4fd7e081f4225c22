"""The keys of ``resource.toml`` for each kind: what may stand there, and what holds when it does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from agentos.domain import Json, Kind, Limits

DOCUMENT = "resource.toml"
ASKS = ("recall", "remember", "person")  # what an agent may ask of the kernel beside its tools
COMPACTIONS = ("digest", "model")  # who shortens a past that has become too long
NAME_MAX = 64


@dataclass(slots=True)
class ReadingNotes:
    """What is wrong, and what is only odd, in the order found."""

    faults: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def text(self, where: str, key: str, value: Json, longest: int) -> str:
        """``value`` when it is a text of 1 to ``longest`` characters, else a fault and ""."""
        if not isinstance(value, str) or not value.strip():
            self.faults.append(f"{where}: '{key}' must be a text that is not empty")
            return ""
        if len(value) > longest:
            self.faults.append(f"{where}: '{key}' has {len(value)} characters, at most {longest} are allowed")
        return value

    def texts(self, where: str, key: str, value: Json) -> list[str]:
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            self.faults.append(f"{where}: '{key}' must be a list of texts")
            return []
        return value


# The kinds' own keys and what they are when the document leaves them out.
_DEFAULTS: Mapping[Kind, Mapping[str, Json]] = {
    # its predicate, examples and what they may hold are for agentos.rules to judge
    Kind.RULE: dict.fromkeys(("on", "when", "enforce", "advice", "replace", "on_error", "examples")),
    Kind.AGENT: {
        "harness": "default",
        "prompt": "default",
        "environment": "default",
        "model": "default",
        "tools": ["*"],
        "skills": ["*"],
        "agents": [],
        "asks": list(ASKS),
        "limits": {},
        "compaction": "digest",
    },
    Kind.ENVIRONMENT: {"sandbox": "auto", "limits": {}},
    Kind.HARNESS: {"command": [], "state": 1},
    Kind.MEMORY: {"state": 1},
    Kind.MODEL: {
        "evolvable": False,
        "model": "",
        "provider": "",
        "parameters": {},
        "fallbacks": [],
        "price": {},
        "context_tokens": 32_768,
    },
}


def settings_of(kind: Kind, document: Mapping[str, Json], notes: ReadingNotes) -> dict[str, Json]:
    """The kind's own keys with defaults filled in; faults and warnings go to ``notes``."""
    defaults = {"evolvable": True, **_DEFAULTS.get(kind, {})}
    settings = {key: document.get(key, value) for key, value in defaults.items()}
    if not isinstance(settings["evolvable"], bool):
        notes.faults.append(f"{DOCUMENT}: 'evolvable' must be true or false")
    for key in ("harness", "prompt", "environment", "sandbox", "model"):
        if key in settings:
            notes.text(DOCUMENT, key, settings[key], NAME_MAX)
    for key in ("tools", "skills", "agents", "asks", "command", "fallbacks"):
        if key in settings:
            notes.texts(DOCUMENT, key, settings[key])
    if kind is Kind.AGENT:
        _examine_agent(settings, notes)
    if "limits" in settings:
        _examine_limits(settings["limits"], notes)
    if kind is Kind.MODEL:
        _examine_model(settings, notes)
    if "state" in settings:
        _examine_state(settings["state"], notes)
    notes.warnings += [
        f"{DOCUMENT}: unknown key '{key}'" for key in document if key not in {*defaults, "description"}
    ]
    return settings


def _examine_agent(settings: Mapping[str, Json], notes: ReadingNotes) -> None:
    asks = settings["asks"] if isinstance(settings["asks"], list) else []
    notes.faults += [
        f"{DOCUMENT}: '{asked}' cannot be asked; 'asks' may hold {', '.join(ASKS)}"
        for asked in asks
        if asked not in ASKS
    ]
    if settings["compaction"] not in COMPACTIONS:
        notes.faults.append(f"{DOCUMENT}: 'compaction' must be one of {', '.join(COMPACTIONS)}")


def _examine_state(state: Json, notes: ReadingNotes) -> None:
    if not isinstance(state, int) or isinstance(state, bool) or state < 1:
        notes.faults.append(
            f"{DOCUMENT}: 'state' must be a whole number from 1, the form of memories; found {state!r}"
        )


_PRICE_KEYS = ("input_per_mtok", "output_per_mtok", "cached_per_mtok")


def _examine_model(settings: Mapping[str, Json], notes: ReadingNotes) -> None:
    if settings["evolvable"] is not False:
        notes.faults.append(f"{DOCUMENT}: a model never evolves: leave 'evolvable' out")
    if not isinstance(settings["provider"], str) or len(settings["provider"]) > NAME_MAX:
        notes.faults.append(f"{DOCUMENT}: 'provider' must be the name of a [providers.NAME] of the settings")
    if not isinstance(settings["parameters"], dict):
        notes.faults.append(f"{DOCUMENT}: 'parameters' must be a table")
    context = settings["context_tokens"]
    if not isinstance(context, int) or isinstance(context, bool) or not 512 <= context <= 1 << 24:
        notes.faults.append(f"{DOCUMENT}: 'context_tokens' must be a whole number from 512")
    price = settings["price"]
    if not isinstance(price, dict):
        notes.faults.append(f"{DOCUMENT}: 'price' must be a table")
        return
    if price and not {"input_per_mtok", "output_per_mtok"} <= price.keys():
        notes.faults.append(f"{DOCUMENT}: 'price' needs 'input_per_mtok' and 'output_per_mtok'")
    for key, value in price.items():
        if key not in _PRICE_KEYS:
            notes.faults.append(f"{DOCUMENT}: price '{key}' is not one of {', '.join(_PRICE_KEYS)}")
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e6:
            notes.faults.append(f"{DOCUMENT}: price '{key}' must be US dollars for a million tokens")


def _examine_limits(limits: Json, notes: ReadingNotes) -> None:
    names = [item.name for item in fields(Limits)]
    if not isinstance(limits, dict):
        notes.faults.append(f"{DOCUMENT}: 'limits' must be a table")
        return
    for key, value in limits.items():
        if key not in names:
            notes.faults.append(f"{DOCUMENT}: limit '{key}' is not one of {', '.join(names)}")
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1 << 40:
            notes.faults.append(f"{DOCUMENT}: limit '{key}' must be a number from 0")
