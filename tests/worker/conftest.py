"""A real worker process over a socket pair; only the sandbox around it is missing."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agentos.messages import (
    Answer,
    Ask,
    FaultFrame,
    GradeDone,
    GradeJob,
    LoadDone,
    LoadJob,
    RunDone,
    RunJob,
    StepFrame,
    WireCheck,
    WireFault,
)
from agentos.sandboxes.plainfiles import read_tar
from agentos.wire import Channel, Frame

INSIDE = Path(__file__).with_name("inside.py")
HARNESS = Path(__file__).parents[2] / "registry" / "harness" / "default"
PATIENCE_S = 150.0

TOOL = '''"""{name}."""
import os, sys, time, signal
from pydantic import BaseModel
TOOL = {{"name": "{name}", "description": "for a test", "effects": {effects}}}
class Input(BaseModel):
    n: int = 1
class Output(BaseModel):
    n: int
def run(input: Input) -> Output:
{body}
'''


def tool_source(name: str, body: str, effects: str = '["pure"]') -> str:
    """A tool file whose run has this body."""
    return TOOL.format(
        name=name, effects=effects, body="".join(f"    {line}\n" for line in body.splitlines())
    )


@dataclass
class Ran:
    """What came out of a run."""

    steps: list[StepFrame]
    done: RunDone
    files: dict[str, bytes] = field(default_factory=dict)
    asks: list[Ask] = field(default_factory=list)

    @property
    def requests(self) -> list[dict[str, Any]]:
        """What the model was asked, in order."""
        return [ask.body for ask in self.asks if ask.what == "model"]

    def acts(self) -> list[StepFrame]:
        return [step for step in self.steps if step.node == "act"]

    @property
    def act(self) -> StepFrame:
        (step,) = [step for step in self.steps if step.node == "act"]
        return step


class Worker:
    """One worker process, forked from a server that has everything imported."""

    def __init__(self, root: Path, server: socket.socket) -> None:
        self.workspace, self.snapshot = root / "ws", root / "snapshot"
        self.workspace.mkdir(parents=True)
        self.snapshot.mkdir()
        ours, theirs = socket.socketpair()
        status, write = os.pipe()
        with theirs:
            request = f"{self.workspace}\n{self.snapshot}".encode()
            socket.send_fds(server, [request], [theirs.fileno(), write])
        os.close(write)
        self._status = os.fdopen(status)
        self.pid = int(self._status.readline())
        self.channel = Channel(ours)

    def send(self, job: Any, *blobs: bytes) -> None:
        self.channel.send(job.model_dump(), blobs)

    def receive(self) -> Frame:
        return self.channel.receive(deadline=time.monotonic() + PATIENCE_S)

    def done(self, kind: type[Any]) -> Any:
        return kind.model_validate(self.receive().head)

    def ended(self) -> str:
        """What it said when it ended: "good", a traceback, or nothing when it was killed."""
        return self._status.read()

    def close(self) -> None:
        self.channel.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._status.read()  # the end of the pipe: it is gone
        self._status.close()

    # --- the jobs -------------------------------------------------------------------------

    def run(
        self,
        files: Mapping[str, str | bytes] | None = None,
        call: dict[str, Any] | None = None,
        inputs: dict[str, bytes] | None = None,
        answer: Callable[[Ask], dict[str, Any] | WireFault] | None = None,
        *,
        served: bool = False,
        **given: Any,
    ) -> Ran:
        """Run to the end with the default harness, or with the one among the files.

        ``answer`` gives the body of the answer to each ask, or the fault that it is refused with; to
        announced tool calls only if ``served``, else they may all be made.
        """
        files, inputs = dict(files or {}), inputs or {}
        if not any(path.startswith("harness/") for path in files):
            files |= {f"harness/default/{path.name}": path.read_text() for path in HARNESS.glob("*.*")}
        job: dict[str, Any] = {
            "run_id": "run-1", "goal": "a test", "call": call, "agent": "default", "effects": ["pure", "read"],
            "max_steps": 50, "tool_wall_s": 5.0, "output_bytes": 1 << 20, "memory_mb": 256,
            "harness": "harness/default",
        }  # fmt: skip
        job |= given | {"files": list(files), "inputs": list(inputs)}
        contents = (text if isinstance(text, bytes) else text.encode() for text in files.values())
        self.send(RunJob(**job), *contents, *inputs.values())
        steps: list[StepFrame] = []
        asks: list[Ask] = []
        while (frame := self.receive()).head["type"] in ("step", "ask"):
            if frame.head["type"] == "step":
                steps.append(StepFrame.model_validate(frame.head))
                continue
            asked = Ask.model_validate(frame.head)
            asks.append(asked)
            if asked.what == "tool" and not served:
                body: Any = {"go": True}
            else:
                assert answer is not None
                body = answer(asked)
            reply = {"fault": body} if isinstance(body, WireFault) else {"body": body}
            self.channel.send(Answer(id=asks[-1].id, **reply).model_dump())
        plain = read_tar(b"".join(frame.blobs))
        assert not plain.refused
        return Ran(steps, RunDone.model_validate(frame.head), plain.files, asks)

    def grade(
        self, answer: Any, *asked: tuple[str, dict[str, Any]], tar: bytes = b"", wall_s: float = 20.0
    ) -> GradeDone:
        wire = [WireCheck(kind=kind, spec=spec) for kind, spec in asked]
        self.send(GradeJob(checks=wire, answer=answer, wall_s=wall_s), tar)
        return GradeDone.model_validate(self.receive().head)

    def load(self, files: dict[str, str], wall_s: float = 5.0) -> LoadDone:
        self.send(
            LoadJob(files=list(files), tools=list(files), wall_s=wall_s),
            *(text.encode() for text in files.values()),
        )
        return LoadDone.model_validate(self.receive().head)

    def fault(self) -> FaultFrame:
        return FaultFrame.model_validate(self.receive().head)


@pytest.fixture
def tool() -> Callable[..., str]:
    """Makes a tool file: ``tool(name, body of run, effects)``."""
    return tool_source


@pytest.fixture(scope="session")
def server() -> Iterator[socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [sys.executable, "-I", INSIDE, str(theirs.fileno())], pass_fds=[theirs.fileno()]
    )
    theirs.close()
    yield ours
    ours.close()
    assert process.wait(PATIENCE_S) == 0


@pytest.fixture
def workers(tmp_path: Path, server: socket.socket) -> Iterator[Callable[[], Worker]]:
    made: list[Worker] = []

    def make() -> Worker:
        made.append(Worker(tmp_path / f"box-{len(made)}", server))
        return made[-1]

    yield make
    for worker in made:
        worker.close()


@pytest.fixture
def worker(workers: Callable[[], Worker]) -> Worker:
    return workers()


@pytest.fixture(scope="module")
def parts() -> Iterator[Any]:
    """Modules of the harness that ships by name, as attributes, imported into this process."""
    before, found = dict(sys.modules), ModuleType("parts")
    sys.path.insert(0, str(HARNESS))
    for name in ("context", "history", "tool_catalog", "observations", "compaction", "replies", "stop_rules"):
        setattr(found, name, importlib.import_module(name))
    yield found
    sys.path.remove(str(HARNESS))
    for name in set(sys.modules) - set(before):
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(HARNESS)):
            del sys.modules[name]
