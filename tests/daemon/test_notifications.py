"""A person is told of each change once, on real ways: HTTP, SMTP, a command; and of nothing that was in a file."""

from __future__ import annotations

import json
import os
import signal
import socketserver
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agentos.cli.connections.notify import undelivered
from agentos.daemon.people.channels import PATIENCE_S, ChannelFailed, Send, _asked_pause_s, channels_of
from agentos.daemon.people.notifications import TRIES, Notifier, deliver, pause
from agentos.domain import (
    Evolution,
    EvolutionState,
    KernelFault,
    Notification,
    NotificationState,
    Outcome,
    Result,
    Run,
    RunEnd,
    Share,
    Task,
    TaskState,
    Trigger,
    Watch,
    kernel_fault,
    new_id,
)
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.models.secrets import Secret, keep
from agentos.registry.store import Registry
from agentos.settings import Notify, load_settings
from tests.command_server import command_server
from tests.daemon.conftest import Daemon, until
from tests.loopback import serving
from tests.refusals import raises

NOW = datetime(2026, 11, 1, tzinfo=UTC)
EVENTS = Notify.model_validate({}).on


@pytest.fixture
def ended(home: Home, ledger: Ledger, make_task: Callable[..., Task]) -> Callable[..., Run]:
    """A run of a task of this name that ended so."""
    snapshot = Registry(home.registry).stable()

    def end(
        name: str, result: Result, kind: KernelFault = KernelFault.CHECK, why: str = "", **more: Any
    ) -> Run:
        task = replace(make_task("double", n=1), id=new_id("task"), name=name, **more)
        ledger.add_task(task, Share.OPEN)
        run = Run(new_id("run"), task.id, task.key, Share.OPEN, 1, snapshot, "bubblewrap", "strong", NOW)
        ledger.begin_run(run)
        fault = None if result is Result.PASSED else kernel_fault(kind, why)
        ledger.finish_run(run.id, Outcome(result, 0.0, why, fault), RunEnd("CONTENT OF A FILE"))
        return ledger.run(run.id)

    return end


@pytest.fixture
def sent() -> list[Notification]:
    return []


@pytest.fixture
def notifier(ledger: Ledger, sent: list[Notification]) -> Notifier:
    made = Notifier(ledger, {"webhook": sent.append}, EVENTS, lambda value: value, pause_s=0)
    made.begin()
    return made


def told(sent: list[Notification]) -> list[tuple[str, str]]:
    return [(note.event, note.subject) for note in sent]


def test_one_message_for_each_change_of_state(
    ledger: Ledger, notifier: Notifier, sent: list[Notification], ended: Callable[..., Run]
) -> None:
    for result in (Result.PASSED, Result.FAILED, Result.TIMEOUT, Result.FAILED, Result.PASSED, Result.PASSED):
        ended("digest", result, why="expected 'CONTENT OF A FILE'")
    ended("other", Result.FAILED)
    ended("part", Result.FAILED, parent="task-x")
    asks = ended("asks", Result.WAITING, KernelFault.WAITING, "CONTENT OF A FILE?")
    for _ in range(2):
        ended("dear", Result.BUDGET, KernelFault.DAY_BUDGET)
    ended("long", Result.BUDGET, KernelFault.LIMIT)
    notifier.turn(NOW)
    notifier.turn(NOW)
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    assert told(sent) == [
        ("failed", "task:digest"),
        ("recovered", "task:digest"),
        ("failed", "task:other"),
        ("needs_you", f"run:{asks.id}"),
        ("budget", f"budget:{day}"),
        ("budget", "task:long"),
    ]
    assert "CONTENT" not in repr(sent)
    assert {note.state for note in ledger.find(Notification)} == {NotificationState.DELIVERED}


def test_files_of_a_watched_folder_that_fail_together_are_one_message(
    ledger: Ledger, notifier: Notifier, sent: list[Notification], ended: Callable[..., Run],
    make_task: Callable[..., Task],
) -> None:  # fmt: skip
    inbox = replace(make_task("double", n=1), name="inbox", trigger=Trigger(watch=Watch("/in", "*")))
    ledger.add_task(inbox, Share.OPEN, TaskState.SCHEDULED)
    for hour, results in enumerate(
        (("failed", "passed", "failed"), ("failed", "failed"), ("passed", "passed"))
    ):
        arrived = NOW + timedelta(hours=hour)
        for result in results:
            name = f"inbox: {len(sent)}.csv"
            ended(name, Result(result), schedule_id=inbox.id, created_at=arrived)
        notifier.turn(arrived + timedelta(minutes=1))
    assert told(sent) == [(event, "task:inbox") for event in ("failed", "failed", "recovered")]


def test_evolutions_are_told_where_they_need_or_concern_a_person(
    home: Home, ledger: Ledger, notifier: Notifier, sent: list[Notification]
) -> None:
    base = Registry(home.registry).stable()
    evolution = Evolution("evo-1", "evd-1", "f", EvolutionState.MINED, base)
    for state in ("proposing", "awaiting_consent", "promoting", "probation", "probation", "rolled_back"):
        moved = replace(evolution, state=EvolutionState(state))
        ledger.note(f"evolution.{state}", evolution.id, {"reason": ""}, (moved,))
    notifier.turn(NOW)
    assert [note.event for note in sent] == ["needs_you", "promoted", "rolled_back"]


def test_what_nobody_wants_to_hear_is_kept_for_what_comes_after(
    ledger: Ledger, sent: list[Notification], ended: Callable[..., Run]
) -> None:
    notifier = Notifier(ledger, {"webhook": sent.append}, ["recovered"], lambda value: value, pause_s=0)
    notifier.begin()
    ended("digest", Result.FAILED)
    ended("digest", Result.PASSED)
    notifier.turn(NOW)
    assert told(sent) == [("recovered", "task:digest")]


def test_what_happened_before_anybody_was_told_is_no_news(
    ledger: Ledger, sent: list[Notification], ended: Callable[..., Run]
) -> None:
    ended("old", Result.FAILED)
    first = Notifier(ledger, {"webhook": sent.append}, EVENTS, lambda value: value, pause_s=0)
    assert first.begin()
    ended("new", Result.FAILED)
    second = Notifier(ledger, {"webhook": sent.append}, EVENTS, lambda value: value, pause_s=0)
    assert second.begin()  # the daemon was started again: what happened meanwhile is news
    second.turn(NOW)
    assert told(sent) == [("failed", "task:new")]
    assert not Notifier(ledger, {}, EVENTS, lambda value: value).begin()
    ended("while nobody was told", Result.FAILED)
    third = Notifier(ledger, {"webhook": sent.append}, EVENTS, lambda value: value, pause_s=0)
    third.begin()
    third.turn(NOW)
    assert len(sent) == 1


def test_what_fails_is_tried_again_and_given_up_in_the_end(
    ledger: Ledger, ended: Callable[..., Run], sent: list[Notification]
) -> None:
    tries: list[str] = []

    def away(note: Notification) -> None:
        tries.append(note.id)
        raise ChannelFailed("it is away")

    notifier = Notifier(
        ledger, {"mail": away, "webhook": sent.append}, EVENTS, lambda value: value, pause_s=0
    )
    notifier.begin()
    ended("digest", Result.FAILED)
    now = datetime.now(UTC)
    notifier.turn(now)
    notifier.turn(now + timedelta(seconds=30))  # not due yet
    assert (len(tries), len(sent)) == (2, 1)  # each try is two
    now -= timedelta(days=1)  # the clock was ahead
    notifier.turn(now)
    notifier.turn(now)
    assert len(tries) == 4
    (note,) = undelivered(ledger)
    assert (note.channel, note.state, note.why) == ("mail", NotificationState.PENDING, "it is away")
    for number in range(2, TRIES):
        now += pause(number)
        notifier.turn(now)
    (note,) = undelivered(ledger)
    assert (note.state, note.tries) == (NotificationState.FAILED, TRIES)
    notifier.turn(now + timedelta(days=9))
    assert (len(tries), len(sent), len({*tries})) == (2 * TRIES, 1, 1)
    assert undelivered(ledger, now + timedelta(days=9)) == []


def test_a_server_that_asks_for_a_longer_pause_gets_it(
    ledger: Ledger, ended: Callable[..., Run], sent: list[Notification]
) -> None:
    def busy(note: Notification) -> None:
        sent.append(note)
        raise ChannelFailed("it is busy", after_s=7200)

    notifier = Notifier(ledger, {"webhook": busy}, EVENTS, lambda value: value, pause_s=0)
    notifier.begin()
    ended("digest", Result.FAILED)
    now = datetime.now(UTC)
    for minutes, tried in ((0, 1), (119, 1), (121, 2)):
        notifier.turn(now + timedelta(minutes=minutes))
        assert len(sent) == tried


def test_what_a_crash_caught_while_it_was_sent_is_not_sent_twice(
    ledger: Ledger, sent: list[Notification], ended: Callable[..., Run]
) -> None:
    class Killed(BaseException): ...

    def dies(note: Notification) -> None:
        sent.append(note)
        raise Killed

    first = Notifier(ledger, {"webhook": dies}, EVENTS, lambda value: value)
    first.begin()
    ended("digest", Result.FAILED)
    ended("other", Result.FAILED)
    with pytest.raises(Killed):
        first.turn(NOW)
    second = Notifier(ledger, {"webhook": sent.append}, EVENTS, lambda value: value)
    second.begin()
    second.turn(NOW)
    assert told(sent) == [("failed", "task:digest"), ("failed", "task:other")]
    states = [note.state for note in ledger.find(Notification)]
    assert states == [NotificationState.UNCERTAIN, NotificationState.DELIVERED]


def test_a_name_is_one_line_without_secrets(
    ledger: Ledger, sent: list[Notification], ended: Callable[..., Run]
) -> None:
    hide = lambda value: value.replace("hunter22", "[redacted]")  # noqa: E731
    notifier = Notifier(ledger, {"mail": sent.append}, EVENTS, hide, pause_s=0)
    notifier.begin()
    ended("a\r\nBcc: evil@example.org\x1b[2J hunter22 " + "x" * 400, Result.FAILED)
    notifier.turn(NOW)
    assert "hunter22" not in repr(sent)
    assert sent[0].title.isprintable()
    assert len(sent[0].title) <= 120


# --- ways ---------------------------------------------------------------------------------------


class _Hook(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.got.append((self.path, self.headers["Idempotency-Key"], body))  # type: ignore[attr-defined]
        self.send_response({"/away": 302, "/busy": 503, "/endless": 200}.get(self.path, 204))
        if self.path == "/away":
            self.send_header("Location", "/elsewhere")
        if self.path == "/busy":
            self.send_header("Retry-After", "7200")
        if self.path == "/endless":
            self.send_header("Content-Length", "100")
        self.end_headers()
        if self.path == "/endless":
            self.server.hung_up = self.rfile.read(1) == b""  # type: ignore[attr-defined]

    def log_message(self, format: str, *args: Any) -> None: ...


class _Mailbox(socketserver.StreamRequestHandler):
    """As much of SMTP as a client needs to log in and send one mail."""

    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        while line := self.rfile.readline().strip():
            word = line.split()[0].upper()
            self.server.got.append(line)  # type: ignore[attr-defined]
            if word == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                while (text := self.rfile.readline()) != b".\r\n":
                    self.server.got.append(text.strip())  # type: ignore[attr-defined]
            if word == b"EHLO":
                self.wfile.write(b"250-here\r\n250 AUTH PLAIN\r\n")
            else:
                self.wfile.write(
                    b"235 in\r\n" if word == b"AUTH" else b"221 bye\r\n" if word == b"QUIT" else b"250 ok\r\n"
                )


@pytest.fixture
def serve() -> Iterator[Callable[[Any, Any], Any]]:
    """A server on loopback that remembers what it got."""
    with ExitStack() as servers:

        def start(kind: Any, handler: Any) -> Any:
            server = kind(("127.0.0.1", 0), handler)
            server.got = []
            return servers.enter_context(serving(server))

        yield start


NOTE = Notification("note-7-x", "task:digest", "failed", "x", "digest failed", "See it with: …", NOW)


def ways(home: Home, **settings: Any) -> Mapping[str, Send]:
    return channels_of(home, Notify.model_validate(settings))


def test_a_webhook_gets_one_document_and_is_followed_nowhere(home: Home, serve: Any) -> None:
    server = serve(ThreadingHTTPServer, _Hook)
    url = f"http://127.0.0.1:{server.server_port}"
    ways(home, webhook=f"{url}/hook")["webhook"](NOTE)
    ((path, key, body),) = server.got
    assert (path, key, body["event"], body["title"]) == ("/hook", "note-7-x", "failed", "digest failed")
    for bad in ("/away", "/busy"):
        with pytest.raises(ChannelFailed):
            ways(home, webhook=url + bad)["webhook"](NOTE)
    assert [path for path, _, _ in server.got] == ["/hook", "/away", "/busy"]
    with pytest.raises(ChannelFailed) as asked:
        deliver(ways(home, webhook=f"{url}/busy")["webhook"], NOTE, pause_s=0)
    assert asked.value.after_s == 7200
    assert len(server.got) == 4, "asked to wait, it is not tried once more at once"
    server.shutdown()
    server.socket.close()
    with pytest.raises(ChannelFailed, match="cannot be reached"):
        deliver(ways(home, webhook=url)["webhook"], NOTE, pause_s=0)


def test_a_webhook_whose_answer_never_ends_holds_nothing_up(home: Home, serve: Any) -> None:
    server = serve(ThreadingHTTPServer, _Hook)
    server.daemon_threads = False  # else its end does not wait for the handler
    ways(home, webhook=f"http://127.0.0.1:{server.server_port}/endless")["webhook"](NOTE)
    server.shutdown()
    server.server_close()
    assert server.hung_up


class _Dripping(socketserver.StreamRequestHandler):
    """Greets for ever, a letter at a time."""

    def handle(self) -> None:
        with suppress(OSError):
            while not self.server.over.wait(0.01):  # type: ignore[attr-defined]
                self.wfile.write(b"2")


def test_a_mail_server_whose_answer_never_ends_holds_nothing_up(
    home: Home, serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentos.daemon.people.channels._WHOLE_S", 0.1)
    server = serve(socketserver.ThreadingTCPServer, _Dripping)
    server.over = threading.Event()
    with pytest.raises(ChannelFailed, match="did not end"):
        ways(home, mail_to="a@example.org", smtp=f"127.0.0.1:{server.server_address[1]}")["mail"](NOTE)
    server.over.set()


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [("", 0, 0), ("soon", 0, 0), ("-5", 0, 0), ("90", 90, 90), ("9" * 400, 14_400, 14_400),
     ("Fri, 01 Jan 2100 00:00:00 GMT", 14_400, 14_400), ("Fri, 01 Jan 1999 00:00:00 GMT", 0, 0)],
)  # fmt: skip
def test_what_a_retry_after_asks_for(header: str, least: float, most: float) -> None:
    assert least <= _asked_pause_s(header) <= most


def test_mail_goes_by_smtp_with_a_password_that_is_a_secret(home: Home, serve: Any) -> None:
    server = serve(socketserver.ThreadingTCPServer, _Mailbox)
    place = {
        "mail_to": "ada@example.org",
        "smtp": f"127.0.0.1:{server.server_address[1]}",
        "smtp_security": "none",
    }
    ways(home, **place)["mail"](NOTE)
    assert b"Subject: [agentos] digest failed" in server.got
    assert b"Message-ID: <note-7-x@agentos.invalid>" in server.got
    assert any(line.lower().startswith(b"rcpt to:<ada@example.org>") for line in server.got)
    login = {**place, "smtp_user": "ada", "smtp_secret": "MAIL"}
    with pytest.raises(ChannelFailed, match="no secret 'MAIL'"):
        ways(home, **login)["mail"](NOTE)
    keep(home, Secret("MAIL", ("mail.example",), False, "now", "file"), "password 1")
    ways(home, **login)["mail"](NOTE)
    assert any(line.startswith(b"AUTH PLAIN") for line in server.got)
    keep(home, Secret("MAIL", ("mail.example",), False, "now", "file"), "pässword")
    with pytest.raises(ChannelFailed):  # else every other message would wait behind this one
        ways(home, **login)["mail"](NOTE)
    with pytest.raises(ChannelFailed):  # no TLS there: the password is not sent
        ways(home, **{**login, "smtp_security": "starttls"})["mail"](NOTE)


def test_a_command_gets_the_document_and_its_failure_is_told(home: Home, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    ways(home, command=["sh", "-c", f'cat > {out}; test "$AGENTOS_EVENT" = failed'])["command"](NOTE)
    assert json.loads(out.read_text())["id"] == NOTE.id
    with raises(ChannelFailed, names=["status 3: no way"]):
        ways(home, command=["sh", "-c", "echo no way >&2; exit 3"])["command"](NOTE)
    with pytest.raises(ChannelFailed, match="null byte"):
        channels_of(home, Notify(command=["a\0b"]))["command"](NOTE)
    with pytest.raises(ChannelFailed, match="cannot be started"):
        ways(home, command=["/no/such/program"])["command"](NOTE)


def test_what_a_command_leaves_running_holds_nothing_up(home: Home, tmp_path: Path) -> None:
    """It has the command's standard error: whoever waits for the end of that waits for its own."""
    left = tmp_path / "left"
    began = time.monotonic()
    ways(home, command=["sh", "-c", f"setsid sleep 60 & echo $! > {left}"])["command"](NOTE)
    took = time.monotonic() - began
    os.kill(int(left.read_text()), signal.SIGKILL)
    assert took < PATIENCE_S


@pytest.mark.parametrize(("program", "settings", "way"), [
    ("notify-send", {"desktop": True}, "desktop"),
    ("sendmail", {"mail_to": "ada@example.org"}, "mail"),
])  # fmt: skip
def test_the_machines_own_programs(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, settings: Any, way: str
) -> None:
    script, out = tmp_path / program, tmp_path / "out"
    script.write_text(f'#!/bin/sh\n{{ echo "$@"; cat; }} > {out}\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    ways(home, **settings)[way](NOTE)
    assert "digest failed" in out.read_text()


# --- with the daemon ----------------------------------------------------------------------------


@pytest.mark.sandbox
@pytest.mark.slow
def test_a_daemon_tells_of_a_failed_night_once_also_after_it_was_killed(
    home: Home, ledger: Ledger, daemon: Daemon, serve: Any, make_task: Callable[..., Task], add: Any
) -> None:
    import signal

    server = serve(ThreadingHTTPServer, _Hook)
    url = f"http://127.0.0.1:{server.server_port}/hook"
    text = home.settings.read_text() + f'\n[notify]\nwebhook = "{url}"\n'
    home.settings.write_text(text)
    assert load_settings(home.settings).notify.webhook == url

    def typed(*words: str) -> Any:
        done = command_server().run("--home", str(home.root), *words, "--json", env=os.environ)
        return json.loads(done.stdout)

    assert typed("notify", "test") == [{"channel": "webhook", "delivered": True, "why": ""}]
    daemon.start()
    add(replace(make_task("double", n=21, expect=7), name="digest"))
    until(lambda: ledger.find(Notification, state=NotificationState.DELIVERED), "it is told", 60)
    daemon.signal(signal.SIGKILL)
    daemon.ended()
    add(replace(make_task("double", n=21, expect=42), name="digest"))
    daemon.start()
    until(lambda: len(ledger.find(Notification, state=NotificationState.DELIVERED)) == 2, "it is told", 60)
    assert [body["event"] for _, _, body in server.got] == ["test", "failed", "recovered"]
    assert typed("status")["not_told"] == []
    assert [note["state"] for note in typed("notify", "list")] == ["delivered"] * 2


def test_a_machine_without_room_for_a_message_puts_it_off(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(home.root / "nowhere"))
    send = channels_of(home, Notify(command=["true"]))["command"]
    with pytest.raises(ChannelFailed):
        send(Notification("n", "s", "failed", "command", "title", "text", NOW, NotificationState.PENDING))
