"""Task documents: YAML or JSON that a person wrote, into tasks the ledger can hold.

A file is at most ``MAX_BYTES`` and holds one task, a list of tasks, or ``tasks: [...]``. What could
make a parser dangerous or surprising is refused here: YAML aliases (a bomb is a few lines of
them), tags, keys given twice, keys that are no text, NaN, deep nesting. Scalars follow YAML 1.2's
core schema, so ``no``, ``12:30`` and ``2026-01-31`` stay text.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

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
from agentos.errors import ErrorKind, Invalid, NotFound, shown
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
from agentos.taskfile.text import Lines, parse

MAX_BYTES = 1 << 20
MAX_TASKS = 10_000
INPUTS_MAX = 1_000  # files of a task
NAME_MAX = 80  # of a name that is made from the goal
_NOTHING: Mapping[str, Json] = {}

# ``- contains: total`` is short for ``- contains: {value: total}``.
_SHORT = {"equals": "value", "contains": "value", "regex": "pattern", "python": "code", "file": "path"}


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
    inputs: list[InputPart] = Field(default_factory=list, max_length=INPUTS_MAX)
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

            parts = value.split()
            chance = any(part.lower().startswith("r") for part in parts)  # another time at each look
            # of six fields some programs take the first for seconds, croniter the last: each second of a minute
            if chance or len(parts) not in (1, 5) or not croniter.is_valid(value):
                raise ValueError("be a cron line of five fields such as '0 7 * * 1-5'")
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
        raise Invalid(
            str(path),
            ["it is no regular file; give a YAML or JSON file, or - for standard input"],
            kind=ErrorKind.UNREADABLE,
        )
    if facts.st_size > MAX_BYTES:
        raise Invalid(str(path), [_too_large(facts.st_size)])
    with path.open("rb") as file:
        return drafts_of(file.read(MAX_BYTES + 1), str(path), path.parent, said)


def drafts_of(data: bytes, what: str, folder: Path, said: Mapping[str, Json] = _NOTHING) -> list[Draft]:
    """The tasks in a document; ``folder`` is where relative paths begin, ``said`` as in ``read_drafts``."""
    items = _items(data, what, "tasks", said)
    if not 1 <= len(items) <= MAX_TASKS:
        raise Invalid(what, [f"it holds {len(items)} tasks; 1 to {MAX_TASKS} are expected"])
    faults: list[str] = []
    drafts = []
    for number, (item, lines) in enumerate(items, start=1):
        before = "" if len(items) == 1 else f"task {number}: "
        try:
            drafts.append(_draft({**item, **said} if isinstance(item, dict) else item, folder, lines))
        except Invalid as error:
            faults += [before + fault for fault in error.faults]
    if faults:
        raise Invalid(what, faults[:50])
    return drafts


def checks_of(data: bytes, what: str) -> tuple[Check, ...]:
    """The checks in a document: a list of them, or ``checks: [...]``, as in a task. Raises Invalid."""
    faults: list[str] = []
    found = []
    for number, (item, lines) in enumerate(_items(data, what, "checks"), start=1):
        if isinstance(item, dict):
            found.append(_check(number, item, faults, lines))
        else:
            faults.append(
                f"check {number} is {shown(item)}; expected a mapping from its kind to its parameters"
            )
    if faults or not found:
        raise Invalid(what, faults or ["it holds no check"])
    return tuple(found)


def _items(data: bytes, what: str, key: str, apart: Container[str] = ()) -> list[tuple[Json, Lines]]:
    """What a document holds, one or a list, by itself or below ``key``: each with its lines, but of keys ``apart``."""
    if len(data) > MAX_BYTES:
        raise Invalid(what, [_too_large(len(data))])
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Invalid(what, [f"it is not UTF-8 text (byte {error.start})"]) from None
    document, lines = parse(text, what), Lines(text, apart=apart)
    if isinstance(document, dict) and set(document) == {key}:
        document, lines = document[key], lines.below(key)
    if isinstance(document, list):
        return [(item, lines.below(place)) for place, item in enumerate(document)]
    return [(document, lines)]


def _too_large(size: int) -> str:
    return f"it has {size:,} bytes; a task file may have {MAX_BYTES:,} (name big data under 'inputs')"


def _draft(item: Json, folder: Path, lines: Lines) -> Draft:
    if not isinstance(item, dict):
        raise Invalid("task", [f"a task is a mapping of keys to values, but this is {shown(item, 80)}"])
    try:
        json.dumps(item, allow_nan=False, ensure_ascii=False).encode("utf-8")
        part = _TaskPart.model_validate(item)
    except ValidationError as error:
        raise Invalid(
            "task", [f"{lines.of(*fault['loc'])}{_sentence(fault)}" for fault in error.errors()]
        ) from None
    except ValueError as error:  # lone surrogates, 1e999
        raise Invalid("task", [f"it holds what JSON cannot: {error}"]) from None
    faults: list[str] = []
    if not part.goal.strip() and part.call is None:
        faults.append("a task needs a 'goal', a 'call', or both")
    faults += _schedule_faults(part)
    recurs = part.schedule is not None or part.watch is not None
    inputs = inputs_of(part.inputs, folder, faults, recurs=recurs)
    checks = tuple(
        _check(number, check, faults, lines.below("checks", number - 1))
        for number, check in enumerate(part.checks, start=1)
    )
    trigger = trigger_of(part, folder)
    deliver = destinations_of(part.deliver, folder)
    faults += circle_faults(trigger, deliver)
    if faults:
        raise Invalid("task", faults)
    return Draft(
        name=" ".join(part.name.split()) or _name_of(part),
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
        return f"'{key}' is {shown(fault['input'])}, but it should be a mapping (its keys: {keys})"
    if fault["type"] == "missing":
        return f"'{key}' is missing"
    what = f"it should {told(fault)}" if fault["type"] == "value_error" else told(fault)
    return f"'{key}' is {shown(fault['input'])}, but {what}"


_TABLES: Mapping[str, type[BaseModel]] = {
    "call": _CallPart,
    "deliver": DestinationPart,
    "inputs": InputPart,
    "limits": _LimitsPart,
    "watch": WatchPart,
}


def _check(number: int, check: dict[str, Json], faults: list[str], lines: Lines) -> Check:
    told: list[str] = []
    made = _made_check(check, told)
    faults += [f"{lines.of()}check {number}{fault}" for fault in told]
    return made


def _made_check(check: dict[str, Json], faults: list[str]) -> Check:
    if len(check) != 1:
        faults.append(f" must have one key, its kind; found {', '.join(check) or 'none'}")
        return Check("", {})
    ((kind, spec),) = check.items()
    if not isinstance(spec, dict) and kind in _SHORT:
        spec = {_SHORT[kind]: spec}
    if not isinstance(spec, dict):
        faults.append(f": '{kind}' needs a mapping of its parameters, not {shown(spec)}")
        return Check(kind, {})
    faults += [f": {fault}" for fault in check_faults(kind, spec)]
    return Check(kind, spec)
