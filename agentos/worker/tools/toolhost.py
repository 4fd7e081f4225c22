"""The process that calls tools: forked before the harness can start a thread, one child per call.

A tool can print, allocate, fork, hang or lie; the harness gets a ``ToolResult`` either way, and
nothing of the call is left running.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from pydantic import BaseModel, ConfigDict

from agentos.messages import WireFault
from agentos.wire import Channel, Frame, FrameError, WireClosed, WireLate
from agentos.worker import children
from agentos.worker.children import ChildEnd, ChildLimits, Clip
from agentos.worker.faults import Failed, FaultsOf, exception_word, fault, fault_of, load_fault, resource_of
from agentos.worker.tools import entered, programs, toolfile
from agentos.worker.tools.bundle_importer import BundleFiles

_PRINTED_MAX = 1 << 20  # of what a program prints, kept as its answer
_SAID = frozenset({"exit", "input", "limit", "load", "memory", "output"})  # by the worker in a tool's process
_SAID_OF_PROGRAMS = _SAID | {"signal", "timeout"}
_PATIENCE_S = 3.0  # beyond the call's own limit, until the host itself counts as lost


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What one call gave: ``output`` if ``ok``, else ``fault``. Streams are head and tail only."""

    ok: bool
    output: Any
    fault: WireFault | None
    stdout: Clip
    stderr: Clip
    duration_ms: float
    lines: tuple[int, ...] = ()  # of the tool's file that were executed, if asked for
    entered: tuple[str, ...] = ()  # labels of the resource's own functions that ran (agentos.syntax)


class _Reply(BaseModel):
    """What the child says of itself; it is the tool's process, so it is checked."""

    model_config = ConfigDict(extra="forbid")

    output: Any = None
    fault: WireFault | None = None
    lines: list[int] = []
    entered: list[str] = []


class ToolHost:
    """The worker's end. Start it while the worker has one thread."""

    def __init__(self, held: BundleFiles, workspace: Path, allowance: ChildLimits, *, alone: bool) -> None:
        self._allowance = allowance
        self._alone = alone
        self._status = 0
        ours, theirs = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            _serve(theirs, held, workspace, allowance, alone=alone)
        theirs.close()
        self._channel = Channel(ours)
        # What the run sees of it, from its first line on, is a process that holds nothing: not one that is about to.
        with contextlib.suppress(FrameError, WireClosed):  # a call will say so
            self._channel.receive()

    def call(self, path: str, args: Any, *, trace: bool = False) -> ToolResult:
        """Call the tool at this registry path in a child of its own."""
        return self._ask({"path": path, "args": args, "trace": trace})

    def describe(self, path: str) -> ToolResult:
        """Load the tool; the output of a good result is its ToolCard as JSON."""
        return self._ask({"path": path})

    def execute(self, argv: list[str], environment: dict[str, str]) -> ChildEnd:
        """Run a program in a child of its own: exit status and streams. Raises Closed, Late, FrameError."""
        deadline = time.monotonic() + self._allowance.wall_s + _PATIENCE_S
        self._channel.send({"argv": argv, "environment": environment})
        return _ended(self._channel.receive(deadline=deadline))

    def _ask(self, request: dict[str, Any]) -> ToolResult:
        path = request["path"]
        started = time.monotonic()
        try:
            self._channel.send(request)
            frame = self._channel.receive(deadline=started + self._allowance.wall_s + _PATIENCE_S)
        except FrameError as error:
            return _failed("input", f"the arguments cannot be sent: {error}", path, started)
        except (WireClosed, WireLate):
            self._lost()
            return _failed("signal", "it ended or stopped the process that runs the tools", path, started)
        return result_of(_ended(frame), path, self._allowance)

    def close(self) -> None:
        """End the host; idempotent."""
        self._channel.close()
        if self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            self._status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
            self._pid = 0

    def _lost(self) -> None:
        self.close()
        if self._alone:
            if self._status == children.NO_PROCESS:
                os._exit(children.NO_PROCESS)  # the box is gone, which says nothing of what it was given
            children.sweep(alone=True)


def _frame_of(ended: ChildEnd) -> tuple[dict[str, Any], tuple[bytes, ...]]:
    """As a frame: what was printed goes beside the header, in which each byte of it may take six."""
    clips = (ended.stdout, ended.stderr)
    sizes = [clip.size for clip in clips]
    head = {"how": ended.how, "code": ended.code, "sizes": sizes, "duration_ms": ended.duration_ms}
    return head, (ended.result, *(part.encode() for clip in clips for part in (clip.head, clip.tail)))


def _ended(frame: Frame) -> ChildEnd:
    head, (result, *parts) = frame.head, frame.blobs
    texts = [part.decode() for part in parts]
    of_out, of_err = head["sizes"]
    out, err = Clip(texts[0], texts[1], of_out), Clip(texts[2], texts[3], of_err)
    return ChildEnd(head["how"], head["code"], result, out, err, head["duration_ms"])


def ways_to_end(ended: ChildEnd, allowance: ChildLimits) -> dict[str, tuple[str, str]]:
    """Type and message of the fault for each way to end without a result."""
    ways = {
        "timeout": ("timeout", f"it did not end within {allowance.wall_s:g} s"),
        "limit": ("limit", f"it printed or returned more than {allowance.output_bytes} bytes"),
        "exit": ("exit", f"it ended its process with status {ended.code}"),
        "signal": ("signal", f"its process was killed by signal {_signal_name(ended.code)}"),
    }
    if ended.how == "signal" and ended.code == signal.SIGXCPU:
        ways["signal"] = ways["timeout"]
    return ways


def result_of(ended: ChildEnd, path: str, allowance: ChildLimits) -> ToolResult:
    """Whatever way the child ended, as a result."""
    ways = ways_to_end(ended, allowance)
    if ended.how in ways:
        reply = _Reply(fault=fault(*ways[ended.how], path=path))
    else:
        try:
            reply = _plain(_Reply.model_validate(json.loads(ended.result)), path)
        except (ValueError, RecursionError) as error:
            reply = _Reply(fault=fault("protocol", f"it wrote to the worker's own pipe: {error}", path=path))
    return ToolResult(
        reply.fault is None,
        reply.output,
        reply.fault,
        ended.stdout,
        ended.stderr,
        ended.duration_ms,
        tuple(reply.lines),
        entered=tuple(entered.fitting(_own(path, reply.entered))),
    )


def _own(path: str, labels: list[str]) -> list[str]:
    """Of what a tool's process says, what it may speak for."""
    return [label for label in labels if label.startswith(f"{resource_of(path)}/")]


def _plain(reply: _Reply, path: str) -> _Reply:
    """The reply with its fault as one of this tool, in the words that a tool's process has for faults."""
    if reply.fault is None:
        return reply
    own = {"resource": resource_of(path)[:200]}
    if reply.fault.type not in (_SAID_OF_PROGRAMS if programs.is_program(path) else _SAID):
        own["type"] = exception_word(reply.fault.type)
    return reply.model_copy(update={"fault": reply.fault.model_copy(update=own)})


def call_work(
    held: BundleFiles, path: str, args: Any, allowance: ChildLimits, *, trace: bool
) -> Callable[[], bytes]:
    """What a child does for one call: the JSON of a reply. A program's time is measured there."""
    root = held.root
    most = allowance.output_bytes

    def work() -> bytes:
        lines: set[int] = set()
        if programs.is_program(path):
            return _reply_of(lambda: programs.call(held, path, args, most, allowance.wall_s), held, path)
        try:
            with FaultsOf(root, path, load_fault):
                tool = toolfile.load(held.text(path), path, root, held)
            tracer = tracer_of(str(root / path), lines)
            with FaultsOf(root, path):
                output = toolfile.call(tool, args, most, lambda: sys.settrace(tracer) if trace else None)
        except Failed as error:
            return _reply_fault(error.fault, lines)
        finally:
            sys.settrace(None)
        return b'{"output":' + output + b"," + _noted(lines)[1:]

    return work


def program_work(argv: list[str], environment: dict[str, str]) -> Callable[[], bytes]:
    """What a child does to become another program."""

    def work() -> bytes:
        try:
            os.execvpe(argv[0], argv, environment)  # noqa: S606 - a program of the resource, no shell
        except OSError as error:
            sys.stderr.write(f"{argv[0]} cannot be started: {error.strerror}")
            sys.stderr.flush()
            os._exit(127)

    return work


def card_work(held: BundleFiles, path: str) -> Callable[[], bytes]:
    """What a child does to describe a tool: a reply whose output is a ToolCard."""

    def described() -> bytes:
        source = held.text(path)
        says = toolfile.declared(source, path)
        return toolfile.card(toolfile.load(source, path, held.root, held), says).model_dump_json().encode()

    def work() -> bytes:
        if programs.is_program(path):
            return _reply_of(lambda: programs.card(held, path).model_dump_json().encode(), held, path)
        return _reply_of(described, held, path, loading=True)

    return work


def _reply_of(output: Callable[[], bytes], held: BundleFiles, path: str, *, loading: bool = False) -> bytes:
    try:
        with FaultsOf(held.root, path, load_fault if loading else fault_of):
            return b'{"output":' + output() + b"}"
    except Failed as error:
        return _reply_fault(error.fault, set())


def tracer_of(filename: str, lines: set[int]) -> Callable[[FrameType, str, Any], Any]:
    """A trace function that collects the executed lines of one file."""

    def local(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            lines.add(frame.f_lineno)
        return local

    def tracer(frame: FrameType, event: str, _: Any) -> Any:
        return local if frame.f_code.co_filename == filename else None

    return tracer


def _reply_fault(found: WireFault, lines: set[int]) -> bytes:
    return json.dumps({"fault": found.model_dump()}).encode()[:-1] + b"," + _noted(lines)[1:]


def _noted(lines: set[int]) -> bytes:
    """What a reply says of the way that the call took, as a JSON object."""
    return json.dumps({"lines": sorted(lines), "entered": entered.labels()}).encode()


def _serve(
    sock: socket.socket, held: BundleFiles, workspace: Path, allowance: ChildLimits, *, alone: bool
) -> NoReturn:
    try:
        _make_calls(sock, held, workspace, allowance, alone=alone)
    finally:
        os._exit(0)  # an error of its own must not go on in what it was forked from


def _make_calls(
    sock: socket.socket, held: BundleFiles, workspace: Path, allowance: ChildLimits, *, alone: bool
) -> None:
    (descriptor,) = children.only_descriptors(sock.fileno())
    channel = Channel(socket.socket(fileno=descriptor))
    children.adopt_orphans()
    os.chdir(workspace)
    with contextlib.suppress(WireClosed):
        channel.send({"ready": True})
    while True:
        try:
            asked = channel.receive().head
            given = allowance
            if "argv" in asked:
                work = program_work(asked["argv"], asked["environment"])
                given = replace(allowance, kept_bytes=min(allowance.output_bytes, _PRINTED_MAX))
            elif "args" in asked:
                work = call_work(held, asked["path"], asked["args"], allowance, trace=asked["trace"])
            else:
                work = card_work(held, asked["path"])
            try:
                ended = children.run(work, given, alone=alone)
            except OSError as error:
                if children.lacks_process(error):
                    os._exit(children.NO_PROCESS)
                raise
            channel.send(*_frame_of(ended))
        except WireClosed:
            return


def _failed(type: str, message: str, path: str, started: float) -> ToolResult:
    duration_ms = (time.monotonic() - started) * 1000
    return ToolResult(False, None, fault(type, message, path=path), Clip(), Clip(), duration_ms)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
