"""`agentos web` as a person starts it: a process of its own."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest

from agentos.home import Home
from agentos.web.context import LOOPBACK
from agentos.web.listening import BoundedServer, listening_on

PATIENCE_S = 120


def command(home: Home, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "agentos", "--home", str(home.root), "web", *arguments]


@contextmanager
def page(home: Home) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and the link that it printed."""
    with subprocess.Popen(
        command(home, "--port", "0"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process, next(found[0] for it in process.stdout if (found := re.search(r"http://\S+", it)))
        finally:
            process.kill()


def once(link: str) -> str:
    return link.partition("once=")[2]


@pytest.mark.slow
def test_it_serves_until_ctrl_c_and_writes_no_token_anywhere(home: Home) -> None:
    with page(home) as (process, link):
        base = link.partition("/enter")[0]
        with httpx.Client(base_url=base, timeout=PATIENCE_S) as client:
            assert client.get(link).status_code == 303
            assert "skill/calc" in client.get("/").text
            assert client.get(f"/evolutions/{once(link)}").status_code == 404
            (cookie,) = client.cookies.values()
            again = subprocess.run(
                command(home), capture_output=True, text=True, timeout=PATIENCE_S, check=True
            )
        second = re.search(r"http://\S+", again.stdout)
        assert second
        assert second[0].startswith(base)
        assert httpx.get(second[0], timeout=PATIENCE_S).status_code == 303
        assert stat.S_IMODE((home.run / "web.json").stat().st_mode) == 0o600
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) in (0, 130, -signal.SIGINT)
    assert not (home.run / "web.json").exists()
    written = [path.read_bytes() for path in home.root.rglob("*") if path.is_file()]
    for secret in (once(link), once(second[0]), cookie):
        assert not any(secret.encode() in data for data in written)


@pytest.mark.slow
def test_a_note_of_a_page_that_was_killed_is_not_believed(home: Home) -> None:
    with page(home) as (process, link):
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE_S)
    assert (home.run / "web.json").exists()
    with page(home) as (_, fresh):
        assert httpx.get(fresh, timeout=PATIENCE_S).status_code == 303
        assert fresh != link


@pytest.mark.slow
def test_what_keeps_it_from_starting_is_said(home: Home) -> None:
    with page(home) as (_, link):
        port = link.split(":")[2].partition("/")[0]
        other = Home(home.root.with_name("other"))
        os.makedirs(other.root)
        none = subprocess.run(command(other), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert (none.returncode, none.stdout) == (1, "")
        assert "agentos init" in none.stderr
        (home.run / "web.json").unlink()
        taken = subprocess.run(
            command(home, "--port", port), capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert taken.returncode == 1
        assert taken.stderr.startswith(f"Port {port} cannot be had")


def test_no_page_waits_for_the_browser_to_acknowledge_its_first_packet() -> None:
    """Nagle's algorithm is off on what is accepted: with it each page takes 40 ms more."""

    async def accepted() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def come(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            sock = writer.get_extra_info("socket")
            found.set_result(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with listening_on(LOOPBACK, 0) as listening:
            async with await asyncio.start_server(come, sock=listening):
                _, writer = await asyncio.open_connection(LOOPBACK, listening.getsockname()[1])
                writer.close()
                return await found

    assert asyncio.run(accepted())


def test_its_end_hangs_up_on_who_does_not_read_the_answer() -> None:
    """To close the connection would wait for that: its socket stayed open until the process ended."""
    answered = threading.Event()

    async def large(_scope: object, _receive: object, send: Callable[[object], Awaitable[None]]) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(32 << 20)})
        answered.set()

    with listening_on(LOOPBACK, 0) as listening:
        address = listening.getsockname()
        server = BoundedServer(large, lifespan="off", log_config=None, loop="asyncio")
        serving = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        serving.start()
        while not server.started and serving.is_alive():
            serving.join(0.01)
        with socket.create_connection(address) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert answered.wait(PATIENCE_S)
            server.should_exit = True
            serving.join(PATIENCE_S)
            assert not serving.is_alive()
            assert not server.server_state.connections
