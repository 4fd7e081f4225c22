"""Which runs and trials an export is made of, read from the ledger one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agentos.domain import Arm, Evolution, Json, Result, Run, Share, Task, Trial, TrialSet
from agentos.errors import ErrorKind, NotFound, UserError
from agentos.evolver.history.recordings import trajectory, whole
from agentos.home import Home
from agentos.ledger.blobs import BlobStore
from agentos.ledger.reading import Reader
from agentos.trajectories.chat import FinishedRun, chat_record
from agentos.trajectories.spans import otlp
from agentos.trajectories.training import SkippedExample, dpo, grpo, sft

PAGE = 500
FORMATS = ("openai-chat", "sft", "dpo", "grpo", "otel")
TRAINING = ("sft", "dpo", "grpo")
_HIDDEN = "it belongs to a hold-out task, which is there to measure what was learnt"
_HIDDEN_SETS = (TrialSet.HOLD_OUT, TrialSet.FRESH)  # of the second some are
_SILENT = "it ended before the agent said or did anything"
_NO_STEPS = "its steps were not kept"


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a person asked for: runs by id, all, those since a date, or an evolution's trials."""

    runs: tuple[str, ...] = ()
    all: bool = False
    since: str = ""
    evolution: str = ""


def export_lines(
    home: Home, chosen: Chosen, format: str, *, content: bool
) -> Iterator[Json | SkippedExample]:
    """The export, record by record, and whatever is left out of it.

    Raises UserError for a format that is none, and when nothing or two things were chosen.
    """
    if format not in FORMATS:
        raise UserError(f"There is no format '{format}'; the formats are {', '.join(FORMATS)}.")
    if sum(map(bool, (chosen.runs, chosen.all, chosen.since, chosen.evolution))) != 1:
        raise UserError("Say what to export: ids of runs, --all, --since DATE, or --evolution ID.")
    return _Export(home, chosen, format in TRAINING).lines(format, content)


class _Export:
    def __init__(self, home: Home, chosen: Chosen, training: bool) -> None:
        self._reader = Reader(home.ledger)
        self._blobs = BlobStore(home.blobs)
        self._chosen = chosen
        self._training = training
        self._left: list[SkippedExample] = []

    def lines(self, format: str, content: bool) -> Iterator[Json | SkippedExample]:
        yield from self._made(format, content)
        yield from self._left

    def _made(self, format: str, content: bool) -> Iterator[Json | SkippedExample]:
        if format == "sft":
            return sft(self._each())
        if format == "grpo":
            return grpo(self._groups())
        if format == "dpo":
            return dpo(self._comparable())
        if format == "otel":
            return (otlp([happened], content=content) for happened in self._each())
        return self._chats()

    def _chats(self) -> Iterator[Json | SkippedExample]:
        """What can be imported again: a conversation in which the agent said nothing is none."""
        for happened in self._each():
            record = chat_record(happened)
            if any(message["role"] == "assistant" for message in record["messages"]):
                yield record
            else:
                yield SkippedExample(happened.run.id, _SILENT)

    # --- what is chosen -----------------------------------------------------------------------

    def _each(self) -> Iterator[FinishedRun]:
        if self._chosen.evolution:
            yield from (happened for _, happened in self._trials(self._evolution_id()))
        for run in self._runs():
            yield self._happened(run)

    def _groups(self) -> Iterator[Sequence[FinishedRun]]:
        """All of equal work together; of each group only ids are held until it is its turn."""
        if self._chosen.evolution:
            groups: dict[str, list[FinishedRun]] = {}
            for _, happened in self._trials(self._evolution_id()):
                groups.setdefault(happened.run.task_key, []).append(happened)
            yield from groups.values()
        ids: dict[str, list[str]] = {}
        for run in self._runs():
            ids.setdefault(run.task_key, []).append(run.id)
        for same in ids.values():
            yield [self._happened(self._reader.run(run_id)) for run_id in same]

    def _comparable(self) -> Iterator[Sequence[FinishedRun]]:
        """Runs of equal work; then what evolutions measured."""
        if not self._chosen.evolution:
            yield from self._groups()
        ids = [self._evolution_id()] if self._chosen.evolution else []
        if self._chosen.all:
            ids = [evolution.id for evolution in self._reader.find(Evolution)]
        for evolution_id in ids:
            yield from self._measured(evolution_id)

    def _measured(self, evolution_id: str) -> Iterator[Sequence[FinishedRun]]:
        """Of each task, the trials that failed on the base and those that passed with a candidate."""
        groups: dict[str, list[FinishedRun]] = {}
        for trial, happened in self._trials(evolution_id):
            passed = trial.outcome.result is Result.PASSED
            if passed == (trial.arm is Arm.CANDIDATE):
                groups.setdefault(trial.task_id, []).append(happened)
        yield from groups.values()

    # --- runs ---------------------------------------------------------------------------------

    def _runs(self) -> Iterator[Run]:
        since = _moment(self._chosen.since) if self._chosen.since else None
        for run in self._finished() if since or self._chosen.all else self._named():
            if run.outcome is None:
                raise UserError(f"{run.id} is still under way; `agentos run tail {run.id}` follows it.")
            if since is not None and (run.finished_at is None or run.finished_at < since):
                continue
            if self._training and run.share is Share.HOLD_OUT:
                self._left.append(SkippedExample(run.id, _HIDDEN))
                continue
            yield run

    def _named(self) -> Iterator[Run]:
        for fragment in self._chosen.runs:
            yield self._reader.run(self._reader.resolve("run", fragment))

    def _finished(self) -> Iterator[Run]:
        position = 0
        while page := self._reader.runs_after(position, PAGE):
            position = page[-1][0]
            yield from (run for _, run in page)

    def _happened(self, run: Run) -> FinishedRun:
        steps = tuple(whole(self._blobs, self._reader.steps(run.id)))
        return FinishedRun(self._reader.task(run.task_id), run, steps)

    # --- trials -------------------------------------------------------------------------------

    def _evolution_id(self) -> str:
        return self._reader.resolve("evolution", self._chosen.evolution)

    def _trials(self, evolution_id: str) -> Iterator[tuple[Trial, FinishedRun]]:
        for trial in self._reader.find(Trial, evolution_id=evolution_id):
            if self._training and trial.set in _HIDDEN_SETS:
                self._left.append(SkippedExample(trial.id, _HIDDEN))
                continue
            try:
                steps = trajectory(self._blobs, trial)
            except NotFound:
                steps = []
            if not steps:
                self._left.append(SkippedExample(trial.id, _NO_STEPS))
                continue
            task = self._reader.task(trial.task_id)
            yield trial, FinishedRun(task, _as_run(trial, task, steps[0].started_at), tuple(steps))


def _as_run(trial: Trial, task: Task, started_at: datetime) -> Run:
    wall = timedelta(seconds=trial.outcome.cost.wall_s)
    return Run(
        id=trial.run_id or trial.id,
        task_id=task.id,
        task_key=task.key,
        share=Share.HOLD_OUT if trial.set in _HIDDEN_SETS else Share.OPEN,
        attempt=trial.repeat + 1,
        snapshot=trial.snapshot,
        sandbox=trial.sandbox,
        level=trial.level,
        started_at=started_at,
        finished_at=started_at + wall,
        outcome=trial.outcome,
    )


def _moment(text: str) -> datetime:
    """Without a zone it is meant as times are shown: of this machine."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):  # the second for the first day that there is, in a zone to the east
        raise UserError(
            f"--since is '{text}', expected a date or a time, as 2026-01-31T12:00.", kind=ErrorKind.USAGE
        ) from None
