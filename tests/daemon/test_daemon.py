"""A real daemon process: takes tasks, drains, survives, and there is only ever one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import agentos
from agentos.daemon.control.daemon_lock import DaemonLock, daemon_info, start_daemon, stop_daemon
from agentos.daemon.upkeep.status import daemon_status
from agentos.domain import Limits, Result, Share, Task, TaskState
from agentos.errors import HomeBusy, NotFound, Unavailable
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.sandboxes import cgroups
from agentos.sandboxes.owner import GROUPS, home_id, notes
from agentos.sandboxes.reaper import leftovers
from tests.daemon.conftest import Daemon, until
from tests.refusals import raises

pytestmark = pytest.mark.sandbox

SKILL = """---
name: fresh-kit
description: A skill that was dropped while the daemon ran.
---
"""


def result_of(home: Home, task: Task) -> Result | None:
    runs = Reader(home.ledger).runs(task.id)
    return runs[0].outcome.result if runs and runs[0].outcome else None


@pytest.fixture(scope="module")
def running(made_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One that is at work, for tests that leave it so."""
    home = Home(tmp_path_factory.mktemp("running") / "home")
    shutil.copytree(made_home, home.root)
    made = Daemon(home).start()
    yield made
    made.close()


def test_tasks_of_a_running_daemon_are_done_and_sigterm_drains(
    daemon: Any, add: Callable[[Task], Task], make_task: Callable[..., Task], until: Any, home: Home
) -> None:
    daemon.start()
    quick = [add(make_task("double", n=n, expect=2 * n)) for n in range(4)]
    until(lambda: all(result_of(home, task) is Result.PASSED for task in quick), "the quick tasks passed")
    slow = add(make_task("sleeper", n=2, expect=2))
    until(lambda: Reader(home.ledger).task_view(slow.id).state is TaskState.RUNNING, "it runs")
    daemon.signal(signal.SIGTERM)
    until(lambda: "draining" in (home.logs / "daemon.log").read_text(), "it drains")
    late = add(make_task("double", n=1))
    assert daemon.ended() == 0
    assert result_of(home, slow) is Result.PASSED
    assert Reader(home.ledger).task_view(late.id).state is TaskState.QUEUED
    assert daemon_info(home) is None


def test_a_second_sigterm_stops_at_once_and_the_task_runs_again(
    daemon: Any, add: Callable[[Task], Task], make_task: Callable[..., Task], until: Any, home: Home
) -> None:
    daemon.start()
    slow = add(make_task("sleeper", n=30, limits=Limits(wall_s=60.0)))
    until(lambda: len(Reader(home.ledger).runs(slow.id)) == 1, "it runs")
    daemon.signal(signal.SIGTERM)
    until(lambda: "draining" in (home.logs / "daemon.log").read_text(), "it drains")
    daemon.signal(signal.SIGTERM)
    assert daemon.ended(60) == 0
    assert list(cgroups.labelled(home_id(home.root))) == []
    assert notes(home.root / GROUPS) == []
    assert result_of(home, slow) is None
    daemon.start()
    until(lambda: len(Reader(home.ledger).runs(slow.id)) == 2, "a second attempt")
    assert [run.attempt for run in Reader(home.ledger).runs(slow.id)] == [2, 1]
    assert Reader(home.ledger).runs(slow.id)[1].outcome.result is Result.INFRA  # type: ignore[union-attr]


def test_a_running_task_can_be_cancelled(running: Daemon, make_task: Callable[..., Task]) -> None:
    with closing(Ledger(running.home.ledger)) as ledger:
        slow = make_task("sleeper", n=60, limits=Limits(wall_s=60.0))
        ledger.add_task(slow, Share.OPEN)
        until(lambda: len(ledger.runs(slow.id)) == 1, "it runs")
        assert ledger.set_task_state(slow.id, (TaskState.RUNNING,), TaskState.CANCELLED)
        until(lambda: result_of(running.home, slow) is Result.CANCELLED, "the run is cancelled", 5)
        assert ledger.task_view(slow.id).state is TaskState.CANCELLED


def test_a_dropped_skill_serves_the_next_task_and_a_bad_one_is_refused(
    running: Daemon, make_task: Callable[..., Task]
) -> None:
    home = running.home
    kit = Path(__file__).parent / "kit" / "tools"
    good, bad = home.skills / "fresh-kit", home.skills / "bad-kit"
    source = (kit / "double.py").read_text()
    for folder, text in ((good, source), (bad, "import nothing_like_it\n" + source)):
        (folder / "tools").mkdir(parents=True)
        (folder / "SKILL.md").write_text(SKILL.replace("fresh-kit", folder.name))
        (folder / "tools" / "triple.py").write_text(text.replace("double", "triple").replace("* 2", "* 3"))
    started = time.monotonic()
    reader = Reader(home.ledger)
    until(lambda: reader.entries(subject="skill/fresh-kit"), "the skill is in the registry", 10)
    assert time.monotonic() - started < 30  # 2 s on an idle machine; a look at everything comes after 60
    task = make_task("fresh-kit/triple", n=7, expect=21)
    with closing(Ledger(home.ledger)) as ledger:
        ledger.add_task(task, Share.OPEN)
    until(lambda: result_of(home, task) is Result.PASSED, "its tool works")
    until(lambda: reader.get_kv("skills.refused"), "the bad one is refused")
    assert list(reader.get_kv("skills.refused")) == [str(bad)]


def test_two_daemons_on_one_home_are_one_too_many(running: Daemon, tmp_path: Path) -> None:
    assert running.child is not None
    with raises(HomeBusy, names=[f"pid {running.child.pid}"]):
        DaemonLock(running.home)
    with raises(NotFound, type_next="agentos init"):
        DaemonLock(Home(tmp_path / "nowhere"))


def delete_at_once(folder: Path) -> None:
    """With a daemon that writes into it meanwhile: file by file it would not become empty."""
    aside = folder.with_name("deleted")
    folder.rename(aside)
    shutil.rmtree(aside)


def test_a_daemon_whose_run_directory_was_deleted_is_still_the_only_one_and_can_be_stopped(
    daemon: Any, home: Home, until: Any
) -> None:
    daemon.start()
    delete_at_once(home.run)
    until(lambda: (info := daemon_info(home)) and info.ready, "it says again who it is")
    delete_at_once(home.run)
    with raises(HomeBusy, type_next="agentos daemon stop"):
        DaemonLock(home)
    until(lambda: daemon_info(home), "it says again who it is")
    assert stop_daemon(home, at_once=True)


def test_a_daemon_of_a_later_release_is_seen(home: Home) -> None:
    lock = DaemonLock(home)
    path = home.run / "daemon.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"of_a_later_release": 1}))
    assert daemon_info(home).alive  # type: ignore[union-attr]
    lock.release()


def test_a_copy_of_a_home_has_no_daemon_and_stops_none(running: Daemon, tmp_path: Path) -> None:
    """It told of the daemon of the home that it was copied from, and `daemon stop` there ended that one."""
    copy, link = Home(tmp_path / "copy"), Home(tmp_path / "link")
    copy.run.mkdir(parents=True)
    shutil.copy(running.home.run / "daemon.json", copy.run)
    link.root.symlink_to(running.home.root)
    assert not daemon_info(copy).alive  # type: ignore[union-attr]
    assert stop_daemon(copy, at_once=True) == ""
    for home in (running.home, link):
        assert daemon_info(home).alive  # type: ignore[union-attr]


@pytest.mark.slow
def test_a_daemon_begins_nothing_once_another_release_was_installed(
    home: Home, tmp_path: Path, add: Callable[[Task], Task], make_task: Callable[..., Task], until: Any
) -> None:
    source = Path(agentos.__file__).parent
    shutil.copytree(source, tmp_path / "installed" / "agentos")
    for name in ("registry", "evolver", "skills", "sandboxes"):
        (tmp_path / "installed" / name).symlink_to(source.parent / name)
    program = tmp_path / "installed" / "agentos" / "__init__.py"
    own = program.read_text()
    made = Daemon(home, before=["env"], environment={"PYTHONPATH": str(tmp_path / "installed")}).start()
    try:
        program.write_text(own.replace(agentos.__version__, "99.0"))
        until(lambda: daemon_status(home).state == "paused", "it pauses")
        task = add(make_task("double", n=2, expect=4))
        assert "99.0" in daemon_status(home).why
        assert Reader(home.ledger).task_view(task.id).state is TaskState.QUEUED
        program.write_text(own)
        until(lambda: result_of(home, task) is Result.PASSED, "it goes on with its own files")
    finally:
        made.close()


@pytest.fixture
def hung(home: Home) -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds the home as its daemon and hears no SIGTERM."""
    code = (
        "import signal, sys; from pathlib import Path; from agentos.home import Home;"
        "from agentos.daemon.control.daemon_lock import DaemonLock;"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM]);"
        "lock = DaemonLock(Home(Path(sys.argv[1]))); print(flush=True); signal.pause()"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(home.root)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield child
        child.kill()


def test_a_daemon_that_hangs_is_killed_where_it_is_to_stop_at_once(
    hung: subprocess.Popen[bytes], home: Home
) -> None:
    assert stop_daemon(home, at_once=True, patience_s=0.5) == "killed"
    assert hung.wait() == -signal.SIGKILL
    DaemonLock(home).release()


def test_a_daemon_that_somebody_suspended_can_be_stopped(daemon: Any, home: Home) -> None:
    daemon.start()
    daemon.signal(signal.SIGSTOP)
    assert stop_daemon(home, at_once=False) == "stopped"
    assert stop_daemon(home, at_once=True) == ""


def test_a_home_without_its_run_directory_is_a_home(home: Home) -> None:
    shutil.rmtree(home.run)
    lock = DaemonLock(home)
    assert daemon_info(home).alive  # type: ignore[union-attr]
    lock.release()


def test_a_killed_daemon_is_told_from_a_live_one_and_what_it_left_is_cleared_by_the_next(
    daemon: Any, add: Callable[[Task], Task], make_task: Callable[..., Task], until: Any, home: Home
) -> None:
    daemon.start()
    assert daemon_info(home).alive  # type: ignore[union-attr]
    slow = add(make_task("sleeper", n=30, limits=Limits(wall_s=60.0)))
    until(lambda: len(Reader(home.ledger).runs(slow.id)) == 1, "it runs")
    daemon.signal(signal.SIGKILL)
    daemon.ended()
    info = daemon_info(home)
    assert info is not None
    assert not info.alive
    # another process got the same pid meanwhile: the start time gives it away
    stale = json.loads((home.run / "daemon.json").read_text())
    (home.run / "daemon.json").write_text(json.dumps(stale | {"pid": os.getpid()}))
    assert not daemon_info(home).alive  # type: ignore[union-attr]
    (home.run / "daemon.json").write_text("{ half")
    assert daemon_info(home) is None
    daemon.start()
    assert daemon_info(home).alive  # type: ignore[union-attr]
    assert leftovers(home.root) == []


def test_bad_settings_are_one_sentence_and_no_daemon(daemon: Any, home: Home) -> None:
    home.settings.write_text("paralel = 2\n")
    daemon.start(wait=False)
    assert daemon.ended() == 1
    said = daemon.child.stderr.read().decode()
    assert "'paralel' is no setting" in said
    assert "Traceback" not in said


def test_one_that_cannot_say_that_it_is_ready_ends_and_does_not_wait_for_its_runs(
    daemon: Any, add: Callable[[Task], Task], make_task: Callable[..., Task], until: Any, home: Home
) -> None:
    add(make_task("sleeper", n=600, limits=Limits(wall_s=600.0)))
    daemon.start(wait=False)
    until(lambda: (home.run / "daemon.json").exists(), "it has begun", 60)
    (home.run / "daemon.json.new").mkdir()  # stands for a disk that is full by now
    assert daemon.ended(60) == 1
    assert "daemon.json.new" in daemon.child.stderr.read().decode()
    log = (home.logs / "daemon.log").read_text()
    assert "daemon.json.new" in log
    assert "closed database" not in log
    (home.run / "daemon.json.new").rmdir()
    assert daemon_info(home) is None
    daemon.start()


def test_that_there_is_no_room_for_its_words_is_said(tiny_home: Home) -> None:
    filler = tiny_home.root.parent / "filler"
    subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=4k"], stderr=subprocess.DEVNULL)
    with pytest.raises(Unavailable, match="No space left"):
        start_daemon(tiny_home)
    filler.unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small tmpfs needs root")
def test_a_full_disk_ends_in_a_sentence_and_loses_nothing(
    made_home: Path, tmp_path: Path, make_task: Callable[..., Task]
) -> None:
    place = tmp_path / "tiny"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", place], check=True)
    try:
        subprocess.run(["cp", "-r", made_home, place / "home"], check=True)
        home = Home(place / "home")
        ledger = Ledger(home.ledger)
        first = make_task("double", n=1)
        ledger.add_task(first, Share.OPEN)
        filler = place / "filler"
        subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=64k"], stderr=subprocess.DEVNULL)
        big = "x" * 100_000
        with pytest.raises(Unavailable, match=r"disk|full|space"):
            ledger.add_task(replace(make_task("double", n=1), goal=big), Share.OPEN)
        filler.unlink()
        assert ledger.task(first.id) == first
        assert ledger.verify() == []
        ledger.close()
    finally:
        subprocess.run(["umount", "-l", place], check=True)
