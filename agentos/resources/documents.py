"""The keys of ``resource.toml`` for each kind: what may stand there, and what holds when it does not."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import field, fields
from typing import Any

from agentos import frontmatter
from agentos.errors import near_names
from agentos.frontmatter import FrontMatter
from agentos.records.identity import Json, Kind, ResourceId, dataclass
from agentos.records.tasks import Limits

DOCUMENT = "resource.toml"
ASKS = ("recall", "remember", "person")  # what an agent may ask of the kernel beside its tools
COMPACTIONS = ("digest", "model")  # who shortens a past that has become too long
NAME_MAX = 64
DESCRIPTION_MAX = 1_024
FILE_MAX = 1 << 20
RESOURCE_MAX = 8 << 20
FILES_MAX = 500
DEPTH_MAX = 8

PINS_FILE = "registry.toml"

# The file that a resource of the kind cannot do without; also what ``edit`` opens.
MAIN_FILE: Mapping[Kind, str] = {
    Kind.PROMPT: "prompt.md",
    Kind.AGENT: DOCUMENT,
    Kind.TOOL: "tool.py",
    Kind.SKILL: "SKILL.md",
    Kind.MEMORY: "memory.md",
    Kind.ENVIRONMENT: DOCUMENT,
    Kind.HARNESS: "harness.py",  # unless its document names a command
    Kind.MODEL: DOCUMENT,
    Kind.RULE: DOCUMENT,
}


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
    Kind.ENVIRONMENT: {"sandbox": "auto", "labels": [], "limits": {}},
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
    for key in ("tools", "skills", "agents", "asks", "command", "fallbacks", "labels"):
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
    known = {*defaults, "description"}
    notes.warnings += [
        f"{DOCUMENT}: unknown key '{key}'{f'; did you mean {near[0]}?' if (near := near_names(key, known)) else ''}"
        for key in document
        if key not in known
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
    if not _can_be_sent(settings["parameters"]):
        notes.faults.append(f"{DOCUMENT}: 'parameters' must be a table without dates, 'nan' and 'inf'")
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


def _can_be_sent(parameters: Json) -> bool:
    try:
        json.dumps(parameters, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return isinstance(parameters, dict)


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


# --- The form of what is remembered: which one a harness reads, and which one a memory has -------
# Memories are the one thing of a harness' own making that outlives its runs. ``state = N`` in a harness'
# ``resource.toml`` says which form of them it reads, in a memory's which form it has; 1 where nothing is said.
# Read off the documents alone, so that a whole snapshot is looked at for the price of a few small files.


FIRST = 1
CONCERNED = (Kind.AGENT, Kind.HARNESS, Kind.MEMORY)  # whose documents decide whether forms agree
_STATE = re.compile(r"(?m)^state[ \t]*=.*$")


@dataclass(frozen=True, slots=True)
class FormReader:
    """A harness that agents stand on, and the form of memories that it reads."""

    harness: ResourceId
    agents: tuple[str, ...]
    form: int


def document_of(resource: ResourceId) -> str:
    """The registry path of the document that says the form."""
    return f"{resource}/{DOCUMENT}"


def concerned_by(changed: Collection[ResourceId], names: Iterable[ResourceId]) -> list[ResourceId]:
    """Those of ``names`` whose documents may disagree after the change: not memories beside one that changed,
    of which there may be thousands."""
    whole = any(name.kind in CONCERNED and name.kind is not Kind.MEMORY for name in changed)
    return [name for name in names if name.kind is not Kind.MEMORY or whole or name in changed]


def documents_of(
    names: Iterable[ResourceId], files: Callable[[str], Mapping[str, bytes]]
) -> dict[ResourceId, bytes]:
    """Those of ``names`` that decide whether forms agree; ``files`` gives what stands at a registry path."""
    paths = {name: document_of(name) for name in names if name.kind in CONCERNED}
    return {name: files(path).get(path, b"") for name, path in paths.items()}


def form_in(document: bytes) -> int:
    """What the document says, FIRST where it says nothing or nothing that can be read."""
    form = table_of(document).get("state", FIRST)
    return form if isinstance(form, int) and not isinstance(form, bool) and form >= FIRST else FIRST


def with_form(document: str, form: int) -> str:
    """The document with this form in it; raises ValueError where that cannot be written into it."""
    line = f"state = {form}"
    text, count = _STATE.subn(line, document, count=1)
    if not count:  # in front: after a table's head it would be the table's
        text = f"{line}\n{document}"
    if tomllib.loads(text) != {**tomllib.loads(document), "state": form}:
        raise ValueError(f"'{line}' cannot be written into it")
    return text


def readers(documents: Mapping[ResourceId, bytes]) -> list[FormReader]:
    """The harnesses that agents stand on, sorted. Every agent reads every memory."""
    agents: dict[ResourceId, list[str]] = {}
    for resource, document in documents.items():
        if resource.kind is Kind.AGENT:
            name = str(table_of(document).get(Kind.HARNESS.value, "default"))
            agents.setdefault(ResourceId(Kind.HARNESS, name), []).append(resource.name)
    return [
        FormReader(harness, tuple(sorted(agents[harness])), form_in(documents[harness]))
        for harness in sorted(agents)
        if harness in documents
    ]


def disagreements(documents: Mapping[ResourceId, bytes]) -> list[str]:
    """A sentence for each harness that would meet memories of another form than it reads.

    ``documents`` are those of all agents, harnesses and memories of a snapshot.
    """
    return list(_disagreements(documents))


def _disagreements(documents: Mapping[ResourceId, bytes]) -> Iterator[str]:
    forms = {name: form_in(text) for name, text in documents.items() if name.kind is Kind.MEMORY}
    for reader in readers(documents):
        others = [f"{name} (form {form})" for name, form in sorted(forms.items()) if form != reader.form]
        if others:
            agents = ", ".join(reader.agents)
            yield (
                f"{reader.harness} (agent {agents}) reads memories of form {reader.form}, and there is "
                f"{', '.join(others)}: 'state' in {DOCUMENT} says the form, and both must say the same"
            )


def table_of(document: bytes) -> dict[str, Json]:
    """What a document says; nothing where it cannot be read."""
    try:
        return tomllib.loads(document.decode("utf-8-sig"))
    except (ValueError, RecursionError):  # whoever examines the resource says so
        return {}


# --- What a skill's ``SKILL.md`` says of it: refused only where it cannot be read, else what was assumed


_KEYS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
_EVOLVABLE_KEY = "agentos-evolvable"
_LINES_MAX = 500


def examine_skill(name: str, content: bytes, notes: ReadingNotes) -> tuple[str, dict[str, Json]]:
    """Description and settings of the skill whose folder is called ``name``; faults go to ``notes``."""
    try:
        front = frontmatter.read(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        notes.faults.append(f"SKILL.md is not UTF-8 text (byte {error.start})")
        return "", {}
    except ValueError as error:
        notes.faults.append(f"SKILL.md: {error}")
        return "", {}
    said: list[str] = [*front.warnings]
    _examine_name(name, front, said)
    metadata = _metadata(front.values, said)
    unknown = [key for key in front.values if key not in _KEYS]
    said += [f"unknown key '{key}' (put your own under 'metadata')" for key in unknown]
    if front.body.count("\n") > _LINES_MAX:
        said.append(f"the body has more than {_LINES_MAX} lines; move detail to references/")
    notes.warnings += [f"SKILL.md: {warning}" for warning in said]
    tools = None if front.tools is None else list(front.tools)
    return front.description, {"evolvable": _evolvable(metadata, notes), "allowed_tools": tools}


def _examine_name(name: str, front: FrontMatter, said: list[str]) -> None:
    own = front.values.get("name")
    if own is None:
        said.append(f"there is no 'name'; it is called '{name}' as its folder is")
    elif own != name:
        said.append(f"'name' is '{own}', but it is called '{name}' as its folder is")


def _metadata(values: Mapping[str, Any], said: list[str]) -> Mapping[str, Any]:
    metadata = values.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        said.append("'metadata' is no keys and values; it was passed over")
    elif metadata and not all(isinstance(part, str) for pair in metadata.items() for part in pair):
        said.append("values of 'metadata' that are no texts were taken as texts")
    return metadata if isinstance(metadata, dict) else {}


def _evolvable(metadata: Mapping[str, Any], notes: ReadingNotes) -> bool:
    """What cannot be read as yes keeps every evolution away."""
    value = str(metadata.get(_EVOLVABLE_KEY, "true")).strip().lower()
    if value not in ("true", "false"):
        notes.warnings.append(
            f'SKILL.md: \'metadata.{_EVOLVABLE_KEY}\' is not "true" or "false"; it does not evolve'
        )
    return value == "true"
