"""Content by SHA-256 below any URL that fsspec opens (``s3://bucket/prefix``): ``ab/cdef…``, as in the files of a home.

What is stored is whole under its name or not there: an object store writes an object at once, any other place gets it
aside and renamed. A call that fails is tried again for a while, and ends as ``Unavailable``. What is read is held against
its name by ``blobs``, which alone uses this.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TypeVar

from agentos.domain import dataclass
from agentos.errors import ErrorKind, Unavailable, UserError

T = TypeVar("T")

NAME = re.compile(r"[0-9a-f]{64}")
OWNER = "ledger"  # the object that names the ledger whose content it is
_PATIENCE_S = 20.0  # that a call is tried again for; the last try may take its own time beyond that
_SOCKET_S = 10  # that a server may say nothing
_CALL_S = 120  # that one try may take, of a server that goes on to say a little
# whose writes are whole or nothing
_AT_ONCE = {"s3", "s3a", "gs", "gcs", "abfs", "az", "adl", "oss", "memory"}
# of these, where one of two that write at the same time is refused
_EXCLUSIVE = {"s3", "s3a", "gs", "gcs"}
# trying again changes nothing
_FINAL = (FileNotFoundError, FileExistsError, PermissionError, ImportError, ValueError, TypeError)


@dataclass(frozen=True, slots=True)
class BlobInfo:
    """One that is there: its size in bytes, and when it was stored last (UTC)."""

    name: str
    size: int
    stored_at: datetime


class UrlBlobs:
    """Safe from any thread. ``patience_s`` is how long a call is tried again."""

    def __init__(self, url: str, patience_s: float = _PATIENCE_S) -> None:
        self._url, self._patience_s = url, patience_s

    def write(self, sha256: str, data: bytes) -> None:
        """Store it, also where it is there: whoever collects sees that it is wanted. Raises Unavailable."""
        try:
            self._tried("written", lambda: self._write(self._path(sha256), data))
        except FileNotFoundError as error:
            raise Unavailable(
                f"a blob in {self._url} could not be written: is its bucket or folder there? ({_said(error)})"
            ) from error

    def read(self, sha256: str) -> bytes | None:
        """The content, unchecked; None where there is none. Raises Unavailable."""
        try:
            data = self._tried("read", lambda: self._call("cat_file", self._path(sha256)))
        except FileNotFoundError:
            return None
        return bytes(data)

    def owner(self, ledger: str) -> str:
        """Whose content lies there: from the first call on that of the ledger that asked first. Raises Unavailable."""
        path = f"{self._root}/{OWNER}"
        for _ in range(2):
            with suppress(FileNotFoundError):
                return bytes(self._tried("read", lambda: self._call("cat_file", path))).decode(
                    errors="replace"
                )
            try:
                self._tried("written", lambda: self._write_once(path, ledger.encode()))
            except FileExistsError:  # another one was faster
                continue
            except FileNotFoundError as error:
                raise Unavailable(
                    f"nothing can be written to {self._url}: is its bucket or folder there? ({_said(error)})"
                ) from error
        return ""

    def listed(self) -> Iterator[BlobInfo]:
        """All that are there; what else lies there is somebody's own. Raises Unavailable."""
        for folder in self._names(self._root):
            if len(name := folder["name"].rstrip("/").rpartition("/")[2]) == 2:
                for item in self._names(folder["name"]):
                    if NAME.fullmatch(sha256 := name + item["name"].rpartition("/")[2]):
                        yield BlobInfo(sha256, int(item["size"]), _stored_at(item))

    def remove(self, sha256: str, older_than_s: float) -> int:
        """Remove one that was not stored lately; the bytes that this freed. Raises Unavailable.

        Between the look at its age and its end lies one round trip, in which another process may store it again: keep
        ``older_than_s`` at days, so that only content that nobody named for so long can meet with that.
        """
        try:
            item = self._tried("looked at", lambda: self._call("info", self._path(sha256)))
            if time.time() - _stored_at(item).timestamp() < older_than_s:
                return 0
            self._tried("removed", lambda: self._call("rm_file", self._path(sha256)))
        except FileNotFoundError:
            return 0
        return int(item["size"])

    def _names(self, place: str) -> list[dict[str, Any]]:
        try:
            return list(self._tried("listed", lambda: self._call("ls", place, detail=True, refresh=True)))
        except FileNotFoundError:  # nothing was stored yet
            return []

    def _write(self, path: str, data: bytes) -> None:
        if self._protocol in _AT_ONCE:
            self._call("pipe_file", path, data)
            return
        aside = f"{self._root}/aside/{secrets.token_hex(8)}"
        for folder in (aside, path):
            self._files.makedirs(folder.rpartition("/")[0], exist_ok=True)
        self._files.pipe_file(aside, data)
        self._files.mv(aside, path)

    def _write_once(self, path: str, data: bytes) -> None:
        """Raises FileExistsError where it is there, of which a place without such writes knows nothing."""
        if self._protocol in _EXCLUSIVE:
            try:
                self._call("pipe_file", path, data, mode="create")
                return
            except OSError as error:
                if "NotImplemented" not in str(error):
                    raise
        self._write(path, data)

    def _call(self, name: str, *given: object, **options: object) -> Any:
        """One call, which ends: a server that sends a byte now and then is never silent for long enough to be left."""
        if not getattr(self._files, "async_impl", False):
            return getattr(self._files, name)(*given, **options)
        from fsspec.asyn import sync

        return sync(self._files.loop, getattr(self._files, f"_{name}"), *given, timeout=_CALL_S, **options)

    def _path(self, sha256: str) -> str:
        return f"{self._root}/{sha256[:2]}/{sha256[2:]}"

    def _tried(self, what: str, work: Callable[[], T]) -> T:
        import tenacity  # here: every command imports this file

        attempts = tenacity.Retrying(
            stop=tenacity.stop_after_delay(self._patience_s),
            wait=tenacity.wait_random_exponential(multiplier=0.1, max=2.0),
            retry=tenacity.retry_if_not_exception_type((*_FINAL, UserError)),
        )
        try:
            return attempts(work)
        except (FileNotFoundError, FileExistsError, UserError):
            raise
        except tenacity.RetryError as error:
            why = error.last_attempt.exception()
            raise Unavailable(
                f"a blob in {self._url} could not be {what}, tried for {self._patience_s:g} s: {_said(why)}",
                kind=ErrorKind.TIMEOUT,
            ) from why
        except _FINAL as error:
            raise Unavailable(f"a blob in {self._url} could not be {what}: {_said(error)}") from error

    @property
    def _files(self) -> Any:
        return self._opened[0]

    @property
    def _root(self) -> str:
        return str(self._opened[1]).rstrip("/")

    @property
    def _protocol(self) -> str:
        return self._url.partition("://")[0]

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        """The file system and the place in it. Raises UserError where what opens such a URL is not installed."""
        try:
            from fsspec.core import url_to_fs

            # an instance that fsspec keeps would also keep the server and the keys of before
            options: dict[str, Any] = {"use_listings_cache": False, "skip_instance_cache": True}
            if self._protocol in ("s3", "s3a"):
                seconds = {"connect_timeout": _SOCKET_S, "read_timeout": _SOCKET_S}
                options["config_kwargs"] = {**seconds, "retries": {"max_attempts": 1}}
            files, root = url_to_fs(self._url, **options)
        except ImportError as error:
            raise UserError(
                f"blobs = {self._url!r} needs the extra 'blobs', or what fsspec opens such a URL with ({error}): "
                "type `pip install 'agentos-daemon[blobs]'`",
                kind=ErrorKind.NOT_INSTALLED,
            ) from None
        except ValueError as error:
            raise UserError(f"blobs = {self._url!r} cannot be opened: {error}") from None
        if hasattr(files, "retries"):
            files.retries = 1  # s3fs tries five times by itself, behind which ours would have no end
        return files, root


def _stored_at(item: dict[str, Any]) -> datetime:
    found = item.get("LastModified") or item.get("mtime") or item.get("created") or item.get("last_modified")
    if isinstance(found, datetime):
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    if isinstance(found, int | float):
        return datetime.fromtimestamp(found, UTC)
    return datetime.now(UTC)  # where nobody knows its age nothing is old


def _said(error: BaseException | None) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
