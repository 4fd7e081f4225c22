"""What the supervisor knows of calls that are under way, without a box."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any

from agentos.daemon.requests.enforcement import Enforcer, Supervision, SupervisorPlan, refusal
from agentos.daemon.requests.run_requests import CallCheck
from agentos.domain import Fault, Json, KernelFault, Step, box_fault
from agentos.supervisor.watching import Norms, SupervisorCheck


def step(node: str, action: Json, seen: Json, ms: float, fault: Fault | None = None) -> Step:
    return Step("run-1", 0, node, action, seen, fault, datetime.now(UTC), ms)


def test_a_refused_call_is_not_the_answer_of_another_that_is_silent() -> None:
    noted = threading.Event()

    def record(node: str, action: Any, seen: Json, ms: float) -> Step:
        if action["check"] == SupervisorCheck.SILENT_TOOL:
            noted.set()
        return step(node, action, seen, ms)

    plan = SupervisorPlan(Norms(tools={"t": 0.05}), {SupervisorCheck.SILENT_TOOL: "note"})
    supervision = Supervision(
        plan, record, Enforcer(KernelFault.SUPERVISOR, lambda: None), lambda error: None
    )
    supervision.call("t", CallCheck({"n": 1}))
    supervision.call("t", CallCheck({"n": 2}, refusal("no")))
    supervision.saw(
        step("act", {"tool": "t", "args": {"n": 2}}, None, 0.0, box_fault("refused", "no", "", ""))
    )
    assert noted.wait(60)
    supervision.close()
