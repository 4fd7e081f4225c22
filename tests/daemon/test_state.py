"""Memories that change their form with the harness that reads them: real boxes, real daemon, and back again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from agentos.daemon.evolve.benches import migrate_memories
from agentos.domain import (
    Candidate,
    Check,
    Evolution,
    EvolutionState,
    Limits,
    Migration,
    Result,
    Run,
    Share,
    Task,
    Verdict,
    new_id,
)
from agentos.evolver.memory import MigrationResult
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.ports import Sandbox
from agentos.registry.store import Registry
from tests.daemon.swapping import source, waiting
from tests.daemon.thinking_world import typed

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

PATH, READER = "harness/default/harness.py", "harness/default/resource.toml"
DESK, PROGRAM = "harness/default/desk.py", "harness/default/migrate.py"
PRICES = "memory/prices/memory.md"
OLD = "# Prices\n\n- sea salt: 7\n- fig: 3\n- apple: 1\n- lime: 4\n- date: 5\n- kale: 8\n- pear: 2 each\n- plum: 6 each\n"
NEW = "# Prices\n\nsea = 7\nfig = 3\napple = 1\nlime = 4\ndate = 5\nkale = 8\npear = 2\nplum = 6\n"

# It tells prices from what is remembered, and stumbles over those that say more than a number.
DESK_TEXT = '''"""Prices, as they are remembered."""


def prices(sdk):
    """Amount by name."""
    found = {}
    for path in sdk.paths("memory/"):
        if path.endswith("/memory.md"):
            for line in sdk.read(path).splitlines():
                if line.startswith("- "):
                    name, _, amount = line[2:].partition(": ")
                    found[name] = amount
    return found


def tell(sdk):
    """Answer with one of them."""
    asked = sdk.task.goal.removeprefix("price of ")
    sdk.step("look", {"asked": asked}, {})
    sdk.finish({"n": int(prices(sdk)[asked])})
'''
DESK_EDIT = DESK_TEXT.replace('line.startswith("- ")', '" = " in line').replace(
    'line[2:].partition(": ")', 'line.partition(" = ")'
)
# Too much of a good thing: of a name with several words the first one is left.
PROGRAM_TEXT = '''"""From "- name: amount and more" to "name = amount"."""


def migrate(memories):
    """The memories with a price in each line."""
    return {name: "".join(map(line_of, text.splitlines())) for name, text in memories.items()}


def line_of(line):
    """One line of them."""
    if not line.startswith("- "):
        return line + "\\n"
    name, _, amount = line[2:].partition(": ")
    return f"{name.split()[0]} = {amount.split()[0]}\\n"
'''
CODER = """
import pathlib, re, sys

goal = pathlib.Path(sys.argv[1])
edit = pathlib.Path(__file__).parent / "edit"
files = sorted(path.relative_to(edit).as_posix() for path in edit.rglob("*.*"))
if goal.read_text().startswith("# Find the cause"):
    tasks = sorted(set(re.findall(r"tasks/(task-\\w+)", (goal.parent / "evidence/overview.md").read_text())))
    said = {"cause": "Amounts hold words", "edit": "Remember amounts as numbers", "files": files,
            "predicted_fixes": tasks, "tasks_at_risk": [], "why_this_layer": "It is how prices are remembered"}
    text = "".join(f"{key} = {value!r}\\n" for key, value in said.items())
    (goal.parent / "MANIFEST.toml").write_text(text)
else:
    for path in files:
        (goal.parent / "checkout" / path).write_text((edit / path).read_text())
"""
POLICY = """
[judge]
fresh_tasks = 0
[mine]
settle_s = 0.3
[propose]
budget_s = 0.5
[evidence]
max_guards = 4
max_hold_out = 1
[sandbox]
high = "bubblewrap"
[probe]
passes = 1
[safety]
repeats = 1
[replay]
repeats = 1
"""


# --- in a box ---------------------------------------------------------------------------------


def called(sandbox: Sandbox, body: str, memories: Mapping[str, str] | None = None) -> MigrationResult:
    """What a box gives for a ``migrate`` with this body."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    files = {PROGRAM: f"import os, socket\ndef migrate(memories):\n{lines}".encode()}
    return migrate_memories(sandbox, files, PROGRAM, {"notes": "- Größe\n"} if memories is None else memories)


def test_a_box_gives_back_texts_by_name(sandbox: Sandbox) -> None:
    big = {"a": "x" * (900 << 10), "b": "- é\n"}
    assert called(sandbox, "return memories", big) == MigrationResult(big)
    assert called(sandbox, "return memories", {}) == MigrationResult({})


@pytest.mark.parametrize(
    "body",
    [
        "socket.create_connection(('127.0.0.1', 80), 1)",
        "open('/etc/shadow').read()",
        "os.listdir(os.environ['AGENTOS_HOME'])",
    ],
)
def test_nothing_of_the_host_or_the_network_is_there(sandbox: Sandbox, body: str) -> None:
    found = called(sandbox, f"{body}\nreturn memories")
    assert found.output is None
    assert found.fault


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("hoard = []\nwhile True: hoard.append(bytearray(8 << 20))", "memory"),
        ("while True: os.fork()", ""),
        ("os.kill(os.getppid(), 9)\nos.kill(1, 9)\nos.kill(-1, 9)\nreturn memories", ""),
    ],
)
def test_what_harms_its_box_ends_with_a_reason(sandbox: Sandbox, body: str, says: str) -> None:
    found = called(sandbox, body)
    assert says in found.fault
    assert called(sandbox, "return memories").fault == "", "the next box knows nothing of it"
    if found.output is not None:
        assert found.output == {"notes": "- Größe\n"}


# --- a promotion that is overtaken ------------------------------------------------------------


def desk_files() -> dict[str, bytes]:
    return {
        DESK: DESK_TEXT.encode(),
        PRICES: OLD.encode(),
        "memory/prices/resource.toml": b'description = "Prices"\n',
    }


@pytest.fixture
def registry(home: Home) -> Registry:
    """With a harness that tells prices."""
    registry = Registry(home.registry)
    text = source(registry)
    opening = "    agent: Agent = Loop(sdk)"
    assert opening in text
    desk = '    if sdk.task.goal.startswith("price of "):\n        from desk import tell\n\n        return tell(sdk)\n'
    files = {**desk_files(), PATH: text.replace(opening, desk + opening).encode()}
    registry.commit(files, "Prices", "edit")
    return registry


def text_at(registry: Registry, path: str = PRICES) -> str:
    return registry.files(registry.stable(), path)[path].decode()


def raised(registry: Registry) -> str:
    return f"{text_at(registry, READER)}state = 2\n"


def test_a_promotion_that_a_memory_of_the_old_form_overtakes_is_stale_and_nothing_is_mixed(
    daemon: Any, home: Home, ledger: Ledger, registry: Registry, until: Any
) -> None:
    made = waiting(home, ledger, source(registry))
    brought = {
        PRICES: NEW,
        "memory/prices/resource.toml": 'description = "Prices"\nstate = 2\n',
        "memory/default/resource.toml": f"state = 2\n{text_at(registry, 'memory/default/resource.toml')}",
    }
    edit = {DESK: DESK_EDIT, READER: raised(registry), PROGRAM: PROGRAM_TEXT}
    base = registry.stable()
    candidate = replace(
        made.candidate,
        snapshot=registry.add_candidate("cand-overtaken", base, {**edit, **brought}),
        edit=replace(made.candidate.edit, files=edit),
        migration=Migration("harness/default", 1, 2, brought),
    )
    verdict = replace(
        ledger.find(Verdict, candidate_id=made.candidate.id)[-1],
        id=new_id("ver"),
        candidate_tree=candidate.snapshot.tree,
    )
    ledger.put(candidate)
    ledger.put(verdict)
    made.approve(home)
    registry.commit({PRICES: (OLD + "- kiwi: 9\n").encode()}, "Learnt meanwhile", "edit")
    daemon.start()
    until(lambda: made.state(home).state is EvolutionState.STALE, f"it is stale, not {made.state(home)}", 60)
    assert text_at(registry) == OLD + "- kiwi: 9\n"
    assert "state" not in text_at(registry, READER)
    assert registry.check().faults == ()


# --- the whole path ---------------------------------------------------------------------------


def price(name: str, n: int) -> Task:
    return Task(
        id=new_id("task"),
        name=f"the price of {name}",
        goal=f"price of {name}",
        call=None,
        inputs=(),
        agent="default",
        limits=Limits(wall_s=20.0),
        effects=(),
        checks=(Check("equals", {"value": n, "path": "n"}),),
        schedule=None,
        created_at=datetime.now(UTC),
    )


@pytest.fixture
def coder(home: Home, registry: Registry) -> None:
    """A program that proposes the edit; of the home's own, so that nothing of the search finds another."""
    place = home.root / "coders" / "mine"
    for path, text in ((DESK, DESK_EDIT), (READER, raised(registry)), (PROGRAM, PROGRAM_TEXT)):
        (place / "edit" / path).parent.mkdir(parents=True, exist_ok=True)
        (place / "edit" / path).write_text(text)
    (place / "agent.py").write_text(CODER)
    (home.root / "coders.toml").write_text(
        'use = "mine"\nlayers = ["harness"]\n[coder.mine]\nsays = "of this test"\nprogram = "coders/mine"\n'
        'command = ["{python}", "{program}/agent.py", "{goal_file}"]\n'
    )
    (home.root / "policy.toml").write_text(POLICY)


def test_memories_come_over_are_tried_promoted_read_and_taken_back(
    daemon: Any,
    home: Home,
    ledger: Ledger,
    registry: Registry,
    coder: None,
    until: Callable[..., None],
    all_done: Callable[..., None],
) -> None:
    reader = Reader(home.ledger)

    def ask(*prices: tuple[str, int], share: Share = Share.OPEN) -> list[Run]:
        tasks = [price(*one) for one in prices]
        for task in tasks:
            ledger.add_task(task, share)
        all_done(60)
        return [run for task in tasks for run in reader.runs(task.id)]

    def results(runs: list[Run]) -> list[Result]:
        return [run.outcome.result for run in runs if run.outcome]

    def reached(state: EvolutionState) -> Callable[[], bool]:
        return lambda: bool(reader.find(Evolution, state=state))

    daemon.start()
    until(lambda: registry.last_good() == registry.stable(), "the desk is served", 60)
    before = registry.stable()
    good = ask(("sea salt", 7))  # the oldest work: no guard has room for it
    good += ask(("lime", 4), share=Share.HOLD_OUT)
    good += ask(("fig", 3), ("apple", 1), ("date", 5), ("kale", 8))
    assert set(results(good)) == {Result.PASSED}
    bad = ask(("pear", 2), ("plum", 6))
    assert set(results(bad)) == {Result.FAILED}

    until(reached(EvolutionState.AWAITING_CONSENT), "a candidate was accepted", 150)
    (evolution,) = reader.find(Evolution)
    (candidate,) = [one for one in reader.find(Candidate) if one.id == evolution.candidate_id]
    assert candidate.edit.files.keys() == {DESK, READER, PROGRAM}
    assert candidate.migration is not None
    assert candidate.migration.files[PRICES] == NEW
    shown = typed(home, "evolution", "show", evolution.id)
    assert "migrates memory/default, memory/prices from form 1 to 2" in shown
    assert "+pear = 2" in shown

    typed(home, "evolution", "approve", evolution.id, "--yes")
    until(reached(EvolutionState.PROBATION), "it is promoted", 60)
    assert text_at(registry) == NEW
    assert "state = 2" in typed(home, "registry", "diff", evolution.id)
    assert set(results(ask(("pear", 2), ("plum", 6)))) == {Result.PASSED}
    registry.commit({PRICES: (NEW + "kiwi = 9\n").encode()}, "Learnt since", "edit")
    assert results(ask(("kiwi", 9))) == [Result.PASSED]

    assert results(ask(("sea salt", 7))) == [Result.FAILED]
    until(reached(EvolutionState.ROLLED_BACK), "it is taken back", 60)
    assert "rolled back by probation" in reader.get(Evolution, evolution.id).reason
    assert registry.stable().tree == before.tree
    message = registry.repository.commit(registry.stable().commit).message
    assert "Set aside, because it has another form: memory/prices@1.1.0" in message
    assert results(ask(("sea salt", 7))) == [Result.PASSED]
    assert registry.check().faults == ()
