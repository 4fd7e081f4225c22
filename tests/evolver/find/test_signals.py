"""Signals are read from structure, never from quoted text."""

from datetime import UTC, datetime

from agentos.domain import Fault, Step
from agentos.evolver.find.signals import Signal, read_signals

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def act(index: int, tool: str, args: object = None, seen: object = None, fault: Fault | None = None) -> Step:
    observed = {"seen": index} if seen is None else seen
    return Step("run-1", index, "act", {"tool": tool, "args": args}, observed, fault, NOW, 1.0)


def kinds(*steps: Step) -> list[Signal]:
    return [sign.signal for sign in read_signals(steps)]


def test_a_quiet_run_shows_nothing() -> None:
    assert kinds(act(0, "read", 1), act(1, "write", 2)) == []


def test_quoted_trouble_is_no_trouble() -> None:
    assert kinds(act(0, "read", 1, "ERROR: connection timeout, rate limit exceeded")) == []


def test_a_fault_is_a_failure_and_a_limit_is_exhaustion() -> None:
    assert kinds(act(0, "read", fault=Fault("KeyError", "x"))) == [Signal.FAILURE]
    assert kinds(act(0, "read", fault=Fault("timeout", "x"))) == [Signal.EXHAUSTION]


def test_equal_calls_in_a_row_are_a_loop() -> None:
    assert kinds(*(act(i, "read", 1) for i in range(3))) == [Signal.RETRY_LOOP]
    assert kinds(*(act(i, "read", 1) for i in range(2))) == []


def test_reading_several_files_is_no_drift() -> None:
    assert kinds(*(act(i, "read", i) for i in range(6))) == []


def test_failing_with_ever_other_arguments_is_drift() -> None:
    steps = [act(i, "read", i, fault=Fault("OSError", "no")) for i in range(3)]
    assert Signal.DRIFT in kinds(*steps)


def test_a_pattern_again_and_again_is_oscillation() -> None:
    assert kinds(*(act(i, "ab"[i % 2], i) for i in range(6))) == [Signal.OSCILLATION]
    assert kinds(*(act(i, "abc"[i % 3], i) for i in range(9))) == [Signal.OSCILLATION]
    assert kinds(*(act(i, "ab"[i % 2], i) for i in range(5))) == []


def test_differing_calls_with_one_observation_are_stagnation() -> None:
    assert Signal.STAGNATION in kinds(*(act(i, f"t{i}", i, "same") for i in range(3)))


def test_a_command_that_failed_by_its_exit_status_is_a_failure() -> None:
    seen = {"ok": True, "output": {"exit": 2, "stdout": "", "stderr": "boom"}}
    assert kinds(act(0, "shell", 1, seen)) == [Signal.FAILURE]


def test_asking_again_for_what_was_known_is_forgotten() -> None:
    known = [act(0, "read", "a", "A"), act(1, "b"), act(2, "c"), act(3, "read", "a", "A")]
    assert kinds(*known) == [Signal.FORGOTTEN]
    assert kinds(*known[:3], act(3, "read", "a", "changed")) == []
    assert kinds(known[0], act(1, "b"), act(2, "read", "a", "A")) == []


def test_ids_of_imported_answers_do_not_make_them_differ() -> None:
    seen = [{"output": "same", "message": {"tool_call_id": f"c{index}"}} for index in range(3)]
    assert kinds(*(act(index, f"t{index}", index, seen[index]) for index in range(3))) == [Signal.STAGNATION]


def test_a_sign_tells_where_it_began() -> None:
    (sign,) = read_signals([act(0, "a"), *(act(index, "b", 1) for index in range(1, 5))])
    assert (sign.since, sign.step) == (1, 4)
