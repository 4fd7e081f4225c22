"""Content by SHA-256 in plain files: ``blobs/ab/cdef…``.

A blob is whole or absent: it is written aside, flushed, and renamed. It is checked against its
name whenever it is read, wherever it was kept: with `blobs = "NAME"` in the settings that is a plug-in's store.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import time
import tomllib
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from agentos.domain import Json, is_reference
from agentos.durable import flush_folder
from agentos.errors import NotFound, Unavailable
from agentos.plugins import registry

_FILES = "files"  # the setting `blobs` of a home that keeps them itself
_ENCODER = json.JSONEncoder(separators=(",", ":"))
INLINE_MAX = 8 << 10  # characters of JSON that a row may hold itself
_SHOWN = 1_000  # characters of a big value that stay readable at either end
_NAME = re.compile(r"[0-9a-f]{64}")


def _wanted(home: Path) -> str:
    """The setting ``blobs``: read here, because the settings take longer to import than most commands to run."""
    try:
        table = tomllib.loads((home / "agentos.toml").read_text("utf-8"))
    except (OSError, ValueError):  # told by whoever reads the settings
        table = {}
    return os.environ.get("AGENTOS_BLOBS") or str(table.get("blobs", _FILES))


class _Elsewhere:
    """A plug-in's store, made at its first use."""

    def __init__(self, plugin: registry.Plugin, home: Path) -> None:
        self._plugin = plugin
        self._home = home

    @cached_property
    def _store(self) -> Any:
        return registry.make(self._plugin, self._home)

    def use(self, work: Callable[[Any], Any]) -> Any:
        """Raises Unavailable, whatever the plug-in raised."""
        try:
            return registry.call(self._plugin, lambda: work(self._store))
        except registry.PluginFailed as error:
            raise Unavailable(str(error)) from None


class BlobStore:
    """Implements ``ports.Blobs``. Safe from any thread and process."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._aside = root / "tmp"

    def put(self, data: bytes) -> str:
        """Store; the digest. Raises Unavailable when the disk is full."""
        sha256 = hashlib.sha256(data).hexdigest()
        if self._elsewhere is not None:
            self._elsewhere.use(lambda store: store.write(sha256, data))
            return sha256
        path = self._path(sha256)
        try:
            if not self._refreshed(path, len(data)):
                self._write(path, data)
            flush_folder(path.parent)  # also when it was there: its writer may not have come so far
        except OSError as error:
            raise Unavailable(f"the blob could not be written below {self._root}: {error.strerror}") from None
        return sha256

    def get(self, sha256: str) -> bytes:
        """The content; NotFound when there is none, Unavailable when it does not match its name."""
        if not _NAME.fullmatch(sha256):
            raise NotFound(f"{sha256!r} is not the name of a blob (64 hex digits)")
        try:
            data = self._path(sha256).read_bytes()
        except FileNotFoundError:
            data = self._read_elsewhere(sha256)
        except OSError as error:
            raise Unavailable(f"the blob {sha256} cannot be read: {error.strerror}") from None
        if hashlib.sha256(data).hexdigest() != sha256:
            raise Unavailable(f"the blob {sha256} is damaged: its content does not match its name")
        return data

    @cached_property
    def _elsewhere(self) -> _Elsewhere | None:
        """The store that the home's settings name, None for its own files. Raises UserError."""
        name = _wanted(self._root.parent)
        return None if name == _FILES else _Elsewhere(registry.named("blob_stores", name), self._root.parent)

    def _read_elsewhere(self, sha256: str) -> bytes:
        data = self._elsewhere.use(lambda store: store.read(sha256)) if self._elsewhere else None
        if data is None:
            raise NotFound(f"there is no blob {sha256}")
        if not isinstance(data, bytes):
            raise Unavailable(f"the blob {sha256} cannot be read: its store gave a {type(data).__name__}")
        return data

    def shrink(self, value: Json) -> Json:
        """``value`` if it is small, else ``{"blob", "size", "head", "tail"}`` with it put away.

        A small value that merely looks like such a reference is put away too, so that nobody can
        name another's blob by returning its name.
        """
        return self.shrunk(value)[0]

    def shrunk(self, value: Json) -> tuple[Json, str]:
        """As ``shrink``, and its JSON text, without spaces."""
        try:
            text = _ENCODER.encode(value)
        except RecursionError:
            return (cut := {"cut": "nested too deeply to be stored"}), _ENCODER.encode(cut)
        if len(text) <= INLINE_MAX and not is_reference(value):
            return value, text
        spaced = json.dumps(
            value
        )  # what is read back by people, and has been named so since the first release
        shown = value if isinstance(value, str) else spaced
        data = spaced.encode()
        name = {"blob": self.put(data), "size": len(data), "head": shown[:_SHOWN], "tail": shown[-_SHOWN:]}
        return name, _ENCODER.encode(name)

    def expand(self, value: Json) -> Json:
        """What ``shrink`` was given."""
        return json.loads(self.get(value["blob"])) if is_reference(value) else value

    def sweep(self, older_than_s: float = 3600.0) -> int:
        """Remove what writers that died left aside; how many files that were."""
        if not self._aside.is_dir():
            return 0
        old = [path for path in self._aside.iterdir() if time.time() - path.lstat().st_mtime >= older_than_s]
        for path in old:
            path.unlink(missing_ok=True)
        return len(old)

    def remove(self, sha256: str, older_than_s: float = 3600.0) -> int:
        """Remove a blob that no row names and that nobody stored lately; how many bytes that freed.

        Whoever stores it at this moment sets its time first, and is then either seen here or writes it anew.
        """
        path, aside = self._path(sha256), self._aside / f"{sha256}.{secrets.token_hex(4)}"
        try:
            if time.time() - path.lstat().st_mtime < older_than_s:
                return 0
            self._aside.mkdir(exist_ok=True)
            path.rename(aside)
            found = aside.lstat()
            if time.time() - found.st_mtime < older_than_s:
                aside.rename(path)
                return 0
            aside.unlink()
        except FileNotFoundError:
            return 0
        return found.st_size

    def _refreshed(self, path: Path, size: int) -> bool:
        """Whether the blob is there, whole, and was marked as stored now (see ``remove``)."""
        try:
            os.utime(path)
            return path.stat().st_size == size
        except FileNotFoundError:
            return False

    def _path(self, sha256: str) -> Path:
        return self._root / sha256[:2] / sha256[2:]

    def _write(self, path: Path, data: bytes) -> None:
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            flush_folder(self._root)
        self._aside.mkdir(exist_ok=True)
        aside = self._aside / secrets.token_hex(8)
        try:
            with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            aside.rename(path)
        finally:
            aside.unlink(missing_ok=True)
