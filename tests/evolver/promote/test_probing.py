"""What a probe asks and what it concludes, with boxes that are functions; the real ones are in tests/daemon."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from agentos.domain import (
    IMPORT,
    Call,
    CheckResult,
    Cost,
    Json,
    KernelFault,
    Kind,
    Limits,
    Mode,
    Outcome,
    Probe,
    ResourceId,
    Result,
    Run,
    RunEnd,
    Share,
    Snapshot,
    Step,
    Task,
    content_sha256,
    kernel_fault,
)
from agentos.errors import Unavailable
from agentos.evolver.dependencies import Dependencies
from agentos.evolver.policy import Policy, ProbePolicy
from agentos.evolver.promote.probing import probe
from agentos.evolver.promote.promotion import concerns, passed, vouch
from agentos.ports import Attempt, Plan
from agentos.testing import FakeExecutor, FakeRegistry, MemoryBlobs, MemoryLedger, SerialReplayer, attempt

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AGENT = ResourceId(Kind.AGENT, "default")
FILES = {
    "agent/default/resource.toml": 'description = "An agent."\n',
    "environment/default/resource.toml": 'description = "A sandbox."\n',
    "harness/default/resource.toml": 'description = "A loop."\n',
    "harness/default/harness.py": "def run(sdk):\n    pass\n",
    "prompt/default/prompt.md": "Work.\n",
    "prompt/default/resource.toml": 'description = "A prompt."\n',
}
EDITED = {"agent/default/resource.toml": 'description = "Another agent."\n'}


@dataclass
class Boxes:
    """Each box answers a probe truly, unless ``spoil`` does something to its attempt."""

    registry: FakeRegistry = field(default_factory=lambda: FakeRegistry(FILES))
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    blobs: MemoryBlobs = field(default_factory=MemoryBlobs)
    spoil: Callable[[Attempt, Snapshot], Attempt] = lambda done, snapshot: done
    canary: Callable[[Task, Snapshot], Attempt] = lambda task, snapshot: attempt(passed=True)
    lost: int = 0
    rules: ProbePolicy = field(default_factory=ProbePolicy)

    def __post_init__(self) -> None:
        self.named = FakeExecutor(self._answer)
        self.live = FakeExecutor(lambda task, snapshot: self.canary(task, snapshot))
        self.base = self.registry.stable()

    def _answer(self, task: Task, snapshot: Snapshot) -> Attempt:
        if self.lost:
            self.lost -= 1
            raise Unavailable("the sandbox is gone")
        if task.call is None:  # a clause of the contract, for a program
            return attempt(passed=True)
        resources: Any = task.call.args["resources"]
        digests = {name: content_sha256(self.registry.files(snapshot, name)) for name in resources}
        step = Step(
            "run", 0, "act", {"tool": task.call.tool, "args": dict(task.call.args)}, {}, None, NOW, 1.0
        )
        done = attempt(passed=True, answer={"boot": task.call.args["boot"], "digests": digests})
        return self.spoil(replace(done, steps=(step,), memory_mb=20.0), snapshot)

    @property
    def parts(self) -> Dependencies:
        return Dependencies(
            snapshots=self.registry,
            candidates=self.registry,
            evolvable=self.registry,
            records=self.ledger,
            journal=self.ledger,
            cursor=self.ledger,
            audit=self.ledger,
            blobs=self.blobs,
            executor=self.live,
            replayer=SerialReplayer(),
            proposers={},
            policy=replace(Policy(), probe=self.rules),
            taxonomy=(),
            consent_key=bytes(32),
            now=lambda: NOW,
            load=lambda files, tools: [],
            executor_with=lambda files, without: self.named,
        )

    def edited(self, files: Mapping[str, str] = EDITED) -> Snapshot:
        name = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:8]
        return self.registry.add_candidate(f"cand-{name}", self.base, files)

    def probe(self, files: Mapping[str, str] = EDITED) -> Probe:
        return probe(self.parts, self.edited(files), self.base)

    def ran(self, name: str, tool: str = "sum", **changes: Any) -> Run:
        """A live run that passed, unless ``changes`` say otherwise."""
        limits = changes.pop("limits", Limits())
        parent = changes.pop("parent", "")
        outcome = changes.pop("outcome", Outcome(Result.PASSED, 1.0, ""))
        task = Task(name, name, name, Call(tool, {}), (), "default", limits, (), (), None, NOW, parent=parent)
        self.ledger.add_task(task, Share.OPEN)
        run = Run(f"run-{name}", name, task.key, Share.OPEN, 1, self.base, "fake", "none", NOW)
        run = replace(run, **changes)
        self.ledger.begin_run(run)
        self.ledger.finish_run(run.id, outcome, RunEnd({}, resources=("agent/default", "harness/default")))
        return run


@pytest.fixture
def boxes() -> Boxes:
    return Boxes()


def ended(result: Result, reason: str = "why") -> Attempt:
    return replace(attempt(passed=False), outcome=Outcome(result, 0.0, reason))


# --- what is probed, and what is remembered -------------------------------------------------------


def test_only_what_drives_runs_asks_for_a_probe(boxes: Boxes) -> None:
    text = boxes.edited({"prompt/default/prompt.md": "Work well.\n"})
    assert not concerns(boxes.registry, text, boxes.base)
    for path in ("agent/default/resource.toml", "environment/default/resource.toml", "harness/default/x.py"):
        assert concerns(boxes.registry, boxes.edited({path: 'description = "X."\n'}), boxes.base)


def test_a_pass_counts_for_every_snapshot_that_is_driven_alike(boxes: Boxes) -> None:
    found = boxes.probe()
    assert found.passed, found.reason
    asked = len(boxes.named.calls)
    assert asked == 2 * boxes.rules.passes
    both = boxes.edited({**EDITED, "prompt/default/prompt.md": "Work well.\n"})
    assert passed(boxes.parts, both) == found


def test_the_newest_probe_says_whether_it_may(boxes: Boxes) -> None:
    assert boxes.probe().passed
    boxes.spoil = lambda done, snapshot: ended(Result.FAILED) if snapshot != boxes.base else done
    assert not boxes.probe().passed
    assert passed(boxes.parts, boxes.edited()) is None


def test_a_failure_is_stored_and_counts_for_nothing_else(boxes: Boxes) -> None:
    boxes.spoil = lambda done, snapshot: ended(Result.FAILED, "no") if snapshot != boxes.base else done
    found = boxes.probe()
    assert not found.passed
    assert found.reason == "pass 1 of 3: agent/default: it did not bring a call to its end (failed: no)"
    assert passed(boxes.parts, found.snapshot) is None
    assert boxes.ledger.notes[-1].event == "probe.failed"
    boxes.spoil = lambda done, snapshot: done
    assert boxes.probe().passed


def test_what_is_vouched_for_is_not_probed(boxes: Boxes) -> None:
    found = vouch(boxes.parts, boxes.edited(), "said so")
    assert passed(boxes.parts, boxes.edited()) == found
    assert boxes.named.calls == []
    assert vouch(boxes.parts, boxes.edited(), "again") == found


def test_the_machinery_that_failed_says_nothing(boxes: Boxes) -> None:
    boxes.lost = 100
    with pytest.raises(Unavailable):
        boxes.probe()
    assert boxes.ledger.find(Probe) == []
    boxes.lost = 2
    assert boxes.probe().passed


def test_a_failure_in_the_last_pass_is_one(boxes: Boxes) -> None:
    def third(done: Attempt, snapshot: Snapshot) -> Attempt:
        return ended(Result.FAILED) if len(boxes.named.calls) == 6 else done

    boxes.spoil = third
    assert boxes.probe().reason.startswith("pass 3 of 3")


# --- answers --------------------------------------------------------------------------------------


def _answering(answer: Json, *, looked: bool = True) -> Callable[[Attempt, Snapshot], Attempt]:
    return lambda done, _: replace(done, answer=answer, steps=done.steps if looked else ())


def test_an_answer_of_an_earlier_start_counts_for_nothing(boxes: Boxes) -> None:
    kept: list[Json] = []

    def old(done: Attempt, snapshot: Snapshot) -> Attempt:
        kept.append(done.answer)
        return replace(done, answer=kept[0])

    boxes.spoil = old
    assert "another start" in boxes.probe().reason


@pytest.mark.parametrize("answer", [None, "yes", [], {"boot": "b"}, {"boot": None, "digests": {}}])
def test_other_answers_count_for_nothing(boxes: Boxes, answer: Json) -> None:
    boxes.spoil = _answering(answer)
    assert "another start" in boxes.probe().reason


def test_a_true_answer_without_a_look_counts_for_nothing(boxes: Boxes) -> None:
    boxes.spoil = lambda done, _: replace(done, steps=())
    assert "without having looked" in boxes.probe().reason


def test_a_base_that_cannot_answer_is_no_measure(boxes: Boxes) -> None:
    boxes.spoil = lambda done, snapshot: ended(Result.FAILED) if snapshot == boxes.base else done
    found = boxes.probe()
    assert found.passed
    assert {one.base_memory_mb for one in found.passes} == {0.0}


# --- what it may use ------------------------------------------------------------------------------


@pytest.mark.parametrize(("memory_mb", "fits"), [(20.0, True), (61.0, True), (63.0, False), (500.0, False)])
def test_memory_is_held_against_the_base(boxes: Boxes, memory_mb: float, fits: bool) -> None:
    boxes.spoil = lambda done, snapshot: (
        done if snapshot == boxes.base else replace(done, memory_mb=memory_mb)
    )
    assert boxes.probe().passed is fits


def test_one_odd_measurement_does_not_decide(boxes: Boxes) -> None:
    def odd(done: Attempt, snapshot: Snapshot) -> Attempt:
        return replace(done, memory_mb=900.0) if len(boxes.named.calls) == 2 else done

    boxes.spoil = odd
    assert boxes.probe().passed


# --- canaries -------------------------------------------------------------------------------------


def test_of_each_kind_of_work_the_newest_quick_pass_is_tried(boxes: Boxes) -> None:
    slow = Outcome(Result.PASSED, 1.0, "", cost=Cost(wall_s=boxes.rules.run_s))
    boxes.ran("old")
    boxes.ran("new")
    boxes.ran("failed", tool="fails", outcome=Outcome(Result.FAILED, 0.0, "x"))
    boxes.ran("slow", tool="slow", outcome=slow)
    boxes.ran("elsewhere", tool="imports", sandbox=IMPORT)
    boxes.ran("handed", tool="hands", parent="task-1")
    boxes.ran("other", tool="other", limits=Limits(wall_s=600.0))
    found = boxes.probe()
    assert set(found.canaries) == {"new", "other"}
    assert len(boxes.live.calls) == 2 * boxes.rules.passes
    assert {plan.mode for plan in boxes.live.plans if isinstance(plan, Plan)} == {Mode.REPLAY}


def test_no_more_canaries_than_the_policy_says(boxes: Boxes) -> None:
    for number in range(9):
        boxes.ran(f"task-{number}", tool=f"tool_{number}")
    assert len(boxes.probe().canaries) == boxes.rules.canaries


def test_work_that_fails_with_the_change_alone_is_held_against_it(boxes: Boxes) -> None:
    boxes.ran("sums")
    fault = kernel_fault(KernelFault.CHECK, "equals: it is 3, not 4")  # as of a live run
    checks = (CheckResult("equals", passed=False, detail="it is 3, not 4"),)
    failed = Outcome(Result.FAILED, 0.0, "1 of 1 checks failed: equals: it is 3, not 4", fault, checks)
    boxes.canary = lambda task, snapshot: (
        attempt(passed=True) if snapshot == boxes.base else replace(attempt(passed=False), outcome=failed)
    )
    found = boxes.probe()
    assert not found.passed
    said = "sums (sums) passes without the change and fails with it: its answer fails equals"
    assert found.reason.endswith(said)  # and not which answer is expected: later proposers read this


def test_hidden_work_that_fails_with_the_change_is_not_named(boxes: Boxes) -> None:
    boxes.ran("secret", share=Share.HOLD_OUT)
    boxes.canary = lambda task, snapshot: attempt(passed=snapshot == boxes.base, reason="it is 3, not 4")
    found = boxes.probe()
    assert not found.passed
    assert found.reason.endswith("a hold-out task passes without the change and fails with it")


def test_work_that_fails_without_it_or_now_and_then_or_off_its_record_is_not(boxes: Boxes) -> None:
    boxes.ran("sums")
    boxes.canary = lambda task, snapshot: attempt(passed=False)
    assert boxes.probe({"agent/default/resource.toml": 'description = "1"\n'}).passed
    turns = iter(range(10**6))
    boxes.canary = lambda task, snapshot: attempt(passed=snapshot == boxes.base or next(turns) % 2 == 1)
    assert boxes.probe({"agent/default/resource.toml": 'description = "2"\n'}).passed
    boxes.canary = lambda task, snapshot: (
        attempt(passed=True) if snapshot == boxes.base else ended(Result.NOT_REPLAYABLE)
    )
    assert boxes.probe({"agent/default/resource.toml": 'description = "3"\n'}).passed


def test_of_a_program_canaries_and_its_own_clauses_can_be_asked(boxes: Boxes) -> None:
    boxes.ran("sums")
    program = {
        "harness/default/resource.toml": 'description = "A program."\ncommand = ["python", "x.py"]\n',
    }
    boxes.canary = lambda task, snapshot: attempt(passed=snapshot == boxes.base, reason="no answer")
    found = boxes.probe(program)
    assert "fails with it" in found.reason
    assert len(boxes.named.calls) == 1, "nobody asks it for its name"
    boxes.canary = lambda task, snapshot: attempt(passed=True)
    assert boxes.probe(program).passed


# --- loading --------------------------------------------------------------------------------------


def test_a_document_that_does_not_parse_does_not_pass(boxes: Boxes) -> None:
    found = boxes.probe({**EDITED, "prompt/default/resource.toml": "description = 3\n"})
    assert found.reason.startswith("prompt/default does not load: ")
    assert boxes.named.calls == []


def test_more_agents_than_are_asked_cost_no_more(boxes: Boxes) -> None:
    many = {f"agent/a{number}/resource.toml": f'description = "{number}"\n' for number in range(30)}
    found = boxes.probe(many)
    assert found.passed
    assert len(found.passes) == 8 * boxes.rules.passes


def test_a_harness_does_not_pass_that_would_meet_memories_which_it_cannot_read(boxes: Boxes) -> None:
    memory = {"memory/notes/memory.md": "- One\n", "memory/notes/resource.toml": 'description = "Notes."\n'}
    raised = {"harness/default/resource.toml": 'description = "A loop."\nstate = 2\n'}
    found = boxes.probe({**memory, **raised})
    assert not found.passed
    assert "harness/default (agent default) reads memories of form 2" in found.reason
