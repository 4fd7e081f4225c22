"""The run's page: its steps on a time line with what went in and came out, its checks, files, versions and cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentos.domain import Feedback, Question, Result, Run, Step, Task
from agentos.ledger.reading import Flag, Reader, TaskView
from agentos.resources import parse_id
from agentos.web.context import WebContext

_OTHERS = 20  # runs of the same task
_WIDTH = 1000  # of the time line, in its own units
_STEPS_MAX = 400  # on a page


@dataclass(frozen=True, slots=True)
class StepLine:
    """A step with its bar: where it begins and how wide it is, of ``_WIDTH``."""

    step: Step
    x: float
    width: float
    about: str  # which tool, model or agent


@dataclass(frozen=True, slots=True)
class UsedVersion:
    """A resource that the run used; ``number`` is "" where no version has what it got."""

    resource: str
    number: str


@dataclass(frozen=True, slots=True)
class RunPage:
    run: Run
    view: TaskView
    steps: Sequence[StepLine]
    left_out: int  # steps beyond those that are shown
    pruned: bool
    used: Sequence[UsedVersion]
    others: Sequence[Run]
    words: Sequence[Feedback]
    flags: Sequence[Flag]
    questions: Sequence[Question]
    handed: Sequence[Task]


def run_page(site: WebContext, run_id: str) -> RunPage:
    """Gather it. Raises NotFound."""
    reader = site.reader
    run = reader.run(run_id)
    view = reader.task_view(run.task_id)
    steps = reader.steps(run.id)
    waits = run.outcome is not None and run.outcome.result is Result.WAITING
    return RunPage(
        run=run,
        view=view,
        steps=_lines(steps[:_STEPS_MAX]),
        left_out=max(0, len(steps) - _STEPS_MAX),
        pruned=reader.is_pruned(run),
        used=list(_used(site, run)),
        others=[other for other in reader.runs(run.task_id, limit=_OTHERS) if other.id != run.id],
        words=reader.find(Feedback, run_id=run.id),
        flags=reader.flags(run.id),
        questions=reader.open_questions(reader.root_of(view.task).id) if waits else [],
        handed=[below.task for below in _handed(reader, run)],
    )


def _handed(reader: Reader, run: Run) -> list[TaskView]:
    return [view for view in reader.handed_over(run.task_id) if view.task.parent == run.task_id]


def _lines(steps: Sequence[Step]) -> list[StepLine]:
    if not steps:
        return []
    began = min(step.started_at for step in steps)
    offsets = [(step.started_at - began).total_seconds() * 1000 for step in steps]
    whole = max(offset + step.duration_ms for offset, step in zip(offsets, steps, strict=True)) or 1.0
    return [
        StepLine(
            step,
            round(offset / whole * _WIDTH, 1),
            round(max(step.duration_ms / whole * _WIDTH, 3.0), 1),
            _about(step),
        )
        for offset, step in zip(offsets, steps, strict=True)
    ]


def _about(step: Step) -> str:
    action = step.action if isinstance(step.action, dict) else {}
    return next(
        (str(action[key])[:80] for key in ("tool", "model", "agent", "question") if key in action), ""
    )


def _used(site: WebContext, run: Run) -> Iterator[UsedVersion]:
    digests = {str(name): value for name, value in site.registry.digests(run.snapshot).items()}
    for resource in run.resources:
        versions = site.registry.versions(parse_id(resource))
        number = next((it.number for it in versions if it.digest and it.digest == digests.get(resource)), "")
        yield UsedVersion(resource, number)
