"""What a box can take of what the kernel keeps for the whole machine. Each returns how much it got."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import time
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)


def tcp_bytes(seconds: float, processes: int = 4) -> int:
    """Bytes that lie in TCP sockets which nobody reads, as the namespace counts its pages."""
    children = []
    for _ in range(processes):
        child = os.fork()
        if child == 0:
            _queue(seconds)
        children.append(child)
    time.sleep(seconds + 0.2)
    told = Path("/proc/net/sockstat").read_text()
    pages = int(next(line for line in told.splitlines() if line.startswith("TCP:")).split()[-1])
    for child in children:
        os.kill(child, 9)
        os.waitpid(child, 0)
    return pages * os.sysconf("SC_PAGESIZE")


def _queue(seconds: float) -> None:
    held = []
    until = time.monotonic() + seconds
    with contextlib.suppress(OSError):
        listening = socket.create_server(("127.0.0.1", 0), backlog=512)
        while time.monotonic() < until:
            one = socket.create_connection(listening.getsockname())
            held += [one, listening.accept()[0]]
            for sock in held[-2:]:
                for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                    with contextlib.suppress(OSError):
                        sock.setsockopt(socket.SOL_SOCKET, option, 64 << 20)
                sock.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    while True:
                        sock.send(bytes(1 << 16))
    time.sleep(600)


def timers(most: int) -> int:
    """Timers of this process."""
    made = 0
    place = ctypes.c_void_p()
    while made < most and LIBC.timer_create(1, None, ctypes.byref(place)) == 0:
        made += 1
    return made
