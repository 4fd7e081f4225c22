"""MCP servers with a way out: by hosts that were named, with keys that they never hold, and servers by URL."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agentos.daemon.mcp.adding import NewServer, add_server, look_at
from agentos.daemon.mcp.packages import Packages, archive
from agentos.daemon.mcp.server_box import certificate_for, program_of
from agentos.daemon.requests.egress import Egress
from agentos.daemon.requests.run_requests import RunContext
from agentos.daemon.requests.server_calls import RunServers, ServerParts, ServerToolAsks, by_hand
from agentos.daemon.run.execution import BoxExecutor, RunServices
from agentos.domain import Effect, InputFile, Mode, Result, Task, new_id
from agentos.errors import UserError
from agentos.evolver.history.recordings import recording_of
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.messages import Ask
from agentos.models.secrets import Secret, keep
from agentos.ports import Attempt, Plan
from agentos.registry.store import Registry
from agentos.resources.declarations import ServerTool
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from tests.loopback import serving

pytestmark = pytest.mark.sandbox

HOST = "127.0.0.2"  # a loopback address that no program takes for its own
KEY = "k-very-secret-4711"
CALLER = """
import json, os, socket, sys, urllib.request, urllib.error

def called(args):
    if args.get("env"):
        return json.dumps(dict(os.environ)) + open("/proc/self/environ").read()
    if args.get("files"):
        return " ".join(sorted(os.listdir(".")))
    if args.get("direct"):
        try:
            socket.create_connection((args["direct"], int(args["port"])), 2)
            return "connected"
        except OSError as error:
            return f"no: {error}"
    key = os.environ.get("API_KEY", "none")
    asked = urllib.request.Request(args["url"], headers={"X-Key": key}, data=args.get("body", "").encode() or None)
    try:
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode()}"
    except OSError as error:
        return f"failed: {error}"

TOOL = {"name": "get", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "caller"}}
    elif asked["method"] == "tools/list":
        result = {"tools": [TOOL]}
    else:
        result = {"content": [{"type": "text", "text": called(asked["params"]["arguments"])}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


class _Site(BaseHTTPRequestHandler):
    """A site, and at /mcp a server of streamable HTTP: JSON to the first message, then event streams."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._say(200, "text/plain", f"key={self.headers.get('X-Key')}".encode())

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append(dict(self.headers))  # type: ignore[attr-defined]
        if self.path == "/away":
            self.send_response(307)
            self.send_header("Location", "http://192.0.2.1/mcp")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path == "/html":
            self._say(200, "text/html", b"<html>")
        elif self.path != "/mcp":
            self._say(200, "text/plain", data)
        elif self.headers.get("Authorization") != f"Bearer {KEY}":
            self._say(401, "text/plain", b"who are you?")
        else:
            self._serve(json.loads(data))

    def _serve(self, asked: dict[str, Any]) -> None:
        if "id" not in asked:
            self._say(202, "text/plain", b"")
            return
        if asked["method"] == "initialize":
            result: Any = {
                "protocolVersion": "2025-03-26",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "far"},
            }
            self._say(200, "application/json", self._told(asked, result), **{"Mcp-Session-Id": "session-1"})
            return
        if (
            self.headers.get("Mcp-Session-Id") != "session-1"
            or self.headers["MCP-Protocol-Version"] != "2025-03-26"
        ):
            self._say(400, "text/plain", b"no session")
            return
        if asked["method"] == "tools/list":
            result = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
        else:
            result = {
                "structuredContent": {
                    "said": asked["params"]["arguments"],
                    "key": self.headers["Authorization"],
                }
            }
        note = b'data: {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}\n\n'
        self._say(
            200,
            "text/event-stream",
            note + b"event: message\r\ndata: " + self._told(asked, result) + b"\r\n\r\n",
        )

    @staticmethod
    def _told(asked: dict[str, Any], result: Any) -> bytes:
        return json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()

    def _say(self, status: int, kind: str, data: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None: ...


def _serving(site: ThreadingHTTPServer) -> Iterator[ThreadingHTTPServer]:
    site.seen = []  # type: ignore[attr-defined]
    with serving(site):
        yield site


@pytest.fixture
def site() -> Iterator[ThreadingHTTPServer]:
    yield from _serving(ThreadingHTTPServer((HOST, 0), _Site))


@pytest.fixture
def secure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadingHTTPServer]:
    """The same over TLS, with a certificate that the kernel trusts."""
    pem = tmp_path / "site.pem"
    pem.write_text(certificate_for([HOST]))
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server = ThreadingHTTPServer((HOST, 0), _Site)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    yield from _serving(server)


def place_of(site: ThreadingHTTPServer) -> str:
    return f"{HOST}:{site.server_port}"


def known(home: Home, *places: str) -> None:
    """A secret for these places, and settings that let runs go there."""
    keep(home, Secret("API", places, any_task=False, set_at="", kept_in="file"), KEY, in_file=True)
    hosts = [place.removeprefix("http://") for place in places]
    text = home.settings.read_text() if home.settings.exists() else ""
    home.settings.write_text(f"egress = {json.dumps([*hosts, HOST])}\n{text}")


@pytest.fixture
def run(
    home: Home, ledger: Ledger, sandbox: Bubblewrap, make_task: Callable[..., Task]
) -> Callable[..., Attempt]:
    """Run a task that calls a tool of a server that was added."""

    def execute(
        tool: str, plan: Plan | None = None, secrets: tuple[str, ...] = ("API",), **more: Any
    ) -> Attempt:
        inputs = tuple(InputFile(name, ledger.blobs.put(b"in"), 2) for name in more.pop("inputs", ()))
        effects = more.pop("effects", (*Effect,))
        task = replace(make_task(tool, **more), effects=effects, secrets=secrets, inputs=inputs)
        return executor.execute(task, registry.stable(), new_id("run"), plan=plan)

    def program(asking: RunContext, tool: ServerTool) -> Any:
        return program_of(tool, {}, archive(home, tool.brings) if tool.brings else None)

    def egress(asking: RunContext, tool: ServerTool) -> Egress:
        from agentos.settings import load_settings

        return Egress(load_settings(home.settings).egress, asking, home, tool)

    registry = Registry(home.registry)
    parts = ServerParts(sandbox, ledger.blobs, program, egress)
    serving = RunServices(
        answerers={"tool": lambda asking: ServerToolAsks(asking, RunServers(parts, asking))}
    )
    executor = BoxExecutor(registry, ledger.blobs, sandbox, serving=serving)
    return execute


@pytest.fixture
def add(home: Home, sandbox: Bubblewrap, tmp_path: Path) -> Callable[..., Any]:
    def added(**more: Any) -> Any:
        if "url" not in more:
            own = tmp_path / "own"
            own.mkdir(exist_ok=True)
            (own / "main.py").write_text(CALLER)
            more |= {"packages": Packages(("python3", "{server}/main.py")), "files": own}
        new = NewServer("caller", **{"packages": Packages(()), **more})
        return add_server(home, sandbox, new, "ada", partial(by_hand, home))

    return added


def all_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


# --- programs with hosts ------------------------------------------------------------------------


def test_a_key_is_put_in_outside_and_lies_nowhere(
    home: Home, secure: ThreadingHTTPServer, run: Any, add: Any
) -> None:
    place = place_of(secure)
    known(home, place)
    add(hosts=[place], environment={"API_KEY": "{{secret:API}}"})
    # an address in the query
    attempt = run("caller/get", url=f"https://{place}/a?then=https://example.org/b")
    assert attempt.outcome.result is Result.PASSED, attempt.outcome.reason
    assert attempt.answer["text"].startswith("key=")
    assert KEY not in json.dumps(attempt.answer)  # what comes back is stripped of it
    assert KEY in _asked_key(secure, run, place)
    (fetch,) = [step for step in attempt.steps if step.node == "fetch"]
    assert (fetch.action["method"], fetch.observation["status"]) == ("GET", 200)
    seen = run("caller/get", env=True).answer["text"]
    assert "{{secret:API}}" in seen
    assert KEY not in seen
    assert KEY not in repr(
        [step.action for step in attempt.steps] + [step.observation for step in attempt.steps]
    )
    for folder in (home.registry, home.ledger.parent / "blobs", home.servers):
        assert KEY.encode() not in all_of(folder)


def _asked_key(site: ThreadingHTTPServer, run: Any, place: str) -> str:
    run("caller/get", url=f"https://{place}/post", body="x")
    return str(site.seen[-1]["X-Key"])  # type: ignore[attr-defined]


def test_only_what_was_named_is_reached(home: Home, site: ThreadingHTTPServer, run: Any, add: Any) -> None:
    place = place_of(site)
    known(home, f"http://{place}")
    add(hosts=[place])
    assert run("caller/get", url=f"http://{place}/").answer["text"] == "key=none"
    other = run("caller/get", url="http://example.org/").answer["text"]
    assert "403 example.org is not a host that the MCP server caller may reach" in other
    hidden = run("caller/get", url="https://example.org/").answer["text"]
    assert "failed" in hidden
    assert "403" in hidden
    direct = run("caller/get", direct=HOST, port=site.server_port).answer["text"]
    assert direct.startswith("no: ")  # there is no network but the proxy
    home.settings.write_text("egress = []\n")
    refused = run("caller/get", url=f"http://{place}/").answer["text"]
    assert "is not a host that runs may reach: add it to 'egress'" in refused
    home.settings.write_text(f'egress = ["{place}"]\n')  # the name, and not the address that is not public
    private = run("caller/get", url=f"http://{place}/").answer["text"]
    assert "key=none" in private or "not public" in private


def test_half_a_character_in_a_header_is_refused_and_ends_nothing(home: Home) -> None:
    place = f"{HOST}:1"
    known(home, f"http://{place}")
    tool = ServerTool("skill/x", "get", "", (), {"KEY": "{{secret:API}}"}, "", hosts=(place,))
    fetch = by_hand(home, tool)
    assert fetch is not None
    headers = {"X-Key": "{{secret:API}}\ud800"}
    answer = fetch(Ask(id=0, what="fetch", body={"url": f"http://{place}/", "headers": headers}))
    assert answer.fault is not None
    assert answer.fault.type == "request"


def test_a_secret_of_the_home_that_the_server_was_not_given_stays(
    home: Home, site: ThreadingHTTPServer, run: Any, add: Any
) -> None:
    place = place_of(site)
    known(home, f"http://{place}")
    add(hosts=[place])
    told = run("caller/get", url=f"http://{place}/post", body="{{secret:API}}").answer["text"]
    assert "this MCP server was not given the secret API" in told
    add(hosts=[place], environment={"API_KEY": "{{secret:API}}"})
    told = run("caller/get", secrets=(), url=f"http://{place}/").answer["text"]
    assert "the task does not allow the secret API" in told
    assert site.seen == []  # type: ignore[attr-defined]


def test_what_a_server_with_a_way_out_does_counts_as_outside(
    home: Home, site: ThreadingHTTPServer, run: Any, add: Any
) -> None:
    place = place_of(site)
    known(home, f"http://{place}")
    add(hosts=[place])  # its hint says that it only reads
    refused = run("caller/get", effects=(Effect.READ, Effect.WRITE), url=f"http://{place}/")
    assert "add it to the task's effects" in refused.outcome.reason
    add(hosts=[place], effects={"get": Effect.READ})
    told = run("caller/get", effects=(Effect.READ,), url=f"http://{place}/").answer["text"]
    assert "the task does not allow outside effects" in told


def test_the_tasks_files_are_seen_by_name_alone(
    home: Home, site: ThreadingHTTPServer, run: Any, add: Any
) -> None:
    place = place_of(site)
    known(home, f"http://{place}")
    names = ("docs/a.md", "docs/b.md", "keys.txt")
    for inputs, seen in ((["docs/*"], "docs"), ([], ""), (None, "docs keys.txt")):
        add(hosts=[place], inputs=inputs)
        assert run("caller/get", files=True, inputs=names).answer["text"] == seen


# --- servers by URL -----------------------------------------------------------------------------


def test_a_server_by_url_is_added_called_and_replayed(
    home: Home, sandbox: Bubblewrap, site: ThreadingHTTPServer, run: Any, add: Any
) -> None:
    place = place_of(site)
    known(home, f"http://{place}")
    about = {
        "url": f"http://{place}/mcp",
        "hosts": [place],
        "environment": {"Authorization": "Bearer {{secret:API}}"},
    }
    added = add(**about)
    assert (added.served.name, added.tools) == ("far", ["echo"])
    assert look_at(home, sandbox, "caller", partial(by_hand, home)).same == ["echo"]
    first = run("caller/echo", text="hello")
    assert first.outcome.result is Result.PASSED, first.outcome.reason
    assert first.answer["said"] == {"text": "hello"}
    assert KEY not in json.dumps(first.answer)
    assert [step.node for step in first.steps].count("fetch") == 4
    before = len(site.seen)  # type: ignore[attr-defined]
    registry = Registry(home.registry)
    plan = Plan(mode=Mode.REPLAY, recording=recording_of(registry.stable(), [("run-before", first.steps)]))
    assert run("caller/echo", plan, text="hello").answer == first.answer
    assert run("caller/echo", plan, text="other").outcome.result is Result.NOT_REPLAYABLE
    assert len(site.seen) == before  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("path", "environment", "says"),
    [
        ("/mcp", {}, "it answered with HTTP 401: who are you?"),
        ("/away", {}, "it answered with HTTP 307: go to http://192.0.2.1/mcp"),
        ("/html", {}, "it answered with something that is no JSON"),
    ],
)
def test_a_server_by_url_that_cannot_be_used_is_refused_in_one_sentence(
    home: Home, site: ThreadingHTTPServer, add: Any, path: str, environment: dict[str, str], says: str
) -> None:
    place = place_of(site)
    known(home, f"http://{place}")
    with pytest.raises(UserError, match=says):
        add(url=f"http://{place}{path}", hosts=[place], environment=environment)


def test_a_url_that_the_settings_do_not_name_is_not_asked(
    home: Home, site: ThreadingHTTPServer, add: Any
) -> None:
    place = place_of(site)
    with pytest.raises(UserError, match=r"add it to 'egress' in agentos\.toml"):
        add(url=f"http://{place}/mcp", hosts=[place])
    home.settings.write_text(f'egress = ["localhost:{site.server_port}"]\n')
    with pytest.raises(UserError, match="which is not public"):
        add(url=f"http://localhost:{site.server_port}/mcp", hosts=[f"localhost:{site.server_port}"])
    assert site.seen == []  # type: ignore[attr-defined]


# --- the other sandbox --------------------------------------------------------------------------


@pytest.mark.docker
def test_in_a_container_it_is_the_same(
    home: Home, secure: ThreadingHTTPServer, ledger: Ledger, add: Any, make_task: Callable[..., Task]
) -> None:
    """A server's proxy, key and files in Docker as in bubblewrap."""
    from agentos.sandboxes.choice import Choice
    from agentos.settings import load_settings
    from tests.daemon.test_same_inside import build

    build()
    place = place_of(secure)
    known(home, place)
    add(hosts=[place], environment={"API_KEY": "{{secret:API}}"})
    registry = Registry(home.registry)
    settings = load_settings(home.settings)
    with closing(Choice(home.root, settings.run_uid, "docker")) as container:
        assert look_at(home, container, "caller", partial(by_hand, home)).same == ["get"]
        parts = ServerParts(
            container,
            ledger.blobs,
            lambda asking, tool: program_of(tool, {}, archive(home, tool.brings)),
            lambda asking, tool: Egress(settings.egress, asking, home, tool),
        )
        serving = RunServices(
            answerers={"tool": lambda asking: ServerToolAsks(asking, RunServers(parts, asking))}
        )
        executor = BoxExecutor(registry, ledger.blobs, container, serving=serving)
        task = replace(make_task("caller/get", url=f"https://{place}/post", body="x"), effects=(*Effect,))
        done = executor.execute(replace(task, secrets=("API",)), registry.stable(), new_id("run"))
    assert done.outcome.result is Result.PASSED, done.outcome.reason
    assert secure.seen[-1]["X-Key"] == KEY  # type: ignore[attr-defined]
