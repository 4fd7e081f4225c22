"""Backups beside what changes the home's files at the same moment: git's housekeeping, and a person's editor."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentos.daemon.upkeep.backup import _Digested, back_up, restore
from agentos.errors import Unavailable
from agentos.home import Home
from agentos.registry.git import environment
from agentos.registry.store import Registry

SKILL = "skill/test-kit/SKILL.md"


@contextmanager
def beside(work: Callable[[], None]) -> Iterator[list[int]]:
    """``work`` again and again on a thread; how often, in the list's first place."""
    stop, done, errors = threading.Event(), [0], []

    def again() -> None:
        try:
            while not stop.is_set():
                work()
                done[0] += 1
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    thread = threading.Thread(target=again)
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("how", ["gc", "maintain"])
@pytest.mark.slow
def test_the_registry_is_whole_in_a_backup_that_git_packs_beside(
    home: Home, tmp_path: Path, how: str
) -> None:
    registry, number = Registry(home.registry), [0]

    def pack() -> None:
        number[0] += 1
        page = f"---\nname: test-kit\ndescription: Version {number[0]}.\n---\n"
        registry.commit({SKILL: page.encode()}, f"Version {number[0]}", "edit")
        if how == "maintain":
            registry.maintain(loose=0)
            return
        command = ["git", f"--git-dir={home.registry}", "gc", "--quiet", "--prune=now"]
        subprocess.run(command, env=environment(), check=True, capture_output=True)

    with beside(pack) as done:
        for turn in range(3):
            reached = done[0]
            while done[0] == reached:
                os.sched_yield()
            back_up(home, tmp_path / f"{turn}.tar")
    for turn in range(3):
        again = Home(tmp_path / f"again-{turn}")
        audited, _ = restore(again, tmp_path / f"{turn}.tar")
        assert audited.faults == ()
        assert Registry(again.registry).check().faults == ()


def test_a_file_that_is_cut_while_it_is_read_is_no_file_of_zeros() -> None:
    reading = _Digested(io.BytesIO(b"abc"), 5)
    assert reading.read(3) == b"abc"
    with pytest.raises(OSError, match="became shorter"):
        reading.read(2)


@pytest.mark.slow
def test_what_an_editor_cuts_and_writes_again_is_read_again_or_refused(home: Home, tmp_path: Path) -> None:
    path = home.skills / "draft.txt"
    path.write_bytes(b"x" * 3_000_000)

    def edit() -> None:
        os.truncate(path, 10)
        with path.open("ab") as file:
            file.write(b"x" * 3_000_000)

    with beside(edit):
        for turn in range(4):
            target = tmp_path / f"{turn}.tar"
            try:
                back_up(home, target)
            except Unavailable:  # it says which file, and leaves nothing
                assert not target.exists()
                continue
            with tarfile.open(target) as tar:
                member = tar.extractfile("skills/draft.txt")
                assert member is not None
                assert set(member.read()) == {ord("x")}
