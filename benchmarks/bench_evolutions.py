"""Two thousand evolutions in one home: what one costs beside its trials, early and late, and what they leave.

python benchmarks/bench_evolutions.py [--count 2000] [--keep DIRECTORY]

Ledger, registry, triage, judge, promotion, probation and settling are the real ones; only the boxes are
not: a run passes when the number that its task asks for is in the tool's text. Each evolution mends two
failures by a new version of the text, is promoted, and stands its probation by three live runs. Guards and
hold-out are kept small, so that what is measured is the machinery and not the trials' records. On a RAM
disk where there is one: what a disk takes to flush is its own affair.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentos.domain import (
    Call,
    Check,
    Evolution,
    EvolutionState,
    Layer,
    Limits,
    Result,
    Run,
    RunEnd,
    Share,
    Snapshot,
    Task,
    new_id,
)
from agentos.evolver.cycle import evolve, finish_promotion
from agentos.evolver.dependencies import Dependencies
from agentos.evolver.documents import load_taxonomy
from agentos.evolver.find.mining import mine
from agentos.evolver.find.triage import triage
from agentos.evolver.guards.static import check
from agentos.evolver.policy import EvidencePolicy, Judge, Policy
from agentos.evolver.promote.promotion import approve
from agentos.evolver.watch.probation import settle, suspicions, watch_rates
from agentos.ledger.store import Ledger
from agentos.ports import Attempt, Brief, Proposal
from agentos.registry.store import Registry
from agentos.shipped import folder
from agentos.testing import FakeExecutor, Undurable, attempt

TOOLS, BLOCK = 20, 200
LIVE = frozenset({"task", "run", "run_resource", "step"})  # not an evolution's, but what it came from
FILLER = "".join(f"# what the tool is for, line {line}\n" for line in range(40))


def report(what: str, value: str, beside: str = "", remarks: str = "") -> None:
    """One result line."""
    print(f"| {what} | {value} | {beside} | {remarks} |", flush=True)


def path_of(tool: int) -> str:
    return f"skill/s{tool:02}/tools/grade.py"


def text_of(number: int) -> str:
    return f'{FILLER}"""Grades."""\n\n\ndef answer(n):\n    """Whether n is known."""\n    return n <= {number}\n'


def number_in(text: str) -> int:
    return int(text.rpartition("<=")[2])


class Growing:
    """A proposer that knows what is wrong: the number that the evidence asks for is too large."""

    name = "growing"

    def propose(self, brief: Brief) -> Iterator[Proposal]:
        wanted = max(int(case.call.args["n"]) for case in brief.cases)
        files = {brief.path: brief.source.replace(f"<= {number_in(brief.source)}", f"<= {wanted}")}
        fixes = tuple(case.task_id for case in brief.cases)
        yield Proposal("too small", f"Know {wanted}", "grow", files, "the tool's own text", fixes, ())


class InTurn:
    """One trial after the other, without a thread for each batch: the daemon's pool stands all the time."""

    def map(self, work: Callable[[Any], Any], jobs: Sequence[Any]) -> list[Any]:
        return [work(job) for job in jobs]


class StandIn(FakeExecutor):
    """Stands where boxes are; what it takes itself is no cost of an evolution."""

    spent_s = 0.0

    def execute(self, *given: Any, **more: Any) -> Attempt:
        """As ever, its CPU counted."""
        began = time.process_time()
        try:
            return super().execute(*given, **more)
        finally:
            self.spent_s += time.process_time() - began


class Home:
    """The real ledger and registry, and live runs on them."""

    def __init__(self, root: Path, registry: Registry | None = None) -> None:
        """``registry``: that of a home that is there; else one is made."""
        self.root = root
        files: dict[str, bytes] = {}
        for tool in range(TOOLS):
            files[path_of(tool)] = text_of(0).encode()
            name = f"s{tool:02}"
            files[f"skill/{name}/SKILL.md"] = (
                f"---\nname: {name}\ndescription: Grades.\n---\nGrades.\n".encode()
            )
        self.registry = registry or Registry.init(root / "registry.git", files)
        if registry is not None:
            registry.commit(files, "Skills that grow", "edit")
        self.ledger = Ledger(root / "ledger.db")
        policy = Policy(evidence=EvidencePolicy(max_guards=3, max_hold_out=1), judge=Judge(fresh_tasks=0))
        self.boxes = StandIn(self.script)
        self.parts = Dependencies(
            snapshots=self.registry,
            candidates=self.registry,
            evolvable=self.registry,
            records=self.ledger,
            journal=self.ledger,
            cursor=self.ledger,
            audit=self.ledger,
            blobs=self.ledger.blobs,
            executor=self.boxes,
            replayer=InTurn(),
            proposers={Layer.SKILL: (Growing(),)},
            policy=replace(policy, consent=replace(policy.consent, high="auto")),
            taxonomy=load_taxonomy(folder("evolver") / "taxonomy.toml"),
            consent_key=bytes(32),
            now=lambda: self.now(),
        )

        for tool in range(TOOLS):
            for goal in ("guard", "another", "further"):
                self.live(tool, 0, f"{goal} {tool}")

    def now(self) -> datetime:
        """The clock."""
        return datetime.now(UTC)

    def script(self, task: Task, snapshot: Snapshot) -> Attempt:
        assert task.call is not None
        skill = task.call.tool.partition("/")[0]
        text = self.registry.files(snapshot, f"skill/{skill}/tools")[f"skill/{skill}/tools/grade.py"].decode()
        wanted = task.call.args["n"]
        done = attempt(passed=wanted <= number_in(text), answer=wanted, resources=(f"skill/{skill}",))
        line = text[: text.index("def answer")].count("\n") + 1
        return replace(done, reached=(f"skill/{skill}/tools/grade.py:{line}:answer",))

    def live(self, tool: int, number: int, goal: str, **more: str) -> Result:
        """A run on what is stable; ``more`` arguments make it other work than that of the same number."""
        task = Task(
            id=new_id("task"),
            name=goal,
            goal=goal,
            call=Call(f"s{tool:02}/grade", {"n": number, **more}),
            inputs=(),
            agent="default",
            limits=Limits(),
            effects=(),
            checks=(Check("equals", {"value": True}),),
            schedule=None,
            created_at=self.now(),
        )
        stable = self.registry.stable()
        self.ledger.add_task(task, Share.OPEN)
        run = Run(new_id("run"), task.id, task.key, Share.OPEN, 1, stable, "fake", "none", self.now())
        self.ledger.begin_run(run)
        done = self.script(task, stable)
        self.ledger.finish_run(run.id, done.outcome, RunEnd(done.answer, resources=done.resources))
        return done.outcome.result

    def one(self, number: int, spent: dict[str, float]) -> None:
        """One evolution from two failures to a settled promotion; CPU seconds by stage are added to ``spent``."""
        tool, wanted = number % TOOLS, number // TOOLS + 1
        for twin in ("one", "other"):
            assert self.live(tool, wanted, f"{twin} {number}") is Result.FAILED
        with timed(spent, "mine and triage"):
            mine(self.parts)
            (opened,) = triage(self.parts)
        boxes = self.boxes.spent_s
        with timed(spent, "evolve"):
            if evolve(self.parts, opened.id, Undurable()) is EvolutionState.AWAITING_CONSENT:
                # so few guards show little
                approve(self.parts, self.ledger.get(Evolution, opened.id), "person:bench")
                finish_promotion(self.parts, opened.id, Undurable())
        spent["evolve"] -= self.boxes.spent_s - boxes
        assert self.ledger.get(Evolution, opened.id).state is EvolutionState.PROBATION, self.ledger.get(
            Evolution, opened.id
        )
        for twin in ("first", "second", "third"):
            assert self.live(tool, wanted, f"{twin} use {number}", use=twin) is Result.PASSED
        with timed(spent, "probation"):
            mine(self.parts)
            assert not watch_rates(self.parts)
            assert not suspicions(self.parts)
            assert len(settle(self.parts)) == 1


@contextmanager
def timed(spent: dict[str, float], name: str) -> Iterator[None]:
    """Add the CPU seconds of what is done inside."""
    began = time.process_time()
    yield
    spent[name] = spent.get(name, 0.0) + time.process_time() - began


class Rising:
    """GEPA's adapter for the same texts: each further number that a text knows raises every score."""

    propose_new_texts = None
    calls = 0

    def log(self, message: str) -> None:
        """Its logger too: says nothing."""

    def evaluate(
        self, batch: Sequence[int], candidate: Mapping[str, str], capture_traces: bool = False
    ) -> Any:
        from gepa.core.adapter import EvaluationBatch

        self.calls += len(batch)
        known = number_in(candidate["tool"])
        scores = [known / 1e6 for _ in batch]
        return EvaluationBatch([known for _ in batch], scores, [*batch] if capture_traces else None)

    def make_reflective_dataset(self, candidate: object, seen: Any, components: Sequence[str]) -> object:
        return {name: [{"case": case} for case in seen.trajectories] for name in components}


def beside_gepa(count: int, root: Path) -> None:
    """GEPA's own loop in this run: a proposal, three cases on each side and 16 to validate; nothing is kept safe."""
    try:
        import gepa
    except ImportError:
        report("GEPA's loop", "not measured", "", "pip install gepa")
        return

    def propose(candidate: Mapping[str, str], seen: object, components: Sequence[str]) -> dict[str, str]:
        return {name: text_of(number_in(candidate[name]) + 1) for name in components}

    adapter = Rising()
    began = time.process_time()
    result = gepa.optimize(
        {"tool": text_of(0)},
        trainset=list(range(16)),
        valset=list(range(16)),
        adapter=adapter,
        custom_candidate_proposer=propose,
        reflection_lm=lambda prompt: "",
        candidate_selection_strategy="current_best",
        max_metric_calls=22 * count,
        run_dir=str(root / "gepa"),
        logger=adapter,
    )
    took = (time.process_time() - began) * 1e3
    made = max(len(result.candidates) - 1, 1)
    report(
        "GEPA's loop, each accepted edit",
        f"{took / made:.1f} ms CPU",
        "",
        f"{adapter.calls / made:.0f} trials",
    )


def size_of(folder_: Path) -> int:
    return sum(path.stat().st_size for path in folder_.rglob("*") if path.is_file())


def database_of(path: Path) -> Mapping[str, int]:
    """Bytes by table, its indexes included."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        try:
            rows = connection.execute(
                "SELECT m.tbl_name, sum(s.pgsize) FROM dbstat AS s JOIN sqlite_master AS m ON m.name = s.name "
                "GROUP BY 1 ORDER BY 2 DESC"
            ).fetchall()
        except sqlite3.OperationalError:  # SQLite was built without dbstat
            return {"all": path.stat().st_size}
    return dict(rows)


def main() -> None:
    """Run, and report early and late blocks side by side."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    root = options.keep or Path(tempfile.mkdtemp(prefix="agentos-bench-", dir=place))
    root.mkdir(exist_ok=True)
    try:
        measure(Home(root), options.count)
    finally:
        if not options.keep:
            shutil.rmtree(root)


def measure(home: Home, count: int) -> None:
    """Evolve, then look at what it left."""
    check.scan = lambda old, new: []  # a process of its own, the same each time: bench_guards measures it
    blocks: list[dict[str, float]] = []
    fresh_git = size_of(home.root / "registry.git")
    for number in range(count):
        if number % BLOCK == 0:
            blocks.append({})
            home.registry.maintain()
            home.ledger.pack_trials(datetime.now(UTC))
        home.one(number, blocks[-1])
        if (number + 1) % BLOCK == 0:
            each = ", ".join(f"{name} {1e3 * value / BLOCK:.1f}" for name, value in blocks[-1].items())
            print(f"{number + 1} evolutions; ms CPU each: {each}", flush=True)
    early, late = blocks[0], blocks[-1]
    runs = min(count, BLOCK)
    for name in early:
        report(
            f"{name}, the last {runs} of {count}",
            f"{1e3 * late[name] / runs:.1f} ms CPU",
            f"{1e3 * early[name] / runs:.1f} ms the first {runs}",
            "each evolution",
        )
    total_early, total_late = sum(early.values()) / runs, sum(late.values()) / runs
    report(
        "an evolution beside its trials",
        f"{1e3 * total_late:.1f} ms CPU",
        f"{total_late / total_early:.2f} x the first",
    )
    beside_gepa(min(count, BLOCK), home.root)
    home.registry.maintain(loose=0)
    home.ledger.pack_trials(datetime.now(UTC))
    git = size_of(home.root / "registry.git") - fresh_git
    report(
        f"git, {count} text versions, packed", f"{git / 1e6:.1f} MB", "", f"texts of {len(text_of(1))} bytes"
    )
    tables = database_of(home.root / "ledger.db")
    total = sum(tables.values())
    big = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in list(tables.items())[:5])
    report("ledger", f"{total / 1e6:.1f} MB", f"{total / count / 1e3:.1f} kB each", f"{big} MB")
    live = sum(size for name, size in tables.items() if name in LIVE)
    report("of it the five live runs", f"{live / 1e6:.1f} MB", f"{live / count / 1e3:.1f} kB each", "")
    blobs = list((home.root / "blobs").rglob("*"))
    report("blobs", f"{sum(path.is_file() for path in blobs)}", "", "files: trajectories of trials, policies")
    environment = {**os.environ, "AGENTOS_HOME": str(home.root)}
    for command in ("health", "calibration"):
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "agentos", "evolution", command, "--json"],
            env=environment,
            check=True,
            capture_output=True,
        )
        report(
            f"agentos evolution {command}", f"{time.perf_counter() - began:.2f} s", "", f"{count} evolutions"
        )


if __name__ == "__main__":
    main()
