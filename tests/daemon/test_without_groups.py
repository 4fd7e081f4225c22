"""A daemon that may make no control groups: the daemon and the check say the same, and say what is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from agentos.domain import Result, Task
from agentos.home import Home
from agentos.ledger.reading import Reader

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="hiding control groups needs root"),
]
HIDDEN = ["unshare", "--mount", "--propagation", "private", "sh", "-c"]
HIDE = 'umount -R /sys/fs/cgroup 2>/dev/null || umount -a -t cgroup,cgroup2; exec "$@"'


def test_tasks_run_and_both_say_what_is_missing(
    daemon: Any,
    home: Home,
    add: Callable[[Task], Task],
    make_task: Callable[..., Task],
    all_done: Callable[..., None],
) -> None:
    daemon.before = [*HIDDEN, HIDE, "sh"]
    daemon.environment = {"AGENTOS_SANDBOX": "bubblewrap"}
    daemon.start()
    task = add(make_task("double", n=2, expect=4))
    all_done(60)
    (run,) = Reader(home.ledger).runs(task.id)
    assert run.outcome is not None
    assert run.outcome.result is Result.PASSED
    assert "Delegate=yes" in (home.logs / "daemon.log").read_text()
    check = [sys.executable, "-m", "agentos", "--home", str(home.root), "sandbox", "check", "bubblewrap"]
    done = subprocess.run([*HIDDEN, HIDE, "sh", *check, "--quick", "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["sandboxes"]
    assert found["level"] == "namespace"
    assert "Tasks run all the same" in found["remark"]
