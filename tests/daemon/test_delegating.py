"""A sub-task of another agent: allowed by name, within what is left, linked, once, and ended with the run above."""

from __future__ import annotations

import errno
import os
import signal
import threading
from dataclasses import replace
from typing import Any

import pytest

from agentos.daemon.requests.model_requests import model_asks
from agentos.daemon.requests.people import People
from agentos.daemon.requests.run_requests import Denied
from agentos.daemon.run.delegation import DEPTH_MAX, DelegationHandlers, HandOver, _allows, _files
from agentos.daemon.run.execution import BoxExecutor, RunServices
from agentos.domain import (
    Budget,
    Limits,
    Mode,
    ModelSpec,
    Recording,
    Result,
    Run,
    RunEnd,
    Share,
    Task,
    TaskState,
    new_id,
)
from agentos.home import Home
from agentos.ledger.listing import counts, newest_open_runs
from agentos.ledger.store import Ledger
from agentos.ports import Attempt, Box, Plan, Sandbox
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.testing import FakeModels
from tests.command_server import command_server

pytestmark = pytest.mark.sandbox

SPEC = ModelSpec("fake", "openai/fake", "", {})
LEAD = (
    "from agentos.worker.sdk import Refused\n"
    "def run(sdk):\n"
    "    try:\n"
    "        sdk.finish(sdk.delegate('helper', 'help with this'))\n"
    "    except Refused as error:\n"
    "        sdk.finish([error.fault.type, error.fault.message])\n"
)
HELP = "def run(sdk):\n    sdk.finish(f'did: {sdk.task.goal}')\n"
SAY = "sdk.model({'messages': [{'role': 'user', 'content': sdk.task.goal}]})"


class World:
    """Runs a task in its box with everything that answers, as the daemon composes it."""

    def __init__(self, home: Home, ledger: Ledger, sandbox: Sandbox, task: Task) -> None:
        self.registry = Registry(home.registry)
        self.ledger = ledger
        self.task = task
        self.models = FakeModels(lambda request, number: {"content": "said"})
        self.delegates = DelegationHandlers(ledger, lambda: self.executor)
        answerers = {
            "person": People(ledger).answerer,
            "delegate": self.delegates.answerer,
            "model": model_asks(self.models, lambda asking: (SPEC,)),
        }
        serving = RunServices(
            models=lambda bundle, snapshot: (SPEC,), budget=Budget(calls=10), answerers=answerers
        )
        self.executor = BoxExecutor(self.registry, ledger.blobs, sandbox, serving=serving)

    def agent(self, name: str, source: str, *agents: str) -> None:
        document = f'description = "A test agent"\nharness = "{name}"\nagents = {list(agents)!r}\n'
        files = {
            f"agent/{name}/resource.toml": document,
            f"harness/{name}/resource.toml": 'description = "A test harness"\n',
            f"harness/{name}/harness.py": source,
        }
        self.registry.commit({path: text.encode() for path, text in files.items()}, "A test agent", "edit")

    def run(self, **limits: Any) -> tuple[Run, Attempt]:
        task = replace(self.task, limits=replace(self.task.limits, **limits))
        if not self.ledger.tasks():
            self.ledger.add_task(task, Share.HOLD_OUT)
        earlier = self.ledger.runs(task.id)
        run = Run(
            id=new_id("run"),
            task_id=task.id,
            task_key=task.key,
            share=Share.HOLD_OUT,
            attempt=len(earlier) + 1,
            snapshot=self.registry.stable(),
            sandbox="bubblewrap",
            level="",
            started_at=task.created_at,
        )
        self.ledger.begin_run(run)
        done = self.executor.execute(task, run.snapshot, run.id, self.ledger.append_step)
        done = replace(done, steps=tuple(self.ledger.steps(run.id)))  # the journal took them
        self.ledger.finish_run(run.id, done.outcome, RunEnd(done.answer))
        return run, done

    def again(self) -> None:
        """As after an answer, or after a daemon that was killed between two steps."""
        states = (TaskState.WAITING, TaskState.DONE)
        assert self.ledger.set_task_state(self.task.id, states, TaskState.QUEUED)

    def children(self, task_id: str = "") -> list[Run]:
        below = self.ledger.handed_over(task_id or self.task.id)
        return [run for view in below for run in self.ledger.runs(view.task.id)]


@pytest.fixture
def world(home: Home, ledger: Ledger, sandbox: Bubblewrap, make_task: Any) -> World:
    task = replace(make_task("double", n=1), call=None, agent="lead", goal="lead")
    return World(home, ledger, sandbox, task)


def test_a_sub_task_is_a_run_of_its_own_below(world: World) -> None:
    world.agent("lead", LEAD, "helper")
    world.agent("helper", HELP)
    run, done = world.run()
    assert done.answer["ok"] is True
    assert done.answer["answer"] == "did: help with this"
    (child,) = world.children()
    assert (child.parent, child.outcome and child.outcome.result) == (run.id, Result.PASSED)
    view = world.ledger.task_view(child.task_id)
    assert (view.task.parent, view.task.agent, view.task.name) == (
        world.task.id,
        "helper",
        "helper: help with this",
    )
    assert (view.state, view.share) == (TaskState.DONE, Share.HOLD_OUT)  # hidden as what it is a part of
    assert world.ledger.tasks(TaskState.QUEUED) == []
    (step,) = [step for step in done.steps if step.node == "delegate"]
    assert step.observation == {
        "task": child.task_id,
        "ok": True,
        "answer": "did: help with this",
        "reason": "",
    }


@pytest.mark.parametrize(
    ("agents", "wanted"),
    [
        ((), "helper"),
        (("other",), "helper"),
        (("helper",), "../helper"),
        (("*",), "../helper"),
        (("oth*",), "helper"),
    ],
)
def test_only_agents_that_the_document_names(agents: tuple[str, ...], wanted: str) -> None:
    assert not _allows(agents, wanted)
    assert _allows([*agents, "help*"], "helper")


def test_who_is_not_named_gets_nothing(world: World) -> None:
    for name in ("helper", "other"):
        world.agent(name, HELP)
    world.agent("lead", LEAD, "other")
    _, done = world.run()
    assert done.answer[0] == "not_allowed"
    assert world.children() == []


def test_work_is_handed_down_three_times_at_most(world: World) -> None:
    world.agent("lead", LEAD.replace("helper", "lead"), "lead")
    _, done = world.run()
    depth, answer = 0, done.answer
    while isinstance(answer, dict):
        depth, answer = depth + 1, answer["answer"]
    assert (depth, answer[0]) == (DEPTH_MAX, "limit")
    assert len(world.children()) == DEPTH_MAX


@pytest.mark.parametrize(
    "inputs",
    [
        {"../up": "x"},
        {"/etc/x": "x"},
        {"a": 7},
        {"a\x00": "x"},
        ["a"],
        {"": "x"},
        {"a": "x" * (2 << 20)},
        {str(number): "" for number in range(1_001)},
        {"a": "x", "a/b": "x"},
        {"a/b": "x", "a//b": "x"},
        {"n" * 256: "x"},
    ],
    ids=range(11),
)
def test_inputs_that_do_not_fit_are_no_files(inputs: Any) -> None:
    with pytest.raises(Denied) as denied:
        _files(inputs, 1 << 20)
    assert denied.value.fault.type == "request"


@pytest.mark.parametrize("inputs", [{"../up": "x"}, []], ids=["outside", "none"])
def test_inputs_that_do_not_fit_are_refused(world: World, inputs: Any) -> None:
    source = LEAD.replace(
        "sdk.delegate('helper', 'help with this')",
        f"sdk._talk.ask('delegate', {{'agent': 'helper', 'goal': 'g', 'inputs': {inputs!r}}})",
    )
    world.agent("lead", source, "helper")
    world.agent("helper", "import os\ndef run(sdk):\n    sdk.finish(os.listdir())\n")
    _, done = world.run()
    if inputs == []:
        assert done.answer["ok"] is True
    else:
        assert done.answer[0] == "request"
        assert world.children() == []


def test_input_files_come_along(world: World) -> None:
    lead = "import pathlib\n" + LEAD.replace(
        "    try:\n", "    pathlib.Path('a.txt').write_text('text of a')\n    try:\n", 1
    )
    world.agent("lead", lead.replace("'help with this'", "'help with this', ['a.txt']"), "helper")
    world.agent("helper", "def run(sdk):\n    sdk.finish(open('a.txt').read())\n")
    _, done = world.run()
    assert done.answer["answer"] == "text of a"


# --- budgets ------------------------------------------------------------------------------------


def test_the_budget_is_that_of_the_run_above(world: World) -> None:
    world.agent(
        "lead",
        "from agentos.worker.sdk import Refused\n"
        f"def run(sdk):\n    {SAY}\n"
        "    first = sdk.delegate('helper', 'one')\n"
        "    try:\n"
        "        second = sdk.delegate('helper', 'two')\n"
        "    except Refused as error:\n"
        "        second = error.fault.type\n"
        f"    sdk.finish([first['ok'], second])\n",
        "helper",
    )
    world.agent("helper", f"def run(sdk):\n    {SAY}\n    {SAY}\n    sdk.finish(1)\n")
    _, done = world.run(calls=3)
    assert done.answer == [True, "budget"]
    assert (done.outcome.cost.calls, done.outcome.cost.tokens, done.outcome.cost.usd) == (3, 45, 0.003)
    (child,) = world.children()
    assert child.outcome is not None
    assert child.outcome.cost.calls == 2
    assert [grant.budget.calls for grant in world.models.grants] == [3, 2]


def test_what_agents_below_used_is_gone_for_the_run_above(world: World) -> None:
    world.agent(
        "lead", f"def run(sdk):\n    sdk.delegate('helper', 'one')\n    {SAY}\n    sdk.finish(1)\n", "helper"
    )
    world.agent("helper", f"def run(sdk):\n    {SAY}\n    {SAY}\n    sdk.finish(1)\n")
    _, done = world.run(calls=2)
    assert done.outcome.result is Result.BUDGET
    assert len(world.models.requests) == 2


def test_a_run_without_limits_of_its_own_hands_on_what_the_settings_leave(world: World) -> None:
    world.agent("lead", LEAD, "helper")
    world.agent("helper", HELP)
    world.run()
    (child,) = world.children()
    assert world.ledger.task(child.task_id).limits.calls == 10


def test_time_is_that_of_the_run_above(world: World) -> None:
    world.agent("lead", LEAD, "helper")
    world.agent("helper", "import time\ndef run(sdk):\n    time.sleep(60)\n")
    _, done = world.run(wall_s=1.5)
    assert done.outcome.result is Result.TIMEOUT
    (child,) = world.children()
    assert child.outcome is not None
    assert child.outcome.result in (Result.TIMEOUT, Result.CANCELLED)
    assert world.ledger.task(child.task_id).limits.wall_s < 1.5


def test_sub_tasks_of_one_run_follow_one_another(world: World) -> None:
    under_way: list[str] = []
    most: list[int] = []
    execute = world.executor.execute

    def counted(task: Task, *rest: Any) -> Attempt:
        under_way.append(task.id)
        most.append(len(under_way))
        try:
            return execute(task, *rest)
        finally:
            under_way.remove(task.id)

    world.executor.execute = counted  # type: ignore[method-assign,assignment] # counts, and calls the real one
    world.agent(
        "lead",
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def run(sdk):\n"
        "    with ThreadPoolExecutor(4) as pool:\n"
        "        answers = pool.map(lambda goal: sdk.delegate('helper', goal), 'abca')\n"
        "        sdk.finish([answer['answer'] for answer in answers])\n",
        "helper",
    )
    world.agent("helper", HELP)
    _, done = world.run()
    assert done.answer == ["did: a", "did: b", "did: c", "did: a"]
    assert len({child.task_id for child in world.children()}) == 4  # equal ones are told apart
    assert max(most) == 2  # the run itself, and one below


# --- the end of the run above -------------------------------------------------------------------


def test_cancelling_the_run_above_cancels_what_is_below(world: World) -> None:
    world.agent("lead", LEAD, "middle")
    world.agent("lead", LEAD.replace("helper", "middle"), "middle")
    world.agent("middle", LEAD, "helper")
    world.agent("helper", "import time\ndef run(sdk):\n    sdk.step('here')\n    time.sleep(60)\n")
    results: list[Attempt] = []
    runner = threading.Thread(target=lambda: results.append(world.run()[1]))
    runner.start()
    try:
        waited = threading.Event()
        for _ in range(1_000):
            if any(world.ledger.steps(run.id) for run in world.children()):
                break
            waited.wait(0.02)
        (top,) = world.ledger.runs(world.task.id)
        world.executor.cancel(top.id)
    finally:
        runner.join(20)
    assert results[0].outcome.result is Result.CANCELLED
    assert [run.outcome and run.outcome.result for run in world.children()] == [Result.CANCELLED] * 2
    assert {view.state for view in world.ledger.handed_over(world.task.id)} == {TaskState.CANCELLED}


# --- going on -----------------------------------------------------------------------------------


def test_a_sub_task_that_ended_is_served_to_the_next_attempt(world: World) -> None:
    world.agent(
        "lead",
        "def run(sdk):\n"
        "    done = [sdk.delegate('helper', 'same')['answer'] for _ in range(2)]\n"
        "    sdk.finish([*done, sdk.ask_person('Enough?')])\n",
        "helper",
    )
    world.agent("helper", f"def run(sdk):\n    {SAY}\n    sdk.finish('x' * 20_000)\n")
    world.run()
    assert len(world.models.requests) == 2
    world.ledger.answer(world.ledger.open_questions()[0].id, "yes")
    _, done = world.run()
    assert done.answer == ["x" * 20_000, "x" * 20_000, "yes"]
    assert len(world.models.requests) == 2  # nothing is paid twice
    assert len(world.children()) == 2
    assert (done.outcome.cost.calls, done.outcome.cost.live_calls) == (2, 0)


def test_a_question_below_makes_the_whole_tree_wait(world: World) -> None:
    world.agent("lead", LEAD.replace("helper", "middle"), "middle")
    world.agent("middle", LEAD, "helper")
    world.agent("helper", f"def run(sdk):\n    {SAY}\n    sdk.finish(sdk.ask_person('Which?'))\n")
    _, done = world.run()
    assert (done.outcome.result, done.outcome.reason) == (Result.WAITING, "Which?")
    assert {view.state for view in world.ledger.tasks()} == {TaskState.WAITING}
    (question,) = world.ledger.open_questions()
    assert question.root_id == world.task.id
    assert question.task_id == world.ledger.handed_over(world.task.id)[1].task.id
    world.ledger.answer(question.id, "the left one")
    _, done = world.run()
    assert done.answer["answer"]["answer"] == "the left one"
    assert {view.state for view in world.ledger.tasks()} == {TaskState.DONE}
    assert [run.attempt for run in world.children()] == [2, 1, 2, 1]
    assert all(run.resumes for run in world.children() if run.attempt == 2)
    (first, second) = [grant for grant in world.models.grants]
    assert second.recordings == (first.run_id,)  # the call that was paid for is served


def test_a_trial_leaves_nothing_in_the_ledger_and_is_served_from_the_same_sub_task(world: World) -> None:
    world.agent("lead", LEAD, "helper")
    world.agent("helper", f"def run(sdk):\n    {SAY}\n    sdk.finish(sdk.ask_person('Which?'))\n")
    world.run()
    world.ledger.answer(world.ledger.open_questions()[0].id, "left")
    live, done = world.run()
    (second, first) = world.children()
    before = counts(world.ledger)
    recording = Recording((live.id,), live.snapshot, ())
    plan = Plan(mode=Mode.REPLAY, recording=recording, evolution_id="evo-1")
    trial = world.executor.execute(world.task, live.snapshot, "trial-1", plan=plan)
    assert trial.answer == done.answer
    assert counts(world.ledger) == before
    grant = world.models.grants[-1]
    handing = HandOver("helper", "help with this", {}, 0)
    assert grant.run_id == handing.trial_id("trial-1")
    assert (grant.mode, grant.evolution_id) == (Mode.REPLAY, "evo-1")
    assert grant.recordings == (first.id, second.id)
    steps = [(step.node, step.observation) for step in trial.steps]
    assert steps == [(step.node, step.observation) for step in done.steps]

    again = replace(recording, run_ids=("trial-1",))  # a trial that is verified from its own calls
    verified = world.executor.execute(
        world.task, live.snapshot, "trial-2", plan=replace(plan, recording=again)
    )
    assert verified.answer == done.answer
    assert world.models.grants[-1].recordings == (handing.trial_id("trial-1"),)


def test_a_replay_below_that_cannot_go_on_ends_the_trial(world: World) -> None:
    world.agent("lead", LEAD, "helper")
    world.agent("helper", "def run(sdk):\n    sdk.finish(sdk.ask_person('Which?'))\n")
    world.ledger.add_task(world.task, Share.OPEN)
    plan = Plan(mode=Mode.REPLAY_THEN_LIVE, evolution_id="evo-1")
    done = world.executor.execute(world.task, world.registry.stable(), "trial-1", plan=plan)
    assert done.outcome.result is Result.NOT_REPLAYABLE


def test_what_fails_below_is_told_to_the_run_above(world: World) -> None:
    world.agent("lead", LEAD, "helper")
    world.agent("helper", "def run(sdk):\n    raise ValueError('no idea')\n")
    _, done = world.run()
    assert (done.answer["ok"], done.outcome.result) == (False, Result.PASSED)
    assert "no idea" in done.answer["reason"]


class Full:
    """A sandbox on a machine that has room for one box."""

    def __init__(self, inner: Bubblewrap) -> None:
        self.name, self.level, self.image = inner.name, inner.level, inner.image
        self._inner, self._opened = inner, 0

    def open(self, limits: Limits, *, light: bool = False, run: str = "") -> Box:
        self._opened += 1
        if self._opened > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._inner.open(limits, light=light, run=run)

    def close(self) -> None:
        """The inner one is closed by whoever made it."""


def test_work_below_that_the_machine_has_no_room_for_is_not_left_open(
    home: Home, ledger: Ledger, sandbox: Bubblewrap, make_task: Any
) -> None:
    task = replace(make_task("double", n=1), call=None, agent="lead", goal="lead")
    world = World(home, ledger, Full(sandbox), task)
    world.agent("lead", LEAD, "helper")
    world.agent("helper", HELP)
    with pytest.raises(OSError, match="space"):
        world.run()
    (child,) = world.children()
    assert child.outcome is not None
    assert child.outcome.result is Result.INFRA
    assert ledger.task_view(child.task_id).state is TaskState.CANCELLED  # taken up by the next attempt


# --- with the daemon ----------------------------------------------------------------------------


def typed(home: Home, *words: str, code: int = 0) -> str:
    done = command_server().run("--home", str(home.root), *words, env=os.environ)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_daemon_that_was_killed_takes_up_the_tree_and_nothing_else(
    home: Home, ledger: Ledger, daemon: Any, add: Any, until: Any, world: World
) -> None:
    world.agent("lead", LEAD, "helper")
    slow = "import time\ndef run(sdk):\n    sdk.step('here')\n    time.sleep(1)\n    sdk.finish('slept')\n"
    world.agent("helper", slow)
    daemon.environment = {"AGENTOS_PARALLEL": "1"}
    daemon.start()
    task = add(world.task)
    until(lambda: any(ledger.steps(run.id) for run in world.children()), "the sub-task is under way")
    daemon.signal(signal.SIGKILL)
    daemon.start()
    until(lambda: ledger.task_view(task.id).state is TaskState.DONE, "it is done")
    newest, *_ = ledger.runs(task.id)
    assert newest.answer["answer"] == "slept"
    second, first = world.children()
    assert (first.outcome and first.outcome.result, second.outcome and second.outcome.result) == (
        Result.INFRA,
        Result.PASSED,
    )
    assert second.parent == newest.id
    assert ledger.tasks(TaskState.RUNNING) == []
    assert [view.state for view in ledger.handed_over(task.id)] == [TaskState.DONE]
    shown = typed(home, "run", "show", newest.id)
    assert f"helper: help with this  ({second.id}, passed)" in shown
    assert f"goes on    from {newest.resumes}" in shown
    assert f"handed by  {newest.id}" in typed(home, "run", "show", second.id)
    assert f"part of {task.id}" in typed(home, "task", "cancel", second.task_id, code=1)
    assert "↳ helper" in typed(home, "task", "list")


def test_a_cancelled_task_takes_its_sub_tasks_along(
    home: Home, ledger: Ledger, daemon: Any, add: Any, until: Any, world: World
) -> None:
    world.agent("lead", LEAD, "helper")
    world.agent("helper", "import time\ndef run(sdk):\n    sdk.step('here')\n    time.sleep(60)\n")
    daemon.start()
    task = add(world.task)
    until(lambda: any(ledger.steps(run.id) for run in world.children()), "the sub-task is under way")
    assert ledger.set_task_state(task.id, (TaskState.RUNNING,), TaskState.CANCELLED)
    until(lambda: all(run.outcome for run in world.children()), "it has ended", 10)
    assert [view.state for view in ledger.handed_over(task.id)] == [TaskState.CANCELLED]
    until(lambda: not newest_open_runs(ledger, 100), "nothing runs", 10)
