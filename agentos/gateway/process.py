"""The life of the gateway's process: lock, socket, log, serving, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import logging
import os
import select
import socket
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import IO, NoReturn

import uvicorn

from agentos.errors import AgentOSError
from agentos.gateway.answering import CallService
from agentos.gateway.asking import Providers
from agentos.gateway.calls import CallRecord
from agentos.gateway.http import GatewayRoutes
from agentos.gateway.setup import READY, GatewayEnding, Setup, note_ending
from agentos.home import Home
from agentos.models.redaction import Redactor, known_secrets
from agentos.models.secrets import read_keys, values

DRAIN_S = 120.0  # for calls under way when the parent is gone or says stop
_LOGS_KEPT = 3

log = logging.getLogger("agentos.gateway")


class _Lines(logging.Formatter):
    """JSON lines, as the daemon's log, without secrets: an exception may quote what it met."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        if record.exc_info and record.exc_info[0]:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(self._redactor.value(line))


def serve(root: Path, name: str, stdin: IO[bytes]) -> NoReturn:
    """Serve until standard input ends. Says "ready" on standard output, or why not on standard error."""
    try:
        home, setup = Home(root), Setup.parse(stdin.readline())
        keys = read_keys(home.keys)
        for variable, key in keys.items():
            os.environ.setdefault(variable, key)  # for models that name no provider of the settings
        named = {where.key_env for where in setup.providers.values()}
        redactor = Redactor([*known_secrets(os.environ, keys, named), *values(home)])
        _set_up_log(home.logs / "gateway.log", setup, redactor)
        lock = _locked(home.run / f"{name}.lock", stdin)
        note_ending(home.run, name, None)  # of one that was killed while it ended
        listening = _listen(home.run, name)
        record = CallRecord(home.calls)
    except (AgentOSError, OSError, ValueError, TypeError) as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(1)
    says = partial(note_ending, home.run, name)
    asyncio.run(_serve(setup, Providers(setup.providers, keys), redactor, record, (listening, stdin, says)))
    record.close()
    says(None)
    os.close(lock)
    logging.shutdown()
    os._exit(0)  # threads of libraries must not hold up the end


def _set_up_log(path: Path, setup: Setup, redactor: Redactor) -> None:
    handler = RotatingFileHandler(path, maxBytes=setup.log_mb << 20, backupCount=_LOGS_KEPT, encoding="utf-8")
    handler.setFormatter(_Lines(redactor))
    logging.basicConfig(level=setup.log_level.upper(), handlers=[handler], force=True)
    for library in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "httpcore", "openai", "asyncio"):
        found = logging.getLogger(library)  # they log what is asked and answered
        found.handlers, found.propagate = [], True
        found.setLevel(logging.CRITICAL)


def _locked(path: Path, stdin: IO[bytes]) -> int:
    """The lock; waits for a gateway whose parent was killed while it brings its calls to their record."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            if select.select([stdin], [], [], 0.05)[0]:
                os._exit(0)  # nobody waits for us any more


def _listen(folder: Path, name: str) -> socket.socket:
    """Bound by its short name, because the path of a socket may have 107 bytes at most."""
    os.chdir(folder)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(name)
    os.chmod(name, 0o600)
    listening.listen(1024)
    return listening


async def _serve(
    setup: Setup,
    providers: Providers,
    redactor: Redactor,
    record: CallRecord,
    ends: tuple[socket.socket, IO[bytes], Callable[[GatewayEnding], None]],
) -> None:
    listening, stdin, ends_soon = ends
    loop = asyncio.get_running_loop()
    ending = asyncio.Event()
    answering = CallService(record, providers, redactor, setup.limits, setup.model_calls)
    face = GatewayRoutes(answering, setup.secret)
    server = uvicorn.Server(
        uvicorn.Config(
            face.app, http="httptools", loop="asyncio", lifespan="off", log_config=None, access_log=False,
            ws="none", timeout_keep_alive=24 * 3600,
        )
    )  # fmt: skip

    def watch() -> None:
        stdin.read()
        loop.call_soon_threadsafe(ending.set)

    threading.Thread(target=watch, name="parent", daemon=True).start()
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.005)
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    log.info("ready, pid %d", os.getpid())
    ended = asyncio.ensure_future(ending.wait())
    await asyncio.wait([ended, serving], return_when=asyncio.FIRST_COMPLETED)
    face.stopping = True
    log.info("ending, %d calls under way", answering.in_flight)
    deadline = time.monotonic() + DRAIN_S
    if answering.in_flight:
        ends_soon(GatewayEnding(os.getpid(), answering.in_flight, time.time() + DRAIN_S))
    while answering.in_flight and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.02)  # the last answers go out
    server.should_exit = server.force_exit = True
    await serving
    log.info("ended")
