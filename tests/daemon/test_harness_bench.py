"""A bench for files of a harness in real boxes: whole runs, traced and tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from agentos.benches import Bench
from agentos.daemon.evolve.harness_bench import RunBenches
from agentos.daemon.evolve.overlay_executor import Overlay
from agentos.daemon.run.execution import BoxExecutor
from agentos.domain import Call, Check, Kind, Limits, ResourceId, Share, Task
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.ports import Case
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap

pytestmark = pytest.mark.sandbox

HARNESS = ResourceId(Kind.HARNESS, "default")
HOOKS = "harness/default/hooks.py"
START = "harness/default/harness.py"


@pytest.fixture
def benches(home: Home, ledger: Ledger, sandbox: Bubblewrap) -> RunBenches:
    registry = Registry(home.registry)
    return RunBenches(
        registry,
        ledger.task,
        lambda files, without: BoxExecutor(Overlay(registry, files, without), ledger.blobs, sandbox),
        2,
    )


@pytest.fixture
def cases(ledger: Ledger, make_task: Callable[..., Task]) -> list[Case]:
    """One that passes, one that fails, and one without a check."""
    found = []
    for task in (
        make_task("double", n=2, expect=4),
        make_task("double", n=3, expect=7),
        make_task("double", n=5),
    ):
        ledger.add_task(task, Share.OPEN)
        assert task.call is not None
        found.append(Case(task.id, task.call, {}, task.checks))
    return found


@pytest.fixture
def source(home: Home) -> Callable[[str], str]:
    registry = Registry(home.registry)
    return lambda path: registry.files(registry.stable(), path)[path].decode()


def bench_of(home: Home, benches: RunBenches, path: str, cases: list[Case], timeout_s: float = 20.0) -> Bench:
    return benches.bench(Registry(home.registry).stable(), path, cases, timeout_s)


def test_a_trace_tells_lines_in_functions_of_every_file_and_changes_no_answer(
    home: Home, benches: RunBenches, cases: list[Case], source: Callable[[str], str]
) -> None:
    traced = benches.trace(Registry(home.registry).stable(), HARNESS, cases, 20.0)
    assert [one.passed for one in traced] == [True, False, True]
    assert [one.output["n"] for one in traced] == [4, 6, 10]
    first = traced[0].lines
    assert set(first) == {START, HOOKS}  # of the others nothing runs for a call
    lines = source(START).splitlines()
    ran = {lines[number - 1].strip() for number in first[START]}
    assert "self.turn.answer, self.turn.fault = result.output, result.fault" in ran
    assert "return Thinker(sdk)" not in ran
    assert "class Loop:" not in ran


def test_a_source_is_tried_by_whole_runs(
    home: Home, benches: RunBenches, cases: list[Case], source: Callable[[str], str]
) -> None:
    bench = bench_of(home, benches, HOOKS, cases)
    text = source(HOOKS)
    edit = text.replace("on_finish: list[Hook] = []", "on_finish: list[Hook] = [more]").replace(
        "before_act:", "def more(turn: Turn) -> None:\n    turn.answer = {'n': 7}\n\n\nbefore_act:"
    )
    assert bench.try_source(text).passed == (True, False, True)
    tried = bench.try_source(edit)
    assert tried.passed == (False, True, True)
    assert tried.outputs == ({"n": 7},) * 3
    assert bench.try_source(edit, cases=[1]).passed == (True,)
    bench.close()


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ("import os\nos._exit(1)\ndef run(sdk): ...", {"died", "exit"}),
        ("raise KeyError('x')\ndef run(sdk): ...", {"load"}),
        ("def run(sdk):\n    while True: pass", {"timeout"}),
        ("def run(sdk):\n    sdk.model({'messages': []})", {"Refused"}),
        ("def run(", {"not_found"}),  # it is no harness any more
    ],
)
def test_whatever_a_source_does_it_has_failed(
    home: Home, benches: RunBenches, cases: list[Case], body: str, errors: set[str]
) -> None:
    bench = bench_of(home, benches, START, cases[:1], timeout_s=2.0)
    tried = bench.try_source(body)
    assert tried.passed == (False,)
    assert tried.outputs[0]["error"] in errors


def test_checks_that_run_code_are_applied_in_a_box(
    home: Home, benches: RunBenches, cases: list[Case], ledger: Ledger, source: Callable[[str], str]
) -> None:
    task = ledger.task(cases[0].task_id)
    checks = (
        Check("python", {"code": "assert answer['n'] == 4"}),
        Check("equals", {"value": 4, "path": "n"}),
    )
    asked = [
        replace(cases[0], checks=checks),
        replace(cases[0], call=Call("double", {"n": 3}), checks=checks),
    ]
    assert task.limits != Limits()
    assert bench_of(home, benches, HOOKS, asked).try_source(source(HOOKS)).passed == (True, False)
