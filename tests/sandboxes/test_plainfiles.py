"""The tar reader against archives that are meant to hurt."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentos.sandboxes.plainfiles import FileLimits, read_tar, write_tar


def archive(*members: tuple[str, bytes, bytes], format: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=format) as made:
        for name, kind, data in members:
            member = tarfile.TarInfo(name)
            member.type, member.size, member.linkname = kind, len(data), "/etc/shadow"
            made.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def plain(name: str, data: bytes = b"x") -> tuple[str, bytes, bytes]:
    return name, tarfile.REGTYPE, data


@pytest.mark.parametrize("format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_plain_files_come_out_whatever_the_format(format: int) -> None:
    names = ["a", "deep/er/b.txt", "x" * 90 + "/" + "y" * 90]
    files, refused = read_tar(archive(*(plain(name, name.encode()) for name in names), format=format))
    assert files == {name: name.encode() for name in names}
    assert refused == []


def test_what_was_written_is_read() -> None:
    files = {"ä/ö.txt": b"\0" * 1000, "long/" * 20 + "name" * 30: b"", "a": b"1"}
    assert read_tar(write_tar(files)).files == files
    assert write_tar(files) == write_tar(dict(reversed(files.items())))


@pytest.mark.parametrize(
    "kind",
    [
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.FIFOTYPE,
        tarfile.CHRTYPE,
        tarfile.BLKTYPE,
        tarfile.GNUTYPE_SPARSE,
        b"Z",
    ],
)
def test_everything_but_a_plain_file_is_refused_by_name(kind: bytes) -> None:
    files, refused = read_tar(archive(("trap", kind, b""), plain("good")))
    assert set(files) == {"good"}
    assert refused[0].startswith("'trap': ")


@pytest.mark.parametrize(
    "name",
    [
        "../up",
        "a/../../b",
        "/etc/passwd",
        "a//b",
        "a/./b",
        "..",
        ".",
        "esc\x1b[0m",
        "new\nline",
        "\u202egnp.exe",
        ".git/config",
        "sub/.GIT/hooks/x",
        "d/" * 30 + "deep",
        "n" * 2000,
    ],
)
def test_names_that_lead_elsewhere_or_lie_are_refused(name: str) -> None:
    files, refused = read_tar(archive(plain(name), plain("good")))
    assert set(files) == {"good"}
    assert len(refused) == 1
    assert refused[0].isprintable()


def test_a_name_that_is_no_text_is_refused() -> None:
    data = bytearray(archive(plain("name"), format=tarfile.GNU_FORMAT))
    data[0:4] = b"\xff\xfe\xff\xfe"
    assert read_tar(bytes(data)).files == {}


def test_a_file_cannot_be_replaced_or_become_a_directory() -> None:
    files, refused = read_tar(
        archive(plain("a", b"1"), plain("a", b"2"), plain("a/b"), plain("c/d"), plain("c"))
    )
    assert files == {"a": b"1", "c/d": b"x"}
    assert len(refused) == 3


def test_number_size_and_talk_are_limited() -> None:
    many = archive(*(plain(str(number), b"12345") for number in range(50)))
    files, refused = read_tar(many, FileLimits(files=10, refused=5))
    assert len(files) == 10
    assert len(refused) == 6
    assert refused[-1] == "and 35 more"
    assert len(read_tar(many, FileLimits(total_bytes=12)).files) == 2


def test_a_promised_size_is_not_believed() -> None:
    data = bytearray(archive(plain("big")))
    data[124:135] = b"77777777777"
    files, refused = read_tar(bytes(data))
    assert files == {}
    assert "breaks off" in refused[0]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:700],
        lambda data: b"\x80" + data[1:124] + b"\xff" * 12 + data[136:],
        lambda data: data[:124] + b"-0000000001\0" + data[136:],
        lambda data: b"no archive at all",
        lambda data: data[:124] + b"00000000009\0" + data[136:],
    ],
)
def test_damage_is_told(damage: Callable[[bytes], bytes]) -> None:
    files, refused = read_tar(damage(archive(plain("a", b"1" * 600))))
    assert files == {}
    assert "breaks off" in refused[0]


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=3000), st.integers(0, 3000))
def test_no_bytes_at_all_raise(noise: bytes, where: int) -> None:
    read_tar(noise)
    good = archive(plain("a" * 120, b"1" * 700), plain("b"))
    read_tar(good[:where] + noise[:600] + good[where + len(noise[:600]) :])
