"""What records are made with, and what they name: ids, the one byte form that is hashed; resources, their versions, snapshots.

A record is a dataclass of the standard library, whose methods are compiled when one is called.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import FrozenInstanceError, is_dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

# A JSON value. Not the recursive union: every reader checks what it got (it often comes from a
# sandbox), and the union would only add casts. Records treat one as immutable.
Json: TypeAlias = Any

R = TypeVar("R")
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u


def new_id(prefix: str) -> str:
    """``prefix-`` and 13 characters: eight that grow with time (1 ms apart), five random."""
    number = (time.time_ns() // 1_000_000 & (1 << 40) - 1) << 25 | int.from_bytes(os.urandom(4)) >> 7
    letters = "".join(_ALPHABET[number >> shift & 31] for shift in range(60, -1, -5))
    return f"{prefix}-{letters}"


def json_encoder(
    *, sort_keys: bool = False, ensure_ascii: bool = True, default: Callable[[Any], object] | None = None
) -> Callable[[object], str]:
    """What makes JSON text without spaces of a value: as ``json.dumps``, with all that it makes anew each time made once.

    That takes as long as a short text itself. No value may hold itself.
    """
    encoder = json.JSONEncoder(
        sort_keys=sort_keys, ensure_ascii=ensure_ascii, separators=(",", ":"), default=default
    )
    if (make := getattr(json.encoder, "c_make_encoder", None)) is None:
        return encoder.encode
    quoted = getattr(json.encoder, "encode_basestring_ascii" if ensure_ascii else "encode_basestring")
    parts = make(None, encoder.default, quoted, None, ":", ",", sort_keys, False, True)
    return lambda value: "".join(parts(value, 0))


def canonical(value: object) -> bytes:
    """The one byte form of a record or JSON value: sorted keys, no spaces, UTF-8. Hash this."""
    return _encode(value).encode("utf-8", "surrogatepass")


def values_of(record: Any) -> dict[str, Any]:
    """A record's fields by name, in their order; records in them are left as they are."""
    kind = type(record)
    if (get := _GETTERS.get(kind)) is None:
        names = kind.__dataclass_fields__
        # One display, compiled once for the kind: half the time of getting the values and then pairing them with names.
        get = eval(f"lambda record: {{{', '.join(f'{name!r}: record.{name}' for name in names)}}}")  # noqa: S307
        _GETTERS[kind] = get
    return get(record)


def record_with(record: R, **new: Any) -> R:
    """As ``dataclasses.replace`` of a record, in a third of the time: a trial and its job are made by some of it."""
    return type(record)(**{**values_of(record), **new})


_GETTERS: dict[type, Callable[[Any], dict[str, Any]]] = {}  # by kind of record


def _plain(item: object) -> object:
    if is_dataclass(item) and not isinstance(item, type):
        return values_of(item)
    if isinstance(item, datetime):
        return item.isoformat()
    if isinstance(item, frozenset | set):
        return sorted(str(member) for member in item)
    raise TypeError(f"{type(item).__name__} has no canonical form")


_encode = json_encoder(sort_keys=True, ensure_ascii=False, default=_plain)


def digest(value: object) -> str:
    """SHA-256 of the canonical form (or of the bytes themselves), 64 hex digits."""
    return hashlib.sha256(value if isinstance(value, bytes) else canonical(value)).hexdigest()


def call_key(tool: str, args: Json) -> str:
    """Equal calls have equal keys."""
    return digest([tool, args])


def content_sha256(files: Mapping[str, bytes]) -> str:
    """Identity of files by their paths, as a tool finds it in the box."""
    lines = (f"{path}\n{hashlib.sha256(files[path]).hexdigest()}\n" for path in sorted(files))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: Any = None, /, **options: Any) -> Any:
        """The standard library's, but of a frozen record with slots the methods are made when one of them is called.

        They are texts that are compiled, six for each class. A command makes few of some hundred records, and took
        a quarter of its time to compile them all.
        """
        if options != {"frozen": True, "slots": True}:
            return dataclasses.dataclass(cls, **options)
        return _make_record


def _make_record(plain: type) -> Any:
    """A frozen record with slots, whose methods are compiled later. None that the class has itself is replaced."""
    # a class that compares by itself has a None for its hash
    later = [name for name in ("__init__", "__repr__", "__eq__", "__hash__") if vars(plain).get(name) is None]
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(plain)
    for name in later:
        setattr(made, name, _late_method(made, name, later))
    made.__setattr__, made.__delattr__, made.__setstate__ = _refuse_to_set, _refuse_to_delete, _restore
    return made


def _late_method(record: Any, called: str, later: Iterable[str]) -> Callable[..., Any]:
    """Stands where the method ``called`` will; puts all of ``later`` in their places, as a twin of the class has them."""

    def first(self: Any, *values: Any, **named: Any) -> Any:
        fields = record.__dataclass_fields__
        body = {"__annotations__": {name: field.type for name, field in fields.items()}, **fields}
        for name in ("__module__", "__qualname__", "__doc__", "__post_init__"):
            if hasattr(record, name):
                body[name] = getattr(record, name)
        twin: Any = dataclasses.dataclass(frozen=True, init=False)(type(record.__name__, (), body))
        made = {**vars(twin), "__init__": _init(record)}
        for name in later:
            setattr(record, name, made[name])
        return getattr(record, called)(self, *values, **named)

    return first


def _init(record: Any) -> Callable[..., None]:
    """As the standard library's, but each value goes into its slot at once and not by its name: half the time."""
    known: dict[str, Any] = {"unset": object()}
    given, named, lines = ["self"], ["*"], []
    for name, field in record.__dataclass_fields__.items():
        if not field.init:
            raise TypeError(f"{record.__name__}.{name}: a record is given all of its fields")
        known[f"set_{name}"], default, value = getattr(record, name).__set__, "", name
        if field.default is not dataclasses.MISSING:
            known[f"default_{name}"], default = field.default, f"=default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            known[f"make_{name}"], default = field.default_factory, "=unset"
            value = f"make_{name}() if {name} is unset else {name}"
        (named if field.kw_only else given).append(name + default)
        lines.append(f"\n set_{name}(self, {value})")
    if hasattr(record, "__post_init__"):
        lines.append("\n self.__post_init__()")
    head = ", ".join(given + (named if len(named) > 1 else []))
    exec(f"def __init__({head}):{''.join(lines) or ' pass'}", known)  # noqa: S102 - names of fields alone
    made: Callable[..., None] = known["__init__"]
    made.__qualname__ = f"{record.__qualname__}.__init__"
    return made


def _refuse_to_set(record: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(record: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _restore(record: object, state: tuple[None, Mapping[str, object]]) -> None:
    """From a pickle or for a copy."""
    for name, value in state[1].items():
        object.__setattr__(record, name, value)


class Kind(StrEnum):
    """What may evolve."""

    PROMPT = "prompt"
    AGENT = "agent"
    TOOL = "tool"
    SKILL = "skill"
    MEMORY = "memory"
    ENVIRONMENT = "environment"
    HARNESS = "harness"
    MODEL = "model"
    RULE = "rule"


KINDS = tuple(sorted(Kind))


class Effect(StrEnum):
    """What a tool does to the world, as its author declares it."""

    PURE = "pure"
    READ = "read"
    WRITE = "write"
    EXTERNAL = "external"


class Tier(StrEnum):
    """How far an edit reaches; computed from the paths it touches, never declared."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


TIER_OF: Mapping[Kind, Tier] = {
    Kind.MEMORY: Tier.LOW,
    Kind.PROMPT: Tier.LOW,
    Kind.SKILL: Tier.MEDIUM,
    Kind.TOOL: Tier.MEDIUM,
    Kind.AGENT: Tier.HIGH,
    Kind.ENVIRONMENT: Tier.HIGH,
    Kind.HARNESS: Tier.HIGH,
    Kind.MODEL: Tier.HIGH,
    Kind.RULE: Tier.HIGH,
}

RESOURCE_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True, order=True)
class ResourceId:
    """``kind/name``: also the resource's directory in the registry."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Version:
    """One immutable state of a resource."""

    resource: ResourceId
    number: str  # semantic version, for display and tags
    commit: str
    digest: str  # git tree id of the resource's directory; "" when retired
    parent: str | None  # number of the version it came from
    reason: str  # first line of the commit message
    created_at: datetime
    origin: str  # seed, edit, import, upgrade, evolution, revert, pin, retire
    evolution: str | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of the whole registry that a run executes against."""

    commit: str
    tree: str


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A resource that a search in a snapshot found. Scores of one search compare, those of two do not."""

    resource: ResourceId
    score: float


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that stands in the workspace when the run starts."""

    path: str  # relative, POSIX
    sha256: str  # of the blob
    size: int


_TIERS = tuple(Tier)


def tier_of(paths: Iterable[str]) -> Tier:
    """The highest tier of the kinds that the paths belong to; anything unknown is high, and so is nothing."""
    paths = list(paths)
    kinds = {path.split("/")[0] for path in paths}
    tiers = [TIER_OF[Kind(kind)] if kind in KINDS else Tier.HIGH for kind in kinds]
    if any(path.startswith("skill/") and path.split("/")[2:3] == ["rules"] for path in paths):
        tiers.append(Tier.HIGH)  # what runs are held to
    if any(path.endswith("/wheels.lock") for path in paths):
        tiers.append(Tier.HIGH)  # whose packages run here is a person's to say
    return max(tiers, key=_TIERS.index, default=Tier.HIGH)


def folder_of(path: str) -> str:
    """``kind/name`` of the resource that this registry path lies in."""
    return "/".join(path.split("/")[:2])


def is_memory(path: str) -> bool:
    """Whether this registry path is the text of a memory."""
    return path.startswith(f"{Kind.MEMORY.value}/") and path.endswith("/memory.md")


_RULES_FOLDER = "rules"  # of a skill, beside tools/
_RULE_SUFFIXES = (".toml", ".yaml", ".yml")
_RULE_PLACES = (f"{Kind.RULE}/", f"{Kind.SKILL}/")


def is_rule_file(path: str) -> bool:
    """Whether the registry path is a rule's document. No box ever sees one."""
    # most are spared being taken apart
    if not path.startswith(_RULE_PLACES) or not path.endswith(_RULE_SUFFIXES):
        return False
    parts = PurePosixPath(path).parts
    if parts[:1] == (Kind.RULE.value,):
        return len(parts) == 3 and parts[2] == "resource.toml"
    return len(parts) == 4 and parts[0] == Kind.SKILL and parts[2] == _RULES_FOLDER


def is_reference(value: Json) -> bool:
    """Whether it stands for a large value that lies in a blob. The ledger stores no other of this form."""
    return isinstance(value, dict) and set(value) == {"blob", "size", "head", "tail"}
