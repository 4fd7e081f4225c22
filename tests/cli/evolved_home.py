"""A home in which an evolution was promoted: real ledger, registry, blobs and consent; only boxes are left out.

The executor runs the tool's text on the snapshot that it is given, in this process.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from agentos.daemon.offline import offline_context
from agentos.domain import (
    Call,
    Check,
    Evolution,
    EvolutionState,
    Layer,
    Limits,
    Run,
    RunEnd,
    Share,
    Snapshot,
    Step,
    Task,
    digest,
)
from agentos.errors import NotFound
from agentos.evolver.cycle import evolve
from agentos.evolver.dependencies import Dependencies
from agentos.evolver.find.mining import mine
from agentos.evolver.find.triage import triage
from agentos.home import Home
from agentos.ports import Attempt, Proposal
from agentos.registry.store import Registry
from agentos.syntax import MARK, marked, parse
from agentos.testing import FakeExecutor, ScriptedProposer, SerialReplayer, Undurable, attempt

SKILL = "skill/calc"
PATH = f"{SKILL}/tools/grade.py"
FAULTY = '''"""Whether the points are a pass."""

from pydantic import BaseModel

TOOL = {"name": "grade", "description": "Whether the points pass", "effects": ["pure"], "dependencies": []}


class Input(BaseModel):
    points: int


class Output(BaseModel):
    grade: str


def run(input: Input) -> Output:
    if input.points > 50:
        return Output(grade="pass")
    return Output(grade="fail")
'''
RIGHT = FAULTY.replace("> 50", ">= 50")
OPEN = (50, 50, 50, 60, 90, 10, 49, 30, 70, 55, 12)
HIDDEN = (45, 80, 51)


OTHER = "skill/other/SKILL.md"


class MovesOn(Undurable):
    """Another skill comes between the consent and the promotion."""

    def __init__(self, registry: Registry) -> None:
        super().__init__()
        self._registry = registry

    def step(self, name: str, work: Any) -> Any:
        if name == "promote":
            page = b"---\nname: other\ndescription: Something else.\n---\n"
            self._registry.commit({OTHER: page}, "Another skill", "edit")
        return super().step(name, work)


def evolve_home(home: Home, *, moved: bool = False) -> Evolution:
    """Runs that fail and pass, a flag, the evolution, its promotion; a run after it.

    ``moved``: the registry moved on before the promotion, so that it is put on a newer base.
    """
    registry = Registry(home.registry)
    commit_fault(registry)
    with offline_context(home) as parts:
        parts = without_boxes(parts, registry)
        run_all(parts, registry)
        mine(parts)
        (opened,) = triage(parts)
        evolve(parts, opened.id, MovesOn(registry) if moved else Undurable())
        live(parts.records, parts.snapshots.stable(), tool_script(registry), 50, 99, Share.OPEN)
        ended = parts.evolution(opened.id)
        assert ended.state is EvolutionState.PROBATION, ended.reason
        return ended


def commit_fault(registry: Registry) -> None:
    """The skill that is to be mended."""
    page = b"---\nname: calc\ndescription: Grades.\n---\n"
    registry.commit({PATH: FAULTY.encode(), f"{SKILL}/SKILL.md": page}, "A skill with a fault", "edit")


def run_all(parts: Dependencies, registry: Registry) -> None:
    """Live runs that fail and pass, and a flag."""
    ledger: Any = parts.records
    script = tool_script(registry)
    for number, points in enumerate(OPEN):
        live(ledger, parts.snapshots.stable(), script, points, number, Share.OPEN)
    for number, points in enumerate(HIDDEN, len(OPEN)):
        live(ledger, parts.snapshots.stable(), script, points, number, Share.HOLD_OUT)
    ledger.flag("run-0", "the grade is wrong")


def tool_script(registry: Registry) -> Callable[[Task, Snapshot], Attempt]:
    """Runs the tool of a snapshot in this process."""

    def script(task: Task, snapshot: Snapshot) -> Attempt:
        entered: set[str] = set()
        space: dict[str, Any] = {"__name__": "tool", MARK: entered.add}
        source = registry.files(snapshot, PATH)[PATH].decode()
        exec(compile(marked(parse(source), PATH), PATH, "exec"), space)
        assert task.call is not None
        answer = space["run"](space["Input"](**task.call.args)).model_dump()
        passed = answer["grade"] == task.checks[0].spec["value"]
        done = attempt(passed=passed, answer=answer, resources=(SKILL,))
        return replace(done, image="one", reached=tuple(sorted(entered)))

    return script


def without_boxes(parts: Dependencies, registry: Registry) -> Dependencies:
    """The pipeline with a scripted proposer, and runs in this process."""

    def given(task: Task, snapshot: Snapshot) -> str:
        return digest({path: digest(data) for path, data in registry.files(snapshot, SKILL).items()})

    edit = Proposal("a cause", "50 points pass", "compare", {PATH: RIGHT}, "why", (), ())
    return replace(
        parts,
        executor=FakeExecutor(tool_script(registry), given),
        replayer=SerialReplayer(),
        proposers={Layer.SKILL: (ScriptedProposer([edit]),), Layer.TOOL: (ScriptedProposer([edit]),)},
        image_of=lambda sandbox: "one",
        safety_probes=(),
        policy=replace(parts.policy, judge=replace(parts.policy.judge, fresh_tasks=0)),
    )


def live(ledger: Any, stable: Snapshot, script: Any, points: int, number: int, share: Share) -> None:
    """One live run with a step of its own, as the daemon would do it; what of it is there already stays."""
    task = Task(
        id=f"task-{number}",
        name=f"{points} points",
        goal=f"grade {points} for {number}",
        call=Call("calc/grade", {"points": points}),
        inputs=(),
        agent="default",
        limits=Limits(),
        effects=(),
        checks=(Check("equals", {"value": "pass" if points >= 50 else "fail", "path": "grade"}),),
        schedule=None,
        created_at=datetime.now(UTC),
    )
    with suppress(NotFound):
        task = ledger.task(task.id)
    ledger.add_task(task, share)
    run = Run(f"run-{number}", task.id, task.key, share, 1, stable, "fake", "none", task.created_at)
    with suppress(NotFound):
        run = ledger.run(run.id)
    if run.outcome is not None:
        return
    ledger.begin_run(run)
    done = script(task, run.snapshot)
    long = {"text": "x" * 9_000, "points": points}
    action = {"tool": "calc/grade"}
    ledger.append_step(Step(run.id, 0, "call", action, long, done.outcome.fault, task.created_at, 1.0))
    ledger.finish_run(run.id, done.outcome, RunEnd(done.answer, resources=done.resources))
