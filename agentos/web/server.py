"""The process of the page: one for a home, until it is ended."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import secrets
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path
from threading import Thread
from typing import BinaryIO

from agentos.daemon.control.page import page_note
from agentos.home import Home
from agentos.ledger.blobs import BlobStore
from agentos.ledger.reading import Reader
from agentos.registry.store import Registry
from agentos.sandboxes.owner import Owner, place_of
from agentos.web.app import make_app
from agentos.web.context import Reach, WebContext
from agentos.web.listening import BoundedServer, listening_on
from agentos.web.sessions import LoginLinks, Sessions

_LOG_BYTES, _LOGS_KEPT = 1 << 20, 2


def serve(
    home: Home,
    reach: Reach,
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
    with listening_on(reach.bind, reach.port) as listening:
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


def server_of(home: Home, reader: Reader, reach: Reach, key: bytes) -> BoundedServer:
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
    server = BoundedServer(
        app,
        lifespan="off",
        log_config=None,
        loop="asyncio",
        ssl_certfile=reach.certificate,
        ssl_keyfile=reach.key,
    )
    return server


@contextmanager
def _noted(home: Home, reach: Reach, key: bytes) -> Iterator[None]:
    """In ``run/web.json``, for its owner alone: so that a second `agentos web` can print a link to the first."""
    path = home.page_note
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(f".{os.getpid()}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        owner, place = str(Owner.here(home.root)), place_of(home.root)
        json.dump({"owner": owner, "place": place, "address": reach.address, "key": key.hex()}, file)
        file.flush()
        # Where the home has another number each time, this tells that it is up.
        fcntl.flock(file, fcntl.LOCK_EX)
        aside.rename(path)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _end_with(server: BoundedServer, until: BinaryIO) -> None:
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
