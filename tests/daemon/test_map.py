"""The map of a task (docs/contribute/map.md) against what one enters on the kernel's side."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from agentos.daemon.service import service
from agentos.domain import Task, TaskState
from agentos.home import Home
from agentos.sandboxes.choice import Choice
from agentos.settings import load_settings

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = str(ROOT / "agentos") + "/"


@pytest.mark.sandbox
@pytest.mark.slow
def test_the_map_says_how_many_files_a_task_enters(
    home: Home, choice: Choice, add: Callable[[Task], Task], make_task: Callable[..., Task]
) -> None:
    page = (ROOT / "docs" / "contribute" / "map.md").read_text()
    entered: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            entered.add(frame.f_code.co_filename.removeprefix(f"{ROOT}/"))

    task = add(make_task("double", n=21, expect=42))
    with service(home, load_settings(home.settings), given=choice) as served:
        served.sandbox.start()
        served.swap.settle()  # as the daemon does after its launch, and whenever main moved
        before = sys.getprofile(), threading.getprofile()
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            assert served.tasks.attempt(task.id, datetime.now(UTC))
        finally:
            sys.setprofile(before[0])
            threading.setprofile(before[1])
        assert served.ledger.task_view(task.id).state is TaskState.DONE
    (stated,) = re.findall(r"files by one task with a named tool.*?\| (\d+) \|", page)
    assert len(entered) <= int(stated), sorted(entered)
