"""A home in which an evolution was promoted: real ledger, registry, blobs and consent; only boxes are left out.

The executor runs the tool's text on the snapshot that it is given, in this process.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from agentos.daemon.offline import desk
from agentos.domain import (
    Call,
    Check,
    Evolution,
    EvolutionState,
    Layer,
    Limits,
    Run,
    Share,
    Snapshot,
    Step,
    Task,
)
from agentos.evolver.cycle import evolve
from agentos.evolver.find.mining import mine
from agentos.evolver.find.triage import triage
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.ports import Attempt, Proposal
from agentos.registry.store import Registry
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


def evolve_home(home: Home) -> Evolution:
    """Runs that fail and pass, a flag, the evolution, its promotion; a run after it."""
    registry = Registry(home.registry)
    page = b"---\nname: calc\ndescription: Grades.\n---\n"
    registry.commit({PATH: FAULTY.encode(), f"{SKILL}/SKILL.md": page}, "A skill with a fault", "edit")

    def script(task: Task, snapshot: Snapshot) -> Attempt:
        space: dict[str, Any] = {"__name__": "tool"}
        exec(registry.files(snapshot, PATH)[PATH].decode(), space)
        assert task.call is not None
        answer = space["run"](space["Input"](**task.call.args)).model_dump()
        passed = answer["grade"] == task.checks[0].spec["value"]
        return replace(attempt(passed=passed, answer=answer, resources=(SKILL,)), image="one")

    with desk(home) as parts:
        ledger: Any = parts.records
        for number, points in enumerate(OPEN):
            live(ledger, parts.snapshots.stable(), script, points, number, Share.OPEN)
        for number, points in enumerate(HIDDEN, len(OPEN)):
            live(ledger, parts.snapshots.stable(), script, points, number, Share.HOLD_OUT)
        ledger.flag("run-0", "the grade is wrong")
        edit = Proposal("a cause", "50 points pass", "compare", {PATH: RIGHT}, "why", (), ())
        parts = replace(
            parts,
            executor=FakeExecutor(script),
            replayer=SerialReplayer(),
            proposers={Layer.SKILL: (ScriptedProposer([edit]),), Layer.TOOL: (ScriptedProposer([edit]),)},
            image_of=lambda sandbox: "one",
            safety_probes=(),
        )
        mine(parts)
        (opened,) = triage(parts)
        evolve(parts, opened.id, Undurable())
        live(ledger, parts.snapshots.stable(), script, 50, 99, Share.OPEN)
        ended = parts.evolution(opened.id)
        assert ended.state is EvolutionState.PROBATION, ended.reason
        return ended


def live(ledger: Ledger, stable: Snapshot, script: Any, points: int, number: int, share: Share) -> None:
    """One live run with a step of its own, as the daemon would do it."""
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
    ledger.add_task(task, share)
    now = datetime.now(UTC)
    run = Run(f"run-{number}", task.id, task.key, share, 1, stable, "fake", "none", now)
    ledger.begin_run(run)
    done = script(task, stable)
    long = {"text": "x" * 9_000, "points": points}
    ledger.append_step(Step(run.id, 0, "call", {"tool": "calc/grade"}, long, done.outcome.fault, now, 1.0))
    ledger.finish_run(run.id, done.outcome, done.answer, (), done.resources)
