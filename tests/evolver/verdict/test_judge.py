"""The judge is a pure function: every flip counts, and nothing else promotes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentos.domain import (
    Arm,
    Candidate,
    Cost,
    Decision,
    Edit,
    Layer,
    Manifest,
    Outcome,
    Result,
    Snapshot,
    Trial,
    TrialSet,
    Verdict,
    digest,
)
from agentos.evolver.policy import Policy, policy_from_json
from agentos.evolver.verdict.judge import flips, judge, recompute
from agentos.ledger.codec import from_json

BASE, TREE = Snapshot("base", "tree0"), Snapshot("cand", "tree1")
MANIFEST = Manifest("evd-1", "cause", "edit", ("skill/x/tools/t.py",), ("e1",), (), Layer.SKILL, "why")
CANDIDATE = Candidate("cand-1-1", "evo-1", "repair", 1, MANIFEST, Edit({}, "edit", "op"), BASE, TREE)
POLICY = Policy()
SETS = {"e": TrialSet.EVIDENCE, "g": TrialSet.GUARD, "h": TrialSet.HOLD_OUT}


def trials(task: str, before: str, after: str, cpu: tuple[float, float] = (0.1, 0.1)) -> list[Trial]:
    """``before`` and ``after`` hold one letter a repeat: p passes, f fails."""
    made = []
    for arm, letters, snapshot, used in (
        (Arm.BASE, before, BASE, cpu[0]),
        (Arm.CANDIDATE, after, TREE, cpu[1]),
    ):
        for repeat, letter in enumerate(letters):
            result = Result.PASSED if letter == "p" else Result.FAILED
            outcome = Outcome(result, float(letter == "p"), "", cost=Cost(cpu_s=used))
            owner = CANDIDATE.id if arm is Arm.CANDIDATE else ""
            made.append(
                Trial(
                    f"{task}-{arm}-{repeat}",
                    "evo-1",
                    owner,
                    task,
                    SETS[task[0]],
                    arm,
                    repeat,
                    snapshot,
                    outcome,
                    "",
                    "fake",
                    "none",
                )
            )
    return made


def decide(*groups: list[Trial]) -> tuple[Decision, str]:
    verdict = judge(CANDIDATE, [trial for group in groups for trial in group], POLICY)
    return verdict.decision, "; ".join(verdict.reasons)


GOOD = [
    trials("e1", "ff", "pp"),
    trials("e2", "ff", "pp"),
    trials("g1", "pp", "pp"),
    trials("h1", "pp", "pp"),
]


def test_a_repair_that_breaks_nothing_is_promoted() -> None:
    decision, reasons = decide(*GOOD)
    assert decision is Decision.PROMOTE
    assert "2 of 2 failing evidence tasks pass" in reasons
    assert "1 → 1 of 1 pass" in reasons


@pytest.mark.parametrize("task", ["g1", "h1"])
@pytest.mark.parametrize("after", ["ff", "pf", "fp"])
def test_one_broken_or_newly_flaky_task_rejects(task: str, after: str) -> None:
    decision, reasons = decide(*GOOD, trials(task + "x", "pp", after))
    assert decision is Decision.REJECT
    assert ("fails with it" in reasons) or ("is flaky with it" in reasons)


def test_a_broken_hold_out_task_is_not_named() -> None:
    decision, reasons = decide(*GOOD, trials("h-secret", "pp", "ff"))
    assert decision is Decision.REJECT
    assert "h-secret" not in reasons


def test_a_hold_out_that_failed_before_may_fail_after() -> None:
    assert decide(*GOOD, trials("h2", "ff", "ff"))[0] is Decision.PROMOTE


def test_what_was_flaky_before_counts_neither_way() -> None:
    assert decide(*GOOD, trials("g2", "pf", "ff"))[0] is Decision.PROMOTE
    assert decide(trials("e1", "pf", "pp"), trials("g1", "pp", "pp"))[0] is Decision.REJECT


def test_evidence_that_passes_only_sometimes_is_not_fixed() -> None:
    assert decide(trials("e1", "ff", "pf"), *GOOD[2:])[0] is Decision.REJECT


def test_a_minority_of_the_evidence_is_too_little() -> None:
    stay = [trials(f"e{number}", "ff", "ff") for number in range(3, 6)]
    decision, reasons = decide(*GOOD, *stay)
    assert decision is Decision.REJECT
    assert "2 of 5" in reasons


def test_half_of_the_evidence_is_enough() -> None:
    assert decide(*GOOD, trials("e3", "ff", "ff"), trials("e4", "ff", "ff"))[0] is Decision.PROMOTE


def test_too_few_tasks_hold_and_say_how_many_are_missing() -> None:
    decision, reasons = decide(trials("e1", "ff", "pp"))
    assert decision is Decision.HOLD
    assert "add 2 more" in reasons


def test_much_more_cpu_rejects() -> None:
    decision, reasons = decide(*GOOD, trials("g2", "pp", "pp", (0.1, 30.0)))
    assert decision is Decision.REJECT
    assert "CPU" in reasons


def test_no_trials_promote_nothing() -> None:
    assert decide()[0] is Decision.REJECT


@pytest.mark.parametrize("arm", [Arm.BASE, Arm.CANDIDATE])
def test_trials_on_another_tree_than_the_one_to_be_promoted_hold(arm: Arm) -> None:
    """The tested snapshot is the promoted one: what ran elsewhere proves nothing, however good it looks."""
    moved = [
        replace(trial, snapshot=Snapshot("x", "other")) if trial.arm is arm else trial
        for group in GOOD
        for trial in group
    ]
    assert decide(moved)[0] is Decision.HOLD


def test_a_verdict_is_recomputed_from_its_trials_and_any_change_shows() -> None:
    stored = [trial for group in GOOD for trial in group]
    verdict = judge(CANDIDATE, stored, POLICY)
    assert recompute(verdict, CANDIDATE, list(reversed(stored)), POLICY) == []
    lost = stored[:-1]
    assert any("trials_sha256" in fault for fault in recompute(verdict, CANDIDATE, lost, POLICY))
    forged = replace(verdict, decision=Decision.HOLD)
    assert any(fault.startswith("decision") for fault in recompute(forged, CANDIDATE, stored, POLICY))
    other = replace(CANDIDATE, snapshot=Snapshot("cand", "another-tree"))
    assert any("candidate_tree" in fault for fault in recompute(verdict, other, stored, POLICY))


def test_the_table_has_one_row_a_task_in_the_order_of_the_sets() -> None:
    table = flips([*trials("h1", "pp", "pp"), *trials("e1", "ff", "pp")])
    assert [row.task_id for row in table] == ["e1", "h1"]
    assert table[0].fixed
    assert not table[1].broken


# --- what cannot be replayed --------------------------------------------------------------------


def unreplayable(group: list[Trial], arm: Arm, repeats: tuple[int, ...] = (0, 1)) -> list[Trial]:
    lost = Outcome(Result.NOT_REPLAYABLE, 0.0, "an outside effect is not on record")
    return [
        replace(trial, outcome=lost) if trial.arm is arm and trial.repeat in repeats else trial
        for trial in group
    ]


@pytest.mark.parametrize("arm", [Arm.BASE, Arm.CANDIDATE])
def test_evidence_that_cannot_be_replayed_counts_neither_way(arm: Arm) -> None:
    decision, reasons = decide(*GOOD, unreplayable(trials("e3", "ff", "pp"), arm))
    assert decision is Decision.PROMOTE
    assert "2 of 2 failing evidence tasks pass" in reasons
    assert "left out, because they cannot be replayed: 1 evidence" in reasons


def test_a_guard_that_could_not_be_replayed_on_the_base_is_left_out() -> None:
    decision, reasons = decide(*GOOD, unreplayable(trials("g2", "pp", "ff"), Arm.BASE))
    assert decision is Decision.PROMOTE
    assert "none of 1 guards broke" in reasons
    assert "left out, because they cannot be replayed: 1 guard" in reasons


@pytest.mark.parametrize("task", ["g2", "h2"])
def test_an_edit_does_not_get_past_a_guard_by_making_it_impossible_to_replay(task: str) -> None:
    decision, reasons = decide(*GOOD, unreplayable(trials(task, "pp", "ff"), Arm.CANDIDATE))
    assert decision is Decision.HOLD
    assert "whether it breaks them cannot be told" in reasons
    assert task not in reasons


def test_one_repeat_that_can_be_replayed_is_enough_to_break_a_guard() -> None:
    decision, _ = decide(*GOOD, unreplayable(trials("g2", "pp", "ff"), Arm.CANDIDATE, (1,)))
    assert decision is Decision.REJECT


def test_with_nothing_that_can_be_replayed_nothing_is_promoted() -> None:
    decision, reasons = decide(*[unreplayable(group, Arm.BASE) for group in GOOD])
    assert decision is Decision.REJECT
    assert "2 evidence, 1 guard, 1 hold-out" in reasons


# --- verdicts of earlier versions ---------------------------------------------------------------

STORED = Path(__file__).with_name("stored_evolution.json")


def test_a_verdict_that_an_earlier_version_stored_is_computed_again() -> None:
    """Trials without run ids, a policy without the sections that came later: the same to the bit."""
    stored = json.loads(STORED.read_text())
    verdict = from_json(Verdict, stored["verdict"])
    candidate = from_json(Candidate, stored["candidate"])
    kept = [from_json(Trial, item) for item in stored["trials"]]
    policy, sha256 = policy_from_json(stored["policy"]), digest(stored["policy"])
    assert "sandbox" not in stored["policy"]
    assert recompute(verdict, candidate, kept, policy, sha256) == []
    (fault,) = recompute(verdict, candidate, kept, policy)
    assert fault.startswith("policy_sha256")


@pytest.mark.parametrize(
    "said", [{"run_id": "trial-1"}, {"recording": "run-1"}, {"drift": ("x",)}, {"steps_sha256": "0" * 64}]
)
def test_what_trials_say_since_is_bound_by_the_verdict(said: dict[str, Any]) -> None:
    kept = [trial for group in GOOD for trial in group]
    verdict = judge(CANDIDATE, kept, POLICY)
    altered = [replace(kept[0], **said), *kept[1:]]
    assert any("trials_sha256" in fault for fault in recompute(verdict, CANDIDATE, altered, POLICY))
