"""What killed processes left outside the home, and what a machine that is too small is told."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentos.daemon.control.daemon_lock import DaemonLock
from agentos.daemon.upkeep.doctor import examine
from agentos.daemon.upkeep.status import daemon_status
from agentos.home import Home

OLD = ("agentos-scan-k3xq81_a", "agentos-wheels-00000000")
OTHERS = ("agentos-scan-mine", "agentos-backup.tar", "elsewhere-scan-k3xq81_a")


def test_old_temporary_folders_are_found_and_cleared_and_nothing_else(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    for name in (*OLD, *OTHERS, "agentos-edit-abcdefgh"):
        (scratch / name).mkdir(parents=True)
        (scratch / name / "file").touch()
    (scratch / "agentos-probe-abcdefgh").touch()
    (scratch / "agentos-ask-abcdefgh").symlink_to(scratch / OTHERS[0])
    for path in scratch.iterdir():
        if path.name != "agentos-edit-abcdefgh":  # somebody is at work there
            os.utime(path, (time.time() - 2 * 86_400,) * 2, follow_symlinks=False)
    found = [finding for finding in examine(home, fix=True) if str(scratch) in finding.what]
    assert len(found) == len(OLD) + 1
    assert all(finding.mended for finding in found)
    left = {path.name for path in scratch.iterdir()}
    assert left == {*OTHERS, "agentos-edit-abcdefgh", "agentos-ask-abcdefgh"}


def test_status_names_boxes_that_would_not_go(home: Home) -> None:
    lock = DaemonLock(home)
    try:
        assert daemon_status(home).overdue == ()
        lock.name_overdue(("the box of run-1 is not gone",))
        assert daemon_status(home).overdue == ("the box of run-1 is not gone",)
    finally:
        lock.release()
    assert daemon_status(home).overdue == ()


def test_what_a_kill_left_of_telling_who_the_daemon_is_the_next_one_takes_away(home: Home) -> None:
    ends = "import os, sys; from pathlib import Path; Path.rename = lambda *_: os._exit(9)"  # before it is in place
    takes = "from agentos.daemon.control.daemon_lock import DaemonLock; from agentos.home import Home"
    script = f"{ends}; {takes}; DaemonLock(Home(Path(sys.argv[1])))"
    done = subprocess.run([sys.executable, "-P", "-c", script, str(home.root)], check=False)
    assert done.returncode == 9
    assert [path.name for path in home.run.glob("daemon.json*")] == ["daemon.json.new"]
    DaemonLock(home).release()
    assert [*home.run.glob("daemon.json*")] == []


@pytest.mark.sandbox
def test_a_daemon_that_may_open_too_few_files_says_so(home: Home) -> None:
    # An engine beside bubblewrap holds its descriptors itself, and would do.
    home.settings.write_text(home.settings.read_text() + '\nsandbox = "bubblewrap"\n')
    command = [sys.executable, "-P", "-m", "agentos", "--home", str(home.root), "daemon", "run", "--quiet"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)),
        check=False,
    )
    assert done.returncode == 1
    assert "the hard limit here is 64: raise it" in done.stderr
    assert "end of stream" not in done.stderr
