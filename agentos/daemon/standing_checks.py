"""Checks that a task has without its author's doing: accepted by a person for a name.

What held in all good runs of that name is proposed, and is no check before a person accepts it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import permutations
from typing import Any

from agentos.domain import Check, Feedback, Json, Rating, Result, StandingCheck, Task, digest, new_id
from agentos.errors import NotFound, UserError, to_type
from agentos.evolver.promote.consent import person
from agentos.home import Home
from agentos.ledger.blobs import BlobStore
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger

_RUNS = 200  # newest runs of a name that are looked through
RUNS_MIN = 3  # good runs that something has to hold in
MADE_BY = "invariant"
_MOST = 20
_DEEP = 3  # levels of an answer that are looked at
_NEAR = 1e-6
_TYPES: Mapping[type, str] = {
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


@dataclass(frozen=True, slots=True)
class Invariant:
    """``says`` it to a person; ``id`` is eight hex digits of the check."""

    says: str
    check: Check

    @property
    def id(self) -> str:
        return digest(self.check)[:8]


@dataclass(frozen=True, slots=True)
class ChecksOf:
    """What decides over the tasks of a name, and what could."""

    own: tuple[Check, ...]  # of the newest task of that name
    accepted: tuple[StandingCheck, ...]
    proposed: tuple[Invariant, ...]
    runs: int  # good ones that the proposals were read off


def accepted(reader: Reader, name: str) -> tuple[StandingCheck, ...]:
    """What people accepted for the tasks of a name and did not take back, oldest first."""
    found = reader.find(StandingCheck, task_name=name)
    ended = {item.ends for item in found}
    return tuple(item for item in found if not item.ends and item.id not in ended)


def with_accepted(reader: Reader, task: Task) -> Task:
    """The task, with the checks that people accepted for its name beside its own."""
    more = [item.check for item in accepted(reader, task.name) if item.check not in task.checks]
    return replace(task, checks=(*task.checks, *more)) if more else task


def checks_for(home: Home, name: str) -> ChecksOf:
    """What is checked in tasks of this name (or of the task with this id), and what held in all good runs."""
    reader = Reader(home.ledger)
    tasks = reader.tasks_named(name)
    if not tasks:
        name = reader.task(reader.resolve("task", name)).name
        tasks = reader.tasks_named(name)
    there = accepted(reader, name)
    blobs = BlobStore(home.blobs)
    bad = {word.run_id for word in reader.find(Feedback, rating=Rating.BAD)}
    runs = [run for task in tasks[-_RUNS:] for run in reader.runs(task.id, Result.PASSED)]
    good = [run for run in runs if run.is_live and run.id not in bad][:_RUNS]
    found = invariants([blobs.expand(run.answer) for run in good])
    taken = [item.check for item in there]
    own = tuple(check for check in tasks[-1].checks if check not in taken)
    return ChecksOf(own, there, tuple(item for item in found if item.check not in taken), len(good))


def name_of(home: Home, text: str) -> str:
    """The name that is meant by a name, or by a task's id. Raises NotFound."""
    reader = Reader(home.ledger)
    return text if reader.tasks_named(text) else reader.task(reader.resolve("task", text)).name


def accept(home: Home, name: str, ids: Sequence[str]) -> list[StandingCheck]:
    """Make proposals checks of all tasks of this name from now on, audited. Raises NotFound."""
    proposed = {item.id: item.check for item in checks_for(home, name).proposed}
    if unknown := [one for one in ids if one not in proposed]:
        raise NotFound(
            f"nothing called {unknown[0]} is proposed: type ", to_type(f"agentos task checks '{name}'")
        )
    made = [_standing(name, proposed[one]) for one in ids]
    return _keep(home, "check.accepted", made)


def take_back(home: Home, name: str, ids: Sequence[str]) -> list[StandingCheck]:
    """End accepted checks; tasks that were added meanwhile keep them. Raises NotFound and UserError."""
    reader = Reader(home.ledger)
    there = {item.id: item for item in accepted(reader, name)}
    if unknown := [one for one in ids if one not in there]:
        raise UserError(
            f"{unknown[0]} is no accepted check of '{name}': type ", to_type(f"agentos task checks '{name}'")
        )
    return _keep(home, "check.ended", [replace(_standing(name, there[one].check), ends=one) for one in ids])


def _standing(name: str, check: Check) -> StandingCheck:
    return StandingCheck(new_id("check"), name, check, person(), datetime.now(UTC))


def _keep(home: Home, event: str, made: list[StandingCheck]) -> list[StandingCheck]:
    with closing(Ledger(home.ledger)) as ledger:
        for item in made:
            ledger.note(event, item.id, {"task": item.task_name, "principal": item.principal}, (item,))
    return made


# --- what held in all good runs ---------------------------------------------------------------


def invariants(answers: Sequence[Json]) -> list[Invariant]:
    """Of distinct good answers, what held in all of them; none of fewer than ``RUNS_MIN``."""
    if len(answers) < RUNS_MIN or len({digest(answer) for answer in answers}) < 2:
        return []
    found = [*_shape(answers), *_sums(answers), *_orders(answers), *_contents(answers)]
    return list({item.id: item for item in found}.values())[:_MOST]


def _python(says: str, code: str) -> Invariant:
    return Invariant(says, Check("python", {"code": f"{code}\n", "made_by": MADE_BY}))


def _shape(answers: Sequence[Json]) -> Iterator[Invariant]:
    """The keys and types that every answer had; the tool's own schema may allow much more."""
    types = {_TYPES.get(type(answer)) for answer in answers}
    if len(types) != 1 or None in types:
        return
    schema: dict[str, Json] = {"type": types.pop()}
    says = f"the answer is of type {schema['type']}"
    if all(isinstance(answer, dict) for answer in answers):
        keys = [key for key in answers[0] if all(key in answer for answer in answers)]
        schema["required"] = keys
        schema["properties"] = {
            key: {"type": kinds.pop()}
            for key in keys
            if len(kinds := {_TYPES.get(type(answer[key])) for answer in answers}) == 1 and None not in kinds
        }
        says += f" with {', '.join(keys) or 'no key'}"
    yield Invariant(says, Check("json_schema", {"schema": schema, "made_by": MADE_BY}))


Path = tuple[str, ...]


def _at(value: Json, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def _code(path: Path) -> str:
    return "answer" + "".join(f"[{key!r}]" for key in path)


def _name(path: Path) -> str:
    return ".".join(path) or "the answer"


def _paths(answers: Sequence[Json], fits: Callable[[Json], bool]) -> list[Path]:
    """Where every answer has such a value."""
    found: list[Path] = []

    def walk(path: Path) -> None:
        values = [_at(answer, path) for answer in answers]
        if all(map(fits, values)):
            found.append(path)
        elif len(path) < _DEEP and all(isinstance(value, dict) for value in values):
            for key in values[0]:
                if all(key in value for value in values):
                    walk((*path, key))

    walk(())
    return found


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _columns(answers: Sequence[Json]) -> Iterator[tuple[str, str, list[list[float]]]]:
    """Lists of numbers, and the numbers under one key of a list of objects: name, code, values by answer."""
    for path in _paths(answers, lambda value: isinstance(value, list)):
        lists = [_at(answer, path) for answer in answers]
        rows = [row for values in lists for row in values]
        if rows and all(map(_is_number, rows)):
            yield _name(path), _code(path), lists
        elif rows and all(isinstance(row, dict) for row in rows):
            for key in rows[0]:
                if all(_is_number(row.get(key)) for row in rows):
                    code = f"[row[{key!r}] for row in {_code(path)}]"
                    yield f"{_name(path)}.*.{key}", code, [[row[key] for row in values] for values in lists]


def _sums(answers: Sequence[Json]) -> Iterator[Invariant]:
    numbers = _paths(answers, _is_number)
    for name, code, columns in _columns(answers):
        for path in numbers:
            totals = [_at(answer, path) for answer in answers]
            pairs = list(zip(totals, columns, strict=True))
            if all(abs(total - sum(column)) <= _NEAR * max(1, abs(total)) for total, column in pairs):
                near = f"{_NEAR} * max(1, abs({_code(path)}))"
                yield _python(
                    f"{_name(path)} was always the sum of {name}",
                    f"assert abs({_code(path)} - sum({code})) <= {near}",
                )
            elif all(total >= part for total, column in pairs for part in column):
                yield _python(
                    f"{_name(path)} was always >= each of {name}",
                    f"assert all({_code(path)} >= part for part in {code})",
                )
    for path in _paths(answers, lambda value: isinstance(value, list)):
        for count in numbers:
            if all(_at(answer, count) == len(_at(answer, path)) for answer in answers):
                yield _python(
                    f"{_name(count)} was always the number of {_name(path)}",
                    f"assert {_code(count)} == len({_code(path)})",
                )


def _orders(answers: Sequence[Json]) -> Iterator[Invariant]:
    numbers = _paths(answers, _is_number)
    for path in numbers:
        if all(_at(answer, path) >= 0 for answer in answers):
            yield _python(f"{_name(path)} was never negative", f"assert {_code(path)} >= 0")
    for more, less in permutations(numbers[:10], 2):
        pairs = [(_at(answer, more), _at(answer, less)) for answer in answers]
        if all(left >= right for left, right in pairs) and any(left > right for left, right in pairs):
            yield _python(
                f"{_name(more)} was always >= {_name(less)}", f"assert {_code(more)} >= {_code(less)}"
            )


def _contents(answers: Sequence[Json]) -> Iterator[Invariant]:
    for path in _paths(answers, lambda value: isinstance(value, str | list)):
        if all(_at(answer, path) for answer in answers):
            yield _python(f"{_name(path)} was never empty", f"assert {_code(path)}")
