"""Disk space from the output of df."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "disk_space",
    "description": "Which mount points of a listing of df are used beyond a percentage (of used and available together), with gigabytes free (1 GB is 1024² blocks, two decimals), and all that is free; columns are separated by one or more spaces or tabs",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    limit: float = 90


class Output(BaseModel):
    full: dict[str, float]
    free: float
    mounts: int


def run(input: Input) -> Output:
    full: dict[str, float] = {}
    free = 0
    mounts = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines()[1:]:
        if not line.strip():
            continue
        _, _, used, available, _, mount = line.split(" ", 5)
        total = int(used) + int(available)
        free += int(available)
        mounts += 1
        if total and 100 * int(used) / total > input.limit:
            full[mount] = round(int(available) / 1024**2, 2)
    return Output(full=full, free=round(free / 1024**2, 2), mounts=mounts)
