"""Files that are written aside: whole or as they were, whatever the disk has room for."""

from __future__ import annotations

import errno
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentos.durable import write_whole
from tests.refusals import raises


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """As a disk that becomes full after so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_keeps_its_mode_and_the_link_to_it(tmp_path: Path) -> None:
    file, link = tmp_path / "dotfiles", tmp_path / "agentos.toml"
    write_whole(file, b"one")
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o640)
    link.symlink_to(file.name)
    write_whole(link, b"two")
    assert (link.is_symlink(), file.read_bytes(), file.stat().st_mode & 0o777) == (True, b"two", 0o640)


def test_what_is_refused_or_has_no_room_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_whole(file, b"one")

    def refuse(aside: Path) -> None:
        raise ValueError(aside.read_text())

    with raises(ValueError, names=["two"]):
        write_whole(file, b"two", refuse)
    with no_file_beyond(1_000), raises(OSError, names=[f"[Errno {errno.EFBIG}]"]):
        write_whole(file, b"x" * 2_000)
    assert file.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [file]
