"""The kernel's side of the gateway: starts the process with the first call, and again when it died.

Standard library only, because the daemon has it at hand all the time and most homes need no model.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import select
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from agentos.domain import Json, Reply
from agentos.errors import ModelFailed, Sentence, Unavailable, missing_extra, to_type
from agentos.gateway.calls import CallReading, ProviderCall
from agentos.gateway.setup import CALL_HEADER, READY, SOCKET, TIMEOUT_HEADER, Setup
from agentos.home import Home
from agentos.models.stop import model_stop
from agentos.ports import Grant

if TYPE_CHECKING:
    from agentos.settings import Settings

_START_S = 180.0  # importing litellm takes 3 s; a gateway of a killed daemon may end its calls first
_END_S = 130.0
_GRACE_S = 5.0  # beyond the deadline, at which the gateway answers by itself
_IDLE_MAX = 64
_DEATHS_MAX = 5  # of gateways over one call, which may be what kills them, and is paid each time
_LOOK_S = 0.1  # how long a wait goes on after whoever waited has ended
_ENDED = "this run has ended and may ask no model"
_OVER = frozenset({"stopping", "token"})  # of a process that is being replaced: another one takes the call


def why_not_installed() -> str:
    """What is missing for asking a model, and what to type; "" where nothing is."""
    return "" if find_spec("litellm") else missing_extra("models", "Asking a model")


def _waited(done: Callable[[float], bool], until: float, given_up: Callable[[], bool]) -> bool:
    """Whether it was done by then; ``done`` waits for so many seconds at most. Raises ModelFailed once given up."""
    while not given_up():
        left_s = max(0.0, until - time.monotonic())
        if done(min(left_s, _LOOK_S)):
            return True
        if not left_s:
            return False
    raise ModelFailed("unreachable", "whoever waited for the gateway has ended")


class _Connection(http.client.HTTPConnection):
    """HTTP over the socket ``name`` in an open folder: its path may be longer than a socket's may be."""

    def __init__(self, folder: int, name: str) -> None:
        super().__init__("gateway")
        self._path = f"/proc/self/fd/{folder}/{name}"

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)

    def hang_up(self) -> None:
        """Whoever waits for an answer on it, on another thread, hears that none comes."""
        with contextlib.suppress(OSError, AttributeError):  # it is closed by now
            self.sock.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True, slots=True)
class _Response:
    status: int
    body: bytes
    call: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class GatewayRequest:
    """One request to a gateway's process."""

    method: str
    path: str
    token: str
    body: bytes


class _Gone(Exception):
    """The process died, or was replaced, before it answered."""


class _Process:
    """One gateway process, and the connections to it. Begun by its constructor; see ``wait_until_ready``."""

    def __init__(self, home: Home, setup: Setup, name: str) -> None:
        """Raises ModelFailed("unreachable") where nothing can be started."""
        if fault := why_not_installed():
            raise ModelFailed("unreachable", fault)
        self.setup = setup
        self._name = name
        self._idle: list[_Connection] = []
        self._lock = threading.Lock()
        self._ready = False
        self._starts_until = time.monotonic() + _START_S
        self._said = home.logs / "gateway.out"
        with self._said.open("wb") as out:
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-m", "agentos.gateway", "--home", str(home.root), "--socket", name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=out,
                cwd=home.root,
                start_new_session=True,  # a Ctrl-C is for the daemon, which ends us in its time
            )
        self._folder = os.open(home.run, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        assert self._child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.write(setup.line())
            self._child.stdin.flush()

    def wait_until_ready(self, deadline: float, given_up: Callable[[], bool]) -> None:
        """Raises ModelFailed: "timeout" while it still starts, "unreachable", with its last words, when it did not come up."""
        if self._ready:
            return
        assert self._child.stdout is not None
        ready = select.poll()  # select() takes no descriptor beyond 1,023
        ready.register(self._child.stdout, select.POLLIN)
        until = min(deadline, self._starts_until)
        said = _waited(lambda left_s: bool(ready.poll(left_s * 1e3)), until, given_up)
        self._ready = said and self._child.stdout.readline() == READY
        if self._ready:
            return
        if not said and time.monotonic() < self._starts_until:
            raise ModelFailed("timeout", "the gateway still starts")
        words = self._said.read_text(errors="replace").strip().splitlines()
        why = words[-1] if words else "it was not ready in time"
        raise ModelFailed("unreachable", f"the gateway did not start: {why}")

    def alive(self) -> bool:
        """Whether the process runs."""
        return self._child.poll() is None

    def end(self, *, patience_s: float, given_up: Callable[[], bool] = lambda: False) -> None:
        """Close its standard input and wait; kill it after ``patience_s``. Where that is given up it may be asked again."""
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        if not _waited(self._exited, time.monotonic() + patience_s, given_up):
            self._child.kill()
            self._child.wait()
        with self._lock:
            for connection in self._idle:
                connection.close()
            self._idle.clear()
            os.close(self._folder)
            self._folder = -1

    def _exited(self, within_s: float) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(within_s)
        return not self.alive()

    def control(self, path: str, body: Json, deadline: float) -> Json:
        """A control request; raises _Gone, or ModelFailed when it is refused."""
        asked = GatewayRequest("POST", f"/control/{path}", self.setup.secret, json.dumps(body).encode())
        response = self.request(asked, deadline)
        if response.status != 200:
            raise _failure(response)
        return json.loads(response.body)

    def request(
        self,
        asked: GatewayRequest,
        deadline: float,
        *,
        begun: Callable[[_Connection], None] = lambda connection: None,
    ) -> _Response:
        """Raises _Gone when the connection broke, ModelFailed("timeout") when the deadline passed.

        ``begun`` is told on which connection the answer is waited for.
        """
        left = max(deadline - time.monotonic(), 0.001)
        headers = {
            "Authorization": f"Bearer {asked.token}",
            "Content-Type": "application/json",
            TIMEOUT_HEADER: f"{left:.3f}",
        }
        connection = self._connection(left + _GRACE_S)
        try:
            connection.request(asked.method, asked.path, asked.body, headers)
            begun(connection)
            answered = connection.getresponse()
            content = answered.read()
        except TimeoutError:
            connection.close()
            raise ModelFailed("timeout", "the gateway did not answer in time") from None
        except (OSError, http.client.HTTPException):
            connection.close()
            raise _Gone from None
        about = answered.headers.get(CALL_HEADER)
        with self._lock:
            if len(self._idle) < _IDLE_MAX and self._folder >= 0:
                self._idle.append(connection)
            else:
                connection.close()
        return _Response(answered.status, content, json.loads(about) if about else None)

    def _connection(self, timeout_s: float) -> _Connection:
        with self._lock:
            connection = self._idle.pop() if self._idle else _Connection(self._folder, self._name)
        connection.timeout = timeout_s
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s)
        return connection


class GatewayModels:
    """Implements ``ports.Models``. Costs nothing until the first call."""

    def __init__(
        self, home: Home, setup: Settings | Callable[[], Setup], *, socket_name: str = SOCKET
    ) -> None:
        """A second process that wants models on the same home needs a ``socket_name`` of its own.

        Where ``setup`` gives another object than before, the calls under way are brought to their end and
        another process takes those that follow.
        """
        self.home = home
        self._setup: Callable[[], Setup]
        if callable(setup):
            self._setup = setup
        else:
            fixed = Setup.of(setup)
            self._setup = lambda: fixed
        self._socket_name = socket_name
        self._lock = threading.Lock()
        self._process: _Process | None = None
        self._closed = False

    def open(self, grant: Grant) -> GatewaySession:
        """Cheap: nothing is asked or started yet."""
        return GatewaySession(self, grant)

    def process(self, deadline: float, given_up: Callable[[], bool] = lambda: False) -> _Process:
        """The process, started where it does not run; raises ModelFailed when it does not come up, calls are stopped, or
        whoever waits has ``given_up``."""
        if (stopped := model_stop(self.home)) is not None:
            why = f": {stopped.reason}" if stopped.reason else ""
            said = f"{stopped.principal} stopped all model calls{why}; "
            goes_on = to_type("agentos model resume")
            raise ModelFailed("unreachable", Sentence(said, goes_on, " lets them go on"))

        def is_over() -> bool:
            return self._closed or given_up()

        # others may hold it for as long as a gateway starts, or brings its calls to their end
        if not _waited(lambda left_s: self._lock.acquire(timeout=left_s), deadline, is_over):
            raise ModelFailed("timeout", "the gateway still starts, or ends the calls of before")
        try:
            setup = self._setup()
            running = self._process
            if running is not None and (running.setup is not setup or not running.alive()):
                running.end(patience_s=_END_S if running.alive() else 0.0, given_up=is_over)
                self._process = None
            if self._process is None:
                self._process = _Process(self.home, setup, self._socket_name)
            try:
                self._process.wait_until_ready(deadline, is_over)
            except ModelFailed as error:
                # one that only takes longer than this caller has, or waits, is the next one's
                if error.kind != "timeout" and not is_over():
                    self._process.end(patience_s=0.0)
                    self._process = None
                raise
            return self._process
        finally:
            self._lock.release()

    def current(self) -> _Process | None:
        """The process if it runs; waits for nobody."""
        process = self._process
        return process if process is not None and process.alive() else None

    @property
    def pid(self) -> int | None:
        """Of the process that runs now."""
        process = self.current()
        return None if process is None else process._child.pid

    def close(self) -> None:
        """End the gateway after the calls in flight are on record. Idempotent."""
        self._closed = True  # before the lock: whoever waits with it in hand lets it go
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.end(patience_s=_END_S)


class GatewaySession:
    """Implements ``ports.ModelSession``."""

    def __init__(self, models: GatewayModels, grant: Grant) -> None:
        self._models = models
        self._grant = grant
        self._lock = threading.Lock()
        self._open_in: _Process | None = None
        self._id = ""
        self._token = ""
        self._done: dict[str, list[int]] = {}
        self._waiting: set[_Connection] = set()
        self._told: set[str] = set()  # ids of the calls of which somebody was told what they used
        self._closed = False

    def complete(self, request: Json, deadline: float) -> Reply:
        """As ``ports.ModelSession``: the call is on record before this returns. Raises ModelFailed.

        When the gateway dies in the middle the same call is asked again: its record has the answer,
        or the key with which the provider knows it.
        """
        content = json.dumps(request).encode()
        until = min(deadline, time.monotonic() + 24 * 3600.0)
        sent_by: set[_Process] = set()
        sent: list[_Connection] = []  # on which it went out, and an answer may have been made
        while len(sent_by) < _DEATHS_MAX:
            if time.monotonic() >= until:
                raise ModelFailed("timeout", "no time was left for a model call")
            try:
                process, token = self._opened(until)
                sent_by.add(process)
                response = self._asked(process, token, content, until, sent)
            except _Gone:
                if self._closed and sent:
                    raise ModelFailed("not_allowed", _ENDED, self._left_behind()) from None
                time.sleep(0.01)  # until the system knows that it is dead
                continue
            if _said(response)[0] not in _OVER:
                return self._reply(response, was_lost=len(sent) > 1)
            sent.pop()  # no call was made for it
            self._leave(process)
            time.sleep(0.05)
        raise ModelFailed(
            "unreachable",
            f"the gateway ended {_DEATHS_MAX} times while it made this call; see logs/gateway.log and gateway.out",
        )

    def _asked(
        self, process: _Process, token: str, content: bytes, until: float, sent: list[_Connection]
    ) -> _Response:
        """Raises _Gone, also where the session is closed meanwhile, and ModelFailed."""

        def begun(connection: _Connection) -> None:
            with self._lock:
                sent.append(connection)
                self._waiting.add(connection)
                if self._closed:
                    connection.hang_up()

        try:
            asked = GatewayRequest("POST", "/v1/chat/completions", token, content)
            return process.request(asked, until, begun=begun)
        finally:
            with self._lock:
                self._waiting -= {*sent}

    def _leave(self, process: _Process) -> None:
        """The next call opens the grant again."""
        with self._lock:
            if self._open_in is process:
                self._open_in = None

    def _opened(self, deadline: float) -> tuple[_Process, str]:
        with self._lock:
            if self._closed:
                raise ModelFailed("not_allowed", _ENDED)
            process = self._models.process(deadline, lambda: self._closed)
            if process is not self._open_in:
                opened = process.control("open", {"grant": asdict(self._grant), "done": self._done}, deadline)
                self._open_in, self._id, self._token = process, opened["id"], opened["token"]
            return process, self._token

    def _left_behind(self) -> Mapping[str, Any] | None:
        """What the run is booked with for calls whose answers it did not wait for, once; of one without an answer that is
        the estimate."""
        calls: list[ProviderCall] = []
        # what cannot be read is not counted: the run ends as it was to end
        with contextlib.suppress(sqlite3.Error, Unavailable):
            reading = CallReading(self._models.home.calls)
            with contextlib.closing(reading), self._lock:
                calls = [
                    call
                    for call in reading.calls(self._grant.run_id)
                    if not (call.served_from or call.id in self._told)
                ]
                self._told |= {call.id for call in calls}
        prices = [call.usd for call in calls if call.usd is not None]
        return {
            "input_tokens": sum(call.input_tokens for call in calls),
            "output_tokens": sum(call.output_tokens for call in calls),
            "usd": sum(prices) if len(prices) == len(calls) else None,
            "estimated": any(call.state == "intent" or call.estimated for call in calls),
        }

    def _reply(self, response: _Response, *, was_lost: bool) -> Reply:
        """``was_lost``: an answer may have come onto the record whose reply did not come here, so that nobody has counted it."""
        call = response.call
        with self._lock:
            self._told.add(call["id"] if call else "")
            if call is not None and call["ended"]:
                self._done.setdefault(call["key"], []).append(call["nth"])
        if response.status != 200 or call is None:
            raise _failure(response)
        return Reply(
            call_id=call["id"],
            body=json.loads(response.body),
            input_tokens=call["input_tokens"],
            output_tokens=call["output_tokens"],
            usd=call["usd"],
            latency_ms=call["latency_ms"],
            recorded=call["recorded"] and not (was_lost and call["own"]),
            model=call["model"],
        )

    def close(self) -> None:
        """The grant ends here, and whoever waits for an answer by it is told so; idempotent."""
        self._closed = True  # before the lock, as there
        with self._lock:
            process, self._open_in = self._open_in, None
            for connection in self._waiting:
                connection.hang_up()
        if process is not None and process is self._models.current():
            with contextlib.suppress(_Gone, ModelFailed):  # then the token ended with the process
                process.control("close", {"id": self._id}, time.monotonic() + _GRACE_S)


def _failure(response: _Response) -> ModelFailed:
    kind, message = _said(response)
    return ModelFailed("unreachable" if kind in _OVER else kind, message, response.call)


def _said(response: _Response) -> tuple[str, str]:
    """Kind and message of what was refused; empty where it was not."""
    if response.status == 200:
        return "", ""
    try:
        error = json.loads(response.body)["error"]
        return str(error["code"]), str(error["message"])
    except (ValueError, KeyError, TypeError):
        # a bug before anything was sent; what was sent is on record, and says more
        return "internal", f"a bug of the gateway (status {response.status}); see logs/gateway.log"
