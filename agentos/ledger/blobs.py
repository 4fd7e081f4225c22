"""Content by SHA-256 in plain files: ``blobs/ab/cdef…``.

A blob is whole or absent: it is written aside, flushed, and renamed. It is checked against its
name whenever it is read, wherever it was kept: with `blobs` in the settings that is another folder (``file:///…``), a
place behind any other URL (``blob_url``), or a plug-in's store.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from agentos.domain import Json, is_reference
from agentos.durable import flush_folder
from agentos.errors import DamagedBlob, ErrorKind, NotFound, Unavailable, UserError
from agentos.ledger.blob_url import NAME, OWNER, BlobInfo, UrlBlobs
from agentos.plugins import registry

FILES = "files"  # the setting `blobs` of a home that keeps them itself
GONE = "the folder is gone; put it back, or make an empty one, if what was in it is lost"
_ENCODER = json.JSONEncoder(separators=(",", ":"))
INLINE_MAX = 8 << 10  # characters of JSON that a row may hold itself
_PIECE = 1 << 20  # bytes of a blob that are compared at once
_SHOWN = 1_000  # characters of a big value that stay readable at either end
_URL = re.compile(r"file:///[^\s?#]+|(?!file:)[a-z][a-z0-9+.-]*://[^\s?#]+")


def _wanted(home: Path) -> str:
    """The setting ``blobs``: read here, because the settings take longer to import than most commands to run."""
    try:
        table = tomllib.loads((home / "agentos.toml").read_text("utf-8-sig"))
    except (OSError, ValueError):  # told by whoever reads the settings
        table = {}
    return os.environ.get("AGENTOS_BLOBS") or str(table.get("blobs", FILES))


class Elsewhere(Protocol):
    """Where blobs lie that are not in the home's own files. All of it raises Unavailable, and UserError at its first use."""

    def write(self, sha256: str, data: bytes) -> None:
        """Store content under its name, also where it is there."""
        ...

    def read(self, sha256: str) -> Any:
        """The content, unchecked; None where there is none."""
        ...

    def owner(self, ledger: str) -> str:
        """Whose content it is; of nobody's it is from now on that of ``ledger``."""
        ...

    def listed(self) -> Iterator[BlobInfo]:
        """What is there."""
        ...

    def remove(self, sha256: str, older_than_s: float) -> int:
        """Remove what was not stored lately; the bytes that this freed."""
        ...


class _PluginBlobs:
    """A plug-in's store, made at its first use. Raises Unavailable, whatever the plug-in raised."""

    def __init__(self, plugin: registry.Plugin, home: Path) -> None:
        self._plugin = plugin
        self._home = home

    @cached_property
    def _store(self) -> Any:
        return registry.make(self._plugin, self._home)

    def write(self, sha256: str, data: bytes) -> None:
        self._use(lambda store: store.write(sha256, data))

    def read(self, sha256: str) -> Any:
        return self._use(lambda store: store.read(sha256))

    def owner(self, ledger: str) -> str:
        """Nothing is collected there."""
        return ledger

    def listed(self) -> Iterator[BlobInfo]:
        """What is there is the plug-in's own matter, and so is what goes."""
        return iter(())

    def remove(self, sha256: str, older_than_s: float) -> int:
        return 0

    def _use(self, work: Callable[[Any], Any]) -> Any:
        try:
            return registry.call(self._plugin, lambda: work(self._store))
        except registry.PluginFailed as error:
            raise Unavailable(str(error)) from None


def store_of(place: str, home: Path) -> Elsewhere | None:
    """What the setting ``blobs`` names, None for the home's own files. Raises UserError."""
    if place == FILES:
        return None
    if "://" not in place:
        return _PluginBlobs(registry.named("blob_stores", place), home)
    if fault := fault_of(place):
        raise UserError(f"the setting blobs: {fault}")
    if place.startswith("file://"):
        return _Folder(Path(place.removeprefix("file://")))
    return UrlBlobs(place)


def claim(store: Elsewhere, ledger: str, place: str) -> None:
    """See ``BlobStore.claim``."""
    if ledger and (found := store.owner(ledger)) != ledger:
        raise UserError(
            f"the store {place!r} holds the content of another ledger ({found[:16]}; this one is {ledger[:16]}): give each a "
            f"folder of its own there. If that ledger is gone for good, remove what is named '{OWNER}' in it",
            kind=ErrorKind.TAKEN,
        )


def fault_of(url: str) -> str:
    """What is wrong with a URL, "" for nothing."""
    if not _URL.fullmatch(url):
        return "a URL is of the form 's3://bucket/folder' or 'file:///folder'"
    if "@" in url:
        return "a URL has no user and no password in it: keys stand where its library looks for them (docs/use/stores.md)"
    return ""


class BlobStore:
    """Implements ``ports.Blobs``. Safe from any thread and process."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._aside = root / "tmp"

    def put(self, data: bytes) -> str:
        """Store; the digest. Raises Unavailable when the disk is full."""
        sha256 = hashlib.sha256(data).hexdigest()
        if self._elsewhere is not None:
            self._elsewhere.write(sha256, data)
            return sha256
        self.write(sha256, data)
        return sha256

    def write(self, sha256: str, data: bytes) -> None:
        """Store content in this folder under its name, which the caller computed."""
        folder = f"{self._root}/{sha256[:2]}"
        path = f"{folder}/{sha256[2:]}"
        try:
            if not self._refreshed(path, data):
                self._write(Path(path), data)
            flush_folder(folder)  # also when it was there: its writer may not have come so far
        except OSError as error:
            raise Unavailable(
                f"the blob could not be written below {self._root}: {error.strerror}",
                kind=ErrorKind.NOT_WRITTEN,
            ) from None

    def get(self, sha256: str) -> bytes:
        """The content; NotFound when there is none, DamagedBlob when it does not match its name."""
        if not NAME.fullmatch(sha256):
            raise NotFound(f"{sha256!r} is not the name of a blob (64 hex digits)")
        data = self.read(sha256)
        if data is None:
            data = self._read_elsewhere(sha256)
        if hashlib.sha256(data).hexdigest() != sha256:
            raise DamagedBlob(f"the blob {sha256} is damaged: its content does not match its name")
        return data

    def read(self, sha256: str) -> bytes | None:
        """What lies in this folder under the name, unchecked; None for nothing. Raises Unavailable."""
        try:
            return self._path(sha256).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unavailable(f"the blob {sha256} cannot be read: {error.strerror}") from None

    def listed(self) -> Iterator[BlobInfo]:
        """All that lie in this folder; what lies elsewhere, ``everywhere`` says as well. Other files there are somebody's own."""
        for folder in sorted(path for path in self._root.glob("??") if path.is_dir()):
            for path in sorted(path for path in folder.iterdir() if NAME.fullmatch(folder.name + path.name)):
                with suppress(FileNotFoundError):  # collected meanwhile
                    found = path.lstat()
                    stored_at = datetime.fromtimestamp(found.st_mtime, UTC)
                    yield BlobInfo(folder.name + path.name, found.st_size, stored_at)

    def everywhere(self) -> Iterator[BlobInfo]:
        """All that there are, each once. Raises Unavailable, UserError."""
        own = set()
        for info in self.listed():
            own.add(info.name)
            yield info
        if self._elsewhere is not None:
            yield from (info for info in self._elsewhere.listed() if info.name not in own)

    def claim(self, ledger: str) -> None:
        """Before a ledger, by its name, works with the blobs or collects any. Raises Unavailable.

        Raises UserError where those elsewhere are another's: each would collect what only the other one names.
        """
        if self._elsewhere is not None:
            claim(self._elsewhere, ledger, _wanted(self._root.parent))

    @cached_property
    def _elsewhere(self) -> Elsewhere | None:
        """The store that the home's settings name, None for its own files. Raises UserError."""
        return store_of(_wanted(self._root.parent), self._root.parent)

    def _read_elsewhere(self, sha256: str) -> bytes:
        data: Any = self._elsewhere.read(sha256) if self._elsewhere else None
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
        # what is read back by people, and has been named so since the first release
        spaced = json.dumps(value)
        shown = value if isinstance(value, str) else spaced
        data = spaced.encode()
        name = {"blob": self.put(data), "size": len(data), "head": shown[:_SHOWN], "tail": shown[-_SHOWN:]}
        return name, _ENCODER.encode(name)

    def expand(self, value: Json) -> Json:
        """What ``shrink`` was given."""
        return json.loads(self.get(value["blob"])) if is_reference(value) else value

    def sweep(self, older_than_s: float = 3600.0) -> int:
        """Remove what writers that died left aside; how many files that were.

        A blob that ``remove`` had put aside when it was killed goes back: somebody may have stored it meanwhile.
        """
        if not self._aside.is_dir():
            return 0
        gone = 0
        for path in self._aside.iterdir():
            with suppress(FileNotFoundError):  # its writer has come to its end meanwhile
                if time.time() - path.lstat().st_mtime >= older_than_s:
                    if NAME.fullmatch(path.stem):
                        path.rename(self._path(path.stem))
                    else:
                        path.unlink()
                    gone += 1
        return gone

    def collect(self, sha256: str, older_than_s: float) -> int:
        """Remove a blob that no row names, wherever it lies, as ``remove``; how many bytes that freed."""
        there = self._elsewhere.remove(sha256, older_than_s) if self._elsewhere is not None else 0
        return self.remove(sha256, older_than_s) + there

    def remove(self, sha256: str, older_than_s: float = 3600.0) -> int:
        """Remove from this folder a blob that nobody stored lately; how many bytes that freed.

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

    @property
    def is_gone(self) -> bool:
        """Whether the folder that each home has was taken away, with all that lay in it: a disk that is not mounted, say."""
        whole = all(self._root.with_name(name).exists() for name in ("agentos.toml", "registry.git"))
        return whole and not self._root.is_dir() and self._elsewhere is None

    def _refreshed(self, path: str, data: bytes) -> bool:
        """Whether the blob is there, as it should be, and was marked as stored now (see ``remove``).

        It is read: whoever puts the content of a damaged one again has what it takes to mend it.
        """
        try:
            os.utime(path)
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            at = 0
            while part := os.read(file, min(_PIECE, len(data) + 1)):
                if not data.startswith(part, at):
                    return False
                at += len(part)
            return at == len(data)
        finally:
            os.close(file)

    def _path(self, sha256: str) -> Path:
        return self._root / sha256[:2] / sha256[2:]

    def _write(self, path: Path, data: bytes) -> None:
        if not path.parent.is_dir():
            if self.is_gone:
                raise FileNotFoundError(errno.ENOENT, GONE)
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


class _Folder(BlobStore):
    """Another folder than the home's, on a disk that several hosts may share."""

    _elsewhere = None

    def owner(self, ledger: str) -> str:
        """See ``Elsewhere``. Whole or not there: the name is put there by a link."""
        path, aside = self._root / OWNER, self._aside / secrets.token_hex(8)
        try:
            if not path.exists():
                self._aside.mkdir(parents=True, exist_ok=True)
                aside.write_text(ledger)
                with suppress(FileExistsError):
                    os.link(aside, path)
                aside.unlink()
            return path.read_text(errors="replace")
        except OSError as error:
            raise Unavailable(f"whose blobs lie in {self._root} cannot be told: {error.strerror}") from None
