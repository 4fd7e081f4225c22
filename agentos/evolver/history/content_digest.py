"""Are two contents of a resource the same to whatever runs on them? A comment is no other content."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache

from agentos.domain import Snapshot, digest
from agentos.ports import Snapshots
from agentos.syntax import parse


def meaning(files: Mapping[str, bytes]) -> str:
    """A digest that stays where only comments and the form of the source changed."""
    return digest(sorted((path, _told(path, data)) for path, data in files.items()))


def content_of(snapshots: Snapshots, snapshot: Snapshot, resources: Sequence[str]) -> str:
    """What the snapshot has of these resources, as ``meaning`` tells it."""
    return meaning(
        {path: data for name in resources for path, data in snapshots.files(snapshot, name).items()}
    )


@lru_cache(maxsize=64)  # what stands is looked at in each stage, and for each promotion on probation
def _told(path: str, data: bytes) -> str:
    try:
        if path.endswith(".py"):
            return digest(ast.dump(parse(data.decode("utf-8"))))
        if path.endswith(".toml"):
            return digest(repr(tomllib.loads(data.decode("utf-8"))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # as it stands, then
        pass
    return digest(data)
