"""Servers of the standard library on loopback, and a port for one of another process, for as long as a block of code."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseServer
from typing import TypeVar

S = TypeVar("S", bound=BaseServer)


@contextmanager
def serving(server: S) -> Iterator[S]:
    """The server, at work on a thread of its own; closed at the end."""
    # it looks so often whether it is to end: by itself twice a second, for which every test would wait
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def held_port() -> Iterator[int]:
    """A port on which another process can listen, as one that takes an address again, and which is given to no other.

    One that is only looked up may be somebody's connection by the time a server begins.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])
