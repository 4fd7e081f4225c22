"""What a person could allow opens no evolution, and nothing that a tool does can turn that into silence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from agentos.domain import (
    Arm,
    Call,
    Fault,
    InputFile,
    Json,
    KernelFault,
    Outcome,
    Result,
    Run,
    RunEnd,
    Share,
    Sighting,
    Step,
    Trial,
    TrialSet,
    box_fault,
    kernel_fault,
)
from agentos.evolver.find.mining import GRANT, avoidable, flag, mine, yours
from agentos.evolver.find.triage import triage
from agentos.evolver.history.recordings import packed
from agentos.evolver.replay.trials import failing_alike
from tests.evolver.conftest import World

SAYS = "api.example.org is not a host that runs may reach: add it to 'egress' in agentos.toml"
REFUSED: Json = {"type": "effect", "error": SAYS, GRANT: True}
RAISED = box_fault("OutsideError", f"no rates: {SAYS}", "tool/a/tool.py:run", "tool/a")
PASSED = Outcome(Result.PASSED, 1.0, "")


CALLED = Call("calc/grade", {})


def ran(
    world: World,
    fault: Fault | None,
    seen: Json = REFUSED,
    *,
    n: int = 1,
    node: str = "fetch",
    call: Call | None = CALLED,
    inputs: tuple[InputFile, ...] = (),
) -> Run:
    """A run that asked there, got ``seen``, and ended with the fault, or passed; equal work where ``n`` is equal."""
    number = len(world.ledger.states)
    task = replace(world.task(n, "x"), id=f"task-{number}", call=call, inputs=inputs)
    world.ledger.add_task(task, Share.OPEN)
    now = datetime.now(UTC)
    run = Run(f"run-{number}", task.id, task.key, Share.OPEN, 1, world.registry.stable(), "fake", "none", now)
    world.ledger.begin_run(run)
    if seen is not None:
        action = {"method": "GET", "url": "http://api.example.org/rates"}
        world.ledger.append_step(Step(run.id, 0, node, action, seen, None, now, 1.0))
    outcome = Outcome(Result.FAILED, 0.0, fault.message, fault) if fault else PASSED
    world.ledger.finish_run(run.id, outcome, RunEnd(resources=("harness/desk",)))
    return world.ledger.run(run.id)


def classes(world: World) -> Sequence[str]:
    mine(world.parts)
    return [item.fingerprint.klass for item in world.ledger.find(Sighting)]


def test_what_was_not_allowed_is_counted_and_repaired_by_nobody(world: World) -> None:
    for n in range(4):
        ran(world, RAISED, n=n)
    assert set(classes(world)) == {"not_granted"}
    assert len({item.fingerprint.id for item in world.ledger.find(Sighting)}) == 1
    assert triage(world.parts) == []


def test_a_person_is_told_what_to_allow(world: World) -> None:
    run = ran(world, RAISED)
    assert yours(run.outcome, world.ledger.steps(run.id)) == SAYS
    stopped = kernel_fault(KernelFault.RULE, "rule/mine stopped the run: no")
    assert "rule/mine" in yours(Outcome(Result.FAILED, 0.0, "", stopped), ())
    spoken = box_fault("rule", "rule/mine stopped the run: no", resource="tool/a")
    assert yours(Outcome(Result.FAILED, 0.0, "", spoken), ()) == ""


ATTACKS = {
    "the sentence, and no refusal on record": (RAISED, None, "fetch"),
    "a step of another node": (RAISED, REFUSED, "act"),
    "a request that was answered": (RAISED, {"status": 200, "body": SAYS}, "fetch"),
    "a request that nobody could allow": (RAISED, {"type": "request", "error": SAYS}, "fetch"),
    "a mark that is no mark": (RAISED, {**REFUSED, GRANT: "yes"}, "fetch"),
    "a wrong answer after a refusal": (kernel_fault(KernelFault.CHECK, SAYS), REFUSED, "fetch"),
    "another failure after a refusal": (box_fault("KeyError", "'b'", resource="tool/a"), REFUSED, "fetch"),
    "an empty sentence": (RAISED, {**REFUSED, "error": ""}, "fetch"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_tool_gets_rid_of_evidence_by_asking_for_what_is_refused(world: World, attack: str) -> None:
    fault, seen, node = ATTACKS[attack]
    for n in range(4):
        ran(world, fault, seen, n=n, node=node)
    assert "not_granted" not in classes(world)
    assert triage(world.parts)


@pytest.mark.parametrize(
    ("path", "given", "klass"),
    [
        ("bills/a.txt", "a.txt", "bad_call"),  # on the person's disk
        ("/home/me/a.txt", "bills/a.txt", "bad_call"),
        ("a.txt", "a.txt", "tool_error"),  # it is there, and the tool did not find it
        ("bills/b.txt", "a.txt", "tool_error"),
        ("a.txt", "bills/a.txt", "tool_error"),  # the tool may have lost the folder
        ("2026/a.txt", "bills/2026/a.txt", "tool_error"),
    ],
)
def test_a_call_that_names_an_input_by_another_path_is_the_tasks_fault(
    world: World, path: str, given: str, klass: str
) -> None:
    missing = box_fault(
        "FileNotFoundError", f"No such file or directory: '{path}'", "tool/a/tool.py:run", "tool/a"
    )
    files = (InputFile(given, "0" * 64, 1),)
    for n in range(4):
        ran(world, missing, n=n, call=Call("calc/grade", {"path": path}), inputs=files)
    assert set(classes(world)) == {klass}
    assert bool(triage(world.parts)) is (klass != "bad_call")


@pytest.mark.parametrize(("asked_there", "expected"), [(False, "tool_error"), (True, "not_granted")])
def test_equal_work_that_passed_without_asking_there_says_whose_fault_it_is(
    world: World, asked_there: bool, expected: str
) -> None:
    ran(world, None, {"status": 200, "body": "1.1"} if asked_there else None)
    ran(world, RAISED)
    assert classes(world) == [expected]


def test_whoever_calls_it_bad_makes_evidence_of_it(world: World) -> None:
    run = ran(world, RAISED)
    assert flag(world.parts, run).fingerprint.klass == "tool_error"
    assert triage(world.parts)


def test_a_rule_that_ended_the_run_is_the_persons(world: World) -> None:
    for n in range(4):
        ran(world, kernel_fault(KernelFault.RULE, "rule/mine stopped the run: no"), n=n)
    assert set(classes(world)) == {"rule_stopped"}
    assert triage(world.parts) == []


STOPPED = kernel_fault(KernelFault.RULE, "rule/mine stopped the run: no")


@pytest.mark.parametrize(
    ("call", "began", "opens"),
    [
        (None, True, True),  # an agent chose what the rule is against: it may learn to do without
        (None, False, False),  # no run can begin: a rule cannot be read
        (CALLED, True, False),  # the task itself asks for it
    ],
)
def test_a_persons_word_on_what_a_rule_ended(
    world: World, call: Call | None, began: bool, opens: bool
) -> None:
    run = ran(world, STOPPED, {"status": 200} if began else None, call=call)
    assert classes(world) == ["rule_stopped"]
    assert triage(world.parts) == []
    flagged = flag(world.parts, run).fingerprint
    assert flagged.klass == ("wrong_stop" if opens else "rule_stopped")
    assert bool(triage(world.parts)) is opens
    assert avoidable(world.ledger.task(run.task_id), run.outcome, world.ledger.steps(run.id)) is opens


def test_no_box_says_that_a_rule_ended_its_run(world: World) -> None:
    spoken = box_fault("rule", STOPPED.message, resource="tool/a")
    for n in range(4):
        ran(world, spoken, n=n)
    assert "rule_stopped" not in classes(world)
    assert triage(world.parts)


def test_hidden_work_that_fails_as_such_evidence_does_is_asked_of_an_edit_too(world: World) -> None:
    """Else the edit would have to mend nothing beside what it was shown."""
    evidence = ran(world, RAISED)
    flag(world.parts, evidence)
    (opened,) = triage(world.parts)
    hidden = ran(world, RAISED, n=2)
    assert hidden.outcome is not None
    trial = Trial(
        "trial-1",
        opened.id,
        "",
        hidden.task_id,
        TrialSet.HOLD_OUT,
        Arm.BASE,
        0,
        hidden.snapshot,
        hidden.outcome,
        "",
        "fake",
        "none",
        steps_sha256=world.blobs.put(packed(world.ledger.steps(hidden.id))),
    )
    assert failing_alike(world.parts, opened, [trial]) == {hidden.task_id}
