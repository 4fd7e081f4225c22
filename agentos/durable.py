"""What has to happen until a file that was made or renamed is there after a power cut."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path


def flush_folder(folder: Path | str) -> None:
    """The names in the folder are on disk when it returns. Raises OSError."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def write_whole(path: Path, data: bytes, accept: Callable[[Path], object] = lambda aside: None) -> None:
    """The file has the data, on disk when it returns, or is as it was. Raises OSError.

    ``accept`` gets the file that was written aside, and may refuse it by raising. A link to the file stays one, and its
    mode what it was; a new one is its owner's alone.
    """
    path = path.resolve()
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o600
    aside = path.with_name(f"{path.name}.{os.urandom(4).hex()}.new")
    try:
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        accept(aside)
        aside.rename(path)
        flush_folder(path.parent)
    finally:
        aside.unlink(missing_ok=True)
