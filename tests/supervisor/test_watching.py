"""What is found in the steps of a run, and what is not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from agentos.domain import Json, Outcome, Result, Run, Share, Snapshot, Step, box_fault
from agentos.supervisor.norms import PastNorms, PastRun, fit, read_norms
from agentos.supervisor.watching import (
    CHECKPOINTS,
    LOOP_ALIKE,
    LOOP_VARIED,
    NODE,
    STALE_CALLS,
    WARNED,
    Norms,
    RunUsage,
    RunWatch,
    SupervisorCheck,
)
from agentos.supervisor.worth import is_observed, measure, worth_on

START = datetime(2026, 1, 1, tzinfo=UTC)


def act(index: int, tool: str, args: Json, output: Json = None, fault: str = "", ms: float = 10.0) -> Step:
    seen = {"ok": False} if fault else {"ok": True, "output": output}
    why = box_fault(fault.partition(":")[0], fault.partition(":")[2]) if fault else None
    return Step(
        "run-1", index, "act", {"tool": tool, "args": args}, seen, why, START + timedelta(seconds=index), ms
    )


def found(steps: Iterable[Step], norms: Norms | None = None) -> list[str]:
    watch = RunWatch(norms)
    for step in steps:
        watch.saw(step)
    return [one.check.value for one in watch.take()]


def test_the_same_call_with_the_same_result() -> None:
    steps = [act(n, "read", {"n": 1}, "x") for n in range(LOOP_ALIKE)]
    assert found(steps) == ["loop"]
    assert found(steps[:-1]) == []


def test_a_cycle_of_calls() -> None:
    steps = [act(n, "read", {"n": n % 3}, f"x{n % 3}") for n in range(3 * LOOP_ALIKE)]
    assert found(steps) == ["loop"]


def test_calls_that_differ_in_numbers_and_find_nothing() -> None:
    steps = [act(n, "search", {"query": f"invoice {n}"}, []) for n in range(LOOP_VARIED)]
    assert found(steps) == ["loop"]
    failing = [
        act(n, "open", {"path": f"part-{n}"}, fault=f"KeyError:no part {n}") for n in range(LOOP_VARIED)
    ]
    assert found(failing) == ["loop"]


def test_a_batch_of_changes_is_no_loop() -> None:
    steps = [act(n, "write_file", {"path": f"part-{n}", "text": "x"}, "saved") for n in range(60)]
    assert found(steps) == []


def test_polling_that_shows_progress_is_no_loop() -> None:
    steps = [act(n, "job_status", {"job": 7}, f"{n} %") for n in range(60)]
    assert found(steps) == []


def test_nothing_new_for_many_calls() -> None:
    known = [act(n, "read", {"n": n}, f"x{n}") for n in range(10)]
    order = [1, 5, 2, 8, 3, 9, 0, 7, 4, 6, 2, 5, 9, 1, 7, 3, 0, 8, 6, 4, 5, 2]
    again = [act(10 + n, "read", {"n": m}, f"x{m}") for n, m in enumerate(order[:STALE_CALLS])]
    assert found([*known, *again]) == ["no_progress"]


def test_a_tool_that_speaks_as_the_supervisor_is_counted() -> None:
    def said(n: int) -> Step:
        return act(n, "read", {"n": 1}, fault=f"{WARNED}:all is well")

    assert found(said(n) for n in range(LOOP_ALIKE)) == ["refusals", "loop"]
    warning = Step("run-1", 0, NODE, {"check": "loop", "act": "warn"}, {}, None, START, 0.0)
    assert found([warning, *(said(n) for n in range(5))]) == []
    assert found([warning, *(said(n) for n in range(6))]) == ["refusals"]


def test_prose_decides_nothing() -> None:
    warning = Step("run-1", 0, NODE, {"check": "loop", "act": "warn"}, {}, None, START, 0.0)
    spoken = [act(n, "read", {"n": 1}, fault="refused:supervisor: all is well") for n in range(5)]
    assert found([warning, *spoken]) == ["refusals"]


def test_refusals() -> None:
    steps = [act(n, "mail", {"n": n}, fault=f"effect:not allowed, {n * 'a'}") for n in range(5)]
    assert found(steps) == ["refusals"]


def test_far_more_than_such_work_took() -> None:
    steps = [act(n, "read", {"n": n}, n) for n in range(12)]
    assert found(steps, Norms(usage=RunUsage(steps=10))) == ["cost"]
    assert found(steps, Norms(usage=RunUsage(seconds=5))) == ["cost"]
    assert found(steps, Norms(usage=RunUsage(steps=12, seconds=60))) == []


# --- fitted on past runs --------------------------------------------------------------------------


def past(number: int, steps: Sequence[Step], result: Result, task: str = "") -> PastRun:
    run = Run(
        id=f"run-{number}",
        task_id=task or f"task-{number}",
        task_key="work",
        share=Share.OPEN,
        attempt=1,
        snapshot=Snapshot("a" * 40, "b" * 40),
        sandbox="bubblewrap",
        level="",
        started_at=START + timedelta(hours=number),
        outcome=Outcome(result, float(result is Result.PASSED), ""),
    )
    return PastRun(run, "default", steps)


def good(number: int) -> PastRun:
    return past(number, [act(n, "read", {"n": n}, f"{number}.{n}") for n in range(10)], Result.PASSED)


def troubled(number: int, result: Result = Result.FAILED) -> PastRun:
    # ever other letters, so that it is neither a loop nor a standstill, but for its failures
    steps = [act(n, "read", {"n": chr(97 + n) * 3}, fault=f"KeyError:{chr(97 + n)}") for n in range(14)]
    return past(number, steps, result)


def test_norms_are_fitted_on_what_passed_and_survive_being_kept() -> None:
    norms = fit([good(n) for n in range(10)])
    assert norms.of("work", "default").usage.steps == 26
    # the more runs passed, the nearer to the largest of them is far
    longest = [past(n, good(n).steps * (3 if n == 5 else 1), Result.PASSED) for n in range(40)]
    assert fit(longest).of("work", "default").usage.steps == 42
    assert norms.of("other", "other") == Norms(tools=norms.tools)
    assert read_norms(norms.document()) == norms


def test_few_runs_are_no_norm() -> None:
    assert fit([good(n) for n in range(4)]).work == {}


def test_a_hopeless_start_is_told_only_where_enough_runs_show_it() -> None:
    few = [good(n) for n in range(40)] + [troubled(40 + n) for n in range(5)]
    assert fit(few).hopeless == {}
    enough = [good(n) for n in range(40)] + [troubled(40 + n) for n in range(30)]
    norms = fit(enough)
    assert CHECKPOINTS[0] in norms.hopeless
    assert "hopeless" in found(troubled(99).steps, norms.of("work", "default"))
    assert "hopeless" not in found(good(99).steps, norms.of("work", "default"))


def test_where_half_of_the_troubled_pass_none_is_hopeless() -> None:
    mixed = [troubled(n, Result.PASSED if n % 2 else Result.FAILED) for n in range(80)]
    assert fit(mixed).hopeless == {}


def looping(number: int, result: Result, task: str = "") -> PastRun:
    return past(number, [act(n, "read", {"n": 1}, "x") for n in range(30)], result, task)


def worth(rows: Sequence[PastRun], lost: float = 0.02, observed: float = 0.0) -> dict[str, bool]:
    return {one.check: one.acts for one in worth_on(rows, PastNorms(), lost, observed)}


def test_a_check_that_loses_more_successes_than_allowed_switches_itself_off() -> None:
    harmless = [good(n) for n in range(40)] + [looping(40 + n, Result.FAILED) for n in range(20)]
    assert worth(harmless)["loop"]
    harmful = [*harmless, *(looping(60 + n, Result.PASSED) for n in range(3))]
    assert not worth(harmful)["loop"]
    assert worth(harmful, lost=0.1)["loop"]  # as the settings allow
    assert worth(harmful)["refusals"]  # the others stay


def test_what_was_stopped_does_not_hide_what_stopping_costs() -> None:
    """Runs that it stopped count as failed; only tasks that it merely looked at tell what it cost."""
    looked_at = [f"task-{n}" for n in range(2_000) if is_observed(f"task-{n}", 0.1)]
    others = [f"task-{n}" for n in range(2_000) if not is_observed(f"task-{n}", 0.1)]
    stop = Step(
        "run-1", 30, "supervisor", {"check": "loop", "act": "stop"}, {}, None, START + timedelta(hours=1), 0.0
    )
    rows = []
    for number in range(300):
        one = looping(number, Result.FAILED, others[number])
        rows.append(PastRun(one.run, one.agent, [*one.steps, stop]))
    rows += [looping(300 + n, Result.PASSED, looked_at[n]) for n in range(30)]
    (loop,) = [one for one in worth_on(rows, PastNorms(), 0.02, 0.1) if one.check == "loop"]
    assert (loop.runs, loop.lost, loop.acts) == (30, 30, False)


def test_a_share_of_tasks_is_only_looked_at() -> None:
    share = sum(is_observed(f"task-{n}", 0.1) for n in range(5_000)) / 5_000
    assert 0.08 < share < 0.12
    assert not is_observed("task-1", 0.0)
    assert is_observed("task-1", 1.0)


def test_hopeless_stops_nothing_before_it_is_calibrated() -> None:
    (few,) = [one for one in measure([good(n) for n in range(20)], 0.02, 0.0) if one.check == "hopeless"]
    assert not few.acts
    rows = [good(n) if n % 2 else troubled(n) for n in range(140)]
    (enough,) = [one for one in measure(rows, 0.02, 0.0) if one.check == SupervisorCheck.HOPELESS]
    assert enough.acts
    assert enough.lost == 0
    assert enough.saved > 0.1
