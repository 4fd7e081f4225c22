"""A home with a scripted model that counts what it is paid for, and a site that counts what is done to it.

The model is a function of the request alone: whatever is not served as it was makes another request,
which it counts. A goal says what happens: ``[work N TURNS]`` calls three tools in each turn.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from agentos.domain import Check, Effect, Json, Limits, Task, digest, new_id
from agentos.home import Home
from agentos.registry.store import Registry
from agentos.testing import ModelServer, call, say
from agentos.testing.modelserver.replies import ServerReply
from tests.command_server import command_server
from tests.loopback import serving

KEY_ENV = "THINKING_TEST_API_KEY"
KEY = "sk-of-the-thinking-tests-0123456789"
EVERY_EFFECT = (Effect.PURE, Effect.READ, Effect.WRITE, Effect.EXTERNAL)
GOAL = re.compile(r"\[(\w+)((?: [^ \]]+)*)\]")

_TOOL = '''"""{name}."""
import os
import uuid
from pathlib import Path
from pydantic import BaseModel
from agentos.worker.egress import fetch
TOOL = {{"name": "{name}", "description": "{name} for a test", "effects": ["{effect}"]{more}}}
class Input(BaseModel):
    text: str
class Output(BaseModel):
    text: str
def run(input: Input) -> Output:
    return Output(text=str({value}))
'''


class _Site(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.server.seen[self.path] += 1  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: Any) -> None: ...


@contextmanager
def site() -> Iterator[ThreadingHTTPServer]:
    """A site on loopback; ``seen`` counts the requests by their path."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    server.seen = Counter()  # type: ignore[attr-defined]
    with serving(server):
        yield server


def tools(place: str) -> dict[str, bytes]:
    """note writes, look gives another result each time, post acts on the site and must not act twice."""
    described = (
        ("note", "write", "Path(input.text).write_text(input.text)", ""),
        ("look", "read", "[sorted(os.listdir()), uuid.uuid4().hex]", ""),
        ("post", "external", f'fetch(f"http://{place}/{{input.text}}", method="POST").text', ""),
        ("pure", "pure", "input.text.upper()", ""),
    )
    files = {}
    for name, effect, value, more in described:
        source = _TOOL.format(name=name, effect=effect, value=value, more=more)
        files[f"tool/{name}/tool.py"] = source.encode()
        files[f"tool/{name}/resource.toml"] = f'description = "{name} for a test"\n'.encode()
    return files


def agent(name: str, **keys: Json) -> dict[str, bytes]:
    """An agent's document."""
    said = {"description": f"The agent {name}", "skills": [], **keys}
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in said.items())
    return {f"agent/{name}/resource.toml": text.encode()}


def typed(home: Home, *words: str, code: int | None = 0, **environment: str) -> str:
    """What a command prints."""
    done = command_server().run("--home", str(home.root), *words, env=os.environ | environment)
    assert code is None or done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def furnish(home: Home, base_url: str, place: str, *, settings: str = "") -> None:
    """Tools, agents and the model, by the real commands where a person would type them."""
    typed(home, "model", "add", "scripted", "--model", "openai/scripted", "--provider", "local", "--api-base",
          base_url, "--key-env", KEY_ENV, "--input-price", "1", "--output-price", "2")  # fmt: skip
    text = home.settings.read_text()
    home.settings.write_text(f'egress = ["{place}"]\n{settings}\n{text}')
    files = {
        **tools(place),
        **agent("tester", tools=["note", "look", "post", "pure"], agents=["helper"]),
        **agent("helper", tools=["note", "look", "post", "pure"]),
    }
    Registry(home.registry).commit(files, "What the thinking tests need", "edit")


def free_task(goal: str, *, checks: Sequence[Check] = (), **changes: Any) -> Task:
    """A task without a call that may do anything."""
    made = Task(
        id=new_id("task"),
        name=goal[:80],
        goal=goal,
        call=None,
        inputs=(),
        agent="tester",
        limits=Limits(wall_s=90.0),
        effects=EVERY_EFFECT,
        checks=tuple(checks),
        schedule=None,
        created_at=datetime.now(UTC),
    )
    return replace(made, **changes)


# The words after the goal's first -> what is said to a request.
Script = Callable[..., Callable[[Json], ServerReply]]


# --- the model ----------------------------------------------------------------------------------


def results(request: Json) -> list[str]:
    """What the tools gave so far."""
    return [str(one["content"]) for one in request["messages"] if one["role"] == "tool"]


def asked(request: Json) -> tuple[str, list[str]]:
    """The goal's word and its arguments."""
    first = next(one for one in request["messages"] if one["role"] == "user")
    found = GOAL.search(str(first["content"]))
    return (found[1], found[2].split()) if found else ("nothing", [])


def turn_of(request: Json) -> int:
    """How many times it called tools before."""
    return sum(bool(one.get("tool_calls")) for one in request["messages"])


def work(number: str, turns: str) -> Callable[[Json], ServerReply]:
    """In each turn a note, a look and a post; then what it saw, but for what a kill may leave uncertain."""

    def reply(request: Json) -> ServerReply:
        turn = turn_of(request)
        if turn < int(turns):
            text = {"text": f"{number}-{turn}"}
            return call("note", text, ("look", text), ("post", text))
        seen = [text for place, text in enumerate(results(request)) if place % 3 != 2]
        return say(json.dumps({"number": number, "turns": turn, "seen": digest(seen)}))

    return reply


def scripted(
    more: Mapping[str, Script] | None = None, delay: Callable[[], float] = lambda: 0.0
) -> Callable[[Json, int], ServerReply]:
    """The policy of a server: what the goal's word stands for."""
    known: dict[str, Script] = {"nothing": lambda: lambda request: say("ok"), "work": work, **(more or {})}

    def policy(request: Json, number: int) -> ServerReply:
        word, args = asked(request)
        return replace(known[word](*args)(request), delay_s=delay())

    return policy


@contextmanager
def world(home: Home, policy: Any, *, settings: str = "") -> Iterator[tuple[ModelServer, Counter[str]]]:
    """The model's server and what the site saw, in a home that knows both."""
    with ModelServer(policy) as server, site() as outside:
        furnish(home, server.base_url, f"127.0.0.1:{outside.server_port}", settings=settings)
        yield server, outside.seen  # type: ignore[attr-defined]


# --- processes ----------------------------------------------------------------------------------


def below(pid: int) -> Iterator[tuple[int, str]]:
    """Ids and command lines of a process' own children."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # it is over meanwhile
            for child in task.read_text().split():
                words = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                yield int(child), words


def children(pid: int) -> Iterator[tuple[int, str]]:
    """And of theirs."""
    for child, words in below(pid):
        yield child, words
        yield from children(child)


def boxes_of(daemon: int) -> tuple[int | None, list[int]]:
    """The outermost process of its sandbox, and the first one of each box.

    A box is a child of the template (one clone), or its sibling (where two forks made it).
    """
    sandbox = [pid for pid, words in children(daemon) if "worker.template" in words][:2]  # bwrap twice
    template, *siblings = [pid for pid, _ in below(sandbox[-1])] if sandbox else [0]
    return (sandbox[0], [*siblings, *(pid for pid, _ in below(template))]) if template else (None, [])


def gateway_of(daemon: int) -> int | None:
    """The gateway of a daemon, while there is one: who reads what the daemon writes.

    It need not be a child of the daemon (``tests/command_server.py``).
    """
    inherited = {*_links(daemon, "[012]")}
    ours = {end for end in _links(daemon, "*") if end.startswith("pipe:")} - inherited
    for place in Path("/proc").glob("[0-9]*"):
        pid = int(place.name)
        if pid != daemon and ours & {*_links(pid, "0")}:
            return pid
    return None


def _links(pid: int, which: str) -> Iterator[str]:
    """What descriptors of a process stand for."""
    for link in Path(f"/proc/{pid}/fd").glob(which):
        with suppress(OSError):  # it is over meanwhile
            yield os.readlink(link)


def kill(pid: int) -> None:
    """At once, if it is there."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
