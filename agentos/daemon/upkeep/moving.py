"""A home's ledger goes to another database and back, its blobs to another store: all of it and compared, while no
daemon works.
"""

from __future__ import annotations

import os
import sqlite3
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import tomlkit

from agentos.daemon.control.daemon_lock import DaemonLock
from agentos.domain import dataclass
from agentos.durable import write_whole
from agentos.errors import Unavailable, UserError
from agentos.home import Home
from agentos.ledger.blobs import FILES, BlobStore, claim, store_of
from agentos.ledger.moving import LedgerMove, move_ledger
from agentos.ledger.postgres.address import address_of, checked
from agentos.ledger.reading import Reader
from agentos.settings import load_settings, settings_text

FILE = "file"  # the word for the home's own ledger.db


def move_home(home: Home, to: str) -> LedgerMove:
    """Move the ledger to the PostgreSQL database ``to``, or by the word ``file`` into the home's own file.

    The settings name the new place when all of it is there and compared. What was there stays and takes no more rows.
    Raises HomeBusy while a daemon works, UserError, Conflict, NotFound, and Unavailable.
    """
    target = "" if to == FILE else checked(to)
    if to != FILE and not target:
        raise UserError("expected postgresql://user@host/database, or the word file")
    refuse_variables("AGENTOS_DATABASE")
    source = address_of(home.ledger)
    if source == target:
        raise UserError(f"the ledger lies in {target or home.ledger} already")
    with _alone(home, {source, target} - {""}):
        if not target:
            _set_aside(home)
        moved = move_ledger(home.ledger, source, target)
        # what it knows is under way, the ledger knows as well: the next daemon begins that anew
        _aside(home.engine)
        write_setting(home.settings, "database", target)
    return moved


@dataclass(frozen=True, slots=True)
class BlobMove:
    """How many blobs lie in the new place, and their bytes; how many of them had to be copied."""

    blobs: int
    size: int
    copied: int


def move_blobs(home: Home, to: str, say: Callable[[str], None] = lambda _: None) -> BlobMove:
    """Copy all blobs to the store ``to`` (a URL, or ``files``), read each again there, and let the settings name it.

    What was there stays. Cut off, it is asked for again. Raises HomeBusy while a daemon works, UserError, Unavailable for
    one that is damaged or does not arrive.
    """
    refuse_variables("AGENTOS_BLOBS")
    database = address_of(home.ledger)
    with _alone(home, {database} - {""}):
        source = BlobStore(home.blobs)
        elsewhere = store_of(to, home.root)
        target = elsewhere or source
        if elsewhere is not None:
            with closing(Reader(home.ledger)) as reader:
                claim(elsewhere, reader.name(), to)
        there = {info.name for info in target.listed()}
        count = size = copied = 0
        for info in source.everywhere():
            data = source.get(info.name)
            if info.name not in there or target.read(info.name) != data:
                target.write(info.name, data)
                copied += 1
                if target.read(info.name) != data:
                    raise Unavailable(
                        f"the blob {info.name} did not arrive in {to} as it is: nothing was switched over"
                    )
            count, size = count + 1, size + len(data)
            if count % 1_000 == 0:
                say(f"{count} blobs")
        write_setting(home.settings, "blobs", "" if to == FILES else to)
    return BlobMove(count, size, copied)


@contextmanager
def _alone(home: Home, databases: set[str]) -> Iterator[None]:
    with ExitStack() as held:
        lock = DaemonLock(home)
        held.callback(lock.release)
        for database in databases:
            from agentos.ledger.postgres.connection import LeaderLock

            held.enter_context(closing(LeaderLock(database, f"a daemon works on {database}: stop it first")))
        yield


def _set_aside(home: Home) -> None:
    """The file that was left behind by the move to the database is no beginning for the way back."""
    if not home.ledger.exists():
        return
    with closing(sqlite3.connect(home.ledger)) as connection:
        sealed = connection.execute(
            "SELECT 1 FROM sqlite_schema WHERE name = 'audit_0_insert_moved'"
        ).fetchone()
    if sealed:
        _aside(home.ledger)


def _aside(path: Path) -> None:
    """Under a name that nothing looks for; with its log, if SQLite left one."""
    number = 1
    while (kept := path.with_name(f"{path.name}.moved-{number}")).exists():
        number += 1
    for end in ("", "-wal", "-shm"):
        with_end = path.with_name(path.name + end)
        if with_end.exists():
            with_end.rename(kept.with_name(kept.name + end))


def stand_alone(home: Home) -> None:
    """The ledger and all blobs are in the backup: a home made from it writes nothing where the one that it was made of
    does, and lets nothing go there.
    """
    if home.settings.exists():
        named = tomllib.loads(home.settings.read_text(encoding="utf-8-sig"))
        for key in ("database", "blobs"):
            if "://" in str(named.get(key, "")):
                write_setting(home.settings, key, "")


def refuse_variables(*names: str) -> None:
    """Raise UserError where one is set: it names a place instead of the settings, which are about to say another."""
    if found := [name for name in names if name in os.environ]:
        raise UserError(
            f"{found[0]} is set, and would hide what is about to be written into the settings: unset it"
        )


def write_setting(settings: Path, key: str, value: str) -> None:
    """Change one setting of the top level, "" takes it out. Raises Invalid where the file would be none then."""
    document = tomlkit.parse(settings_text(settings))
    document.pop(key, None)
    text = tomlkit.dumps(document)
    if value:  # first: behind a table it would belong to that
        text = f'{key} = "{value}"\n{text}'
    write_whole(settings, text.encode(), load_settings)
