"""Where the authored content lies that ships with the program, in a source tree and in a wheel."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from agentos.errors import Unavailable
from agentos.records.identity import Kind

_PACKAGE = Path(__file__).resolve().parent
_KIND_FOLDERS = {
    "agents": Kind.AGENT,
    "prompts": Kind.PROMPT,
    "tools": Kind.TOOL,
    "memories": Kind.MEMORY,
    "environments": Kind.ENVIRONMENT,
    "harness": Kind.HARNESS,
}


def folder(name: str) -> Path:
    """The content folder ``registry``, ``evolver``, ``skills`` or ``sandboxes``.

    The wheel carries them under ``agentos/_shipped``; in a source tree they lie beside the
    package. Raises Unavailable when neither is there (a broken installation).
    """
    for place in (_PACKAGE / "_shipped" / name, _PACKAGE.parent / name):
        if (place / "README.md").is_file():
            return place
    raise Unavailable(f"The installation lacks its '{name}' folder; install agentos-daemon again.")


def table(name: str, file: str) -> dict[str, Any]:
    """A TOML file of the content folder."""
    return tomllib.loads((folder(name) / file).read_text(encoding="utf-8"))


def seed_files() -> dict[str, bytes]:
    """Registry path -> content of every resource that ships, as a fresh registry holds it."""
    files: dict[str, bytes] = {}
    for plural, kind in _KIND_FOLDERS.items():
        files |= _read(folder("registry") / plural, kind)
    return files | _read(folder("skills"), Kind.SKILL)


def _read(place: Path, kind: Kind) -> dict[str, bytes]:
    """Directories only: a README beside them is for people who browse the source."""
    return {
        f"{kind}/{path.relative_to(place).as_posix()}": path.read_bytes()
        for path in sorted(place.glob("*/**/*"))
        if path.is_file() and not _ignored(path.relative_to(place))
    }


def _ignored(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)
