"""What needs a person now, and what the daemon does where nothing does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentos.daemon.upkeep.status import HELD, DaemonStatus, daemon_status
from agentos.daemon.views.schedule_view import copies_with_runs, ended
from agentos.domain import (
    RUNNING_STATES,
    Candidate,
    Consent,
    Evolution,
    EvolutionState,
    EvolutionWait,
    Question,
    Run,
    TaskState,
)
from agentos.errors import NotFound
from agentos.ledger.listing import evolution_page, newest_open_runs
from agentos.ledger.reading import Reader, TaskView
from agentos.web.context import WebContext

_HELD_MAX = 20  # of what is held, the newest
_SQUARES = 14
_RUNNING_MAX = 8
_FINE = ("passed", "queued", "running", "waiting", "cancelled", "unknown")


@dataclass(frozen=True, slots=True)
class WaitingEdit:
    """An evolution that a person may decide on. ``approved``: somebody did, and the daemon has not come to it."""

    evolution: Evolution
    candidate: Candidate | None
    approved: bool = False


@dataclass(frozen=True, slots=True)
class ScheduleLine:
    """A schedule with its newest copies, newest first."""

    view: TaskView
    copies: Sequence[tuple[TaskView, Run | None]]

    @property
    def squares(self) -> Sequence[tuple[str, str, str]]:
        """Result, why, and the run's id ("" for none yet) of each copy, oldest first."""
        return [(*ended(view, run), run.id if run else "") for view, run in reversed(self.copies)]

    @property
    def fails(self) -> bool:
        """Whether its newest copy that ended did not pass."""
        results = [ended(view, run)[0] for view, run in self.copies if view.state is TaskState.DONE]
        return bool(results) and results[0] not in _FINE


@dataclass(frozen=True, slots=True)
class Inbox:
    """All that is looked at when the page opens."""

    consents: Sequence[WaitingEdit]
    questions: Sequence[tuple[Question, str]]  # with the name of the task
    held: Sequence[WaitingEdit]
    refused: Mapping[str, Sequence[str]]  # folder -> what is wrong with its skill
    failing: Sequence[ScheduleLine]
    models_away: Sequence[Evolution]
    served: Mapping[str, str] | None  # why new runs do not get what the registry holds
    daemon: DaemonStatus
    under_way: Sequence[Evolution]
    running: Sequence[tuple[Run, str]]  # with the name of the task

    @property
    def count(self) -> int:
        """How many things wait for a person."""
        waiting = sum(not item.approved for item in self.consents)
        others = (self.questions, self.held, self.refused, self.failing, self.models_away)
        return waiting + sum(map(len, others)) + bool(self.served) + bool(self.daemon.code)


def look(site: WebContext) -> Inbox:
    """Gather it."""
    reader = site.reader
    at_work = [item for state in sorted(RUNNING_STATES) for item in reader.find(Evolution, state=state)]
    return Inbox(
        consents=[
            _edit(reader, item) for item in reader.find(Evolution, state=EvolutionState.AWAITING_CONSENT)
        ],
        questions=[(item, reader.task(item.root_id).name) for item in reader.open_questions()],
        held=[
            _edit(reader, item)
            for item in evolution_page(reader, _HELD_MAX, state=EvolutionState.HELD.value).rows
        ],
        refused=dict(reader.get_kv("skills.refused", {})),
        failing=[line for line in schedule_lines(reader) if line.fails],
        models_away=[item for item in at_work if item.waiting is EvolutionWait.MODEL],
        served=reader.get_kv(HELD),
        daemon=daemon_status(site.home),
        under_way=[item for item in at_work if not item.waiting],
        running=[(run, reader.task(run.task_id).name) for run in newest_open_runs(reader, _RUNNING_MAX)],
    )


def schedule_lines(reader: Reader) -> list[ScheduleLine]:
    """Every schedule, the newest first."""
    views = [view for state in (TaskState.SCHEDULED, TaskState.PAUSED) for view in reader.tasks(state)]
    views.sort(key=lambda view: view.task.created_at, reverse=True)
    return [ScheduleLine(view, copies_with_runs(reader, view.task.id, _SQUARES)) for view in views]


def _edit(reader: Reader, evolution: Evolution) -> WaitingEdit:
    candidate = None
    if evolution.candidate_id:
        try:
            candidate = reader.get(Candidate, evolution.candidate_id)
        except NotFound:
            candidate = None
    waits = evolution.state is EvolutionState.AWAITING_CONSENT
    consents = reader.find(Consent, candidate_id=evolution.candidate_id) if waits else ()
    return WaitingEdit(evolution, candidate, approved=bool(consents))
