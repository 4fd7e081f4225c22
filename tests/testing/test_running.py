"""The fakes for running and evolving do what their docstrings tell an author."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

from agentos.domain import Call, Kind, Limits, ResourceId, Result, Snapshot, Step, Task
from agentos.errors import Unavailable
from agentos.ports import Attempt, Brief, Case, Proposal
from agentos.testing import (
    FakeBench,
    FakeExecutor,
    FakeSandbox,
    ScriptedProposer,
    SerialReplayer,
    Undurable,
    attempt,
)
from agentos.wire import Channel, WireClosed
from tests.refusals import raises

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OLD, NEW = Snapshot("old", "old"), Snapshot("new", "new")
TASK = Task("task-1", "n", "g", None, (), "default", Limits(), (), (), None, NOW)


def test_an_executor_is_a_function_of_task_and_snapshot() -> None:
    step = Step("run-1", 0, "act", None, None, None, NOW, 1.0)

    def script(task: Task, snapshot: Snapshot) -> Attempt:
        made = attempt(passed=snapshot == NEW, answer=6)
        return Attempt(made.outcome, made.answer, made.answer_sha256, (step,), (), "fake", "none")

    executor = FakeExecutor(script)
    seen: list[Step] = []
    assert executor.execute(TASK, OLD, "run-1", seen.append).outcome.result is Result.FAILED
    assert executor.execute(TASK, NEW, "run-2").outcome.score == 1.0
    assert seen == [step]
    assert executor.calls == [("task-1", OLD), ("task-1", NEW)]


def test_a_durable_that_only_calls() -> None:
    durable = Undurable()
    assert durable.step("mine", lambda: 3) == 3
    assert durable.names == ["mine"]


def test_a_replayer_ends_all_jobs_before_it_raises() -> None:
    done: list[int] = []

    def work(job: int) -> int:
        done.append(job)
        if job == 1:
            raise Unavailable("gone")
        return job * 2

    with raises(Unavailable, names=["gone"]):
        SerialReplayer().map(work, [0, 1, 2])
    assert done == [0, 1, 2]
    assert SerialReplayer().map(work, [3, 4]) == [6, 8]


def test_a_proposer_with_a_script() -> None:
    proposals = [Proposal("c", str(n), "o", {}, "w", (), ()) for n in range(3)]
    brief = Brief("evolution-1", OLD, ResourceId(Kind.TOOL, "a"), "p", "", (), (), 1.0, max_candidates=2)
    proposer = ScriptedProposer(proposals)
    assert list(proposer.propose(brief)) == proposals[:2]
    assert proposer.briefs == [brief]


def test_a_bench_is_a_function_of_source_and_case() -> None:
    cases = [Case(f"task-{n}", Call("t", {"n": n}), {}, ()) for n in range(3)]
    bench = FakeBench(lambda source, case: (source == "good", case.call.args["n"]))
    ready = bench.bench(OLD, "tool.py", cases, 1.0)
    assert ready.try_source("bad").passed == (False, False, False)
    tried = ready.try_source("good", cases=[2, 0])
    assert (tried.passed, tried.scores, tried.outputs) == ((True, True), (1.0, 1.0), (2, 0))
    assert bench.tried == ["bad", "good"]
    ready.close()


def test_a_sandbox_is_a_function_on_a_channel() -> None:
    ended = threading.Event()

    def worker(channel: Channel) -> None:
        try:
            while True:
                channel.send({"echo": channel.receive().head})
        except WireClosed:
            ended.set()

    sandbox = FakeSandbox(worker)
    with sandbox.open(Limits(steps=1)) as box:
        box.channel.send({"job": "run"})
        assert box.channel.receive().head == {"echo": {"job": "run"}}
    assert ended.is_set()
    assert box.close().oom is False
    assert sandbox.opened == [Limits(steps=1)]
    sandbox.close()
