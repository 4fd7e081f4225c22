"""What every HTTP reply of a provider is held to: its size, what it makes of parsing it, and where it may redirect.

litellm and openai join all that comes, until the memory is full, make an object of each one in it, and follow
wherever they are sent; and litellm makes clients of its own for most providers. What all of them read with, httpx,
is the one place for a bound.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TypeAlias

import httpx

REPLY_MAX = 32 << 20
# litellm takes some 0.1 ms for each on the one loop that all calls share; what was 50,000 held up every run for a minute.
OBJECTS_MAX = 5_000
TOKENS_MAX = 1 << 15  # with their probabilities, of which a reply may tell for each
_PACKED_MAX = 128  # bytes that are unpacked at once: gzip makes a thousand of one, zstd 128 KiB of four
_PORTS = {"http": 80, "https": 443}


class ReplyTooLong(Exception):
    """A provider sent more than it may; the text goes on after "the reply"."""


_SIZE = f"has more than {REPLY_MAX:,} bytes"

_Read: TypeAlias = Callable[..., Iterator[bytes]]
_AsyncRead: TypeAlias = Callable[..., AsyncIterator[bytes]]


def _bounded(read: _Read) -> _Read:
    def iter_bytes(response: httpx.Response, chunk_size: int | None = None) -> Iterator[bytes]:
        size = 0
        for chunk in read(response, chunk_size):
            size += len(chunk)
            if size > REPLY_MAX:
                response.close()
                raise ReplyTooLong(_SIZE)
            yield chunk

    return iter_bytes


def _bounded_async(read: _AsyncRead) -> _AsyncRead:
    async def aiter_bytes(response: httpx.Response, chunk_size: int | None = None) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in read(response, chunk_size):
            size += len(chunk)
            if size > REPLY_MAX:
                await response.aclose()
                raise ReplyTooLong(_SIZE)
            yield chunk

    return aiter_bytes


def _sliced(read: _Read) -> _Read:
    def iter_raw(response: httpx.Response, chunk_size: int | None = None) -> Iterator[bytes]:
        for chunk in read(response, chunk_size):
            yield from _slices(response, chunk)

    return iter_raw


def _sliced_async(read: _AsyncRead) -> _AsyncRead:
    async def aiter_raw(response: httpx.Response, chunk_size: int | None = None) -> AsyncIterator[bytes]:
        async for chunk in read(response, chunk_size):
            for part in _slices(response, chunk):
                yield part

    return aiter_raw


def _slices(response: httpx.Response, chunk: bytes) -> Iterator[bytes]:
    """Of packed content little at a time: what it unpacks to is only counted when it is in memory.

    Packed twice, even a little is too much.
    """
    encoding = response.headers.get("content-encoding", "")
    if "," in encoding:
        raise ReplyTooLong("is packed twice")
    size = _PACKED_MAX if encoding else max(1, len(chunk))
    return (chunk[at : at + size] for at in range(0, len(chunk), size))


def _counted(parse: Callable[..., Any]) -> Callable[..., Any]:
    def json(response: httpx.Response, **more: Any) -> Any:
        value = parse(response, **more)
        objects, tokens = _sizes(value)
        if objects > OBJECTS_MAX or tokens > TOKENS_MAX:
            raise ReplyTooLong(f"has more than {OBJECTS_MAX:,} parts, or {TOKENS_MAX:,} tokens one by one")
        return value

    return json


def _sizes(value: Any) -> tuple[int, int]:
    """How many objects, and how many tokens with their probabilities."""
    objects = tokens = 0
    left = [(value, False)]
    while left:
        one, told = left.pop()
        if isinstance(one, list):
            left += [(item, told) for item in one if isinstance(item, dict | list)]
        elif isinstance(one, dict):
            objects, tokens = objects + (not told), tokens + told
            left += [
                (item, told or key == "logprobs")
                for key, item in one.items()
                if isinstance(item, dict | list)
            ]
    return objects, tokens


def _goes_elsewhere(response: httpx.Response) -> bool:
    """Whether it redirects to another server than the one that was asked; over TLS that of the same name is the same.

    A provider could else have anything on this machine, or behind its firewall, asked from here, and given the key.
    """
    asked = response.request.url
    to = asked.join(response.headers["location"])
    if to.host != asked.host:
        return True
    secured = (asked.scheme, to.scheme) == ("http", "https") and _port(asked) == 80 and _port(to) == 443
    return not secured and (to.scheme, _port(to)) != (asked.scheme, _port(asked))


def _port(url: httpx.URL) -> int | None:
    return url.port or _PORTS.get(url.scheme)


_has_redirect = httpx.Response.has_redirect_location.fget  # type: ignore[attr-defined]


def _has_redirect_location(response: httpx.Response) -> bool:
    """Where it is none, the reply is an error like others, by its status."""
    try:
        return bool(_has_redirect(response)) and not _goes_elsewhere(response)
    except httpx.InvalidURL:
        return False


httpx.Response.has_redirect_location = property(_has_redirect_location)  # type: ignore[assignment, method-assign]
httpx.Response.json = _counted(httpx.Response.json)  # type: ignore[method-assign]
httpx.Response.iter_raw = _sliced(httpx.Response.iter_raw)  # type: ignore[method-assign]
httpx.Response.aiter_raw = _sliced_async(httpx.Response.aiter_raw)  # type: ignore[method-assign]
httpx.Response.iter_bytes = _bounded(httpx.Response.iter_bytes)  # type: ignore[method-assign]
httpx.Response.aiter_bytes = _bounded_async(httpx.Response.aiter_bytes)  # type: ignore[method-assign]
