"""Running a task once in real boxes: every way it can end has its outcome, and nothing else is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agentos.daemon.run.execution import GONE_MAX, BoxExecutor, _reason
from agentos.domain import Check, InputFile, Limits, Result, Step, Task, box_fault
from agentos.errors import BoxDied, Unavailable
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.ports import Attempt, Box
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap

pytestmark = pytest.mark.sandbox

MakeTask = Callable[..., Task]


@pytest.fixture
def registry(home: Home) -> Registry:
    return Registry(home.registry)


@pytest.fixture
def executor(registry: Registry, ledger: Ledger, sandbox: Bubblewrap) -> BoxExecutor:
    return BoxExecutor(registry, ledger.blobs, sandbox)


@pytest.fixture
def execute(executor: BoxExecutor, registry: Registry) -> Callable[[Task], Attempt]:
    return lambda task: executor.execute(task, registry.stable(), "run-1")


def test_a_right_answer_passes_and_its_steps_stream_in_order(
    executor: BoxExecutor, registry: Registry, make_task: MakeTask
) -> None:
    steps: list[Step] = []
    done = executor.execute(make_task("double", n=21, expect=42), registry.stable(), "run-7", steps.append)
    assert done.outcome.result is Result.PASSED
    assert done.outcome.score == 1.0
    assert done.answer == {"n": 42}
    assert [step.index for step in steps] == list(range(len(steps)))
    assert {step.run_id for step in steps} == {"run-7"}
    assert done.steps == ()
    assert "act" in [step.node for step in steps]
    assert "skill/test-kit" in done.resources
    assert done.outcome.cost.cpu_s > 0


def test_a_wrong_answer_fails_by_its_check(execute: Callable[[Task], Attempt], make_task: MakeTask) -> None:
    task = make_task("double", n=21, expect=41)
    done = execute(replace(task, checks=(*task.checks, Check("contains", {"value": {"n": 42}}))))
    assert done.outcome.result is Result.FAILED
    assert done.outcome.score == 0.5
    assert done.outcome.fault is not None
    assert done.outcome.fault.type == "check"
    assert "expected 41, found 42" in done.outcome.reason


class Opened:
    """A sandbox that remembers for which runs it was asked for a box; "" is grading."""

    def __init__(self, sandbox: Bubblewrap) -> None:
        self._sandbox = sandbox
        self.runs: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sandbox, name)

    def open(self, limits: Limits, *, light: bool = False, run: str = "") -> Box:
        self.runs.append(run)
        return self._sandbox.open(limits, light=light, run=run)


def test_a_box_grades_what_runs_code_and_none_what_only_compares(
    registry: Registry, ledger: Ledger, sandbox: Bubblewrap, make_task: MakeTask
) -> None:
    opened = Opened(sandbox)
    executor = BoxExecutor(registry, ledger.blobs, opened)  # type: ignore[arg-type]
    task = make_task("double", n=21, expect=41)
    here = executor.execute(task, registry.stable(), "run-1")
    assert opened.runs == ["run-1"]
    right = Check("python", {"code": "assert answer['n'] == 42"})
    boxed = executor.execute(replace(task, checks=(*task.checks, right)), registry.stable(), "run-2")
    assert opened.runs == ["run-1", "run-2", ""]
    assert [check.passed for check in boxed.outcome.checks] == [False, True]
    assert boxed.outcome.checks[0] == here.outcome.checks[0]  # the same word in both ways


@pytest.mark.parametrize(
    ("tool", "args", "limits", "result", "fault", "words"),
    [
        ("broken", {}, {}, Result.FAILED, "IndexError", "out of range"),
        ("liar", {}, {}, Result.FAILED, "output", "n"),
        ("double", {"n": "x"}, {}, Result.FAILED, "input", "n"),
        ("nobody", {}, {}, Result.FAILED, "unknown_tool", "No tool 'nobody'"),
        ("caller", {}, {}, Result.FAILED, "effect", "external"),
        ("sleeper", {"n": 600}, {"wall_s": 3.0}, Result.TIMEOUT, "timeout", "2.4"),
        ("forker", {}, {"wall_s": 1.5}, Result.TIMEOUT, "timeout", ""),
        ("eater", {}, {"memory_mb": 128}, Result.FAILED, "memory", "memory"),
        ("big", {"n": 3000}, {"output_bytes": 1000}, Result.FAILED, "limit", "1"),
    ],
)
def test_every_bad_end_has_its_outcome(
    execute: Callable[[Task], Attempt],
    make_task: MakeTask,
    tool: str,
    args: dict[str, object],
    limits: dict[str, float],
    result: Result,
    fault: str,
    words: str,
) -> None:
    done = execute(make_task(tool, limits=Limits(**({"wall_s": 20.0} | limits)), **args))  # type: ignore[arg-type]
    assert done.outcome.fault is not None
    assert (done.outcome.result, done.outcome.fault.type) == (result, fault), done.outcome
    assert words in done.outcome.reason
    assert done.outcome.score == 0.0
    # what failed is known also where the worker could not say it, or no evolution would look at it
    assert tool == "nobody" or "skill/test-kit" in done.resources


@pytest.mark.parametrize(
    ("type", "message", "told"),
    [
        ("StopIteration", "rows: ", "rows: StopIteration"),
        ("AssertionError", "", "AssertionError"),
        ("KeyError", "rows: 'month'", "KeyError: rows: 'month'"),
        ("ValueError", "rows: line 3 is empty", "rows: line 3 is empty"),
    ],
)
def test_a_reason_names_the_exception_where_its_message_says_nothing(
    type: str, message: str, told: str
) -> None:
    assert _reason(box_fault(type, message)) == told


def test_endless_output_is_cut_and_ends_by_the_clock(
    execute: Callable[[Task], Attempt], make_task: MakeTask
) -> None:
    done = execute(make_task("chatter", limits=Limits(wall_s=1.5, output_bytes=10_000)))
    assert done.outcome.result in (Result.TIMEOUT, Result.FAILED)
    assert done.outcome.fault is not None
    assert done.outcome.fault.type in ("timeout", "limit")


def test_files_come_out_as_plain_files_and_nothing_else_does(
    execute: Callable[[Task], Attempt], make_task: MakeTask
) -> None:
    check = Check("file", {"path": "report.txt", "contains": "all is well"})
    done = execute(replace(make_task("leaver"), checks=(check,)))
    assert done.outcome.result is Result.PASSED
    assert done.files == {"report.txt": b"all is well", "deep/er/data.bin": bytes(range(256))}


def test_a_run_starts_with_its_inputs_and_a_lost_one_voids_the_run(
    execute: Callable[[Task], Attempt], make_task: MakeTask, ledger: Ledger
) -> None:
    content = b"some input"
    given = InputFile("in/put.txt", ledger.blobs.put(content), len(content))
    check = Check("python", {"code": "assert answer == {'n': 2}"})
    assert (
        execute(replace(make_task("double", n=1), inputs=(given,), checks=(check,))).outcome.result
        is Result.PASSED
    )
    lost = replace(make_task("double", n=1), inputs=(replace(given, sha256="0" * 64),))
    with pytest.raises(Unavailable, match="input"):
        execute(lost)


def test_a_task_without_a_call_is_a_clean_failure(
    execute: Callable[[Task], Attempt], make_task: MakeTask
) -> None:
    done = execute(replace(make_task("double"), call=None))
    assert done.outcome.fault is not None
    assert done.outcome.fault.type == "no_model"
    assert "agentos model add" in done.outcome.reason


def test_an_unknown_agent_is_the_tasks_own_fault(
    execute: Callable[[Task], Attempt], make_task: MakeTask
) -> None:
    done = execute(replace(make_task("double"), agent="nobody"))
    assert done.outcome.result is Result.FAILED
    assert "no agent 'nobody'" in done.outcome.reason


def test_a_check_that_never_ends_fails_as_the_graders_fault(
    execute: Callable[[Task], Attempt], make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentos.daemon.run import execution

    monkeypatch.setattr(execution, "GRADING_LIMITS", replace(execution.GRADING_LIMITS, wall_s=1.0))
    done = execute(replace(make_task("double", n=1), checks=(Check("python", {"code": "while True: pass"}),)))
    assert done.outcome.result is Result.FAILED
    assert done.outcome.score == 0.0


def test_too_many_steps_end_the_run(execute: Callable[[Task], Attempt], make_task: MakeTask) -> None:
    done = execute(make_task("double", n=1, limits=Limits(steps=2, wall_s=20.0)))
    assert done.outcome.result is Result.BUDGET
    assert len(done.steps) <= 2


def test_cancelling_kills_the_box_at_once(
    executor: BoxExecutor, registry: Registry, make_task: MakeTask
) -> None:
    begun = threading.Event()
    found: list[Attempt] = []

    def run() -> None:
        task = make_task("sleeper", n=600, limits=Limits(wall_s=60.0))
        found.append(executor.execute(task, registry.stable(), "run-c", lambda _step: begun.set()))

    thread = threading.Thread(target=run)
    thread.start()
    assert begun.wait(20)
    executor.cancel("run-c")
    thread.join(10)
    assert not thread.is_alive()
    assert found[0].outcome.result is Result.CANCELLED
    executor.cancel("run-nobody")


HARNESSES = {
    "junk": "def run(sdk):\n    sdk._talk._channel.send({'type': 'step', 'node': 3})\n",
    "stranger": "def run(sdk):\n    sdk._talk._channel.send({'type': 'launch'})\n",
    "raw": "import os\ndef run(sdk):\n    os.write(sdk._talk._channel._writing.descriptor, b'\\xff' * 64)\n    input()\n",
    "nan": "def run(sdk):\n    sdk._talk._channel.send({'type': 'done', 'finished': 'answered', 'answer': float('nan')})\n",
    "huge": (
        "def run(sdk):\n    sdk._talk._channel.send({'type': 'done', 'finished': 'answered', 'answer': 'x' * 2000000})\n"
    ),
    "raises": "def run(sdk):\n    raise RuntimeError('a bug in the loop')\n",
    "silent": "def run(sdk):\n    pass\n",
    "leaves": "import os\ndef run(sdk):\n    os._exit(0)\n",
}


@pytest.mark.parametrize(
    ("name", "result", "fault"),
    [
        ("junk", Result.FAILED, "harness"),
        ("stranger", Result.FAILED, "harness"),
        ("raw", Result.FAILED, "harness"),
        ("nan", Result.FAILED, "FrameError"),  # it is not sent, and the harness learns it
        ("huge", Result.BUDGET, "limit"),
        ("raises", Result.FAILED, "RuntimeError"),
        ("silent", Result.FAILED, "no_answer"),
    ],
)
def test_a_harness_that_misbehaves_is_told_as_such(
    executor: BoxExecutor, registry: Registry, make_task: MakeTask, name: str, result: Result, fault: str
) -> None:
    registry.commit({"harness/default/harness.py": HARNESSES[name].encode()}, "An odd harness", "edit")
    done = executor.execute(make_task("double", n=1), registry.stable(), "run-h")
    assert done.outcome.fault is not None
    assert (done.outcome.result, done.outcome.fault.type) == (result, fault), done.outcome


def test_a_worker_that_vanishes_again_and_again_is_the_tasks_fault(
    executor: BoxExecutor, registry: Registry, make_task: MakeTask
) -> None:
    registry.commit({"harness/default/harness.py": HARNESSES["leaves"].encode()}, "An odd harness", "edit")
    task = make_task("double", n=1)
    for _ in range(GONE_MAX - 1):
        with pytest.raises(BoxDied):
            executor.execute(task, registry.stable(), "run-g")
    done = executor.execute(task, registry.stable(), "run-g")
    assert done.outcome.result is Result.FAILED
