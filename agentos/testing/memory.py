"""The ledger's ports in memory: the same rules as the real one, nothing on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from agentos.domain import (
    Arm,
    Candidate,
    Evidence,
    Evolution,
    Json,
    Outcome,
    Probe,
    Reply,
    Result,
    Review,
    Run,
    RunEnd,
    SafetyRate,
    Share,
    Sighting,
    Step,
    Task,
    TaskState,
    Trial,
    TrialLook,
    TrialSet,
    Verdict,
)
from agentos.errors import Conflict, ErrorKind, NotFound
from agentos.ports import Grant, Noted

R = TypeVar("R")

_APPEND_ONLY = (Evidence, Probe, Review, SafetyRate, Sighting, Trial, Verdict)
_ENDED = frozenset(TaskState) - {TaskState.QUEUED, TaskState.RUNNING}
_NOTHING = RunEnd()
_STATE_AFTER = {Result.CANCELLED: TaskState.CANCELLED, Result.WAITING: TaskState.WAITING}


@dataclass(frozen=True, slots=True)
class AuditNote:
    """What was told to the audit log."""

    event: str
    subject: str
    detail: Json


class MemoryLedger:
    """Records, Journal, Cursor and Audit, and the writes that make a journal worth reading.

    ``notes`` lists what was audited; ``states`` maps task ids to where they stand.
    """

    def __init__(self) -> None:
        self.notes: list[AuditNote] = []
        self.states: dict[str, TaskState] = {}
        self._tasks: dict[str, Task] = {}
        self._runs: dict[str, Run] = {}
        self._finished: list[str] = []
        self._steps: dict[str, dict[int, Step]] = {}
        self._records: dict[type, dict[str, object]] = {}
        self._cursors: dict[str, int] = {}

    # --- writing a journal --------------------------------------------------------------------

    def add_task(self, task: Task, share: Share, state: TaskState = TaskState.QUEUED) -> None:
        """Store a task; doing so again changes nothing. Conflict when the id is another task's."""
        if self._tasks.setdefault(task.id, task) != task:
            raise Conflict(f"there is another task with the id {task.id}", kind=ErrorKind.TAKEN)
        self.states.setdefault(task.id, state)

    def begin_run(self, run: Run) -> None:
        """Store an open run, its task becoming ``running``; doing so again changes nothing."""
        if run.id in self._runs:
            return
        if self.states[self.task(run.task_id).id] in _ENDED:
            raise Conflict(f"the task {run.task_id} takes no further run", kind=ErrorKind.OVER)
        if (run.task_id, run.attempt) in {(old.task_id, old.attempt) for old in self._runs.values()}:
            raise Conflict(
                f"attempt {run.attempt} at the task {run.task_id} was begun by another run",
                kind=ErrorKind.TAKEN,
            )
        self._runs[run.id] = run
        self.states[run.task_id] = TaskState.RUNNING

    def append_step(self, step: Step) -> None:
        """Store a step; the same one again changes nothing, another one, or one of a run that is over, is a Conflict."""
        run = self._runs.get(step.run_id)
        if run and run.outcome and step.index not in self._steps.get(step.run_id, {}):
            raise Conflict(f"the run {step.run_id} is over: it takes no further step", kind=ErrorKind.OVER)
        kept = self._steps.setdefault(step.run_id, {}).setdefault(step.index, step)
        if (kept.node, kept.action) != (step.node, step.action):
            raise Conflict(f"the run {step.run_id} has another step {step.index}", kind=ErrorKind.TAKEN)

    def insert_step(self, step: Step) -> None:
        """A step of a run that is over, as if it had come before its end: for records that a test makes up."""
        self._steps.setdefault(step.run_id, {})[step.index] = step

    def finish_run(self, run_id: str, outcome: Outcome, end: RunEnd = _NOTHING) -> int:
        """End a run; its cursor position. A run that has ended stays as it is."""
        if run_id in self._finished:
            return self._finished.index(run_id) + 1
        run = self.run(run_id)
        self._runs[run_id] = replace(
            run,
            finished_at=datetime.now(UTC),
            outcome=outcome,
            answer=end.answer,
            outputs=tuple(end.outputs),
            resources=tuple(sorted(set(end.resources))),
        )
        self._finished.append(run_id)
        if outcome.result is not Result.INFRA and self.states[run.task_id] not in _ENDED:
            self.states[run.task_id] = _STATE_AFTER.get(outcome.result, TaskState.DONE)
        self.note("run.finished", run_id, {"result": outcome.result, "task": run.task_id})
        return len(self._finished)

    # --- Journal ------------------------------------------------------------------------------

    def task(self, id: str) -> Task:
        """The task; raises NotFound."""
        if id not in self._tasks:
            raise NotFound(f"there is no task {id}")
        return self._tasks[id]

    def arrived(self, task_id: str = "") -> int:
        """The place of the task in the order in which tasks came in; of the newest without an id; 0 for none."""
        return (
            [*self._tasks].index(task_id) + 1
            if task_id in self._tasks
            else 0
            if task_id
            else len(self._tasks)
        )

    def run(self, id: str) -> Run:
        """The run; raises NotFound."""
        if id not in self._runs:
            raise NotFound(f"there is no run {id}")
        return self._runs[id]

    def runs_after(self, cursor: int, limit: int) -> Sequence[tuple[int, Run]]:
        """Finished runs in the order they finished, each with its cursor position."""
        found = self._finished[cursor : cursor + limit]
        return [(cursor + offset, self._runs[run_id]) for offset, run_id in enumerate(found, start=1)]

    def steps(self, run_id: str) -> Sequence[Step]:
        """The trajectory, in order."""
        return [step for _, step in sorted(self._steps.get(run_id, {}).items())]

    def answers(self, task_id: str) -> Mapping[str, str]:
        """What people answered: nobody does here."""
        return {}

    def runs_of(self, task_key: str, limit: int) -> Sequence[Run]:
        """Finished runs of equal work, newest first."""
        return [run for run in self._newest_first() if run.task_key == task_key][:limit]

    def runs_using(self, resource: str, limit: int, *, hidden: bool = False) -> Iterator[Run]:
        """Finished runs that used the resource, newest first, at most one for each task key; of these the ``hidden`` ones."""
        newest: dict[str, Run] = {}
        for run in self._newest_first():
            if resource in run.resources:
                newest.setdefault(run.task_key, run)
        return (run for run in list(newest.values())[:limit] if not hidden or run.share is Share.HOLD_OUT)

    def recent_runs(self, resource: str, limit: int, before: datetime | None = None) -> Sequence[Run]:
        """Runs that used the resource and finished (``before`` then), newest first, also several of equal work."""
        found = [run for run in self._newest_first() if resource in run.resources]
        return [run for run in found if before is None or (run.finished_at or before) < before][:limit]

    def _newest_first(self) -> list[Run]:
        return [self._runs[run_id] for run_id in reversed(self._finished)]

    # --- Records, Cursor, Audit ---------------------------------------------------------------

    def put(self, *records: object) -> None:
        """Insert, or replace the record with the same id; all of them or none.

        Append-only types refuse to change, and an evolution that has ended to be opened again or added to.
        """
        for record in records:
            old = self._records.get(type(record), {}).get(_id_of(record))
            if isinstance(record, _APPEND_ONLY) and old not in (None, record):
                raise Conflict(
                    f"the {type(record).__name__} {_id_of(record)} stands already and is never changed",
                    kind=ErrorKind.FIXED,
                )
            if old != record and (over := self._ended(record)) is not None:
                raise Conflict(
                    f"the evolution {over.id} has ended meanwhile: it is {over.state.value}.",
                    kind=ErrorKind.OVER,
                )
        self.put_back(*records)

    def put_back(self, *records: object) -> None:
        """Whatever is there: for a test that goes back to how things stood before."""
        for record in records:
            self._records.setdefault(type(record), {})[_id_of(record)] = record

    def _ended(self, record: object) -> Evolution | None:
        """The evolution that has ended and that the record would open again, or add to what its end was said of."""
        if isinstance(record, Evolution):
            stored = self._records.get(Evolution, {}).get(record.id)
            forgets = isinstance(stored, Evolution) and stored.promoted and not record.promoted
            evolution_id = record.id if record.ended_at is None or forgets else ""
        elif isinstance(record, Candidate) or (isinstance(record, Trial) and record.set is TrialSet.FRESH):
            evolution_id = record.evolution_id
        else:
            return None
        stored = self._records.get(Evolution, {}).get(evolution_id)
        return stored if isinstance(stored, Evolution) and stored.ended_at is not None else None

    def get(self, kind: type[R], id: str) -> R:
        """The record; raises NotFound."""
        found = self._records.get(kind, {}).get(id)
        if not isinstance(found, kind):
            raise NotFound(f"there is no {kind.__name__.lower()} {id}")
        return found

    def find(self, kind: type[R], **equal: object) -> Sequence[R]:
        """Records whose top-level fields equal these, oldest first; a frozenset stands for any of its values."""
        return [
            record
            for record in self._records.get(kind, {}).values()
            if isinstance(record, kind)
            and all(
                getattr(record, name) in (wanted if isinstance(wanted, frozenset) else (wanted,))
                for name, wanted in equal.items()
            )
        ]

    def looks(self, fingerprint_id: str) -> Sequence[TrialLook]:
        """What trials of candidates for this failure were a look at, alike ones of an evolution once; oldest first."""
        looks = (
            TrialLook(trial.candidate_id, trial.task_id, trial.set, trial.number, trial.look)
            for evolution in self.find(Evolution, fingerprint_id=fingerprint_id)
            for trial in self.find(Trial, evolution_id=evolution.id, arm=Arm.CANDIDATE)
        )
        return [*dict.fromkeys(looks)]

    def newest(self, kind: type[R], limit: int, **equal: object) -> Sequence[R]:
        """The ``limit`` newest of these, newest first."""
        return self.find(kind, **equal)[::-1][:limit]

    def newest_fields(
        self, kind: type, names: Sequence[str], limit: int, **equal: object
    ) -> Sequence[tuple[str, ...]]:
        """As ``newest``, these fields alone."""
        found: Sequence[Any] = self.newest(kind, limit, **equal)
        return [tuple(str(getattr(record, name)) for name in names) for record in found]

    def newest_sightings(self, classes: Collection[str], limit: int, closed: str = "") -> Sequence[Sighting]:
        """The ``limit`` sightings of these failure classes that were stored last, oldest first."""
        found = self.find(Sighting)
        last = {item.fingerprint.id: place for place, item in enumerate(found, 1)}
        left_out = {name for name, place in last.items() if closed and self.read(closed + name) >= place}
        return [
            item
            for item in found
            if item.fingerprint.klass in classes and item.fingerprint.id not in left_out
        ][-limit:]

    def last_sighting(self) -> int:
        """How many there are."""
        return len(self.find(Sighting))

    def read(self, name: str) -> int:
        """The position of a cursor, 0 at first."""
        return self._cursors.get(name, 0)

    def advance(
        self,
        name: str,
        to: int,
        records: Sequence[object],
        *,
        after: int | None = None,
        note: Noted = (),
    ) -> None:
        """Store ``records``, the new position and the note: all or nothing."""
        at = self.read(name)
        if at > to or after not in (None, at):
            raise Conflict(
                f"the cursor {name} is at {at} before it moves to {to}: another reader was faster",
                kind=ErrorKind.STALE,
            )
        before = {kind: dict(shelf) for kind, shelf in self._records.items()}
        try:
            for record in records:
                self.put(record)
        except Conflict:
            self._records = before
            raise
        self._cursors[name] = to
        if note:
            self.note(*note)

    def note(self, event: str, subject: str, detail: Json, records: Sequence[object] = ()) -> None:
        """Store the records and append one entry."""
        self.put(*records)
        self.notes.append(AuditNote(event, subject, detail))


class MemoryBlobs:
    """Blobs in a dictionary."""

    def __init__(self) -> None:
        self._content: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        """Store; the digest."""
        sha256 = hashlib.sha256(data).hexdigest()
        self._content[sha256] = data
        return sha256

    def get(self, sha256: str) -> bytes:
        """The content; raises NotFound."""
        if sha256 not in self._content:
            raise NotFound(f"there is no blob {sha256}")
        return self._content[sha256]


def _id_of(record: object) -> str:
    if isinstance(record, Sighting):
        return f"{record.run_id}:{record.fingerprint.id}:{record.flagged}"
    return str(getattr(record, "id"))  # noqa: B009 - records share no base class


# --- Fake of ``ports.Models``: answers by a function, no process, no socket ----------------------


class FakeModels:
    """``answer(request, number)`` gives the assistant message of the number-th call (from 0), or raises
    ModelFailed. ``grants``, ``requests`` and ``deadlines`` keep what was asked."""

    def __init__(self, answer: Callable[[Mapping[str, Any], int], Mapping[str, Json]]) -> None:
        self._answer = answer
        self.grants: list[Grant] = []
        self.requests: list[Mapping[str, Any]] = []
        self.deadlines: list[float] = []
        self.closed = 0

    def open(self, grant: Grant) -> FakeSession:
        """See ``ports.Models``."""
        self.grants.append(grant)
        return FakeSession(self)

    def close(self) -> None:
        """See ``ports.Models``."""


class FakeSession:
    """One run's way to a FakeModels."""

    def __init__(self, models: FakeModels) -> None:
        self._models = models

    def complete(self, request: Json, deadline: float) -> Reply:
        """See ``ports.ModelSession``."""
        number = len(self._models.requests)
        self._models.requests.append(request)
        self._models.deadlines.append(deadline)
        message = {"role": "assistant", **self._models._answer(request, number)}
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        body = {"choices": [{"index": 0, "message": message, "finish_reason": reason}]}
        return Reply(f"call-{number}", body, 10, 5, 0.001, 1.0, recorded=False, model="fake")

    def close(self) -> None:
        """See ``ports.ModelSession``."""
        self._models.closed += 1
