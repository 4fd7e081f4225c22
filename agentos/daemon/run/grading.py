"""Success is decided here: in a box of its own, by checks that the run's box never saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentos.daemon.job.job_protocol import Exchange
from agentos.domain import Check, CheckResult, Fault, Json, KernelFault, Limits, kernel_fault
from agentos.errors import BoxDied
from agentos.messages import FaultFrame, GradeDone, GradeJob
from agentos.plugins.checks import sent
from agentos.ports import Sandbox
from agentos.sandboxes.plainfiles import write_tar

LIMITS = Limits(steps=1, wall_s=30.0, memory_mb=512, processes=32)


@dataclass(frozen=True, slots=True)
class Grade:
    """One result for each check; ``fault`` when a check itself could not be applied."""

    checks: tuple[CheckResult, ...]
    fault: Fault | None = None

    @property
    def score(self) -> float:
        """The share of checks passed; without checks, an answer is enough."""
        passed = sum(check.passed for check in self.checks)
        return passed / len(self.checks) if self.checks else 1.0


def grade(
    sandbox: Sandbox, checks: Sequence[Check], answer: Json, files: Mapping[str, bytes], workspace_mb: int
) -> Grade:
    """Hold the answer and the files that a run left against the checks.

    Raises Unavailable when the machinery failed. A check that takes too long or too much fails.
    """
    if not checks:
        return Grade(())
    asked = sent(checks)
    job = GradeJob(checks=list(asked.wire), answer=answer, wall_s=LIMITS.wall_s)
    limits = Limits(
        **{name: getattr(LIMITS, name) for name in Limits.__slots__} | {"workspace_mb": workspace_mb}
    )
    with sandbox.open(limits, light=True) as box:
        exchange = Exchange(box, LIMITS.wall_s)
        try:
            exchange.send(job, [write_tar(files)])
            answered, _ = exchange.receive({"done": GradeDone})
        except BoxDied as error:
            if error.cause == "gone":
                raise
            return _failed(
                checks, kernel_fault(KernelFault.GRADER, f"the checks could not be applied: {error}")
            )
    if isinstance(answered, FaultFrame):
        return _failed(
            checks,
            kernel_fault(KernelFault.GRADER, f"the checks could not be applied: {answered.fault.message}"),
        )
    assert isinstance(answered, GradeDone)
    if [found.kind for found in answered.checks] != [check.kind for check in asked.wire]:
        return _failed(
            checks, kernel_fault(KernelFault.GRADER, "the grader answered for other checks than it was given")
        )
    return Grade(asked.results(answered.checks))


def _failed(checks: Sequence[Check], fault: Fault) -> Grade:
    return Grade(tuple(CheckResult(check.kind, False, fault.message) for check in checks), fault)
