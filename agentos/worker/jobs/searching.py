"""The job ``search``: try many sources of one tool on the same cases, fast.

Sources run one after another in one child, each case in a freshly executed module; a fork for each
would cost more than most sources do. Of a source only what differs from the file as it is gets compiled. What a source can leave behind in the process (directory,
environment, helper modules, files of a writing tool) is put back after each case, and the child is
replaced after ``_RENEW`` sources, or when one took it down. Whatever passes here is only a
suspicion: it still has to pass the replay in boxes of its own. Of a text beside the code, a helper module, or a program,
the source is laid into its place, and the tool is called as it is.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import marshal
import os
import resource
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from agentos import checks
from agentos.messages import WHEELS, Ready, SearchJob, TriedFrame, TrySource
from agentos.wire import Channel, FrameError, WireClosed, WireLate, shorten
from agentos.worker import children, files
from agentos.worker.faults import Failed, FaultsOf, load_fault
from agentos.worker.files import WorkerPlace
from agentos.worker.jobs import workspace_code
from agentos.worker.jobs.grading import snippet
from agentos.worker.jobs.segments import Piece, Segments, run
from agentos.worker.tools import programs, toolfile
from agentos.worker.tools.bundle_importer import BundleFiles
from agentos.worker.tools.toolhost import tracer_of

_RENEW = 500  # sources that one child tries
# A source may *compute* for its time limit. A busy machine can make that take longer, and one that
# sleeps computes nothing: so there is a limit of real time as well, with a reserve for each try.
_RESERVE_S = 12.0
# of the reserve, for one case: with thirty processes to a core 1.5 were not enough for a right edit
_PATIENCE_S = 4.0
_GRACE_S = 0.25  # then a source that cannot be interrupted is killed
_OUTPUT_MAX = 1 << 20
_OUTPUT_SHOWN = 128 << 10  # a larger output is told by its digest
_OUTPUTS_SHOWN = 6 << 20  # all of one try together: a frame has no room for more
_MESSAGE = 500
# What a message of a source's own making can raise where it is read as a verdict.
_NO_VERDICT = (ArithmeticError, LookupError, TypeError, ValueError, RecursionError)


class _OutOfTime(BaseException):
    """Raised inside a source by the timer. Not an Exception, so that few handlers swallow it."""


@dataclass(frozen=True, slots=True)
class _Case:
    packed: bytes  # its arguments
    inputs: dict[str, bytes]
    checks: tuple[checks.Spec, ...]
    folder: Path
    stays: bool = True  # its files lie there from the beginning

    def unpacked(self) -> dict[str, Any]:
        """The arguments, for one call: it may change what it is given."""
        found: dict[str, Any] = marshal.loads(self.packed)  # noqa: S302 - packed here
        return found


@dataclass(frozen=True, slots=True)
class _Clock:
    """How much real time each case of one try may take, told alike by parent and child."""

    timeout_s: float
    until: float  # on the monotonic clock, which all processes share

    @classmethod
    def start(cls, timeout_s: float, cases: int) -> _Clock:
        return cls(timeout_s, time.monotonic() + _RESERVE_S + cases * (timeout_s + _GRACE_S))

    def wall_s(self, left: int) -> float:
        """For the next case, ``left`` being those still to come and this one."""
        spare = self.until - time.monotonic() - left * (self.timeout_s + _GRACE_S)
        return self.timeout_s + min(_PATIENCE_S, max(0.0, spare))


@dataclass(frozen=True, slots=True)
class _Verdict:
    score: float
    output: Any
    lines: list[int]
    raised: int = 0  # the line of the file at which its error left it
    cpu_s: float = 0.0
    stained: bool = False  # the process may not be trusted with another case


def search(channel: Channel, job: SearchJob, blobs: tuple[bytes, ...], place: WorkerPlace) -> None:
    """Answer each ``try`` frame with a ``tried`` frame until the kernel goes away."""
    files.write(place.snapshot, job.files, blobs[: len(job.files)])
    bench = _Bench(channel, job, place, _cases(blobs[len(job.files) :], place.workspace))
    channel.send(Ready().model_dump())
    try:
        while True:
            tried = bench.try_source(TrySource.model_validate(channel.receive().head))
            try:
                channel.send(tried.model_dump())
            except FrameError:  # a source wrote what no frame holds to the bench's own channel
                bench.end()
                channel.send(_forged(tried).model_dump())
    finally:
        bench.end()


def _forged(tried: TriedFrame) -> TriedFrame:
    """The same cases, each of them failed."""
    count = len(tried.passed)
    error = {"error": "protocol", "message": "it wrote to the worker's own pipe"}
    return TriedFrame(
        passed=[False] * count,
        scores=[0.0] * count,
        outputs=[error] * count,
        lines=[[] for _ in tried.lines],
        raised=[0 for _ in tried.raised],
    )


def _cases(blobs: Sequence[bytes], workspace: Path) -> list[_Case]:
    found = []
    contents = blobs[1:]
    for number, given in enumerate(json.loads(blobs[0])):
        inputs = {name: contents[place] for name, place in given["inputs"].items()}
        parsed = tuple(checks.parse(check["kind"], check["spec"]) for check in given["checks"])
        found.append(_Case(marshal.dumps(given["args"]), inputs, parsed, workspace / f"case-{number}"))
    try:
        for case in found:
            _lay_out(case)
    except (
        OSError
    ):  # there is no room for all at once, or a name of one is too long: that one will have failed
        return [replace(case, stays=False) for case in found]
    return found


def _lay_out(case: _Case) -> None:
    if not case.stays:  # a child that was killed left what it had laid out
        for left in case.folder.parent.glob("case-*"):
            shutil.rmtree(left, ignore_errors=True)
    case.folder.mkdir()
    files.write(case.folder, list(case.inputs), list(case.inputs.values()))


class _Bench:
    """The parent's end: knows how far the child got, and replaces it."""

    def __init__(self, channel: Channel, job: SearchJob, place: WorkerPlace, cases: list[_Case]) -> None:
        self._outer = channel
        self._job = job
        self._place = place
        self._cases = cases
        self._segments = _segments(job, place)
        self._inner: Channel | None = None
        self._tried = 0

    def try_source(self, asked: TrySource) -> TriedFrame:
        """Run the cases; one that hangs or dies has failed, and the next run in a new child."""
        wanted = list(range(len(self._cases))) if asked.cases is None else asked.cases
        verdicts: list[_Verdict] = []
        clock = _Clock.start(self._job.timeout_s, len(wanted))
        while len(verdicts) < len(wanted):
            child = self._child()
            with contextlib.suppress(WireClosed):  # then the first receive says so
                rest = wanted[len(verdicts) :]
                asking = {"source": asked.source, "trace": asked.trace, "cases": rest, "until": clock.until}
                child.send({**asking, "of": len(wanted)})
            verdicts += self._listen(child, len(wanted) - len(verdicts), clock)
        return TriedFrame(
            passed=[verdict.score == 1.0 for verdict in verdicts],
            scores=[verdict.score for verdict in verdicts],
            outputs=[verdict.output for verdict in verdicts],
            lines=[verdict.lines for verdict in verdicts] if asked.trace else [],
            raised=[verdict.raised for verdict in verdicts] if asked.trace else [],
            cpu_s=sum(verdict.cpu_s for verdict in verdicts),
        )

    def end(self) -> None:
        """Kill the child and all that it started."""
        if self._inner is not None:
            self._inner.close()
            self._inner = None
        children.sweep(alone=self._place.alone)

    def _child(self) -> Channel:
        self._tried += 1
        if self._inner is None or self._tried > _RENEW:
            self.end()
            ours, theirs = socket.socketpair()
            if os.fork() == 0:
                _serve(theirs, self._job, self._place, self._cases, self._segments)
            theirs.close()
            self._inner, self._tried = Channel(ours, blob_max=_OUTPUT_SHOWN), 1
        return self._inner

    def _listen(self, child: Channel, count: int, clock: _Clock) -> list[_Verdict]:
        """The verdicts up to the last case, or to the one that took the child down."""
        verdicts = []
        for left in range(count, 0, -1):
            deadline = time.monotonic() + clock.wall_s(left) + _GRACE_S
            try:
                frame = child.receive(deadline=deadline)
                verdicts.append(_verdict(frame.head, frame.blobs))
            except (WireClosed, WireLate, FrameError, *_NO_VERDICT) as error:
                kind = "timeout" if isinstance(error, WireLate) else "died"
                lost = {"error": kind, "message": "it took its process down"}
                verdicts.append(_Verdict(0.0, lost, [], cpu_s=self._job.timeout_s, stained=True))
            if verdicts[-1].stained:
                self.end()
                break
        return verdicts


def _segments(job: SearchJob, place: WorkerPlace) -> Segments | None:
    """Of the file as it is; None where that cannot be compiled."""
    file = place.snapshot / (job.tool or job.path)
    if programs.is_program(job.tool):
        return None
    try:
        return Segments(file.read_text("utf-8"), str(file))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _verdict(head: dict[str, Any], blobs: tuple[bytes, ...]) -> _Verdict:
    """From a process that a source may have taken over: everything is converted, nothing believed."""
    score = min(1.0, max(0.0, float(head["score"])))
    lines = [int(line) for line in head["lines"]]
    raised, cpu_s = int(head["raised"]), max(0.0, float(head["cpu_s"]))
    return _Verdict(score, json.loads(blobs[0]), lines, raised, cpu_s, stained=bool(head["stained"]))


# --- in the child -----------------------------------------------------------------------------


def _serve(
    sock: socket.socket, job: SearchJob, place: WorkerPlace, cases: list[_Case], segments: Segments | None
) -> NoReturn:
    try:
        os.setsid()
        (descriptor,) = children.only_descriptors(sock.fileno())
        children.memory_limits(job.memory_mb)
        signal.signal(signal.SIGALRM, _out_of_time)
        signal.signal(signal.SIGPROF, _out_of_time)
        # Helper modules are imported again for each case. Of one that is tried nothing may be kept: two sources of one
        # length within a second are the same to Python.
        sys.dont_write_bytecode = bool(job.tool)
        trials = _Trials(job, place, segments)
        channel = Channel(socket.socket(fileno=descriptor))
        while True:
            asked = channel.receive().head
            code = trials.compiled(asked["source"])
            clock = _Clock(job.timeout_s, asked["until"])
            trials.shown = min(_OUTPUT_SHOWN, _OUTPUTS_SHOWN // asked["of"])
            for done, number in enumerate(asked["cases"]):
                wall_s = clock.wall_s(len(asked["cases"]) - done)
                channel.send(*trials.run(code, cases[number], wall_s, trace=asked["trace"]))
    finally:
        os._exit(0)


def _out_of_time(number: int, frame: FrameType | None) -> None:
    raise _OutOfTime


def _set_timers(cpu_s: float, wall_s: float) -> None:
    """Again and again, in case the source swallows the first; 0 stops them."""
    signal.setitimer(signal.ITIMER_PROF, cpu_s, _GRACE_S / 5)
    signal.setitimer(signal.ITIMER_REAL, wall_s, _GRACE_S / 5)


class _Trials:
    """Runs one source on one case, and puts back what it left behind."""

    def __init__(self, job: SearchJob, place: WorkerPlace, segments: Segments | None) -> None:
        self._path = job.tool or job.path
        self._beside = job.path if job.tool else ""
        self._followed = str(place.snapshot / (job.path if job.path.endswith(".py") else self._path))
        self._root = place.snapshot
        self._files = {path: (self._root / path).read_bytes() for path in job.files} if job.tool else {}
        self._timeout_s = job.timeout_s
        self.shown = _OUTPUT_SHOWN  # bytes of an output; of a larger one its digest
        self._writes = _writes((self._root / self._path).read_bytes(), self._path)
        self._segments = segments
        self._environ = dict(os.environ)
        self._modules = set(sys.modules)
        self._memory = resource.getrlimit(resource.RLIMIT_AS)

    def compiled(self, source: str) -> Sequence[Piece] | Exception:
        """The source's code, or why there is none; of a text the code that reads it, of a program nothing."""
        try:
            if self._beside:
                self._files[self._beside] = source.encode()
                if programs.is_program(self._path):
                    return []
                source = self._files[self._path].decode()
            if self._segments is None:
                return [toolfile.compiled(source, self._path, self._root)]
            return self._segments.codes(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return error

    def run(
        self, code: Sequence[Piece] | Exception, case: _Case, wall_s: float, *, trace: bool
    ) -> tuple[dict[str, Any], tuple[bytes]]:
        """The verdict on one case, as a frame."""
        lines: set[int] = set()
        stained = False
        score, output, raised, began = 0.0, b"", 0, _cpu_s()
        if self._beside:
            (self._root / self._beside).write_bytes(self._files[self._beside])
        try:
            with FaultsOf(self._root, self._path, passes=(_OutOfTime, MemoryError)):
                if not case.stays:
                    _lay_out(case)
                os.chdir(case.folder)
                _set_timers(self._timeout_s, wall_s)
                try:
                    if programs.is_program(self._path):
                        score, output = self._of_program(case, wall_s)
                    else:
                        score, output = self._outcome(code, case, lines, trace=trace)
                finally:
                    _set_timers(0, 0)
                    sys.settrace(None)
        except _OutOfTime:
            _set_timers(0, 0)
            stained, output = True, _error("timeout", f"it did not end within {self._timeout_s:g} s")
        except MemoryError:
            stained, output = True, _error("memory", "it needs more memory than it may use")
        except Failed as error:
            output = _error(error.fault.type, error.fault.message)
            raised = _line_in(error.__context__, self._followed)
        self._put_back(case)
        if len(output) > self.shown:
            output = json.dumps({"sha256": hashlib.sha256(output).hexdigest(), "size": len(output)}).encode()
        cpu_s = _cpu_s() - began
        head = {"score": score, "lines": sorted(lines), "raised": raised, "cpu_s": cpu_s, "stained": stained}
        return head, (output,)

    def _outcome(
        self, code: Sequence[Piece] | Exception, case: _Case, lines: set[int], *, trace: bool
    ) -> tuple[float, bytes]:
        with FaultsOf(self._root, self._path, load_fault, passes=(_OutOfTime, MemoryError)):
            if isinstance(code, Exception):
                raise code
            tool = toolfile.execute(partial(run, code), self._path, self._root)
        tracer = tracer_of(self._followed, lines)
        output = toolfile.call(
            tool, case.unpacked(), _OUTPUT_MAX, lambda: sys.settrace(tracer) if trace else None
        )
        sys.settrace(None)
        return self._told(case, output)

    def _of_program(self, case: _Case, wall_s: float) -> tuple[float, bytes]:
        held = BundleFiles(self._root, self._files)
        output = programs.call(held, self._path, case.unpacked(), _OUTPUT_MAX, wall_s)
        return self._told(case, output)

    def _told(self, case: _Case, output: bytes) -> tuple[float, bytes]:
        """The score of an answer, and the answer: one that has the form of an error is told as what it is."""
        answer = json.loads(output)
        passed = sum(not self._why(check, answer, case.folder) for check in case.checks)
        if isinstance(answer, dict) and answer.keys() == {"error", "message"}:
            output = json.dumps({"answer": answer}).encode()
        return passed / len(case.checks) if case.checks else 1.0, output

    def _why(self, check: checks.Spec, answer: Any, folder: Path) -> str:
        if isinstance(check, checks.Python):
            return snippet(check.code, answer, folder, declared=check.runs_workspace)
        if not isinstance(check, checks.Command):
            return checks.judge(check, answer, folder)
        check = check.with_nonce(secrets.token_hex(16))
        words = workspace_code.with_workspace_last(check.argv, folder) if check.runs_workspace else check.argv
        done = subprocess.run(
            words,
            cwd=folder,
            env=workspace_code.environment(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        out = done.stdout.decode("utf-8", "replace")
        fits = check.stdout_contains is None or check.stdout_contains in out
        fits = fits and (check.stdout_equals is None or check.stdout_equals.rstrip() == out.rstrip())
        return "" if done.returncode == check.exit and fits else "it ended or printed otherwise"

    def _put_back(self, case: _Case) -> None:
        with contextlib.suppress(ValueError):  # of one that took its own ceiling down
            resource.setrlimit(resource.RLIMIT_AS, self._memory)
        if dict(os.environ) != self._environ:
            os.environ.clear()
            os.environ.update(self._environ)
        for name in set(sys.modules) - self._modules:
            file = str(getattr(sys.modules[name], "__file__", None))
            if file.startswith(f"{self._root}/") and f"/{WHEELS}/" not in file:
                del sys.modules[name]
        if self._writes or not case.stays:
            os.chdir(case.folder.parent)
            shutil.rmtree(case.folder, ignore_errors=True)
            if case.stays:
                _lay_out(case)


def _cpu_s() -> float:
    """Of this process and of what it has started and waited for."""
    used = os.times()
    return time.process_time() + used.children_user + used.children_system


def _writes(source: bytes, path: str) -> bool:
    try:
        says = programs.declared if programs.is_program(path) else toolfile.declared
        return "write" in says(source, path).effects
    except Failed:
        return True


def _line_in(error: BaseException | None, file: str) -> int:
    """The line of the file at which the error left the innermost of its frames; 0 where there is none."""
    line, trace = 0, error.__traceback__ if error else None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _error(kind: str, message: str) -> bytes:
    return json.dumps({"error": kind, "message": shorten(message, _MESSAGE)}).encode()
