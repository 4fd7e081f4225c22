"""Which layer a failing call is laid to: the tool, or the harness that called it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from agentos.domain import (
    Check,
    CheckResult,
    Diagnosis,
    Evidence,
    Evolution,
    EvolutionState,
    Fault,
    Layer,
    Outcome,
    Result,
    Run,
    RunEnd,
    Share,
    Snapshot,
    Step,
    Task,
    canonical,
)
from agentos.evolver.diagnose.diagnosis import diagnose
from agentos.evolver.find.mining import mine
from agentos.evolver.find.triage import triage
from agentos.evolver.propose.briefing import brief_for
from agentos.evolver.select.curate import TaskSets
from agentos.testing import FakeRegistry

if TYPE_CHECKING:
    from conftest import World

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HARNESS = "harness/desk"
TOOLS = ("one", "two", "three")
FILES = {
    **{f"skill/{name}/tools/get.py": "def answer(): ...\n" for name in TOOLS},
    f"{HARNESS}/harness.py": "def run(sdk): ...\n",
    f"{HARNESS}/joining.py": "def joined(): ...\n",
}


@dataclass
class Bench:
    """Runs that are put into the ledger as they went, and what is made of them."""

    world: World
    count: int = 0

    def run(
        self,
        tool: str,
        outputs: list[Any],
        expected: Any,
        *,
        fault: Fault | None = None,
        path: str | None = None,
        nodes: dict[str, Fault] | None = None,
        passed: bool = False,
    ) -> Run:
        """A run of ``tool`` under the harness: its calls gave ``outputs``, its check missed ``expected``."""
        self.count += 1
        made = self.world.task(self.count, "x")
        spec = {"value": expected} | ({"path": path} if path else {})
        task: Task = replace(
            made,
            id=f"task-{self.count}",
            goal=f"goal {self.count}",
            call=replace(made.call, tool=f"{tool}/get") if made.call else None,
            checks=(Check("equals", spec),),
        )
        ledger = self.world.ledger
        ledger.add_task(task, Share.OPEN)
        stable = self.world.registry.stable()
        run = Run(f"run-{self.count}", task.id, task.key, Share.OPEN, 1, stable, "fake", "none", NOW)
        ledger.begin_run(run)
        steps: list[tuple[str, Any, Fault | None]] = [
            ("act", {"ok": True, "output": output}, None) for output in outputs
        ]
        steps += [(node, None, found) for node, found in (nodes or {}).items()]
        for index, (node, observed, found) in enumerate(steps):
            ledger.append_step(Step(run.id, index, node, None, observed, found, NOW, 1.0))
        results = (CheckResult("equals", passed=passed),) if fault is None else ()
        outcome = Outcome(Result.PASSED if passed else Result.FAILED, float(passed), "no", fault, results)
        ledger.finish_run(
            run.id, outcome, RunEnd(outputs[0] if passed else None, resources=(f"skill/{tool}", HARNESS))
        )
        return ledger.run(run.id)

    def diagnosed(self) -> list[Diagnosis]:
        """One diagnosis for each failure that has become evidence."""
        parts = self.world.parts
        mine(parts)
        opened = triage(parts)
        return [diagnose(parts, parts.records.get(Evidence, item.evidence_id), item.base) for item in opened]

    def promoted(self, tool: str, klass: str) -> None:
        """A standing promotion of the tool's skill for a failure of that class."""
        self.count += 1
        (seen,) = self.world.ledger.find(Evidence)[-1:]
        other = replace(seen.fingerprint, id=f"of-{klass}", klass=klass)  # its class is part of what it is
        old = replace(seen, id=f"evd-{self.count}", fingerprint=other)
        diagnosis = Diagnosis(Layer.SKILL, f"skill/{tool}", f"skill/{tool}/tools/get.py", "")
        evolution = Evolution(
            f"evo-{self.count}",
            old.id,
            old.fingerprint.id,
            EvolutionState.PROMOTED,
            Snapshot("c", "t"),
            diagnosis=diagnosis,
        )
        self.world.ledger.put(old)
        self.world.ledger.put(evolution)


@pytest.fixture
def bench(world: World) -> Bench:
    world.registry = FakeRegistry(FILES)
    return Bench(world)


def test_what_is_told_in_another_order_is_one_failure_of_the_harness_whichever_tool_was_called(
    bench: Bench,
) -> None:
    for tool in TOOLS:
        bench.run(tool, [{"n": 1}, {"n": 2}], [{"n": 2}, {"n": 1}])
    (found,) = bench.diagnosed()
    assert (found.layer, found.resource, found.path) == (Layer.HARNESS, HARNESS, f"{HARNESS}/harness.py")
    assert "another order" in found.why
    assert "3 tasks" in found.why
    assert found.step_refs == ("run-1#1", "run-2#1", "run-3#1")


def test_an_item_of_a_list_may_be_what_is_missed(bench: Bench) -> None:
    for tool in TOOLS[:2]:
        bench.run(tool, [{"n": 1}, {"n": 2}], 2, path="0.n")
    (found,) = bench.diagnosed()
    assert found.layer is Layer.HARNESS


def test_what_a_hook_made_of_a_right_answer_is_laid_to_the_harness(bench: Bench) -> None:
    for tool in TOOLS[:2]:
        bench.run(tool, [{"text": "  x\n"}], "  x\n", path="text")
    (found,) = bench.diagnosed()
    assert found.layer is Layer.HARNESS
    assert "something else" in found.why


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ([{"n": 1}], {"n": 2}),  # the tool's own answer is wrong
        ([{"n": 1}, {"n": 3}], [{"n": 2}, {"n": 1}]),  # one of them is
        ([{"n": 1}], [{"n": 1}, {"n": 1}]),  # a call too few
        ([], {"n": 1}),
    ],
)
def test_a_wrong_answer_of_a_tool_stays_the_tools(bench: Bench, outputs: list[Any], expected: Any) -> None:
    for _ in range(2):
        bench.run("one", outputs, expected)
    (found,) = bench.diagnosed()
    assert (found.layer, found.path) == (Layer.SKILL, "skill/one/tools/get.py")
    assert found.also == ()


def test_outputs_that_are_not_on_record_as_a_whole_clear_nobody(bench: Bench) -> None:
    large = {"blob": "ab" * 32, "head": "…", "tail": "…", "size": 10_000_000}
    for _ in range(2):
        run = bench.run("one", [], {"n": 1})
        bench.world.ledger.insert_step(Step(run.id, 0, "act", None, large, None, NOW, 1.0))
    (found,) = bench.diagnosed()
    assert found.layer is Layer.SKILL


def test_an_exception_in_the_harness_is_one_failure_and_names_its_file(bench: Bench) -> None:
    where = f"{HARNESS}/joining.py:joined"
    for tool in TOOLS:
        bench.run(tool, [1], 1, fault=Fault("KeyError", f"'{tool}'", where, HARNESS))
    (found,) = bench.diagnosed()
    assert (found.layer, found.path) == (Layer.HARNESS, f"{HARNESS}/joining.py")


def test_one_message_of_three_tools_is_laid_to_what_they_share(bench: Bench) -> None:
    for tool in (*TOOLS, *TOOLS):
        bench.run(tool, [], 1, fault=Fault("TypeError", "got a tuple", "", f"skill/{tool}"))
    assert {found.layer for found in bench.diagnosed()} == {Layer.HARNESS}


def test_one_message_of_two_tools_is_not(bench: Bench) -> None:
    for tool in (*TOOLS[:2], *TOOLS[:2]):
        bench.run(tool, [], 1, fault=Fault("TypeError", "got a tuple", "", f"skill/{tool}"))
    assert {found.layer for found in bench.diagnosed()} == {Layer.SKILL}


def test_a_step_that_no_tool_ran_makes_the_harness_the_second_place_to_look(bench: Bench) -> None:
    empty = Fault("empty", "the answer is empty")
    for _ in range(2):
        bench.run("one", [{}], 1, fault=empty, nodes={"verify": empty})
    (found,) = bench.diagnosed()
    assert [site.layer for site in found.sites] == [Layer.SKILL, Layer.HARNESS]
    assert "'verify'" in found.why


@pytest.mark.parametrize(
    ("promotions", "first"),
    [
        ([], Layer.SKILL),
        (["wrong_answer"], Layer.SKILL),
        (["wrong_answer", "tool_error"], Layer.SKILL),
        (["wrong_answer", "wrong_answer"], Layer.HARNESS),
    ],
)
def test_after_two_promotions_for_such_failures_it_lies_deeper(
    bench: Bench, promotions: list[str], first: Layer
) -> None:
    for _ in range(2):
        bench.run("one", [1], 2)
    bench.diagnosed()
    for klass in promotions:
        bench.promoted("one", klass)
    evidence = bench.world.evidence() if not promotions else bench.world.ledger.find(Evidence)[0]
    found = diagnose(bench.world.parts, evidence, bench.world.registry.stable())
    assert found.layer is first
    assert {site.layer for site in found.sites} >= {Layer.SKILL}


def test_evidence_is_not_asked_twice_for_one_fault_of_the_harness(bench: Bench) -> None:
    """Three tools fail by one harness: one evolution, not three at work on one file."""
    for tool in (*TOOLS, *TOOLS):
        bench.run(tool, [1, 2], [2, 1])
    parts = bench.world.parts
    mine(parts)
    opened = triage(parts)
    assert len(opened) == 1
    assert canonical(parts.records.get(Evidence, opened[0].evidence_id).task_ids)
    assert triage(parts) == []


def test_a_brief_on_a_harness_shows_working_calls_of_every_tool(bench: Bench) -> None:
    world = bench.world
    world.policy = replace(world.policy, evidence=replace(world.policy.evidence, visible_guards=1.0))
    failing = [bench.run(tool, [1, 2], [2, 1]) for tool in TOOLS[:2]]
    passing = [bench.run(tool, [1], 1, passed=True) for tool in TOOLS]
    (found,) = bench.diagnosed()
    sets = TaskSets(tuple(run.task_id for run in failing), tuple(run.task_id for run in passing), ())
    (evolution,) = world.ledger.find(Evolution)
    of_harness = brief_for(world.parts, evolution, found.sites[0], sets)
    assert {case.call.tool for case, _ in of_harness.working_calls} == {f"{tool}/get" for tool in TOOLS}
    assert all(not case.checks for case, _ in of_harness.working_calls)
    assert f"{HARNESS}/joining.py" in of_harness.files
