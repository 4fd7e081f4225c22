"""Reads a wheel as what it may be: an archive that somebody hostile made.

It is unpacked in memory: what lies on the host is only ever the wheel itself.
"""

from __future__ import annotations

import io
import stat
import sys
import zipfile
import zlib
from collections.abc import Iterator

FILES_MAX = 3_000
BYTES_MAX = 48 << 20  # unpacked; it has to fit into the box's /snapshot
_CHUNK = 1 << 16
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# NotImplementedError is zipfile's word for a compression or version that it does not know, RuntimeError for a password.
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)
_WORKERS = {"agentos", "sitecustomize", "usercustomize"}


class BadWheel(Exception):
    """The archive is none that we unpack; the text says why."""


def contents(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Path below a directory of modules -> content, for each file that belongs there.

    Scripts, headers and ``.pth`` files are left out. Raises BadWheel, for a name or a size before
    anything is yielded.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            found = _plan(archive)
            for name, info in found.items():
                yield name, _read(archive, info)
    except _BROKEN as error:
        raise BadWheel(f"it is no sound archive: {error}") from None


def _plan(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    infos = archive.infolist()
    if len(infos) > FILES_MAX:
        raise BadWheel(f"it has {len(infos)} files, at most {FILES_MAX} are allowed")
    size = sum(info.file_size for info in infos)
    if size > BYTES_MAX:
        raise BadWheel(f"it unpacks to {size >> 20} MB, at most {BYTES_MAX >> 20} are allowed")
    found: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        if fault := _fault(info):
            raise BadWheel(f"its member {info.filename[:200]!a} {fault}")
        name = _target(info.filename)
        if name in found:
            raise BadWheel(f"its member {name[:200]!a} is there twice")
        if name and not info.is_dir():
            found[name] = info
    above = {
        "/".join(parts[:count])
        for parts in (name.split("/") for name in found)
        for count in range(1, len(parts))
    }
    if both := above & found.keys():
        raise BadWheel(f"its member {min(both)[:200]!a} is a file, and has others below it")
    tops = {name.partition("/")[0].partition(".")[0] for name in found}
    if hidden := tops & (sys.stdlib_module_names | _WORKERS):
        raise BadWheel(f"it would hide the module '{min(hidden)}' that everything else uses")
    return found


def _fault(info: zipfile.ZipInfo) -> str:
    kind = stat.S_IFMT(info.external_attr >> 16)
    parts = info.filename.rstrip("/").split("/")
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is no plain file"
    if any(part in ("", ".", "..") for part in parts) or len(info.filename) > 500:
        return "leads out of its place"
    if not info.filename.isprintable() or "\\" in info.filename or ":" in parts[0]:
        return "has no plain name"
    if info.flag_bits & 1 or info.compress_type not in _METHODS:
        return "is packed in a way that wheels are not"
    return ""


def _target(name: str) -> str:
    """Where it goes; "" for what is not unpacked. ``X.data/purelib/`` stands for the root (PEP 427)."""
    first, _, rest = name.partition("/")
    if first.endswith(".data"):
        scheme, _, rest = rest.partition("/")
        name = rest if scheme in ("purelib", "platlib") else ""
    return "" if "/" not in name and name.endswith(".pth") else name


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """In pieces: read at once, a member that lies of its size is unpacked whole before that shows."""
    parts = []
    with archive.open(info) as file:
        while part := file.read(_CHUNK):
            parts.append(part)
    return b"".join(parts)
