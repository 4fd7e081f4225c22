"""Memories brought from one form to another by code that may do anything."""

from __future__ import annotations

from typing import Any

import pytest

from agentos.messages import MigrateDone, MigrateJob
from tests.worker.conftest import Worker

PATH = "harness/default/migrate.py"
GOOD = "def migrate(memories):\n    return {name: text.replace('- ', 'fact: ') for name, text in memories.items()}\n"
BESIDE = {"harness/default/forms.py": "MARK = 'fact: '\n"}


def migrated(
    worker: Worker, source: str, memories: dict[str, str] | None = None, **given: Any
) -> MigrateDone:
    files = {PATH: source, **BESIDE}
    texts = {"notes": "- One\n- Two\n"} if memories is None else memories
    limits: dict[str, Any] = {"wall_s": 5.0, "memory_mb": 128, "output_bytes": 1 << 20} | given
    job = MigrateJob(path=PATH, files=list(files), memories=list(texts), **limits)
    worker.send(job, *(text.encode() for text in (*files.values(), *texts.values())))
    return MigrateDone.model_validate(worker.receive().head)


def test_texts_go_in_by_name_and_come_out_by_name(worker: Worker) -> None:
    done = migrated(worker, GOOD, {"notes": "- Größe\n", "empty": ""})
    assert done.fault is None
    assert done.output == {"notes": "fact: Größe\n", "empty": ""}


def test_it_may_use_what_lies_beside_it(worker: Worker) -> None:
    done = migrated(worker, "import forms\ndef migrate(memories):\n    return {'notes': forms.MARK}\n")
    assert done.output == {"notes": "fact: "}


@pytest.mark.parametrize(
    ("source", "type", "says"),
    [
        ("def migrate(memories:", "load", "never closed"),
        ("raise ValueError('no')", "load", "no"),
        ("x = 1", "load", "does not define 'def migrate(memories)'"),
        ("def migrate(memories):\n    return 1 // 0", "ZeroDivisionError", "by zero"),
        ("def migrate():\n    return {}", "TypeError", "positional"),
        ("import sys\ndef migrate(memories):\n    sys.exit(3)", "exit", "sys.exit(3)"),
        ("import os\ndef migrate(memories):\n    os._exit(3)", "exit", "status 3"),
        ("import os\ndef migrate(memories):\n    os.kill(os.getpid(), 9)", "signal", "SIGKILL"),
        ("def migrate(memories):\n    return {'notes': {1}}", "output", "not JSON"),
        ("def migrate(memories):\n    return {'notes': '\\ud800'}", "output", "not JSON"),
        ("def migrate(memories):\n    return {'notes': 'x' * (8 << 20)}", "limit", "larger than"),
        ("def migrate(memories):\n    return {'notes': 'x' * (1 << 30)}", "memory", "memory"),
        ("def migrate(memories):\n    while True: pass", "timeout", "within 1 s"),
        ("def migrate(memories):\n    while True: print('x' * 1000)", "limit", "printed"),
    ],
)
def test_whatever_it_does_it_ends_and_is_told(worker: Worker, source: str, type: str, says: str) -> None:
    done = migrated(worker, source, wall_s=1.0)
    assert done.output is None
    assert done.fault is not None
    assert done.fault.type == type
    assert says in done.fault.message
    assert worker.ended() == "good"


def test_what_it_writes_to_the_workers_pipe_is_no_answer(worker: Worker) -> None:
    source = "import os\ndef migrate(memories):\n    os.write(3, bytes(7) + b'\\x04null')\n    os._exit(0)\n"
    done = migrated(worker, source)
    assert done.fault is not None
    assert done.fault.type in ("protocol", "exit")
