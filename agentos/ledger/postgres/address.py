"""Which database a home's ledger lies in: a file beside its settings, or what ``database`` names in these.

Standard library only: each command asks it.
"""

from __future__ import annotations

import codecs
import os
import re
import tomllib
from pathlib import Path
from urllib.parse import unquote, urlsplit

from agentos.errors import ErrorKind, NotFound, UserError

SCHEMES = ("postgresql", "postgres")
_NAMED = re.compile(rb"""^[ \t]*["']?database""", re.MULTILINE)  # in a comment it is not
# As libpq reads it: `?` and `#` may stand in a password, and neither ends the part before the host.
_SECRET = re.compile(r"\w+://[^@/]*:[^@/]*@|[?&](ssl)?password=")


def address_of(ledger: Path) -> str:
    """The address of the PostgreSQL database with the ledger of this home, "" when it is the file ``ledger``.

    Raises UserError for settings that are no TOML, or an address that is none.
    """
    if (given := os.environ.get("AGENTOS_DATABASE")) is not None:
        return checked(given)
    settings = ledger.with_name("agentos.toml")
    try:
        text = settings.read_bytes().removeprefix(codecs.BOM_UTF8)
    except OSError:
        return ""
    if not _NAMED.search(text):  # parsing takes each command of a home with a file a millisecond
        return ""
    try:
        return checked(str(tomllib.loads(text.decode()).get("database", "")))
    except ValueError as error:
        raise UserError(f"{settings} is not TOML: {error}") from None


def checked(address: str) -> str:
    """The address; raises UserError for one that is none, or that has the password in it."""
    if fault := fault_of(address):
        raise UserError(f"the setting database: {fault}")
    return address


def fault_of(address: str) -> str:
    """What is wrong with an address, "" for nothing."""
    if not address:
        return ""
    try:
        parts = urlsplit(address)
        secret = _SECRET.match(address) or _SECRET.search(unquote(address))
    except ValueError as error:
        return f"it is no address: {error}"
    if parts.scheme not in SCHEMES:
        return "it is of the form 'postgresql://user@host/database'"
    if secret:
        return (
            "it has a password in it, and settings are no place for one: put it into ~/.pgpass, "
            "or name a service (postgresql://?service=NAME) or a passfile"
        )
    return ""


def require_ledger(path: Path) -> None:
    """A home's ledger is made by `init` alone: one that got lost must not begin anew unnoticed."""
    if address_of(path):
        return  # whoever opens it finds its tables, or says that there are none
    if not path.exists() or path.stat().st_size == 0:
        raise NotFound(
            f"the ledger {path} is missing or empty: restore it from a backup, "
            "or type `agentos init` to begin with an empty one",
            kind=ErrorKind.DAMAGED,
        )


def has_ledger(path: Path) -> bool:
    """Whether there is one to be opened; of a database it is only known that it is named."""
    return path.exists() or bool(address_of(path))
