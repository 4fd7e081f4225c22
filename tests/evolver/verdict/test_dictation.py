"""A text with which different tasks get one answer is asked about, where only the answers' form is checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agentos.domain import (
    Arm,
    Candidate,
    CheckResult,
    Decision,
    Edit,
    Layer,
    Manifest,
    Outcome,
    RefusalKind,
    Result,
    Snapshot,
    Trial,
    TrialSet,
)
from agentos.evolver.policy import DICTATES, Judge, Policy
from agentos.evolver.verdict.doubts import doubts
from agentos.evolver.verdict.judge import judge

BASE, TREE = Snapshot("base", "tree0"), Snapshot("cand", "tree1")
PATH = "prompt/desk/prompt.md"
MANIFEST = Manifest("evd-1", "cause", "edit", (PATH,), (), (), Layer.PROMPT, "why")
EDIT = Edit({PATH: 'When mood, answer "fine".\n'}, "edit", "model")
CANDIDATE = Candidate("cand-1-1", "evo-1", "model", 1, MANIFEST, EDIT, BASE, TREE, model="one")
POLICY = Policy(judge=Judge(min_tasks=1))
SETS = {"e": TrialSet.EVIDENCE, "g": TrialSet.GUARD, "h": TrialSet.HOLD_OUT}


def both(task: str, base: str, answer: str, *, kind: str = "regex", **over: Any) -> list[Trial]:
    """Two trials a side; ``base`` is the answer before, "" where it fails."""
    found = []
    for arm, snapshot, said in ((Arm.BASE, BASE, base), (Arm.CANDIDATE, TREE, answer)):
        checks = (CheckResult(kind, bool(said)),)
        outcome = Outcome(Result.PASSED if said else Result.FAILED, float(bool(said)), "", checks=checks)
        owner = CANDIDATE.id if arm is Arm.CANDIDATE else ""
        found += [
            Trial(
                f"{task}-{arm}-{n}", "evo-1", owner, task, SETS[task[0]], arm, n, snapshot, outcome, said, "fake", "none",
                **over,
            )
            for n in range(2)
        ]  # fmt: skip
    return found


def kinds(trials: list[Trial], policy: Policy = POLICY, **over: Any) -> set[RefusalKind]:
    return {doubt.kind for doubt in doubts(replace(CANDIDATE, **over), trials, policy)}


GUARDS = [*both("g1", "calm", "calm"), *both("g2", "glad", "glad"), *both("h1", "sad", "sad")]
DICTATED = [*both("e1", "", "fine"), *both("e2", "", "fine"), *GUARDS]


def test_one_answer_for_different_failing_tasks_is_asked_about() -> None:
    assert kinds(DICTATED) == {RefusalKind.DICTATED}
    assert RefusalKind.DICTATED.value in judge(CANDIDATE, DICTATED, POLICY).kinds
    held_back = [*both("e1", "", "fine"), *both("h2", "", "fine", alike=True), *GUARDS]
    assert kinds(held_back) == {RefusalKind.DICTATED}


def test_verdicts_of_before_stay_as_they_were() -> None:
    assert not kinds(DICTATED, replace(POLICY, edition=DICTATES - 1))
    before = judge(CANDIDATE, DICTATED, replace(POLICY, edition=DICTATES - 1))
    assert before.decision is Decision.PROMOTE
    assert RefusalKind.DICTATED.value not in before.kinds


@pytest.mark.parametrize("path", ["memory/default/memory.md", "skill/moods/SKILL.md", PATH])
def test_it_is_asked_of_every_text(path: str) -> None:
    assert kinds(DICTATED, edit=Edit({path: "x\n"}, "edit", "model")) == {RefusalKind.DICTATED}


@pytest.mark.parametrize("kind", ["equals", "file", "python", "command"])
def test_a_check_that_knows_the_answer_says_that_it_is_right(kind: str) -> None:
    trials = [*both("e1", "", "done", kind=kind), *both("e2", "", "done", kind=kind), *GUARDS]
    assert not kinds(trials)


def test_different_answers_are_none() -> None:
    assert not kinds([*both("e1", "", "fine"), *both("e2", "", "tired"), *GUARDS])
    assert not kinds([*both("e1", "", "fine"), *GUARDS]), "of one task nobody can tell"


def test_the_same_work_twice_is_one_task() -> None:
    assert not kinds([*both("e1", "", "fine", work="w"), *both("e2", "", "fine", work="w"), *GUARDS])


def test_guards_whose_answers_become_one_are_asked_about() -> None:
    moved = [*both("g1", "calm", "fine"), *both("g2", "glad", "fine"), *both("h1", "sad", "fine")]
    mended = [*both("e1", "", "oak"), *both("e2", "", "elm")]
    assert kinds([*mended, *moved]) == {RefusalKind.DICTATED}
    assert not kinds([*mended, *GUARDS])


def test_an_edit_of_code_is_asked_other_things() -> None:
    tool = Edit({"tool/moods/tool.py": "x = 1\n"}, "edit", "model")
    assert RefusalKind.DICTATED not in kinds(DICTATED, edit=tool)
