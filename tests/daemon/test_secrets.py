"""Secrets: put into requests by the kernel, for the hosts that they are bound to, and found nowhere else."""

from __future__ import annotations

import base64
import json
import os
import stat
import sys
import types
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from agentos.daemon.requests.egress import Egress
from agentos.daemon.requests.run_requests import ToolAsks
from agentos.daemon.requests.secret_requests import secrets_in
from agentos.daemon.run.execution import BoxExecutor, RunServices
from agentos.domain import Call, Effect, Mode, Result, Task, new_id
from agentos.errors import ErrorKind, NotFound, Unavailable, UserError
from agentos.evolver.history.recordings import recording_of
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.models.redaction import redactor_of
from agentos.models.secrets import Secret, keep, remove, secrets_of, value_of
from agentos.ports import Attempt, Plan
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.settings import load_settings
from tests.command_server import command_server
from tests.loopback import serving
from tests.refusals import raises

VALUE = "s3cr3t/Value+42~é"
TOOL = '''"""Asks the outside."""

from pydantic import BaseModel

from agentos.worker.egress import OutsideError, fetch

TOOL = {"name": "ask_api", "description": "Asks an API.", "effects": ["external"], "secrets": ["API", "OTHER"]}


class Input(BaseModel):
    url: str
    headers: dict[str, str] = {}
    body: str = ""


class Output(BaseModel):
    status: int
    text: str
    headers: dict[str, str] = {}


def run(input: Input) -> Output:
    try:
        found = fetch(input.url, method="POST", headers=input.headers, body=input.body.encode())
    except OutsideError as error:
        return Output(status=0, text=str(error))
    return Output(status=found.status, text=found.text, headers=found.headers)
'''


class _Api(BaseHTTPRequestHandler):
    """Remembers what it got; gives it back as the path says."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        key = self.headers.get("X-Key", "").encode("latin-1")
        self.server.seen.append((self.path, key, body))  # type: ignore[attr-defined]
        self.send_response(302 if self.path.startswith("/away") else 200)
        self.send_header("Location", f"http://localhost:{self.server.server_port}/?key={quote(key)}")  # type: ignore[attr-defined]
        self.send_header("X-Echo", key.decode("latin-1"))
        self.end_headers()
        spelt = {"/base64": base64.b64encode(b"user:" + key), "/hex": key.hex().encode(), "/json": json.dumps(key.decode()).encode()}  # fmt: skip
        self.wfile.write(b"you said " + spelt.get(self.path, key) + b" and " + body)

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def api() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Api)
    server.seen = []  # type: ignore[attr-defined]
    with serving(server):
        yield server


class World:
    def __init__(self, home: Home, ledger: Ledger, sandbox: Bubblewrap, task: Task, port: int) -> None:
        self.home, self.registry, self.port = home, Registry(home.registry), port
        files = {"tool/ask-api/tool.py": TOOL, "tool/ask-api/resource.toml": 'description = "Asks an API."\n'}
        self.registry.commit({path: text.encode() for path, text in files.items()}, "A tool", "edit")
        self.ledger, self.sandbox = ledger, sandbox
        self.task = replace(task, id=new_id("task"), checks=(), effects=(Effect.EXTERNAL,), secrets=("API",))
        self.place = f"127.0.0.1:{port}"
        keep(home, Secret("API", (f"http://{self.place}",), False, "now", "file"), VALUE)
        self.redact = redactor_of(home, load_settings(home.settings)).value

    def run(
        self, path: str = "/", plan: Plan | None = None, *, task: Task | None = None, **args: Any
    ) -> Attempt:
        hosts = [self.place, f"localhost:{self.port}"]
        serving = RunServices(
            redact=self.redact,
            answerers={"fetch": lambda asking: Egress(hosts, asking, self.home), "tool": ToolAsks},
        )
        executor = BoxExecutor(self.registry, self.ledger.blobs, self.sandbox, serving=serving)
        url = args.pop("url", f"http://{self.place}{path}")
        asked = replace(task or self.task, call=Call("ask_api", {"url": url, **args}))
        return executor.execute(asked, self.registry.stable(), "run-e", plan=plan)


@pytest.fixture
def world(home: Home, ledger: Ledger, sandbox: Bubblewrap, make_task: Any, api: ThreadingHTTPServer) -> World:
    return World(home, ledger, sandbox, make_task("double", n=1), api.server_port)


def spelt(value: str) -> list[str]:
    data = value.encode()
    inner = [base64.b64encode(b"x" * n + data).decode()[4:-4] for n in range(3)]
    return [
        value,
        data.decode("latin-1"),
        json.dumps(value)[1:-1],
        quote(value, safe=""),
        quote(value),
        data.hex(),
        *inner,
    ]


def assert_nowhere(done: Attempt) -> None:
    told = repr((done.answer, done.steps, done.outcome, done.files))
    assert not [spelling for spelling in spelt(VALUE) if spelling in told]


WAYS: dict[str, tuple[str, dict[str, Any], Any]] = {
    "header": ("/", {"headers": {"X-Key": "{{secret:API}}"}}, ("/", VALUE.encode(), b"")),
    "query": ("/?a=1&key={{secret:API}}", {}, (f"/?a=1&key={quote(VALUE, safe='')}", b"", b"")),
    "query that was encoded": ("/?k=%7B%7Bsecret%3AAPI%7D%7D", {}, (f"/?k={quote(VALUE, safe='')}", b"", b"")),
    "body": ("/", {"body": "key={{secret:API}}"}, ("/", b"", f"key={VALUE}".encode())),
    "json": (
        "/",
        {"headers": {"Content-Type": "application/json"}, "body": '{"key": "{{secret:API}}"}'},
        ("/", b"", f'{{"key": "{VALUE}"}}'.encode()),
    ),
}  # fmt: skip


@pytest.mark.sandbox
@pytest.mark.parametrize("way", WAYS)
def test_the_host_gets_the_value_and_nobody_else(world: World, api: Any, way: str) -> None:
    path, args, expected = WAYS[way]
    done = world.run(path, **args)
    assert api.seen == [expected]
    assert done.answer["status"] == 200
    assert_nowhere(done)
    (step,) = [step for step in done.steps if step.node == "fetch"]
    assert "ecret" in str(step.action)  # what stands on record is what the tool wrote


@pytest.mark.sandbox
@pytest.mark.parametrize("path", ["/plain", "/base64", "/hex", "/json", "/away"])
def test_what_comes_back_holds_it_in_no_spelling_that_is_known(world: World, api: Any, path: str) -> None:
    done = world.run(path, headers={"X-Key": "{{secret:API}}"})
    assert "[redacted:API]" in done.answer["headers"]["location"]
    assert len(api.seen) == 1  # a redirect is given, not followed
    assert_nowhere(done)
    assert "[redacted:API]" in done.answer["text"]
    assert "[redacted:API]" in done.answer["headers"]["x-echo"]


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "another host": ({"url": "http://localhost:{port}/?k={{secret:API}}"}, {}, "not bound"),
    "another scheme": ({"url": "https://127.0.0.1:{port}/?k={{secret:API}}"}, {}, "not bound"),
    "the path": ({"path": "/{{secret:API}}/x"}, {}, "nowhere else"),
    "the path, encoded": ({"path": "/%7B%7Bsecret%3AAPI%7D%7D"}, {}, "nowhere else"),
    "a secret that the task does not name": ({"headers": {"X-Key": "{{secret:OTHER}}"}}, {}, "does not allow"),
    "a task that names none": ({"headers": {"X-Key": "{{secret:API}}"}}, {"secrets": ()}, "does not allow"),
    "a secret that no tool declares": ({"body": "{{secret:THIRD}}"}, {"secrets": ("THIRD",)}, "no tool"),
    "a secret that is not there": ({"body": "{{secret:OTHER}}"}, {"secrets": ("OTHER",)}, "there is no secret"),
    "an allowed one beside another": ({"body": "{{secret:API}}{{secret:OTHER}}"}, {}, "does not allow"),
}  # fmt: skip


@pytest.mark.sandbox
def test_the_name_of_a_header_holds_no_secret(world: World, api: Any) -> None:
    """It is no name of a header at all, which is refused before anybody looks for secrets."""
    done = world.run("/", task=world.task, headers={"X-{{secret:API}}": "a"})
    assert api.seen == []
    assert (done.answer["status"], "or no name" in done.answer["text"]) == (0, True)


@pytest.mark.sandbox
@pytest.mark.parametrize("attack", REFUSED)
def test_what_may_not_be_sent_is_not_sent_and_stands_on_record(world: World, api: Any, attack: str) -> None:
    args, changes, says = REFUSED[attack]
    if attack != "a secret that is not there":
        keep(world.home, Secret("OTHER", (f"http://{world.place}",), False, "now", "file"), "another value")
    args = {
        name: value.replace("{port}", str(world.port)) if isinstance(value, str) else value
        for name, value in args.items()
    }
    done = world.run(args.pop("path", "/"), task=replace(world.task, **changes), **args)
    assert api.seen == []
    assert done.answer["status"] == 0
    assert says in done.answer["text"]
    (step,) = [step for step in done.steps if step.node == "fetch"]
    assert says in step.observation["error"]


@pytest.mark.sandbox
def test_a_server_of_this_machine_that_was_named_without_its_scheme_is_told_how_to_be(
    world: World, api: Any
) -> None:
    keep(world.home, Secret("API", (world.place,), False, "now", "file"), VALUE)
    done = world.run(headers={"X-Key": "{{secret:API}}"})
    assert api.seen == []
    assert f"agentos secret set API --host http://{world.place}" in done.answer["text"]


@pytest.mark.sandbox
def test_a_trial_is_served_and_never_asks_for_the_value(world: World, api: Any) -> None:
    live = world.run(headers={"X-Key": "{{secret:API}}"})
    remove(world.home, "API")
    recording = recording_of(world.registry.stable(), [("run-1", live.steps)])
    trial = world.run(
        plan=Plan(Mode.REPLAY, recording, evolution_id="e"), headers={"X-Key": "{{secret:API}}"}
    )
    assert (len(api.seen), trial.answer) == (1, live.answer)
    other = world.run(plan=Plan(Mode.REPLAY, recording, evolution_id="e"), body="{{secret:API}}")
    assert other.outcome.result is Result.NOT_REPLAYABLE


def test_any_task_may_use_one_that_says_so(home: Home) -> None:
    kept = keep(home, Secret("API", ("https://API.example.org/",), True, "now", "file"), VALUE)
    assert (kept.hosts, kept.any_task) == (("api.example.org",), True)
    assert kept.is_for("https", "api.example.org")
    for scheme, place in (
        ("http", "api.example.org"),
        ("https", "api.example.org:8443"),
        ("https", "x.api.example.org"),
    ):
        assert not kept.is_for(scheme, place)


@pytest.mark.parametrize(
    ("name", "hosts", "value"),
    [
        ("no name", ("h.example",), VALUE),
        ("A", (), VALUE),
        ("A", ("*.example.org",), VALUE),
        ("A", ("ftp://h.example",), VALUE),
        ("A", ("h.example/path",), VALUE),
        ("A", ("user@h.example",), VALUE),
        ("A", ("h.example",), "short"),
        ("A", ("h.example",), "two\r\nlines of it"),
    ],
)
def test_what_cannot_be_kept_safely_is_refused(
    home: Home, name: str, hosts: tuple[str, ...], value: str
) -> None:
    with pytest.raises(UserError) as told:
        keep(home, Secret(name, hosts, False, "now", "file"), value)
    assert value not in str(told.value)
    assert secrets_of(home) == {}


def test_a_secret_is_kept_in_one_place(home: Home) -> None:
    with raises(UserError, ErrorKind.USAGE, names=["--store"]):
        keep(home, Secret("A", ("h.example",), False, "now", "file"), VALUE, in_file=True, store="vault")
    assert secrets_of(home) == {}


def test_the_file_is_the_owners_alone(home: Home) -> None:
    keep(home, Secret("A", ("h.example",), False, "now", "file"), VALUE)
    assert stat.S_IMODE(home.secrets.stat().st_mode) == 0o600
    home.secrets.chmod(0o644)
    with raises(UserError, ErrorKind.EXPOSED):
        secrets_of(home)
    home.secrets.chmod(0o600)
    home.secrets.write_text('{"A": ' + VALUE)
    with pytest.raises(UserError) as told:
        value_of(home, "A")
    assert VALUE not in str(told.value)


@pytest.mark.slow
def test_the_commands_never_show_a_value_and_are_audited(home: Home, ledger: Ledger) -> None:
    def typed(*words: str, given: str = "", code: int = 0) -> str:
        done = command_server().run("--home", str(home.root), "secret", *words, env=os.environ, stdin=given)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    said = typed("set", "API", "--host", "api.example.org", "--file", given=VALUE + "\n")
    said += typed("list") + typed("list", "--json")
    assert json.loads(typed("list", "--json"))[0]["hosts"] == ["api.example.org"]
    assert value_of(home, "API") == VALUE
    assert VALUE not in redactor_of(home, load_settings(home.settings)).text(f"here {VALUE} is")
    said += typed("set", "API", given=VALUE, code=1)
    typed("remove", "API")
    typed("remove", "API", code=1)
    assert VALUE not in said
    events = [(entry.event, entry.detail["hosts"]) for entry in ledger.entries() if entry.subject == "API"]
    assert events == [("secret.set", ["api.example.org"]), ("secret.removed", ["api.example.org"])]
    with pytest.raises(NotFound):
        value_of(home, "API")
    for path in home.root.rglob("*"):
        assert not path.is_file() or VALUE.encode() not in path.read_bytes(), path


def test_a_keyring_keeps_the_value_out_of_the_file(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in: the real one is an optional part, and needs a desktop."""
    kept: dict[tuple[str, str], str] = {}
    ring = types.ModuleType("keyring")
    errors = types.ModuleType("keyring.errors")
    errors.KeyringError = type("KeyringError", (Exception,), {})  # type: ignore[attr-defined]

    def get(service: str, name: str) -> str | None:
        if "locked" in kept.values():
            raise errors.KeyringError("locked")
        return kept.get((service, name))

    ring.errors, ring.get_password = errors, get  # type: ignore[attr-defined]
    ring.get_keyring = lambda: types.SimpleNamespace(priority=5)  # type: ignore[attr-defined]
    ring.set_password = lambda service, name, value: kept.update({(service, name): value})  # type: ignore[attr-defined]
    ring.delete_password = lambda service, name: kept.pop((service, name))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", ring)
    monkeypatch.setitem(sys.modules, "keyring.errors", errors)
    assert keep(home, Secret("A", ("h.example",), False, "now", "file"), VALUE).kept_in == "keyring"
    assert VALUE not in home.secrets.read_text()
    assert value_of(home, "A") == VALUE
    kept["", ""] = "locked"
    with pytest.raises(Unavailable):
        value_of(home, "A")
    del kept["", ""]
    remove(home, "A")
    assert kept == {}


def test_only_a_literal_declares(tmp_path: Path) -> None:
    assert secrets_in(TOOL.encode()) == {"API", "OTHER"}
    assert secrets_in(TOOL.replace('["API", "OTHER"]', "names()").encode()) == frozenset()
    assert secrets_in(b"TOOL = {'secrets': ['A']}\nTOOL = {}\n") == frozenset()  # the last one holds
    assert secrets_in(b"\xff") == frozenset()
