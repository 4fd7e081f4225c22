"""``python -P -m agentos`` as a process of its own, without what its imports cost each time.

They take most of a second, which is many times what a command does. One process has imported them; it forks
for each command, and the child is the command: its own pid, environment, directory, streams, session and
exit code. What is imported when, and how a process starts, is the matter of tests/cli/test_main.py, which
starts real ones.

The same goes for the Python programs that a command starts in its turn (``_WARM``): a gateway imports for three
seconds. They are forked by servers of their own, so they are no children of the command that asked for them, and are
else as it wants them. tests/gateway starts real ones. ``agentos`` that a forked process starts (a daemon in the
background; each command of an example) is forked too.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
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
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

PATIENCE_S = 300.0
# Program -> what is imported before it is forked.
_WARM = {
    "agentos.gateway": "agentos.gateway.process",
    "agentos.proposers.search_worker": "agentos.proposers.search_worker",
    "bandit": "bandit.cli.main",
    "pip": "pip._internal.commands.download",
    "tests.forked_worker": "tests.forked_worker",
}
_ASIDE = 512  # above all descriptors that are handed over
_PASSED_MAX = 250  # descriptors in one message; the kernel takes 253
_AGENTOS: Mapping[str, Any] = {"module": "agentos", "session": False, "kept": []}


class Command:
    """One command; as much of ``subprocess.Popen`` as the tests use."""

    def __init__(self, door: bytes, request: Mapping[str, Any], streams: Sequence[int]) -> None:
        ours, theirs = os.pipe()
        with os.fdopen(theirs, "wb"), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
            server.connect(door)
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
    """The process that forks; ends with the one that started it. Where there is a ``door``, another one has."""

    def __init__(self, door: bytes = b"") -> None:
        self.door = door  # a name, where all ask
        if not door:
            self._start()

    def _start(self) -> None:
        # What libraries read as they are imported is nobody's, as in each command; tests/conftest.py says why.
        foreign = ("GIT_", "AGENTOS_", "PG")
        env = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        # Some keep what they found there.
        self._place = tempfile.TemporaryDirectory(prefix="agentos-commands-")
        env |= {"HOME": self._place.name, "XDG_CONFIG_HOME": f"{self._place.name}/none"}
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
            door.bind("")  # the kernel chooses a name
            door.listen(64)
            self.door = door.getsockname()
            passed = [theirs.fileno(), door.fileno()]
            words = [sys.executable, "-P", __file__, "agentos", *map(str, passed)]
            self._process = subprocess.Popen(words, pass_fds=passed, env=env)
        atexit.register(self._close)

    def start(
        self, *arguments: str, env: Mapping[str, str], quiet: bool = False, script: Path | None = None
    ) -> Command:
        """A command, or a script, in a session of its own; ``quiet`` keeps what it says on ``stderr``, a pipe."""
        request = {**_AGENTOS, "arguments": arguments, "env": dict(env), "cwd": os.getcwd(), "session": True}
        request["script"] = script and str(script)
        if not quiet:
            return Command(self.door, request, (0, 1, 2))
        ours, theirs = os.pipe()
        with os.fdopen(theirs, "wb"):
            made = Command(self.door, request, (0, 1, theirs))
        made.stderr = os.fdopen(ours, "rb")
        return made

    def run(
        self,
        *arguments: str,
        env: Mapping[str, str],
        cwd: Path | None = None,
        stdin: str = "",
        script: Path | None = None,
        patience_s: float = PATIENCE_S,
    ) -> subprocess.CompletedProcess[str]:
        """Run one to its end, or in place of ``agentos`` a script. Raises subprocess.TimeoutExpired, after it was killed."""
        request = {**_AGENTOS, "arguments": arguments, "env": dict(env), "cwd": str(cwd or Path.cwd())}
        request["script"] = script and str(script)
        with contextlib.ExitStack() as stack:
            streams = [
                stack.enter_context(os.fdopen(os.memfd_create(name), "r+", encoding="utf-8"))
                for name in ("stdin", "stdout", "stderr")
            ]
            streams[0].write(stdin)
            streams[0].seek(0)
            done = Command(self.door, request, [stream.fileno() for stream in streams])
            try:
                code = done.wait(patience_s)
            except subprocess.TimeoutExpired:
                done.kill()
                done.wait()
                raise
            said = []
            for stream in streams[1:]:
                stream.seek(0)
                said.append(stream.read())
        return subprocess.CompletedProcess(arguments, code, *said)

    def _close(self) -> None:
        self._socket.close()
        self._process.wait()
        self._place.cleanup()


_TYPED = """#!{python} -IS
import json, os, socket, sys
request = {{"module": "agentos", "arguments": sys.argv[1:], "env": dict(os.environ), "kept": [], "cwd": os.getcwd(),
           "session": False}}
ours, theirs = os.pipe()
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
    server.connect({door!r})
    socket.send_fds(server, [json.dumps(request).encode()], [0, 1, 2, theirs])
os.close(theirs)
pid, code = open(ours).read().split()
sys.exit(int(code) if int(code) >= 0 else 128 - int(code))
"""


def write_command(path: Path) -> None:
    """``agentos`` as a program that a shell can start: it has the command forked."""
    path.write_text(_TYPED.format(python=sys.executable, door=command_server().door))
    path.chmod(0o755)


_shared: list[bytes] = []


def share(door: bytes) -> None:
    """Have this process ask the server of another one, which outlives it."""
    _shared.append(door)


@functools.cache
def command_server() -> CommandServer:
    """The one of this test process, or of all of xdist's."""
    return CommandServer(*_shared)


class ForkedPopen(subprocess.Popen):  # type: ignore[type-arg]
    """``subprocess.Popen`` that has a program of ``_WARM`` forked; what is given by position is the command alone."""

    door = b""  # where the command server listens; "" where it is started with the first of them
    forks = True

    def __init__(self, args: Any, **given: Any) -> None:
        self._given, self._said = given, None
        super().__init__(args, **given)

    def _execute_child(self, args: Any, *rest: Any) -> None:
        words = [str(word) for word in args] if isinstance(args, list) else []
        module = _module(words)
        env = self._given.get("env")
        env = dict(os.environ if env is None else env)
        by_fork = not self._given.get("preexec_fn") and not _customizes(env.get("PYTHONPATH", ""))
        known = module in _WARM or (module == "agentos" and self.door and by_fork)
        kept = list(self._given.get("pass_fds", ()))
        if not known or not self.forks or len(kept) > _PASSED_MAX - 4 or max(kept, default=0) >= _ASIDE:
            super()._execute_child(args, *rest)  # type: ignore[misc]
            return
        request = {
            "module": module, "arguments": words[words.index("-m") + 2 :], "env": env, "kept": kept,
            "cwd": str(self._given.get("cwd") or os.getcwd()), "session": self._given.get("start_new_session", False),
        }  # fmt: skip
        ends = rest[9:15]  # of three pipes: what the child gets, and what is ours
        given = [0 if ends[0] < 0 else ends[0], 1 if ends[3] < 0 else ends[3], 2 if ends[5] < 0 else ends[5]]
        ours, theirs = os.pipe()
        with os.fdopen(theirs, "wb"), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
            server.connect(self.door or command_server().door)
            socket.send_fds(server, [json.dumps(request).encode()], [*given, theirs, *kept])
        self._close_pipe_fds(*ends)  # type: ignore[attr-defined]
        self._said = os.fdopen(ours, "rb", buffering=0)
        self.pid = int(self._said.readline())
        self._child_created = True

    def _internal_poll(self, *given: Any, **named: Any) -> int | None:
        if self._said is None:
            return super()._internal_poll(*given, **named)  # type: ignore[misc, no-any-return]
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._wait(0)
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if self._said is None:
            return super()._wait(timeout)  # type: ignore[misc, no-any-return]
        with self._waitpid_lock:  # type: ignore[attr-defined]
            if self.returncode is None:
                if not select.select([self._said], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(self.args, timeout or 0)
                self.returncode = int(self._said.readline())
                self._said.close()
        return self.returncode


def _customizes(pythonpath: str) -> bool:
    """Whether Python runs something of these places where it starts, which what is forked does not do."""
    places = [Path(place) for place in pythonpath.split(os.pathsep) if place]
    return any((place / f"{name}customize.py").exists() for place in places for name in ("site", "user"))


def _module(words: Sequence[str]) -> str:
    """What ``python -m``, ``python -P -m`` or ``python -I -m`` runs; "" for any other command."""
    at = 2 if words[1:2] in (["-P"], ["-I"]) else 1
    return words[at + 1] if words[:1] == [sys.executable] and words[at : at + 1] == ["-m"] else ""


# --- in the process that forks ----------------------------------------------------------------


def import_all() -> None:
    for package in ("agentos.cli", "agentos.daemon"):
        place = importlib.import_module(package).__path__
        for module in pkgutil.walk_packages(place, f"{package}."):
            importlib.import_module(module.name)
    _prepare_records()


def _prepare_records() -> None:
    """Compile the methods of all records, and how those of the domain are stored: each command would do so for its own."""
    stored = importlib.import_module("agentos.ledger.rows.codec")
    for name in [name for name in sys.modules if name.startswith("agentos.")]:
        for record in list(vars(sys.modules[name]).values()):
            if not isinstance(record, type) or record.__module__ != name or not is_dataclass(record):
                continue
            with contextlib.suppress(Exception):  # no call that fits: what it is made of is made before
                record.__eq__(0, "")  # type: ignore[arg-type, call-arg]
            with contextlib.suppress(RecursionError, TypeError):  # what is stored nowhere
                if name.startswith("agentos.records."):
                    stored._pair(record)


def _serve(
    asked: socket.socket, door: socket.socket | None = None
) -> tuple[dict[str, Any], list[int]] | None:
    """Fork for each request. Returns in each child what it was asked, in this process None at the end."""
    running: dict[int, tuple[int, int]] = {}  # by pidfd: pid, and where its exit code goes
    servers: dict[str, socket.socket] = {}
    while True:
        for ready in select.select([asked, *filter(None, [door]), *running], [], [])[0]:
            if ready is door:
                with door.accept()[0] as caller:
                    request, descriptors, _, _ = socket.recv_fds(caller, 1 << 20, _PASSED_MAX)
                if not request:
                    continue
                if json.loads(request)["module"] != "agentos":
                    _hand_on(request, descriptors, servers)
                    continue
            elif ready is not asked:
                pid, status = running.pop(ready)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with contextlib.suppress(BrokenPipeError):
                    os.write(status, f"{code}\n".encode())
                os.close(status)
                os.close(ready)
                continue
            else:
                request, descriptors, _, _ = socket.recv_fds(asked, 1 << 20, _PASSED_MAX)
                if not request:
                    return None
            if (pid := os.fork()) == 0:
                asked.detach()
                return json.loads(request), descriptors
            with contextlib.suppress(BrokenPipeError):  # who asked was killed meanwhile
                os.write(descriptors[3], f"{pid}\n".encode())
            running[os.pidfd_open(pid)] = (pid, descriptors[3])
            for descriptor in (*descriptors[:3], *descriptors[4:]):
                os.close(descriptor)


def _hand_on(request: bytes, descriptors: Sequence[int], servers: dict[str, socket.socket]) -> None:
    """To the server of the program, which is started when it is first asked for."""
    module = json.loads(request)["module"]
    if module not in servers:
        servers[module], theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            words = [sys.executable, "-P", __file__, module, str(theirs.fileno())]
            subprocess.Popen(words, pass_fds=[theirs.fileno()])
    socket.send_fds(servers[module], [request], descriptors)
    for descriptor in descriptors:
        os.close(descriptor)


def _become(request: dict[str, Any], descriptors: list[int], door: bytes) -> None:
    if request["session"]:
        os.setsid()
    aside = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, _ASIDE) for descriptor in descriptors]
    last = -1
    for number, descriptor in sorted(zip([0, 1, 2, *request["kept"]], [*aside[:3], *aside[4:]], strict=True)):
        if last + 1 < number:  # an empty range closes everything
            os.closerange(last + 1, number)
        last = os.dup2(descriptor, number)
    os.closerange(last + 1, 1 << 16)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    places = request["env"].get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [place for place in places if place and place not in sys.path]
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)
    sys.argv = [request["module"], *request["arguments"]]
    if request["module"] == "agentos":
        ForkedPopen.door = door
        subprocess.Popen = ForkedPopen  # type: ignore[misc]
    code: Any = 0
    try:
        if script := request.get("script"):
            sys.argv[0] = script
            sys.path.insert(0, str(Path(script).parent))
            runpy.run_path(script, run_name="__main__")
        else:
            runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            raise
        code = ended.code or 0
    _end(code)


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


def _imported(module: str) -> None:
    if module == "agentos":
        import_all()
        return
    if module == "agentos.gateway":
        importlib.import_module("agentos.gateway.__main__").prepare()
    importlib.import_module(_WARM[module])
    run = f"{module}.__main__" if hasattr(sys.modules.get(module), "__path__") else module
    sys.modules.pop(run, None)  # it is run, which is not to find it imported


def main(module: str, descriptor: int, door: int = -1) -> None:
    """Import, then fork: the command, or the program of that name."""
    listening = socket.socket(fileno=door) if door >= 0 else None
    name = listening.getsockname() if listening else b""
    gc.disable()  # imports make little garbage and many objects: looking for it takes a third of their time
    _imported(module)
    gc.collect()
    gc.freeze()
    gc.enable()
    if (told := _serve(socket.socket(fileno=descriptor), listening)) is not None:
        _become(*told, name)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
