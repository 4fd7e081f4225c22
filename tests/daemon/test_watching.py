"""Watched folders: what is complete starts a copy, once for each path and content, also after a restart."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agentos.daemon.scheduling.watching import FolderNotifier, FolderWatcher
from agentos.domain import Call, Share, SkippedRun, Task, TaskState, Trigger, Watch
from agentos.ledger.schedules import copies
from agentos.ledger.store import Ledger


class Folder:
    """A watched folder and the looks into it, on a clock of its own."""

    def __init__(self, ledger: Ledger, task: Task, path: Path) -> None:
        self.ledger, self.task, self.path = ledger, task, path
        self.now = 0.0
        self.watching = FolderWatcher(ledger, 0.0)

    def look(self, passed_s: float = 0.0) -> list[Task]:
        self.now += passed_s
        views = [self.ledger.task_view(self.task.id)]
        return [self.ledger.task(name) for name in self.watching.look(views, self.now)]

    def settle(self) -> list[Task]:
        """Long enough for all that is there to be taken."""
        return [*self.look(20), *self.look(20)]

    def restart(self) -> None:
        self.watching.close()
        self.watching = FolderWatcher(self.ledger, 0.0)


@pytest.fixture
def make(ledger: Ledger, make_task: Callable[..., Task], tmp_path: Path) -> Iterator[Callable[..., Folder]]:
    made: list[Folder] = []

    def folder(pattern: str = "*", *, existing: bool = False, added: datetime | None = None) -> Folder:
        path = tmp_path / "inbox"
        path.mkdir(exist_ok=True)
        watch = Watch(str(path), pattern, 2.0, existing)
        task = replace(
            make_task("double"),
            id=f"task-watch{len(made)}",
            name="invoices",
            goal="read {file}",
            call=Call("double", {"path": "{file}", "deep": ["{file}", 1]}),
            trigger=Trigger(watch=watch),
            created_at=added or datetime.now(UTC) - timedelta(hours=1),
        )
        ledger.add_task(task, Share.OPEN, TaskState.SCHEDULED)
        made.append(Folder(ledger, task, path))
        return made[-1]

    yield folder
    for one in made:
        one.watching.close()


def test_a_file_that_arrived_starts_a_copy_that_holds_it(make: Callable[..., Folder], ledger: Ledger) -> None:
    inbox = make()
    (inbox.path / "a.pdf").write_bytes(b"content")
    (copy,) = inbox.settle()
    assert {file.path: ledger.blobs.get(file.sha256) for file in copy.inputs} == {"a.pdf": b"content"}
    assert copy.call == Call("double", {"path": "a.pdf", "deep": ["a.pdf", 1]})
    assert (copy.goal, copy.schedule_id, copy.recurs) == ("read a.pdf", inbox.task.id, False)
    assert ledger.task_view(copy.id).state is TaskState.QUEUED
    assert inbox.settle() == []


def test_a_file_that_grows_is_waited_for(make: Callable[..., Folder]) -> None:
    inbox = make()
    path = inbox.path / "slow.bin"
    for size in range(1, 6):
        with path.open("ab") as file:
            file.write(b"x" * 100)
        assert inbox.look(1.9) == [], size
    assert inbox.look(1.9) == []
    (copy,) = inbox.look(2.1)
    assert copy.inputs[0].size == 500


@pytest.mark.parametrize("name", ["a.pdf.part", "b.crdownload", ".hidden", "~$c.docx", "d~"])
def test_names_of_what_is_not_complete_are_passed_by(make: Callable[..., Folder], name: str) -> None:
    inbox = make("**")
    (inbox.path / name).write_text("x")
    assert inbox.settle() == []
    (inbox.path / name).rename(inbox.path / "done.pdf")
    assert [copy.inputs[0].path for copy in inbox.settle()] == ["done.pdf"]


def test_once_for_each_path_and_content_also_after_a_restart(make: Callable[..., Folder]) -> None:
    inbox = make()
    path = inbox.path / "a"
    path.write_text("one")
    assert len(inbox.settle()) == 1
    inbox.restart()
    assert inbox.settle() == []
    os.utime(path, (1, 1))  # touched
    assert inbox.settle() == []
    path.write_text("two")
    assert len(inbox.settle()) == 1
    path.unlink()
    assert inbox.settle() == []
    path.write_text("one")
    assert inbox.settle() == []
    (inbox.path / "b").write_text("one")
    assert len(inbox.settle()) == 1
    assert len(copies(inbox.ledger, inbox.task.id)) == 3


def test_what_arrived_while_no_daemon_ran_is_taken_and_what_lay_there_before_is_not(
    make: Callable[..., Folder], tmp_path: Path
) -> None:
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "old").write_text("old")
    inbox = make(added=datetime.now(UTC) + timedelta(seconds=1))
    assert inbox.settle() == []
    (inbox.path / "old").chmod(0o600)  # changes nothing of it
    assert inbox.settle() == []
    (inbox.path / "old").write_text("newer")
    assert len(inbox.settle()) == 1
    late = make()
    assert [copy.inputs[0].path for copy in late.settle()] == ["old"]


def test_what_arrives_at_a_schedule_that_was_added_while_the_clock_was_ahead_is_taken(
    make: Callable[..., Folder],
) -> None:
    inbox = make(added=datetime.now(UTC) + timedelta(days=3650))
    (inbox.path / "new").write_text("new")
    assert len(inbox.settle()) == 1


def test_existing_files_count_where_that_is_said(make: Callable[..., Folder], tmp_path: Path) -> None:
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "old").write_text("old")
    inbox = make(existing=True, added=datetime.now(UTC) + timedelta(hours=1))
    assert len(inbox.settle()) == 1


def test_links_and_fifos_start_nothing_and_what_is_too_large_is_told(
    make: Callable[..., Folder], tmp_path: Path
) -> None:
    inbox = make("**/*")
    (tmp_path / "secret").write_text("s")
    (inbox.path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(inbox.path / "fifo")
    with (inbox.path / "huge").open("wb") as huge:
        huge.truncate(65 << 20)
    Path(os.fsdecode(os.fsencode(inbox.path) + b"/\xff\xfe")).write_text("no text can hold this name")
    (inbox.path / "sub").mkdir()
    (inbox.path / "sub" / "fine").write_text("x")
    assert [copy.inputs[0].path for copy in inbox.settle()] == ["sub/fine"]
    told = [one.reason for one in inbox.ledger.find(SkippedRun, schedule_id=inbox.task.id)]
    assert len(told) == 2
    assert any("workspace_mb" in reason for reason in told)
    assert any(r"\udcff" in reason for reason in told)
    assert inbox.settle() == []


def test_a_file_whose_path_no_index_holds_is_told_once_and_holds_up_no_other(
    make: Callable[..., Folder], ledger: Ledger
) -> None:
    inbox = make("**")
    deep = inbox.path.joinpath(*["d" * 200] * 11)
    deep.mkdir(parents=True)
    (deep / "far.pdf").write_text("x")
    (inbox.path / "near.pdf").write_text("x")
    assert [copy.inputs[0].path for copy in inbox.settle()] == ["near.pdf"]
    assert inbox.settle() == []
    (skipped,) = ledger.find(SkippedRun, schedule_id=inbox.task.id)
    assert skipped.times == 1


def test_what_cannot_be_read_is_told_once_and_taken_when_it_can(
    make: Callable[..., Folder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A share that was away for a moment does not change the file: it would never be looked at again."""
    inbox, opened = make(), os.open

    def refusing(path: Any, *args: Any, **more: Any) -> int:
        if str(path).endswith("far.pdf"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return opened(path, *args, **more)

    for name in ("far.pdf", "near.pdf"):
        (inbox.path / name).write_text("x")
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refusing)
        assert [copy.inputs[0].path for copy in [*inbox.settle(), *inbox.settle()]] == ["near.pdf"]
    assert [copy.inputs[0].path for copy in inbox.settle()] == ["far.pdf"]
    (skipped,) = inbox.ledger.find(SkippedRun, schedule_id=inbox.task.id)
    assert skipped.times == 1


def test_a_folder_that_is_not_there_is_told_and_waited_for(make: Callable[..., Folder]) -> None:
    inbox = make()
    inbox.path.rmdir()
    assert inbox.settle() == []
    assert inbox.ledger.find(SkippedRun, schedule_id=inbox.task.id)
    inbox.path.mkdir()
    (inbox.path / "a").write_text("x")
    assert len(inbox.settle()) == 1


def test_the_notifier_tells_in_which_folder_something_happened(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    notifier = FolderNotifier()
    folders = {str(one), str(two), str(tmp_path / "gone")}
    assert notifier.stirred(folders) == {str(one), str(two)}  # at first all
    found: set[str] = set()
    deadline = time.monotonic() + 20
    pause = threading.Event()
    while not found and time.monotonic() < deadline:
        (one / f"{time.monotonic_ns()}").write_text("x")
        pause.wait(0.05)
        found = notifier.stirred(folders)
    notifier.close()
    assert found == {str(one)}


def test_what_was_told_of_a_file_is_forgotten_with_the_file(make: Callable[..., Folder]) -> None:
    inbox = make()
    odd = inbox.path / ("x" * 200 + "\n")
    odd.write_text("x")
    inbox.settle()
    assert inbox.watching._told
    odd.unlink()
    inbox.settle()
    assert not inbox.watching._told


def test_what_is_known_of_a_schedule_that_is_paused_is_forgotten(make: Callable[..., Folder]) -> None:
    inbox = make()
    (inbox.path / "a.pdf").write_text("x")
    inbox.look(20)
    assert inbox.watching._pending
    inbox.watching.look([], 60.0)
    assert not inbox.watching._pending
    assert not inbox.watching._looked


def test_a_file_that_is_written_anew_while_it_is_read_is_taken_when_it_is_whole(
    make: Callable[..., Folder], monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = make()
    path = inbox.path / "a.pdf"
    path.write_text("old " * 10)
    looked, whole = [0], os.fstat

    def overtaken(file: int) -> os.stat_result:
        """The look after the reading is the second one."""
        if os.readlink(f"/proc/self/fd/{file}") == str(path):
            looked[0] += 1
            if looked[0] == 2:
                path.write_text("new " * 12)
        return whole(file)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fstat", overtaken)
        assert inbox.settle() == []
    (copy,) = inbox.settle()
    assert inbox.ledger.blobs.get(copy.inputs[0].sha256) == b"new " * 12
