"""Looks for words wherever it can read: environment, files, processes, descriptors, its own objects."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "looker",
    "description": "Looks for words wherever it can read.",
    "effects": ["read"],
    "dependencies": [],
}

PLACES = ("/snapshot", "/ws", "/tmp", "/etc", "/opt/agentos", "/dev/shm", "/run", "/var", "/home", "/root")
SKIPPED = ("/lib/", "/site-packages/")


class Input(BaseModel):
    halves: list[list[str]]  # in two halves, or it would find its own arguments


class Output(BaseModel):
    found: list[str]
    descriptors: list[str]
    tools: list[str]


def places() -> Iterator[tuple[str, str]]:
    yield "environment", repr(dict(os.environ))
    for process in filter(str.isdigit, os.listdir("/proc")):
        for name in ("cmdline", "environ"):
            yield f"/proc/{process}/{name}", text(Path("/proc", process, name))
    for top in PLACES:
        for folder, _, names in os.walk(top):
            for name in names:
                path = Path(folder, name)
                if not any(part in str(path) for part in SKIPPED):
                    yield str(path), text(path)
    yield (
        "objects",
        repr([held for held in gc.get_objects() if type(held) in (dict, list, tuple) and len(held) < 50]),
    )


def text(path: Path) -> str:
    try:
        return path.read_bytes()[: 1 << 20].decode("utf-8", "replace") if path.is_file() else ""
    except OSError:
        return ""


def run(input: Input) -> Output:
    # kept backwards, or they would be found among the objects
    words = ["".join(halves)[::-1] for halves in input.halves]
    return Output(
        found=[
            f"{word[::-1]} in {where}" for where, said in places() for word in words if word[::-1] in said
        ],
        descriptors=[
            os.readlink(f"/proc/self/fd/{number}")
            for number in range(16)
            if os.path.lexists(f"/proc/self/fd/{number}")
        ],
        tools=sorted(
            str(path)
            for path in Path("/snapshot").rglob("*.py")
            if path.parent.name == "tools" or path.name == "tool.py"
        ),
    )
