"""Frames on the one socket between the kernel and a sandbox, the same code on both sides.

A frame is a JSON header and any number of binary blobs::

    u32 header length | header (UTF-8 JSON object) | blob 0 | blob 1 | ...

The header's key ``blobs`` lists the blobs' lengths in bytes; it is added and removed here. The
kernel reads with limits, because what is at the other end may be hostile: an oversized or
malformed frame is a ``FrameError``, and the connection is not usable after it.

This module is readable inside the sandbox, so it imports nothing but the standard library.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from dataclasses import dataclass, field
from typing import Any

HEADER_MAX = 8 << 20
LEVELS_MAX = 200  # of nesting: whoever handles a value later may do so by recursion, from a deeper stack
_LEVELS_AROUND = 20  # of the header itself
_LENGTH = struct.Struct(">I")


class FrameError(Exception):
    """What arrived is not a frame, or is larger than was agreed."""


class Closed(Exception):
    """The other end is gone."""


class Late(Exception):
    """The deadline passed before a whole frame had arrived."""


@dataclass(frozen=True, slots=True)
class Frame:
    """``head`` is the JSON object, ``blobs`` the binary parts that came with it."""

    head: dict[str, Any]
    blobs: tuple[bytes, ...] = field(default=())


def is_deeper(value: Any, levels: int, text: bytes) -> bool:
    """Whether the JSON value, which ``text`` spells, is nested deeper; found without recursion."""
    if text.count(b"[") + text.count(b"{") <= levels:
        return False
    level = [value]
    while level and levels >= 0:
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list | tuple)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        levels -= 1
    return bool(level)


class Channel:
    """One end of the socket. One reader and one writer at a time, which may be two threads."""

    def __init__(self, sock: socket.socket, *, blob_max: int = 256 << 20) -> None:
        self._sock = sock
        self._blob_max = blob_max

    def fileno(self) -> int:
        """The descriptor, for ``select``."""
        return self._sock.fileno()

    def send(
        self, head: dict[str, Any], blobs: tuple[bytes, ...] = (), *, deadline: float | None = None
    ) -> None:
        """Send one frame; raises Closed or Late (``deadline`` is on the ``time.monotonic`` clock)."""
        data = json.dumps({**head, "blobs": [len(blob) for blob in blobs]} if blobs else head).encode()
        if len(data) > HEADER_MAX:
            raise FrameError(f"header of {len(data)} bytes, at most {HEADER_MAX} are allowed")
        try:
            self._wait(deadline)
            self._sock.sendall(_LENGTH.pack(len(data)) + data)
            for blob in filter(None, blobs):  # sending nothing fails when the peer has done its job and left
                self._sock.sendall(blob)
        except TimeoutError:
            raise Late from None
        except OSError as error:
            raise Closed(str(error)) from None

    def receive(self, *, deadline: float | None = None) -> Frame:
        """The next frame; raises Closed, Late or FrameError."""
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size, deadline))
        if length > HEADER_MAX:
            raise FrameError(f"header of {length} bytes, at most {HEADER_MAX} are allowed")
        data = self._read(length, deadline)
        try:
            head = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise FrameError(f"the header is not JSON: {error}") from None
        if not isinstance(head, dict):
            raise FrameError("the header is not a JSON object")
        if is_deeper(head, LEVELS_MAX + _LEVELS_AROUND, data):
            raise FrameError(f"the header is nested more than {LEVELS_MAX} levels deep")
        sizes = head.pop("blobs", [])
        if not isinstance(sizes, list) or not all(type(size) is int and size >= 0 for size in sizes):
            raise FrameError("'blobs' is not a list of lengths")
        if sum(sizes) > self._blob_max:
            raise FrameError(f"blobs of {sum(sizes)} bytes, at most {self._blob_max} are allowed")
        return Frame(head, tuple(self._read(size, deadline) for size in sizes))

    def close(self) -> None:
        """Close this end; idempotent."""
        self._sock.close()

    def _wait(self, deadline: float | None) -> None:
        if deadline is None:
            self._sock.settimeout(None)
            return
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)

    def _read(self, size: int, deadline: float | None) -> bytes:
        data = bytearray(size)
        view = memoryview(data)
        got = 0
        while got < size:
            try:
                self._wait(deadline)
                count = self._sock.recv_into(view[got:])
            except TimeoutError:
                if deadline is None or time.monotonic() < deadline:
                    continue  # it was the sender's patience: a socket has one time-out for both ways
                raise Late from None
            except OSError as error:
                raise Closed(str(error)) from None
            if count == 0:
                raise Closed("end of stream")
            got += count
        return bytes(data)
