"""The screen of an evolution: what stands on it, at 80 columns and in a pipe."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from agentos.cli.evolutions.screen import change_text, draw, draw_waiting
from agentos.daemon.views.evolution_view import OpenQuestions, Scene, proof_of
from agentos.daemon.views.json_views import evolution_whole
from agentos.domain import (
    Arm,
    Behaviour,
    Candidate,
    CheckResult,
    Decision,
    Diagnosis,
    Edit,
    EditedName,
    Evidence,
    Evolution,
    EvolutionState,
    Fingerprint,
    Layer,
    Manifest,
    Outcome,
    Pass,
    Probe,
    Reexamination,
    RefusalKind,
    Result,
    Snapshot,
    SupportKind,
    Trial,
    TrialSet,
    Verdict,
)
from agentos.evolver.policy import Probation
from agentos.evolver.verdict.behaviour_doubts import Doubt
from agentos.ledger.reading import EvolutionRecords
from agentos.plaintext import json_text

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
BASE, TRIED = Snapshot("b" * 40, "c" * 40), Snapshot("d" * 40, "e" * 40)
PATH = "skill/stock/tools/count.py"
LONG = "How many articles of the very long list of the store at the park are left on the third of May?"


def trials(task: str, kind: TrialSet, before: Result, after: Result) -> list[Trial]:
    return [
        Trial(
            id=f"{task}-{arm.value}",
            evolution_id="evo-1",
            candidate_id="" if arm is Arm.BASE else "cand-1",
            task_id=task,
            set=kind,
            arm=arm,
            repeat=0,
            snapshot=BASE if arm is Arm.BASE else TRIED,
            outcome=Outcome(result, 1.0, ""),
            answer_sha256="",
            sandbox="bubblewrap",
            level="namespace",
        )
        for arm, result in ((Arm.BASE, before), (Arm.CANDIDATE, after))
    ]


@pytest.fixture
def scene() -> Scene:
    manifest = Manifest(
        "ev-1", "a wrong sign", "-", (PATH,), ("task-a1",), ("task-b2", "task-c3"), Layer.SKILL, "-"
    )
    edit = Edit({PATH: "total = 1\nleft = a - b\n"}, "line 2: `+` → `-`", "arithmetic")
    evolution = Evolution(
        id="evo-1",
        evidence_id="ev-1",
        fingerprint_id="f",
        state=EvolutionState.REJECTED,
        base=BASE,
        reason="the only candidate broke a guard",
        diagnosis=Diagnosis(Layer.SKILL, "skill/stock", PATH, "every failing run executed it"),
    )
    story = EvolutionRecords(
        evolution=evolution,
        evidence=Evidence(
            "ev-1",
            Fingerprint("f", "skill/stock", "wrong_answer", "-"),
            ("run-1",),
            ("task-a1",),
            NOW,
            "9" * 64,
        ),
        candidates=(Candidate("cand-1", "evo-1", "repair", 1, manifest, edit, BASE, TRIED),),
        trials=(
            *trials("task-a1", TrialSet.EVIDENCE, Result.FAILED, Result.PASSED),
            *trials("task-b2", TrialSet.GUARD, Result.PASSED, Result.FAILED),
            *trials("task-h1", TrialSet.HOLD_OUT, Result.FAILED, Result.PASSED),
        ),
        verdicts=(
            Verdict(
                "v",
                "evo-1",
                "cand-1",
                Decision.REJECT,
                ("guard task task-b2 passed on the base and fails with it",),
                ("task-a1",),
                ("task-b2",),
                (),
                "e" * 40,
                "c" * 40,
                "",
                "",
                "",
            ),
        ),
        consents=(),
        attestation=None,
    )
    names = {"task-a1": LONG, "task-b2": "What is left?", "task-h1": "the hidden one"}
    before = {PATH: "total = 1\nleft = a + b\n"}
    return Scene(story, names, {"run-1": "expected 3, found 5"}, before, [], Probation())


def screen(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: str = "80"
) -> list[str]:
    monkeypatch.setenv("COLUMNS", columns)
    draw(scene)
    return capsys.readouterr().out.splitlines()


def test_all_that_belongs_to_an_evolution_stands_on_one_screen(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = screen(scene, monkeypatch, capsys)
    text = "\n".join(lines)
    labels = [line.split()[0] for line in lines if line[:1].isupper()]
    assert labels == ["Evidence", "Cause", "Layer", "Edit", "Predicted", "Trials", "Verdict", "Next"]
    assert "-left = a + b" in text
    assert "+left = a - b" in text
    assert "1 fix (1 came true), 2 tasks at risk (1 broke), marked * below" in text
    assert "passes → fails   guard*    What is left?" in text
    assert "guard task “What is left?” passed on the base" in text
    assert f"agentos registry edit {PATH}" in text
    assert len(lines) <= 40


@pytest.fixture
def waiting(scene: Scene) -> Scene:
    """An edit that waits for a person, who is asked two things."""
    verdict = replace(
        scene.story.verdicts[0],
        decision=Decision.PROMOTE,
        reasons=("1 of 1 pass", "a person is asked: which is right?"),
        kinds=("fixed", "ambiguous"),
    )
    evolution = replace(scene.story.evolution, state=EvolutionState.AWAITING_CONSENT, reason="LONG REASON")
    doubts = [
        Doubt(RefusalKind.AMBIGUOUS, "-", "Which?", "a=2", (("With this edit", "4"), ("With cand-2", "5"))),
        Doubt(RefusalKind.LOOSENED, "-", "What did that keep out?"),
    ]
    asked = OpenQuestions("1 failing task, by an edit", doubts, "It can wait.")
    return replace(scene, story=replace(scene.story, evolution=evolution, verdicts=(verdict,)), asked=asked)


def test_of_an_edit_that_waits_the_diff_and_the_questions_stand_first_and_once(
    waiting: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    draw(waiting, proof=False)
    lines = capsys.readouterr().out.splitlines()
    labels = [line.split()[0] for line in lines if line[:1].isupper()]
    assert labels == ["Mends", "Questions", "Waits", "Proof", "Next"]
    order = [
        *map(
            "\n".join(lines).index, ("+left = a - b", "1. Which?", "a=2", "4", "5", "2. What did", "approve")
        )
    ]
    assert order == sorted(order)
    assert "LONG REASON" not in "\n".join(lines)
    draw(waiting)
    text = capsys.readouterr().out
    assert text.startswith("\n".join(lines[:-1]))
    assert [text.count(part) for part in ("+left = a - b", "Which?", "which is right?", "Trials ")] == [
        1,
        1,
        0,
        1,
    ]


def test_before_it_asks_approve_shows_only_what_is_decided_on(
    waiting: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    draw_waiting(waiting)
    labels = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line[:1].isupper()]
    assert labels == ["Mends", "Questions"]


def test_no_line_is_wider_than_the_terminal_or_ends_in_spaces(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = screen(scene, monkeypatch, capsys)
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if line != line.rstrip()]
    assert any(LONG in line for line in screen(scene, monkeypatch, capsys, "160"))


def test_the_probe_stands_beside_the_trials(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    passes = tuple(Pass(f"boot-{number}", "default", 0.05, 16.0, 0.04, 15.0) for number in range(3))
    found = Probe("probe-1", TRIED, "f" * 64, True, "", NOW, "evo-1", passes, ("task-a1",), 2.6)
    shown = replace(scene, story=replace(scene.story, probes=(found,)))
    text = "\n".join(screen(shown, monkeypatch, capsys, "120"))
    assert "passed in 2.6 s: 3 boxes answered for it, 1 kind of past work done again" in text
    assert "starts in 0.05 s (0.04 s before), takes 16 MB (15 MB before)" in text
    failed = replace(found, passed=False, reason="pass 1 of 3: it hangs")
    shown = replace(scene, story=replace(scene.story, probes=(found, failed)))
    assert "failed: pass 1 of 3: it hangs" in "\n".join(screen(shown, monkeypatch, capsys, "120"))


def test_the_tasks_of_the_hold_out_are_named_nowhere(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "\n".join(screen(scene, monkeypatch, capsys))
    assert "0 → 1 pass       hold-out  1 hidden task" in text
    assert "hidden one" not in text
    assert "task-h1" not in text


def test_nor_in_what_json_tells(scene: Scene) -> None:
    (verdict,) = scene.story.verdicts
    again = Reexamination(("task-h1",), Behaviour(1, 1, 1, 1, 1, 0))
    (candidate, *others) = scene.story.candidates
    story = replace(
        scene.story,
        verdicts=(replace(verdict, broken=("task-h1",)),),
        candidates=(replace(candidate, reexamination=again), *others),
    )
    told = evolution_whole(story)
    assert told["candidates"][0]["reexamination"]["task_ids"] == ("hidden-1",)
    assert "task-h1" not in json_text(told)
    hidden = [trial for trial in told["trials"] if trial["set"] == "hold-out"]
    assert {trial["task_id"] for trial in hidden} == {"hidden-1"} == {*told["verdicts"][0]["broken"]}
    assert {trial["outcome"]["result"] for trial in hidden} == {"passed", "failed"}
    assert not any(
        trial["run_id"] or trial["recording"] or trial["outcome"]["reason"] or trial["outcome"]["checks"]
        for trial in hidden
    )


def test_a_promotion_shows_how_far_its_probation_is(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evolution = replace(
        scene.story.evolution, state=EvolutionState.PROBATION, promoted=TRIED, ended_at=NOW, reason=""
    )
    watched = replace(
        scene, story=replace(scene.story, evolution=evolution), probation=Probation(runs=5, days=2)
    )
    text = "\n".join(screen(watched, monkeypatch, capsys, "120"))
    assert "0 live tasks of new, checked work since" in text
    assert "watched until 5 such tasks have used it, or 2026-05-06" in text
    assert ": 0 of 5" in text
    assert "agentos evolution revert evo-1" in text


@pytest.mark.parametrize("state", list(EvolutionState))
def test_every_state_says_what_to_do_next(
    state: EvolutionState, scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evolution = replace(scene.story.evolution, state=state)
    lines = screen(replace(scene, story=replace(scene.story, evolution=evolution)), monkeypatch, capsys)
    assert any(line.startswith("Next ") for line in lines)


def test_drift_is_told_once_and_a_task_without_replay_as_absent(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    drifted = tuple(
        replace(trial, drift=("clock (read) gave another result",)) for trial in scene.story.trials
    )
    lost = trials("task-c3", TrialSet.GUARD, Result.PASSED, Result.NOT_REPLAYABLE)
    story = replace(scene.story, trials=(*drifted, *lost))
    names = {**scene.names, "task-c3": "What was left?"}
    told = "\n".join(screen(replace(scene, story=story, names=names), monkeypatch, capsys))
    assert told.count("drift: clock (read) gave another result") == 1
    assert "passes → absent" in told


def test_an_edit_that_waits_is_one_short_line_of_what_moves(scene: Scene) -> None:
    doubts = "; ".join(f"doubt {number} of this edit" for number in range(9))
    waits = replace(scene.story.evolution, state=EvolutionState.AWAITING_CONSENT, reason=doubts)
    line = change_text(waits).plain
    assert "doubt" not in line
    assert line.count(waits.id) == 2  # what to type
    assert doubts in change_text(replace(waits, state=EvolutionState.REJECTED)).plain


def test_the_proof_in_a_line_tells_nothing_that_no_trial_could_show(scene: Scene) -> None:
    supports = [SupportKind.FIXED, SupportKind.ENDED, SupportKind.GUARDS_KEPT, SupportKind.HOLD_OUT_KEPT]
    (old,) = scene.story.verdicts
    verdict = replace(old, reasons=tuple(map(str, supports)), kinds=tuple(supports), fixed=())
    evidence = [trial for trial in scene.story.trials if trial.set is TrialSet.EVIDENCE]
    (candidate,) = scene.story.candidates
    others = [replace(trial, candidate_id=trial.candidate_id and "cand-2") for trial in scene.story.trials]
    for tried, fixed, told in (
        (evidence, (), [SupportKind.ENDED]),
        ([*evidence, *others], (), [SupportKind.ENDED]),  # what another candidate was tried on
        (evidence, old.fixed, supports[:2]),
        (scene.story.trials, old.fixed, supports),
    ):
        story = replace(scene.story, trials=tried, verdicts=(replace(verdict, fixed=fixed),))
        assert proof_of(story, candidate).split("; ") == told


def test_it_says_what_of_the_edit_ran_in_the_guards_and_what_did_not(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = (f"{PATH}:1:left", f"{PATH}:9:border")
    story = scene.story
    said = [
        replace(
            trial,
            outcome=replace(trial.outcome, checks=(CheckResult("equals", True),)),
            reached=labels[:1],
        )
        for trial in trials("task-g9", TrialSet.GUARD, Result.PASSED, Result.PASSED)
    ]
    candidate = replace(story.candidates[0], edited=tuple(EditedName(label, (label,)) for label in labels))
    told = Scene(
        replace(story, candidates=(candidate, *story.candidates[1:]), trials=[*story.trials, *said]),
        scene.names,
        scene.failures,
        scene.before,
        scene.live,
        scene.probation,
    )
    draw(told)
    lines = capsys.readouterr().out.splitlines()
    (at,) = (number for number, line in enumerate(lines) if line.startswith("Ran "))
    assert "1 of " in lines[at]
    assert [line.split() for line in lines[at + 1 : at + 3]] == [["ran", labels[0]], ["never", labels[1]]]


def test_it_says_with_how_many_tasks_it_was_compared_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = Behaviour(1, 1, 1, 1, 1, 0)
    (candidate, *others) = scene.story.candidates
    candidate = replace(candidate, behaviour=seen, reexamination=Reexamination(("task-h1", "task-f2"), seen))
    story = replace(scene.story, candidates=(candidate, *others))
    (line,) = (
        line
        for line in screen(replace(scene, story=story), monkeypatch, capsys, "160")
        if "compared again" in line
    )
    assert "2 fresh tasks" in line
