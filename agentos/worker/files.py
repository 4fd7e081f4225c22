"""Files into a fresh directory, and out of one that evolvable code has written to.

Going out, everything is looked at through descriptors that never follow a link, and only plain
files leave; what is refused is said in one sentence each.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

FILES_MAX = 2_000
DEPTH_MAX = 24
PATH_MAX = 1_024  # bytes
REFUSED_MAX = 20  # sentences; the rest is counted
_TOTAL_MAX = 200 << 20  # below what a frame of wire.py may carry


@dataclass(frozen=True, slots=True)
class CollectedFiles:
    """A tar of plain files, their names, and one sentence for each thing left behind."""

    tar: bytes
    names: tuple[str, ...]
    refused: tuple[str, ...]


def write(root: Path, names: Sequence[str], contents: Sequence[bytes]) -> None:
    """Write each content under its relative name, making directories. Raises OSError."""
    for name, content in zip(names, contents, strict=True):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def unpack(root: Path, tar: bytes) -> None:
    """Write the plain members of a tar; anything else, and names that leave ``root``, are skipped."""
    with tarfile.open(fileobj=io.BytesIO(tar), mode="r:") as archive:
        for member in archive:
            pure = PurePosixPath(member.name)
            if not member.isreg() or pure.is_absolute() or ".." in pure.parts:
                continue
            source = archive.extractfile(member)
            write(root, [member.name], [source.read() if source else b""])


def collect(root: Path, given: Mapping[str, bytes]) -> CollectedFiles:
    """The plain files below ``root`` that are new or differ from ``given``."""
    volume = os.statvfs(root)
    room = min(_TOTAL_MAX, volume.f_blocks * volume.f_frsize)
    buffer = io.BytesIO()
    names: list[str] = []
    refused: list[str] = []
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in _walk(root, refused):
            content = _read(root / name, room)
            if isinstance(content, str):
                refused.append(f"{name}: {content}")
                continue
            if given.get(name) == content:
                continue
            if why := _never_taken(name):
                refused.append(f"{name:.200}: {why}")
                continue
            if len(names) == FILES_MAX:
                refused.append(f"{name}: more than {FILES_MAX} files")
                break
            room -= len(content)
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
            names.append(name)
    if len(refused) > REFUSED_MAX:
        refused[REFUSED_MAX:] = [f"and {len(refused) - REFUSED_MAX} more"]
    return CollectedFiles(buffer.getvalue(), tuple(names), tuple(refused))


def _walk(root: Path, refused: list[str]) -> Iterator[str]:
    """Names of all that is no directory, sorted; iterative, because a tree may be deeper than the stack."""
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name, reverse=True)
        except OSError as error:  # code may have forbidden it to everybody
            refused.append(f"{folder or '.'}: not readable ({error.strerror})")
            continue
        for entry in entries:
            name = f"{folder}/{entry.name}".lstrip("/")
            if not _is_text(name):
                refused.append(f"{name!a:.200}: the name has unprintable characters")
            elif entry.is_dir(follow_symlinks=False):
                if name.count("/") + 1 >= DEPTH_MAX:
                    refused.append(f"{name:.200}: deeper than {DEPTH_MAX} directories")
                else:
                    pending.append(name)
            else:
                yield name


def _read(path: Path, most: int) -> bytes | str:
    """A plain file's content, or why it is not taken."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return "a symbolic link" if error.errno == errno.ELOOP else f"not readable ({error.strerror})"
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        return "a fifo, a socket or a device"
    with open(descriptor, "rb") as file:
        if found.st_size > most:
            return f"with its {found.st_size} bytes the outputs are too large"
        return file.read(most)


def _never_taken(name: str) -> str:
    """Why the kernel takes no file of this name, "" where it does (``plainfiles``)."""
    if len(name.encode()) > PATH_MAX:
        return f"the name is longer than {PATH_MAX} bytes"
    if "\ufffd" in name:
        return "the name has unprintable characters"
    within_git = any(part.lower() == ".git" for part in name.split("/"))
    return "a .git directory is never taken over" if within_git else ""


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return name.isprintable()


# --- Where a job stands --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WorkerPlace:
    """``alone``: the worker is process 1 of its namespace, so every other process is the job's."""

    workspace: Path
    snapshot: Path
    alone: bool
