"""A real PostgreSQL in a folder of its own, run by an ordinary user, with a fresh database for each test."""

from __future__ import annotations

import functools
import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from agentos.ledger.postgres.migrating import migrate

# Nothing of a test has to survive the machine; what has to is the server's own business.
_QUICK = {"fsync": "off", "full_page_writes": "off", "max_connections": "200", "shared_buffers": "32MB"}


def _in_memory() -> str | None:
    """Where there is room: a database is some hundred files, made there at a quarter of what it costs on a disk."""
    place = "/dev/shm"
    has_room = os.access(place, os.W_OK) and shutil.disk_usage(place).free > 2 << 30
    return place if has_room else None


@functools.cache
def programs() -> Path | None:
    """The folder of the newest server's programs, which Debian keeps off the PATH."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    made = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    return made[-1].parent if made else None


@dataclass
class PostgresServer:
    """One server. ``folder`` holds its data and its socket."""

    folder: Path
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _made: bool = False

    @classmethod
    @contextmanager
    def start(cls) -> Iterator[PostgresServer]:
        """Up until the end of the context."""
        folder = Path(tempfile.mkdtemp(prefix="agentos-pg-", dir=_in_memory()))
        server = cls(folder)
        try:
            if os.getuid() == 0:  # initdb refuses root
                os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
            server.run("initdb", "-A", "trust", "-U", "agentos", "--no-sync", "-E", "UTF8", "--locale=C")
            server.up()
            try:
                yield server
            finally:
                server.run("pg_ctl", "-m", "immediate", "stop")
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def up(self) -> None:
        """Begin to serve."""
        options = " ".join(f"-c {name}={value}" for name, value in _QUICK.items())
        at = f"-k {self.folder} -c listen_addresses='' {options}"
        self.run("pg_ctl", "-w", "-t", "120", "-l", str(self.folder / "log"), "-o", at, "start")

    def run(self, program: str, *words: str) -> None:
        """One of the server's programs on this server's data."""
        place = programs()
        assert place is not None
        user: dict[str, Any] = {"user": "nobody", "extra_groups": []} if os.getuid() == 0 else {}
        subprocess.run(
            [place / program, "-D", self.folder / "data", *words],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "LANG": "C"},
            **user,
        )

    def address(self, name: str) -> str:
        """Of one of its databases."""
        return f"postgresql://agentos@/{name}?host={self.folder}"

    @contextmanager
    def database(self, *, empty: bool = False) -> Iterator[str]:
        """A database with an empty ledger, or with nothing; gone at the end."""
        if not self._made and not empty:
            self._sql("CREATE DATABASE made")
            migrate(self.address("made"))
            self._made = True
        name = f"test_{next(self._numbers)}"
        self._sql(f"CREATE DATABASE {name}{'' if empty else ' TEMPLATE made STRATEGY file_copy'}")
        try:
            yield self.address(name)
        finally:
            self._sql(f"DROP DATABASE {name} WITH (FORCE)")

    def _sql(self, statement: str) -> None:
        with closing(psycopg.connect(self.address("postgres"), autocommit=True)) as connection:
            connection.execute(statement.encode())
