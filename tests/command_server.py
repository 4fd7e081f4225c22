"""``python -P -m agentos`` as a process of its own, without what its imports cost each time.

They take most of a second, which is many times what a command does. One process has imported them; it forks
for each command, and the child is the command: its own pid, environment, directory, streams, session and
exit code. What is imported when, and how a process starts, is the matter of tests/cli/test_main.py, which
starts real ones.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

PATIENCE_S = 300.0


class Command:
    """One command; as much of ``subprocess.Popen`` as the tests use."""

    def __init__(self, server: socket.socket, request: Mapping[str, Any], streams: Sequence[int]) -> None:
        ours, theirs = os.pipe()
        with os.fdopen(theirs, "wb"):
            socket.send_fds(server, [json.dumps(request).encode()], [*streams, theirs])
        self._said = os.fdopen(ours, "rb", buffering=0)
        self.pid = int(self._said.readline())
        self.args = request["arguments"]
        self.returncode: int | None = None
        self.stderr: IO[bytes] | None = None

    def poll(self) -> int | None:
        """The exit code, or minus the signal's number; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._said], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = int(self._said.readline())
            self._said.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class CommandServer:
    """The process that forks; ends with this one."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()]
            )

    def start(self, *arguments: str, env: Mapping[str, str], quiet: bool = False) -> Command:
        """A command in a session of its own; ``quiet`` keeps what it says on ``stderr``, which is a pipe."""
        request = {"arguments": arguments, "env": dict(env), "cwd": os.getcwd(), "session": True}
        if not quiet:
            return Command(self._socket, request, (0, 1, 2))
        ours, theirs = os.pipe()
        with os.fdopen(theirs, "wb"):
            made = Command(self._socket, request, (0, 1, theirs))
        made.stderr = os.fdopen(ours, "rb")
        return made

    def run(
        self, *arguments: str, env: Mapping[str, str], cwd: Path | None = None, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run one to its end. Raises subprocess.TimeoutExpired, after it was killed."""
        request = {"arguments": arguments, "env": dict(env), "cwd": str(cwd or Path.cwd()), "session": False}
        with contextlib.ExitStack() as stack:
            streams = [
                stack.enter_context(os.fdopen(os.memfd_create(name), "r+", encoding="utf-8"))
                for name in ("stdin", "stdout", "stderr")
            ]
            streams[0].write(stdin)
            streams[0].seek(0)
            done = Command(self._socket, request, [stream.fileno() for stream in streams])
            try:
                code = done.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                done.kill()
                done.wait()
                raise
            said = []
            for stream in streams[1:]:
                stream.seek(0)
                said.append(stream.read())
        return subprocess.CompletedProcess(arguments, code, *said)

    def close(self) -> None:
        self._socket.close()
        self._process.wait()


@functools.cache
def command_server() -> CommandServer:
    """The one of this test process."""
    made = CommandServer()
    atexit.register(made.close)
    return made


# --- in the process that forks ----------------------------------------------------------------


def _import_all() -> None:
    for package in ("agentos.cli", "agentos.daemon"):
        place = importlib.import_module(package).__path__
        for module in pkgutil.walk_packages(place, f"{package}."):
            importlib.import_module(module.name)


def _serve(asked: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Fork for each request. Returns in each child what it was asked, in this process None at the end."""
    running: dict[int, tuple[int, int]] = {}  # by pidfd: pid, and where its exit code goes
    while True:
        for ready in select.select([asked, *running], [], [])[0]:
            if ready is not asked:
                pid, status = running.pop(ready)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with contextlib.suppress(BrokenPipeError):
                    os.write(status, f"{code}\n".encode())
                os.close(status)
                os.close(ready)
                continue
            request, descriptors, _, _ = socket.recv_fds(asked, 1 << 20, 4)
            if not request:
                return None
            if (pid := os.fork()) == 0:
                asked.detach()
                return json.loads(request), descriptors
            os.write(descriptors[3], f"{pid}\n".encode())
            running[os.pidfd_open(pid)] = (pid, descriptors[3])
            for descriptor in descriptors[:3]:
                os.close(descriptor)


def _become(request: dict[str, Any], descriptors: list[int]) -> None:
    if request["session"]:
        os.setsid()
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
    os.closerange(3, 1 << 16)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)
    sys.argv = ["agentos", *request["arguments"]]
    try:
        runpy.run_module("agentos", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            raise
        _end(ended.code or 0)


def _end(code: int) -> NoReturn:
    """End as the interpreter does, but for taking apart what this process inherited: that costs more than
    most commands, and an interpreter of a command's own has little of it.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(ValueError):  # it was closed
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    _import_all()
    gc.collect()
    gc.freeze()
    if (told := _serve(socket.socket(fileno=int(sys.argv[1])))) is not None:
        _become(*told)
