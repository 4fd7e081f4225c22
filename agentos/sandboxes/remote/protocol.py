"""What a worker and the control process say to each other, and how the bytes of a box get over.

The worker dials, always. One connection is its own: JSON messages in text frames, both ways. For each box that it is
asked for it dials another, whose binary frames are the bytes of the box's channel and nothing else: so one box that
floods holds up no other, and what a box sends is held against its form where it always is, in ``agentos/wire.py``.

Neither end trusts the other. A message is small, of a known form, and there are only so many of them a second.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed

from agentos.sandboxes.box import read_some, write_all

M = TypeVar("M")

VERSION = 1  # of this page; another one is refused
JOIN, BOX = f"/workers/{VERSION}", f"/boxes/{VERSION}"
KEY_HEADER = "X-Agentos-Box"
MESSAGE_MAX = 16 << 10  # bytes of a JSON message
BEAT_S = 2.0  # between two words of either end
MESSAGES_MAX = 200  # of one end, a second, and for each box of the worker:
MESSAGES_OF_A_BOX = 4  # to open and to end it is two, and all may begin or end at once
REFUSED, LATE = 4000, 4001  # codes of a close: this worker is not wanted, is lost

Short = Annotated[str, Field(max_length=200)]
Key = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{43}$")]


class PeerError(Exception):
    """The other end sent what may not be."""


class _Message(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class Hello(_Message):
    """The worker's first word: what it has. ``image`` is what it says of itself, as ``Sandbox.image``."""

    type: Literal["hello"] = "hello"
    program: Short
    sandbox: Short
    level: Short
    image: Short
    machine: Short = ""  # the architecture, as uname says it
    host: Short = ""
    cores: int = Field(1, ge=1, le=4096)
    memory_mb: int = Field(1024, ge=1, le=1 << 30)
    boxes: int = Field(1, ge=1, le=1024)
    labels: tuple[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.=_-]{0,62}$")], ...] = Field(
        (), max_length=20
    )


class Beat(_Message):
    """It is there; ``load`` is the host's, of one minute."""

    type: Literal["beat"] = "beat"
    load: Annotated[float, Field(ge=0, le=1e6)] = 0.0
    free_mb: Annotated[int, Field(ge=0, le=1 << 30)] = 0


class WireLimits(_Message):
    """``domain.Limits`` on the way."""

    steps: int
    wall_s: float
    memory_mb: int
    output_bytes: int
    workspace_mb: int
    processes: int


class OpenBox(_Message):
    """Open a box, and dial with this key."""

    type: Literal["open"] = "open"
    key: Key
    limits: WireLimits
    light: bool
    run: Short = ""


class BoxRefused(_Message):
    """It could not be opened."""

    type: Literal["refused"] = "refused"
    key: Key
    why: str = Field(max_length=2000)


class CloseBox(_Message):
    """End the box; ``BoxEnded`` follows, also where there is none."""

    type: Literal["close"] = "close"
    key: Key


class BoxEnded(_Message):
    """It is gone, and used this. ``cut``: because its connection broke.

    The bounds are above what any box can use, and low enough that sums of them stay numbers.
    """

    type: Literal["ended"] = "ended"
    key: Key
    wall_s: float = Field(0.0, ge=0, le=1e9)
    cpu_s: float = Field(0.0, ge=0, le=1e9)
    memory_peak_mb: float = Field(0.0, ge=0, le=1 << 30)
    oom: bool = False
    cut: bool = False


FROM_WORKER: TypeAdapter[Hello | Beat | BoxRefused | BoxEnded] = TypeAdapter(
    Annotated[Hello | Beat | BoxRefused | BoxEnded, Field(discriminator="type")]
)
FROM_CONTROL: TypeAdapter[Beat | OpenBox | CloseBox] = TypeAdapter(
    Annotated[Beat | OpenBox | CloseBox, Field(discriminator="type")]
)


class Allowance:
    """How many messages a second, for a worker of so many boxes; a second's worth may come at once."""

    def __init__(self, boxes: int = 0) -> None:
        self.at = time.monotonic()
        self.grow(boxes)

    def grow(self, boxes: int) -> None:
        """From now on for so many boxes."""
        self.most = self.left = float(MESSAGES_MAX + boxes * MESSAGES_OF_A_BOX)

    def take(self) -> None:
        """One came. Raises PeerError."""
        now = time.monotonic()
        self.left, self.at = min(self.most, self.left + (now - self.at) * self.most) - 1, now
        if self.left < 0:
            raise PeerError(f"more than {self.most:g} messages in a second")


async def messages(connection: Connection, form: TypeAdapter[M], allowance: Allowance) -> AsyncIterator[M]:
    """Each message of the other end, until the connection is closed. Raises PeerError."""
    try:
        async for text in connection:
            allowance.take()
            if not isinstance(text, str):
                raise PeerError("bytes where a message was expected")
            if len(text) > MESSAGE_MAX:
                raise PeerError(f"a message of {len(text)} characters")
            try:
                yield form.validate_json(text)
            except ValidationError as error:
                raise PeerError(f"a message breaks its rules: {error.errors()[0]['msg']}"[:200]) from None
    except ConnectionClosed:
        return


# --- The bytes of a box -------------------------------------------------------------------------


async def bytes_out(descriptor: int, connection: Connection) -> None:
    """What comes out of the descriptor, into the connection, to its end."""
    while data := await read_some(descriptor):
        await connection.send(data)


async def bytes_in(connection: Connection, descriptor: int) -> None:
    """What comes over the connection, into the descriptor, until it is closed; what nobody reads is dropped.

    Raises PeerError for what is no bytes.
    """
    gone = False
    try:
        async for data in connection:
            if not isinstance(data, bytes):
                raise PeerError("a message where bytes were expected")
            gone = gone or not await write_all(descriptor, data)
    except ConnectionClosed:
        return
