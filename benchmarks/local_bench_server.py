"""The inside of LocalBench: runs sources one after another, each case under its limit of CPU time.

What it imports takes a quarter of a second, so one process that has imported it is forked for each bench.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import resource
import shutil
import signal
import socket
import sys
import time
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, BinaryIO

from agentos import checks
from agentos.worker.jobs.segments import Piece, Segments, run

FILE = "<tool>"
MEMORY = 192 << 20


class _OutOfTime(BaseException):
    pass


class _NotTaken(Exception):
    """The tool's ``Input`` refuses the arguments."""


_KINDS = {_OutOfTime: "timeout", MemoryError: "memory", _NotTaken: "input"}


def _given(model: Callable[..., Any], args: dict[str, Any]) -> Any:
    try:
        return model(**args)
    except ValueError as error:  # pydantic's ValidationError is one
        raise _NotTaken(str(error)) from None


def _serve(requests: BinaryIO) -> None:
    place = pickle.load(requests)
    cases, timeout_s, files = pickle.load(requests)
    packed = [pickle.dumps(case) for case in cases]
    answers = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGPROF, _out_of_time)
    os.chdir(place)
    sys.path.insert(0, place)
    for name, content in files.items():
        Path(Path(name).name).write_bytes(content)
    beside = set(os.listdir())
    codes_of = _codes_of()
    os.write(answers, b"%d\n" % os.getpid())  # ready
    began = time.process_time()
    while True:
        try:
            source, trace, wanted = pickle.load(requests)
        except EOFError:
            return
        for number in wanted:
            tool, args, inputs, wanted_of_it = pickle.loads(packed[number])
            for name, content in inputs.items():
                Path(name).write_bytes(content)
            result = _one(codes_of, source, trace, tool, args, wanted_of_it, timeout_s)
            for name in os.listdir():  # the next case may ask whether a file is there
                if name not in beside:
                    _gone(Path(name))
            spent = time.process_time()  # since the last answer: what it took to read and compile, too
            os.write(answers, json.dumps([*result, spent - began]).encode() + b"\n")
            began = spent


def _gone(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _out_of_time(number: int, frame: FrameType | None) -> None:
    raise _OutOfTime


def _codes_of() -> Callable[[str], Sequence[Piece]]:
    """The code of sources; the first is the one that all others are edits of."""
    known: list[Segments] = []

    def codes(source: str) -> Sequence[Piece]:
        if not known:
            known.append(Segments(source, FILE))
        return known[0].codes(source)

    return codes


def _one(
    codes_of: Callable[[str], Sequence[Piece]],
    source: str,
    trace: bool,
    tool: str,
    args: dict[str, Any],
    wanted: list[Any],
    timeout_s: float,
) -> Any:
    lines: set[int] = set()

    def local(frame: FrameType, event: str, arg: object) -> Any:
        if frame.f_code.co_filename != FILE:
            return None
        lines.add(frame.f_lineno)
        return local

    module = types.ModuleType("tool")
    sys.modules["tool"] = module  # pydantic looks up annotations there
    namespace = module.__dict__
    try:
        signal.setitimer(signal.ITIMER_PROF, timeout_s, 0.05)  # again, for a source that swallows it
        run(codes_of(source), namespace)
        if trace:
            sys.settrace(local)
        try:
            if "Input" in namespace:
                value = namespace["run"](_given(namespace["Input"], args)).model_dump(mode="json")
            else:
                value = namespace[tool](*args.values())
        finally:
            sys.settrace(None)
        passed = all(_holds(kind, spec, value) for kind, spec in wanted)
        output = _plain(value)
        signal.setitimer(signal.ITIMER_PROF, 0)
    except BaseException as error:  # noqa: BLE001 (whatever the program under repair raises is its answer)
        signal.setitimer(signal.ITIMER_PROF, 0)
        name = _KINDS.get(type(error), type(error).__name__)  # as a box says it
        output = {"error": name, "message": str(error)[:200]}
        return False, output, sorted(lines), _line_of(error.__traceback__)
    return passed, output, sorted(lines), 0


def _line_of(trace: TracebackType | None) -> int:
    line = 0
    while trace is not None:
        line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == FILE else line
        trace = trace.tb_next
    return line


def _holds(kind: str, spec: dict[str, Any], answer: Any) -> bool:
    if kind == "equals" and not spec.get("path"):
        return bool(answer == spec["value"])
    if kind != "python":
        return not checks.judge(checks.parse(kind, spec), answer, Path())
    try:
        exec(spec["code"], {"answer": answer})
    except AssertionError:
        return False
    return True


def _plain(value: Any) -> Any:
    """JSON that tells a tuple and a set from a list, and an answer from an error."""
    if isinstance(value, dict) and value.keys() == {"error", "message"}:
        value = {"answer": value}
    try:
        return (
            json.loads(json.dumps(value))
            if not isinstance(value, tuple | set)
            else {type(value).__name__: repr(value)}
        )
    except (TypeError, ValueError):
        return {"repr": repr(value)}


def _fork(asked: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        word, descriptors, _, _ = socket.recv_fds(asked, 1, 2)
        if not word:
            return
        if os.fork() == 0:
            asked.close()
            for number, descriptor in enumerate(descriptors):
                os.dup2(descriptor, number)
                os.close(descriptor)
            try:
                _serve(sys.stdin.buffer)
            finally:
                os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)


if __name__ == "__main__":
    gc.collect()
    gc.freeze()  # a collection in a fork must not touch, and so copy, what it inherited
    _fork(socket.socket(fileno=int(sys.argv[1])))
