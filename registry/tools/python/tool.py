"""Runs a Python script."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

from pydantic import BaseModel, Field

TOOL = {
    "name": "python",
    "description": (
        "Run a Python script in the workspace and get what it prints. For arithmetic, parsing and whatever no "
        "other tool does; the standard library is there, the network is not"
    ),
    "effects": ["read", "write"],
    "dependencies": [],
}

SHOWN = 30_000  # bytes of each stream: the first and the last half of it


class Input(BaseModel):
    code: str = Field(min_length=1, description="The whole script; print what you want to see")
    timeout_s: float = Field(60.0, gt=0, le=3_600)


class Output(BaseModel):
    exit: int = Field(description="0 when it went well; negative: the signal that ended it")
    timed_out: bool
    stdout: str
    stderr: str = Field(description="With the traceback, if it raised")


def run(input: Input) -> Output:
    """A script that fails is no failure of the tool: its exit status says so."""
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        script = Path(folder, "script.py")
        script.write_text(input.code, encoding="utf-8")
        process = subprocess.Popen(
            [sys.executable, "-s", "-B", script],
            env=os.environ | {"PYTHONPATH": os.getcwd()},  # modules of the workspace can be imported
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
