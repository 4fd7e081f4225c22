"""``index.db``: what can be made again at any time, so damage is answered by making it again.

No write-ahead log: a person may delete the file while a daemon runs, and a log left beside a new
file of the same name would be played into it.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import TypeVar

from agentos.errors import ErrorKind, Unavailable
from agentos.retrieval.texts import STOP_WORDS, words

T = TypeVar("T")

_FORMAT = 6  # of the tables and of the texts in them: another number, and the file is made anew
_PATIENCE_S = 20.0
_PASSAGE = 30  # words
_FIRST, _PASSAGES = 0xE000, 6_400  # private use: no word has these characters

_SCHEMA = """
CREATE TABLE entries (
    id INTEGER PRIMARY KEY, resource TEXT, digest TEXT, part INTEGER,
    name INTEGER, description INTEGER, headings INTEGER,  -- words in each column
    UNIQUE (resource, digest, part));
CREATE VIRTUAL TABLE texts USING fts5 (name, description, headings, tokenize = 'porter unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE terms USING fts5vocab (texts, instance);
CREATE VIRTUAL TABLE bodies USING fts5 (  -- the stems of each body, each once; its passages (private use) are no words
    stems, tokenize = "unicode61 remove_diacritics 2 categories 'L* N*'", detail = none, columnsize = 0);
CREATE VIRTUAL TABLE body_terms USING fts5vocab (bodies, instance);
CREATE TABLE vectors (entry INTEGER, model TEXT, vector BLOB, UNIQUE (entry, model));
CREATE TABLE cards (key TEXT PRIMARY KEY, cards TEXT) WITHOUT ROWID;
CREATE TABLE pruned (times INTEGER);
INSERT INTO pruned VALUES (0);
"""

_SCRATCH = """
CREATE VIRTUAL TABLE asked USING fts5 (words, tokenize = 'porter unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE found USING fts5vocab (asked, row);
"""

# Nothing is wrong with the file; it cannot be used now.
_AWAY = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
}


class Storage:
    """One connection, used by one thread at a time; several processes may use the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self.opened = 0  # times; what was read from the file holds only while this stays

    def use(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do ``work``, on a fresh file if the one there is damaged: it may be called twice.

        Raises Unavailable when the file can neither be used nor made.
        """
        with self._lock:
            try:
                return self._try(work)
            except sqlite3.DatabaseError as error:
                if _code(error) in _AWAY:
                    raise Unavailable(
                        f"The index {self._path} cannot be used: {error}", kind=ErrorKind.NOT_WRITTEN
                    ) from None
            try:
                self._discard()
                return self._try(work)
            except (sqlite3.DatabaseError, OSError) as error:
                raise Unavailable(
                    f"The index {self._path} cannot be made: {error}", kind=ErrorKind.NOT_WRITTEN
                ) from None

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _try(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return work(self._connected())
        except sqlite3.DatabaseError:
            if self._connection is not None and self._connection.in_transaction:
                self._connection.close()  # rolls back, whatever state it is in
                self._connection = None
            raise

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None or self._inode != _inode(self._path):
            self.close()
            self._connection = self._open()
            self._inode = _inode(self._path)
            self.opened += 1
        return self._connection

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False
        )
        try:
            self._settle(connection)
        except sqlite3.DatabaseError:
            connection.close()
            raise
        return connection

    def _settle(self, connection: sqlite3.Connection) -> None:
        """Tables of this format in a sound file; raises DatabaseError."""
        if _format(connection) == _FORMAT:
            if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                raise sqlite3.DatabaseError("it is damaged")
            return
        with transaction(connection):
            found = _format(connection)
            if found == 0:
                for statement in _SCHEMA.split(";\n"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {_FORMAT}")
            elif found != _FORMAT:
                raise sqlite3.DatabaseError(f"it has format {found}")

    def _discard(self) -> None:
        """Remove the file, unless another process has put a new one there."""
        damaged = self._inode
        opened = self._connection is not None
        self.close()
        if not opened or damaged == _inode(self._path):
            for path in (self._path, self._path.with_name(self._path.name + "-journal")):
                path.unlink(missing_ok=True)


def stems(words: Sequence[str]) -> list[str]:
    """The words as ``terms`` holds them, sorted, each once."""
    with _SCRATCH_LOCK:
        return sorted({stem for word in words for stem in _stems(word)})


def passages(text: str) -> str:
    """Each stem of a body once, with the passages of 30 words that hold it: `` stem:PASSAGES ``, a character a passage."""
    found: dict[str, str] = {}
    said = words(text)
    with _SCRATCH_LOCK:
        for start in range(0, min(len(said), _PASSAGE * _PASSAGES), _PASSAGE):
            passage = chr(_FIRST + start // _PASSAGE)
            some = {*said[start : start + _PASSAGE]} - STOP_WORDS
            for stem in {stem for word in some for stem in _stems(word)}:
                found[stem] = found.get(stem, "") + passage
    return f" {' '.join(f'{stem}:{found[stem]}' for stem in sorted(found))} "


def passages_of(stem: str, body: str) -> str:
    """Those that hold the stem, of a body as ``passages`` writes it."""
    start = body.find(f" {stem}:")
    return "" if start < 0 else body[start + len(stem) + 2 : body.index(" ", start + 1)]


_SCRATCH_LOCK = threading.Lock()


@lru_cache(maxsize=1 << 16)
def _stems(word: str) -> tuple[str, ...]:
    """Of one word there may be none, or several. Needs the lock."""
    scratch = _scratch()
    scratch.execute("INSERT INTO asked VALUES (?)", (word,))
    found = tuple(term for (term,) in scratch.execute("SELECT term FROM found"))
    scratch.execute("DELETE FROM asked")
    return found


@cache
def _scratch() -> sqlite3.Connection:
    made = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    made.executescript(_SCRATCH)
    return made


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Writes that happen together or not at all."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


@contextmanager
def one_state(connection: sqlite3.Connection) -> Iterator[None]:
    """Reads that see one state of the file."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _format(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _inode(path: Path) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


def _code(error: sqlite3.DatabaseError) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF  # the rest says more precisely what
