"""The contract suite passes the harness that ships, in real boxes, and names what a bad harness breaks."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import pytest

from agentos.daemon.evolve.overlay_executor import Overlay
from agentos.daemon.run.execution import BoxExecutor
from agentos.domain import Kind, ResourceId, Snapshot
from agentos.evolver.guards.assurance.contract import suite, violations
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap

pytestmark = pytest.mark.sandbox

T = TypeVar("T")
R = TypeVar("R")
DEFAULT = ResourceId(Kind.HARNESS, "default")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
GOOD = """
from agentos.worker.sdk import Sdk, fault


def run(sdk: Sdk) -> None:
    call = sdk.task.call
    if call is None:
        sdk.fail(fault("no_model", "no model"))
        return
    result = sdk.call_tool(call.tool, call.args)
    sdk.step("observe")
    sdk.step("finish")
    if result.fault is not None:
        sdk.fail(result.fault)
    else:
        sdk.finish(result.output)
"""


class SideBySide:
    """Implements ports.Replayer."""

    def map(self, work: Callable[[T], R], jobs: Sequence[T]) -> Sequence[R]:
        with ThreadPoolExecutor(4) as threads:
            return list(threads.map(work, jobs))


@pytest.fixture(scope="module")
def home(first_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Home:
    made = Home(tmp_path_factory.mktemp("contract") / "home")
    shutil.copytree(first_home, made.root)
    return made


@pytest.fixture(scope="module")
def broken(home: Home, sandbox: Bubblewrap) -> Iterator[Callable[[Snapshot], list[str]]]:
    registry, ledger = Registry(home.registry), Ledger(home.ledger)

    def tried(snapshot: Snapshot) -> list[str]:
        made = suite(DEFAULT, random.Random(), NOW)
        executor = BoxExecutor(Overlay(registry, made.files), ledger.blobs, sandbox)
        return list(violations(executor, snapshot, made, SideBySide()))

    yield tried
    ledger.close()


def candidate(home: Home, text: str) -> Snapshot:
    registry = Registry(home.registry)
    name = f"cand-{random.randrange(10**9)}"
    return registry.add_candidate(name, registry.stable(), {"harness/default/harness.py": text})


def test_the_harness_that_ships_keeps_the_contract(
    home: Home, broken: Callable[[Snapshot], list[str]]
) -> None:
    assert broken(Registry(home.registry).stable()) == []


def test_a_plain_harness_keeps_it_too(home: Home, broken: Callable[[Snapshot], list[str]]) -> None:
    assert broken(candidate(home, GOOD)) == []


BAD = [
    ("sdk.fail(result.fault)", "sdk.finish('done')", "a failed tool fails the run"),
    ("sdk.finish(result.output)", "sdk.finish({'text': 'fine'})", "its result is the answer"),
    ("sdk.finish(result.output)", "sdk.finish(str(result.output)[:500])", "a large answer"),
    ("call.tool, call.args)", "call.tool, {'text': 'x'})", "a call is passed through"),
    (
        '    sdk.step("observe")',
        "    result = sdk.call_tool(call.tool, call.args)",
        "expected one step 'act'",
    ),
    ('    sdk.step("observe")\n    sdk.step("finish")\n', "", "a spent step budget"),
    ('sdk.fail(fault("no_model", "no model"))', "sdk.finish('I did it')", "a task that needs a model"),
    ('fault("no_model", "no model")', 'fault("x", "no model")', "expected the fault 'no_model'"),
    (
        "sdk.fail(result.fault)",
        "sdk.fail(fault(result.fault.type, 'it failed'))",
        "leaves out what the tool said",
    ),
    ("result.output)", "result.output if result.output.get('text') else {'text': '0'})", "says nothing"),
]


@pytest.mark.parametrize(("find", "put", "says"), BAD)
def test_what_a_harness_breaks_is_named(
    home: Home, broken: Callable[[Snapshot], list[str]], find: str, put: str, says: str
) -> None:
    assert GOOD.count(find) == 1
    found = broken(candidate(home, GOOD.replace(find, put)))
    assert [sentence for sentence in found if says in sentence], found


def test_names_and_values_are_new_each_time() -> None:
    one, other = (suite(DEFAULT, random.Random(seed), NOW) for seed in (1, 2))
    assert not {*one.files} & {*other.files}
    again = suite(DEFAULT, random.Random(1), NOW)
    assert (again.files, [c.task for c in again.clauses]) == (one.files, [c.task for c in one.clauses])


def test_an_overlay_brings_files_and_leaves_resources_out(home: Home, tmp_path: Path) -> None:
    registry = Registry(home.registry)
    snapshot = registry.stable()
    overlay = Overlay(registry, {"tool/new/tool.py": b"x"}, frozenset({ResourceId(Kind.TOOL, "word-count")}))
    assert overlay.files(snapshot, "tool/new") == {"tool/new/tool.py": b"x"}
    assert overlay.files(snapshot, "tool/ne") == {}
    assert overlay.files(snapshot, "tool/word-count") == {}
    assert not [path for path in overlay.files(snapshot, "") if path.startswith("tool/word-count/")]
    assert overlay.files(snapshot, "tool/json-query") == registry.files(snapshot, "tool/json-query")
    assert ResourceId(Kind.TOOL, "new") in overlay.names(snapshot)
    assert ResourceId(Kind.TOOL, "word-count") not in overlay.names(snapshot)
    assert overlay.find_tool(snapshot, "new") == "tool/new/tool.py"
