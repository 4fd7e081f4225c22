"""Tools that attack their box or look for what they must not see, run as tasks are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from agentos.daemon.run.execution import BoxExecutor
from agentos.domain import Check, Limits, Result, Share, Step, Task
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.ports import Attempt
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap

pytestmark = pytest.mark.sandbox

MakeTask = Callable[..., Task]
Execute = Callable[..., Attempt]


@pytest.fixture
def execute(home: Home, ledger: Ledger, sandbox: Bubblewrap) -> Execute:
    registry = Registry(home.registry)
    executor = BoxExecutor(registry, ledger.blobs, sandbox)

    def run(task: Task, run_id: str = "run-1") -> Attempt:
        steps: list[Step] = []
        return executor.execute(task, registry.stable(), run_id, steps.append)

    return run


@pytest.mark.parametrize(
    ("way", "fault", "words"),
    [
        ("answer: nothing", "output", "not its Output"),
        ("answer: not a number", "output", "not JSON"),
        ("answer: deep", "output", "not JSON"),
        ("answer: huge", "limit", "larger than"),
        ("answer: half text", "output", "not JSON"),
        ("answer: made up", "output", "does not fit"),
        ("break: exit", "exit", "status 0"),
        ("break: kill the parent", "signal", "the process that runs the tools"),
        ("break: kill all", "signal", "the process that runs the tools"),
        ("break: close all", "exit", "ended its process"),
        ("break: talk nonsense", "exit", "ended its process"),
        ("break: promise much", "timeout", "did not end"),
        ("break: forge a number", "output", "not JSON"),
        ("break: forge depth", "protocol", "the worker's own pipe"),
        ("break: patch", "protocol", "the worker's own pipe"),
    ],
)
def test_what_attacks_its_own_process_is_told_as_its_fault(
    execute: Execute, make_task: MakeTask, way: str, fault: str, words: str
) -> None:
    done = execute(make_task("attacker", way=way, limits=Limits(wall_s=10.0 if fault != "timeout" else 1.5)))
    assert done.outcome.result in (Result.FAILED, Result.TIMEOUT)
    assert done.outcome.fault is not None
    assert done.outcome.fault.type == fault, done.outcome
    assert words in done.outcome.reason
    assert done.answer is None


@pytest.mark.parametrize("way", ["socket", "repository", "survivor"])
def test_what_is_left_in_the_workspace_stays_there(execute: Execute, make_task: MakeTask, way: str) -> None:
    done = execute(make_task("attacker", way=f"leave: {way}"))
    assert done.outcome.result is Result.PASSED
    assert set(done.files) <= {"survivor"}


def test_no_device_can_be_made(execute: Execute, make_task: MakeTask) -> None:
    done = execute(make_task("attacker", way="leave: device"))
    assert done.outcome.fault is not None
    assert done.outcome.fault.type == "PermissionError"


def test_replaced_streams_do_no_harm(execute: Execute, make_task: MakeTask) -> None:
    assert execute(make_task("attacker", way="break: replace the streams")).outcome.result is Result.PASSED


def test_a_tool_finds_neither_checks_nor_other_tasks_nor_that_it_is_on_trial(
    execute: Execute, make_task: MakeTask, ledger: Ledger, home: Home
) -> None:
    """The proof for the gates: what a candidate cannot read, it cannot play to."""
    other = replace(
        make_task("double", n=1), goal="HOLDOUTSECRET", checks=(Check("contains", {"value": "GUARDSECRET"}),)
    )
    ledger.add_task(other, Share.HOLD_OUT)
    words = [
        "CHECKSECRET",
        "HOLDOUTSECRET",
        "GUARDSECRET",
        "trial-7",
        "hold-out",
        home.root.name + "/consent.key",
    ]
    halves = [[word[:4], word[4:]] for word in words]
    task = make_task("looker", halves=halves)
    task = replace(task, checks=(Check("python", {"code": "assert answer != 'CHECKSECRET'"}),))
    done = execute(task, "trial-7-1")
    assert done.outcome.result is Result.PASSED, done.outcome
    assert done.answer["found"] == []
    assert all(target == "/dev/null" or target.startswith("pipe:") for target in done.answer["descriptors"])
    assert {path.split("/")[3] for path in done.answer["tools"]} == {"test-kit"}


def test_the_search_for_hidden_words_would_find_them(execute: Execute, make_task: MakeTask) -> None:
    """The test above is worth nothing if the tool cannot see what lies before it."""
    done = execute(make_task("looker", halves=[["Lo", "oks for words"], ["LANG", "SMITH"]]))
    assert {found.split(" in ")[0] for found in done.answer["found"]} == {"Looks for words", "LANGSMITH"}
