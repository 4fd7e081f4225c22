"""The forms of what goes into the API and comes out of it. What comes out is what ``--json`` tells of the same noun.

Requests are held against these forms; of answers they are the description (``routes.py``), made of the records
themselves, so that the two cannot differ.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from agentos.daemon.control.tokens import TokenScope
from agentos.domain import (
    Delivery,
    Evolution,
    EvolutionState,
    Feedback,
    InputFile,
    Kind,
    MemoryProposal,
    Question,
    Rating,
    Result,
    Run,
    SkippedRun,
    Step,
    Task,
    TaskState,
    Version,
)
from agentos.evolver.find.signals import Deviation, SignalHit
from agentos.ledger.reading import Flag

T = TypeVar("T")
LIMIT_MAX = 200
_PLACE_MAX = (1 << 53) - 1
Reason = Annotated[str, Field(max_length=2_000)]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class _Told(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)


# --- what is asked ----------------------------------------------------------------------------


class PageQuery(_Form):
    limit: int = Field(50, ge=1, le=LIMIT_MAX, description="So many, the newest first.")
    before: int = Field(0, ge=0, le=_PLACE_MAX, description="`older` of the page before.")


class TasksQuery(PageQuery):
    state: TaskState | None = None


class RunsQuery(PageQuery):
    task: str = Field("", max_length=200)
    result: Result | None = None


class EvolutionsQuery(PageQuery):
    state: EvolutionState | None = None
    resource: str = Field("", max_length=200)


class ResourcesQuery(_Form):
    kind: Kind | None = None


class VersionQuery(_Form):
    version: str = Field("", max_length=40)


class Base64Body(_Form):
    base64: str


class CallBody(_Form):
    tool: str = Field(max_length=600)
    args: dict[str, Any] = {}


class TaskBody(_Form):
    """A task document (docs/use/operating.md) without what reaches out of the sandbox: its files come along, and it
    has no deliveries, no secrets and no effects outside."""

    name: str = Field("", max_length=200)
    goal: str = Field("", max_length=100_000)
    call: CallBody | None = None
    agent: str = Field("default", max_length=64)
    files: dict[str, str | Base64Body] = Field({}, description="Name in the workspace -> text, or bytes.")
    checks: list[dict[str, Any]] = Field([], max_length=100)
    limits: dict[str, int | float] = {}
    effects: list[Literal["pure", "read", "write"]] = ["pure", "read", "write"]


class ScheduleBody(TaskBody):
    schedule: str = Field(max_length=200, description="A cron line.")
    timezone: str = Field("", max_length=100)
    missed: Literal["once", "skip"] = "once"


class FeedbackBody(_Form):
    rating: Rating
    because: Reason = ""
    expect: list[Annotated[str, Field(max_length=10_000)]] = Field(
        [], max_length=50, description="PATH=VALUE"
    )
    answer: Any = Field(None, description="The answer as it should have been; goes with `bad`.")


class AnswerBody(_Form):
    answer: str = Field(min_length=1, max_length=20_000)


class ReasonBody(_Form):
    reason: Reason = ""


# --- what is told -----------------------------------------------------------------------------


class ApiPage(_Told, Generic[T]):
    items: list[T]
    older: int | None = Field(description="What `before` is for the next page; null on the last.")


class TaskFacts(_Told):
    task: Task
    state: TaskState
    result: Result | None
    runs: list[Run]
    deliveries: list[Delivery]


class TaskWhole(TaskFacts):
    questions: list[Question]


class RunWhole(_Told):
    run: Run
    steps: list[Step]
    flags: list[Flag]
    handed: list[str]
    proposals: list[MemoryProposal]
    inputs: list[InputFile]
    deliveries: list[Delivery]
    feedback: list[Feedback]
    signals: list[SignalHit]
    deviation: Deviation | None


class EvolutionActed(_Told):
    evolution: Evolution
    principal: str
    given: str


class ScheduleRun(_Told):
    task: str
    began: datetime
    state: TaskState
    run: str | None
    result: str
    why: str


class ScheduleFacts(_Told):
    schedule: Task
    state: TaskState
    when: str
    next: datetime | None
    runs: list[ScheduleRun]
    skipped: list[SkippedRun]


class TaskStarted(_Told):
    task: str


class ResourceSummary(_Told):
    resource: str
    version: str | None
    origin: str | None
    at: datetime | None
    reason: str | None
    pinned: str | None
    folder: dict[str, str] | None


class ResourceWhole(_Told):
    resource: str
    version: Version
    description: str | None
    settings: dict[str, Any] | None
    tools: list[Any]
    may_evolve: bool
    why_not: str
    faults: list[str]
    warnings: list[str]
    files: dict[str, str]


class ResourcePinned(_Told):
    resource: str
    pinned: str | None


class TokenFacts(_Told):
    name: str
    id: str
    scopes: list[TokenScope]
    principal: str
    created_at: datetime
    expires_at: datetime


class Problem(_Told):
    type: str
    title: str
    status: int
    kind: str
    detail: str
    faults: list[str]
    type_next: list[str]
