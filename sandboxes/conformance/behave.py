"""A tool that behaves badly, as it is told."""

from __future__ import annotations

import os
import sys
import time

from pydantic import BaseModel

TOOL = {"name": "behave", "description": "Behaves badly, as it is told.", "effects": ["pure"]}


class Input(BaseModel):
    how: str


class Output(BaseModel):
    said: str


def run(input: Input) -> Output:
    return Output(said=str(globals()[input.how]()))


def talk() -> str:
    print("out " * 1000)
    print("err", file=sys.stderr)
    sys.stdout.buffer.write(b"\xff\xfe not utf-8\n")
    return "ä\u2028\U0001f600"


def read_stdin() -> str:
    return repr(sys.stdin.read())


def hang() -> None:
    time.sleep(600)


def die() -> None:
    os.kill(os.getpid(), 11)


def daemonise() -> str:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    return "daemon left"


def eat() -> int:
    held = []
    while True:
        held.append(b"x" * (8 << 20))


def fork() -> int:
    """How many children could live at once; they are left."""
    born = 0
    try:
        while born < 500:
            if os.fork() == 0:
                time.sleep(600)
                os._exit(0)
            born += 1
    except OSError:
        pass
    return born


def list_processes() -> int:
    """Processes in sight; the worker, the tool's host and this one are to be there."""
    return len([name for name in os.listdir("/proc") if name.isdigit()])
