"""Checks that a task has without its author's doing: accepted by a person for a name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from agentos.domain import Check, Feedback, Rating, Result, StandingCheck, Task, new_id
from agentos.errors import NotFound, UserError
from agentos.evolver.find.invariants import Invariant, invariants
from agentos.evolver.promote.consent import person
from agentos.home import Home
from agentos.ledger.blobs import BlobStore
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger

_RUNS = 200  # newest runs of a name that are looked through


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
        raise NotFound(f"nothing called {unknown[0]} is proposed: type `agentos task checks '{name}'`")
    made = [_standing(name, proposed[one]) for one in ids]
    return _keep(home, "check.accepted", made)


def take_back(home: Home, name: str, ids: Sequence[str]) -> list[StandingCheck]:
    """End accepted checks; tasks that were added meanwhile keep them. Raises NotFound and UserError."""
    reader = Reader(home.ledger)
    there = {item.id: item for item in accepted(reader, name)}
    if unknown := [one for one in ids if one not in there]:
        raise UserError(f"{unknown[0]} is no accepted check of '{name}': type `agentos task checks '{name}'`")
    return _keep(home, "check.ended", [replace(_standing(name, there[one].check), ends=one) for one in ids])


def _standing(name: str, check: Check) -> StandingCheck:
    return StandingCheck(new_id("check"), name, check, person(), datetime.now(UTC))


def _keep(home: Home, event: str, made: list[StandingCheck]) -> list[StandingCheck]:
    ledger = Ledger(home.ledger)
    try:
        for item in made:
            ledger.note(event, item.id, {"task": item.task_name, "principal": item.principal}, (item,))
    finally:
        ledger.close()
    return made
