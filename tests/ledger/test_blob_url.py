"""Blobs behind a URL: whole or absent, held against their names, and with an end to all waiting."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentos.daemon.setup import init_home
from agentos.daemon.upkeep.moving import move_blobs
from agentos.daemon.upkeep.retention import prune
from agentos.errors import DamagedBlob, ErrorKind, NotFound, Unavailable, UserError
from agentos.home import Home
from agentos.ledger.blob_url import UrlBlobs
from agentos.ledger.blobs import BlobStore
from agentos.settings import Retention
from tests.refusals import raises
from tests.s3 import BUCKET, KEYS, S3Server


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with S3Server.start() as started:
        yield started


@pytest.fixture
def url(server: S3Server, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
    return f"s3://{BUCKET}/{request.node.name.replace('[', '-').replace(']', '')}"


@pytest.fixture
def store(url: str, tmp_path: Path) -> BlobStore:
    (tmp_path / "agentos.toml").write_text(f'blobs = "{url}"\n')
    return BlobStore(tmp_path / "blobs")


def key_of(url: str, sha256: str) -> str:
    return f"{url.removeprefix(f's3://{BUCKET}/')}/{sha256[:2]}/{sha256[2:]}"


@pytest.mark.slow
def test_a_blob_is_an_object_named_by_its_digest(
    store: BlobStore, url: str, server: S3Server, tmp_path: Path
) -> None:
    sha256 = store.put(b"content")
    assert sha256 == hashlib.sha256(b"content").hexdigest()
    assert key_of(url, sha256) in server.content()
    assert store.get(sha256) == b"content"
    assert store.put(b"content") == sha256
    assert [(info.name, info.size) for info in store.everywhere()] == [(sha256, 7)]
    assert not (tmp_path / "blobs").exists()
    big = store.put(b"x" * 20_000_000)
    assert len(store.get(big)) == 20_000_000
    with pytest.raises(NotFound):
        store.get("0" * 64)


@pytest.mark.slow
def test_wrong_content_is_named_and_never_used(store: BlobStore, url: str, server: S3Server) -> None:
    sha256 = store.put(b"content")
    for wrong in (b"", b"conten", b"contenT"):
        server.client().put_object(Bucket=BUCKET, Key=key_of(url, sha256), Body=wrong)
        with raises(DamagedBlob, names=[sha256]):
            store.get(sha256)
    store.put(b"content")  # mends it
    assert store.get(sha256) == b"content"


def test_what_was_stored_before_the_change_is_found_in_the_files(
    store: BlobStore, tmp_path: Path, url: str
) -> None:
    (tmp_path / "agentos.toml").write_text("")
    old = BlobStore(tmp_path / "blobs").put(b"before")
    (tmp_path / "agentos.toml").write_text(f'blobs = "{url}"\n')
    new = store.put(b"after")
    assert store.get(old) == b"before"
    assert sorted(info.name for info in store.everywhere()) == sorted([old, new])


@pytest.mark.slow
def test_only_what_is_old_is_collected(store: BlobStore) -> None:
    sha256 = store.put(b"content")
    assert store.collect(sha256, 3600.0) == 0
    assert store.get(sha256) == b"content"
    assert store.collect(sha256, 0.0) == 7
    assert store.collect(sha256, 0.0) == 0
    with pytest.raises(NotFound):
        store.get(sha256)


def _write_until(blobs: UrlBlobs, sha256: str, data: bytes, deadline: float) -> None:
    while time.monotonic() < deadline:
        blobs.write(sha256, data)


@pytest.mark.slow
def test_a_server_that_is_killed_in_the_middle_ends_in_unavailable_and_one_that_comes_back_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with S3Server.start() as own:
        for name, value in {**KEYS, "AWS_ENDPOINT_URL": own.endpoint}.items():
            monkeypatch.setenv(name, value)
        place = f"s3://{BUCKET}/killed"
        impatient, patient = UrlBlobs(place, patience_s=1.0), UrlBlobs(place, patience_s=60.0)
        data = b"x" * 8_000_000
        sha256 = hashlib.sha256(data).hexdigest()
        killer = threading.Timer(0.05, own.kill)
        killer.start()
        began = time.monotonic()
        with pytest.raises(Unavailable, match="could not be"):
            _write_until(impatient, sha256, data, began + 60)
        killer.join()
        with pytest.raises(Unavailable):
            impatient.read(sha256)
        with pytest.raises(Unavailable):
            list(impatient.listed())
        found: list[bytes | None] = []
        reading = threading.Thread(target=lambda: found.append(patient.read(sha256)))
        reading.start()
        own.up()  # empty: so it says that there is none, instead of being away
        reading.join(60)
        assert found == [None]
        patient.write(sha256, data)
        assert impatient.read(sha256) == data
        gone = UrlBlobs("s3://no-such-bucket/x", patience_s=1.0)
        with raises(Unavailable, names=["no-such-bucket"]):
            gone.write(sha256, data)
        with raises(Unavailable, names=["no-such-bucket"]):
            gone.owner("a ledger")


@pytest.mark.slow
def test_a_server_that_says_nothing_has_an_end(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentos.ledger.blob_url._SOCKET_S", 1)
    with S3Server.start() as own:
        monkeypatch.setenv("AWS_ENDPOINT_URL", own.endpoint)
        blobs = UrlBlobs(f"s3://{BUCKET}/frozen", patience_s=1.0)
        blobs.write("0" * 64, b"content")
        assert own.child is not None
        own.child.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        with raises(Unavailable, ErrorKind.TIMEOUT):
            blobs.read("0" * 64)
        assert time.monotonic() - began < 30
        own.child.send_signal(signal.SIGCONT)
        assert blobs.read("0" * 64) == b"content"


def test_a_server_that_says_a_little_now_and_then_has_an_end(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is never silent for long, and never done."""
    monkeypatch.setattr("agentos.ledger.blob_url._CALL_S", 2)
    door, over = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def trickle() -> None:
        with suppress(OSError):
            while True:
                link, _ = door.accept()
                threading.Thread(target=answer, args=(link,), daemon=True).start()

    def answer(link: socket.socket) -> None:
        with suppress(OSError), link:
            link.recv(1 << 16)
            link.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\nETag: "x"\r\n\r\n')
            while not over.wait(0.1):
                link.sendall(b"x")

    threading.Thread(target=trickle, daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{door.getsockname()[1]}")
    began = time.monotonic()
    with raises(Unavailable, ErrorKind.TIMEOUT):
        UrlBlobs(f"s3://{BUCKET}/slow", patience_s=1.0).read("0" * 64)
    assert time.monotonic() - began < 30
    over.set()
    door.close()


@pytest.mark.slow
def test_what_another_ledger_keeps_there_is_not_collected(url: str, tmp_path: Path) -> None:
    for number, place in enumerate((url, f"file://{tmp_path}/shared")):
        stores = []
        for name in ("one", "two"):
            home = tmp_path / f"{name}{number}"
            home.mkdir()
            (home / "agentos.toml").write_text(f'blobs = "{place}"\n')
            stores.append(BlobStore(home / "blobs"))
        one, two = stores
        one.claim("a" * 64)
        one.claim("a" * 64)
        with raises(UserError, ErrorKind.TAKEN):
            two.claim("b" * 64)
        sha256 = two.put(b"content")
        assert [info.name for info in one.everywhere()] == [sha256]  # what names the owner is no blob


@pytest.mark.slow
def test_of_ledgers_that_ask_at_the_same_time_one_owns_it(url: str) -> None:
    class Late(UrlBlobs):
        def _call(self, name: str, *given: object, **options: object) -> Any:
            if name == "pipe_file":  # between its look and its claim
                assert UrlBlobs(url).owner("first") == "first"
            return super()._call(name, *given, **options)

    assert Late(url).owner("second") == "first"
    assert UrlBlobs(url).owner("third") == "first"


@pytest.mark.slow
def test_a_home_on_the_blobs_of_another_one_is_not_pruned(tmp_path: Path) -> None:
    homes = []
    for name in ("one", "two"):
        homes.append(Home(tmp_path / name))
        init_home(homes[-1])
        with homes[-1].settings.open("a") as file:
            file.write(f'\nblobs = "file://{tmp_path}/shared"\n')
    one, two = homes
    kept = BlobStore(one.blobs).put(b"content of the first one that only it names")
    old = time.time() - 30 * 86_400
    os.utime(tmp_path / "shared" / kept[:2] / kept[2:], (old, old))
    prune(one, datetime.now(UTC), Retention(days=1, gb=0), apply=False)
    with raises(UserError, ErrorKind.TAKEN):
        prune(two, datetime.now(UTC), Retention(days=1, gb=0), apply=True)
    with raises(UserError, ErrorKind.TAKEN):
        move_blobs(two, f"file://{tmp_path}/shared")
    assert BlobStore(one.blobs).get(kept)


def test_a_folder_that_hosts_share(tmp_path: Path) -> None:
    (tmp_path / "agentos.toml").write_text(f'blobs = "file://{tmp_path}/shared"\n')
    store = BlobStore(tmp_path / "blobs")
    sha256 = store.put(b"content")
    assert (tmp_path / "shared" / sha256[:2] / sha256[2:]).read_bytes() == b"content"
    assert store.get(sha256) == b"content"
    assert not (tmp_path / "blobs").exists()
    (tmp_path / "shared" / sha256[:2] / sha256[2:]).write_bytes(b"other")
    with raises(DamagedBlob):
        store.get(sha256)


@pytest.mark.parametrize("scheme", ["file", "local"])
def test_files_of_a_persons_own_beside_the_blobs_are_none(tmp_path: Path, scheme: str) -> None:
    own = [tmp_path / "shared" / "de" / "letter.txt", tmp_path / "shared" / "ab" / ("0" * 61)]
    for path in own:
        path.parent.mkdir(parents=True)
        path.write_text("mine")
    (tmp_path / "agentos.toml").write_text(f'blobs = "{scheme}://{tmp_path}/shared"\n')
    store = BlobStore(tmp_path / "blobs")
    sha256 = store.put(b"content")
    assert [info.name for info in store.everywhere()] == [sha256]  # what is not told is not collected


def test_another_file_system_gets_it_aside_and_renamed(tmp_path: Path) -> None:
    blobs = UrlBlobs(f"local://{tmp_path}/there")  # fsspec's own, as sftp:// or smb:// would be
    blobs.write("ab" + "0" * 62, b"content")
    blobs.write("ab" + "0" * 62, b"content")
    assert blobs.read("ab" + "0" * 62) == b"content"
    assert [info.name for info in blobs.listed()] == ["ab" + "0" * 62]
    assert [*(tmp_path / "there" / "aside").iterdir()] == []


@pytest.mark.parametrize(
    "wrong", ["s3://me:key@host/b", "s3://b/x?key=y", "file://relative", "nothing://there/x"]
)
def test_a_url_that_is_none_or_has_keys_in_it_is_refused(wrong: str, tmp_path: Path) -> None:
    (tmp_path / "agentos.toml").write_text(f'blobs = "{wrong}"\n')
    with pytest.raises(UserError):
        BlobStore(tmp_path / "blobs").put(b"content")
    assert (
        subprocess.run(["find", str(tmp_path), "-name", "blobs"], capture_output=True, check=True).stdout
        == b""
    )
