"""What comes out of a sandbox: bytes under names, read member by member from a tar stream.

Nothing is ever extracted or opened in place, and modes and owners are dropped. The reader is our
own and small, because what it reads is hostile: tarfile has been led into endless loops and out
of its directory again and again. It knows plain members, and the two ways of long names (pax
``path``, GNU ``L``); everything else is refused by name.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

_BLOCK = 512
_PLAIN = frozenset(b"0\0")
_KINDS = {
    ord("1"): "a hard link",
    ord("2"): "a symbolic link",
    ord("3"): "a device",
    ord("4"): "a device",
    ord("6"): "a fifo",
}
_DIRECTORY, _PAX, _PAX_GLOBAL, _LONG_NAME = ord("5"), ord("x"), ord("g"), ord("L")
_HEADER_TEXT_MAX = 64 << 10


@dataclass(frozen=True, slots=True)
class FileLimits:
    """How much a sandbox may hand out."""

    files: int = 2_000
    total_bytes: int = 64 << 20
    depth: int = 24
    path_bytes: int = 1_024
    refused: int = 100  # sentences kept; the rest is counted


class PlainFiles(NamedTuple):
    """Files by POSIX path, and one sentence for each thing that was left out."""

    files: dict[str, bytes]
    refused: list[str]


class _Member(NamedTuple):
    name: bytes
    kind: int
    data: bytes


class _Broken(Exception):
    """The stream is no archive from here on."""


def read_tar(data: bytes, limits: FileLimits | None = None) -> PlainFiles:
    """The regular files in an archive; never raises, whatever the bytes are."""
    limits = limits or FileLimits()
    files: dict[str, bytes] = {}
    refused: list[str] = []
    directories: set[str] = set()
    total = 0
    try:
        for member in _members(data):
            if member.kind == _DIRECTORY:
                continue
            name = member.name.decode("utf-8", "replace").removeprefix("./")
            fault = _fault(member, name, limits)
            if not fault and (name in files or name in directories):
                fault = "the name is there twice"
            if not fault and any(parent in files for parent in _parents(name)):
                fault = "a file stands where its directory should be"
            if not fault and (len(files) >= limits.files or total + len(member.data) > limits.total_bytes):
                fault = f"more than {limits.files} files or {limits.total_bytes} bytes"
            if fault:
                refused.append(f"{name[:200]!a}: {fault}")
                continue
            files[name] = member.data
            directories.update(_parents(name))
            total += len(member.data)
    except _Broken as error:
        refused.append(f"the archive breaks off: {error}")
    if len(refused) > limits.refused:
        refused[limits.refused :] = [f"and {len(refused) - limits.refused} more"]
    return PlainFiles(files, refused)


def write_tar(files: Mapping[str, bytes]) -> bytes:
    """An archive of plain files, the same bytes for the same files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(files):
            member = tarfile.TarInfo(name)
            member.size = len(files[name])
            archive.addfile(member, io.BytesIO(files[name]))
    return buffer.getvalue()


def _fault(member: _Member, name: str, limits: FileLimits) -> str:
    """Why this member is not taken; "" when it is."""
    if member.kind not in _PLAIN:
        return f"{_KINDS.get(member.kind, 'an unknown kind of entry')} and no plain file"
    if len(member.name) > limits.path_bytes:
        return f"the name is longer than {limits.path_bytes} bytes"
    parts = name.split("/")
    if len(parts) > limits.depth:
        return f"deeper than {limits.depth} directories"
    if "\ufffd" in name or not name.isprintable():
        return "the name has unprintable characters"
    if any(part in ("", ".", "..") for part in parts):
        return "the name leaves the workspace"
    if any(part.lower() == ".git" for part in parts):
        return "a .git directory is never taken over"
    return ""


def _parents(name: str) -> Iterator[str]:
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _members(data: bytes) -> Iterator[_Member]:
    position = 0
    long_name: bytes | None = None
    while position + _BLOCK <= len(data):
        header = data[position : position + _BLOCK]
        if not header.strip(b"\0"):
            return
        kind, size = header[156], _size(header)
        start = position + _BLOCK
        if start + size > len(data):
            raise _Broken("a member is longer than the archive")
        body = data[start : start + size]
        position = start + -(-size // _BLOCK) * _BLOCK
        if kind in (_PAX, _PAX_GLOBAL, _LONG_NAME):
            if size > _HEADER_TEXT_MAX:
                raise _Broken("a name longer than 64 KiB")
            if kind == _PAX:
                long_name = _pax_path(body) or long_name
            elif kind == _LONG_NAME:
                long_name = body.rstrip(b"\0")
            continue
        yield _Member(_name(header) if long_name is None else long_name, kind, body)
        long_name = None
    if position < len(data):
        raise _Broken("it does not end on a block")


def _size(header: bytes) -> int:
    field = header[124:136].strip(b" \0")
    if not field.isdigit():  # also base-256 sizes: no member that large is ours
        raise _Broken("a member's size is no octal number")
    try:
        return int(field, 8)
    except ValueError:
        raise _Broken("a member's size is no octal number") from None


def _name(header: bytes) -> bytes:
    name = header[:100].partition(b"\0")[0]
    prefix = header[345:500].partition(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def _pax_path(body: bytes) -> bytes | None:
    """The ``path`` record of an extended header; a changed ``size`` is not followed."""
    path = None
    while body:
        number, _, rest = body.partition(b" ")
        if (
            not number.isdigit()
            or len(number) > 6
            or int(number) <= len(number) + 1
            or int(number) > len(body)
        ):
            raise _Broken("an extended header is malformed")
        record = rest[: int(number) - len(number) - 1].rstrip(b"\n")
        key, _, value = record.partition(b"=")
        if key == b"size":
            raise _Broken("an extended header changes a size")
        if key == b"path":
            path = value
        body = body[int(number) :]
    return path
