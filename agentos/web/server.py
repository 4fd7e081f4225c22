"""The process of the page: one for a home, until it is ended."""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path
from threading import Thread
from typing import Any, BinaryIO

import uvicorn

from agentos.daemon.control.page import page_note
from agentos.errors import HomeBusy
from agentos.home import Home
from agentos.ledger.blobs import BlobStore
from agentos.ledger.reading import Reader
from agentos.registry.store import Registry
from agentos.sandboxes.owner import Owner
from agentos.web.app import make_app
from agentos.web.context import Reach, WebContext
from agentos.web.sessions import LoginLinks, Sessions

_LOG_BYTES, _LOGS_KEPT = 1 << 20, 2
HEAD_S = 20.0  # in which a connection has to ask for something, whole but for its body
LOOK_TICKS = 10  # of the server, between looks at its connections


def serve(
    home: Home,
    reach: Reach,
    port: int,
    *,
    open_browser: bool,
    tell: Callable[[str], None],
    until: BinaryIO | None = None,
) -> None:
    """Serve until Ctrl-C; where a page of this home is up already, only tell a new link to it.

    With ``until`` it says nothing, and ends when that does: whoever keeps it up is gone. Raises NotFound without a home, and Busy when another program has the port.
    """
    reader = Reader(home.ledger)  # refuses what is no home, before anything is opened
    if (up := page_note(home)) is not None:
        if until is None:
            links = LoginLinks(bytes.fromhex(up["key"]))
            _announce(str(up["address"]), links, open_browser=open_browser, tell=tell)
        return
    key = secrets.token_bytes(32)
    with listening_on(reach.bind, port) as listening:
        reach = reach.on(listening.getsockname()[1])
        server = server_of(home, reader, reach, key)
        with _log(home.logs / "web.log"), _noted(home, reach, key):
            if until is None:
                _announce(reach.address, LoginLinks(key), open_browser=open_browser, tell=tell)
                tell(f"Ctrl-C ends it. {_who_comes(reach)}")
            else:
                Thread(target=_end_with, args=(server, until), daemon=True).start()
            server.run(sockets=[listening])


def _who_comes(reach: Reach) -> str:
    if reach.is_local:
        return "It answers on this machine alone."
    return "Others come with a token: `agentos token add NAME --role look` (approve, administer)."


class _PageServer(uvicorn.Server):
    """Hangs up on who connects and does not ask: the last of the places that there are would be taken without a token."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._idle: dict[
            Any, tuple[Any, float]
        ] = {}  # by connection: its last request, and since when it is seen

    async def on_tick(self, counter: int) -> bool:
        """What uvicorn calls ten times a second."""
        if counter % LOOK_TICKS == 0:
            self._hang_up(time.monotonic())
        return await super().on_tick(counter)

    def _hang_up(self, now: float) -> None:
        idle: dict[Any, tuple[Any, float]] = {}
        connections: list[Any] = [*self.server_state.connections]
        for one in connections:
            if one.cycle is not None and not one.cycle.response_complete:
                continue
            last, since = self._idle.get(one, (None, now))
            idle[one] = last, since = one.cycle, since if last is one.cycle else now
            if now - since > HEAD_S:
                one.transport.abort()  # to close would wait for who does not read either
        self._idle = idle


def server_of(home: Home, reader: Reader, reach: Reach, key: bytes) -> uvicorn.Server:
    """The server for a socket that listens. ``key`` makes its links."""
    site = WebContext(
        home=home,
        reader=reader,
        registry=Registry(home.registry),
        blobs=BlobStore(home.blobs),
        sessions=Sessions(),
        links=LoginLinks(key),
        reach=reach,
    )
    app = make_app(site, lambda: server.should_exit)
    server = _PageServer(
        uvicorn.Config(
            app, http="h11",  # of httptools a head of a request has no end
            loop="asyncio", lifespan="off", log_config=None, access_log=False, ws="none",
            server_header=False, timeout_graceful_shutdown=5, limit_concurrency=256,
            proxy_headers=False,  # what a client says of itself is not believed
            ssl_certfile=reach.certificate, ssl_keyfile=reach.key,
        )
    )  # fmt: skip
    return server


@contextmanager
def listening_on(address: str, port: int) -> Iterator[socket.socket]:
    """A socket there. Raises HomeBusy where that cannot be had."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # the protocol is named, for asyncio turns Nagle's algorithm off only then: it costs 40 ms a page
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as found:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((address, port))
        except OSError as error:
            raise HomeBusy(
                f"Port {port} cannot be had ({error.strerror}): name another with --port."
            ) from None
        yield found


@contextmanager
def _noted(home: Home, reach: Reach, key: bytes) -> Iterator[None]:
    """In ``run/web.json``, for its owner alone: so that a second `agentos web` can print a link to the first."""
    path = home.page_note
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(f".{os.getpid()}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump({"owner": str(Owner.here(home.root)), "address": reach.address, "key": key.hex()}, file)
    aside.rename(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _end_with(server: uvicorn.Server, until: BinaryIO) -> None:
    while until.read(1):
        pass
    server.should_exit = True


def _announce(base: str, links: LoginLinks, *, open_browser: bool, tell: Callable[[str], None]) -> None:
    address = f"{base}/enter?once={links.make()}"
    tell(f"Open this link within ten minutes; it works once:\n\n  {address}\n")
    if open_browser and not webbrowser.open(address):
        tell("No browser could be opened from here.")


@contextmanager
def _log(path: Path) -> Iterator[None]:
    """What goes wrong inside, without addresses: those may hold what lets somebody in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = RotatingFileHandler(
        path, maxBytes=_LOG_BYTES, backupCount=_LOGS_KEPT, encoding="utf-8", delay=True
    )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("uvicorn")
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()
