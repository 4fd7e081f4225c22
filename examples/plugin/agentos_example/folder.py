"""Secret store: a folder that only its owner may enter, one file a secret, as a mounted volume has it."""

from __future__ import annotations

import os
from pathlib import Path


class Folder:
    def __init__(self, home: Path) -> None:
        self._place = Path(os.environ.get("EXAMPLE_SECRETS", home / "secrets.d"))

    def get(self, name: str) -> str | None:
        path = self._place / name
        return path.read_text("utf-8") if path.exists() else None

    def set(self, name: str, value: str) -> None:
        self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(
            os.open(self._place / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
        ) as file:
            file.write(value)

    def delete(self, name: str) -> None:
        (self._place / name).unlink(missing_ok=True)
