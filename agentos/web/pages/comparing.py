"""Two runs side by side: how each ended, what they cost, what they used, their steps and their answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from agentos.domain import Json, Run, Step, Task
from agentos.web.context import WebContext
from agentos.web.pages.diffs import side_by_side
from agentos.web.pages.evolutions import EditedFile
from agentos.web.pages.runs import about_step

_STEPS_MAX = 200
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
        _used(site, left, right),
        _steps(reader.steps(left.id)[:_STEPS_MAX], reader.steps(right.id)[:_STEPS_MAX]),
        [EditedFile("answer", lines)] if lines else [],
    )


def _text(site: WebContext, run: Run) -> str:
    value: Json = site.blobs.expand(run.answer)
    text = (
        value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
    )
    return text[:_TEXT_MAX]


def _used(site: WebContext, left: Run, right: Run) -> list[UsedPair]:
    old, new = ({str(k): v for k, v in site.registry.digests(it.snapshot).items()} for it in (left, right))
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
