"""Blob store: compressed files in the folder that $EXAMPLE_BLOBS names, such as a mounted share."""

from __future__ import annotations

import os
import secrets
import zlib
from pathlib import Path


class Packed:
    def __init__(self, home: Path) -> None:
        self._place = Path(os.environ.get("EXAMPLE_BLOBS", home / "packed"))

    def read(self, sha256: str) -> bytes | None:
        """None where there is none. What is read is held against its name by who asks."""
        path = self._place / sha256
        return zlib.decompress(path.read_bytes()) if path.exists() else None

    def write(self, sha256: str, data: bytes) -> None:
        """Durable when it returns."""
        self._place.mkdir(parents=True, exist_ok=True)
        aside = self._place / f"{secrets.token_hex(8)}.new"
        with aside.open("xb") as file:
            file.write(zlib.compress(data))
            file.flush()
            os.fsync(file.fileno())
        aside.rename(self._place / sha256)
