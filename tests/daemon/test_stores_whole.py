"""A home whose ledger lies in PostgreSQL and whose blobs in S3: moved, verified, pruned, backed up and restored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentos.daemon.upkeep.auditing import verify_home
from agentos.daemon.upkeep.backup import back_up, restore
from agentos.daemon.upkeep.moving import move_blobs, move_home
from agentos.daemon.upkeep.retention import prune
from agentos.domain import InputFile, Share
from agentos.errors import Unavailable
from agentos.home import Home
from agentos.ledger.blobs import BlobStore
from agentos.ledger.postgres.address import address_of
from agentos.ledger.store import Ledger
from agentos.settings import Retention, load_settings
from tests.daemon.conftest import _make_task
from tests.s3 import BUCKET, KEYS, S3Server


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    with S3Server.start() as started:
        for name, value in {**KEYS, "AWS_ENDPOINT_URL": started.endpoint}.items():
            monkeypatch.setenv(name, value)
        yield started


def fill(home: Home, text: bytes) -> str:
    """A task whose input is a blob; its name."""
    with closing(Ledger(home.ledger)) as ledger:
        sha256 = ledger.blobs.put(text)
        task = replace(_make_task("double", n=1), inputs=(InputFile("a.txt", sha256, len(text)),))
        ledger.add_task(task, Share.OPEN)
    return sha256


def corrupt(server: S3Server, sha256: str, content: bytes | None) -> None:
    key = f"home/{sha256[:2]}/{sha256[2:]}"
    if content is None:
        server.client().delete_object(Bucket=BUCKET, Key=key)
    else:
        server.client().put_object(Bucket=BUCKET, Key=key, Body=content)


@pytest.mark.slow
def test_blobs_move_there_and_back_and_are_verified(home: Home, server: S3Server) -> None:
    before = fill(home, b"before")
    moved = move_blobs(home, f"s3://{BUCKET}/home")
    assert (moved.blobs, moved.copied) == (1, 1)
    assert move_blobs(home, f"s3://{BUCKET}/home").copied == 0
    (home.blobs / before[:2] / before[2:]).unlink()  # what a person does when it is there
    after = fill(home, b"after")
    assert len(server.content()) == 2 + 1  # and whose they are
    assert verify_home(home).faults == ()
    corrupt(server, before, b"beforE")
    corrupt(server, after, None)
    faults = verify_home(home).faults
    assert [before in fault and "damaged" in fault for fault in faults] == [True, False]
    assert after in faults[1]
    with pytest.raises(Unavailable, match="damaged"):
        move_blobs(home, "files")
    corrupt(server, before, b"before")
    corrupt(server, after, b"after")
    assert move_blobs(home, "files").copied == 2
    server.kill()
    assert verify_home(home).faults == ()


@pytest.mark.slow
def test_only_what_no_row_names_is_collected_there(home: Home, server: S3Server) -> None:
    move_blobs(home, f"s3://{BUCKET}/home")
    named = fill(home, b"named")
    store = BlobStore(home.blobs)
    orphan = store.put(b"orphan")
    found = prune(home, datetime.now(UTC), Retention(days=0, gb=0), apply=True)
    assert found.blobs == 0, "it was stored a moment ago"
    assert {info.name for info in store.everywhere()} == {named, orphan}


@pytest.mark.postgres
@pytest.mark.slow
def test_a_backup_holds_all_of_it_and_stands_alone(
    home: Home, server: S3Server, postgres_address: str, tmp_path: Path
) -> None:
    move_home(home, postgres_address)
    move_blobs(home, f"s3://{BUCKET}/home")
    sha256 = fill(home, b"content")
    with closing(Ledger(home.ledger)) as ledger:
        head = ledger.head()
    assert back_up(home, tmp_path / "backup.tar").head == str(head)
    fill(home, b"later")
    server.kill()
    again = Home(tmp_path / "again")
    report, _ = restore(again, tmp_path / "backup.tar")
    assert report.faults == ()
    assert report.head == head
    assert address_of(again.ledger) == ""
    assert load_settings(again.settings).blobs == "files"
    assert BlobStore(again.blobs).get(sha256) == b"content"
    with closing(Ledger(again.ledger)) as ledger:  # takes rows, and its own only
        ledger.note("went on", "here", {})
        assert ledger.head().count == head.count + 1
