"""The harness that ships: what its nodes and hooks do beyond the plain call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PATH = "tool/probe/tool.py"
CALL = {"tool": "probe", "args": {}}
HARNESS = Path(__file__).parents[2] / "registry" / "harness" / "default"
Tool = Callable[..., str]


def with_hooks(text: str) -> dict[str, str]:
    files = {f"harness/default/{path.name}": path.read_text() for path in HARNESS.glob("*.*")}
    files["harness/default/hooks.py"] += text
    return files


@pytest.mark.slow
def test_an_empty_answer_is_none(worker: Any, tool: Tool) -> None:
    source = tool("probe", "return Output()").replace(
        "class Output(BaseModel):\n    n: int", "class Output(BaseModel):\n    pass"
    )
    ran = worker.run({PATH: source}, CALL)
    assert (ran.done.finished, ran.done.fault.type) == ("failed", "empty")
    assert [step.node for step in ran.steps][-2:] == ["verify", "finish"]


def test_a_failed_call_says_which_tool_it_was(worker: Any, tool: Tool) -> None:
    ran = worker.run({PATH: tool("probe", "return [][0]")}, CALL)
    assert ran.done.fault.message == "probe: list index out of range"
    assert (ran.done.fault.where, ran.done.fault.resource) == (f"{PATH}:run", "tool/probe")
    assert ran.act.fault.message == "list index out of range"


def test_hooks_run_in_order_and_may_change_the_turn(worker: Any, tool: Tool) -> None:
    hooks = """
def one(turn): turn.args = {"n": 10}
def two(turn): turn.args["n"] += 1
def round_up(turn): turn.answer = {"n": turn.answer["n"] + 89}
def sign(turn): turn.answer["by"] = turn.tool
before_act += [one, two]
after_observe.append(round_up)
on_finish.append(sign)
"""
    ran = worker.run({PATH: tool("probe", "return Output(n=input.n)"), **with_hooks(hooks)}, CALL)
    assert ran.act.action["args"] == {"n": 11}
    assert ran.done.answer == {"n": 100, "by": "probe"}


@pytest.mark.parametrize("where", ["before_act", "after_observe", "on_finish"])
def test_a_hook_that_raises_is_the_harness_own_fault(worker: Any, tool: Tool, where: str) -> None:
    hooks = f"def bad(turn): raise KeyError('x')\n{where}.append(bad)\n"
    ran = worker.run({PATH: tool("probe", "return Output(n=1)"), **with_hooks(hooks)}, CALL)
    assert (ran.done.finished, ran.done.fault.type) == ("failed", "KeyError")
    assert ran.done.fault.where == "harness/default/hooks.py:bad"
    assert ran.done.fault.resource == "harness/default"


@pytest.mark.parametrize("steps", range(6))
def test_any_step_budget_ends_cleanly(worker: Any, tool: Tool, steps: int) -> None:
    ran = worker.run({PATH: tool("probe", "return Output(n=1)")}, CALL, max_steps=steps)
    assert len(ran.steps) == steps
    assert (ran.done.finished, ran.done.fault.type) == ("limit", "steps")
