"""Blobs are whole or absent, and never trusted without a look at their digest."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentos.errors import DamagedBlob, ErrorKind, NotFound, Unavailable
from agentos.ledger.blobs import INLINE_MAX, BlobStore
from tests.refusals import raises


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs")


def place(tmp_path: Path, sha256: str) -> Path:
    return tmp_path / "blobs" / sha256[:2] / sha256[2:]


def test_a_blob_is_a_file_named_by_its_digest(blobs: BlobStore, tmp_path: Path) -> None:
    sha256 = blobs.put(b"content")
    assert sha256 == hashlib.sha256(b"content").hexdigest()
    assert place(tmp_path, sha256).read_bytes() == b"content"
    assert place(tmp_path, sha256).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("damaged", [b"c", b"", b"conTent", b"content and more"])
def test_damage_is_unavailable_and_mended_by_putting_it_again(
    damaged: bytes, blobs: BlobStore, tmp_path: Path
) -> None:
    sha256 = blobs.put(b"content")
    place(tmp_path, sha256).write_bytes(damaged)
    with raises(DamagedBlob):
        blobs.get(sha256)
    blobs.put(b"content")
    assert blobs.get(sha256) == b"content"


@pytest.mark.parametrize("name", ["../../../etc/passwd", "ab", "A" * 64, "0" * 63 + "\n", "0" * 64])
def test_a_name_that_is_none_is_not_found(blobs: BlobStore, name: str) -> None:
    with pytest.raises(NotFound):
        blobs.get(name)


@pytest.mark.parametrize("value", [None, 1, "short", {"a": [1, 2.5, None]}, "x" * (INLINE_MAX - 2)])
def test_small_values_stay(blobs: BlobStore, value: object, tmp_path: Path) -> None:
    assert blobs.shrink(value) is value
    assert blobs.expand(value) is value
    assert not (tmp_path / "blobs").exists()


@pytest.mark.parametrize("value", ["x" * INLINE_MAX, ["y" * 5_000, {"z": "\ud800" * 5_000}]])
def test_big_values_go_and_come_back(blobs: BlobStore, value: object) -> None:
    small = blobs.shrink(value)
    assert set(small) == {"blob", "size", "head", "tail"}
    assert blobs.expand(small) == value
    assert len(small["head"]) == len(small["tail"]) == 1_000


def test_a_value_that_looks_like_a_reference_opens_no_other_blob(blobs: BlobStore) -> None:
    secret = blobs.put(b'"hold-out"')
    forged = {"blob": secret, "size": 10, "head": "", "tail": ""}
    assert blobs.expand(blobs.shrink(forged)) == forged


@pytest.mark.slow
def test_a_value_nested_too_deeply_is_cut(blobs: BlobStore) -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    assert blobs.shrink(value) == {"cut": "nested too deeply to be stored"}


def test_leftovers_are_swept_when_they_are_old(blobs: BlobStore, tmp_path: Path) -> None:
    assert blobs.sweep() == 0
    blobs.put(b"x")
    left = tmp_path / "blobs" / "tmp" / "left"
    left.write_bytes(b"half")
    assert blobs.sweep() == 0
    os.utime(left, (0, 0))
    assert blobs.sweep() == 1
    assert not left.exists()


def test_a_blob_whose_collection_was_killed_is_there_again(blobs: BlobStore, tmp_path: Path) -> None:
    sha256 = blobs.put(b"content")
    (tmp_path / "blobs" / "tmp").mkdir(exist_ok=True)
    place(tmp_path, sha256).rename(tmp_path / "blobs" / "tmp" / f"{sha256}.0a1b2c3d")
    assert blobs.sweep(0.0) == 1
    assert blobs.get(sha256) == b"content"
    assert blobs.collect(sha256, 0.0) == len(b"content")


def test_leftovers_are_swept_beside_writers(blobs: BlobStore, tmp_path: Path) -> None:
    blobs.put(b"x")
    under_way = [tmp_path / "blobs" / "tmp" / str(number) for number in range(1_000)]
    for path in under_way:
        path.touch()
    with ThreadPoolExecutor(1) as writers:
        ended = writers.submit(lambda: [path.unlink() for path in under_way])
        while not ended.done():
            assert blobs.sweep() == 0


def test_a_folder_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with raises(Unavailable, ErrorKind.NOT_WRITTEN):
        BlobStore(tmp_path / "file" / "blobs").put(b"x")
