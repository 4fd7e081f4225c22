"""A Bench without a sandbox, for the benchmark and the tests of the repair proposer only.

A server process forks once for each source that is tried; the fork has a time limit for each case
and a memory limit. Nothing else protects the machine: use it with programs that you trust.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import pickle
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO

from agentos.domain import Check, Snapshot
from agentos.ports import Bench, Case, Tried

FILE = "<tool>"
MEMORY = 512 << 20


class LocalBench:
    """The port's ``Bench`` over a forking server."""

    def __init__(
        self, cases: Sequence[Case], timeout_s: float, files: Mapping[str, bytes] | None = None
    ) -> None:
        self._server = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=-1
        )
        self._count = len(cases)
        packed = [
            (c.call.tool, dict(c.call.args), dict(c.inputs), [(k.kind, dict(k.spec)) for k in c.checks])
            for c in cases
        ]
        self._send((packed, timeout_s, dict(files or {})))

    def _send(self, value: object) -> None:
        assert self._server.stdin
        pickle.dump(value, self._server.stdin)
        self._server.stdin.flush()

    def try_source(self, source: str, *, trace: bool = False, cases: Sequence[int] | None = None) -> Tried:
        """Try one source; a case that hangs or dies has failed."""
        self._send((source, trace, list(range(self._count)) if cases is None else list(cases)))
        assert self._server.stdout
        results = pickle.load(self._server.stdout)
        return Tried(
            tuple(r[0] for r in results),
            tuple(float(r[0]) for r in results),
            tuple(r[1] for r in results),
            tuple(tuple(r[2]) for r in results) if trace else (),
        )

    def close(self) -> None:
        """End the server."""
        assert self._server.stdin
        assert self._server.stdout
        self._server.stdin.close()
        self._server.wait(timeout=10)
        self._server.stdout.close()


class LocalBenches:
    """Opens local benches. ``opened`` keeps them, so that a test can see that all were closed."""

    def __init__(self, files: Mapping[str, bytes] | None = None) -> None:
        self.files = files
        self.opened: list[LocalBench] = []

    def bench(self, snapshot: Snapshot, path: str, cases: Sequence[Case], timeout_s: float) -> Bench:
        """As the port says; the snapshot's files are those given when this was made."""
        self.opened.append(LocalBench(cases, timeout_s, self.files))
        return self.opened[-1]


# --- the server -------------------------------------------------------------------------------


class _OutOfTime(BaseException):
    pass


def _serve(requests: BinaryIO, answers: BinaryIO) -> None:
    cases, timeout_s, files = pickle.load(requests)
    signal.signal(signal.SIGALRM, _out_of_time)
    import pydantic

    assert pydantic
    while True:
        try:
            source, trace, wanted = pickle.load(requests)
        except EOFError:
            return
        results = _forked(source, trace, [cases[i] for i in wanted], timeout_s, files)
        pickle.dump(results, answers)
        answers.flush()


def _out_of_time(number: int, frame: FrameType | None) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0.05)  # again, in case the source swallows it
    raise _OutOfTime


def _forked(
    source: str, trace: bool, cases: list[Any], timeout_s: float, files: Mapping[str, bytes]
) -> list[Any]:
    """Run the cases one after another in a fork; it goes on in another after one that dies."""
    results: list[Any] = []
    while len(results) < len(cases):
        rest = cases[len(results) :]
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _work(source, trace, rest, timeout_s, files, writing)
        os.close(writing)
        done = _collect(child, reading, len(rest), timeout_s)
        results += done
        if len(done) < len(rest):
            results.append((False, {"error": "BoxDied", "message": "it ended early"}, []))
    return results


def _collect(child: int, reading: int, count: int, timeout_s: float) -> list[Any]:
    data, deadline = b"", time.monotonic() + (timeout_s + 0.2) * count + 0.5
    while (left := deadline - time.monotonic()) > 0 and select.select([reading], [], [], left)[0]:
        chunk = os.read(reading, 1 << 16)
        if not chunk:
            break
        data += chunk
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reading)
    lines = data.split(b"\n")[:-1]
    return [json.loads(line) for line in lines]


def _work(
    source: str, trace: bool, cases: list[Any], timeout_s: float, files: Mapping[str, bytes], writing: int
) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    with (
        tempfile.TemporaryDirectory()
        if files or any(c[2] for c in cases)
        else contextlib.nullcontext() as place
    ):
        if place:
            os.chdir(place)
            sys.path.insert(0, place)
            for name, content in files.items():
                Path(Path(name).name).write_bytes(content)
        for tool, args, inputs, checks in cases:
            for name, content in inputs.items():
                Path(name).parent.mkdir(parents=True, exist_ok=True)
                Path(name).write_bytes(content)
            result = _one(source, trace, tool, args, checks, timeout_s)
            os.write(writing, json.dumps(result).encode() + b"\n")
    os._exit(0)


def _one(
    source: str, trace: bool, tool: str, args: dict[str, Any], checks: list[Any], timeout_s: float
) -> Any:
    lines: set[int] = set()

    def local(frame: FrameType, event: str, arg: object) -> Any:
        if frame.f_code.co_filename != FILE:
            return None
        lines.add(frame.f_lineno)
        return local

    namespace: dict[str, Any] = {"__name__": "tool"}
    try:
        signal.setitimer(signal.ITIMER_REAL, timeout_s)
        exec(compile(source, FILE, "exec", dont_inherit=True), namespace)
        if trace:
            sys.settrace(local)
        try:
            if "Input" in namespace:
                value = namespace["run"](namespace["Input"](**args)).model_dump(mode="json")
            else:
                value = namespace[tool](*args.values())
        finally:
            sys.settrace(None)
        passed = all(_holds(kind, spec, value) for kind, spec in checks)
        output = _plain(value)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except BaseException as error:  # noqa: BLE001 (whatever the program under repair raises is its answer)
        signal.setitimer(signal.ITIMER_REAL, 0)
        return False, {"error": type(error).__name__, "message": str(error)[:200]}, sorted(lines)
    return passed, output, sorted(lines)


def _holds(kind: str, spec: dict[str, Any], answer: Any) -> bool:
    if kind == "equals":
        return bool(answer == spec["value"])
    try:
        exec(spec["code"], {"answer": answer})
    except AssertionError:
        return False
    return True


def _plain(value: Any) -> Any:
    """JSON that tells a tuple and a set from a list."""
    try:
        return (
            json.loads(json.dumps(value))
            if not isinstance(value, tuple | set)
            else {type(value).__name__: repr(value)}
        )
    except (TypeError, ValueError):
        return {"repr": repr(value)}


# --- asserts to cases -------------------------------------------------------------------------


def cases_of_asserts(tests: str, function: str, parameters: Sequence[str]) -> list[Case]:
    """Each ``assert`` with one call of the function and literal arguments, as a case."""
    found = []
    for node in ast.walk(ast.parse(tests)):
        if isinstance(node, ast.Assert):
            case = _case(node.test, function, parameters, len(found))
            if case is not None:
                found.append(case)
    return found


def _case(test: ast.expr, function: str, parameters: Sequence[str], number: int) -> Case | None:
    from agentos.domain import Call

    calls = [
        n
        for n in ast.walk(test)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == function
    ]
    if len(calls) != 1 or calls[0].keywords:
        return None
    try:
        values = [ast.literal_eval(argument) for argument in calls[0].args]
    except ValueError:
        return None
    check = _check(test, calls[0])
    return Case(f"task-{number}", Call(function, dict(zip(parameters, values, strict=False))), {}, (check,))


def _check(test: ast.expr, call: ast.Call) -> Check:
    if isinstance(test, ast.Compare) and test.left is call and isinstance(test.ops[0], ast.Eq):
        try:
            return Check("equals", {"value": ast.literal_eval(test.comparators[0])})
        except ValueError:
            pass
    text = ast.unparse(test).replace(ast.unparse(call), "answer")
    return Check("python", {"code": f"assert {text}"})


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer)
