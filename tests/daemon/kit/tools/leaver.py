"""Leaves files, a link to the shadow file, a fifo and a nasty name."""

import os
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "leaver",
    "description": "Leaves files, a link to the shadow file, a fifo and a nasty name.",
    "effects": ["write"],
    "dependencies": [],
}


class Input(BaseModel):
    n: int = 0


class Output(BaseModel):
    n: int


def run(input: Input) -> Output:
    Path("report.txt").write_text("all is well")
    Path("deep/er").mkdir(parents=True)
    Path("deep/er/data.bin").write_bytes(bytes(range(256)))
    os.symlink("/etc/shadow", "shadow")
    os.mkfifo("pipe")
    return Output(n=1)
