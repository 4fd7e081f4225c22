"""A Bench without a sandbox, for the benchmark and the tests of the repair proposer only.

A server process runs source after source in itself, with a limit of CPU time for each case and one of
memory. Nothing else protects the machine: use it with programs that you trust.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import functools
import json
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentos.benches import Bench, BenchResult
from agentos.domain import Check, Snapshot
from agentos.ports import Case

SERVER = Path(__file__).with_name("local_bench_server.py")


@functools.cache
def _forker() -> socket.socket:
    """To the process that forks a server for each two descriptors it is sent; ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, str(SERVER), str(theirs.fileno())], pass_fds=[theirs.fileno()]
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


class _Server:
    """One server process, its folder and the pipes to it. ``ended`` once it was waited for."""

    def __init__(self, setup: bytes) -> None:
        self._place = tempfile.TemporaryDirectory()  # not the server's own: it is killed
        theirs_in, to = os.pipe()
        answers, theirs_out = os.pipe()
        socket.send_fds(_forker(), [b"x"], [theirs_in, theirs_out])
        os.close(theirs_in)
        os.close(theirs_out)
        self.requests, self.answers = os.fdopen(to, "wb"), os.fdopen(answers, "rb", buffering=0)
        pickle.dump(self._place.name, self.requests)
        self.requests.write(setup)
        self.requests.flush()
        self._pid = int(self.answers.readline())
        self.ended = False

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        self.answers.read()  # the end of the pipe: it is gone
        self.ended = True
        self._place.cleanup()
        self.answers.close()
        with contextlib.suppress(BrokenPipeError):
            self.requests.close()


class LocalBench:
    """The port's ``Bench`` over one server process, which is replaced when a source kills or stops it."""

    def __init__(
        self, cases: Sequence[Case], timeout_s: float, files: Mapping[str, bytes] | None = None
    ) -> None:
        self._timeout_s = timeout_s
        self._count = len(cases)
        self.tries = 0
        self.cpu_s = 0.0  # of its servers, which are no children of this process
        packed = [
            (c.call.tool, dict(c.call.args), dict(c.inputs), [(k.kind, dict(k.spec)) for k in c.checks])
            for c in cases
        ]
        self._setup = pickle.dumps((packed, timeout_s, dict(files or {})))
        self._server = _Server(self._setup)

    def try_source(
        self, source: str, *, trace: bool = False, cases: Sequence[int] | None = None
    ) -> BenchResult:
        """Try one source; a case that hangs or dies has failed."""
        self.tries += 1
        wanted = list(range(self._count)) if cases is None else list(cases)
        results: list[Any] = []
        while len(results) < len(wanted):
            results += self._ask(source, trace, wanted[len(results) :])
            if len(results) < len(wanted):
                self._server.end()
                self._server = _Server(self._setup)
                results.append(
                    (False, {"error": "died", "message": "it ended early"}, [], 0, self._timeout_s)
                )
        cpu_s = sum(r[4] for r in results)
        self.cpu_s += cpu_s
        return BenchResult(
            tuple(r[0] for r in results),
            tuple(float(r[0]) for r in results),
            tuple(r[1] for r in results),
            tuple(tuple(r[2]) for r in results) if trace else (),
            tuple(r[3] for r in results) if trace else (),
            cpu_s,
        )

    def _ask(self, source: str, trace: bool, wanted: list[int]) -> list[Any]:
        """Results of the first cases, up to one that the server did not survive."""
        requests, answers = self._server.requests, self._server.answers
        pickle.dump((source, trace, wanted), requests)
        requests.flush()
        # The server itself ends what takes too much CPU; this is for what sleeps, also on a busy machine.
        data, deadline = b"", time.monotonic() + 5.0 + 10 * self._timeout_s * len(wanted)
        while data.count(b"\n") < len(wanted) and (left := deadline - time.monotonic()) > 0:
            if not select.select([answers], [], [], left)[0]:
                break
            chunk = os.read(answers.fileno(), 1 << 16)
            if not chunk:
                break
            data += chunk
        return [json.loads(line) for line in data.split(b"\n")[:-1]]

    def close(self) -> None:
        """End the server."""
        self._server.end()


class LocalBenches:
    """Opens local benches. ``opened`` keeps them, so that a test can see that all were closed."""

    def __init__(self, files: Mapping[str, bytes] | None = None) -> None:
        self.files = files
        self.opened: list[LocalBench] = []

    def bench(self, snapshot: Snapshot, path: str, cases: Sequence[Case], timeout_s: float) -> Bench:
        """As the port says; the snapshot's files are those given when this was made."""
        self.opened.append(LocalBench(cases, timeout_s, self.files))
        return self.opened[-1]


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
