"""What every sandbox must do, tried through nothing but its port.

``check(sandbox)`` does it on the user's own machine; the tests do it for each sandbox there is. The
programs that run inside are authored content, ``sandboxes/conformance/``. Whether what is hostile
is held back is another matter: ``probe.py`` and ``tests/sandboxes/``.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any

from agentos import shipped
from agentos.domain import Limits
from agentos.messages import Answer, GradeJob, RunJob, WireCheck
from agentos.ports import Box, BoxUsage, Sandbox
from agentos.sandboxes.box import box_limits
from agentos.sandboxes.plainfiles import read_tar, write_tar
from agentos.sandboxes.probe import Guarantee
from agentos.wire import FrameError, WireClosed, WireLate, hangs_up

LIMITS = Limits(steps=50, wall_s=30, memory_mb=96, workspace_mb=32, processes=24)
_TOOL_WALL_S = 3.0  # also on a busy machine enough to run out of memory in
_AT_ONCE = 4
_CHECKS_AT_ONCE = 2
_SOON_S = 5.0
# Names that Python or a test runner would import by themselves from where they are started.
_PLANTED = ("json.py", "sitecustomize.py", "usercustomize.py", "conftest.py", "agentos/__init__.py", "x.pth")
_HARNESS, _TOOL = "harness/conformance", "tool/behave/tool.py"


class Broken(Exception):
    """The sandbox did not do what it must; the message says what it did."""


# the latter by answers of another shape
_BROKEN = (Broken, AttributeError, LookupError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class _Ended:
    """One whole run in one box."""

    answer: Any
    nodes: Mapping[str, Any]  # node -> observation of its last step
    files: Mapping[str, bytes]
    refused: list[str]
    usage: BoxUsage


def check(sandbox: Sandbox, *, grouped: bool = True) -> Iterator[Guarantee]:
    """One claim after the other, each from boxes of its own; ``grouped`` as in ``probe``.

    Raises Unavailable without a sandbox.
    """
    promises = [promise for promise, tries in CHECKS.items() if grouped or tries is not _usage]
    with ThreadPoolExecutor(_CHECKS_AT_ONCE) as threads:
        yield from threads.map(lambda promise: _claim(sandbox, promise), promises)


def _claim(sandbox: Sandbox, promise: str) -> Guarantee:
    began = time.monotonic()
    try:
        CHECKS[promise](sandbox)
    except (*_BROKEN, WireClosed, WireLate, FrameError) as error:
        return Guarantee(promise, False, f"{type(error).__name__}: {error}"[:300])
    return Guarantee(promise, True, f"{time.monotonic() - began:.2f} s")


def _run(
    sandbox: Sandbox, goal: str, inputs: Mapping[str, bytes] | None = None, limits: Limits = LIMITS
) -> _Ended:
    with sandbox.open(limits) as box:
        nodes: dict[str, Any] = {}
        _send(box, goal, inputs or {}, limits)
        while True:
            frame = box.channel.receive(deadline=time.monotonic() + limits.wall_s)
            if frame.head.get("type") == "step":
                nodes[frame.head["node"]] = frame.head["observation"]
                continue
            if frame.head.get("type") == "ask":  # whether its tool may be called
                box.channel.send(Answer(id=frame.head["id"], body={"go": True}).model_dump())
                continue
            _must(frame.head.get("type") == "done", f"the run ended with {frame.head}")
            fault = frame.head.get("fault")
            _must(fault is None, f"the run failed: {fault}")
            files, refused = read_tar(b"".join(frame.blobs))
            return _Ended(frame.head["answer"], nodes, files, refused, box.close())


def _send(box: Box, goal: str, inputs: Mapping[str, bytes], limits: Limits) -> None:
    place = shipped.folder("sandboxes") / "conformance"
    files = {
        f"{_HARNESS}/harness.py": (place / "harness.py").read_bytes(),
        _TOOL: (place / "behave.py").read_bytes(),
    }
    job = RunJob(
        run_id="run-conformance",
        goal=goal,
        call=None,
        agent="conformance",
        effects=["pure"],
        max_steps=limits.steps,
        tool_wall_s=_TOOL_WALL_S,
        output_bytes=1 << 16,
        memory_mb=limits.memory_mb,
        harness=_HARNESS,
        files=list(files),
        inputs=list(inputs),
    )
    box.channel.send(
        job.model_dump(), (*files.values(), *inputs.values()), deadline=time.monotonic() + _SOON_S
    )


def _must(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)


def _files_in(sandbox: Sandbox) -> None:
    inputs = {
        "plain.txt": b"plain\r\n",
        "with space/ümläut – 名前.bin": bytes(range(256)),
        "-rf": b"",
        "big": os.urandom(10 << 20),
    }
    found = _run(sandbox, "read_everything", inputs).answer
    _must(
        found == {name: hashlib.sha256(data).hexdigest() for name, data in inputs.items()}, f"it saw {found}"
    )


def _files_out(sandbox: Sandbox) -> None:
    ended = _run(sandbox, "write_files", {"given": b"unchanged"})
    _must(
        set(ended.files) == {"deep/er/größe – 規模.bin", "empty", "big.bin"}, f"out came {set(ended.files)}"
    )
    _must(ended.files["deep/er/größe – 規模.bin"] == b"\xff\x00\xfe", "bytes changed on the way out")
    _must(hashlib.sha256(ended.files["big.bin"]).hexdigest() == ended.answer, "10 MB changed on the way out")


def _plain_files_only(sandbox: Sandbox) -> None:
    ended = _run(sandbox, "leave_traps")
    _must(set(ended.files) == {"plain.txt"}, f"out came {sorted(ended.files)}")
    told = "\n".join([*ended.refused, *ended.nodes.get("outputs", {}).get("refused", [])])
    for trap in ("link", "root", "fifo", "new\\nline", "escape", ".git"):
        _must(trap in told, f"nothing was said of {trap}: {told}")


def _tools(sandbox: Sandbox) -> None:
    seen = {entry["how"]: entry for entry in _run(sandbox, "call_in_turn").answer}
    _must(seen["talk"]["output"] == "ä\u2028\U0001f600", f"text changed: {seen['talk']}")
    _must(seen["talk"]["stdout"] > 4000, f"what was printed is not there: {seen['talk']}")
    _must(seen["read_stdin"]["output"] == "''", f"standard input was not empty: {seen['read_stdin']}")
    _must(seen["hang"]["fault"] == "timeout", f"a hanging tool ended with {seen['hang']}")
    _must(seen["die"]["fault"] == "signal", f"a killed tool ended with {seen['die']}")
    _must(seen["daemonise"]["output"] == "daemon left", f"a daemon-maker ended with {seen['daemonise']}")
    _must(seen["eat"]["fault"] in ("memory", "MemoryError", "signal"), f"an eater ended with {seen['eat']}")
    born = int(seen["fork"]["output"] or -1)
    _must(
        0 < born <= LIMITS.processes, f"{born} children under a limit of {LIMITS.processes}: {seen['fork']}"
    )
    before = int(seen["before"]["output"] or -1)
    alive = int(seen["list_processes"]["output"] or -1)
    _must(
        0 < alive <= before,
        f"{before} processes at first, {alive} afterwards; what tools left should be dead",
    )


def _disk(sandbox: Sandbox) -> None:
    written, made = _run(sandbox, "fill_disk").answer
    _must(written <= LIMITS.workspace_mb << 20, f"{written} bytes in a workspace of {LIMITS.workspace_mb} MB")
    _must(0 < made <= box_limits().inodes, f"{made} files, {box_limits().inodes} are allowed")


def _surroundings(sandbox: Sandbox) -> None:
    found = _run(sandbox, "look_around").answer
    _must(found["cwd"] == "/ws", f"it works in {found['cwd']}")
    _must(found["zone"] == "UTC", f"its time zone is {found['zone']}")
    _must(abs(found["time"] - time.time()) < 60, "its clock is wrong")
    _must(found["python"] == "1", f"python3 says {found['python']!r}")
    _must(found["shell"] == "2", f"the shell says {found['shell']!r}")


def _fresh(sandbox: Sandbox) -> None:
    _run(sandbox, "leave_a_mark")
    found = _run(sandbox, "find_a_mark").answer
    _must(found == [], f"the box after it saw files in {found}")


def _at_once(sandbox: Sandbox) -> None:
    def one(number: int) -> bool:
        own = {"own": str(number).encode()}
        seen = _run(sandbox, "read_everything", own).answer
        return bool(seen == {"own": hashlib.sha256(own["own"]).hexdigest()})

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        _must(all(threads.map(one, range(_AT_ONCE))), "boxes that run at once saw each other's files")


def _wall(sandbox: Sandbox) -> None:
    """A run that ignores every signal, in two sessions, and a caller that waits no longer than it said."""
    with sandbox.open(LIMITS) as box, ExitStack() as stack:
        watch = os.dup(box.channel.fileno())
        stack.callback(os.close, watch)
        _send(box, "sleep_for_ever", {}, LIMITS)
        box.channel.receive(deadline=time.monotonic() + LIMITS.wall_s)
        with suppress(WireLate):
            box.channel.receive(deadline=time.monotonic() + 0.1)
        began = time.monotonic()
        box.close()
        took_s = time.monotonic() - began
        _must(took_s < _SOON_S, f"closing took {took_s:.1f} s")
        _must(hangs_up(watch, _SOON_S), "a process inside still holds the channel after the end")


def _last_clock(sandbox: Sandbox) -> None:
    """Nobody reads: the box must end all the same, soon after its limit."""
    limits = replace(LIMITS, wall_s=2.0)
    with sandbox.open(limits) as box:
        _send(box, "sleep_for_ever", {}, limits)
        until = time.monotonic() + limits.wall_s + box_limits().grace_s + _SOON_S
        box.channel.receive(deadline=until)
        try:
            while True:
                box.channel.receive(deadline=until)
        except WireLate:
            raise Broken("it lives on after its wall limit") from None
        except WireClosed:
            pass


def _cancel(sandbox: Sandbox) -> None:
    with sandbox.open(LIMITS) as box:
        _send(box, "sleep_for_ever", {}, LIMITS)
        box.channel.receive(deadline=time.monotonic() + LIMITS.wall_s)
        threading.Timer(0.1, box.close).start()
        try:
            box.channel.receive(deadline=time.monotonic() + _SOON_S)
        except WireLate:
            raise Broken("a reader was not freed when another thread closed the box") from None
        except WireClosed:
            pass
        _must(box.close() == box.close(), "closing twice told two stories")


def _vanished(sandbox: Sandbox) -> None:
    _ends_with(sandbox, "vanish", WireClosed)
    _ends_with(sandbox, "babble", FrameError)


def _ends_with(sandbox: Sandbox, goal: str, end: type[Exception]) -> None:
    with sandbox.open(LIMITS) as box:
        _send(box, goal, {}, LIMITS)
        try:
            head = box.channel.receive(deadline=time.monotonic() + _SOON_S).head
        except end:
            return
        raise Broken(f"a worker that should {goal} sent {head}")


def _usage(sandbox: Sandbox) -> None:
    usage = _run(sandbox, "burn").usage
    _must(usage.cpu_s >= 0.15, f"0.2 s of CPU were counted as {usage.cpu_s:.2f} s")
    _must(0 < usage.memory_peak_mb < 4096, f"memory was counted as {usage.memory_peak_mb} MB")
    _must(usage.wall_s > 0.15 and not usage.oom, f"usage {usage}")


def _grading(sandbox: Sandbox) -> None:
    checks = [
        WireCheck(kind="equals", spec={"value": 3}),
        WireCheck(kind="file", spec={"path": "out.txt", "equals": "made"}),
        WireCheck(kind="equals", spec={"value": 4}),
    ]
    job = GradeJob(checks=checks, answer=3, wall_s=10)
    planted = {name: b"raise SystemExit('planted')" for name in _PLANTED}
    with sandbox.open(LIMITS, light=True) as box:
        box.channel.send(job.model_dump(), (write_tar({"out.txt": b"made", **planted}),))
        head = box.channel.receive(deadline=time.monotonic() + LIMITS.wall_s).head
    passed = [found["passed"] for found in head.get("checks", [])]
    _must(passed == [True, True, False], f"the grader said {head}")


CHECKS: Mapping[str, Callable[[Sandbox], None]] = {
    "gets its input files unchanged, whatever their names and bytes": _files_in,
    "hands out the files that it wrote, 10 MB too": _files_out,
    "hands out plain files only and names what it left": _plain_files_only,
    "goes on after tools that print, hang, crash, fork, eat memory or leave daemons": _tools,
    "is held to its workspace, in bytes and in files": _disk,
    "finds Python, a shell, UTC and its workspace": _surroundings,
    "starts with nothing of the job before": _fresh,
    "runs beside others without seeing them": _at_once,
    "dies at once with all its children, deaf to signals or not": _wall,
    "dies soon after its time limit, even if nobody waits for it": _last_clock,
    "can be ended by another thread": _cancel,
    "is known to be dead when it vanishes or talks nonsense": _vanished,
    "has its time and memory counted": _usage,
    "can grade another's answer, untouched by what that one left behind": _grading,
}
