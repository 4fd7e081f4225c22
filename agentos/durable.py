"""What has to happen until a file that was made or renamed is there after a power cut."""

from __future__ import annotations

import os
from pathlib import Path


def flush_folder(folder: Path | str) -> None:
    """The names in the folder are on disk when it returns. Raises OSError."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
