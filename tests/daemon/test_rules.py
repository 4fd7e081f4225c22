"""Rules over real runs: what they say is done by the kernel, stands in the record, and is the same in a replay."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from agentos.daemon.requests.model_requests import model_asks
from agentos.daemon.requests.people import People
from agentos.daemon.run.execution import BoxExecutor, RunServices
from agentos.domain import (
    Json,
    KernelFault,
    Mode,
    ModelSpec,
    Question,
    Result,
    Run,
    Share,
    Step,
    Task,
    kind_of,
    new_id,
)
from agentos.errors import Invalid, ModelFailed
from agentos.evolver.history.recordings import recording_of
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.ports import Attempt, ObservedRun, Plan
from agentos.registry.store import Registry
from agentos.resources.declarations import recorded_effects
from agentos.rules.document import read_rule
from agentos.rules.trying import RuleHitInRun, in_run
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.testing import FakeModels
from tests.daemon.test_blackbox import EXAMPLE, shell

pytestmark = pytest.mark.sandbox

SPEC = ModelSpec("house-model", "openai/fake", "", {})
RM = r"""text.matches(r'\\brm\\s+-\\w*[rf]')"""  # within a TOML text


def rule(when: str, enforce: str = "stop", on: str = "before_call", **more: str) -> str:
    lines = {"description": "Not that.", "on": on, "when": when, "enforce": enforce, **more}
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in lines.items() if key != "replace")
    return text + (f"[replace]\n{more['replace']}\n" if "replace" in more else "")


class World:
    """A home with the kit's tools, runs made without a daemon."""

    def __init__(
        self, home: Home, ledger: Ledger, sandbox: Bubblewrap, make_task: Callable[..., Task]
    ) -> None:
        self.registry, self.ledger, self.sandbox = Registry(home.registry), ledger, sandbox
        self.make_task = make_task
        self.models = FakeModels(lambda request, number: {"content": "7"})

    def put(self, files: Mapping[str, str]) -> None:
        self.registry.commit({path: text.encode() for path, text in files.items()}, "Files", "edit")

    def rule(self, *arguments: str, name: str = "mine", **more: str) -> None:
        self.put({f"rule/{name}/resource.toml": rule(*arguments, **more)})

    def harness(self, source: str) -> Task:
        """A task for an agent with a harness of its own."""
        self.put(
            {
                "agent/own/resource.toml": 'description = "A test agent"\nharness = "own"\n',
                "harness/own/resource.toml": 'description = "A test harness"\n',
                "harness/own/harness.py": source,
            }
        )
        return replace(self.make_task("double", n=1), call=None, agent="own", goal="do it", id=new_id("task"))

    def run(self, task: Task, plan: Plan | None = None) -> Attempt:
        serving = RunServices(
            models=lambda bundle, snapshot: (SPEC,),
            answerers={
                "model": model_asks(self.models, lambda asking: (SPEC,)),
                "person": People(self.ledger).answerer,
            },
        )
        executor = BoxExecutor(self.registry, self.ledger.blobs, self.sandbox, serving=serving)
        return executor.execute(task, self.registry.stable(), new_id("run"), plan=plan)


@pytest.fixture
def world(home: Home, ledger: Ledger, sandbox: Bubblewrap, make_task: Callable[..., Task]) -> World:
    return World(home, ledger, sandbox, make_task)


def nodes(done: Attempt) -> list[str]:
    return [step.node for step in done.steps]


def acts(done: Attempt) -> list[Step]:
    return [step for step in done.steps if step.node == "rule"]


CALLS = "def run(sdk):\n    seen = [sdk.call_tool('double', {'n': n}) for n in %s]\n    sdk.finish([[r.ok, r.output, r.fault and r.fault.type] for r in seen])\n"


def test_without_rules_nothing_of_them_is_on_record(world: World) -> None:
    done = world.run(world.make_task("double", n=21, expect=42))
    assert done.outcome.result is Result.PASSED
    assert nodes(done) == ["route", "act", "finish"] or "rule" not in "".join(nodes(done))


def test_stop_ends_the_run_and_names_the_rule(world: World) -> None:
    world.rule("tool == 'double' && args.n == 21")
    done = world.run(world.make_task("double", n=21))
    assert done.outcome.result is Result.FAILED
    assert kind_of(done.outcome.fault) is KernelFault.RULE
    assert nodes(done)[0] == "rules"
    (act,) = acts(done)
    assert (act.action["rule"], act.action["enforce"]) == ("rule/mine", "stop")
    assert act.action["digest"] == done.steps[0].action["rule/mine"]
    assert "act" not in nodes(done)  # the call was never made


def test_what_no_rule_is_about_goes_on(world: World) -> None:
    world.rule("tool == 'double' && args.n == 22")
    done = world.run(world.make_task("double", n=21, expect=42))
    assert done.outcome.result is Result.PASSED
    assert acts(done) == []


def test_refuse_gives_the_agent_advice_and_the_run_goes_on(world: World) -> None:
    world.rule("args.n == 2", "refuse", advice="Use another number.")
    done = world.run(world.harness(CALLS % "[1, 2, 3]"))
    assert [(ok, fault) for ok, _, fault in done.answer] == [(True, None), (False, "refused"), (True, None)]


def test_reflect_holds_back_once(world: World) -> None:
    world.rule("args.n == 2", "reflect", advice="Think again.")
    done = world.run(world.harness(CALLS % "[2, 2]"))
    assert [ok for ok, _, _ in done.answer] == [False, True]


def test_replace_writes_the_argument_that_the_tool_gets(world: World) -> None:
    world.rule("args.n > 10", "replace", replace="n = 10")
    done = world.run(world.harness(CALLS % "[50]"))
    assert done.answer[0][1] == {"n": 20}
    (made,) = [step for step in done.steps if step.node == "act"]
    assert made.action["args"] == {"n": 10}


def test_what_a_rule_writes_the_others_have_to_let_pass(world: World) -> None:
    world.rule("args.n > 10", "replace", replace="n = 5", name="small")
    world.rule("args.n == 5", "stop", name="five")
    done = world.run(world.harness(CALLS % "[50]"))
    assert kind_of(done.outcome.fault) is KernelFault.RULE


def test_the_trajectory_counts(world: World) -> None:
    world.rule("'double' in calls && calls['double'] >= 2")
    done = world.run(world.harness(CALLS % "[1, 2, 3]"))
    assert kind_of(done.outcome.fault) is KernelFault.RULE
    assert nodes(done).count("act") == 2


def test_after_a_call_its_result_is_judged(world: World) -> None:
    world.rule("text.contains('84')", on="after_call")
    done = world.run(world.harness(CALLS % "[42, 1]"))
    assert kind_of(done.outcome.fault) is KernelFault.RULE
    assert nodes(done).count("act") == 1


def test_an_answer_is_judged_before_it_counts(world: World) -> None:
    world.rule("text.contains('AKIA')", on="before_answer")
    key = base64.b64encode(b"AKIAABCDEFGHIJKLMNOP").decode()
    done = world.run(world.harness(f"def run(sdk):\n    sdk.finish({{'note': {key!r}}})\n"))
    assert kind_of(done.outcome.fault) is KernelFault.RULE
    assert done.answer is None


def test_a_person_is_asked_and_what_they_say_holds(world: World) -> None:
    world.rule("args.n == 2", "ask")
    task = world.harness(CALLS % "[2]")
    assert world.run(task).outcome.result is Result.WAITING
    (question,) = world.ledger.find(Question)
    assert '"n": 2' in question.text
    assert world.run(task, answered(world, question, "allow")).answer == [[True, {"n": 4}, None]]


def test_what_a_person_allows_once_happens_once(world: World) -> None:
    world.rule("args.n == 2", "ask")
    task = world.harness(CALLS % "[2, 2, 2]")
    given: dict[str, str] = {}
    for asked in range(3):
        recording = recording_of(world.registry.stable(), [], given)
        done = world.run(task, Plan(recording=recording, resume=True))
        assert done.outcome.result is Result.WAITING
        assert nodes(done).count("act") == asked
        (new,) = [found for found in world.ledger.find(Question) if found.text not in given]
        given[new.text] = "allow"
    done = world.run(task, Plan(recording=recording_of(world.registry.stable(), [], given), resume=True))
    assert done.answer == [[True, {"n": 4}, None]] * 3


def test_a_rule_that_asks_does_not_lift_one_that_refuses(world: World) -> None:
    """No new rule can shadow one that is there: what a person allows by one, the other still refuses."""
    world.rule("args.n == 2", "refuse", advice="Try 3.")
    world.rule("args.n == 2", "ask", name="asks")
    task = world.harness(CALLS % "[2]")
    assert world.run(task).outcome.result is Result.WAITING
    (question,) = world.ledger.find(Question)
    assert world.run(task, answered(world, question, "allow")).answer == [[False, None, "refused"]]


@pytest.mark.parametrize("five", ["", "refuse"])
def test_what_a_person_allows_has_the_arguments_that_another_rule_writes(world: World, five: str) -> None:
    world.rule("args.n > 10", "replace", replace="n = 5", name="small")
    world.rule("args.n > 10", "ask", name="asks")
    if five:  # what is written has to pass all others, whatever the person said
        world.rule("args.n == 5", five, name="five", advice="Not five.")
    task = world.harness(CALLS % "[50]")
    assert world.run(task).outcome.result is Result.WAITING
    (question,) = world.ledger.find(Question)
    assert '"n": 5' in question.text
    done = world.run(task, answered(world, question, "allow")).answer
    assert done == ([[False, None, "refused"]] if five else [[True, {"n": 10}, None]])


def test_a_replay_on_rules_that_came_later_is_held_to_them(world: World) -> None:
    """A recording is older than a rule: the replay drifts where the rule acts, and its record says which rule did."""
    task = world.harness(CALLS % "[1, 2]")
    before = world.run(task)
    assert before.answer == [[True, {"n": 2}, None], [True, {"n": 4}, None]]
    plan = Plan(mode=Mode.REPLAY, recording=recording_of(world.registry.stable(), [("run-1", before.steps)]))
    world.rule("args.n == 2", "refuse", advice="Try 3.")
    after = world.run(task, plan)
    assert after.answer == [[True, {"n": 2}, None], [False, None, "refused"]]
    assert [step.action["rule"] for step in acts(after)] == ["rule/mine"]


def test_a_no_ends_the_run(world: World) -> None:
    world.rule("args.n == 2", "ask")
    task = world.harness(CALLS % "[2]")
    world.run(task)
    (question,) = world.ledger.find(Question)
    assert kind_of(world.run(task, answered(world, question, "stop")).outcome.fault) is KernelFault.RULE


def answered(world: World, question: Question, text: str) -> Plan:
    """The run that goes on once a person has answered."""
    return Plan(recording=recording_of(world.registry.stable(), [], {question.text: text}), resume=True)


def test_a_replay_is_held_to_the_same_and_comes_to_the_same(world: World) -> None:
    world.rule("args.n == 2", "refuse", advice="No.")
    task = world.harness(CALLS % "[1, 2, 2, 1]")
    live = world.run(task)
    recording = recording_of(world.registry.stable(), [("run-live", live.steps)])
    again = world.run(task, Plan(mode=Mode.REPLAY, recording=recording))
    assert again.answer == live.answer
    assert [step.action for step in acts(again)] == [step.action for step in acts(live)]
    assert again.drift == ()


def test_the_rules_are_part_of_what_a_run_was_given(world: World) -> None:
    task = world.make_task("double", n=21)
    before = world.run(task).bundle
    world.rule("args.n == 1")
    assert world.run(task).bundle != before


def test_rules_of_a_skill_hold_where_it_is_used_and_no_box_sees_them(world: World) -> None:
    tool = world.registry.find_tool(world.registry.stable(), "double")
    path = f"{tool.partition('/tools/')[0]}/rules/never.toml"
    world.put({path: rule("true")})
    done = world.run(world.make_task("double", n=1))
    assert acts(done)[0].action["rule"] == path
    look = "import os\ndef run(sdk):\n    sdk.finish([n for _, _, names in os.walk('/snapshot') for n in names])\n"
    assert world.run(world.harness(look)).answer
    assert "never.toml" not in world.run(world.harness(look)).answer


def test_a_rule_is_tried_on_what_is_on_record(world: World) -> None:
    task = world.harness(CALLS % "[1, 2, 3]")
    done = world.run(task)
    run = Run(
        "run-1",
        task.id,
        "k",
        Share.OPEN,
        1,
        world.registry.stable(),
        "b",
        "l",
        datetime.now(UTC),
        answer=done.answer,
    )
    seen = ObservedRun(task, run, done.steps)

    def found(when: str) -> RuleHitInRun | None:
        made = read_rule("rule/a/resource.toml", rule(when).encode())
        return in_run(made, seen, recorded_effects(world.registry))

    hit = found("args.n >= 2")
    assert hit is not None
    assert (hit.times, done.steps[hit.step or 0].action["args"]) == (2, {"n": 2})
    assert found("args.n == 9") is None
    # whose run it was and what its tools do are on record as well
    assert found("agent == 'own' && goal == 'do it' && 'pure' in effects") is not None
    assert found("agent == 'other' || 'external' in effects") is None


# --- ways around ------------------------------------------------------------------------------


def test_another_encoding_of_an_argument_is_seen_through(world: World) -> None:
    world.put({"rule/no-rm/resource.toml": rule("text.matches(r'\\brm\\s+-\\w*[rf]')")})
    command = f"echo {base64.b64encode(b'rm -rf /').decode()} | base64 -d | sh"
    source = (
        f"def run(sdk):\n    sdk.call_tool('double', {{'n': 1, 'command': {command!r}}})\n    sdk.finish(1)\n"
    )
    assert kind_of(world.run(world.harness(source)).outcome.fault) is KernelFault.RULE


@pytest.mark.parametrize("when", ["tool == 'double'", "'pure' in effects"])
def test_a_harness_that_does_not_ask_before_a_call_is_ended(world: World, when: str) -> None:
    world.rule(when, "refuse", advice="No.")
    source = (
        "def run(sdk):\n"
        "    sdk.step('act', {'tool': 'double', 'args': {'n': 1}, 'path': 'x'}, {'ok': True, 'output': 2})\n"
        "    sdk.finish(2)\n"
    )
    done = world.run(world.harness(source))
    assert kind_of(done.outcome.fault) is KernelFault.RULE


def test_a_harness_that_asks_the_channel_itself_is_held_to_them(world: World) -> None:
    world.rule("tool == 'double'")
    source = (
        "def run(sdk):\n"
        "    sdk._talk.ask('tool', {'tool': 'double', 'args': {'n': 1}, 'path': ''})\n"
        "    sdk.finish(2)\n"
    )
    assert kind_of(world.run(world.harness(source)).outcome.fault) is KernelFault.RULE


def test_a_box_cannot_write_that_a_rule_let_it_pass(world: World) -> None:
    source = (
        "def run(sdk):\n    sdk.step('rule', {'rule': 'rule/mine'}, {'acted': False})\n    sdk.finish(2)\n"
    )
    done = world.run(world.harness(source))
    assert kind_of(done.outcome.fault) is KernelFault.PROTOCOL


def test_a_harness_cannot_say_that_a_rule_ended_it(world: World) -> None:
    source = "class rule(Exception): pass\ndef run(sdk):\n    raise rule('rule/mine stopped the run')\n"
    assert kind_of(world.run(world.harness(source)).outcome.fault) is KernelFault.NONE


def test_a_call_too_large_to_judge_is_stopped(world: World) -> None:
    world.rule("text.contains('never there')")
    source = (
        "def run(sdk):\n    sdk.call_tool('double', {'n': 1, 'l': ['x' * 10] * 120_000})\n    sdk.finish(2)\n"
    )
    task = world.harness(source)
    task = replace(task, limits=replace(task.limits, output_bytes=4 << 20))
    assert kind_of(world.run(task).outcome.fault) is KernelFault.RULE
    world.rule("args.l.exists(x, x == 'never there')")
    source = "def run(sdk):\n    sdk.call_tool('double', {'n': 1, 'l': ['x'] * 5000})\n    sdk.finish(2)\n"
    done = world.run(world.harness(source))
    assert kind_of(done.outcome.fault) is KernelFault.RULE


def test_a_predicate_that_fails_acts_unless_its_document_says_otherwise(world: World) -> None:
    world.rule("args.missing == 1")
    assert kind_of(world.run(world.make_task("double", n=1)).outcome.fault) is KernelFault.RULE
    world.rule("args.missing == 1", "refuse", advice="No.", on_error="pass")
    assert world.run(world.make_task("double", n=1)).outcome.result is Result.PASSED


def test_the_registry_takes_no_rule_that_cannot_be_read(world: World) -> None:
    with pytest.raises(Invalid):
        world.rule("tool ==")


# --- black boxes ------------------------------------------------------------------------------


@pytest.fixture
def black_box(world: World) -> Task:
    files = {str(p.relative_to(EXAMPLE)): p.read_text() for p in EXAMPLE.rglob("*") if p.is_file()}
    world.put({path: text for path, text in files.items() if path.split("/")[0] in ("agent", "harness")})
    return replace(world.make_task("double", n=1), call=None, goal="count", agent="mini", id=new_id("task"))


def test_a_black_box_agent_is_stopped_at_its_models_reply(world: World, black_box: Task) -> None:
    world.put({"rule/no-rm/resource.toml": rule("text.matches(r'\\brm\\s+-\\w*[rf]')")})
    world.models = FakeModels(lambda request, number: shell("rm -rf ."))
    done = world.run(black_box)
    assert kind_of(done.outcome.fault) is KernelFault.RULE
    assert "command" not in nodes(done)


def test_a_black_box_agent_gets_advice_in_place_of_the_call(world: World, black_box: Task) -> None:
    world.put({"rule/no-rm/resource.toml": rule("text.matches(r'\\brm\\s')", "refuse", advice="Do not.")})
    told: list[Json] = []

    def model(request: Mapping[str, Any], number: int) -> Mapping[str, Json]:
        told.append(request["messages"][-1])
        return shell("rm -rf .") if number == 0 else {"content": "2"}

    world.models = FakeModels(model)
    done = world.run(black_box)
    assert "Do not." in json.dumps([done.answer, told])


def test_a_model_call_is_judged_before_it_is_made(world: World, black_box: Task) -> None:
    world.rule("text.contains('count') && model_calls == 0", on="before_model")
    asked: list[int] = []
    world.models = FakeModels(lambda request, number: asked.append(number) or {"content": "2"})
    assert kind_of(world.run(black_box).outcome.fault) is KernelFault.RULE
    assert asked == []


@pytest.mark.parametrize("when", ["tokens > 0", "steps.exists(one, one.node == 'model')"])
def test_what_the_kernel_saw_is_counted_alike_live_and_from_the_record(
    world: World, black_box: Task, when: str
) -> None:
    world.rule(when, on="before_model")
    world.models = FakeModels(lambda request, number: shell("ls"))
    done = world.run(black_box)
    assert kind_of(done.outcome.fault) is KernelFault.RULE
    assert nodes(done).count("model") == 1


def test_a_call_that_gave_nothing_counts_for_rules_as_it_is_paid(world: World) -> None:
    thinks = """
def run(sdk):
    for n in range(3):
        try:
            sdk.model({'messages': [{'role': 'user', 'content': f'thought {n}'}]})
        except Exception:
            pass
    sdk.finish('done')
"""
    task = world.harness(thinks)
    world.rule("tokens > 100", on="before_model")
    asked: list[int] = []

    def cut(request: Mapping[str, Any], number: int) -> Mapping[str, Json]:
        asked.append(number)
        used = {"input_tokens": 50, "output_tokens": 100, "usd": 0.1, "recorded": False, "estimated": False}
        raise ModelFailed("cut", "too long", used)

    world.models = FakeModels(cut)
    assert kind_of(world.run(task).outcome.fault) is KernelFault.RULE
    assert asked == [0]
