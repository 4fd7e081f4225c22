"""A small registry on disk, and contents to put into it."""

from __future__ import annotations

import shutil
import subprocess
from copy import copy
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentos.domain import Snapshot
from agentos.registry.store import Registry
from tests.homes import pack_registry

TOOL = '''"""Add two numbers."""

from pydantic import BaseModel

TOOL = {"name": "add_up", "description": "Adds a and b.", "effects": ["pure"], "dependencies": []}


class Input(BaseModel):
    a: int
    b: int


class Output(BaseModel):
    sum: int


def run(input: Input) -> Output:
    return Output(sum=input.a + input.b)
'''

SKILL = """---
name: {name}
description: Counts things. Use it when things are to be counted.
---
# {name}

Body.
"""

SEED: dict[str, bytes] = {
    "agent/default/resource.toml": b'description = "The default agent."\n',
    "environment/default/resource.toml": b'description = "The sandbox."\nevolvable = false\n',
    "harness/default/resource.toml": b'description = "The loop."\n',
    "harness/default/harness.py": b"def run(sdk):\n    pass\n",
    "prompt/default/resource.toml": b'description = "The prompt."\n',
    "prompt/default/prompt.md": b"Do it.\nCheck it.\nSay it.\n",
    "tool/add-up/resource.toml": b'description = "Adds."\n',
    "tool/add-up/tool.py": TOOL.encode(),
    "skill/counting/SKILL.md": SKILL.format(name="counting").encode(),
    "skill/counting/tools/count_up.py": TOOL.replace("add_up", "count_up").encode(),
}


class Clock:
    """Advances by a second each time it is read."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def forged(registry: Registry, base: Snapshot, files: dict[str, str]) -> Snapshot:
    """A candidate that was not made by ``add_candidate``, which looks at what it is given."""
    repository = registry.repository
    tree = repository.write_tree(base.tree, {path: text.encode() for path, text in files.items()})
    made = repository.write_commit(tree, [repository.commit(base.commit).id], "Forged\n", Clock()())
    return repository.snapshot(made)


@pytest.fixture(scope="session")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Clock]:
    """A registry to copy, and the clock that it was made by."""
    clock = Clock()
    made = Registry.init(tmp_path_factory.mktemp("seeded") / "registry.git", SEED, clock=clock)
    return pack_registry(made.repository.path), clock


@pytest.fixture
def registry(seeded: tuple[Path, Clock], tmp_path: Path) -> Registry:
    path, clock = seeded
    shutil.copytree(path, tmp_path / "registry.git")
    return Registry(tmp_path / "registry.git", clock=copy(clock))


@pytest.fixture
def loose(registry: Registry) -> Registry:
    """The same with each object in a file of its own, as it is until it is packed."""
    place = registry.repository.path
    (pack,) = (place / "objects" / "pack").glob("*.pack")
    packed = pack.read_bytes()
    shutil.rmtree(pack.parent)
    subprocess.run(["git", "-C", place, "unpack-objects", "-q"], input=packed, check=True)
    return Registry(place, clock=registry.clock)
