"""A home with the test kit in its registry, a warm sandbox, and a real daemon process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentos.daemon.control.daemon_lock import daemon_info
from agentos.domain import Call, Check, Effect, Limits, Share, Task, TaskState, new_id
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from tests.command_server import Command, command_server
from tests.homes import pack

KIT = Path(__file__).parent / "kit"
# For whole evolutions whose matter is not what comes in after their edit ...
WITHOUT_FRESH = "[judge]\nfresh_tasks = 0\n"
# ... nor how edits are searched and compared on generated inputs.
UNCOMPARED = (
    "[mine]\nsettle_s = 0.3\n[safety]\nrepeats = 1\n"
    f"[replay]\nrepeats = 1\nneighbours = 0\nmutants = 0\n{WITHOUT_FRESH}"
)
QUICK_POLICY = f"[propose]\nbudget_s = 2.0\nmax_candidates = 2\n{UNCOMPARED}"
BUSY = 5  # so much longer is waited than a quiet machine would need: patience costs nothing


@pytest.fixture(scope="session")
def made_home(first_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An initialised home with the kit; copied for each test, because making one takes a second."""
    home = Home(tmp_path_factory.mktemp("made") / "home")
    shutil.copytree(first_home, home.root)
    (home.root / "policy.toml").write_text(WITHOUT_FRESH)
    files = {
        f"skill/test-kit/{path.relative_to(KIT).as_posix()}": path.read_bytes()
        for path in KIT.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    Registry(home.registry).commit(files, "The test kit", "edit")
    return pack(home.root)


@pytest.fixture
def home(made_home: Path, tmp_path: Path) -> Home:
    shutil.copytree(made_home, tmp_path / "home")
    return Home(tmp_path / "home")


@pytest.fixture
def ledger(home: Home) -> Iterator[Ledger]:
    opened = Ledger(home.ledger)
    yield opened
    opened.close()


@pytest.fixture
def make_task() -> Callable[..., Task]:
    """A task that calls a tool of the kit: ``make_task("double", n=21, expect=42)``."""
    return _make_task


def _make_task(tool: str, *, expect: int | None = None, limits: Limits | None = None, **args: Any) -> Task:
    checks = () if expect is None else (Check("equals", {"value": expect, "path": "n"}),)
    return Task(
        id=new_id("task"),
        name=f"{tool} {args}",
        goal=f"call {tool}",
        call=Call(tool, args),
        inputs=(),
        agent="default",
        limits=limits or Limits(wall_s=BUSY * 20.0),
        effects=(Effect.PURE, Effect.READ, Effect.WRITE),
        checks=checks,
        schedule=None,
        created_at=datetime.now(UTC),
    )


@dataclass
class Daemon:
    """A daemon of its own process on ``home``."""

    home: Home
    child: subprocess.Popen[bytes] | Command | None = None
    environment: dict[str, str] = field(default_factory=dict)
    before: list[str] = field(default_factory=list)  # of the command line
    stand_by: bool = False

    def start(self, *, wait: bool = True) -> Daemon:
        self.close()
        words = ["--home", str(self.home.root), "daemon", "run", "--quiet"]
        words += ["--stand-by"] if self.stand_by else []
        environment = os.environ | self.environment
        if self.before:
            command = [*self.before, sys.executable, "-P", "-m", "agentos", *words]
            self.child = subprocess.Popen(
                command, env=environment, start_new_session=True, stderr=subprocess.PIPE
            )
        else:
            self.child = command_server().start(*words, env=environment, quiet=True)
        if wait:
            until(self.ready, "the daemon is ready", 120)
        return self

    def ready(self) -> bool:
        info = daemon_info(self.home)
        assert self.child is not None
        if self.child.poll() is not None and self.child.stderr is not None:
            pytest.fail(f"the daemon ended: {self.child.stderr.read().decode()}")
        return info is not None and info.pid == self.child.pid and info.ready

    def signal(self, number: signal.Signals) -> None:
        assert self.child is not None
        self.child.send_signal(number)

    def ended(self, seconds: float = 20) -> int:
        assert self.child is not None
        return self.child.wait(BUSY * seconds)

    def close(self) -> None:
        if self.child is not None:
            if self.child.poll() is None:
                self.child.kill()
                self.child.wait()
            if self.child.stderr is not None:
                self.child.stderr.close()


@pytest.fixture
def daemon(home: Home) -> Iterator[Daemon]:
    made = Daemon(home)
    yield made
    made.close()


@pytest.fixture
def tiny_home(made_home: Path, tmp_path: Path) -> Iterator[Home]:
    """A home on a disk of its own, which is soon full."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    place = tmp_path / "tiny"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", place], check=True)
    try:
        subprocess.run(["cp", "-r", made_home, place / "home"], check=True)
        yield Home(place / "home")
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def until(condition: Callable[[], Any], what: str, seconds: float = 20) -> None:
    """Poll; fails with ``what`` when it did not come true in time."""
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        if waited > BUSY * seconds:
            pytest.fail(f"after {BUSY * seconds} s still not: {what}")
        time.sleep(0.02 if waited < 2 else 0.1)  # what takes long needs the machine, and looking costs


@pytest.fixture(name="until")
def _until() -> Callable[..., None]:
    return until


@pytest.fixture
def add(ledger: Ledger) -> Callable[[Task], Task]:
    """Queue a task as the command does."""

    def queue(task: Task, state: TaskState = TaskState.QUEUED) -> Task:
        ledger.add_task(replace(task), Share.OPEN, state)
        return task

    return queue


@pytest.fixture
def all_done(home: Home, until: Callable[..., None]) -> Callable[..., None]:
    """Wait until no task is queued or running."""

    def wait(seconds: float = 30) -> None:
        reader = Reader(home.ledger)
        until(
            lambda: not any(reader.tasks(state) for state in (TaskState.QUEUED, TaskState.RUNNING)),
            "all tasks are done",
            seconds,
        )

    return wait
