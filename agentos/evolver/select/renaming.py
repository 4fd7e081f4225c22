"""The same work under other names: what identifies a task must not be what an edit goes by.

Of a task that names its call, the goal and the names of input files are exchanged for others, much longer or
shorter, in the arguments and the checks alike. A file keeps its folder and its ending, and files keep their
order. One that is spoken of in a way that cannot be exchanged keeps its name. The new names follow from the
home's key and the work, so that no edit can know them, and a trial can be made again.

The order of rows is left alone: no check says whether it matters.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import shake_256
from pathlib import PurePosixPath
from struct import unpack
from typing import TYPE_CHECKING

from agentos.domain import Call, Check, InputFile, Json, Task, Trial, exchanged, mapped, record_with
from agentos.errors import NotFound

if TYPE_CHECKING:
    from agentos.evolver.select import RenamingContext

_FIRST = [
    "amber",
    "autumn",
    "broad",
    "calm",
    "cedar",
    "clear",
    "coastal",
    "copper",
    "distant",
    "early",
    "eastern",
    "gentle",
    "golden",
    "grey",
    "harbour",
    "inner",
    "late",
    "linen",
    "lower",
    "maple",
    "meadow",
    "mild",
    "narrow",
    "north",
    "olive",
    "open",
    "outer",
    "plain",
    "quiet",
    "river",
    "round",
    "second",
    "silver",
    "small",
    "southern",
    "spring",
    "stone",
    "summer",
    "upper",
    "valley",
    "western",
    "winter",
]
_SECOND = [
    "annex",
    "batch",
    "book",
    "copy",
    "draft",
    "extract",
    "file",
    "folder",
    "index",
    "list",
    "log",
    "notes",
    "page",
    "part",
    "record",
    "sheet",
    "table",
]
_SHORT_NAMES = [word for word in (*_FIRST, *_SECOND) if len(word) <= 5]
_ENDS = [f"{first}-{second}" for first in _FIRST for second in _SECOND]
_LONG_NAMES = [f"{end}-of-{_SECOND[place % len(_SECOND)]}" for place, end in enumerate(_ENDS)]
_LONG = 60  # characters of a goal
_WORD = r"[A-Za-z0-9]"


@dataclass(frozen=True, slots=True)
class RenamedTask:
    """A task under other names. ``names`` maps each new text to the one that it stands for."""

    task: Task
    names: Mapping[str, str]

    def as_before(self, value: Json) -> Json:
        """A value that such a run gave, in the names of the task as it was asked."""
        return mapped(value, lambda text: exchanged(text, self.names))


def in_other_names(parts: RenamingContext, task: Task) -> RenamedTask | None:
    """The task as renamed trials ask for it; None where it is always asked in its own."""
    key = hmac.digest(parts.consent_key, f"renamed:{task.key}".encode(), "sha256")
    try:
        return renamed(task, parts.blobs.get, key, long=bool(key[0] % 2))
    except NotFound:
        return None  # an input is gone: the trial itself will say so


def unlike(trials: Iterable[Trial]) -> frozenset[str]:
    """The tasks that did not end alike in all of these trials of one side."""
    return frozenset(task_id for task_id, (own, other) in _ends(trials).items() if len(own | other) > 1)


def bound_to_names(trials: Iterable[Trial]) -> frozenset[str]:
    """Those of them that end one way under their own names, and another under others."""
    ends = _ends(trials).items()
    return frozenset(
        task_id for task_id, (own, other) in ends if len(own) == len(other) == 1 and own != other
    )


def _ends(trials: Iterable[Trial]) -> dict[str, tuple[set[object], set[object]]]:
    """By task, how its trials under its own names and under others ended."""
    found: dict[str, tuple[set[object], set[object]]] = {}
    for trial in trials:
        fault = trial.outcome.fault
        end = (trial.outcome.result, trial.answer_sha256, fault and (fault.type, fault.where))
        found.setdefault(trial.task_id, (set(), set()))[trial.renamed].add(end)
    return found


def renamed(task: Task, content: Callable[[str], bytes], key: bytes, *, long: bool) -> RenamedTask | None:
    """The task under names that follow from ``key``; None for one whose goal is read by a model.

    Names of files are ``long`` or short, whatever those were that they had. ``content`` gives a blob by its digest.
    """
    if task.call is None:
        return None
    names = dict(_new_names(task, content, key, long=long))
    spoken = {**names, **_short(task, names)}
    files = tuple(record_with(item, path=names.get(item.path, item.path)) for item in task.inputs)
    call = Call(task.call.tool, mapped(dict(task.call.args), lambda text: exchanged(text, spoken)))
    checks = tuple(
        Check(check.kind, mapped(dict(check.spec), lambda text: exchanged(text, spoken)))
        for check in task.checks
    )
    title = " ".join(_drawn(key, "goal", 3, long=len(task.goal) < _LONG))
    new = record_with(task, name=title, goal=f"See to {title}.", call=call, inputs=files, checks=checks)
    return RenamedTask(new, {new: old for old, new in spoken.items()})


def _new_names(
    task: Task, content: Callable[[str], bytes], key: bytes, *, long: bool
) -> Iterator[tuple[str, str]]:
    """Old path and new path of each input that can be named otherwise."""
    files = sorted((item for item in task.inputs if _may_change(item, task, content)), key=_stem)
    if not files:
        return
    lengths = {len(_stem(item)) for item in files}
    said = {text for text in _texts(_said(task))}
    drawn = [
        word
        for word in _drawn(key, "file", len(_LONG_NAMES), long=long)
        if len(word) not in lengths and not any(word in text for text in said)
    ]
    for item, stem in zip(files, sorted(drawn[: len(files)]), strict=False):
        path = PurePosixPath(item.path)
        yield item.path, str(path.with_name(stem + "".join(path.suffixes)))


def _may_change(item: InputFile, task: Task, content: Callable[[str], bytes]) -> bool:
    """Whether every mention of the file is its path or its name, and no file speaks of it."""
    path = PurePosixPath(item.path)
    alike = [other for other in task.inputs if PurePosixPath(other.path).name == path.name]
    if not _stem(item) or len(alike) > 1:
        return False
    rest = _exchanged_all(_said(task), {item.path: "", path.name: ""})
    left = re.compile(rf"(?<!{_WORD}){re.escape(_stem(item))}(?!{_WORD})", re.IGNORECASE)
    if any(left.search(text) for text in _texts(rest)):
        return False
    return not any(path.name.encode() in content(other.sha256) for other in task.inputs)


def _stem(item: InputFile) -> str:
    path = PurePosixPath(item.path)
    return path.name.removesuffix("".join(path.suffixes))


def _said(task: Task) -> Json:
    """All of a task in which a name may stand and count; the goal is exchanged as a whole."""
    args = dict(task.call.args) if task.call else {}
    return [args, [dict(check.spec) for check in task.checks]]


def _short(task: Task, names: Mapping[str, str]) -> dict[str, str]:
    """The same for the names alone, without their folders."""
    return {PurePosixPath(old).name: PurePosixPath(new).name for old, new in names.items()}


@lru_cache(maxsize=64)  # each stage and each round asks again for the tasks of one evolution; 6 kB each
def _drawn(key: bytes, what: str, most: int, *, long: bool) -> tuple[str, ...]:
    """The first names in an order that follows from the key; ``long`` ones have three words, the others one short one."""
    # Eight bytes for each word, of one stream that nobody can tell who has not the key.
    words = [*(_LONG_NAMES if long else _SHORT_NAMES)]
    most = min(most, len(words))
    stream = shake_256(f"{what}:".encode() + key).digest(8 * most)
    for place, number in enumerate(unpack(f">{most}Q", stream)):
        other = place + number % (len(words) - place)
        words[place], words[other] = words[other], words[place]
    return tuple(words[:most])


# --- texts in JSON ------------------------------------------------------------------------------


def _exchanged_all(value: Json, names: Mapping[str, str]) -> Json:
    return mapped(value, lambda text: exchanged(text, names))


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield name
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
