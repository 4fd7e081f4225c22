"""Whole evolutions through the product's own ``evolve``, with outcomes thrown by dice: who is promoted, after how many trials.

What is simulated is the execution alone, by the chance with which a task passes on the base and with an edit.
Ledger and registry are those in memory of ``agentos.testing``; mining, triage, curating, replay, judge and promotion
are the real ones. A failure has four evidence tasks, eight guards and four hidden tasks, each of which ran once
live: the ledger does not tell that a task is flaky.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count

from agentos.domain import (
    Call,
    Check,
    Cost,
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
    Trial,
)
from agentos.evolver.cycle import evolve
from agentos.evolver.dependencies import Dependencies
from agentos.evolver.documents import load_taxonomy
from agentos.evolver.find.mining import mine
from agentos.evolver.find.triage import triage
from agentos.evolver.policy import Judge, Policy, ProposePolicy
from agentos.evolver.states import retry
from agentos.ports import Attempt, Plan, Proposal
from agentos.shipped import folder
from agentos.testing import FakeRegistry, MemoryBlobs, MemoryLedger, ScriptedProposer, Undurable, attempt

PATH, RESOURCE = "skill/calc/tools/grade.py", "skill/calc"
TOOL = "def answer(points):\n    return points > 50\n"
# What the edits change: a text, because a scanner is started for each edit of code.
EDITED, TEXT = "skill/calc/SKILL.md", "---\nname: calc\ndescription: Grades.\n---\nGrade by 50.\n"
TAXONOMY = load_taxonomy(folder("evolver") / "taxonomy.toml")
POLICY = Policy(propose=ProposePolicy(max_candidates=20), judge=Judge(fresh_tasks=0))  # only drawn work
SETS = {"evidence": 4, "guard": 8, "hidden": 4}
PROMOTED = (EvolutionState.PROBATION, EvolutionState.PROMOTED)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Sort:
    """Work of one sort: how often it passes on the base, and with the edits that are tried."""

    low: float  # each evidence task's chance on the base is drawn from here ...
    high: float  # ... to here
    gain: float = 0.0  # of the last edit; those before it change nothing
    steady: float = 1.0  # the least chance of a guard or hidden task, which no edit changes
    model: bool = False  # it asks a model, so it is known to vary
    tries: tuple[int, ...] = (1,)  # edits of each evolution; all after the first are reconsidered ones


class _InTurn:
    """Replayer without a thread."""

    def map(self, work, jobs):  # type: ignore[no-untyped-def] # as the port says
        return [work(job) for job in jobs]


@dataclass
class Home:
    """One failure in a home of its own."""

    sort: Sort
    dice: random.Random
    registry: FakeRegistry = field(default_factory=lambda: FakeRegistry({PATH: TOOL, EDITED: TEXT}))
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    chances: dict[str, float] = field(default_factory=dict)
    good: set[str] = field(default_factory=set)  # trees with the edit that helps
    proposer: ScriptedProposer = field(default_factory=lambda: ScriptedProposer([]))

    def __post_init__(self) -> None:
        self.numbers = count(1)
        self.parts = Dependencies(
            self.registry, self.registry, self.registry, self.ledger, self.ledger, self.ledger, self.ledger,
            MemoryBlobs(), self, _InTurn(), {Layer.SKILL: (self.proposer,)}, POLICY, TAXONOMY, bytes(32),
            lambda: datetime.now(UTC), image_of=lambda sandbox: "",
        )  # fmt: skip
        for which, many in SETS.items():
            for number in range(many):
                evidence = which == "evidence"
                low, high = (self.sort.low, self.sort.high) if evidence else (self.sort.steady, 1.0)
                self._live(f"{which}-{number}", self.dice.uniform(low, high), which)

    def _live(self, name: str, chance: float, which: str) -> None:
        share = Share.HOLD_OUT if which == "hidden" else Share.OPEN
        check = (Check("equals", {"value": name}),)
        call = Call("calc/grade", {"points": name})
        task = Task(name, name, f"do {name}", call, (), "default", Limits(), (), check, None, NOW)
        self.chances[name] = chance
        self.ledger.add_task(task, share)
        run = Run(f"run-{name}", name, task.key, share, 1, self.registry.stable(), "fake", "none", NOW)
        self.ledger.begin_run(run)
        if self.sort.model:
            thought = {"message": {"content": "hm"}}
            self.ledger.append_step(Step(run.id, 0, "model", {"model": ""}, thought, None, NOW, 1.0))
        done = self._attempt(passed=which != "evidence")
        self.ledger.finish_run(run.id, done.outcome, RunEnd(done.answer, resources=done.resources))

    def _attempt(self, *, passed: bool) -> Attempt:
        done = attempt(passed=passed, resources=(RESOURCE,))
        cost = Cost(wall_s=1.0, tokens=100, usd=0.001, calls=1, live_calls=1) if self.sort.model else Cost()
        return replace(done, outcome=replace(done.outcome, cost=cost))

    def execute(
        self, task: Task, snapshot: Snapshot, run_id: str, on_step: object = None, plan: Plan | None = None
    ) -> Attempt:
        """As the port says: by the dice."""
        chance = self.chances[task.id]
        if snapshot.tree in self.good and task.id.startswith("evidence"):
            chance = min(1.0, chance + self.sort.gain)
        return self._attempt(passed=self.dice.random() < chance)

    def proposals(self, edits: int, *, last: bool) -> list[Proposal]:
        """So many edits; the last of all helps, if any does."""
        made = []
        for left in range(edits - 1, -1, -1):
            text = TEXT.replace("50", str(50 + next(self.numbers)))
            made.append(Proposal("a cause", "an edit", "dice", {EDITED: text}, "why", (), ()))
            if self.sort.gain and last and not left:
                files = {EDITED: text}
                self.good.add(self.registry.add_candidate("known", self.registry.stable(), files).tree)
        return made

    def ends(self) -> tuple[bool, int, int]:
        """Whether an edit was promoted, trials, and edits that were tried on the evidence."""
        mine(self.parts)
        evolution = next(iter(triage(self.parts)))
        promoted = False
        for number, edits in enumerate(self.sort.tries):
            evolution = retry(self.parts, evolution) if number else evolution
            last = number == len(self.sort.tries) - 1
            self.proposer.proposals = self.proposals(edits, last=last)
            promoted = evolve(self.parts, evolution.id, Undurable()) in PROMOTED
            evolution = self.ledger.get(Evolution, evolution.id)
            if promoted:
                break
        trials = list(self.ledger.find(Trial))
        return promoted, len(trials), len({trial.candidate_id for trial in trials} - {""})


STEADY, FLAKY, MODEL = Sort(0.0, 0.0), Sort(0.3, 0.7), Sort(0.0, 0.6, model=True)
SORTS = {
    "steady": STEADY,
    "flaky 30-70 %": FLAKY,
    "flaky 5-30 %": Sort(0.05, 0.3),
    "flaky 30-70 %, guards 80-100 %": replace(FLAKY, steady=0.8),
    "model 0-60 %": MODEL,
}
TRIES = {"1": (1,), "5": (5,), "20": (20,), "4 x 5": (5, 5, 5, 5)}
REPAIRS = {
    "steady repaired": (replace(STEADY, gain=1.0), ("1", "5")),
    "flaky 30-70 % repaired": (replace(FLAKY, gain=1.0), ("1", "5")),
    "flaky 5-30 % repaired": (Sort(0.05, 0.3, gain=1.0), ("1",)),
    "flaky 30-70 %, guards 80-100 %, repaired": (replace(FLAKY, gain=1.0, steady=0.8), ("1",)),
    "model 0-60 %, +40 %": (replace(MODEL, gain=0.4), ("1",)),
}
ROWS = {
    **{
        f"{name}: {tries}": replace(sort, tries=TRIES[tries])
        for name, sort in SORTS.items()
        for tries in TRIES
    },
    **{
        f"{name}: {tries}": replace(sort, tries=TRIES[tries])
        for name, (sort, wanted) in REPAIRS.items()
        for tries in wanted
    },
}


def ends(name: str, evolutions: int, seed: str) -> list[tuple[bool, int, int]]:
    """How so many evolutions of one sort of work end."""
    dice = random.Random(f"{seed} {name}")
    return [Home(ROWS[name], dice).ends() for _ in range(evolutions)]


def row(name: str, ended: Sequence[tuple[bool, int, int]]) -> tuple[str, str, str, str]:
    """One sort of work with so many edits that change nothing, or of which the last helps."""
    evolutions, promoted = len(ended), sum(end[0] for end in ended)
    low, high = limits(promoted, evolutions)
    return (
        name,
        f"promoted {promoted / evolutions:.2%}",
        f"95 % limits {low:.1%} to {high:.1%}",
        f"{mean([end[1] for end in ended])} trials, {mean([end[2] for end in ended])} edits tried; n={evolutions}",
    )


def mean(values: Sequence[int]) -> str:
    """Of whole numbers."""
    return f"{statistics.mean(values):.1f}"


def limits(hits: int, many: int) -> tuple[float, float]:
    """Clopper's and Pearson's limits of a share, 95 %: exact, by bisection of the binomial distribution."""

    def at_most(hits: int, chance: float) -> float:
        return sum(math.comb(many, k) * chance**k * (1 - chance) ** (many - k) for k in range(hits + 1))

    def chance_where(wanted: float, hits: int) -> float:
        low, high = 0.0, 1.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if at_most(hits, middle) > wanted else (low, middle)
        return (low + high) / 2

    return (
        chance_where(0.975, hits - 1) if hits else 0.0,
        chance_where(0.025, hits) if hits < many else 1.0,
    )
