"""A daemon that keeps the page up: with it, again, and gone with it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from agentos.daemon.control.page import PageKeeper, page_note
from agentos.home import Home
from agentos.sandboxes.owner import Owner
from tests.daemon.conftest import Daemon, until
from tests.loopback import held_port


def pid_of(home: Home) -> int:
    note = page_note(home)
    owner = Owner.parse(note["owner"]) if note else None
    return owner.pid if owner else 0


def answers(port: int) -> bool:
    try:
        urlopen(f"http://127.0.0.1:{port}/", timeout=10)
    except HTTPError as error:
        return error.code == 401
    except OSError:
        return False
    return False


@pytest.fixture
def port() -> Iterator[int]:
    with held_port() as held:
        yield held


@pytest.fixture
def keeper(home: Home, port: int) -> Any:
    made = PageKeeper(home, port)
    yield made, port
    made.close()


@pytest.mark.slow
def test_it_is_up_and_up_again_and_gone_with_its_keeper(home: Home, keeper: tuple[PageKeeper, int]) -> None:
    page, port = keeper

    def up(before: int = 0) -> bool:
        page.keep()
        return pid_of(home) not in (0, before) and answers(port)

    until(up, "the page answers")
    first = pid_of(home)
    os.kill(first, signal.SIGKILL)
    until(lambda: up(first), "another one answers")
    page.close()
    assert page_note(home) is None
    assert not answers(port)


def test_where_the_folder_has_another_number_the_lock_on_the_note_tells(home: Home) -> None:
    said = {"owner": str(Owner.here(home.root)), "place": "0:0", "address": "http://here", "key": ""}
    home.page_note.write_text(json.dumps(said))
    assert page_note(home) is None, "it came with a copy of another home"
    with home.page_note.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert page_note(home) == said


@pytest.mark.slow
def test_one_that_a_person_started_is_left_to_them(home: Home, keeper: tuple[PageKeeper, int]) -> None:
    page, port = keeper
    with held_port() as held, closing(PageKeeper(home, held)) as other:
        until(lambda: other.keep() or pid_of(home), "theirs is up")
        theirs = pid_of(home)
        page.keep()
        assert pid_of(home) == theirs
        assert not answers(port)


@pytest.mark.slow
def test_the_pause_grows_where_it_falls_at_once(home: Home) -> None:
    now = [0.0]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        page = PageKeeper(home, taken.getsockname()[1], lambda: now[0])
        pauses = []
        for _ in range(3):
            page.keep()
            assert page._child is not None
            page._child.wait()
            page.keep()
            pauses.append(page._pause_s)
            now[0] += page._pause_s
    assert pauses == [2.0, 4.0, 8.0]
    assert page.fault == page._last_words() != ""


@pytest.mark.slow
def test_where_it_cannot_be_started_the_daemon_goes_on(home: Home, port: int) -> None:
    now = [0.0]
    (home.logs / "web.out").mkdir(parents=True)
    page = PageKeeper(home, port, lambda: now[0])
    page.keep()
    assert page._child is None
    assert page.fault
    (home.logs / "web.out").rmdir()
    now[0] = 30.0
    page.keep()
    assert page._child is None
    now[0] = 61.0
    page.keep()
    assert page._child is not None
    page.close()


def test_a_killed_daemon_takes_it_along(home: Home, daemon: Daemon, port: int) -> None:
    home.settings.write_text(f"web = true\nweb_port = {port}\n{home.settings.read_text()}")
    daemon.start()
    until(lambda: answers(port), "the page answers")
    daemon.signal(signal.SIGKILL)
    daemon.ended()
    until(lambda: page_note(home) is None and not answers(port), "the page is gone")
