"""As much of HTTP/1.1 as a model's client needs, on asyncio streams."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from agentos.domain import Json

HEAD_LIMIT = 64 * 1024
BODY_LIMIT = 64 * 1024 * 1024
SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    b"Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
)


class BadRequest(Exception):
    """The bytes are no request that this server reads; the connection is to be closed."""


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """``headers`` has lower-case names; the last of equal ones counts."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> ReceivedRequest | None:
    """The next request of a connection; None when the client has left between requests.

    Raises BadRequest, and ConnectionError or IncompleteReadError when the client leaves in one.
    """
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    except asyncio.LimitOverrunError:
        raise BadRequest("the head is too long") from None
    first, *lines = head.decode("latin-1").split("\r\n")
    try:
        method, path, _ = first.split(" ")
        pairs = [line.split(":", 1) for line in lines if line]
        headers = {name.strip().lower(): value.strip() for name, value in pairs}
        length = int(headers.get("content-length", "0"))
    except ValueError:
        raise BadRequest(f"not a request: {first[:80]!r}") from None
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return ReceivedRequest(method, path, headers, await _chunked(reader))
    if not 0 <= length <= BODY_LIMIT:
        raise BadRequest("the body is too long")
    return ReceivedRequest(method, path, headers, await reader.readexactly(length))


async def _chunked(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while True:
        line = await reader.readline()
        try:
            size = int(line.split(b";")[0], 16)
        except ValueError:
            raise BadRequest("a chunk has no size") from None
        if size < 0 or len(body) + size > BODY_LIMIT:
            raise BadRequest("the body is too long")
        if size == 0:
            while (await reader.readline()).strip():  # trailers
                pass
            return bytes(body)
        body += await reader.readexactly(size)
        await reader.readexactly(2)


def response(
    status: int, body: bytes, kind: str = "application/json", headers: Mapping[str, str] | None = None
) -> bytes:
    """A whole response as bytes."""
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        *(f"{name}: {value}" for name, value in (headers or {}).items()),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def failure(
    status: int, kind: str, code: str | None, message: str, headers: Mapping[str, str] | None = None
) -> bytes:
    """A response with OpenAI's error object."""
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return response(status, json.dumps(body).encode(), headers=headers)


def event(data: Json) -> bytes:
    """A server-sent event as one HTTP chunk; text goes as it is, anything else as JSON."""
    text = data if isinstance(data, str) else json.dumps(data)
    frame = f"data: {text}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(frame), frame)


def reset(writer: asyncio.StreamWriter) -> None:
    """Drop the connection with RST, as a crashed server or a middlebox does; what was sent arrives."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
