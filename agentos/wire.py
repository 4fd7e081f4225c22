"""Frames on the two pipes between the kernel and a sandbox, the same code on both sides.

A frame is a JSON header and any number of binary blobs::

    u32 header length | header (UTF-8 JSON object) | blob 0 | blob 1 | ...

The header's key ``blobs`` lists the blobs' lengths in bytes; it is added and removed here. The
kernel reads with limits, because what is at the other end may be hostile: an oversized or
malformed frame is a ``FrameError``, and the connection is not usable after it.

The kernel's own ends are pipes, never sockets: what is sent along with a socket's bytes (descriptors)
would be let go of in the kernel process, which a socket that lingers at its end holds up for ever.

This module is readable inside the sandbox, so it imports nothing but the standard library.
"""

from __future__ import annotations

import json
import math
import os
import select
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

HEADER_MAX = 8 << 20
WEIGHT_MAX = 64 << 20  # of a header once it is parsed, see ``weigh``
BLOBS_MAX = 100_000
LEVELS_MAX = 200  # of nesting: whoever handles a value later may do so by recursion, from a deeper stack
_LEVELS_AROUND = 20  # of the header itself
_LENGTH = struct.Struct(">I")
_AT_ONCE = 128  # parts of a frame that one call writes; most systems take up to 1024
_LOOK_S = 1.0  # how long a wait goes on after another thread has closed the channel
_LIGHT = 256 << 10
# bytes of memory that a list, a dictionary, one more item of either, and a string cost beside their text
_LIST, _DICT, _ITEM, _STRING = 96, 304, 40, 56


class FrameError(Exception):
    """What arrived is not a frame, or is larger than was agreed."""


class WireClosed(Exception):
    """The other end is gone."""


class WireLate(Exception):
    """The deadline passed before a whole frame had arrived."""


@dataclass(frozen=True, slots=True)
class Frame:
    """``head`` is the JSON object, ``blobs`` the binary parts that came with it.

    ``size`` is the header's length, ``weight`` about what it holds of memory, both in bytes.
    """

    head: dict[str, Any]
    blobs: tuple[bytes, ...] = field(default=())
    size: int = 0
    weight: int = 0


def weigh(text: bytes) -> int:
    """Bytes of memory that the JSON text takes once parsed, or a little more; found without parsing."""
    if (weight := _weight(text)) <= _LIGHT:  # signs within strings were counted too
        return weight
    bare = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    strings = bare.count(b'"') // 2 * _STRING
    if strings > WEIGHT_MAX:
        return strings
    return len(text) + strings + _weight(b"".join(bare.split(b'"')[::2]))


def _weight(text: bytes) -> int:
    return len(text) + _LIST * text.count(b"[") + _DICT * text.count(b"{") + _ITEM * text.count(b",")


def hangs_up(descriptor: int, within_s: float) -> bool:
    """Whether nobody holds the other end any more; what still comes from there is thrown away."""
    until = time.monotonic() + within_s
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while poll.poll(max(0.0, until - time.monotonic()) * 1000):
        if not os.read(descriptor, 1 << 16):
            return True
    return False


def shorten(text: str, most: int) -> str:
    """The head of a long text, and how much it was."""
    return text if len(text) <= most else f"{text[: most - 40]}… ({len(text)} characters)"


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


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text[:40])


# Made once: json.loads makes one each time.
_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
_ENCODER = json.JSONEncoder(allow_nan=False)


class Channel:
    """One end: a socket, or the pipe to read and the pipe to write. One reader and one writer at a time,
    which may be two threads; any other may close it.
    """

    def __init__(
        self, end: socket.socket | tuple[int, int], *, blob_max: int = 256 << 20, blobs_max: int = BLOBS_MAX
    ) -> None:
        self._end = end
        reader, writer = end if isinstance(end, tuple) else (end.fileno(), end.fileno())
        for descriptor in (reader, writer):
            os.set_blocking(descriptor, False)
        self._reading = _Way(reader, select.POLLIN)
        self._writing = _Way(writer, select.POLLOUT)
        self.bound(blob_max, blobs_max)

    def bound(self, blob_max: int, blobs_max: int) -> None:
        """Take no more bytes and no more blobs in one frame than these."""
        self._blob_max, self._blobs_max = blob_max, blobs_max

    def fileno(self) -> int:
        """The descriptor that is read, for ``select``."""
        return self._reading.descriptor

    def descriptors(self) -> tuple[int, int]:
        """Those that are read and written, for who carries bytes on rather than frames: to be duplicated."""
        return self._reading.descriptor, self._writing.descriptor

    def send(
        self, head: dict[str, Any], blobs: tuple[bytes, ...] = (), *, deadline: float | None = None
    ) -> None:
        """Send one frame; raises Closed or Late (``deadline`` is on the ``time.monotonic`` clock), and FrameError for one
        that the other end would not take: of that nothing is sent."""
        try:
            whole = {**head, "blobs": [len(blob) for blob in blobs]} if blobs else head
            data = _ENCODER.encode(whole).encode()
        except (ValueError, RecursionError) as error:
            raise FrameError(f"the header is not JSON: {error}") from None
        if is_deeper(head, LEVELS_MAX + _LEVELS_AROUND, data):
            raise FrameError(f"the header is nested more than {LEVELS_MAX} levels deep")
        if len(data) > HEADER_MAX:
            raise FrameError(f"header of {len(data)} bytes, at most {HEADER_MAX} are allowed")
        parts = deque(memoryview(part) for part in (_LENGTH.pack(len(data)) + data, *blobs))
        while parts:
            some = list(islice(parts, _AT_ONCE))
            sent = self._writing.move(lambda to: os.writev(to, some), deadline)  # noqa: B023
            while parts and sent >= len(parts[0]):
                sent -= len(parts.popleft())
            if sent:
                parts[0] = parts[0][sent:]

    def receive(self, *, deadline: float | None = None) -> Frame:
        """The next frame; raises Closed, Late or FrameError."""
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size, deadline))
        if length > HEADER_MAX:
            raise FrameError(f"header of {length} bytes, at most {HEADER_MAX} are allowed")
        data = self._read(length, deadline)
        if (weight := weigh(data)) > WEIGHT_MAX:
            raise FrameError("the header holds more values than are allowed")
        try:
            head = _DECODER.decode(data.decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError) as error:
            raise FrameError(f"the header is not JSON: {error}") from None
        if not isinstance(head, dict):
            raise FrameError("the header is not a JSON object")
        if is_deeper(head, LEVELS_MAX + _LEVELS_AROUND, data):
            raise FrameError(f"the header is nested more than {LEVELS_MAX} levels deep")
        sizes = head.pop("blobs", [])
        if not isinstance(sizes, list) or not all(type(size) is int and size >= 0 for size in sizes):
            raise FrameError("'blobs' is not a list of lengths")
        if len(sizes) > self._blobs_max:
            raise FrameError(f"{len(sizes)} blobs, at most {self._blobs_max} are allowed")
        if sum(sizes) > self._blob_max:
            raise FrameError(f"blobs of {sum(sizes)} bytes, at most {self._blob_max} are allowed")
        return Frame(head, tuple(self._read(size, deadline) for size in sizes), length, weight)

    def close(self) -> None:
        """Close this end; idempotent. Whoever waits on it gets ``WireClosed``."""
        for way in (self._reading, self._writing):
            way.close()
        with self._reading.lock, self._writing.lock:
            end, self._end = self._end, (-1, -1)
            if not isinstance(end, tuple):
                end.close()
            elif end != (-1, -1):
                for descriptor in set(end):
                    os.close(descriptor)

    def _read(self, size: int, deadline: float | None) -> bytes:
        data = bytearray(size)
        view = memoryview(data)
        got = 0
        while got < size:
            left = view[got:]
            count = self._reading.move(lambda source: os.readv(source, [left]), deadline)  # noqa: B023
            if count == 0:
                raise WireClosed("end of stream")
            got += count
        return bytes(data)


class _Way:
    """One direction. Its lock is held for a look and a transfer only, so that ``close`` gets it soon."""

    def __init__(self, descriptor: int, event: int) -> None:
        self.descriptor = descriptor
        self.lock = threading.Lock()
        self._closed = False
        self._poll = select.poll()
        self._poll.register(descriptor, event)

    def move(self, transfer: Callable[[int], int], deadline: float | None) -> int:
        """Do it when it can be done; raises Closed or Late."""
        while True:
            left = _LOOK_S if deadline is None else min(_LOOK_S, deadline - time.monotonic())
            if left <= 0:
                raise WireLate
            with self.lock:
                if self._closed:
                    raise WireClosed("it was closed here")
                try:
                    return transfer(self.descriptor)
                except BlockingIOError:
                    self._poll.poll(left * 1000)
                except OSError as error:
                    raise WireClosed(str(error)) from None

    def close(self) -> None:
        """Whoever waits is told soon; the descriptor stays for the owner to close."""
        self._closed = True
