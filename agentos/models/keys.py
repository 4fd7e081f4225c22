"""Where the keys of providers lie: variables of the environment, and ``keys.toml`` of the home."""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path

from agentos.errors import UserError


def read_keys(path: Path) -> dict[str, str]:
    """Variable name -> key, from a file that only its owner can read; empty when there is none.

    Raises UserError when others could read it, or it is not a table of texts.
    """
    try:
        table = tomllib.loads(read_private(path).decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        # the reason is left out: it would quote the line, and that may be a key
        raise UserError(f'{path} is not TOML; expected lines like OPENAI_API_KEY = "…"') from None
    if not all(isinstance(value, str) for value in table.values()):
        raise UserError(f'{path} must hold nothing but lines like OPENAI_API_KEY = "…"')
    return table


def read_private(path: Path) -> bytes:
    """The first MiB of a file that only its owner can read; empty when there is none. Raises UserError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if about.st_uid != os.geteuid() or not stat.S_ISREG(about.st_mode):
            raise UserError(f"{path} holds keys, so it must be a file of yours; it belongs to somebody else")
        if about.st_mode & 0o077:
            raise UserError(f"{path} holds keys, but others may read it; type: chmod 600 {path}")
        return file.read(1 << 20)
