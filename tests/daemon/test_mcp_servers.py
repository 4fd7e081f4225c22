"""MCP servers as tools: started in a box of their own, recorded, served in replays, and stopped when they misbehave."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentos.daemon.mcp.adding import NewServer, add_server, look_at
from agentos.daemon.mcp.packages import Packages, archive, keep, pack, packages_of
from agentos.daemon.mcp.server_box import McpFault, ServedRun, ServerBox, ServerProgram
from agentos.daemon.requests.run_requests import RunContext
from agentos.daemon.requests.server_calls import RunServers, ServerParts, ServerToolAsks
from agentos.daemon.run.execution import BoxExecutor, RunServices
from agentos.domain import Effect, InputFile, Limits, Mode, Result, Task, new_id
from agentos.errors import ErrorKind, NotFound, Unavailable, UserError
from agentos.evolver.history.recordings import recording_of
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.ports import Attempt, Plan
from agentos.registry.store import Registry
from agentos.resources.declarations import ServerTool
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from tests.refusals import raises

pytestmark = pytest.mark.sandbox

SERVER = Path(__file__).parent / "mcp_servers"
# Other tests start the same server at the same time: by this word it is told which are ours.
OURS = f"ours-{os.urandom(8).hex()}"
COMMAND = ("python3", "-X", OURS, "{server}/server.py")
FILES = pack(SERVER)


def open_box(sandbox: Bubblewrap, *how: str, **limits: Any) -> ServerBox:
    """The test server in a box, misbehaving as the words say."""
    program = ServerProgram("skill/counter", (*COMMAND, *how), {}, {}, FILES)
    return ServerBox(sandbox, program, ServedRun(inputs={"a.txt": b"a"}, **limits))


def soon(seconds: float = 60.0) -> float:
    return time.monotonic() + seconds


# --- one server in a box ------------------------------------------------------------------------


def test_a_server_says_what_it_has_and_is_called(sandbox: Bubblewrap) -> None:
    with closing(open_box(sandbox)) as box:
        assert (box.served.name, box.served.version) == ("counter", "1")
        assert box.served.instructions == "Count with care."
        # of two pages
        assert [tool["name"] for tool in box.served.tools] == ["count-up", "look", "wrong", "*", "vague"]
        for number in (1, 2):
            result = box.call("count-up", {"text": "é"}, soon())
            assert result["structuredContent"] == {"count": number, "text": "é"}
        seen = box.call("look", {}, soon())["content"][0]["text"]
        assert seen == "a.txt"  # its current directory has the run's inputs, and nothing else


def test_the_server_sees_neither_network_nor_host(sandbox: Bubblewrap) -> None:
    code = (
        "import os, json, socket, sys\n"
        "try:\n    socket.create_connection(('1.1.1.1', 53), 2); net = 'out'\nexcept OSError: net = 'none'\n"
        "sys.exit('Error: ' + json.dumps([net, os.path.exists('/etc/shadow'), os.getuid(), 'AGENTOS_HOME' in os.environ]))"
    )
    with pytest.raises(McpFault, match=r'\["none", false, 65534, false\]'):
        ServerBox(sandbox, ServerProgram("skill/x", ("python3", "-c", code)))


@pytest.mark.parametrize(
    ("how", "type", "says"),
    [
        ("mute", "timeout", "did not answer initialize in time"),
        ("deaf", "timeout|exit", "the MCP server counter"),
        ("only babbles", "timeout", "it wrote: Welcome to the server!"),
        ("no list", "protocol", "its list of tools is none"),
        ("no number", "output", "tools/list is not JSON"),
    ],
)
def test_a_server_that_does_not_begin_is_told(sandbox: Bubblewrap, how: str, type: str, says: str) -> None:
    with pytest.raises(McpFault, match=says) as caught:
        open_box(sandbox, how, wall_s=3.0)
    assert caught.value.fault.type in type.split("|")
    assert caught.value.fault.resource == "skill/counter"
    assert caught.value.over


@pytest.mark.parametrize(
    ("how", "type", "says"),
    [
        ("dies", "exit", "ended with status 1: Error: out of ink"),
        ("hangs", "timeout", "did not answer tools/call in time"),
        ("blank", "timeout", "did not answer tools/call in time"),
        ("huge", "limit", "a message of it is larger than"),
        ("endless", "limit", "a message of it is larger than"),
    ],
)
def test_a_server_that_fails_a_call_is_over(sandbox: Bubblewrap, how: str, type: str, says: str) -> None:
    patience_s = 2.0 if type == "timeout" else 60.0
    with closing(open_box(sandbox, how)) as box, pytest.raises(McpFault, match=says) as caught:
        box.call("count-up", {}, soon(patience_s))
    assert (caught.value.fault.type, caught.value.over) == (type, True)


@pytest.mark.parametrize("text", ["no number", "deep"])
def test_an_answer_that_no_message_carries_is_that_calls_fault(sandbox: Bubblewrap, text: str) -> None:
    with closing(open_box(sandbox)) as box:
        with pytest.raises(McpFault) as caught:
            box.call("count-up", {"text": text}, soon())
        assert (caught.value.fault.type, caught.value.over) == ("output", False)
        assert box.call("count-up", {}, soon())["structuredContent"] == {"count": 1}


def test_what_is_no_answer_is_passed_over(sandbox: Bubblewrap) -> None:
    with closing(open_box(sandbox, "babbles")) as box:
        assert box.call("count-up", {}, soon())["structuredContent"] == {"count": 1}


def test_a_refusal_is_an_answer(sandbox: Bubblewrap) -> None:
    with closing(open_box(sandbox)) as box:
        with pytest.raises(McpFault, match="unknown tool") as caught:
            box.call("nothing", {}, soon())
        assert not caught.value.over
        assert box.call("count-up", {}, soon())["structuredContent"] == {"count": 1}


def test_what_the_sandbox_lacks_is_named(sandbox: Bubblewrap) -> None:
    with pytest.raises(McpFault, match="it needs 'no-such-program', which this sandbox does not have"):
        ServerBox(sandbox, ServerProgram("skill/x", ("no-such-program",)))


def test_a_server_of_the_official_library_answers(sandbox: Bubblewrap, tmp_path: Path) -> None:
    site = Path(sys.modules["pydantic"].__file__ or "").parent.parent
    if not (site / "mcp").is_dir():
        pytest.skip("the extra [mcp] is not installed")
    (tmp_path / "own.py").write_text(
        "from mcp.server.mcpserver import MCPServer\n"
        "server = MCPServer('sums')\n"
        "@server.tool()\n"
        "def add(a: int, b: int) -> int:\n"
        "    '''The sum.'''\n"
        "    return a + b\n"
        "server.run('stdio')\n"
    )
    program = ServerProgram("skill/sums", ("python3", "{server}/own.py"), {}, {}, pack(tmp_path))
    with closing(ServerBox(sandbox, program, ServedRun(wall_s=300.0))) as box:
        assert box.call("add", {"a": 2, "b": 3}, soon())["structuredContent"] == {"result": 5}


# --- in runs ------------------------------------------------------------------------------------


@pytest.fixture
def added(home: Home, sandbox: Bubblewrap) -> Registry:
    """A home's registry with the test server as ``skill/counter``."""
    add_server(home, sandbox, NewServer("counter", Packages(COMMAND), files=SERVER))
    return Registry(home.registry)


@pytest.fixture
def run(
    home: Home, added: Registry, ledger: Ledger, sandbox: Bubblewrap, make_task: Callable[..., Task]
) -> Callable[..., Attempt]:
    """Run a task that calls a tool of the server; ``started`` counts how often a server was started."""

    def execute(
        tool: str,
        plan: Plan | None = None,
        limits: Limits | None = None,
        effects: tuple[Effect, ...] = (Effect.READ, Effect.WRITE),
        **args: Any,
    ) -> Attempt:
        task = replace(make_task(tool, limits=limits, **args), effects=effects)
        return executor.execute(task, added.stable(), new_id("run"), plan=plan)

    def program(asking: RunContext, tool: ServerTool) -> ServerProgram:
        execute.started += 1  # type: ignore[attr-defined]
        return ServerProgram(tool.resource, tool.command, tool.environment, {}, archive(home, tool.brings))

    execute.started = 0  # type: ignore[attr-defined]
    parts = ServerParts(sandbox, ledger.blobs, program)
    serving = RunServices(
        answerers={"tool": lambda asking: ServerToolAsks(asking, RunServers(parts, asking))}
    )
    executor = BoxExecutor(added, ledger.blobs, sandbox, serving=serving)
    return execute


def recorded(added: Registry, attempt: Attempt) -> Plan:
    return Plan(mode=Mode.REPLAY, recording=recording_of(added.stable(), [("run-before", attempt.steps)]))


def test_a_call_is_a_step_and_a_replay_does_not_make_it(run: Any, added: Registry) -> None:
    first = run("counter/count_up", text="hello")
    assert first.outcome.result is Result.PASSED, first.outcome.reason
    assert first.answer == {"count": 1, "text": "hello"}
    assert first.resources == ("agent/default", "harness/default", "skill/counter")
    (step,) = [step for step in first.steps if step.node == "act"]
    assert step.observation == {"ok": True, "output": {"count": 1, "text": "hello"}}
    again = run("counter/count_up", recorded(added, first), text="hello")
    assert (again.outcome.result, again.answer, again.drift) == (Result.PASSED, first.answer, ())
    assert run.started == 1
    # what is not on record is made: the server's box is the run's own
    other = run("counter/count_up", recorded(added, first), text="another")
    assert (other.answer, run.started) == ({"count": 1, "text": "another"}, 2)


def test_what_acts_on_the_outside_is_never_made_in_a_replay(
    home: Home, sandbox: Bubblewrap, run: Any, added: Registry
) -> None:
    effects = {"count-up": Effect.EXTERNAL}
    add_server(home, sandbox, NewServer("counter", Packages(COMMAND), effects=effects, files=SERVER))
    refused = run("counter/count_up", text="hello")
    assert "add it to the task's effects to allow it" in refused.outcome.reason
    assert run.started == 0
    allowed = (*Effect,)
    live = run("counter/count_up", effects=allowed, text="hello")
    assert live.answer == {"count": 1, "text": "hello"}
    assert [step.node for step in live.steps].count("external") == 1
    plan = recorded(added, live)
    assert run("counter/count_up", plan, effects=allowed, text="hello").answer == live.answer
    assert run("counter/count_up", plan, effects=allowed, text="x").outcome.result is Result.NOT_REPLAYABLE
    assert run.started == 1


@pytest.mark.parametrize(
    ("tool", "type", "says"),
    [("counter/wrong", "error", "no such thing"), ("counter/hang", "unknown_tool", "")],
)
def test_a_call_that_fails_is_the_tools_own_fault(run: Any, tool: str, type: str, says: str) -> None:
    attempt = run(tool)
    assert attempt.outcome.fault.type == type
    assert says in attempt.outcome.fault.message
    if type == "error":
        assert attempt.outcome.fault.resource == "skill/counter"


def test_a_hanging_server_is_told_before_the_runs_time_is_over(run: Any) -> None:
    attempt = run("counter/count_up", limits=Limits(wall_s=5.0), text="hang")
    assert attempt.outcome.fault.type == "timeout"
    assert "the MCP server counter: it did not answer" in attempt.outcome.reason


def test_a_server_that_defines_a_tool_in_another_way_is_stopped(
    home: Home, added: Registry, run: Any
) -> None:
    tool = "skill/counter/tools/count_up/tool.json"
    changed = added.files(added.stable(), tool)[tool].replace(
        b'"environment": {}', b'"environment": {"CHANGED": "1"}'
    )
    added.commit({tool: changed}, "Another environment", "edit")
    attempt = run("counter/count_up", text="hello")
    assert attempt.outcome.fault.type == "changed"
    assert (
        "the MCP server counter was stopped: 'count-up' was added with another definition"
        in attempt.outcome.reason
    )
    assert "agentos mcp test counter" in attempt.outcome.reason


def test_a_replay_brings_a_server_to_where_the_record_left_it(
    home: Home, added: Registry, ledger: Ledger, sandbox: Bubblewrap, make_task: Callable[..., Task]
) -> None:
    tool = ServerTool("skill/counter", "count-up", definition(added), COMMAND, {}, keep(home, FILES))
    program = ServerProgram(tool.resource, tool.command, {}, {}, FILES)
    task = replace(make_task("counter/count_up"), inputs=(InputFile("in.txt", ledger.blobs.put(b"in"), 2),))
    with closing(RunServers(ServerParts(sandbox, ledger.blobs, lambda *_: program), asking(task))) as servers:
        for _ in range(2):
            servers.was_served(tool, {})
        assert servers.call(tool, {})["observation"]["output"] == {"count": 3}
        look = replace(tool, tool="look", definition=definition(added, "look"))
        seen = servers.call(look, {})["observation"]["output"]
        assert seen == {"text": "in.txt", "content": [{"type": "image", "data": "", "mimeType": "image/png"}]}
    with pytest.raises(Unavailable):
        servers.call(tool, {})


def test_each_tool_that_is_called_is_held_against_the_record(
    home: Home, added: Registry, ledger: Ledger, sandbox: Bubblewrap, make_task: Callable[..., Task]
) -> None:
    """Not the first alone: another tool of the same server may be the one that has changed."""
    tool = ServerTool("skill/counter", "count-up", definition(added), COMMAND, {}, keep(home, FILES))
    program = ServerProgram(tool.resource, tool.command, {"CHANGED": "1"}, {}, FILES)
    parts = ServerParts(sandbox, ledger.blobs, lambda *_: program)
    with closing(RunServers(parts, asking(make_task("counter/look")))) as servers:
        look = replace(tool, tool="look", definition=definition(added, "look"))
        assert servers.call(look, {})["fault"] is None
        assert servers.call(tool, {})["fault"]["type"] == "changed"


def definition(added: Registry, name: str = "count_up") -> str:
    import json

    path = f"skill/counter/tools/{name}/tool.json"
    return str(json.loads(added.files(added.stable(), path)[path])["mcp"]["definition"])


def asking(task: Task) -> Any:
    class Bundle:
        limits = Limits()

    class Run:
        bundle, run_id, deadline = Bundle, "run-1", time.monotonic() + 300

    Run.task = task  # type: ignore[attr-defined]
    return Run


# --- adding -------------------------------------------------------------------------------------


def test_a_server_becomes_a_skill_and_a_changed_one_a_new_version(home: Home, sandbox: Bubblewrap) -> None:
    new = NewServer("counter", Packages(COMMAND), effects={"wrong": Effect.PURE}, files=SERVER)
    added = add_server(home, sandbox, new, "ada")
    assert added.tools == ["count_up", "look", "wrong"]
    assert added.left_out == [
        "the tool '*' has no name that a tool here can have for its own",
        "the tool 'vague' has no JSON schema that says what its arguments are",
    ]
    registry = Registry(home.registry)
    version = registry.latest(added.skill)
    assert version is not None
    assert version.number == "1.0.0"
    state = look_at(home, sandbox, "counter")
    assert (state.same, state.new) == (["count-up", "look", "wrong"], ["*", "vague"])
    assert (state.changed, state.gone) == ([], [])
    assert not add_server(home, sandbox, new, "ada").changed
    assert add_server(home, sandbox, replace(new, environment={"CHANGED": "1"}), "ada").changed
    assert registry.why_fixed(added.skill) is None  # its lock may go back, and nothing else change
    with raises(NotFound, names=["'test-kit'"]):
        look_at(home, sandbox, "test-kit")
    with raises(UserError, ErrorKind.TAKEN):
        add_server(home, sandbox, replace(new, name="test-kit"), "ada")
    with raises(UserError, names=["'nothing'"]):
        add_server(home, sandbox, replace(new, effects={"nothing": Effect.READ}), "ada")


def test_files_that_are_gone_or_altered_are_not_used(home: Home) -> None:
    sha256 = keep(home, FILES)
    assert archive(home, sha256) == FILES
    (home.servers / f"{sha256}.tar").write_bytes(FILES + b"x")
    with raises(Unavailable, ErrorKind.DAMAGED):
        archive(home, sha256)
    with raises(Unavailable, ErrorKind.UNREADABLE):
        archive(home, "0" * 64)


@pytest.mark.parametrize(
    ("typed", "command", "wheels", "npm"),
    [
        (
            "uvx mcp-server-time --local-timezone UTC",
            "mcp-server-time --local-timezone UTC",
            ["mcp-server-time"],
            "",
        ),
        ("uvx mcp-server-git@2025.1.1", "mcp-server-git", ["mcp-server-git==2025.1.1"], ""),
        ("uvx --with mcp<2 mcp-server-sqlite", "mcp-server-sqlite", ["mcp-server-sqlite", "mcp<2"], ""),
        ("uvx --from some[all]>=1 its-server x", "its-server x", ["some[all]>=1"], ""),
        ("npx -y @scope/server@1.2 .", "@scope/server@1.2 .", [], "@scope/server@1.2"),
        ("python3 -m own", "python3 -m own", [], ""),
    ],
)
def test_commands_as_documentation_gives_them(typed: str, command: str, wheels: list[str], npm: str) -> None:
    found = packages_of(typed.split())
    assert (" ".join(found.command), list(found.wheels), found.npm) == (command, wheels, npm)


def test_a_command_without_a_package_is_refused() -> None:
    with raises(UserError, message="mcp.no_package"):
        packages_of(["npx", "-y"])


# --- nothing is left ----------------------------------------------------------------------------


def marked(mark: str) -> list[int]:
    """Processes of this machine with the mark in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.slow
def test_no_server_outlives_a_killed_daemon(
    home: Home,
    sandbox: Bubblewrap,
    daemon: Any,
    add: Callable[[Task], Task],
    make_task: Callable[..., Task],
    until: Callable[..., None],
) -> None:
    mark = f"mark-{os.urandom(8).hex()}"
    add_server(home, sandbox, NewServer("counter", Packages((*COMMAND, "plain", mark)), files=SERVER))
    daemon.start()
    add(make_task("counter/count_up", limits=Limits(wall_s=600.0), text="hang"))
    until(lambda: marked(mark), "the server runs", 60)
    daemon.child.kill()
    until(lambda: not marked(mark), "no process is left", 60)


def test_a_run_that_ends_takes_its_server_along(sandbox: Bubblewrap) -> None:
    mark = f"mark-{os.urandom(8).hex()}"
    box = open_box(sandbox, "hangs", mark)
    assert marked(mark)
    failed: list[BaseException] = []

    def call() -> None:
        try:
            box.call("count-up", {}, soon(600))
        except Unavailable as error:
            failed.append(error)

    caller = threading.Thread(target=call)
    caller.start()
    box.close()
    caller.join()
    assert failed
    assert not marked(mark)


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    yield
    assert not marked(OURS)


LIBRARY = """
import sys
from mcp.server.mcpserver import MCPServer
server = MCPServer('notes')
@server.resource('notes://all')
def notes() -> str:
    "All notes"
    return 'milk, bread'
@server.resource('notes://{day}')
def day(day: str) -> str:
    return 'nothing on ' + day
@server.prompt()
def shopping(shop: str) -> str:
    "What to ask in a shop"
    return 'What is there at ' + shop + '?'
server.run('stdio')
"""


def test_prompts_and_resources_are_tools_too(home: Home, sandbox: Bubblewrap, tmp_path: Path) -> None:
    site = Path(sys.modules["pydantic"].__file__ or "").parent.parent
    assert (site / "mcp").is_dir(), "the extra [mcp] is not installed"
    (tmp_path / "own.py").write_text(LIBRARY)
    new = NewServer("notes", Packages(("python3", "{server}/own.py")), files=tmp_path)
    added = add_server(home, sandbox, new)
    assert added.tools == ["prompt_shopping", "read_resource"]
    program = ServerProgram("skill/notes", ("python3", "{server}/own.py"), {}, {}, pack(tmp_path))
    with closing(ServerBox(sandbox, program, ServedRun(wall_s=300.0))) as box:
        (shopping, reading) = box.served.tools
        assert shopping["inputSchema"]["required"] == ["shop"]
        assert "notes://all" in reading["description"]
        assert "notes://{day}" in reading["description"]
        said = box.call("prompt shopping", {"shop": "Joe"}, soon())["structuredContent"]
        assert said["messages"][0]["content"]["text"] == "What is there at Joe?"
        read = box.call("read resource", {"uri": "notes://monday"}, soon())["structuredContent"]
        assert read["contents"][0]["text"] == "nothing on monday"
        with pytest.raises(McpFault) as caught:
            box.call("read resource", {"uri": "other://x"}, soon())
        assert not caught.value.over
    (tmp_path / "own.py").write_text(LIBRARY.replace("What to ask", "What to steal"))
    assert add_server(home, sandbox, new).changed  # a prompt that says something else is another version


def test_no_process_is_left_after_kill_9(made_home: Path) -> None:
    """The daemon's process, killed while a server of it is at work."""
    import signal
    import subprocess

    word = f"hang-{new_id('run')}"
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from agentos.daemon.mcp.packages import pack\n"
        "from agentos.daemon.mcp.server_box import ServedRun, ServerBox, ServerProgram\n"
        "from agentos.sandboxes.choice import Choice\n"
        "from agentos.settings import load_settings\n"
        "root = Path(sys.argv[1])\n"
        "sandbox = Choice(root, load_settings(root / 'agentos.toml').run_uid, 'bubblewrap')\n"
        f"about = ServerProgram('skill/counter', {(*COMMAND, word)!r}, {{}}, {{}}, pack(Path({str(SERVER)!r})))\n"
        "box = ServerBox(sandbox, about, ServedRun(wall_s=300))\n"
        "print('started', flush=True)\n"
        "box.call('count-up', {'text': 'hang'}, time.monotonic() + 300)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(made_home)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "started\n"
    assert _processes(word)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    deadline = soon(30.0)
    while _processes(word) and time.monotonic() < deadline:
        threading.Event().wait(0.05)
    assert _processes(word) == []


def _processes(word: str) -> list[str]:
    """Of the machine, those whose command has the word (this process and the test's child apart)."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        if word in command and "server.py" in command and "import sys, time" not in command:
            found.append(command)
    return found
