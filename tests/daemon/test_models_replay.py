"""Replays of runs that asked models: nothing is asked again, the trajectory is the same, verdicts stand offline."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agentos.daemon.service import service
from agentos.domain import (
    AT_WORK,
    Arm,
    Check,
    Evolution,
    EvolutionState,
    Json,
    Mode,
    Result,
    Share,
    Task,
    TaskState,
    Trial,
    TrialSet,
    canonical,
)
from agentos.evolver.history.recordings import recording_of, told, whole
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.ports import Plan
from agentos.registry.store import Registry
from agentos.settings import load_settings
from agentos.testing import call, say
from agentos.testing.modelserver.replies import ServerReply
from tests.daemon.conftest import QUICK_POLICY
from tests.daemon.test_evolutions import FAULTY, PAIRS, PATH, RIGHT
from tests.daemon.thinking_world import (
    KEY,
    KEY_ENV,
    agent,
    free_task,
    results,
    scripted,
    turn_of,
    typed,
    world,
)

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

# Does what the task says, and has a model put the result into words.
HARNESS = b"""
import json
def run(sdk):
    result = sdk.call_tool(sdk.task.call.tool, dict(sdk.task.call.args))
    if not result.ok:
        sdk.fail(result.fault)
        return
    said = []
    for word in ("first", "second"):
        messages = [{"role": "user", "content": f"[phrase {word} {result.output['grade']} {said}]"}]
        said.append(sdk.model({"messages": messages})["choices"][0]["message"]["content"])
    sdk.finish({"grade": result.output["grade"], "said": said})
"""


def phrase(*words: str) -> Callable[[Json], ServerReply]:
    return lambda request: say(f"in words: {' '.join(words)}")


def steady(*_: str) -> Callable[[Json], ServerReply]:
    """Parallel calls whose results are the same whenever they are made, but for the outside one."""

    def reply(request: Json) -> ServerReply:
        turn = turn_of(request)
        if turn < 3:
            text = {"text": f"steady-{turn}"}
            return call("note", text, ("pure", text), ("post", text), ("pure", text))
        return say(json.dumps(results(request)))

    return reply


def test_an_unchanged_snapshot_gives_the_same_trajectory_and_asks_nobody(
    home: Home, ledger: Ledger, daemon: Any, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)
    with world(home, scripted({"steady": steady})) as (server, seen):
        daemon.start()
        task = free_task("[steady]")
        ledger.add_task(task, Share.OPEN)
        until(lambda: ledger.task_view(task.id).state is TaskState.DONE, "it is done", 60)
        daemon.signal(signal.SIGTERM)
        assert daemon.ended() == 0
        (run,) = ledger.runs(task.id)
        assert run.outcome is not None
        assert run.outcome.result is Result.PASSED, run.outcome
        paid, posts = server.paid, seen.total()
        assert (paid, posts) == (4, 3)
    steps = whole(ledger.blobs, ledger.steps(run.id))
    with service(home, load_settings(home.settings)) as served:  # and the server is down
        for mode in (Mode.REPLAY, Mode.REPLAY_THEN_LIVE):
            plan = Plan(
                mode=mode, recording=recording_of(run.snapshot, [(run.id, steps)]), evolution_id="evo-1"
            )
            again = served.parts.executor.execute(task, run.snapshot, f"trial-{mode}", plan=plan)
            assert again.outcome.result is Result.PASSED, again.outcome
            assert canonical(told(again.steps)) == canonical(told(steps))
            assert again.drift == ()
            assert (again.outcome.cost.live_calls, again.outcome.cost.calls) == (0, 4)
            assert again.answer == run.answer
    assert seen.total() == posts


SERVED = QUICK_POLICY.replace("[replay]\n", '[replay]\nmodels = "replay-then-live"\n')
FEW_PAIRS = QUICK_POLICY.replace("[judge]\n", "[judge]\nmargin = 0.4\n")


def set_exam(home: Home, ledger: Ledger, make_task: Callable[..., Task], policy: str) -> list[Task]:
    """Tasks that a faulty tool makes fail, for an agent that asks a model about each result."""
    files = {
        PATH: FAULTY.encode(),
        "skill/exam-kit/SKILL.md": b"---\nname: exam-kit\ndescription: Grades.\n---\n",
        "harness/phrasing/resource.toml": b'description = "Phrases results"\n',
        "harness/phrasing/harness.py": HARNESS,
        **agent("phrasing", harness="phrasing"),
    }
    Registry(home.registry).commit(files, "An agent that phrases what a faulty tool says", "edit")
    (home.root / "policy.toml").write_text(policy)
    tasks = []
    for points, needed in PAIRS:
        check = Check("equals", {"value": "pass" if points >= needed else "fail", "path": "grade"})
        task = make_task("exam-kit/grade", points=points, needed=needed)
        tasks.append(replace(task, agent="phrasing", checks=(check,)))
        ledger.add_task(tasks[-1], Share.OPEN)
    return tasks


def promoted(home: Home, daemon: Any, until: Any, seconds: int) -> Evolution:
    """The one evolution, once it has ended and so has the daemon."""
    reader = Reader(home.ledger)

    def over() -> bool:
        found = list(reader.find(Evolution))
        return bool(found) and not any(one.state in AT_WORK for one in found)

    until(over, "the evolution has ended", seconds)
    daemon.signal(signal.SIGTERM)
    assert daemon.ended() == 0
    (evolution,) = reader.find(Evolution)
    assert evolution.state is EvolutionState.PROBATION, evolution.reason
    return evolution


def test_an_evolution_asks_only_what_its_edit_changed_and_stands_offline(
    home: Home,
    ledger: Ledger,
    daemon: Any,
    until: Any,
    make_task: Callable[..., Task],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)
    with world(home, scripted({"phrase": phrase})) as (server, _):
        set_exam(home, ledger, make_task, SERVED)
        daemon.start()
        evolution = promoted(home, daemon, until, 120)
        paid = server.paid
    reader = Reader(home.ledger)
    registry = Registry(home.registry)
    assert registry.files(registry.stable(), PATH)[PATH].decode() == RIGHT
    trials = reader.find(Trial, evolution_id=evolution.id)
    base = [trial for trial in trials if trial.arm is Arm.BASE]
    other = [trial for trial in trials if trial.arm is not Arm.BASE]
    assert base
    assert sum(trial.outcome.cost.live_calls for trial in base) == 0
    assert all(trial.outcome.cost.calls == 2 for trial in base)
    live = sum(trial.outcome.cost.live_calls for trial in other)
    assert 0 < live < sum(trial.outcome.cost.calls for trial in other)
    assert paid == 2 * len(PAIRS) + live  # the server is down from here on
    assert f"{len(trials)} of {len(trials)} trials run again: the same" in typed(
        home, "evolution", "verify", evolution.id, "--trials"
    )


def test_what_asks_models_is_tried_afresh_in_pairs_and_the_verdict_stands_offline(
    home: Home,
    ledger: Ledger,
    daemon: Any,
    until: Any,
    make_task: Callable[..., Task],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)
    with world(home, scripted({"phrase": phrase})) as (server, _):
        set_exam(home, ledger, make_task, FEW_PAIRS)
        daemon.start()
        evolution = promoted(home, daemon, until, 180)
        paid = server.paid
    reader = Reader(home.ledger)
    trials = reader.find(Trial, evolution_id=evolution.id)
    assert all(trial.outcome.cost.live_calls == trial.outcome.cost.calls == 2 for trial in trials)
    assert paid == 2 * len(PAIRS) + 2 * len(trials)
    own = [trial for trial in trials if trial.arm is not Arm.BASE]
    # Candidates race on the evidence, and each that gets pairs is counted, in the order of getting them.
    numbers = {trial.candidate_id: trial.number for trial in own if trial.set is TrialSet.EVIDENCE}
    assert sorted(numbers.values()) == list(range(1, len(numbers) + 1))
    further = {trial.candidate_id: trial.number for trial in own if trial.set is not TrialSet.EVIDENCE}
    assert sorted(further.values()) == list(range(1, len(further) + 1))
    assert str(evolution.candidate_id) in further, "who is promoted had pairs of every set"
    assert "the same" in typed(home, "evolution", "verify", evolution.id)
    assert f"{len(trials)} of {len(trials)} trials run again: the same" in typed(
        home, "evolution", "verify", evolution.id, "--trials"
    )
    assert "before and after" in typed(home, "evolution", "show", evolution.id)
