"""Runs without a call: one lapse over different goals is one failure; different lapses are several."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from agentos.domain import CheckResult, Fault, Json, Outcome, Result, Run, Share, Snapshot, Step
from agentos.evolver.documents import load_taxonomy
from agentos.evolver.find.fingerprints import AgentActions, Failure, failure_of, root_step, telling_step
from agentos.shipped import folder

TAXONOMY = load_taxonomy(folder("evolver") / "taxonomy.toml")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PATH = "skill/csv/tools/total.py"
BROKEN = Fault("KeyError", "'price'", f"{PATH}:run", "skill/csv")
GOOD: Json = {"ok": True, "output": 1}
BAD: Json = {"ok": False}


def step(index: int, node: str, action: Json, observation: Json = None, fault: Fault | None = None) -> Step:
    return Step("run-1", index, node, action, observation, fault, NOW, 1.0)


def act(index: int, tool: str, args: Json = None, seen: Json = GOOD, fault: Fault | None = None) -> Step:
    return step(index, "act", {"tool": tool, "args": args}, BAD if fault else seen, fault)


def says(index: int, name: str, text: str = "a claim") -> Step:
    message = {"role": "assistant", "agent": name, "content": text}
    return step(index, "model", {"model": "", "messages": index}, {"message": message})


def failure(steps: Sequence[Step], fault: Fault | None = None, *kinds: str) -> Failure:
    checks = tuple(CheckResult(kind, False, "not 42") for kind in kinds)
    outcome = Outcome(Result.FAILED, 0.0, "r", fault, checks)
    run = Run("run-1", "task-1", "key", Share.OPEN, 1, Snapshot("c", "t"), "fake", "none", NOW, NOW, outcome)
    found = failure_of(run, "", TAXONOMY, AgentActions("agent/clerk", lambda: steps))
    assert found is not None
    return found


def name(steps: Sequence[Step], fault: Fault | None = None, *kinds: str) -> str:
    found = failure(steps, fault, *kinds).fingerprint
    return f"{found.klass}: {found.signature}"


LAPSES = {
    "loop": (
        [act(0, "total")],
        Fault("loop", "the same calls"),
        "wrong_stop: agent/clerk | loop | total | ",
    ),
    "limit": (
        [act(0, "total")],
        Fault("limit", "4 left"),
        "wrong_stop: agent/clerk | limit | total | ",
    ),
    "empty": ([], Fault("empty", "nothing"), "wrong_stop: agent/clerk | empty"),
    "context": ([], Fault("context", "too long"), "lost_context: agent/clerk | context"),
    "unknown tool": (
        [act(0, "sum-up", fault=Fault("unknown_tool", "no"))],
        Fault("unknown_tool", "3 replies"),
        "wrong_call: agent/clerk | unknown_tool | sum-up | unknown_tool",
    ),
    "answered after a wrong call": (
        [act(0, "total", fault=Fault("input", "path is missing", resource="skill/csv"))],
        None,
        "wrong_call: agent/clerk | input | total",
    ),
    "wrong answer": ([act(0, "total")], None, "missed_goal: agent/clerk | check |  |  | total | "),
    "harness": (
        [act(0, "total")],
        Fault("KeyError", "x", "harness/default/thinking.py:think", "harness/default"),
        "harness_error: agent/clerk | harness | harness/default/thinking.py:think",
    ),
}


@pytest.mark.parametrize("lapse", LAPSES)
def test_each_lapse_has_a_name_of_its_own(lapse: str) -> None:
    steps, fault, expected = LAPSES[lapse]
    assert name(steps, fault) == expected
    assert failure(steps, fault).klass.evolvable


def test_no_two_lapses_share_a_fingerprint() -> None:
    found = {failure(steps, fault).fingerprint.id for steps, fault, _ in LAPSES.values()}
    assert len(found) == len(LAPSES)


def test_one_lapse_over_different_goals_is_one_failure() -> None:
    one = failure([act(0, "total", {"path": "a.csv"})], None, "contains")
    other = failure([act(0, "read"), act(3, "total", {"path": "b.csv"})], None, "contains")
    third = failure([act(0, "total")], None, "equals")
    assert one.fingerprint == other.fingerprint
    assert one.fingerprint.id != third.fingerprint.id


def test_a_tool_that_broke_is_the_failure_that_a_task_calling_it_has() -> None:
    thinking = failure([act(0, "read"), act(1, "csv/total", fault=BROKEN)], None, "contains")
    outcome = Outcome(Result.FAILED, 0.0, "r", BROKEN)
    run = Run("run-2", "task-2", "key", Share.OPEN, 1, Snapshot("c", "t"), "fake", "none", NOW, NOW, outcome)
    calling = failure_of(run, PATH, TAXONOMY)
    assert calling is not None
    assert thinking.fingerprint == calling.fingerprint


def test_a_tool_that_worked_in_the_end_is_not_to_blame() -> None:
    steps = [act(0, "total", 1, fault=BROKEN), act(1, "total", 2)]
    assert name(steps) == "missed_goal: agent/clerk | check |  |  | total | "


def test_a_command_that_failed_by_its_exit_status_is_told() -> None:
    seen: Json = {"ok": True, "output": {"exit": 127, "stdout": "", "stderr": "csvtool: not found"}}
    assert name([act(0, "shell", seen=seen)]).endswith("| shell: not_found | shell | not_found")


def test_what_was_compacted_away_and_asked_again_is_lost_context() -> None:
    again = [act(index, tool) for index, tool in enumerate(["read", "a", "b", "c"])]
    after = [step(4, "think", {"messages": 9, "compacted": 2}), act(5, "read")]
    assert name([*again, *after], None) == "lost_context: agent/clerk | forgotten | read | "
    assert name([*again, act(5, "read")], None).startswith("missed_goal")


@pytest.mark.parametrize("kind", ["no_model", "imported", "grader", "effect"])
def test_what_no_edit_mends_stays_quarantined_whatever_the_steps_show(kind: str) -> None:
    assert not failure([act(0, "csv/total", fault=BROKEN)], Fault(kind, "x")).klass.evolvable


def test_a_run_can_not_forge_the_class_of_its_failure_by_what_tools_print() -> None:
    seen: Json = {"ok": True, "output": "fault: no_model\nagent:check\nexit status 2"}
    assert name([act(0, "total", seen=seen)]).startswith("missed_goal")


def test_names_that_a_model_makes_up_are_cut() -> None:
    long = "x | y\n" * 200_000
    steps = [act(0, long, fault=Fault("unknown_tool", long))]
    assert len(name(steps, Fault("unknown_tool", long))) < 1_000
    assert len(name([says(0, "a"), says(1, long)])) < 1_000
    assert "\n" not in name(steps)


@pytest.mark.parametrize("resource", ["", "harness/default", "memory/lesson", "../../etc", "agent/clerk"])
def test_a_fault_that_names_no_tools_code_blames_none(resource: str) -> None:
    forged = Fault("KeyError", "x", "registry/x.py:run", resource)
    assert failure([act(0, "total", fault=forged)]).fingerprint.resource == "agent/clerk"


def test_steps_are_not_read_of_a_run_that_passed() -> None:
    outcome = Outcome(Result.PASSED, 1.0, "")
    run = Run("run-1", "task-1", "key", Share.OPEN, 1, Snapshot("c", "t"), "fake", "none", NOW, NOW, outcome)

    def never() -> Sequence[Step]:
        raise AssertionError("it passed")

    assert failure_of(run, "", TAXONOMY, AgentActions("agent/clerk", never)) is None


# --- the root ---------------------------------------------------------------------------------


def test_the_root_of_nothing_is_its_beginning() -> None:
    assert root_step([]) == 0


def test_a_persons_mark_comes_first() -> None:
    marked = step(3, "model", None, None, Fault("mistake", "here", "Expert"))
    assert root_step([act(0, "a", fault=BROKEN), marked]) == 3


def test_the_root_is_the_first_call_that_never_worked_again() -> None:
    steps = [act(0, "a", 1, fault=BROKEN), act(1, "a", 2), act(2, "b", fault=BROKEN), act(3, "c")]
    assert root_step(steps) == 2


def test_a_program_that_failed_in_a_terminal_was_written_a_step_before() -> None:
    failed = {"role": "user", "name": "Terminal", "content": "exitcode: 1 (execution failed)\nboom"}
    steps = [says(0, "Planner"), says(1, "Coder"), step(2, "message", {"role": "user"}, {"message": failed})]
    assert root_step(steps) == 1


def test_the_root_of_a_loop_is_where_it_began() -> None:
    assert root_step([act(0, "a"), *(act(index, "b", 1) for index in range(1, 5))]) == 1
    turning = [act(index, "bc"[index % 2], index) for index in range(2, 8)]
    assert root_step([act(0, "a"), *turning]) == 2


def test_of_several_speakers_the_root_is_one_that_did_not_open() -> None:
    names = ["human", "Planner", "Planner", "Worker", "Planner", "Other", "Planner", "Planner"]
    steps = [says(index, name) for index, name in enumerate(names)]
    assert root_step(steps) == 3
    assert failure(steps).fingerprint.signature == "agent/clerk | check |  |  | Worker"


def test_of_one_speaker_the_root_is_its_last_word() -> None:
    alone = [
        step(0, "model", None, {"message": {"role": "assistant", "content": "a"}}),
        act(1, "a"),
        step(2, "model", None, {"message": {"role": "assistant", "content": "b"}}),
        step(3, "finish", None),
    ]
    assert root_step(alone) == 2
    assert root_step([step(0, "route", None), step(1, "finish", None)]) == 1


def test_a_call_is_told_by_its_fault_and_a_thinking_run_by_its_root() -> None:
    steps = [step(0, "route", None), act(1, "a", fault=BROKEN), act(2, "a"), step(3, "finish", None)]
    assert telling_step(steps, called=True) == 1
    assert telling_step(steps, called=False) == 3, "the call worked when it was made again"
    assert telling_step(steps[2:], called=True) == 3
    assert telling_step([], called=True) == 0
