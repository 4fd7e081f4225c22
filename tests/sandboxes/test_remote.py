"""Boxes of a worker: the same promises as on this machine, and what a hostile worker, a thief, or a cut cannot do."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidMessage, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from agentos import __version__
from agentos.domain import Limits
from agentos.errors import HostAway, HostLost, UserError
from agentos.messages import GradeDone, GradeJob
from agentos.ports import Placement
from agentos.sandboxes.box import Exchange
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.sandboxes.choice import Choice
from agentos.sandboxes.conformance import CHECKS, check
from agentos.sandboxes.remote import fleet
from agentos.sandboxes.remote.box import Admission
from agentos.sandboxes.remote.fleet import Door, Fleet
from agentos.sandboxes.remote.places import HostSandbox, WorkerPlaces, unwanted
from agentos.sandboxes.remote.protocol import BOX, JOIN, KEY_HEADER, MESSAGE_MAX, MESSAGES_MAX, Hello
from agentos.sandboxes.remote.worker import BoxWorker, Joining, _run_uid
from agentos.testing import FakeSandbox
from agentos.wire import FrameError, WireClosed, WireLate
from tests.refusals import raises

_SOON_S = 30.0
_LOST_S = 5.0
LIMITS = Limits(wall_s=30, memory_mb=64, workspace_mb=8, processes=24)


def until(holds: Callable[[], object], what: str, seconds: float = _SOON_S) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.02)


@dataclass
class Control:
    """A control process' end, whose tokens are a dictionary."""

    fleet: Fleet
    tokens: dict[str, Admission]
    port: int = 0
    stack: ExitStack = field(default_factory=ExitStack)
    scheme: str = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def join(self, sandbox: Any, name: str = "one", **more: Any) -> BoxWorker:
        """A worker in a thread of this process."""
        joining = Joining(self.url, f"token-{name}", **{"boxes": 8, "memory_mb": 8192, **more})
        made: list[BoxWorker] = []

        async def work() -> None:
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(32))
            made.append(BoxWorker(sandbox, joining, lambda text: None))
            loops.append(asyncio.get_running_loop())
            await made[0].run()

        loops: list[asyncio.AbstractEventLoop] = []
        thread = threading.Thread(target=lambda: asyncio.run(work()))
        thread.start()

        def end() -> None:
            with suppress(RuntimeError):
                loops[0].call_soon_threadsafe(made[0].stop)
            thread.join(_SOON_S)

        self.stack.callback(end)
        until(lambda: self.there(name), f"{name} has joined")
        return made[0]

    def there(self, name: str) -> bool:
        return name in {state.name for state in self.fleet.states()}

    def hostile(self, name: str = "one", path: str = JOIN, **headers: str) -> ClientConnection:
        """A connection that this test speaks on by itself."""
        given = {"Authorization": f"Bearer token-{name}"} | headers
        opening = connect(
            f"ws://127.0.0.1:{self.port}{path}", additional_headers=given, compression=None, proxy=None,
            ping_interval=None, close_timeout=1,
        )  # fmt: skip
        return self.stack.enter_context(opening)

    def liar(self, name: str = "one", **more: Any) -> ClientConnection:
        """It has joined, and does nothing that it is asked."""
        link = self.hostile(name)
        hello = {
            "program": __version__,
            "sandbox": "fake",
            "level": "none",
            "image": "nothing",
            "memory_mb": 4096,
        }
        link.send(Hello(**hello | more).model_dump_json())
        until(lambda: self.there(name), f"{name} has joined")
        return link

    def sandbox(self, name: str = "one") -> HostSandbox:
        (hello,) = [state.hello for state in self.fleet.states() if state.name == name]
        return HostSandbox(_Direct(self.fleet), name, hello.sandbox, hello.level, hello.image)  # type: ignore[arg-type]


@dataclass
class _Direct:
    fleet: Fleet

    def open_at(self, host: str, limits: Limits, *, light: bool, run: str) -> Any:
        return self.fleet.open(host, limits, light=light, run=run)


@contextmanager
def control_of(*names: str, lost_s: float = _LOST_S) -> Iterator[Control]:
    tokens = {f"token-{name}": Admission(name, f"id-{name}") for name in names}
    door = Door("127.0.0.1", 0, tokens.get, lambda admission: admission in tokens.values(), lost_s=lost_s)
    fleet = Fleet(door)
    control = Control(fleet, tokens)
    try:
        control.port = fleet.start()
        with control.stack:
            yield control
    finally:
        fleet.close()


@pytest.fixture
def control() -> Iterator[Control]:
    with control_of("one", "two") as made:
        yield made


def echo(channel: Any) -> None:
    """A box that sends back what it gets, and ends at ``end``."""
    with suppress(WireClosed, FrameError):
        while (frame := channel.receive()).head.get("type") != "end":
            channel.send(frame.head, frame.blobs)


@pytest.fixture
def fake() -> FakeSandbox:
    return FakeSandbox(echo)


# --- The same promises --------------------------------------------------------------------------


@pytest.mark.sandbox
@pytest.mark.slow
def test_a_worker_of_bubblewrap_conforms(control: Control, tmp_path: Path, run_uid: int | None) -> None:
    with Bubblewrap(tmp_path, run_uid) as local:
        local.start()
        control.join(local)
        remote = control.sandbox()
        assert (remote.name, remote.image, remote.level) == (local.name, local.image, local.level)
        claims = list(check(remote))
        assert [claim for claim in claims if not claim.held] == []
        assert len(claims) == len(CHECKS)
        control.stack.close()


def test_frames_and_blobs_come_back_as_they_went(control: Control, fake: FakeSandbox) -> None:
    control.join(fake)
    blobs = (os.urandom(3 << 20), b"", b"x")
    with control.sandbox().open(replace(LIMITS, workspace_mb=64)) as box:
        box.channel.bound(256 << 20, 10)
        for number in range(3):
            box.channel.send({"number": number}, blobs, deadline=time.monotonic() + _SOON_S)
            frame = box.channel.receive(deadline=time.monotonic() + _SOON_S)
            assert (frame.head, frame.blobs) == ({"number": number}, blobs)
        usage = box.close()
    assert not usage.lost
    assert box.close() == usage


def test_a_box_that_ends_by_itself_is_seen_to_end(control: Control, fake: FakeSandbox) -> None:
    control.join(fake)
    with control.sandbox().open(LIMITS) as box:
        box.channel.send({"type": "end"})
        with pytest.raises(WireClosed):
            box.channel.receive(deadline=time.monotonic() + _SOON_S)
        assert not box.close().lost


@pytest.mark.slow
def test_many_boxes_at_once_keep_their_bytes_apart(control: Control, fake: FakeSandbox) -> None:
    control.join(fake, boxes=32)
    remote = control.sandbox()

    def one(number: int) -> int:
        with remote.open(LIMITS, run=f"run-{number}") as box:
            for _ in range(5):
                box.channel.send({"number": number}, (bytes([number]) * 50_000,))
                frame = box.channel.receive(deadline=time.monotonic() + _SOON_S)
                assert frame.blobs == (bytes([number]) * 50_000,)
            return int(frame.head["number"])

    with ThreadPoolExecutor(32) as threads:
        assert list(threads.map(one, range(32))) == list(range(32))
    until(lambda: not control.fleet.states()[0].runs, "no box is left")


# --- Lost, given up, and back -------------------------------------------------------------------


def test_a_worker_that_ends_loses_its_boxes_and_nothing_else(control: Control, fake: FakeSandbox) -> None:
    control.join(fake)
    box = control.sandbox().open(LIMITS)
    control.stack.close()
    with pytest.raises(WireClosed):
        box.channel.receive(deadline=time.monotonic() + _SOON_S)
    assert "one" in box.close().lost
    with pytest.raises(HostAway):
        control.fleet.open("one", LIMITS, light=False, run="")


def test_a_job_on_a_lost_worker_says_nothing_of_its_task(control: Control, fake: FakeSandbox) -> None:
    link = control.liar()
    threads = ThreadPoolExecutor(1)
    opening = threads.submit(control.fleet.open, "one", LIMITS, light=False, run="")
    key = _asked(link, "open")["key"]
    carried = control.hostile(path=BOX, **{KEY_HEADER: key})
    with opening.result(_SOON_S) as box:
        exchange = Exchange(box, 30.0)
        exchange.send(GradeJob(checks=[], answer=1, wall_s=1))
        assert carried.recv(timeout=_SOON_S)
        link.socket.shutdown(socket.SHUT_RDWR)
        with pytest.raises(HostLost):
            exchange.receive({"done": GradeDone})
    threads.shutdown()


def test_a_silent_worker_is_given_up_and_what_it_sends_then_is_not_taken(control: Control) -> None:
    link = control.liar()
    threads = ThreadPoolExecutor(1)
    opening = threads.submit(control.fleet.open, "one", LIMITS, light=False, run="")
    carried = control.hostile(path=BOX, **{KEY_HEADER: _asked(link, "open")["key"]})
    box = opening.result(_SOON_S)
    until(lambda: not control.there("one"), "it is given up", _LOST_S + _SOON_S)
    with suppress(ConnectionClosed):
        carried.send(b"\0\0\0\x02{}")
    with pytest.raises(WireClosed):
        box.channel.receive(deadline=time.monotonic() + _SOON_S)
    assert "nothing was heard" in box.close().lost
    threads.shutdown()


def test_a_revoked_token_cuts_its_worker_off(control: Control, fake: FakeSandbox) -> None:
    control.join(fake)
    box = control.sandbox().open(LIMITS)
    del control.tokens["token-one"]
    until(lambda: not control.there("one"), "it is cut off")
    assert "revoked" in box.close().lost
    with pytest.raises(InvalidStatus):
        control.hostile("one")


def test_a_worker_joins_again_after_its_connection_was_cut(control: Control, fake: FakeSandbox) -> None:
    control.join(fake)
    since = control.fleet.states()[0].since
    for link in list(control.fleet._workers.values()):
        control.fleet._loop.call_soon_threadsafe(link.connection.transport.abort)
    until(lambda: control.there("one") and control.fleet.states()[0].since > since, "it is back")
    with control.sandbox().open(LIMITS) as box:
        box.channel.send({"a": 1})
        assert box.channel.receive(deadline=time.monotonic() + _SOON_S).head == {"a": 1}


# --- Attacks ------------------------------------------------------------------------------------


def _asked(link: ClientConnection, kind: str) -> dict[str, Any]:
    import json

    end = time.monotonic() + _SOON_S
    while time.monotonic() < end:
        word = json.loads(link.recv(timeout=_SOON_S))
        if word["type"] == kind:
            return dict(word)
    raise AssertionError(f"no {kind} came")


def _read_on(link: ClientConnection) -> None:
    while True:
        link.recv(timeout=_SOON_S)


def _status(error: pytest.ExceptionInfo[InvalidStatus]) -> int:
    return int(error.value.response.status_code)


def test_nobody_comes_in_without_a_token_that_stands(control: Control) -> None:
    for headers in (
        {"Authorization": "Bearer nonsense"},
        {"Authorization": "Basic dG9rZW4tb25l"},
        {"Authorization": ""},
    ):
        with pytest.raises(InvalidStatus) as error:
            control.hostile(**headers)
        assert _status(error) == 401


def test_guessing_tokens_is_slowed_down_while_a_worker_still_joins(
    control: Control, fake: FakeSandbox
) -> None:
    codes = []
    for number in range(40):
        with pytest.raises(InvalidStatus) as error:
            control.hostile(Authorization=f"Bearer guess-{number}")
        codes.append(_status(error))
    assert 429 in codes
    control.join(fake)


def test_a_stolen_token_gets_in_no_second_worker(control: Control, fake: FakeSandbox) -> None:
    control.join(fake)
    thief = control.hostile()
    thief.send(Hello(program=__version__, sandbox="fake", level="", image="").model_dump_json())
    with pytest.raises(ConnectionClosed) as end:
        _read_on(thief)
    assert end.value.rcvd is not None
    assert "in use" in end.value.rcvd.reason
    with control.sandbox().open(LIMITS) as box:
        box.channel.send({"a": 1})
        assert box.channel.receive(deadline=time.monotonic() + _SOON_S).head == {"a": 1}


def test_a_box_of_another_worker_cannot_be_dialled_ended_or_refused(
    control: Control, fake: FakeSandbox
) -> None:
    control.join(fake)
    thief = control.liar("two")
    with control.sandbox("one").open(LIMITS) as box:
        key = box.key  # type: ignore[attr-defined]
        for path, given in ((BOX, key), (BOX, "x" * 43), (BOX, ""), ("/else", key)):
            with pytest.raises(InvalidStatus) as error:
                control.hostile("two", path, **{KEY_HEADER: given})
            assert _status(error) == 404
        thief.send(f'{{"type": "ended", "key": "{key}"}}')
        thief.send(f'{{"type": "refused", "key": "{key}", "why": "no"}}')
        thief.send('{"type": "beat"}')
        box.channel.send({"a": 1})
        assert box.channel.receive(deadline=time.monotonic() + _SOON_S).head == {"a": 1}


def test_a_box_is_dialled_once(control: Control) -> None:
    link = control.liar()
    threads = ThreadPoolExecutor(1)
    opening = threads.submit(control.fleet.open, "one", LIMITS, light=False, run="")
    key = _asked(link, "open")["key"]
    control.hostile(path=BOX, **{KEY_HEADER: key})
    box = opening.result(_SOON_S)
    with pytest.raises(InvalidStatus) as error:
        control.hostile(path=BOX, **{KEY_HEADER: key})
    assert _status(error) == 404
    link.send(f'{{"type": "ended", "key": "{key}"}}')
    box.close()
    threads.shutdown()


@pytest.mark.parametrize(
    ("what", "end"),
    [
        (b"\xff\xff\xff\xff" + b"x" * 100, FrameError),  # a header of 4 GB
        (b"\0\0\0\x05{...}", FrameError),
        (b'\0\0\0\x18{"blobs":[99999999999999]}'[:28], FrameError),
        (b"x" * (1 << 20), WireClosed),  # more than a frame of a connection may hold
        ("text", WireClosed),
    ],
    ids=["long header", "no JSON", "huge blob", "long message", "text"],
)
def test_what_a_hostile_worker_sends_for_its_box_ends_the_box_alone(
    control: Control, fake: FakeSandbox, what: bytes | str, end: type[Exception]
) -> None:
    control.join(fake, "two")
    link = control.liar()
    threads = ThreadPoolExecutor(1)
    opening = threads.submit(control.fleet.open, "one", LIMITS, light=False, run="")
    carried = control.hostile(path=BOX, **{KEY_HEADER: _asked(link, "open")["key"]})
    box = opening.result(_SOON_S)
    with suppress(ConnectionClosed):
        carried.send(what)
    with pytest.raises((end, FrameError)):
        box.channel.receive(deadline=time.monotonic() + _SOON_S)
    threads.submit(box.close)
    with control.sandbox("two").open(LIMITS) as other:
        other.channel.send({"a": 1})
        assert other.channel.receive(deadline=time.monotonic() + _SOON_S).head == {"a": 1}
    link.close()
    threads.shutdown()


def test_a_flood_of_bytes_is_held_back_by_whoever_does_not_read(control: Control) -> None:
    link = control.liar()
    threads = ThreadPoolExecutor(1)
    opening = threads.submit(control.fleet.open, "one", LIMITS, light=False, run="")
    carried = control.hostile(path=BOX, **{KEY_HEADER: _asked(link, "open")["key"]})
    box = opening.result(_SOON_S)
    carried.socket.settimeout(2.0)
    sent = 0
    with suppress(TimeoutError, OSError, ConnectionClosed):
        while sent < 512 << 20:
            carried.send(b"x" * 100_000)
            sent += 100_000
    assert sent < 64 << 20  # what pipes and sockets hold, and nothing of the process' own
    link.socket.shutdown(socket.SHUT_RDWR)
    assert box.close().lost
    threads.shutdown()


@pytest.mark.parametrize(
    "word", ["{", "[]", '{"type": "open"}', '{"type": "hello"}', '{"type": "beat", "load": NaN}', b"bytes"]
)
def test_a_worker_that_breaks_the_protocol_is_given_up(control: Control, word: str | bytes) -> None:
    link = control.liar()
    link.send(word)
    until(lambda: not control.there("one"), "it is given up")


@pytest.mark.parametrize(
    "word",
    [
        '{"type": "beat", "load": 1e300}',
        '{"type": "beat", "free_mb": 99999999999999999999}',
        '{"type": "ended", "key": "%s", "cpu_s": 1e308}' % ("x" * 43),
        '{"type": "beat", "more": "%s"}' % ("x" * MESSAGE_MAX),
    ],
    ids=["load", "memory", "processor time", "long"],
)
def test_a_number_or_a_message_beyond_all_measure_is_not_taken(control: Control, word: str) -> None:
    link = control.liar()
    link.send(word)
    until(lambda: not control.there("one"), "it is given up")


def test_a_box_that_is_said_to_be_gone_sends_nothing_more(control: Control) -> None:
    """Else what comes over its connection would outlive the worker's own, and a revoked token."""
    link = control.liar()
    with ThreadPoolExecutor(1) as threads:
        opening = threads.submit(control.fleet.open, "one", LIMITS, light=False, run="")
        key = _asked(link, "open")["key"]
        carried = control.hostile(path=BOX, **{KEY_HEADER: key})
        box = opening.result(_SOON_S)
        link.send(f'{{"type": "ended", "key": "{key}"}}')
        until(lambda: not control.fleet.states()[0].runs, "the box is over")
        with suppress(ConnectionClosed):
            carried.send(b"\0\0\0\x02{}")
        with pytest.raises(WireClosed):
            box.channel.receive(deadline=time.monotonic() + _SOON_S)
        assert "kept its connection" in box.close().lost
    with pytest.raises(ConnectionClosed):
        _read_on(carried)


def test_a_worker_that_takes_nothing_is_cut_off_all_the_same(
    control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on to say that it is there; its token is revoked meanwhile."""
    monkeypatch.setattr("agentos.sandboxes.remote.fleet.BEAT_S", 0.2)
    link = control.liar()
    (worker,) = control.fleet._workers.values()
    for _ in range(1_000):  # more than this end's queue and the sockets hold
        asyncio.run_coroutine_threadsafe(worker.connection.send("x" * 15_000), control.fleet._loop)
    end = time.monotonic() + _SOON_S
    with suppress(ConnectionClosed):
        while control.there("one") and time.monotonic() < end:
            link.send('{"type": "beat"}')
            time.sleep(0.1)
    until(lambda: not control.there("one"), "it is given up")
    assert "takes nothing" in worker.is_gone


def test_a_token_that_cannot_be_read_for_a_moment_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, fake: FakeSandbox
) -> None:
    monkeypatch.setattr("agentos.sandboxes.remote.fleet.BEAT_S", 0.1)
    asked = []

    def stands(admission: Admission) -> bool:
        asked.append(admission)
        if len(asked) < 3:
            raise OSError("too many open files")
        return len(asked) < 6

    fleet = Fleet(Door("127.0.0.1", 0, {"token-one": Admission("one", "id")}.get, stands))
    control = Control(fleet, {})
    control.port = fleet.start()
    try:
        control.liar()
        until(lambda: len(asked) > 3, "it is asked again")
        until(lambda: not control.there("one"), "it is cut off when the token stands no more")
    finally:
        control.stack.close()
        fleet.close()


def test_a_worker_that_floods_messages_is_given_up(control: Control) -> None:
    link = control.liar()
    with suppress(ConnectionClosed):
        for _ in range(3 * MESSAGES_MAX):
            link.send('{"type": "beat"}')
    until(lambda: not control.there("one"), "it is given up")


def test_one_that_opens_no_box_gets_no_more_for_a_while(
    control: Control, fake: FakeSandbox, tmp_path: Path
) -> None:
    link = control.liar("one", boxes=1000)
    control.join(fake, "two")
    places = WorkerPlaces(_Same(), control.fleet, 0)  # type: ignore[arg-type]
    wanted = Placement()
    with places.place(wanted) as place:
        assert place.host == "one"  # it says that it can do most
        threads = ThreadPoolExecutor(1)
        opening = threads.submit(place.sandbox.open, LIMITS)
        key = _asked(link, "open")["key"]
        link.send(f'{{"type": "refused", "key": "{key}", "why": "no"}}')
        with pytest.raises(HostAway):
            opening.result(_SOON_S)
        threads.shutdown()
    with places.place(wanted) as place:
        assert place.host == "two"


# --- Where a run gets its boxes -----------------------------------------------------------------


class _Same:
    """A choice of sandboxes whose only one is of the kind and image that the fakes say they have."""

    name, level, image = "fake", "none", "nothing"

    def choose(self, asked: str = "auto", prefer: str = "auto") -> Any:
        return self


def test_a_run_goes_where_there_is_least_to_do_for_what_is_there(control: Control) -> None:
    control.liar("one", boxes=2)
    control.liar("two", boxes=4)
    places = WorkerPlaces(_Same(), control.fleet, 1)  # type: ignore[arg-type]
    assert places.room == 7
    with ExitStack() as stack:
        hosts = [stack.enter_context(places.place(Placement())).host for _ in range(7)]
        assert sorted(hosts) == ["", "one", "one", "two", "two", "two", "two"]
    with places.place(Placement()) as place:  # all have ended
        assert place.host == ""


def test_capability_labels_and_memory_decide(control: Control) -> None:
    control.liar("one", labels=("gpu", "zone=a"), memory_mb=100)
    control.liar("two", memory_mb=9000)
    places = WorkerPlaces(_Same(), control.fleet, 0)  # type: ignore[arg-type]
    with places.place(Placement(labels=("gpu",))) as place:
        assert place.host == "one"
    with places.place(Placement(memory_mb=5000)) as place:
        assert place.host == "two"
    with pytest.raises(HostAway), places.place(Placement(labels=("gpu",), memory_mb=5000)):
        pass


def test_runs_of_one_pair_get_one_host(control: Control) -> None:
    control.liar("one", boxes=4)
    link = control.liar("two", boxes=4)
    places = WorkerPlaces(_Same(), control.fleet, 4)  # type: ignore[arg-type]
    seen: dict[str, set[str]] = {}
    with ExitStack() as stack:
        for number in range(24):
            pair = f"pair {number % 6}"
            host = stack.enter_context(places.place(Placement(pair=pair))).host
            seen.setdefault(pair, set()).add(host)
    assert all(len(hosts) == 1 for hosts in seen.values())
    assert set.union(*seen.values()) == {"", "one", "two"}
    link.close()
    until(lambda: not control.there("two"), "it is gone")
    for pair in seen:
        with places.place(Placement(pair=pair)) as place:
            assert place.host != "two"


def test_no_worker_and_no_boxes_here_is_said(control: Control) -> None:
    places = WorkerPlaces(_Same(), control.fleet, 0)  # type: ignore[arg-type]
    assert places.room == 0
    with raises(HostAway, type_next="agentos cluster status"), places.place(Placement()):
        pass


@pytest.mark.sandbox
def test_a_worker_of_another_image_or_kind_is_not_wanted(tmp_path: Path, run_uid: int | None) -> None:
    choice = Choice(tmp_path, run_uid, "bubblewrap")
    try:
        image = choice.image_of("bubblewrap")
        assert unwanted(choice, "bubblewrap", image) == ""
        assert "image" in unwanted(choice, "bubblewrap", "another")
        assert unwanted(choice, "docker", image)
    finally:
        choice.close()


# --- Over TLS -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of this machine's own, and its key."""
    place = tmp_path_factory.mktemp("tls")
    certificate, key = place / "certificate.pem", place / "key.pem"
    words = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=agentos"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", "req", *words], check=True, capture_output=True)
    return certificate, key


@pytest.fixture
def secured(pair: tuple[Path, Path]) -> Iterator[Control]:
    tokens = {"token-one": Admission("one", "id-one")}
    door = Door(
        "127.0.0.1", 0, tokens.get, lambda admission: admission in tokens.values(),
        certificate=pair[0], key=pair[1], lost_s=_LOST_S,
    )  # fmt: skip
    control = Control(Fleet(door), tokens, scheme="https")
    try:
        control.port = control.fleet.start()
        with control.stack:
            yield control
    finally:
        control.fleet.close()


@pytest.mark.slow
def test_boxes_work_over_tls_and_a_revoked_token_cuts_the_worker_off(
    secured: Control, fake: FakeSandbox, pair: tuple[Path, Path]
) -> None:
    secured.join(fake, authorities=str(pair[0]))
    blob = os.urandom(1 << 20)
    with secured.sandbox().open(LIMITS) as box:
        box.channel.send({"n": 1}, (blob,), deadline=time.monotonic() + _SOON_S)
        assert box.channel.receive(deadline=time.monotonic() + _SOON_S).blobs == (blob,)
        del secured.tokens["token-one"]
        until(lambda: not secured.there("one"), "it is cut off")
        with pytest.raises(WireClosed):
            box.channel.receive(deadline=time.monotonic() + _SOON_S)
        assert "revoked" in box.close().lost


def test_a_worker_tells_its_token_to_nobody_whose_certificate_it_does_not_trust(
    secured: Control, fake: FakeSandbox
) -> None:
    asked: list[str] = []
    admit = secured.tokens.get
    object.__setattr__(secured.fleet._door, "admit", lambda text: (asked.append(text), admit(text))[1])
    told: list[str] = []

    async def work() -> None:
        worker = BoxWorker(
            fake,
            Joining(secured.url, "token-one", 1, 1024),
            lambda said: (told.append(said), worker.stop())[0],
        )
        await asyncio.wait_for(worker.run(), _SOON_S)

    asyncio.run(work())
    assert "certificate" in told[0].lower()
    assert "token-one" not in "".join(told)
    assert asked == []
    with pytest.raises((OSError, InvalidMessage)):  # in the clear nobody answers either
        secured.hostile("one")
    assert asked == []


def test_whoever_knocks_and_says_nothing_is_let_go(secured: Control) -> None:
    with socket.create_connection(("127.0.0.1", secured.port)) as silent:
        silent.settimeout(_SOON_S)
        assert silent.recv(1) == b""


@pytest.mark.slow
def test_connections_count_before_their_handshake_and_no_longer_than_they_last(
    secured: Control, fake: FakeSandbox, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "_CONNECTIONS_MAX", 4)
    monkeypatch.setattr(fleet, "_HELLO_S", 60.0)

    def knock() -> socket.socket:
        return secured.stack.enter_context(socket.create_connection(("127.0.0.1", secured.port), _SOON_S))

    silent = [knock() for _ in range(4)]
    turned_away = knock()
    assert turned_away.recv(1) == b""
    for each in silent:
        each.settimeout(0.2)
        with pytest.raises(TimeoutError):
            each.recv(1)
        each.close()
    secured.join(fake, authorities=str(pair[0]))
    with secured.sandbox().open(LIMITS) as box:
        box.channel.send({"n": 1}, (), deadline=time.monotonic() + _SOON_S)
        assert box.channel.receive(deadline=time.monotonic() + _SOON_S).head == {"n": 1}


# --- A worker's own side ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org:8421",
        "ftp://127.0.0.1",
        "https://",
        "https://h:1/path",
        "h:1",
        "https://[::1",
        "https://h:99999",
    ],
)
def test_a_token_is_sent_to_no_address_that_could_be_read_on_the_way(url: str) -> None:
    with pytest.raises(UserError):
        Joining(url, "token", 1, 1).address  # noqa: B018


def test_a_worker_whose_token_is_refused_ends_with_what_to_type(control: Control, fake: FakeSandbox) -> None:
    worker = BoxWorker(fake, Joining(control.url, "nonsense", 1, 1), lambda text: None)
    with raises(UserError, type_next="agentos token add"):
        asyncio.run(worker.run())


@pytest.mark.parametrize(
    "more",
    [
        {"labels": ("GPU",)},
        {"labels": tuple(f"a{n}" for n in range(21))},
        {"boxes": 2000},
        {"memory_mb": 1 << 40},
    ],
)
def test_what_no_control_process_takes_is_told_before_anybody_is_dialled(
    more: dict[str, Any], fake: FakeSandbox
) -> None:
    joining = Joining("http://127.0.0.1:1", "token", **{"boxes": 1, "memory_mb": 1, **more})
    with pytest.raises(UserError):
        asyncio.run(BoxWorker(fake, joining, lambda text: None).run())


def test_a_user_id_that_was_written_half_is_claimed_anew(tmp_path: Path) -> None:
    (tmp_path / "run_uid").write_text("")
    claimed = _run_uid(tmp_path)
    assert _run_uid(tmp_path) == int((tmp_path / "run_uid").read_text()) == claimed


@pytest.mark.slow
def test_as_many_boxes_as_it_has_may_begin_and_end_at_once(control: Control) -> None:
    """Both ends hold the other one to so many messages a second: not to fewer than its boxes need."""
    many = MESSAGES_MAX + 100
    control.join(FakeSandbox(echo), boxes=many)
    remote = control.sandbox()
    since = control.fleet.states()[0].since
    with ThreadPoolExecutor(many) as threads:
        boxes = list(threads.map(lambda number: remote.open(LIMITS), range(many)))
        usages = list(threads.map(lambda box: box.close(), boxes))
    assert [usage.lost for usage in usages if usage.lost] == []
    assert control.fleet.states()[0].since == since


def test_a_worker_opens_no_more_than_it_said_by_far(control: Control) -> None:
    control.join(FakeSandbox(echo), boxes=1)
    with ThreadPoolExecutor(16) as threads, ExitStack() as stack:
        opened = [threads.submit(control.sandbox().open, LIMITS) for _ in range(16)]
        refused = [one for one in opened if one.exception(_SOON_S) is not None]
        for one in opened:
            if one not in refused:
                stack.enter_context(one.result())
    assert 0 < 16 - len(refused) <= 2 * 1 + 8, {str(one.exception()) for one in refused}
    assert "boxes are open" in str(refused[0].exception())


def test_a_box_that_is_there_too_late_is_closed(control: Control) -> None:
    """The connection breaks while it is being opened: nobody else would end it."""
    closed, go_on = threading.Event(), threading.Event()

    class Slow(FakeSandbox):
        def open(self, limits: Limits, *, light: bool = False, run: str = "") -> Any:
            box = super().open(limits, light=light, run=run)
            begun.set()
            go_on.wait(_SOON_S)
            close = box.close

            def told() -> Any:
                closed.set()
                return close()

            box.close = told  # type: ignore[method-assign]
            return box

    begun = threading.Event()
    control.join(Slow(echo))
    with ThreadPoolExecutor(1) as threads:
        opening = threads.submit(control.sandbox().open, LIMITS)
        assert begun.wait(_SOON_S)
        del control.tokens["token-one"]
        with pytest.raises(HostAway):
            opening.result(_SOON_S)
        go_on.set()
        assert closed.wait(_SOON_S)


def test_whatever_a_sandbox_raises_is_said_at_once(control: Control) -> None:
    class Broken(FakeSandbox):
        def open(self, limits: Limits, *, light: bool = False, run: str = "") -> Any:
            raise RuntimeError("can't start new thread")

    control.join(Broken(echo))
    began = time.monotonic()
    with raises(HostAway, names=["new thread"]):
        control.sandbox().open(LIMITS)
    assert time.monotonic() - began < _SOON_S


def test_a_box_dies_with_the_connection_that_it_was_asked_for_on(control: Control) -> None:
    ended = threading.Event()

    def stay(channel: Any) -> None:
        with suppress(WireClosed, WireLate, FrameError):
            channel.receive()
        ended.set()

    control.join(FakeSandbox(stay))
    box = control.sandbox().open(LIMITS)
    control.fleet.close()
    assert ended.wait(_SOON_S)
    assert box.close().lost
