"""The run's page: its steps on a time line with what went in and came out, its checks, files, versions and cost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from agentos.daemon.views.json_views import handed_below
from agentos.domain import Feedback, Json, Question, Result, Run, Step, Task
from agentos.errors import UserError
from agentos.ledger.reading import Flag, TaskView
from agentos.plaintext import clean
from agentos.resources import parse_id
from agentos.supervisor.watching import NODE as SUPERVISOR
from agentos.web.context import WebContext
from agentos.web.pages.diffs import EditedFile, side_by_side
from agentos.web.pages.resources import digests_at, version_then

_OTHERS = 20  # runs of the same task
ANSWER_MAX = 20_000  # characters of an answer that can be put right on the page
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
class HandedTask:
    """What was handed over, how deep below the run, with its newest run and what that used."""

    depth: int
    task: Task
    newest: Run | None


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
    handed: Sequence[HandedTask]
    answer: str  # as a person may put it right; JSON, unless it is a text


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
        answer=_answer(site, run),
        handed=[HandedTask(*below) for below in handed_below(reader, run.task_id)],
    )


def _answer(site: WebContext, run: Run) -> str:
    """ "" where it is too long, and where what is not shown as it is would come back as an edit that nobody made."""
    value = site.blobs.expand(run.answer)
    if isinstance(value, str):
        text = value
    else:
        text = json.dumps(value, indent=2, ensure_ascii=False)
        text = text if text == clean(text) else json.dumps(value, indent=2)
    return text if len(text) <= ANSWER_MAX and text == clean(text) else ""


def corrected_answer(site: WebContext, run_id: str, text: str) -> Json:
    """What a person typed in its place: text where the answer is one, else JSON. Raises UserError."""
    if isinstance(site.blobs.expand(site.reader.run(run_id).answer), str):
        return text.replace("\r\n", "\n").rstrip("\n")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"Expected JSON, as the run's answer is: {error}.") from None


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
            about_step(step),
        )
        for offset, step in zip(offsets, steps, strict=True)
    ]


def about_step(step: Step) -> str:
    """Which tool, model or agent it asked, or what the supervisor did and why; "" for what asked none."""
    action = step.action if isinstance(step.action, dict) else {}
    if step.node == SUPERVISOR and isinstance(step.observation, dict):
        return f"{action.get('act')}: {step.observation.get('reason')}"
    return next(
        (str(action[key])[:80] for key in ("tool", "model", "agent", "question") if key in action), ""
    )


def _used(site: WebContext, run: Run) -> Iterator[UsedVersion]:
    digests = digests_at(site, run.snapshot)
    for resource in run.resources:
        try:
            versions = site.registry.versions(parse_id(resource))
        except UserError:  # a box said so, in an older release
            versions = ()
        had = version_then(versions, digests.get(resource, ""), run.started_at)
        yield UsedVersion(resource, had.number if had else "")


# --- Two runs side by side: how each ended, what they cost, what they used, their steps and their answers


_COMPARED_STEPS_MAX = 200
_TEXT_MAX = 200_000  # characters of an answer that are compared


@dataclass(frozen=True, slots=True)
class StepPair:
    """A step of each that stand beside each other; None where the other has none. ``alike``: of the same kind."""

    left: Step | None
    right: Step | None
    alike: bool

    def about(self, step: Step | None) -> str:
        """Which tool, model or agent."""
        return about_step(step) if step else ""


@dataclass(frozen=True, slots=True)
class UsedPair:
    """A resource, with the content that each run got of it."""

    resource: str
    left: str
    right: str


@dataclass(frozen=True, slots=True)
class RunComparison:
    left: Run
    right: Run
    tasks: tuple[Task, Task]
    used: Sequence[UsedPair]  # only what differs
    steps: Sequence[StepPair]
    answer: Sequence[EditedFile]  # empty where both are the same


def compare_runs(site: WebContext, left_id: str, right_id: str) -> RunComparison:
    """Gather it. Raises NotFound."""
    reader = site.reader
    left, right = reader.run(left_id), reader.run(right_id)
    lines = side_by_side(_text(site, left), _text(site, right))
    return RunComparison(
        left,
        right,
        (reader.task(left.task_id), reader.task(right.task_id)),
        _resources_used(site, left, right),
        _steps(reader.steps(left.id)[:_COMPARED_STEPS_MAX], reader.steps(right.id)[:_COMPARED_STEPS_MAX]),
        [EditedFile("answer", lines)] if lines else [],
    )


def _text(site: WebContext, run: Run) -> str:
    value: Json = site.blobs.expand(run.answer)
    text = (
        value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
    )
    return text[:_TEXT_MAX]


def _resources_used(site: WebContext, left: Run, right: Run) -> list[UsedPair]:
    old, new = (digests_at(site, it.snapshot) for it in (left, right))
    names = sorted({*left.resources, *right.resources})
    pairs = (UsedPair(name, old.get(name, "")[:12], new.get(name, "")[:12]) for name in names)
    return [pair for pair in pairs if pair.left != pair.right]


def _steps(left: Sequence[Step], right: Sequence[Step]) -> list[StepPair]:
    """In order, those of a kind beside each other."""
    found: list[StepPair] = []
    old, new = ([(step.node, about_step(step)) for step in side] for side in (left, right))
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        for n in range(max(i2 - i1, j2 - j1)):
            a = left[i1 + n] if i1 + n < i2 else None
            b = right[j1 + n] if j1 + n < j2 else None
            found.append(StepPair(a, b, tag == "equal"))
    return found
