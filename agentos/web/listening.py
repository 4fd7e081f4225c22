"""How HTTP is served to who has a token, and to who has none yet: the page, and the MCP server of a home."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from agentos.errors import HomeBusy

CONNECTIONS_MAX = 256
HEAD_S = 20.0  # in which a connection has to ask for something, whole but for its body
LOOK_TICKS = 10  # of the server, between looks at its connections


@contextmanager
def listening_on(address: str, port: int, option: str = "--port") -> Iterator[socket.socket]:
    """A socket there. Raises HomeBusy where that cannot be had; ``option`` is what names another one."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # the protocol is named, for asyncio turns Nagle's algorithm off only then: it costs 40 ms a page
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as found:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((address, port))
        except OSError as error:
            raise HomeBusy(
                f"Port {port} cannot be had ({error.strerror}): name another with {option}."
            ) from None
        yield found


class BoundedServer(uvicorn.Server):
    """Of an ASGI application; what nobody has shown a token for yet is bounded: the head of a request, and connections.

    It hangs up on who connects and does not ask: the last of the places that there are would be taken. ``options`` are
    more of ``uvicorn.Config``.
    """

    def __init__(self, app: Any, **options: Any) -> None:
        config = uvicorn.Config(
            app,
            http="h11",  # of httptools the head of a request has no end
            ws="none",
            access_log=False,
            server_header=False,
            proxy_headers=False,  # what a client says of itself is not believed
            limit_concurrency=CONNECTIONS_MAX,
            timeout_graceful_shutdown=5,
            **options,
        )
        super().__init__(config)
        # by connection: its last request, and since when it is seen
        self._idle: dict[Any, tuple[Any, float]] = {}

    async def on_tick(self, counter: int) -> bool:
        """What uvicorn calls ten times a second."""
        if counter % LOOK_TICKS == 0:
            self._hang_up(time.monotonic())
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """What uvicorn calls at the end: it leaves open who came last, and who does not read what is still to be written."""
        await super().shutdown(sockets)
        for one in [*self.server_state.connections]:
            one.transport.abort()
        await asyncio.sleep(0)  # a transport closes its socket in the next turn of the loop

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
