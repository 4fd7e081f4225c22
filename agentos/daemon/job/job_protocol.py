"""One job in one box: send it, hold every frame that comes back against its type, say how it ended.

What is at the other end may be hostile, so nothing here trusts it: each frame is validated,
counted and measured, and there is one deadline for the whole exchange.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ValidationError

from agentos.domain import Json
from agentos.errors import BoxDied, HostLost
from agentos.messages import FaultFrame
from agentos.ports import Box, BoxUsage
from agentos.wire import FrameError, WireClosed, WireLate

# How many times longer a value may be as the kernel writes it than it came: 1e15 as 1000000000000000.0, é as \\u00e9.
_GROWS = 8


class Exchange:
    """Talks to the worker in ``box``. ``BoxDied`` from any method means that the box is over, HostLost that its host is."""

    def __init__(self, box: Box, wall_s: float, bytes_max: int | None = None) -> None:
        self.weight = 0  # of the last message, in memory
        self._size = 0  # of the same, as it came
        self._left = bytes_max  # of all headers; None is no limit
        self._box = box
        self._deadline = time.monotonic() + wall_s

    def send(self, message: BaseModel, blobs: Sequence[bytes] = ()) -> None:
        """Send one frame."""
        try:
            self._box.channel.send(message.model_dump(), tuple(blobs), deadline=self._deadline)
        except WireLate:
            raise self._died("wall") from None
        except WireClosed as error:
            raise self._died("", str(error)) from None
        except FrameError as error:
            raise BoxDied("output", f"the job does not fit into a frame: {error}") from None

    def reply(self, message: BaseModel, patience_s: float) -> None:
        """Send an answer from another thread than the one that receives; raises Closed, Late, FrameError.

        The run's own deadline may pass meanwhile: whoever receives is told of it.
        """
        self._box.channel.send(message.model_dump(), deadline=time.monotonic() + patience_s)

    def receive(self, kinds: Mapping[str, type[BaseModel]]) -> tuple[BaseModel, tuple[bytes, ...]]:
        """The next frame: one of ``kinds`` by its ``type``, or a FaultFrame, which ends the job."""
        try:
            frame = self._box.channel.receive(deadline=self._deadline)
        except WireLate:
            raise self._died("wall") from None
        except WireClosed as error:
            raise self._died("", str(error)) from None
        except FrameError as error:
            raise self._died("protocol", str(error)) from None
        self.weight, self._size = frame.weight, frame.size
        if self._left is not None:
            self._left -= frame.size
            if self._left < 0:
                raise self._died("output", "all its messages together")
        name = frame.head.get("type")
        kind = FaultFrame if name == "fault" else kinds.get(str(name))
        if kind is None:
            raise self._died("protocol", f"a frame of type {name!r:.60} was not expected")
        try:
            return kind.model_validate(frame.head), frame.blobs
        except ValidationError as error:
            found = error.errors()[0]
            place = ".".join(str(part) for part in found["loc"])
            raise self._died("protocol", f"a '{name}' frame breaks its rules at '{place}'") from None

    def extend(self, wall_s: float) -> None:
        """Give the next message this long: for boxes that serve many requests."""
        self._deadline = time.monotonic() + wall_s

    def measure(self, value: Json, limit: int, what: str) -> None:
        """Refuse a value of the last message that is larger than agreed."""
        if self._size * _GROWS <= limit:
            return
        try:
            size = len(json.dumps(value, allow_nan=False))
        except (ValueError, RecursionError):
            raise self._died("protocol", f"{what} is not JSON") from None
        if size > limit:
            raise self._died("output", f"{what} has {size:,} bytes, {limit:,} are allowed")

    def broken(self, detail: str) -> BoxDied | HostLost:
        """End the box, because what it sent may not be: the exception to raise."""
        return self._died("protocol", detail)

    def _died(self, cause: str, detail: str = "") -> BoxDied | HostLost:
        """End the box, and find the cause where only its usage knows. One of a lost host has none."""
        late = time.monotonic() >= self._deadline
        usage = self._box.close()
        if usage.lost and not cause:
            return HostLost(usage.lost)
        return BoxDied(cause or _cause(usage, late=late), detail)


def _cause(usage: BoxUsage, *, late: bool) -> str:
    if usage.oom:
        return "memory"
    return "wall" if late else "gone"
