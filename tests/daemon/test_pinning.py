"""A dependency that broke a tool or an MCP server is set back to the wheels that it had, by an evolution, and by none
other than these. No index is asked: the wheels are made here, and are here afterwards."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agentos.daemon.mcp.adding import NewServer, add_server
from agentos.daemon.mcp.packages import Packages
from agentos.domain import (
    Call,
    Candidate,
    Check,
    Effect,
    Evolution,
    EvolutionState,
    Kind,
    Limits,
    ResourceId,
    Result,
    Share,
    Task,
    TaskState,
    Tier,
    Verdict,
    tier_of,
)
from agentos.errors import Invalid
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from tests.daemon.conftest import Daemon, until
from tests.daemon.thinking_world import free_task, typed
from tests.registry.wheelshop import Shop, needy, open_shop

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

BROKEN = {"greeting/__init__.py": "def hello(name, *, language):\n    return language\n"}  # another signature
POLICY = """
[judge]
fresh_tasks = 0
[mine]
settle_s = 0.5
[propose]
max_candidates = 1
budget_s = 1.0
[replay]
repeats = 1
[sandbox]
high = "bubblewrap"
"""
# Speaks MCP over its standard streams, and asks the library for what it answers.
SERVER = """
import json, sys
import greeting
def main():
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        method, given = asked["method"], asked.get("params") or {}
        if method == "initialize":
            said = {"protocolVersion": given["protocolVersion"], "capabilities": {"tools": {}},
                    "serverInfo": {"name": "greeter", "version": "1"}}
        elif method == "tools/list":
            schema = {"type": "object", "properties": {"name": {"type": "string"}}}
            said = {"tools": [{"name": "hello", "description": "Greets.", "inputSchema": schema}]}
        else:
            said = {"content": [{"type": "text", "text": greeting.hello(given["arguments"]["name"])}]}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": said}), flush=True)
main()
"""


TOOLS = ("greet", "greeter/hello")


def greet(name: str, tool: str, share: Share = Share.OPEN) -> tuple[Task, Share]:
    check = Check("equals", {"value": {"text": f"Hello, {name}!"}})
    task = free_task(f"Greet {name}", checks=[check], agent="default", limits=Limits(wall_s=60.0))
    return replace(task, call=Call(tool, {"name": name})), share


class World:
    """A home with a tool and a server that worked with greeting 1.0; both are locked to 2.0, and fail, since."""

    def __init__(self, home: Home, shop: Shop, sandbox: Bubblewrap, files: Path) -> None:
        self.home, self.registry = home, Registry(home.registry)
        self.ledger, self.daemon = Ledger(home.ledger), Daemon(home)
        shop.greeting("1.0")
        about = b'description = "Greets."\n'
        self.registry.commit(
            {"tool/greet/resource.toml": about, "tool/greet/tool.py": needy("greeting")}, "Add", "edit"
        )
        server = NewServer(
            "greeter",
            Packages(("python3", "{server}/main.py"), wheels=("greeting",)),
            effects={"hello": Effect.PURE},
            files=files,
        )
        add_server(home, sandbox, server)
        self.daemon.start()
        for tool in TOOLS:
            self.work(*(greet(name, tool) for name in ("Ada", "Bo", "Cy")), greet("Di", tool, Share.HOLD_OUT))
        shop.wheel("greeting", "2.0", BROKEN)
        typed(home, "registry", "wheels", "tool/greet", "--relock")
        add_server(home, sandbox, server)
        for tool in TOOLS:
            self.work(*(greet(name, tool) for name in ("Ed", "Flo")))
        until(lambda: len(self.asked()) == len(TOOLS), "both pins are asked about", 180)

    def work(self, *tasks: tuple[Task, Share]) -> None:
        for task, share in tasks:
            self.ledger.add_task(task, share)

        def idle() -> bool:
            return not any(self.ledger.tasks(state) for state in (TaskState.QUEUED, TaskState.RUNNING))

        until(idle, "the tasks are done", 120)

    def asked(self) -> list[tuple[Evolution, Candidate]]:
        found = self.ledger.find(Evolution, state=EvolutionState.AWAITING_CONSENT)
        return [(item, self.ledger.get(Candidate, str(item.candidate_id))) for item in found]


@pytest.fixture(scope="module")
def world(made_home: Path, sandbox: Bubblewrap, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    root = tmp_path_factory.mktemp("pins")
    shutil.copytree(made_home, root / "home")
    (root / "home" / "policy.toml").write_text(POLICY)
    (root / "server").mkdir()
    (root / "server" / "main.py").write_text(SERVER)
    with pytest.MonkeyPatch.context() as patch:
        made = World(Home(root / "home"), open_shop(root / "shop", patch), sandbox, root / "server")
        try:
            yield made
        finally:
            made.daemon.close()
            made.ledger.close()


def test_a_dependency_that_broke_a_tool_or_a_server_is_pinned(world: World) -> None:
    found = world.asked()
    assert {candidate.proposer for _, candidate in found} == {"pin"}
    assert {path for _, candidate in found for path in candidate.edit.files} == {
        "tool/greet/wheels.lock",
        "skill/greeter/wheels.lock",
    }
    for _, candidate in found:
        assert "greeting 2.0 to 1.0" in candidate.edit.summary
        assert tier_of(candidate.edit.files) is Tier.HIGH
        (verdict,) = world.ledger.find(Verdict, candidate_id=candidate.id)
        assert len(verdict.fixed) >= 2  # and what passed before, on the wheels of then
    # the other one would have to be measured again: the registry moves
    (server,) = [item for item, candidate in found if "skill/greeter/wheels.lock" in candidate.edit.files]
    typed(world.home, "evolution", "approve", server.id, "--yes")
    world.work(greet("Gus", "greeter/hello"))
    (run,) = world.ledger.runs(world.ledger.tasks()[-1].task.id)
    assert run.outcome is not None
    assert run.outcome.result is Result.PASSED, run.outcome.reason


def test_no_evolution_brings_in_any_other_wheel(world: World, tmp_path: Path) -> None:
    """All that is not, byte for byte, a lock that this resource had, for what it declares, with its wheels here."""
    registry = world.registry
    name = ResourceId(Kind.TOOL, "greet")
    locks = [files["tool/greet/wheels.lock"].decode() for _, files in registry.contents(name)]
    before = next(lock for lock in locks if 'version = "1.0"' in lock)
    base = registry.stable()
    now = registry.files(base, "tool/greet/wheels.lock")["tool/greet/wheels.lock"].decode()
    other = next(lock for lock in locks if lock != now)
    source = registry.files(base, "tool/greet/tool.py")["tool/greet/tool.py"].decode()
    server = {path: content.decode() for path, content in registry.files(base, "skill/greeter").items()}
    page, card = server["skill/greeter/SKILL.md"], server["skill/greeter/tools/hello/tool.json"]
    attacks = {
        "another wheel": {"tool/greet/wheels.lock": other.replace('sha256 = "', 'sha256 = "0')[:-4]},
        "one that is here, by another name": {"tool/greet/wheels.lock": other.replace("greeting", "grating")},
        "another version's name": {"tool/greet/wheels.lock": other + "# more\n"},
        "what is declared with it": {
            "tool/greet/wheels.lock": other.replace('["greeting"]', '["greeting<2"]'),
            "tool/greet/tool.py": source.replace("['greeting']", "['greeting<2']"),
        },
        "no wheels": {"tool/greet/wheels.lock": before.partition("[[wheel]]")[0]},
        "a server's instructions": {"skill/greeter/SKILL.md": page.replace("hello", "hi")},
        "a server's tool": {"skill/greeter/tools/hello/tool.json": card.replace("Greets", "Says")},
        "a tool beside a server's": {"skill/greeter/tools/more.py": source.replace("'greeting'", "")},
        "that of another resource": {"tool/word-count/wheels.lock": other},
    }
    for number, files in enumerate(attacks.values()):
        with pytest.raises(Invalid, match="An evolution may not change"):
            registry.add_candidate(f"attack-{number}", base, files)
    registry.add_candidate("honest", base, {"tool/greet/wheels.lock": other})
    gone = world.home.root / "wheels" / f"{re.findall(r'[0-9a-f]{64}', other)[0]}.whl"
    gone.rename(tmp_path / "kept.whl")
    try:
        with pytest.raises(Invalid):
            registry.add_candidate("gone", base, {"tool/greet/wheels.lock": other})
    finally:
        (tmp_path / "kept.whl").rename(gone)
