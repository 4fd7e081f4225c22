"""Runs a shell command."""

import os
import shutil
import signal
import subprocess
import tempfile
from typing import IO

from pydantic import BaseModel, Field

TOOL = {
    "name": "shell",
    "description": (
        "Run a shell command in the workspace: no network, nothing to type in; what it starts ends with it"
    ),
    "effects": ["read", "write"],
    "dependencies": [],
}

SHOWN = 30_000  # bytes of each stream: the first and the last half of it


class Input(BaseModel):
    command: str = Field(min_length=1, description="As one would type it; bash where there is one, else sh")
    timeout_s: float = Field(60.0, gt=0, le=3_600)


class Output(BaseModel):
    exit: int = Field(description="0 when it went well; negative: the signal that ended it")
    timed_out: bool
    stdout: str
    stderr: str


def run(input: Input) -> Output:
    """A command that fails is no failure of the tool: its exit status says so."""
    shell = shutil.which("bash") or "/bin/sh"
    # Files, because a pipe would have to be emptied, and could be held open by what outlives the shell.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            [shell, "-c", input.command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        timed_out = False
        try:
            process.wait(input.timeout_s)
        except subprocess.TimeoutExpired:
            timed_out = True
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return Output(exit=process.returncode, timed_out=timed_out, stdout=shown(out), stderr=shown(err))


def shown(file: IO[bytes]) -> str:
    """Head and tail of what was written."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size <= SHOWN:
        return file.read().decode("utf-8", "replace")
    head = file.read(SHOWN // 2).decode("utf-8", "replace")
    file.seek(-SHOWN // 2, os.SEEK_END)
    return f"{head}\n[… {size - SHOWN} bytes left out …]\n{file.read().decode('utf-8', 'replace')}"
