"""Every skill, tool and harness that ships keeps the rules that a user's own must keep."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentos import resources
from agentos.domain import Kind, ResourceId

PROJECT = Path(__file__).resolve().parents[2]
FOLDERS = [
    *((Kind.SKILL, path) for path in sorted((PROJECT / "skills").iterdir()) if path.is_dir()),
    *((Kind.TOOL, path) for path in sorted((PROJECT / "registry/tools").iterdir())),
    *((Kind.HARNESS, path) for path in sorted((PROJECT / "registry/harness").iterdir())),
]


@pytest.mark.parametrize(("kind", "folder"), FOLDERS, ids=lambda value: getattr(value, "name", str(value)))
def test_what_ships_is_in_order(kind: Kind, folder: Path) -> None:
    name = ResourceId(kind, folder.name)
    files = {
        f"{name}/{path.relative_to(folder)}": path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    reading = resources.examine(name, files)
    assert reading.faults == ()
    assert reading.warnings == ()
    assert reading.resource is not None
    assert reading.resource.tools or kind is Kind.HARNESS
