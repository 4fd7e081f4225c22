"""The proposer of lessons: what is remembered is changed by one operation on one lesson at a time.

A model is asked only where runs of the same task pass and fail: the contrast is what a lesson can be read
from. Without one, two kinds of edits are left: to add what a run of this very work asked to be remembered,
and to take out a lesson with which runs mostly fail. How lessons fared only says which one to try: whether an
edit is good is measured like that of any other.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, Field

from agentos import shipped
from agentos.domain import Layer
from agentos.errors import ModelFailed
from agentos.evolver.advice import (
    NARROW,
    WIDE,
    BriefLimits,
    RequestDraft,
    quoted,
    record_of,
    tasks_named,
    told,
    with_data,
)
from agentos.evolver.memory.lessons import added, changed, removed
from agentos.models.requests import Line, Unusable, json_in, spoken
from agentos.ports import Adviser, Brief, KnownLesson, ObservedRun, Proposal

PURPOSE = "lesson"
USES_MIN = 5  # of a lesson before its score may speak against it
SCORE_BELOW = 0.3
WISHES_MAX = 3  # of one evolution
_REPAIRS = 1
_ANSWER_TOKENS = 1_024
# failures of the answer, not of the way to the model
_OWN = frozenset({"cut", "empty", "malformed", "refused"})
_WHY = "it can be remembered, which is the cheapest edit"


class Operation(BaseModel):
    """What the model would do."""

    operation: Literal["ADD", "UPDATE", "DELETE", "NONE"]
    id: Line = ""
    lesson: Line = Field("", max_length=500)
    cause: Line = Field("", max_length=1_000)
    predicted_fixes: list[Line] = Field(default_factory=list, max_length=100)
    tasks_at_risk: list[Line] = Field(default_factory=list, max_length=100)


class LessonProposer:
    """Implements ``ports.Proposer``; ``adviser`` is None where no model is set up."""

    name = "lesson"

    def __init__(self, adviser: Adviser | None) -> None:
        self._adviser = adviser

    def propose(self, brief: Brief) -> Iterator[Proposal]:
        """At most one edit of the model's, then what needs none. Raises ModelFailed, Unavailable."""
        if brief.layer is not Layer.MEMORY or not brief.path:
            return
        if self._adviser is not None and (runs := contrasting(brief.runs)):
            yield from _Sitting(self._adviser, brief, runs).edit()
        yield from _wished(brief)
        yield from _unlucky(brief)


def contrasting(runs: Sequence[ObservedRun]) -> tuple[ObservedRun, ...]:
    """The runs of tasks of which some pass and some fail."""
    passed = {seen.task.id for seen in runs if seen.run.passed}
    failed = {seen.task.id for seen in runs if not seen.run.passed}
    return tuple(seen for seen in runs if seen.task.id in passed & failed)


@dataclass(slots=True)
class _Sitting:
    """One operation in the making; ``shown`` are the contrasting runs."""

    adviser: Adviser
    brief: Brief
    shown: tuple[ObservedRun, ...]
    room: BriefLimits = WIDE

    def edit(self) -> Iterator[Proposal]:
        """The model's edit, none where it would leave all as it is, or one that says why it is unusable."""
        asked, faults = self._talk(), list[str]()
        while len(faults) <= _REPAIRS:
            answer = ""
            try:
                reply = self.adviser.ask(self.brief.evolution_id, PURPOSE, asked.request(_ANSWER_TOKENS))
                answer = str(reply.body["choices"][0]["message"].get("content") or "")
                said, _ = json_in(spoken(answer), Operation)
                if said.operation != "NONE":
                    yield self._proposal(said, reply.model)
                return
            except Unusable as error:
                faults.append(str(error))
            except ModelFailed as error:
                if error.kind == "context" and self.room is WIDE:
                    self.room = NARROW
                    asked = self._talk()
                    continue
                if error.kind not in _OWN:
                    raise
                faults.append(str(error))
            asked.again(faults[-1], answer, _texts()["repair"])
        why = f"no edit: {faults[0]}; asked again: {faults[-1]}"[:500]
        name = self.adviser.name
        yield Proposal("", "the answer was no edit", f"lesson ({name})", unusable=why, model=name)

    def _talk(self) -> RequestDraft:
        notes = "\n".join(_told(lesson) for lesson in self.brief.memories) or "(there are none yet)"
        parts = [told(self.shown, self.room).text, f"The notes:\n{quoted(notes)}"]
        if record := record_of(self.brief, LessonProposer.name):
            parts.append(record)
        return RequestDraft(with_data(_texts()["system"]), "\n\n".join(parts))

    def _proposal(self, asked: Operation, model: str) -> Proposal:
        labels = told(self.shown, self.room).labels
        return Proposal(
            cause=asked.cause or "runs of the same task pass and fail",
            summary=_summary(asked.operation, asked.id, asked.lesson),
            operator=f"lesson {asked.operation} ({model or self.adviser.name})",
            files=self._files(asked),
            why_this_layer="runs of the same task pass and fail: what the passing ones knew can be remembered",
            predicted_fixes=tasks_named(asked.predicted_fixes, labels),
            tasks_at_risk=tasks_named(asked.tasks_at_risk, labels),
            model=model or self.adviser.name,
        )

    def _files(self, asked: Operation) -> Mapping[str, str]:
        """The memory after the operation; raises Unusable."""
        if asked.operation != "DELETE" and not asked.lesson:
            raise Unusable(f"'lesson': {asked.operation} needs the words of the lesson")
        if asked.operation == "ADD":
            text = added(self.brief.source, asked.lesson)
            if text == self.brief.source:
                raise Unusable("'lesson': the notes hold it already; UPDATE another one, or answer NONE")
            return {self.brief.path: text}
        lesson = next((one for one in self.brief.memories if one.id == asked.id.strip("[]")), None)
        if lesson is None:
            ids = ", ".join(one.id for one in self.brief.memories) or "none"
            raise Unusable(f"'id': there is no note {asked.id!r}; there are: {ids}")
        memory = self.brief.files[lesson.path]
        if asked.operation == "DELETE":
            return {lesson.path: removed(memory, lesson.id)}
        return {lesson.path: changed(memory, lesson.id, asked.lesson)}


def _wished(brief: Brief) -> Iterator[Proposal]:
    """What runs of this work asked to be remembered and nobody has decided on."""
    for text in brief.wished[:WISHES_MAX]:
        memory = added(brief.source, text)
        if memory != brief.source:
            yield _plain(brief, "a run of this work asked to remember it", "ADD", text, {brief.path: memory})


def _unlucky(brief: Brief) -> Iterator[Proposal]:
    """Lessons that the failing runs had, and with which runs mostly fail; the worst first."""
    had = {name for seen in brief.runs if not seen.run.passed for name in seen.run.resources}
    for lesson in sorted(brief.memories, key=lambda one: (one.score, one.id)):
        poor = lesson.uses >= USES_MIN and lesson.score < SCORE_BELOW
        if poor and lesson.path.rpartition("/")[0] in had:
            cause = f"{lesson.successes} of {lesson.uses} runs passed that had this lesson before them"
            files = {lesson.path: removed(brief.files[lesson.path], lesson.id)}
            yield _plain(brief, cause, "DELETE", lesson.text, files)


def _plain(brief: Brief, cause: str, operation: str, text: str, files: Mapping[str, str]) -> Proposal:
    """An edit that no model was asked for."""
    fixes = tuple(dict.fromkeys(seen.task.id for seen in brief.runs if not seen.run.passed))
    return Proposal(cause, _summary(operation, "", text), f"lesson {operation}", files, _WHY, fixes, ())


def _summary(operation: str, id: str, text: str) -> str:
    words = " ".join(part for part in (operation, id, " ".join(text.split())) if part)
    return words if len(words) <= 160 else f"{words[:159]}…"


def _told(lesson: KnownLesson) -> str:
    return f"[{lesson.id}] {lesson.text}"


@cache
def _texts() -> Mapping[str, Any]:
    return tomllib.loads((shipped.folder("evolver") / "lesson.toml").read_text(encoding="utf-8"))
