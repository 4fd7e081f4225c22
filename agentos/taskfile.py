"""Task documents: YAML or JSON that a person wrote, into tasks the ledger can hold.

A file is at most ``MAX_BYTES`` and holds one task, a list of tasks, or ``tasks: [...]``. What could
make a parser dangerous or surprising is refused here: YAML aliases (a bomb is a few lines of
them), tags, keys given twice, keys that are no text, NaN, deep nesting. Scalars follow YAML 1.2's
core schema, so ``no``, ``12:30`` and ``2026-01-31`` stay text.
"""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from agentos.checks import told
from agentos.domain import (
    Call,
    Check,
    Destination,
    Effect,
    InputFile,
    InputSource,
    Json,
    Limits,
    Task,
    Trigger,
)
from agentos.errors import Invalid, NotFound
from agentos.plugins.checks import faults as check_faults
from agentos.schedule_document import (
    DestinationPart,
    InputPart,
    WatchPart,
    circle_faults,
    destinations_of,
    inputs_of,
    trigger_of,
    zone_fault,
)

MAX_BYTES = 1 << 20
MAX_TASKS = 10_000
NAME_MAX = 80  # of a name that is made from the goal
_MAX_DEPTH = 40
_MAX_NODES = 200_000
_NOTHING: Mapping[str, Json] = {}

# ``- contains: total`` is short for ``- contains: {value: total}``.
_SHORT = {"equals": "value", "contains": "value", "regex": "pattern", "python": "code", "file": "path"}


# --- text to JSON value -----------------------------------------------------------------------


def parse(text: str, what: str) -> Json:
    """The JSON value that a YAML or JSON text stands for; raises Invalid with where and why."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
            _refuse_depth(value)
            return value
        except json.JSONDecodeError:
            pass  # YAML's flow style begins the same way
        except RecursionError:
            raise Invalid(what, ["it is nested too deeply"]) from None
        except ValueError as error:
            raise Invalid(what, [str(error)]) from None
    try:
        return _Builder().build(text)
    except yaml.YAMLError as error:
        said = str(error).replace('in "<unicode string>", ', "at ").replace('in "<byte string>", ', "at ")
        raise Invalid(what, [" ".join(f"it is neither YAML nor JSON: {said}".split())]) from None
    except ValueError as error:
        raise Invalid(what, [str(error)]) from None


def _unique(pairs: list[tuple[str, Json]]) -> Json:
    found: dict[str, Json] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key '{key}' is given twice")
        found[key] = value
    return found


def _refuse_depth(value: Json) -> None:
    level, depth = [value], 0
    while level := [
        inner
        for item in level
        if isinstance(item, list | dict)
        for inner in (item.values() if isinstance(item, dict) else item)
    ]:
        depth += 1
        if depth > _MAX_DEPTH:
            raise ValueError(f"it is nested more than {_MAX_DEPTH} deep")


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not allowed: use null, or text")


class _Builder:
    """Builds the value from the parser's events, because only there an alias can still be seen."""

    def __init__(self) -> None:
        self._open: list[Any] = []  # containers, outermost first
        self._keys: list[str | None] = []  # the key that waits for its value, by container
        self._root: list[Json] = []

    def build(self, text: str) -> Json:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        for count, event in enumerate(yaml.parse(text, Loader=loader)):
            line = f"line {event.start_mark.line + 1}" if event.start_mark else ""
            if count > _MAX_NODES:
                raise ValueError(f"it has more than {_MAX_NODES} values")
            if isinstance(event, yaml.AliasEvent):
                raise ValueError(f"{line}: aliases (*name) are not allowed")
            if (tag := getattr(event, "tag", None)) is not None:
                raise ValueError(f"{line}: tags ({tag}) are not allowed")
            if isinstance(event, yaml.ScalarEvent):
                self._add(_scalar(event, line), line)
            elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                self._start({} if isinstance(event, yaml.MappingStartEvent) else [], line)
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                self._open.pop()
                self._keys.pop()
        if len(self._root) != 1:
            found = f"{len(self._root)} documents" if self._root else "nothing"
            raise ValueError(f"it holds {found}; exactly one document is expected")
        return self._root[0]

    def _start(self, container: Any, line: str) -> None:
        if len(self._open) >= _MAX_DEPTH:
            raise ValueError(f"{line}: it is nested more than {_MAX_DEPTH} deep")
        self._add(container, line)
        self._open.append(container)
        self._keys.append(None)

    def _add(self, value: Json, line: str) -> None:
        if not self._open:
            self._root.append(value)
        elif isinstance(self._open[-1], list):
            self._open[-1].append(value)
        elif self._keys[-1] is not None:
            self._open[-1][self._keys[-1]] = value
            self._keys[-1] = None
        elif not isinstance(value, str):
            raise ValueError(f"{line}: the key {value!r} is no text; put it in quotes")
        elif value in self._open[-1]:
            raise ValueError(f"{line}: the key '{value}' is given twice")
        else:
            self._keys[-1] = value


_NULL = {"", "~", "null", "Null", "NULL"}
_BOOL = {name: name.lower() == "true" for name in ("true", "True", "TRUE", "false", "False", "FALSE")}
_INT = re.compile(r"[-+]?[0-9]{1,4000}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


def _scalar(event: yaml.ScalarEvent, line: str) -> Json:
    text = event.value
    if not event.implicit[0]:  # quoted, or a block of text
        return text
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(f"{line}: {text} is not allowed: use null, or put it in quotes")
    return text


# --- JSON value to drafts ---------------------------------------------------------------------


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _CallPart(_Part):
    # NAME, SKILL/NAME, or a script of a skill: SKILL/scripts/x.py
    tool: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}(/[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}){0,8}$")
    args: dict[str, Any] = Field(default_factory=dict)


_LIMITS = Limits()
_FREE = Limits(steps=200, wall_s=600.0)  # of a task without a call: a model takes its time


class _LimitsPart(_Part):
    steps: int = Field(_LIMITS.steps, ge=1, le=10_000)
    wall_s: float = Field(_LIMITS.wall_s, ge=0.05, le=86_400)
    memory_mb: int = Field(_LIMITS.memory_mb, ge=64, le=1 << 20)
    output_bytes: int = Field(_LIMITS.output_bytes, ge=1, le=4 << 20)
    workspace_mb: int = Field(_LIMITS.workspace_mb, ge=1, le=1 << 14)
    processes: int = Field(_LIMITS.processes, ge=4, le=4096)
    cost_usd: float = Field(_LIMITS.cost_usd, ge=0)
    tokens: int = Field(_LIMITS.tokens, ge=0, le=1 << 40)
    calls: int = Field(_LIMITS.calls, ge=0, le=1 << 20)


class _TaskPart(_Part):
    name: str = Field("", max_length=200)
    goal: str = Field("", max_length=100_000)
    call: _CallPart | None = None
    inputs: list[InputPart] = Field(default_factory=list, max_length=1_000)
    agent: str = Field("default", pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)
    limits: _LimitsPart | None = None
    effects: list[Literal["pure", "read", "write", "external"]] = ["pure", "read", "write"]
    secrets: list[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]] = Field(
        default_factory=list, max_length=100
    )
    checks: list[dict[str, Any]] = Field(default_factory=list, max_length=100)
    schedule: str | None = Field(None, max_length=200)
    timezone: str = Field("", max_length=100)
    missed: Literal["once", "skip"] = "once"
    when_empty: Literal["skip", "run"] = "skip"
    watch: WatchPart | None = None
    deliver: list[DestinationPart] = Field(default_factory=list)

    @field_validator("schedule")
    @classmethod
    def _is_cron(cls, value: str | None) -> str | None:
        if value is not None:
            from croniter import CroniterBadDateError, croniter

            if not croniter.is_valid(value):
                raise ValueError("be a cron line such as '0 7 * * 1-5'")
            try:
                croniter(value).get_next()
            except CroniterBadDateError:
                raise ValueError("come on some day") from None
        return value

    @field_validator("deliver", mode="before")
    @classmethod
    def _one_alone(cls, value: Any) -> Any:
        return [value] if isinstance(value, dict) else value


@dataclass(frozen=True, slots=True)
class Draft:
    """A valid task document, before its input files were taken into the blobs."""

    name: str
    goal: str
    call: Call | None
    files: Mapping[str, Path]  # path in the workspace -> file on this machine
    agent: str
    limits: Limits
    effects: tuple[Effect, ...]
    checks: tuple[Check, ...]
    schedule: str | None
    trees: tuple[InputSource, ...] = ()  # read when it is added
    sources: tuple[InputSource, ...] = ()  # read when it runs
    trigger: Trigger | None = None
    deliver: tuple[Destination, ...] = ()
    secrets: tuple[str, ...] = ()

    def task(self, id: str, inputs: Sequence[InputFile], created_at: datetime) -> Task:
        """The task itself, now that its inputs are known by content."""
        return Task(
            id=id,
            name=self.name,
            goal=self.goal,
            call=self.call,
            inputs=tuple(sorted(inputs, key=lambda file: file.path)),
            agent=self.agent,
            limits=self.limits,
            effects=self.effects,
            checks=self.checks,
            schedule=self.schedule,
            created_at=created_at,
            sources=self.sources,
            trigger=self.trigger,
            deliver=self.deliver,
            secrets=self.secrets,
        )


def read_drafts(path: Path, said: Mapping[str, Json] = _NOTHING) -> list[Draft]:
    """The tasks of a file; inputs are looked up beside it. ``said`` stands over what each task says.

    Raises NotFound, or Invalid with one sentence for each fault. Looks at the size before it reads.
    """
    try:
        facts = path.stat()
    except OSError as error:
        raise NotFound(f"{path}: {error.strerror}; expected a task file in YAML or JSON") from None
    if not stat.S_ISREG(facts.st_mode):
        raise Invalid(str(path), ["it is no regular file; give a YAML or JSON file, or - for standard input"])
    if facts.st_size > MAX_BYTES:
        raise Invalid(str(path), [_too_large(facts.st_size)])
    with path.open("rb") as file:
        return drafts_of(file.read(MAX_BYTES + 1), str(path), path.parent, said)


def drafts_of(data: bytes, what: str, folder: Path, said: Mapping[str, Json] = _NOTHING) -> list[Draft]:
    """The tasks in a document; ``folder`` is where relative paths begin, ``said`` as in ``read_drafts``."""
    if len(data) > MAX_BYTES:
        raise Invalid(what, [_too_large(len(data))])
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Invalid(what, [f"it is not UTF-8 text (byte {error.start})"]) from None
    document = parse(text, what)
    if isinstance(document, dict) and set(document) == {"tasks"}:
        document = document["tasks"]
    items = document if isinstance(document, list) else [document]
    if not 1 <= len(items) <= MAX_TASKS:
        raise Invalid(what, [f"it holds {len(items)} tasks; 1 to {MAX_TASKS} are expected"])
    faults: list[str] = []
    drafts = []
    for number, item in enumerate(items, start=1):
        before = "" if len(items) == 1 else f"task {number}: "
        try:
            drafts.append(_draft({**item, **said} if isinstance(item, dict) else item, folder))
        except Invalid as error:
            faults += [before + fault for fault in error.faults]
    if faults:
        raise Invalid(what, faults[:50])
    return drafts


def checks_of(data: bytes, what: str) -> tuple[Check, ...]:
    """The checks in a document: a list of them, or ``checks: [...]``, as in a task. Raises Invalid."""
    if len(data) > MAX_BYTES:
        raise Invalid(what, [_too_large(len(data))])
    try:
        document = parse(data.decode("utf-8"), what)
    except UnicodeDecodeError as error:
        raise Invalid(what, [f"it is not UTF-8 text (byte {error.start})"]) from None
    if isinstance(document, dict) and set(document) == {"checks"}:
        document = document["checks"]
    items = document if isinstance(document, list) else [document]
    faults: list[str] = []
    found = []
    for number, item in enumerate(items, start=1):
        if isinstance(item, dict):
            found.append(_check(number, item, faults))
        else:
            faults.append(
                f"check {number} is {item!r:.60}; expected a mapping from its kind to its parameters"
            )
    if faults or not found:
        raise Invalid(what, faults or ["it holds no check"])
    return tuple(found)


def _too_large(size: int) -> str:
    return f"it has {size:,} bytes; a task file may have {MAX_BYTES:,} (name big data under 'inputs')"


def _draft(item: Json, folder: Path) -> Draft:
    if not isinstance(item, dict):
        raise Invalid("task", [f"a task is a mapping of keys to values, but this is {item!r:.80}"])
    try:
        json.dumps(item, allow_nan=False, ensure_ascii=False).encode("utf-8")
        part = _TaskPart.model_validate(item)
    except ValidationError as error:
        raise Invalid("task", [_sentence(fault) for fault in error.errors()]) from None
    except ValueError as error:  # lone surrogates, 1e999
        raise Invalid("task", [f"it holds what JSON cannot: {error}"]) from None
    faults: list[str] = []
    if not part.goal and part.call is None:
        faults.append("a task needs a 'goal', a 'call', or both")
    faults += _schedule_faults(part)
    recurs = part.schedule is not None or part.watch is not None
    inputs = inputs_of(part.inputs, folder, faults, recurs=recurs)
    checks = tuple(_check(number, check, faults) for number, check in enumerate(part.checks, start=1))
    trigger = trigger_of(part, folder)
    deliver = destinations_of(part.deliver, folder)
    faults += circle_faults(trigger, deliver)
    if faults:
        raise Invalid("task", faults)
    return Draft(
        name=part.name or _name_of(part),
        goal=part.goal or (f"call {part.call.tool}" if part.call else ""),
        call=Call(part.call.tool, part.call.args) if part.call else None,
        files=inputs.files,
        agent=part.agent,
        limits=_limits_of(part),
        effects=tuple(Effect(name) for name in dict.fromkeys(part.effects)),
        checks=checks,
        schedule=part.schedule,
        trees=tuple(inputs.trees),
        sources=tuple(inputs.live),
        trigger=trigger,
        deliver=deliver,
        secrets=tuple(dict.fromkeys(part.secrets)),
    )


def _schedule_faults(part: _TaskPart) -> list[str]:
    faults = [zone_fault(part.timezone)] if part.timezone else []
    if part.schedule is not None and part.watch is not None:
        faults.append("a task has a 'schedule' or a 'watch', not both; write two tasks")
    if part.schedule is None and (part.timezone or part.missed != "once"):
        faults.append("'timezone' and 'missed' are for a task with a 'schedule'")
    return [fault for fault in faults if fault]


def _limits_of(part: _TaskPart) -> Limits:
    given = part.limits.model_dump(exclude_unset=True) if part.limits else {}
    return replace(_LIMITS if part.call else _FREE, **given)


def _name_of(part: _TaskPart) -> str:
    """What the lists call a task that has no name: its goal's first line, else its tool."""
    line = next(iter(part.goal.strip().splitlines()), "")
    if line:
        return line if len(line) <= NAME_MAX else f"{line[: NAME_MAX - 1]}…"
    return part.call.tool if part.call else ""


def _sentence(fault: Any) -> str:
    key = ".".join(str(part) for part in fault["loc"])
    if fault["type"] in ("extra_forbidden", "model_type"):
        unknown = fault["type"] == "extra_forbidden"
        table = _TaskPart if unknown and "." not in key else _TABLES.get(fault["loc"][0], _TaskPart)
        keys = ", ".join(field.alias or name for name, field in table.model_fields.items())
        if unknown:
            return f"'{key}' is no known key (there are: {keys})"
        return f"'{key}' is {fault['input']!r:.60}, but it should be a mapping (its keys: {keys})"
    if fault["type"] == "missing":
        return f"'{key}' is missing"
    what = f"it should {told(fault)}" if fault["type"] == "value_error" else told(fault)
    return f"'{key}' is {fault['input']!r:.60}, but {what}"


_TABLES: Mapping[str, type[BaseModel]] = {
    "call": _CallPart,
    "deliver": DestinationPart,
    "inputs": InputPart,
    "limits": _LimitsPart,
    "watch": WatchPart,
}


def _check(number: int, check: dict[str, Json], faults: list[str]) -> Check:
    if len(check) != 1:
        faults.append(f"check {number} must have one key, its kind; found {', '.join(check) or 'none'}")
        return Check("", {})
    ((kind, spec),) = check.items()
    if not isinstance(spec, dict) and kind in _SHORT:
        spec = {_SHORT[kind]: spec}
    if not isinstance(spec, dict):
        faults.append(f"check {number}: '{kind}' needs a mapping of its parameters, not {spec!r:.60}")
        return Check(kind, {})
    faults += [f"check {number}: {fault}" for fault in check_faults(kind, spec)]
    return Check(kind, spec)
