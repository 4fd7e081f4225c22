"""The same worker as process 1 of a real sandbox, where it can be rough: nothing else is there."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agentos.domain import Limits
from agentos.messages import Answer, Ask, RunDone, RunJob, StepFrame
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.wire import WireClosed

pytestmark = pytest.mark.sandbox

PATH = "skill/demo/tools/probe.py"
REGISTRY = Path(__file__).parents[2] / "registry"
HARNESS = REGISTRY / "harness" / "default"


def run(
    sandbox: Bubblewrap, source: str, harness: str = "", wall_s: float = 60.0, processes: int = 32
) -> tuple[list[StepFrame], RunDone]:
    files = {f"harness/default/{path.name}": path.read_text() for path in HARNESS.glob("*.*")}
    files[PATH] = source
    if harness:
        files["harness/default/harness.py"] = harness
    job = RunJob(
        run_id="run-1", goal="a test", call={"tool": "probe", "args": {}}, agent="default",
        effects=["pure", "write"], max_steps=20, tool_wall_s=wall_s, output_bytes=1 << 16, memory_mb=128,
        harness="harness/default", files=list(files), inputs=[],
    )  # fmt: skip
    deadline = time.monotonic() + 150
    steps = []
    with sandbox.open(Limits(memory_mb=128, processes=processes, workspace_mb=8)) as box:
        box.channel.send(job.model_dump(), tuple(text.encode() for text in files.values()))
        while (frame := box.channel.receive(deadline=deadline)).head["type"] != "done":
            if frame.head["type"] == "ask":  # whether the call may be made
                box.channel.send(Answer(id=frame.head["id"], body={"go": True}).model_dump())
            else:
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
    wall_s = 1.0 if "timeout" in kinds else 60.0  # else it is patience
    steps, done = run(sandbox, tool("probe", body, '["write"]'), wall_s=wall_s)
    assert done.finished == "failed"
    assert done.fault is not None
    assert done.fault.type in kinds, done.fault.message
    assert [step.node for step in steps][:5] == ["route", "call", "act", "observe", "finish"]


@pytest.mark.parametrize("place", ["shut", "."])
def test_a_folder_that_nobody_may_read_is_left_behind_with_a_sentence(
    sandbox: Bubblewrap, tool: Callable[..., str], place: str
) -> None:
    body = f"os.makedirs('{place}', exist_ok=True)\nos.chmod('{place}', 0)\nreturn Output(n=1)"
    steps, done = run(sandbox, tool("probe", body, '["write"]'))
    assert (done.finished, done.answer) == ("answered", {"n": 1})
    assert steps[-1].node == "outputs"
    assert steps[-1].fault is not None
    assert steps[-1].fault.type == "refused"


def test_after_a_fork_bomb_the_next_call_works(sandbox: Bubblewrap, tool: Callable[..., str]) -> None:
    harness = """
def run(sdk):
    first = sdk.call_tool("probe", {"n": 0})
    second = sdk.call_tool("probe", {"n": 2})
    sdk.finish([first.ok, second.output])
"""
    bomb = "if input.n == 0:\n    while True:\n        try: os.fork()\n        except OSError: pass\nreturn Output(n=len([p for p in os.listdir('/proc') if p.isdigit()]))"
    _, done = run(sandbox, tool("probe", bomb), harness, wall_s=3.0)
    assert done.answer == [False, {"n": 3}]  # the worker, the tools' host, and the call itself


def think(sandbox: Bubblewrap, *replies: list[tuple[str, dict[str, object]]]) -> list[list[str]]:
    """A run of the harness and the tools that ship; what each reply's calls gave, as the model is told it."""
    files = {f"harness/default/{path.name}": path.read_text() for path in HARNESS.glob("*.*")}
    files |= {
        f"tool/{path.parent.name}/tool.py": path.read_text() for path in REGISTRY.glob("tools/*/tool.py")
    }
    job = RunJob(
        run_id="run-1", goal="a test", call=None, agent="default", effects=["pure", "read", "write"],
        max_steps=100, tool_wall_s=20.0, output_bytes=1 << 18, memory_mb=256, harness="harness/default",
        files=list(files), inputs=["in.txt"], models=[{"name": "fake", "context_tokens": 32_768}],
    )  # fmt: skip
    script = iter(replies)
    told: list[list[str]] = []
    deadline = time.monotonic() + 60
    with sandbox.open(Limits(memory_mb=512, processes=64, workspace_mb=16)) as box:
        blobs = (*(text.encode() for text in files.values()), b"one\ntwo\n")
        box.channel.send(job.model_dump(), blobs)
        while (frame := box.channel.receive(deadline=deadline)).head["type"] in ("step", "ask"):
            if frame.head["type"] == "step":
                continue
            ask = Ask.model_validate(frame.head)
            if ask.what == "tool":
                box.channel.send(Answer(id=ask.id, body={"go": True}).model_dump())
                continue
            messages = ask.body["messages"]
            ended = max(
                (n for n, message in enumerate(messages) if message["role"] == "assistant"), default=-1
            )
            told.append(
                [message["content"] for message in messages[ended + 1 :] if message["role"] == "tool"]
            )
            asked = [
                {"id": f"{len(told)}-{n}", "function": {"name": name, "arguments": json.dumps(args)}}
                for n, (name, args) in enumerate(next(script, []))
            ]
            message = {"role": "assistant", "content": None if asked else "done", "tool_calls": asked}
            reply = {"reply": {"choices": [{"message": message}]}}
            box.channel.send(Answer(id=ask.id, body=reply).model_dump())
    done = RunDone.model_validate(frame.head)
    assert (done.finished, done.answer) == ("answered", "done"), done.fault
    return told[1:]


def test_the_tools_that_ship_work_in_a_box(sandbox: Bubblewrap) -> None:
    first, second, third = think(
        sandbox,
        [
            ("read_file", {"path": "in.txt"}),
            ("write_file", {"path": "out/a.txt", "text": "alpha\nbeta\n"}),
            ("edit_file", {"path": "out/a.txt", "old": "beta", "new": "gamma"}),
            ("list_files", {}),
            ("search_files", {"pattern": "gam+a"}),
        ],
        [
            ("shell", {"command": "wc -l < out/a.txt; id -u; ls /; cat /etc/shadow"}),
            ("python", {"code": "import json, sys\nprint(json.dumps([1 + 1, sys.version_info >= (3, 11)]))"}),
            ("shell", {"command": "sleep 20", "timeout_s": 0.2}),
        ],
        [("python", {"code": "import socket\nsocket.create_connection(('1.1.1.1', 53), 1)"})],
    )
    assert first[0].endswith("text:\none\ntwo\n")
    assert '"path": "out/a.txt", "bytes": 12' in first[3]
    assert '"line": 2, "text": "gamma"' in first[4]
    shell, python, late = second
    assert "stdout:\n2\n" in shell
    assert "shadow: " in shell  # no such file, or not to be read
    assert "\n0\n" not in shell
    assert "stdout:\n[2, true]\n" in python
    assert '"timed_out": true' in late
    assert "Network is unreachable" in third[0]


def test_what_one_call_leaves_running_is_gone_in_the_next(sandbox: Bubblewrap) -> None:
    (left, there) = think(
        sandbox,
        [("shell", {"command": "(sleep 30 &); echo left"})],
        [("shell", {"command": "grep -l sleep /proc/[0-9]*/comm; echo looked"}), ("list_files", {})],
    )
    assert "left" in left[0]
    assert "stdout:\nlooked\n" in there[0]


@pytest.mark.parametrize("processes", [1, 2])
def test_a_machine_without_a_process_left_is_no_fault_of_the_tool(
    sandbox: Bubblewrap, tool: Callable[..., str], processes: int
) -> None:
    """The box is gone, which is tried again; it was a tool that failed, and two such began an evolution."""
    with pytest.raises(WireClosed):
        run(sandbox, tool("probe", "return Output(n=1)"), processes=processes)
