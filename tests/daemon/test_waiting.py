"""An evolution whose sandbox is away waits, says so, and goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from agentos.daemon import service
from agentos.daemon.breaker import awaited
from agentos.daemon.run.tasks import StopSignal, TaskRunner
from agentos.domain import EvolutionWait, KernelFault, Outcome, Result, box_fault, kernel_fault
from agentos.errors import BudgetUsedUp, KeyRefused, ModelAway, ModelMissing, Unavailable
from agentos.evolver.policy import WaitPolicy
from agentos.evolver.replay.jobs import without_model
from agentos.home import Home
from agentos.settings import load_settings
from agentos.testing import Undurable
from tests.refusals import raises


def test_a_step_is_tried_again_until_the_machinery_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_PATIENCE_S", (0.0, 0.0, 0.0))
    said: list[str] = []
    recovered: list[bool] = []
    answers: list[Any] = [Unavailable("the engine is away"), Unavailable("the engine is away"), 42]

    def work() -> int:
        answer = answers.pop(0)
        if isinstance(answer, Unavailable):
            raise answer
        return int(answer)

    steps: Any = Undurable()
    held = service._Held(
        steps,
        StopSignal(),
        lambda error, left_s: said.append(str(error)),
        recovered=lambda: recovered.append(True),
    )
    assert held.step("replay", work) == 42
    assert recovered == [True]
    assert said == ["the engine is away"] * 2
    assert steps.names == ["replay"], "one durable step, however often it was tried"


@pytest.mark.parametrize("fault", [None, ImportError("no such name")])
def test_what_a_mixture_of_two_releases_made_is_not_recorded(fault: Exception | None) -> None:
    class Stopping(StopSignal):
        def wait(self, seconds: float) -> None:
            raise InterruptedError("held until the daemon ends")

    installed: list[str] = []

    def work() -> None:
        installed.append("another release")
        if fault is not None:
            raise fault

    steps: Any = Undurable()
    made = service._Held(steps, Stopping(), lambda error, left_s: None, replaced=lambda: "".join(installed))
    for _ in range(2):
        with pytest.raises(InterruptedError):
            made.step("replay", work)
    assert len(installed) == 1, "it was done with files of another release"


def test_patience_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_PATIENCE_S", (0.0,))
    steps: Any = Undurable()

    def work() -> None:
        raise Unavailable("gone for good")

    with raises(Unavailable, names=["gone for good"]):
        held(steps, WaitPolicy(machinery_s=0.05, models_s=1e6)).step("replay", work)


def test_a_model_is_waited_for_as_long_as_the_policy_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_PATIENCE_S", (0.0,))
    steps: Any = Undurable()

    def work() -> None:
        raise ModelAway("nobody listens there")

    with raises(ModelAway, names=["nobody listens"]):
        held(steps, WaitPolicy(machinery_s=1e6, models_s=0.05)).step("replay", work)


def test_a_model_that_is_not_set_up_is_not_waited_for() -> None:
    tries: list[int] = []

    def work() -> None:
        tries.append(1)
        raise ModelMissing("no model is configured")

    with pytest.raises(ModelMissing):
        held(Undurable(), WaitPolicy(machinery_s=1e6, models_s=1e6)).step("replay", work)
    assert tries == [1]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (KernelFault.NO_MODEL, ModelMissing),
        (KernelFault.EVOLUTION_BUDGET, ModelMissing),
        (KernelFault.DAY_BUDGET, BudgetUsedUp),
        (KernelFault.BUDGET, None),
    ],
)
def test_only_what_comes_back_by_itself_is_waited_for(kind: KernelFault, expected: type | None) -> None:
    outcome = Outcome(Result.FAILED, 0.0, "", kernel_fault(kind, "said"), ())
    found = without_model(outcome, "the trial says nothing")
    assert type(found) is (expected or type(None))
    tools = box_fault(kind.value, "said", resource="tool/a")
    assert without_model(replace(outcome, fault=tools), "it") is None


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (BudgetUsedUp("of the day"), EvolutionWait.BUDGET),
        (ModelAway("nobody listens"), EvolutionWait.MODEL),
        (Unavailable("the engine is away"), EvolutionWait.MACHINERY),
    ],
)
def test_what_is_waited_for_is_told_by_kind(error: Unavailable, expected: EvolutionWait) -> None:
    assert awaited(error) is expected


def held(steps: Any, patience: WaitPolicy) -> service._Held:
    ignore: Callable[[Unavailable, float], None] = lambda error, left_s: None  # noqa: E731
    return service._Held(steps, StopSignal(), ignore, patience=patience)


@pytest.mark.parametrize("changes", ["settings", "registry"])
def test_a_refused_key_is_tried_again_when_another_was_given(
    home: Home, monkeypatch: pytest.MonkeyPatch, changes: str
) -> None:
    """Each try leaves a run, and to ask again with the same key, or for the same model, changes nothing."""
    monkeypatch.setattr(service, "_PATIENCE_S", (0.0,))
    monkeypatch.setattr(service, "_LOOK_S", 0.0)
    looks: list[int] = []

    def setup() -> object:
        looks.append(1)
        if len(looks) == 51 and changes == "registry":
            parts.registry.commit({"prompt/other/prompt.md": b"x"}, "Another", "edit")
        return "new" if len(looks) > 50 and changes == "settings" else "old"

    tried: list[str] = []

    class Runner(TaskRunner):
        def attempt(self, task_id: str, now: datetime) -> bool:
            tried.append(task_id)
            if len(looks) > 50:
                return True
            raise KeyRefused("no such key")

    with service.service(home, load_settings(home.settings)) as parts:
        tasks = Runner(parts.ledger, parts.registry, Any, parts.stopping)  # type: ignore[arg-type]
        replace(parts, tasks=tasks, model_setup=setup).run_task("task-1")
    assert len(tried) == 3, "one more at once, for a refusal may be a mistake; then only with another key"
