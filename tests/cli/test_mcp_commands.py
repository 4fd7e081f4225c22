"""``agentos mcp``: servers of others as a person adds them, and this home served to the official client."""

from __future__ import annotations

import http.client
import json
import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentos.cli.connections.mcp_serving import HomeTools, serve
from agentos.daemon.control.daemon_lock import daemon_info
from agentos.domain import Feedback, Question, Rating, RefusalKind, TaskState
from agentos.errors import Conflict, ErrorKind, NotFound, PromotionRefused, Unavailable, UserError
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from tests.cli.evolved_home import evolve_home
from tests.loopback import held_port
from tests.refusals import assert_golden, raises

Agentos = Callable[..., subprocess.CompletedProcess[str]]
SERVER = Path(__file__).parent.parent / "daemon" / "mcp_servers"


# --- servers of others --------------------------------------------------------------------------


@pytest.mark.sandbox
def test_a_server_is_added_listed_tried_and_removed(agentos: Agentos) -> None:
    typed = ["--files", str(SERVER), "--effect", "wrong=pure", "--", "python3", "{server}/server.py"]
    said = agentos("mcp", "add", "counter", *typed).stdout
    assert "skill/counter  counter 1" in said
    assert "tools: counter/count_up, counter/look, counter/wrong" in said
    assert "the tool '*' has no name that a tool here can have" in said
    (row,) = json.loads(agentos("mcp", "list", "--json").stdout)
    assert (row["server"], row["version"], row["tools"]) == (
        "counter",
        "1.0.0",
        ["count-up", "look", "wrong"],
    )
    assert row["references"] == ["counter/count_up", "counter/look", "counter/wrong"]
    tools = json.loads(agentos("skill", "show", "counter", "--json").stdout)
    assert tools["evolves"]  # its wheels alone: tests/daemon/test_pinning.py
    assert "same: count-up, look, wrong" in agentos("mcp", "test", "counter").stdout
    assert "is removed" in agentos("mcp", "remove", "counter", "--yes").stdout
    assert "No MCP server was added" in agentos("mcp", "list").stdout


@pytest.mark.sandbox
def test_a_server_that_cannot_be_started_is_refused_in_one_sentence(agentos: Agentos) -> None:
    done = agentos("mcp", "add", "lost", "--", "python3", "-c", "raise SystemExit('Error: no key')", code=1)
    assert done.stderr == "The MCP server lost: it ended with status 1: Error: no key (exit).\n"
    assert json.loads(agentos("mcp", "list", "--json").stdout) == []


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        (["add", "x", "--effect", "look=never", "--", "python3"], "'never' is no effect"),
        (["add", "x", "--env", "CHANGED", "--", "python3"], "--env is NAME=VALUE"),
        (["add", "X", "--", "python3"], "is not made of lower-case letters"),
        (["add", "x", "--", "uvx"], "names no package"),
        (
            ["add", "x", "--files", ".", "--", "npx", "some"],
            "--files is for a server that is no package of npm",
        ),
        (["add", "x"], "a command after -- or by --url"),
        (["add", "x", "--url", "https://a.org/mcp", "--", "python3"], "give one of the two"),
        (
            ["add", "x", "--url", "https://a.org/mcp", "--files", "."],
            "--files is for a server that is started here",
        ),
        (["add", "x", "--url", "https://a.org/mcp", "--host", "b.org"], "is reached at its own host"),
        (["add", "x", "--url", "https://me:pw@a.org/mcp"], "without a user"),
        (["add", "x", "--url", "file:///etc/passwd"], "--url is https://HOST/PATH"),
        (["add", "x", "--url", "http://[::1"], "--url is https://HOST/PATH"),
        (["add", "x", "--host", "a.org/path", "--", "python3"], "--host is a name, *.name or name:port"),
        (["add", "x", "--secret", "KEY", "--", "python3"], "name by --host where the server sends them"),
        (["add", "x", "--secret", "KEY", "--host", "a.org", "--", "python3"], "There is no secret 'KEY'"),
        (["add", "x", "--url", "https://a.org/mcp"], "add it to 'egress' in agentos.toml"),
        (["test", "x"], "There is no MCP server 'x'"),
        (["remove", "x"], "There is no MCP server 'x'"),
        (["serve", "--http", "8765"], "--http is HOST:PORT"),
        (["serve", "--http", "0.0.0.0:8765"], "this machine alone"),
        (["serve", "--http", "example.com:8765"], "this machine alone"),
        (["serve", "--http", "127.0.0.1.example.com:8765"], "this machine alone"),
        (["serve", "--client", "A B"], "--client: the name"),
    ],
)
def test_what_cannot_be_meant_is_said(agentos: Agentos, typed: list[str], says: str) -> None:
    assert says in agentos("mcp", *typed, code=1).stderr


# --- this home as a server ----------------------------------------------------------------------


def environment(home: Home) -> dict[str, str]:
    return {**os.environ, "AGENTOS_HOME": str(home.root)}


@asynccontextmanager
async def over_stdio(home: Home, *words: str) -> AsyncIterator[Any]:
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    command = ["-P", "-m", "agentos", "mcp", "serve", "--client", "tester", *words]
    started = StdioServerParameters(command=sys.executable, args=command, env=environment(home))
    async with Client(stdio_client(started)) as client:
        yield client


@pytest.mark.slow
def test_a_client_files_a_task_and_reads_what_is_there(home: Home) -> None:
    async def talk() -> None:
        async with over_stdio(home) as client:
            assert client.server_info.name == "agentos"
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert "approve_evolution" not in listed
            assert listed["show_run"].annotations.read_only_hint
            assert not listed["add_task"].annotations.read_only_hint
            call = {
                "goal": "Count",
                "tool": "word_count",
                "args": {"path": "a.txt"},
                "inputs": {"a.txt": "one two"},
            }
            added = (await client.call_tool("add_task", call)).structured_content
            assert "agentos daemon start" in added["daemon"]
            shown = (await client.call_tool("show_task", {"task": added["task"]})).structured_content
            assert (shown["goal"], shown["state"], shown["runs"]) == ("Count", "queued", [])
            found = (await client.call_tool("search_skills", {"query": "count words"})).structured_content[
                "found"
            ]
            assert "tool/word-count" in [hit["resource"] for hit in found]
            refused = await client.call_tool("show_run", {"run": "run-nothing"})
            assert refused.is_error
            assert "there is no run 'run-nothing'" in refused.content[0].text

    anyio.run(talk)
    (view,) = Reader(home.ledger).tasks()
    assert [file.path for file in view.task.inputs] == ["a.txt"]


def test_a_task_of_very_many_files_is_refused_before_they_are_written(home: Home) -> None:
    """A client kept the server busy for half a minute with 20,000 of them."""
    began = time.process_time()
    with raises(UserError, message="task.too_many_files"):
        HomeTools(home, "tester", may_approve=False).add_task(
            "Count", inputs={f"f{number}": "" for number in range(200_000)}
        )
    assert time.process_time() - began < 5.0


@pytest.fixture
def port() -> Iterator[int]:
    with held_port() as held:
        yield held


@contextmanager
def serving(home: Home, port: int) -> Iterator[str]:
    """A server over HTTP; the token of its client."""
    command = [sys.executable, "-P", "-m", "agentos", "mcp", "serve", "--http", f"127.0.0.1:{port}"]
    child = subprocess.Popen(command, env=environment(home), stderr=subprocess.PIPE, text=True)
    try:
        assert child.stderr is not None
        said = child.stderr.readline()
        assert f"http://127.0.0.1:{port}/mcp serves the client client" in said
        token = home.tokens / "client"
        assert stat.S_IMODE(token.stat().st_mode) == 0o600
        yield token.read_text()
    finally:
        child.terminate()
        child.communicate()


@pytest.mark.slow
def test_over_http_only_who_has_the_token_is_served_and_nobody_fills_its_memory(
    home: Home, port: int
) -> None:
    from mcp import Client
    from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

    async def ask(headers: Mapping[str, str]) -> Any:
        async with (
            create_mcp_http_client(headers=dict(headers)) as opened,
            Client(streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=opened)) as client,
        ):
            return (await client.call_tool("list_runs", {})).structured_content

    with serving(home, port) as token:
        assert anyio.run(ask, {"Authorization": f"Bearer {token}"}) == {"runs": []}
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {token}"}):
            with closing(http.client.HTTPConnection("127.0.0.1", port)) as plain:
                plain.request("POST", "/mcp", b"{}", {"Content-Type": "application/json", **headers})
                assert plain.getresponse().status == 401
        # The head of a request was read without an end, and comes before the token.
        with socket.create_connection(("127.0.0.1", port), 60.0) as flood:
            flood.sendall(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
            with suppress(ConnectionError):
                for _ in range(256):
                    flood.sendall(b"a" * (1 << 16))
                pytest.fail("16 MB of one header were taken")


@pytest.mark.slow
def test_a_port_that_is_taken_is_said_to_be(home: Home, agentos: Agentos) -> None:
    """It said that it serves, and ended as by an error of ours."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        done = agentos("mcp", "serve", "--http", place, code=1)
    assert "serves" not in done.stderr
    assert "--http" in done.stderr
    assert "Deprecation" not in done.stderr


@pytest.mark.sandbox
def test_a_home_by_url_is_a_server_of_another(
    home: Home, port: int, agentos: Agentos, tmp_path: Path
) -> None:
    """Ours as the client, the official library as the server: with the token from the secret store."""
    other = tmp_path / "other"
    place = f"127.0.0.1:{port}"
    subprocess.run(
        [sys.executable, "-P", "-m", "agentos", "--home", str(other), "init"], check=True, capture_output=True
    )
    with serving(Home(other), port) as token:
        agentos("secret", "set", "OTHER", "--host", f"http://{place}", stdin=token)
        with home.settings.open() as settings:
            kept = settings.read()
        home.settings.write_text(f'egress = ["{place}", "127.0.0.1"]\n{kept}')
        said = agentos("mcp", "add", "other", "--url", f"http://{place}/mcp", "--secret", "OTHER").stdout
        assert "other/add_task" in said
        (row,) = json.loads(agentos("mcp", "list", "--json").stdout)
        assert row["command"] == f"http://{place}/mcp"
        assert "same: add_task" in agentos("mcp", "test", "other").stdout
    assert token not in said


@pytest.mark.slow
def test_what_a_client_may_read_and_say(home: Home) -> None:
    evolution = evolve_home(home)
    tools = HomeTools(home, "tester", may_approve=True)
    (listed,) = tools.list_evolutions()["evolutions"]
    assert (listed["id"], listed["state"]) == (evolution.id, evolution.state.value)
    story = tools.show_evolution(evolution.id)
    assert story["evolution"]["id"] == evolution.id
    assert all("token" not in consent for consent in story["consents"])
    assert tools.list_evolutions(state="held")["evolutions"] == []
    run = tools.list_runs(limit=3)["runs"][0]
    shown = tools.show_run(run["id"])["run"]
    assert tools.show_run(run["id"], 10**30)["steps"] == []
    assert tools.show_run(run["id"], -(10**30)) == tools.show_run(run["id"])
    assert shown["answer"] == {"grade": "pass"} or shown["result"] == "failed"
    assert "share" not in shown  # who proposes edits is not to learn what is held out
    with raises(UserError, ErrorKind.MISMATCHED):
        tools.rate_run(run["id"], good=False, expect=["grade=fail"])
    tools.rate_run(run["id"], good=True, because="as it should be")
    (word,) = Reader(home.ledger).find(Feedback, run_id=run["id"])
    assert (word.rating, word.because) == (Rating.GOOD, "as it should be (said by the MCP client tester)")
    with raises(PromotionRefused, RefusalKind.NOT_WAITING):
        tools.approve_evolution(evolution.id)
    with raises(UserError, names=["'nowhere'"]):
        tools.list_evolutions(state="nowhere")


@pytest.mark.slow
def test_only_named_clients_are_offered_to_approve(home: Home) -> None:
    for may_approve in (False, True):
        offered = [tool.__name__ for tool in HomeTools(home, "tester", may_approve=may_approve).acting()]
        assert ("approve_evolution" in offered) == may_approve
    with home.settings.open("a") as settings:
        settings.write('\n[mcp]\napprove = ["tester"]\n')

    async def offered_over_stdio() -> bool:
        async with over_stdio(home) as client:
            return "approve_evolution" in [tool.name for tool in (await client.list_tools()).tools]

    assert anyio.run(offered_over_stdio)


def test_a_question_is_answered_once(home: Home, agentos: Agentos) -> None:
    tools = HomeTools(home, "tester", may_approve=False)
    task = tools.add_task("Ask me")["task"]
    with closing(Ledger(home.ledger)) as ledger:
        asked = Question("question-1", task, task, "run-1", "Which?", ("a", "b"), datetime.now(UTC))
        ledger.keep(asked)
        assert ledger.set_task_state(task, [TaskState.QUEUED], TaskState.WAITING)
    assert [one["id"] for one in tools.list_questions()["questions"]] == ["question-1"]
    with raises(UserError, message="answer.not_an_option"):
        tools.answer_question("question-1", "c")
    assert tools.answer_question("question-1", "b")["question"]["answer"] == "b"
    with raises(Conflict, ErrorKind.DECIDED):
        tools.answer_question("question-1", "a")
    with raises(NotFound, type_next="agentos run answer"):
        tools.answer_question("question-2", "a")
    shown = agentos("run", "answer", "question-1").stdout
    assert "answered   b" in shown
    assert "type:" not in shown


@pytest.mark.slow
def test_without_the_extra_what_to_type_is_said(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    with raises(Unavailable, ErrorKind.NOT_INSTALLED, type_next="pip install 'agentos-daemon[mcp]'"):
        serve(home, "tester", "")


@pytest.mark.sandbox
def test_a_server_that_lies_on_this_machine_has_to_be_brought(agentos: Agentos) -> None:
    script = str(SERVER / "server.py")
    assert f"--files {SERVER}" in agentos("mcp", "add", "own", "--", "python3", script, code=1).stderr
    assert "--files" not in agentos("mcp", "add", "own", "--", "python3", "nothing.py", code=1).stderr


@pytest.mark.sandbox
def test_a_server_that_changed_is_accepted_by_hand(agentos: Agentos, tmp_path: Path) -> None:
    flag = tmp_path / "own"
    flag.mkdir()
    (flag / "server.py").write_text((SERVER / "server.py").read_text())
    agentos("mcp", "add", "counter", "--files", str(flag), "--", "python3", "{server}/server.py")
    assert "is as it was added" in agentos("mcp", "accept", "counter").stdout
    assert_golden("mcp_accept.there_is_no_mcp_server_x", agentos("mcp", "accept", "x", code=1).stderr)


def test_a_daemon_that_ended_without_a_word_does_not_run(home: Home) -> None:
    tools = HomeTools(home, "client", may_approve=False)
    said = {"pid": 1, "owner": "1 of a boot long ago", "version": "", "started_at": "", "ready": True}
    home.run.mkdir(exist_ok=True)
    (home.run / "daemon.json").write_text(json.dumps(said))
    assert daemon_info(home) is not None
    assert "daemon start" in tools._daemon()
