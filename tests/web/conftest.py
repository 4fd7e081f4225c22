"""A home in which an edit waits for consent, a run asks, a schedule fails, a skill is refused; and its page over HTTP.

What tools, models and files could have written holds what a browser would obey.
"""

from __future__ import annotations

import random
import secrets
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentos.daemon.offline import offline_context
from agentos.daemon.setup import init_home
from agentos.domain import (
    Arm,
    Candidate,
    Cost,
    Evolution,
    EvolutionState,
    InputFile,
    Limits,
    Outcome,
    Question,
    Result,
    Run,
    RunEnd,
    Share,
    Step,
    Task,
    TaskState,
    Trial,
    TrialSet,
)
from agentos.evolver.cycle import evolve
from agentos.evolver.find.mining import mine
from agentos.evolver.find.triage import triage
from agentos.evolver.policy import ConsentPolicy
from agentos.evolver.verdict.pairing import FIRST
from agentos.home import Home
from agentos.ledger.blobs import BlobStore
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.testing import Undurable
from agentos.web.context import LOOPBACK, Reach
from agentos.web.listening import listening_on
from agentos.web.server import server_of
from agentos.web.sessions import LoginLinks
from tests.cli.evolved_home import commit_fault, run_all, without_boxes
from tests.homes import pack

SCRIPT = "<script>document.title='pwned'</script>"
MARKDOWN = "[click](javascript:alert(1)) ![x](http://evil.example/x.png) <img src=x onerror=alert(1)>"
OVERRIDE = "\u202egpj.exe"
SVG = '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'
FILES = {
    "../../etc/passwd": b"no",
    "report.html": SCRIPT.encode(),
    "ünï\r\nX-Evil: 1.txt": b"text",
    "a.svg": SVG.encode(),
}


@pytest.fixture(scope="session")
def waiting_home(first_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once; each test gets a copy."""
    home = Home(tmp_path_factory.mktemp("web") / "home")
    shutil.copytree(first_home, home.root)
    make_waiting_home(home)
    return pack(home.root)


def make_waiting_home(home: Home) -> None:
    """Everything that the inbox shows."""
    init_home(home)
    registry = Registry(home.registry)
    commit_fault(registry)
    with offline_context(home) as parts:
        parts = without_boxes(parts, registry)
        parts = replace(parts, policy=replace(parts.policy, consent=ConsentPolicy(medium="ask")))
        run_all(parts, registry)
        mine(parts)
        (opened,) = triage(parts)
        evolve(parts, opened.id, Undurable())
        ended = parts.evolution(opened.id)
        assert ended.state is EvolutionState.AWAITING_CONSENT, ended.reason
        ledger: Any = parts.records
        stable = parts.snapshots.stable()
        _ask(ledger, stable)
        _hostile_run(ledger, stable, BlobStore(home.blobs))
        _failing_schedule(ledger, stable)
        ledger.set_kv("skills.refused", {f"/skills/{SCRIPT}": ["its front matter has no name", MARKDOWN]})


def a_task(id: str, name: str, **more: Any) -> Task:
    whole: dict[str, Any] = {"goal": name, "call": None, "checks": (), "schedule": None} | more
    return Task(
        id=id, name=name, inputs=(), agent="default", limits=Limits(), effects=(), created_at=datetime.now(UTC), **whole
    )  # fmt: skip


def a_run(ledger: Ledger, task: Task, stable: Any, id: str) -> Run:
    run = Run(id, task.id, task.key, Share.OPEN, 1, stable, "fake", "none", datetime.now(UTC))
    ledger.begin_run(run)
    return run


def _ask(ledger: Ledger, stable: Any) -> None:
    task = a_task("task-ask", "Sort the letters")
    ledger.add_task(task, Share.OPEN)
    run = a_run(ledger, task, stable, "run-ask")
    ledger.keep(
        Question("question-1", task.id, task.id, run.id, "Which folder?", ("in", "out"), datetime.now(UTC))
    )
    ledger.finish_run(run.id, Outcome(Result.WAITING, 0.0, "Which folder?"))


def _hostile_run(ledger: Ledger, stable: Any, blobs: BlobStore) -> None:
    """Its name, steps, answer and files hold scripts."""
    task = a_task("task-hostile", f"Read {SCRIPT}", goal=MARKDOWN)
    ledger.add_task(task, Share.OPEN)
    run = a_run(ledger, task, stable, "run-hostile")
    now = datetime.now(UTC)
    seen = {"text": f"{SVG} {OVERRIDE} {'x' * 9_000}"}
    ledger.append_step(Step(run.id, 0, "call", {"tool": SCRIPT, "args": MARKDOWN}, seen, None, now, 12.0))
    files = tuple(InputFile(path, blobs.put(data), len(data)) for path, data in FILES.items())
    outcome = Outcome(Result.FAILED, 0.0, f"expected {SCRIPT}")
    ledger.finish_run(run.id, outcome, RunEnd({"html": SCRIPT}, files))


def _failing_schedule(ledger: Ledger, stable: Any) -> None:
    whole = a_task("task-nightly", "Nightly report", schedule="0 7 * * *")
    ledger.add_task(whole, Share.OPEN, TaskState.SCHEDULED)
    for number, result in enumerate((Result.PASSED, Result.PASSED, Result.FAILED)):
        copy = replace(whole, id=f"task-nightly-{number}", schedule=None, schedule_id=whole.id)
        ledger.add_task(copy, Share.OPEN)
        run = a_run(ledger, copy, stable, f"run-nightly-{number}")
        ledger.finish_run(run.id, Outcome(result, 1.0, "the feed was empty"))


def add_varying_evolution(home: Home) -> str:
    """One more evolution, promoted, of tasks that vary: 12 rounds of pairs each, by fixed dice. Its id."""
    dice = random.Random(7)
    with offline_context(home) as parts:
        ledger: Any = parts.records
        (known,) = ledger.find(Evolution)
        old = ledger.get(Candidate, known.candidate_id)
        candidate = replace(old, id="cand-varying-1", evolution_id="evo-varying")
        ended = datetime.now(UTC)
        fresh = replace(
            known, id="evo-varying", state=EvolutionState.PROBATION, candidate_id=candidate.id, promoted=known.base, ended_at=ended
        )  # fmt: skip
        ledger.put(candidate)
        ledger.put(fresh)
        chances = {TrialSet.EVIDENCE: (0.3, 0.9), TrialSet.GUARD: (0.9, 0.9)}
        trials = [
            it for it in ledger.find(Trial, evolution_id=known.id) if it.repeat == 0 and it.set in chances
        ]
        for trial in {(it.task_id, it.arm): it for it in trials}.values():
            for turn in range(12):
                passed = dice.random() < chances[trial.set][trial.arm is Arm.CANDIDATE]
                result = Outcome(
                    Result.PASSED if passed else Result.FAILED,
                    float(passed),
                    "",
                    cost=Cost(cpu_s=0.5, usd=0.001),
                )
                own = {"candidate_id": candidate.id, "number": 1} if trial.arm is Arm.CANDIDATE else {}
                name = f"trial-varying-{trial.task_id}-{trial.arm}-{turn}"
                ledger.put(
                    replace(trial, id=name, evolution_id=fresh.id, repeat=FIRST + turn, outcome=result, **own)
                )
    return fresh.id


@pytest.fixture
def home(waiting_home: Path, tmp_path: Path) -> Home:
    shutil.copytree(waiting_home, tmp_path / "home")
    return Home(tmp_path / "home")


@dataclass(frozen=True, slots=True)
class Served:
    """A page that answers, and what to know of its home."""

    home: Home
    port: int
    links: LoginLinks

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def link(self) -> str:
        return f"{self.address}/enter?once={self.links.make()}"

    @contextmanager
    def browser(self) -> Iterator[httpx.Client]:
        """Let in, with what a browser sends along."""
        with httpx.Client(base_url=self.address, headers={"Origin": self.address}, timeout=60) as client:
            assert client.get(self.link).status_code == 303
            yield client

    @property
    def evolution(self) -> Evolution:
        (found,) = Reader(self.home.ledger).find(Evolution)
        return found


@contextmanager
def serving(home: Home, reach: Reach | None = None) -> Iterator[Served]:
    """The server, as `agentos web` runs it, on a port of its own."""
    key = secrets.token_bytes(32)
    with listening_on(LOOPBACK, 0) as listening:
        port = listening.getsockname()[1]
        reader = Reader(home.ledger)
        server = server_of(home, reader, (reach or Reach()).on(port), key)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        try:
            yield Served(home, port, LoginLinks(key))
        finally:
            server.should_exit = True
            thread.join()
            reader.close()


@pytest.fixture
def served(home: Home) -> Iterator[Served]:
    with serving(home) as found:
        yield found


@pytest.fixture
def browser(served: Served) -> Iterator[httpx.Client]:
    with served.browser() as client:
        yield client
