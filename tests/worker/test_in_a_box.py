"""The same worker as process 1 of a real sandbox, where it can be rough: nothing else is there."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentos.domain import Limits
from agentos.errors import Unavailable
from agentos.messages import RunDone, RunJob, StepFrame
from agentos.sandboxes.bubblewrap import Bubblewrap

pytestmark = pytest.mark.sandbox

PATH = "skill/demo/tools/probe.py"
HARNESS = Path(__file__).parents[2] / "registry" / "harness" / "default"


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bubblewrap]:
    with Bubblewrap(tmp_path_factory.mktemp("home"), 61322 if os.geteuid() == 0 else None) as made:
        try:
            made.start()
        except Unavailable as error:
            if "bubblewrap" in os.environ.get("AGENTOS_REQUIRE", ""):
                raise
            pytest.skip(str(error))
        yield made


def run(sandbox: Bubblewrap, source: str, harness: str = "") -> tuple[list[StepFrame], RunDone]:
    files = {f"harness/default/{path.name}": path.read_text() for path in HARNESS.glob("*.*")}
    files[PATH] = source
    if harness:
        files["harness/default/harness.py"] = harness
    job = RunJob(
        run_id="run-1", goal="a test", call={"tool": "probe", "args": {}}, agent="default",
        effects=["pure", "write"], max_steps=20, tool_wall_s=1.0, output_bytes=1 << 16, memory_mb=128,
        harness="harness/default", files=list(files), inputs=[],
    )  # fmt: skip
    deadline = time.monotonic() + 30
    steps = []
    with sandbox.open(Limits(memory_mb=128, processes=32, workspace_mb=8)) as box:
        box.channel.send(job.model_dump(), tuple(text.encode() for text in files.values()))
        while (frame := box.channel.receive(deadline=deadline)).head["type"] == "step":
            steps.append(StepFrame.model_validate(frame.head))
    return steps, RunDone.model_validate(frame.head)


def test_a_call_in_a_box(sandbox: Bubblewrap, tool: Callable[..., str]) -> None:
    steps, done = run(sandbox, tool("probe", "return Output(n=os.getuid())"))
    assert done.finished == "answered"
    assert done.answer["n"] != 0
    assert [step.node for step in steps] == ["route", "call", "act", "observe", "verify", "finish"]


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        ("while True:\n    try: os.fork()\n    except OSError: pass", {"timeout"}),
        ("while True:\n    if os.fork(): os._exit(0)", {"exit", "timeout", "BlockingIOError"}),
        ("os.kill(-1, signal.SIGKILL)", {"signal"}),
        (
            "os.kill(1, signal.SIGKILL)\nos.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep(60)",
            {"timeout", "signal"},
        ),
        ("k = []\nwhile True: k.append(bytearray(1 << 20))", {"memory"}),
        ("open('fill', 'wb').write(bytes(64 << 20))", {"OSError", "memory"}),
    ],
)
def test_the_worker_survives_what_a_tool_does(
    sandbox: Bubblewrap, tool: Callable[..., str], body: str, kinds: set[str]
) -> None:
    steps, done = run(sandbox, tool("probe", body, '["write"]'))
    assert done.finished == "failed"
    assert done.fault is not None
    assert done.fault.type in kinds, done.fault.message
    assert [step.node for step in steps][:5] == ["route", "call", "act", "observe", "finish"]


def test_after_a_fork_bomb_the_next_call_works(sandbox: Bubblewrap, tool: Callable[..., str]) -> None:
    harness = """
def run(sdk):
    first = sdk.call_tool("probe", {"n": 0})
    second = sdk.call_tool("probe", {"n": 2})
    sdk.finish([first.ok, second.output])
"""
    bomb = "if input.n == 0:\n    while True:\n        try: os.fork()\n        except OSError: pass\nreturn Output(n=len([p for p in os.listdir('/proc') if p.isdigit()]))"
    _, done = run(sandbox, tool("probe", bomb), harness)
    assert done.answer == [False, {"n": 3}]  # the worker, the tools' host, and the call itself
