"""A list of tasks is added whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentos.daemon.control.daemon_lock import start_daemon
from agentos.daemon.process import run_daemon
from agentos.daemon.setup import add_tasks, init_home
from agentos.daemon.upkeep.doctor import examine
from agentos.errors import ErrorKind, Invalid, UserError
from agentos.home import Home
from agentos.ledger.listing import counts
from agentos.ledger.reading import Reader
from agentos.settings import load_settings
from agentos.taskfile import drafts_of
from tests.refusals import raises

MANY = 300


def test_one_input_that_cannot_be_read_adds_nothing(home: Home, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("fine")
    text = "- {goal: one, inputs: [a.txt]}\n- {goal: two, inputs: [/proc/self/mem]}\n"
    with raises(Invalid, names=["/proc/self/mem"]):
        add_tasks(home, drafts_of(text.encode(), "the tasks", tmp_path))
    with raises(Invalid, names=["*.zip"]):
        add_tasks(home, drafts_of(b"{goal: one, inputs: ['*.zip']}", "the tasks", tmp_path))
    drafts = drafts_of(b"- {goal: one, inputs: [a.txt]}\n- {goal: two}\n", "the tasks", tmp_path)
    (tmp_path / "a.txt").unlink()  # after the file was read
    with raises(Invalid, names=["a.txt"]):
        add_tasks(home, drafts)
    assert Reader(home.ledger).tasks() == []


def test_a_file_where_a_folder_of_the_home_belongs_is_named(home: Home) -> None:
    shutil.rmtree(home.logs)
    home.logs.write_text("")
    for begins in (start_daemon, init_home, lambda home: run_daemon(home, console=False)):
        with raises(UserError, ErrorKind.TAKEN, names=[str(home.logs)]):
            begins(home)
    assert [str(home.logs) in found.what for found in examine(home, fix=False)].count(True) == 1


def test_an_input_that_is_a_device_by_now_is_not_read(home: Home, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("fine")
    drafts = drafts_of(b"{goal: one, inputs: [a.txt]}", "the task", tmp_path)
    (tmp_path / "a.txt").unlink()
    (tmp_path / "a.txt").symlink_to("/dev/null")  # /dev/zero would never end
    with pytest.raises(Invalid):
        add_tasks(home, drafts)
    assert Reader(home.ledger).tasks() == []


@pytest.mark.slow
def test_a_kill_in_the_middle_adds_all_or_none(home: Home, tmp_path: Path) -> None:
    (tmp_path / "many.json").write_text(json.dumps([{"goal": f"task {n}"} for n in range(MANY)]))
    command = [
        sys.executable,
        "-m",
        "agentos",
        "--home",
        str(home.root),
        "task",
        "add",
        str(tmp_path / "many.json"),
    ]
    wal = home.root / "ledger.db-wal"
    reader, before, seen = Reader(home.ledger), 0, set()
    for pause_s in (0.0, 0.002, 0.01, 0.03):
        child = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ
        )
        size = wal.stat().st_size if wal.exists() else 0
        while child.poll() is None and (not wal.exists() or wal.stat().st_size == size):
            time.sleep(0.001)  # until it begins to write
        time.sleep(pause_s)
        child.send_signal(signal.SIGKILL)
        child.wait()
        now = counts(reader).tasks.get("queued", 0)
        seen.add(now - before)
        before = now
    assert seen <= {0, MANY}, seen


@pytest.mark.skipif(os.geteuid() != 0, reason="about root only")
def test_init_gives_settings_of_a_persons_own_the_uid_that_root_needs(home: Home) -> None:
    home.settings.write_text("parallel = 3\n[budget]\nday_usd = 1.0\n")
    assert init_home(home)
    made = load_settings(home.settings)
    assert made.run_uid
    assert (made.parallel, made.budget.day_usd) == (3, 1.0)
    assert not init_home(home)
    assert load_settings(home.settings).run_uid == made.run_uid
