"""A world small enough to hold in the head: one tool, tasks that call it, and every port faked.

The executor really runs the tool's text on the snapshot that it is given, so that an outcome
follows from the source and from nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from agentos.domain import (
    Call,
    Check,
    Evidence,
    Evolution,
    Fault,
    Kind,
    Layer,
    Limits,
    Outcome,
    ResourceId,
    Result,
    Run,
    RunEnd,
    Share,
    Snapshot,
    Task,
    Trial,
)
from agentos.errors import Unavailable
from agentos.evolver.cycle import evolve
from agentos.evolver.dependencies import Dependencies
from agentos.evolver.documents import load_taxonomy
from agentos.evolver.find.mining import mine
from agentos.evolver.find.triage import triage
from agentos.evolver.policy import Judge, Policy
from agentos.ports import Attempt, Proposal
from agentos.shipped import folder
from agentos.syntax import MARK, functions, marked, parse
from agentos.testing import (
    FakeExecutor,
    FakeRegistry,
    MemoryBlobs,
    MemoryLedger,
    ScriptedProposer,
    SerialReplayer,
    Undurable,
    attempt,
)

TAXONOMY = load_taxonomy(folder("evolver") / "taxonomy.toml")
PATH = "skill/calc/tools/grade.py"
RESOURCE = "skill/calc"
# The fault: 50 points are enough to pass, and the tool says they are not.
FAULTY = "def answer(points):\n    if points > 50:\n        return 'pass'\n    return 'fail'\n"
RIGHT = FAULTY.replace("> 50", ">= 50")
TEMPTING = FAULTY.replace("> 50", "> 40")  # mends 50 and breaks 45
USELESS = FAULTY.replace("> 50", "> 51")

WITHOUT_FRESH = Policy(judge=Judge(fresh_tasks=0))  # for evolutions whose matter is not what comes after them


def proposal(source: str, summary: str = "an edit", fixes: tuple[str, ...] = ()) -> Proposal:
    return Proposal("a cause", summary, "compare", {PATH: source}, "why", fixes, ())


@dataclass
class World:
    """Everything a test touches."""

    registry: FakeRegistry = field(
        default_factory=lambda: FakeRegistry({PATH: FAULTY, "skill/calc/SKILL.md": "x"})
    )
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    blobs: MemoryBlobs = field(default_factory=MemoryBlobs)
    proposer: ScriptedProposer = field(default_factory=lambda: ScriptedProposer([proposal(RIGHT)]))
    durable: Undurable = field(default_factory=Undurable)
    later: timedelta = timedelta()  # how far the evolver's clock is ahead of the ledger's
    policy: Policy = WITHOUT_FRESH
    lost: int = 0  # so many executions are lost by the machinery before one works
    flaky: set[str] = field(default_factory=set)  # task ids that pass every other time
    image: str = "one"  # what boxes are made of
    key: bytes = bytes(32)  # the home's own

    def __post_init__(self) -> None:
        self.executor = FakeExecutor(self._script)
        self._turn: dict[str, int] = {}

    def _script(self, task: Task, snapshot: Snapshot) -> Attempt:
        if self.lost:
            self.lost -= 1
            raise Unavailable("the sandbox is gone")
        if any(task.id.startswith(name) for name in self.flaky):
            self._turn[task.id] = self._turn.get(task.id, 0) + 1
            done = attempt(passed=self._turn[task.id] % 2 == 0, resources=(RESOURCE,))
            return replace(done, reached=self.labels(snapshot))
        source = self.registry.files(snapshot, PATH)[PATH].decode()
        entered: set[str] = set()
        space: dict[str, object] = {MARK: entered.add}
        exec(compile(marked(parse(source), PATH), PATH, "exec"), space)
        entered.clear()
        assert task.call is not None
        try:
            answer = space["answer"](**task.call.args)  # type: ignore[operator]
        except Exception as error:  # noqa: BLE001 - the tool's own
            fault = Fault(type(error).__name__, str(error), f"{PATH}:answer", RESOURCE)
            outcome = Outcome(Result.FAILED, 0.0, str(error), fault)
            done = replace(attempt(passed=False, resources=(RESOURCE,)), outcome=outcome)
            return replace(done, image=self.image, reached=tuple(sorted(entered)))
        if not task.checks:  # whatever it is, nobody says that it is wrong
            done = attempt(passed=True, answer=answer, resources=(RESOURCE,))
            return replace(done, outcome=replace(done.outcome, checks=()), reached=tuple(sorted(entered)))
        passed = answer == task.checks[0].spec["value"]
        done = attempt(passed=passed, answer=answer, resources=(RESOURCE,), reason=f"got {answer!r}")
        return replace(done, image=self.image, reached=tuple(sorted(entered)))

    def labels(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Of all functions of the tool: what a script that runs nothing says was entered."""
        source = self.registry.files(snapshot, PATH)[PATH].decode()
        return tuple(label for _, label in functions(parse(source), PATH))

    def now(self) -> datetime:
        return datetime.now(UTC) + self.later

    @property
    def parts(self) -> Dependencies:
        return Dependencies(
            snapshots=self.registry,
            candidates=self.registry,
            evolvable=self.registry,
            records=self.ledger,
            journal=self.ledger,
            cursor=self.ledger,
            audit=self.ledger,
            blobs=self.blobs,
            executor=self.executor,
            replayer=SerialReplayer(),
            proposers={Layer.SKILL: (self.proposer,)},
            policy=self.policy,
            taxonomy=TAXONOMY,
            consent_key=self.key,
            now=self.now,
            image_of=lambda sandbox: self.image,
        )

    def task(self, points: int, expected: str, share: Share = Share.OPEN) -> Task:
        made = Task(
            id=f"task-{points}-{len(self.ledger.states)}",
            name=f"{points} points",
            goal=f"grade {points}",
            call=Call("calc/grade", {"points": points}),
            inputs=(),
            agent="default",
            limits=Limits(),
            effects=(),
            checks=(Check("equals", {"value": expected}),),
            schedule=None,
            created_at=self.now(),
        )
        self.ledger.add_task(made, share)
        return made

    def live(self, task: Task, share: Share = Share.OPEN, sandbox: str = "fake") -> Run:
        """One live run on what is stable, as the daemon would do it."""
        again = task
        if self.ledger.states[task.id] == "done":
            again = replace(task, id=f"{task.id}-again-{len(self.ledger.states)}")
            self.ledger.add_task(again, share)
        stable = self.registry.stable()
        run = Run(
            f"run-{again.id}", again.id, again.key, share, 1, stable, sandbox, "none", datetime.now(UTC)
        )
        self.ledger.begin_run(run)
        done = self._script(again, stable)
        self.ledger.finish_run(run.id, done.outcome, RunEnd(done.answer, resources=done.resources))
        return self.ledger.run(run.id)

    def seed(self, hidden: Iterable[tuple[int, str]] = ((45, "fail"),)) -> None:
        """Two failing tasks of equal fault (50 points each), guards on both sides, a hold-out."""
        self.failing = [self.task(50, "pass"), self.task(50, "pass ")]
        self.failing[1] = self._twin(self.failing[1])
        for points, expected in ((60, "pass"), (90, "pass"), (10, "fail"), (49, "fail")):
            self.live(self.task(points, expected))
        for points, expected in hidden:
            self.live(self.task(points, expected, Share.HOLD_OUT), Share.HOLD_OUT)
        for task in self.failing:
            self.live(task)

    def _twin(self, task: Task) -> Task:
        """The same fault met by other work: another goal, so another key."""
        twin = replace(
            task, id=task.id + "-twin", goal="grade fifty", checks=(Check("equals", {"value": "pass"}),)
        )
        self.ledger.add_task(twin, Share.OPEN)
        return twin

    def open(self) -> Evolution:
        """Mine and triage; exactly one evolution opens."""
        mine(self.parts)
        (opened,) = triage(self.parts)
        return opened

    def evolve(self, evolution: Evolution) -> Evolution:
        evolve(self.parts, evolution.id, self.durable)
        return self.ledger.get(Evolution, evolution.id)

    def source(self) -> str:
        return self.registry.files(self.registry.stable(), PATH)[PATH].decode()

    def trials(self) -> list[Trial]:
        return list(self.ledger.find(Trial))

    def evidence(self) -> Evidence:
        return self.ledger.find(Evidence)[-1]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def resource() -> ResourceId:
    return ResourceId(Kind.SKILL, "calc")
