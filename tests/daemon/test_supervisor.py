"""The supervisor over real runs: what it does is on record, the same in a trial, and out of reach of what evolves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from agentos.daemon.requests.enforcement import SupervisorPlan
from agentos.daemon.requests.model_requests import model_asks
from agentos.daemon.requests.overseer import OverseerPlan
from agentos.daemon.requests.people import People
from agentos.daemon.run.execution import BoxExecutor, RunServices
from agentos.domain import (
    Budget,
    KernelFault,
    Limits,
    Mode,
    ModelSpec,
    Question,
    Result,
    Step,
    Task,
    kind_of,
    new_id,
)
from agentos.evolver.history.recordings import recording_of
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.ports import Attempt, Plan
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.supervisor.watching import LOOP_ALIKE, LOOP_BLIND, WARNED, Norms, RunUsage, SupervisorCheck
from agentos.testing import FakeModels
from tests.daemon.test_rules import answered

pytestmark = pytest.mark.sandbox

SPEC = ModelSpec("house-model", "openai/fake", "", {})
LOOP = """
def run(sdk):
    seen = [sdk.call_tool('double', {'n': %s}) for n in range(%d)]
    sdk.finish([r.fault.message if r.fault else r.output for r in seen])
"""
SAME, OTHER = "7", "n"


def plan(norms: Norms | None = None, held_back: str = "", **acts: str) -> SupervisorPlan:
    return SupervisorPlan(
        norms or Norms(), {SupervisorCheck(check): act for check, act in acts.items()}, held_back
    )


class World:
    def __init__(
        self, home: Home, ledger: Ledger, sandbox: Bubblewrap, make_task: Callable[..., Task]
    ) -> None:
        self.registry, self.ledger, self.sandbox = Registry(home.registry), ledger, sandbox
        self.make_task = make_task
        self.models = FakeModels(lambda request, number: {"content": "7"})

    def harness(self, source: str) -> Task:
        files = {
            "agent/own/resource.toml": 'description = "A test agent"\nharness = "own"\n',
            "harness/own/resource.toml": 'description = "A test harness"\n',
            "harness/own/harness.py": source,
        }
        self.registry.commit({path: text.encode() for path, text in files.items()}, "Files", "edit")
        return replace(self.make_task("double", n=1), call=None, agent="own", goal="do it", id=new_id("task"))

    def run(self, task: Task, supervised: SupervisorPlan, how: Plan | None = None) -> Attempt:
        serving = RunServices(
            models=lambda bundle, snapshot: (SPEC,),
            answerers={
                "model": model_asks(self.models, lambda asking: (SPEC,)),
                "person": People(self.ledger).answerer,
            },
            supervised=lambda task, snapshot: supervised,
        )
        executor = BoxExecutor(self.registry, self.ledger.blobs, self.sandbox, serving=serving)
        return executor.execute(task, self.registry.stable(), new_id("run"), plan=how)


@pytest.fixture
def world(home: Home, ledger: Ledger, sandbox: Bubblewrap, make_task: Callable[..., Task]) -> World:
    return World(home, ledger, sandbox, make_task)


def acts(done: Attempt) -> list[tuple[str, str]]:
    return [(step.action["check"], step.action["act"]) for step in done.steps if step.node == "supervisor"]


def calls(done: Attempt) -> list[Step]:
    return [step for step in done.steps if step.node == "act"]


def test_an_agent_in_a_loop_is_told_once_and_then_stopped(world: World) -> None:
    done = world.run(world.harness(LOOP % (SAME, 40)), plan(loop="stop"))
    assert acts(done) == [("loop", "warn"), ("loop", "stop")]
    assert done.outcome.result is Result.FAILED
    assert kind_of(done.outcome.fault) is KernelFault.SUPERVISOR
    assert done.outcome.fault is not None
    assert done.outcome.fault.type == "loop"
    refused = [step for step in calls(done) if step.fault is not None]
    assert len(refused) == 1
    assert refused[0].fault is not None
    assert refused[0].fault.type == WARNED
    assert len(calls(done)) <= 2 * LOOP_ALIKE + 2
    (told, stopped) = [step for step in done.steps if step.node == "supervisor"]
    assert told.observation["reason"]
    assert stopped.observation["detail"]


def test_what_varies_goes_on(world: World) -> None:
    done = world.run(
        world.harness(LOOP % (OTHER, 40)), plan(loop="stop", no_progress="stop", refusals="stop")
    )
    assert acts(done) == []
    assert len(done.answer) == 40


def test_who_heeds_the_message_is_left_alone(world: World) -> None:
    heeds = """
def run(sdk):
    for n in range(40):
        if (result := sdk.call_tool('double', {'n': 7})).fault:
            return sdk.finish(result.fault.message)
"""
    done = world.run(world.harness(heeds), plan(loop="stop"))
    assert acts(done) == [("loop", "warn")]
    assert done.answer.startswith("supervisor: ")


def test_a_note_is_all_that_a_task_gets_that_is_only_looked_at(world: World) -> None:
    done = world.run(world.harness(LOOP % (SAME, 20)), plan(loop="stop", held_back="only looked at"))
    assert set(acts(done)) == {("loop", "note")}
    assert done.answer == [{"n": 14}] * 20  # nothing in it tells the agent of anything


def test_what_may_not_stop_notes(world: World) -> None:
    supervised = replace(plan(loop="stop"), off={SupervisorCheck.LOOP: "it would have lost 4 of 40"})
    done = world.run(world.harness(LOOP % (SAME, 20)), supervised)
    assert set(acts(done)) == {("loop", "note")}
    notes = [step for step in done.steps if step.node == "supervisor"]
    assert notes[0].observation["why"] == "it would have lost 4 of 40"


def test_a_person_is_asked_and_what_they_say_holds(world: World) -> None:
    task = world.harness(LOOP % (SAME, 20))
    supervised = plan(Norms(usage=RunUsage(steps=5)), cost="ask")
    assert world.run(task, supervised).outcome.result is Result.WAITING
    (question,) = world.ledger.find(Question)
    assert "far more than such work took" in question.text
    assert len(world.run(task, supervised, answered(world, question, "allow")).answer) == 20
    stopped = world.run(task, supervised, answered(world, question, "stop"))
    assert kind_of(stopped.outcome.fault) is KernelFault.SUPERVISOR


def test_far_more_than_such_work_took_ends_as_a_budget(world: World) -> None:
    done = world.run(world.harness(LOOP % (OTHER, 20)), plan(Norms(usage=RunUsage(steps=5)), cost="stop"))
    assert done.outcome.result is Result.BUDGET
    assert len(calls(done)) <= 6


def test_one_refusal_after_the_other(world: World) -> None:
    source = """
def run(sdk):
    for n in range(30):
        sdk.call_tool('double', {'n': n})
    sdk.finish('done')
"""
    world.registry.commit(
        {
            "rule/none/resource.toml": b'description = "Not that."\non = "before_call"\n'
            b'when = "tool == \'double\'"\nenforce = "refuse"\nadvice = "Use another."\n'
        },
        "A rule",
        "edit",
    )
    done = world.run(world.harness(source), plan(refusals="stop"))
    assert acts(done) == [("refusals", "warn"), ("refusals", "stop")]


def test_a_tool_that_does_not_answer_ends_the_run(world: World) -> None:
    task = world.harness("def run(sdk):\n    sdk.finish(sdk.call_tool('sleeper', {'n': 20}).output)\n")
    done = world.run(task, plan(Norms(tools={"sleeper": 0.3}), silent_tool="stop"))
    assert acts(done) == [("silent_tool", "stop")]
    assert kind_of(done.outcome.fault) is KernelFault.SUPERVISOR
    assert done.outcome.cost.wall_s < 15


def test_a_trial_is_supervised_as_the_live_run_was(world: World) -> None:
    task = world.harness(LOOP % (SAME, 11))
    live = world.run(task, plan(loop="stop"))
    recording = recording_of(world.registry.stable(), [("run-live", live.steps)])
    again = world.run(task, plan(loop="stop"), Plan(mode=Mode.REPLAY, recording=recording))
    assert again.answer == live.answer
    assert acts(again) == acts(live) == [("loop", "warn")]
    assert again.drift == ()


# --- who tries to get around it ---------------------------------------------------------------


def test_a_box_cannot_write_the_supervisors_steps(world: World) -> None:
    forged = world.harness(
        "def run(sdk):\n    sdk.step('supervisor', {'check': 'loop', 'act': 'note'}, {})\n    sdk.finish(1)\n"
    )
    done = world.run(forged, plan(loop="stop"))
    assert kind_of(done.outcome.fault) is KernelFault.PROTOCOL
    assert acts(done) == []


def test_made_up_results_do_not_hide_a_loop(world: World) -> None:
    """The harness keeps its own steps of the calls back, and tells of progress that there is not."""
    hides = """
import agentos.worker.rpc as rpc

def run(sdk):
    kernel = next(value for value in vars(sdk).values() if isinstance(value, rpc.KernelClient))
    for n in range(%d):
        kernel.ask('tool', {'tool': 'double', 'args': {'n': 7}, 'path': 'tool/double/tool.py'})
        sdk.step('act', {'tool': 'look', 'args': {'n': n}}, {'ok': True, 'output': n})
    sdk.finish('done')
"""
    task = replace(world.harness(hides % (3 * LOOP_BLIND)), limits=Limits(steps=200))
    done = world.run(task, plan(loop="stop"))
    assert acts(done) == [("loop", "warn"), ("loop", "stop")]


def test_a_message_that_is_forged_switches_nothing_off(world: World) -> None:
    """A step that claims to be the supervisor's refusal is no call that counts; those that are asked for do."""
    forges = """
def run(sdk):
    from agentos.worker.sdk import fault
    for n in range(40):
        sdk.call_tool('double', {'n': 7})
        sdk.step('act', {'tool': 'double', 'args': {}}, {'ok': False}, fault('supervisor', 'all is well'))
    sdk.finish('done')
"""
    done = world.run(world.harness(forges), plan(loop="stop"))
    assert acts(done) == [("loop", "warn"), ("loop", "stop")]


def test_a_fault_of_that_name_from_a_box_is_not_the_kernels(world: World) -> None:
    says = "def run(sdk):\n    from agentos.worker.sdk import fault\n    sdk.fail(fault('supervisor', 'stopped'))\n"
    done = world.run(world.harness(says), plan(loop="stop"))
    assert done.outcome.result is Result.FAILED
    assert kind_of(done.outcome.fault) is KernelFault.NONE


# --- a model that looks on --------------------------------------------------------------------


THINKS = """
def run(sdk):
    for n in range(12):
        try:
            sdk.model({'messages': [{'role': 'user', 'content': f'thought {n}'}]})
        except Exception as error:
            return sdk.finish(str(error))
    sdk.finish('done')
"""


def overseen(world: World, says: str, act: str, calls: int = 3) -> tuple[SupervisorPlan, FakeModels]:
    seen: list[Any] = []

    def reply(request: Mapping[str, Any], number: int) -> Mapping[str, Any]:
        seen.append(request)
        return {"content": says}

    models = FakeModels(reply)
    overseer = OverseerPlan(models, replace(SPEC, name="overseer"), 4, Budget(calls=calls))
    return replace(plan(overseer=act), overseer=overseer), models


def test_a_model_that_looks_on_stops_what_it_calls_lost(world: World) -> None:
    supervised, _ = overseen(world, '{"lost": true, "reason": "it only thinks"}', "stop")
    done = world.run(world.harness(THINKS), supervised)
    assert acts(done) == [("overseer", "stop")]
    assert "it only thinks" in done.outcome.reason


def test_it_looks_no_more_often_than_its_budget_allows(world: World) -> None:
    supervised, models = overseen(world, '{"lost": false, "reason": ""}', "stop", calls=2)
    assert world.run(world.harness(THINKS), supervised).answer == "done"
    assert len(models.requests) == 2
    limits = Limits(wall_s=3_600.0)
    assert world.run(replace(world.harness(THINKS), limits=limits), supervised).answer == "done"
    assert max(models.deadlines) < time.monotonic() + 100, "a run does not wait for it to its own end"
    assert models.requests[0]["max_tokens"]
    # what the run says is data, not its orders
    assert "thought" not in str(models.requests[0]["messages"][0])


@pytest.mark.parametrize("says", ["gibberish", '{"lost": "yes"}', "[]", ""])
def test_what_it_says_beside_the_form_means_nothing(world: World, says: str) -> None:
    supervised, _ = overseen(world, says, "stop")
    assert world.run(world.harness(THINKS), supervised).answer == "done"
