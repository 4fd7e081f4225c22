"""The parts of a task document that tie it to a person's days: inputs, what starts it, where results go."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from agentos.domain import Destination, InputSource, Trigger, Watch
from agentos.errors import shown
from agentos.sources import fits_workspace, is_glob, regex, source_of

PLACEHOLDERS = ("date", "time", "task", "run", "file", "stem", "ext", "input")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


def _one_path(value: str) -> str:
    if "\0" in value:
        raise ValueError("hold no zero bytes")
    return value


Folder = Annotated[str, AfterValidator(_one_path)]


class InputPart(_Part):
    """An input, or its path alone."""

    path: str = ""
    place: str | None = Field(None, alias="as")
    live: bool | None = None
    newer_than: Literal["last_run", "last_pass", ""] = ""
    max_files: int = Field(1_000, ge=1, le=100_000)
    max_bytes: int = Field(0, ge=0, le=1 << 34)
    exclude: list[str] = Field(default_factory=list, max_length=100)

    @model_validator(mode="before")
    @classmethod
    def _path_alone(cls, given: Any) -> Any:
        return {"path": given} if isinstance(given, str) else given


class WatchPart(_Part):
    """A folder whose arrivals start copies of the task, or its path alone."""

    folder: Folder = Field(min_length=1)
    pattern: str = Field("*", min_length=1)
    settle_s: float = Field(2.0, ge=0.1, le=3600)
    existing: bool = False

    @model_validator(mode="before")
    @classmethod
    def _folder_alone(cls, given: Any) -> Any:
        return {"folder": given} if isinstance(given, str) else given


class DestinationPart(_Part):
    """Where a result goes."""

    folder: Folder = ""
    name: str = ""
    file: str = ""
    command: list[str] = Field(default_factory=list, max_length=100)
    timeout_s: float = Field(60.0, gt=0, le=3600)
    replace: bool = False
    when: Literal["passed", "always"] = "passed"

    @field_validator("name")
    @classmethod
    def _is_name(cls, value: str) -> str:
        unknown = [name for name in _PLACEHOLDER.findall(value) if name not in PLACEHOLDERS]
        if unknown or set("{}") & set(_PLACEHOLDER.sub("", value)):
            raise ValueError(f"use only {', '.join(f'{{{name}}}' for name in PLACEHOLDERS)} in braces")
        if value and not is_below(filled(value, dict.fromkeys(PLACEHOLDERS, "x"))):
            raise ValueError("be a path below the folder, without '..' and without a leading dot")
        return value

    @model_validator(mode="after")
    def _goes_somewhere(self) -> DestinationPart:
        if not self.folder and not (self.command and self.command[0]):
            raise ValueError("name a folder or a command")
        if self.command and any("\0" in word for word in self.command):
            raise ValueError("hold no zero bytes")
        return self


def is_below(name: str) -> bool:
    """Whether a file of this name lies below the folder that it is put into, and is not hidden."""
    parts = PurePosixPath(name).parts
    return fits_workspace(name) and not any(part.startswith(".") for part in parts)


def filled(template: str, values: Mapping[str, str]) -> str:
    """The template with its placeholders replaced, each once."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), template)


def zone_fault(name: str) -> str:
    """What is wrong with the name of a time zone, "" if nothing."""
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # also a name that is a folder of the database
        return f"'timezone' is {shown(name)}, but it should be a name such as 'Europe/Berlin'"
    return ""


@dataclass(slots=True)
class Inputs:
    """What is read now (single files by their place, and trees), and what when the task runs."""

    files: dict[str, Path] = field(default_factory=dict)
    trees: list[InputSource] = field(default_factory=list)
    live: list[InputSource] = field(default_factory=list)


def inputs_of(parts: Sequence[InputPart], folder: Path, faults: list[str], *, recurs: bool) -> Inputs:
    """The inputs of a document; adds a sentence to ``faults`` for each that cannot be one."""
    found = Inputs()
    for part in parts:
        if not part.path or "\0" in part.path:
            faults.append("an input names no file; write a path, or {path: …, as: …}")
            continue
        source = _source(part, folder)
        at = Path(source.path)
        tree = at.is_dir() or (is_glob(source.path) and not at.exists())
        single = source.place if not tree else source.place or "x"
        if not fits_workspace(single):
            faults.append(f"the input '{part.path}' cannot stand in the workspace as {source.place!r}")
        elif part.newer_than and not (recurs and part.live is not False):
            faults.append(f"the input '{part.path}': newer_than needs a schedule, and a live input")
        elif recurs if part.live is None else part.live:
            found.live.append(source)
        elif tree:
            found.trees.append(source)
        elif source.place in found.files:
            faults.append(
                f"two inputs would stand in the workspace as '{source.place}'; rename one with 'as'"
            )
        elif not at.is_file():
            faults.append(f"the input '{part.path}' is no file (looked for {at})")
        else:
            found.files[source.place] = at
    return found


def _source(part: InputPart, folder: Path) -> InputSource:
    given = source_of(part.path, folder, part.place)
    return InputSource(
        given.path, given.place, part.newer_than, part.max_files, part.max_bytes, tuple(part.exclude)
    )


def destinations_of(parts: Sequence[DestinationPart], folder: Path) -> tuple[Destination, ...]:
    """Where results go; folders absolute."""
    return tuple(
        Destination(
            folder=source_of(part.folder, folder, "").path if part.folder else "",
            name=part.name,
            file=part.file,
            command=tuple(part.command),
            timeout_s=part.timeout_s,
            replace=part.replace,
            when=part.when,
        )
        for part in parts
    )


def trigger_of(document: Any, folder: Path) -> Trigger | None:
    """``document`` has timezone, missed, when_empty and watch; None when all of them are as they always were."""
    watch, part = None, document.watch
    if part is not None:
        watch = Watch(source_of(part.folder, folder, "").path, part.pattern, part.settle_s, part.existing)
    trigger = Trigger(document.timezone, document.missed, document.when_empty, watch)
    return trigger if trigger != Trigger() else None


def circle_faults(trigger: Trigger | None, destinations: Sequence[Destination]) -> list[str]:
    """Where a result would arrive in the watched folder and start the next run."""
    watch = trigger.watch if trigger is not None else None
    faults = []
    for destination in destinations if watch is not None else ():
        assert watch is not None
        name = destination.name or destination.file.rpartition("/")[2] or "x.txt"
        path = PurePosixPath(destination.folder, filled(name, dict.fromkeys(PLACEHOLDERS, "x")))
        below = destination.folder and path.is_relative_to(watch.folder)
        if below and re.fullmatch(regex(watch.pattern), str(path.relative_to(watch.folder))):
            faults.append(
                f"'deliver' puts results where 'watch' looks ({watch.folder}, {watch.pattern}); name another folder, "
                "or a pattern that they do not match"
            )
    return faults
