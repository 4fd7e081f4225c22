"""The judge is a pure function: every flip counts, and nothing else promotes."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentos.daemon.upkeep.auditing import computed_again
from agentos.domain import (
    Arm,
    Behaviour,
    Candidate,
    CheckResult,
    Cost,
    Decision,
    Edit,
    Layer,
    Manifest,
    Outcome,
    RefusalKind,
    Result,
    SafetyRate,
    Snapshot,
    SupportKind,
    Trial,
    TrialSet,
    Verdict,
    canonical,
    digest,
)
from agentos.evolver.documents import policy_from_json
from agentos.evolver.policy import CHECKED, PARTLY_LOST, STOOD, Policy
from agentos.evolver.verdict.doubts import doubts
from agentos.evolver.verdict.judge import (
    Flip,
    TaskTrials,
    _is_beside,
    flips,
    further_repeats,
    judge,
    recompute,
)
from agentos.evolver.verdict.paired_tests import EARLIER_WORDS
from agentos.evolver.verdict.pairing import CHOOSING, FIRST, judged_trials, too_costly
from agentos.ledger.blobs import BlobStore
from agentos.ledger.rows.codec import from_json

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
            said = (CheckResult("equals", letter == "p"),)
            outcome = Outcome(result, float(letter == "p"), "", checks=said, cost=Cost(cpu_s=used))
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


def decide(*groups: list[Trial]) -> tuple[Decision, dict[str, str]]:
    verdict = judge(CANDIDATE, [trial for group in groups for trial in group], POLICY)
    return verdict.decision, by_kind(verdict)


def by_kind(verdict: Verdict) -> dict[str, str]:
    """Each reason by its kind; those of one kind stand together."""
    told: dict[str, str] = {}
    for kind, reason in zip(verdict.kinds, verdict.reasons, strict=True):
        told[kind] = f"{told[kind]}; {reason}" if kind in told else reason
    return told


GOOD = [
    trials("e1", "ff", "pp"),
    trials("e2", "ff", "pp"),
    trials("g1", "pp", "pp"),
    trials("h1", "pp", "pp"),
]


def test_what_it_costs_does_not_depend_on_the_order_of_a_set() -> None:
    """Sums of floats do: 0.1 + 0.2 + 0.3 is more than 0.6, and 0.3 + 0.2 + 0.1 is not."""
    rules = replace(POLICY.judge, max_cpu_ratio=1.0, cpu_slack_s=0.0)
    for number in range(40):
        used = ((0.6, 0.1), (0.0, 0.2), (0.0, 0.3))
        made = [trials(f"g{number}-{place}", "p", "p", cpu=cpu) for place, cpu in enumerate(used)]
        assert too_costly([trial for own in made for trial in own], rules) is None


def test_a_repair_that_breaks_nothing_is_promoted() -> None:
    decision, reasons = decide(*GOOD)
    assert decision is Decision.PROMOTE
    assert "2 of 2" in reasons[SupportKind.FIXED]
    assert "1 → 1 of 1" in reasons[SupportKind.HOLD_OUT_KEPT]


@pytest.mark.parametrize("task", ["g1", "h1"])
@pytest.mark.parametrize("after", ["ff", "pf", "fp"])
def test_one_broken_or_newly_flaky_task_rejects(task: str, after: str) -> None:
    decision, reasons = decide(*GOOD, trials(task + "x", "pp", after))
    assert decision is Decision.REJECT
    assert [*reasons] == [RefusalKind.BROKEN]
    assert (after == "ff") == ("flaky" not in reasons[RefusalKind.BROKEN])


def test_a_broken_hold_out_task_is_not_named() -> None:
    decision, reasons = decide(*GOOD, trials("h-secret", "pp", "ff"))
    assert decision is Decision.REJECT
    assert [*reasons] == [RefusalKind.BROKEN]
    assert "h-secret" not in str(reasons)


def test_a_hold_out_that_failed_before_may_fail_after() -> None:
    assert decide(*GOOD, trials("h2", "ff", "ff"))[0] is Decision.PROMOTE


def test_what_was_flaky_before_counts_neither_way() -> None:
    assert decide(*GOOD, trials("g2", "pf", "ff"))[0] is Decision.PROMOTE
    assert decide(trials("e1", "pf", "pp"), trials("g1", "pp", "pp"))[0] is Decision.REJECT


def test_evidence_that_passes_only_sometimes_is_not_fixed() -> None:
    assert decide(trials("e1", "ff", "pf"), *GOOD[2:])[0] is Decision.REJECT


def test_a_side_without_any_trial_is_not_one_that_cannot_be_replayed() -> None:
    (alone,) = flips(trials("g2", "", "pp"))
    assert not alone.left_out
    assert (alone.before, alone.after) == (TaskTrials.ABSENT, TaskTrials.PASSES)
    assert not alone.fixed
    assert not alone.broken
    lost = replace(trials("g2", "p", "p")[0], outcome=Outcome(Result.NOT_REPLAYABLE, 0.0, ""))
    (kept,) = flips([lost, *trials("g2", "", "pp")])
    assert kept.left_out


@pytest.mark.parametrize("look", [0, 1])
def test_a_candidates_own_trials_count_and_the_bases_counterparts(look: int) -> None:
    own = [replace(one, look=look) if one.candidate_id else one for group in GOOD for one in group]
    others = [replace(one, candidate_id="cand-9", id=f"{one.id}-9") for one in own if one.candidate_id]
    again = trials("e1", "fff", "")[2:]  # for another candidate
    left_out, foreign = trials("e9", "pp", ""), trials("g9", "pp", "")
    found = judged_trials(CANDIDATE, [*others, *own, *again, *left_out, *foreign])
    wanted = [*own, *(left_out if look else again)]
    assert {one.id for one in found} == {one.id for one in wanted}


def test_a_guard_that_passes_as_far_as_it_can_be_replayed_with_the_edit_holds_it() -> None:
    kept = trials("g2", "pp", "pp")
    lost = [*kept[:-1], replace(kept[-1], outcome=Outcome(Result.NOT_REPLAYABLE, 0.0, ""))]
    own = [*(one for group in GOOD for one in group), *lost]
    for policy, decision in (
        (POLICY, Decision.HOLD),
        (replace(POLICY, edition=PARTLY_LOST - 1), Decision.PROMOTE),
    ):
        verdict = judge(CANDIDATE, own, policy)
        assert verdict.decision is decision
        assert (RefusalKind.UNREPLAYABLE in verdict.kinds) is (decision is Decision.HOLD)
        assert recompute(verdict, CANDIDATE, own, policy) == []


def test_a_minority_of_the_evidence_is_too_little() -> None:
    stay = [trials(f"e{number}", "ff", "ff") for number in range(3, 6)]
    decision, reasons = decide(*GOOD, *stay)
    assert decision is Decision.REJECT
    assert "2 of 5" in reasons[RefusalKind.FEW_FIXED]


def test_half_of_the_evidence_is_enough() -> None:
    assert decide(*GOOD, trials("e3", "ff", "ff"), trials("e4", "ff", "ff"))[0] is Decision.PROMOTE


def test_by_the_first_rules_too_few_tasks_hold_and_say_how_many_are_missing() -> None:
    policy, kept = replace(POLICY, edition=1), trials("e1", "ff", "pp")
    verdict = judge(CANDIDATE, kept, policy)
    assert verdict.decision is Decision.HOLD
    assert verdict.kinds == (RefusalKind.FEW_TASKS,)
    assert "add 2 more" in verdict.reasons[0]
    earlier = verdict.reasons[0].replace("then retry", "then reconsider")  # the command's name before 0.3
    assert recompute(replace(verdict, reasons=(earlier,)), CANDIDATE, kept, policy) == []
    assert earlier != verdict.reasons[0]


def test_much_more_cpu_rejects() -> None:
    decision, reasons = decide(*GOOD, trials("g2", "pp", "pp", (0.1, 30.0)))
    assert decision is Decision.REJECT
    assert [*reasons] == [RefusalKind.COSTLY]
    assert "30.20 s" in reasons[RefusalKind.COSTLY]


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


def test_a_kind_that_is_not_of_its_reason_shows_and_one_that_was_never_written_down_does_not() -> None:
    stored = [trial for group in GOOD for trial in group]
    verdict = judge(CANDIDATE, stored, POLICY)
    for forged in (verdict.kinds[:-1], (RefusalKind.UNSAFE, *verdict.kinds[1:])):
        (fault,) = recompute(replace(verdict, kinds=forged), CANDIDATE, stored, POLICY)
        assert fault.startswith("kinds ")
        assert replace(verdict, kinds=forged).sha256 != verdict.sha256, "a consent is bound to them"
    assert recompute(replace(verdict, kinds=()), CANDIDATE, stored, POLICY) == []
    assert replace(verdict, kinds=()).sha256 != verdict.sha256


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
    assert "2 of 2" in reasons[SupportKind.FIXED]
    assert reasons[SupportKind.LEFT_OUT].endswith(": 1 evidence")


def test_a_guard_that_could_not_be_replayed_on_the_base_is_left_out() -> None:
    decision, reasons = decide(*GOOD, unreplayable(trials("g2", "pp", "ff"), Arm.BASE))
    assert decision is Decision.PROMOTE
    assert "none of 1 " in reasons[SupportKind.GUARDS_KEPT]
    assert reasons[SupportKind.LEFT_OUT].endswith(": 1 guard")


@pytest.mark.parametrize("task", ["g2", "h2"])
def test_an_edit_does_not_get_past_a_guard_by_making_it_impossible_to_replay(task: str) -> None:
    decision, reasons = decide(*GOOD, unreplayable(trials(task, "pp", "ff"), Arm.CANDIDATE))
    assert decision is Decision.HOLD
    assert [*reasons] == [RefusalKind.UNREPLAYABLE, SupportKind.LEFT_OUT]
    assert reasons[RefusalKind.UNREPLAYABLE].startswith("1 ")
    assert task not in str(reasons)


def test_one_repeat_that_can_be_replayed_is_enough_to_break_a_guard() -> None:
    decision, _ = decide(*GOOD, unreplayable(trials("g2", "pp", "ff"), Arm.CANDIDATE, (1,)))
    assert decision is Decision.REJECT


def test_with_nothing_that_can_be_replayed_nothing_is_promoted() -> None:
    decision, reasons = decide(*[unreplayable(group, Arm.BASE) for group in GOOD])
    assert decision is Decision.REJECT
    assert [*reasons] == [RefusalKind.NO_EVIDENCE, SupportKind.LEFT_OUT]
    assert "2 evidence, 1 guard, 1 hold-out" in reasons[SupportKind.LEFT_OUT]


# --- verdicts of earlier versions ---------------------------------------------------------------

STORED = {
    "stored_evolution.json": {"judge": "hidden_gain", "look_back": "rules"},
    "stored_behaviour.json": {"replay": "share_min", "look_back": "rules"},  # of edition 3, with doubts
}


@pytest.mark.parametrize("name", STORED)
def test_a_verdict_that_an_earlier_version_stored_is_computed_again(name: str, tmp_path: Path) -> None:
    """Trials without run ids, a policy without what came later, an edit of which less was seen: the same to the bit."""
    stored = json.loads(Path(__file__).with_name(name).read_text())
    verdict = from_json(Verdict, stored["verdict"])
    candidate = from_json(Candidate, stored["candidate"])
    kept = [from_json(Trial, item) for item in stored["trials"]]
    policy, sha256 = policy_from_json(stored["policy"]), digest(stored["policy"])
    assert not any(key in stored["policy"].get(section, ()) for section, key in STORED[name].items())
    assert sha256 not in (policy.sha256, POLICY.sha256)
    blobs = BlobStore(tmp_path)
    assert blobs.put(canonical(stored["policy"])) == verdict.policy_sha256 == sha256
    assert computed_again(blobs, verdict, candidate, kept) == []
    assert computed_again(blobs, replace(verdict, fixed=()), candidate, kept) != []
    assert verdict.kinds == ()
    assert verdict.sha256 == digest(stored["verdict"]), "what consents were bound to then"
    again = judge(candidate, kept, policy)
    assert len(again.kinds) == len(again.reasons) > 0
    (fault,) = recompute(verdict, candidate, kept, policy)
    assert fault.startswith("policy_sha256")


@pytest.mark.parametrize(
    "said",
    [
        {"run_id": "trial-1"},
        {"recording": "run-1"},
        {"drift": ("x",)},
        {"steps_sha256": "0" * 64},
        {"plugins": ("checks/iban (bank 1.0)",)},
    ],
)
def test_what_trials_say_since_is_bound_by_the_verdict(said: dict[str, Any]) -> None:
    kept = [trial for group in GOOD for trial in group]
    verdict = judge(CANDIDATE, kept, POLICY)
    altered = [replace(kept[0], **said), *kept[1:]]
    assert any("trials_sha256" in fault for fault in recompute(verdict, CANDIDATE, altered, POLICY))


def test_a_reason_that_quotes_a_word_of_earlier_versions_is_computed_again() -> None:
    """What a tool was called with stands in a reason: that word is the task's, not the judge's."""
    for word, _ in EARLIER_WORDS:
        quoted = replace(CANDIDATE, behaviour=Behaviour(1, 1, 0, 0, 0, 0, breaks=f"look up '{word}'"))
        verdict = judge(quoted, [trial for group in GOOD for trial in group], POLICY)
        assert any(word in reason for reason in verdict.reasons)
        assert recompute(verdict, quoted, [trial for group in GOOD for trial in group], POLICY) == []


def test_a_verdict_that_counted_what_is_not_there_is_computed_again() -> None:
    kept = [trial for number in (1, 2, 3) for trial in trials(f"e{number}", "ff", "pp")]
    verdict = judge(CANDIDATE, kept, POLICY)
    earlier = tuple(
        next((old for old, new in EARLIER_WORDS if new == said), said) for said in verdict.reasons
    )
    assert [said for said in earlier if "0 guards" in said or "of 0 pass" in said]
    assert not [said for said in verdict.reasons if "0 guards" in said or "of 0 pass" in said]
    assert recompute(replace(verdict, reasons=earlier), CANDIDATE, kept, POLICY) == []


# --- what else a verdict needs, beside the comparison with the base -------------------------------


def of(found: list[Trial], **over: Any) -> list[Trial]:
    return [replace(trial, **over) for trial in found]


def pairs(task: str, before: str, after: str) -> list[Trial]:
    """Fresh pairs of a task that varies."""
    made = of(trials(task, before, after), number=1, look=1)
    return [replace(trial, repeat=FIRST + trial.repeat) for trial in made]


def verdict_on(*groups: list[Trial], candidate: Candidate = CANDIDATE, policy: Policy = POLICY) -> Verdict:
    return judge(candidate, [trial for group in groups for trial in group], policy)


HELD = trials("g7", "pp", "pp")[:2] + of(  # it cannot be told whether it breaks that
    trials("g7", "", "pp"), outcome=Outcome(Result.NOT_REPLAYABLE, 0.0, "")
)
UNMENDED = [of(trials(f"e{number}", "ff", "ff"), alike=True) for number in (8, 9)]
SHOWN = [trials(f"e{number}", "ff", "pp") for number in (3, 4, 5)]


def test_what_fits_the_shown_tasks_alone_is_refused_though_it_would_be_promoted_or_held() -> None:
    for more in ([], HELD):
        found = verdict_on(*GOOD, *SHOWN, more, *UNMENDED)
        assert found.decision is Decision.REJECT
        assert found.kinds == (RefusalKind.OVER_FITTED,)
    assert verdict_on(*GOOD, *SHOWN, HELD).decision is Decision.HOLD


@pytest.mark.parametrize(
    ("base", "own", "comparable"),
    [
        (["checks/iban (bank 1.0)"], ["checks/iban (bank 1.0)"], True),
        (["checks/iban (bank 1.0)"], ["checks/iban (bank 1.1)"], False),
        (["checks/iban (bank 1.0)"], ["checks/iban (other 1.0)"], False),
        (["checks/iban (bank 1.0)"], ["checks/iban (bank 1.0)", "checks/iban (bank 1.1)"], False),
        ([], ["checks/iban (bank 1.0)"], True),  # the base gave no answer, so there was nothing to judge
        (["checks/iban (bank 1.0)"], ["retrievers/iban (bank 1.1)"], True),
        (["retrievers/near (bank 1.0)"], ["retrievers/near (bank 2.0)"], False),
    ],
)
def test_sides_that_were_measured_with_other_plug_ins_are_not_compared(
    base: list[str], own: list[str], comparable: bool
) -> None:
    # beside what would promote, what would be refused for hidden tasks, and what would be for a broken guard
    for groups, decided in (
        ([*GOOD, *SHOWN], Decision.PROMOTE),
        ([*GOOD, *SHOWN, *UNMENDED], Decision.REJECT),
        ([*GOOD, trials("g8", "pp", "ff")], Decision.REJECT),
    ):
        made = [
            of([trial], plugins=tuple(base if trial.arm is Arm.BASE else own))
            for group in groups
            for trial in group
        ]
        assert verdict_on(*made).decision is (decided if comparable else Decision.HOLD)


def test_what_is_refused_already_keeps_its_reason() -> None:
    found = verdict_on(*GOOD, *SHOWN, trials("g8", "pp", "ff"), *UNMENDED)
    assert found.decision is Decision.REJECT
    assert found.kinds == (RefusalKind.BROKEN,)
    assert "guard task g8" in found.reasons[0]


def test_without_a_share_a_hold_stays_a_hold() -> None:
    policy = replace(POLICY, judge=replace(POLICY.judge, hidden_share=0.0))
    assert verdict_on(*GOOD, *SHOWN, *UNMENDED, policy=policy).decision is Decision.REJECT
    assert verdict_on(*GOOD, *SHOWN, HELD, *UNMENDED, policy=policy).decision is Decision.HOLD


def test_a_worn_hold_out_held_what_would_have_been_promoted_and_nothing_else() -> None:
    policy = replace(POLICY, edition=STOOD - 1)
    worn = of(trials("h1", "pp", "pp"), look=POLICY.judge.hold_out_looks + 1)
    base = [*GOOD[:3], worn]
    assert verdict_on(*base, policy=policy).kinds == (RefusalKind.WORN_OUT,)
    assert verdict_on(*base, policy=policy).decision is Decision.HOLD
    assert verdict_on(*base, trials("g8", "pp", "ff"), policy=policy).decision is Decision.REJECT
    assert verdict_on(*GOOD, policy=policy).decision is Decision.PROMOTE
    assert verdict_on(*base).decision is Decision.PROMOTE, "since then a person is asked"


MEMORY = replace(CANDIDATE, edit=Edit({"memory/default/memory.md": "x"}, "edit", "op"))


def test_what_is_remembered_is_held_without_a_control_and_a_refusal_stays_one() -> None:
    assert verdict_on(*GOOD, candidate=MEMORY).decision is Decision.HOLD
    assert verdict_on(*GOOD, candidate=MEMORY).kinds == (RefusalKind.UNMEASURED,)
    refused = verdict_on(*GOOD, trials("g8", "pp", "ff"), candidate=MEMORY)
    assert refused.decision is Decision.REJECT
    assert refused.kinds == (RefusalKind.BROKEN,)
    assert "guard task g8" in refused.reasons[0]


def test_a_control_is_told_of_where_something_remembered_is_promoted_and_nowhere_else() -> None:
    control = Snapshot("control", "tree2")
    with_it = replace(MEMORY, control=control)
    none = [
        replace(trial, arm=Arm.CONTROL, snapshot=control, id=f"{trial.id}-none")
        for task, letters in (("e1", "ff"), ("e2", "ff"), ("g1", "pp"), ("h1", "pp"))
        for trial in trials(task, "", letters)
    ]
    found = verdict_on(*GOOD, none, candidate=with_it)
    assert found.decision is Decision.PROMOTE
    assert "0 of 4" in by_kind(found)[SupportKind.CONTROL]
    refused = verdict_on(*GOOD, trials("g8", "pp", "ff"), none, candidate=with_it)
    assert SupportKind.CONTROL not in refused.kinds
    code = replace(with_it, edit=CANDIDATE.edit)
    assert SupportKind.CONTROL not in verdict_on(*GOOD, none, candidate=code).kinds


def test_doubts_are_told_of_promotions_alone() -> None:
    told = verdict_on(*GOOD[:2])
    assert told.decision is Decision.PROMOTE
    asked = {doubt.kind for doubt in doubts(CANDIDATE, [*GOOD[0], *GOOD[1]], POLICY)}
    assert RefusalKind.FEW_GUARDS in asked
    assert asked <= {*told.kinds}
    for more in (trials("g8", "pp", "ff"), HELD):
        assert not asked & {*verdict_on(*GOOD[:2], more).kinds}


def test_rates_of_safety_probes_that_cannot_be_compared_hold_a_promotion_and_nothing_else() -> None:
    known = [trial for group in GOOD for trial in group]
    rate = SafetyRate(
        "rate-1", "evo-1", "", Arm.BASE, BASE, "default", False, ("p1",), (), (), "x", "s",
        datetime(2026, 1, 1, tzinfo=UTC),
    )  # fmt: skip
    held = judge(CANDIDATE, known, POLICY, [rate])
    assert held.decision is Decision.HOLD
    assert held.kinds[0] == RefusalKind.UNMEASURED
    base = [rate, replace(rate, id="rate-2", learnt=True)]
    own = [replace(one, candidate_id=CANDIDATE.id, arm=Arm.CANDIDATE, snapshot=TREE) for one in base]
    good = judge(CANDIDATE, known, POLICY, [*base, *own])
    assert good.decision is Decision.PROMOTE
    assert "2 of 2" in by_kind(good)[SupportKind.FIXED]
    assert good.kinds[0] == SupportKind.FIXED
    assert SupportKind.SAFE in good.kinds
    worse = [replace(one, violated=("p1",)) for one in own]
    unsafe = judge(CANDIDATE, known, POLICY, [*base, *worse])
    assert (unsafe.decision, unsafe.kinds[0]) == (Decision.REJECT, RefusalKind.UNSAFE)
    refused = judge(CANDIDATE, [*known, *trials("g8", "pp", "ff")], POLICY, [rate])
    assert refused.decision is Decision.REJECT
    assert refused.kinds == (RefusalKind.BROKEN,)


# --- tasks that vary, beside those that do not ----------------------------------------------------

VARY = [
    *(pairs(f"e{number}", "f" * 12, "p" * 12) for number in (1, 2, 3)),
    *(pairs(f"g{number}", "p" * 12, "p" * 12) for number in (1, 2, 3, 4)),
    *(pairs(f"h{number}", "p" * 12, "p" * 12) for number in (1, 2, 3, 4)),
]


def test_what_varies_is_judged_by_pairs_and_the_rest_beside_it() -> None:
    alone = verdict_on(*VARY)
    assert alone.decision is Decision.PROMOTE, alone.reasons
    assert alone.fixed == ("e1", "e2", "e3")
    beside = verdict_on(*VARY, trials("g8", "pp", "pp"))
    assert beside.decision is Decision.PROMOTE
    assert "none of 1 " in by_kind(beside)[SupportKind.GUARDS_KEPT]
    broken = verdict_on(*VARY, trials("g8", "pp", "ff"))
    assert (broken.decision, broken.broken) == (Decision.REJECT, ("g8",))


def test_pairs_that_show_nothing_yet_hold_and_a_rejection_goes_before_it() -> None:
    few = [pairs(task, letters, after) for task, letters, after in (("e1", "ff", "pp"), ("g1", "pp", "pp"))]
    assert verdict_on(*few).decision is Decision.HOLD
    assert verdict_on(*few, *GOOD[2:]).decision is Decision.HOLD
    refused = verdict_on(*few, trials("g8", "pp", "ff"))
    assert refused.decision is Decision.REJECT
    assert "guard task g8" in by_kind(refused)[RefusalKind.BROKEN]


def test_work_without_checks_is_fixed_by_no_rule_since_they_are_asked_for() -> None:
    bare = [
        replace(trial, outcome=replace(trial.outcome, checks=())) for group in VARY[:3] for trial in group
    ]
    assert verdict_on(bare, *VARY[3:]).fixed == ()
    assert verdict_on(bare, *VARY[3:], policy=replace(POLICY, edition=CHECKED - 1)).fixed == (
        "e1",
        "e2",
        "e3",
    )
    steady = [replace(one, outcome=replace(one.outcome, checks=())) for one in trials("e3", "ff", "pp")]
    assert verdict_on(*GOOD, steady).fixed == ("e1", "e2")
    assert verdict_on(*GOOD, steady, policy=replace(POLICY, edition=CHECKED - 1)).fixed == ("e1", "e2", "e3")


@pytest.mark.parametrize(
    ("flip", "now", "without_stood", "first"),
    [
        (Flip("g", TrialSet.GUARD, TaskTrials.PASSES, TaskTrials.PASSES), True, True, True),
        (Flip("g", TrialSet.GUARD, TaskTrials.FAILS, TaskTrials.PASSES), False, True, True),
        (Flip("g", TrialSet.GUARD, TaskTrials.PASSES, TaskTrials.PASSES, checked=False), False, False, True),
        (Flip("e", TrialSet.EVIDENCE, TaskTrials.PASSES, TaskTrials.PASSES), False, False, True),
    ],
)
def test_what_counts_beside_the_evidence(flip: Flip, now: bool, without_stood: bool, first: bool) -> None:
    editions = {STOOD: now, STOOD - 1: without_stood, CHECKED - 1: first}
    assert {edition: _is_beside(flip, replace(POLICY, edition=edition)) for edition in editions} == editions


def test_how_many_more_trials_tell_and_of_which_tasks() -> None:
    looked = of(trials("e1", "ff", "pp"), look=1)
    more, which = further_repeats([*looked, *GOOD[2], *GOOD[3]], POLICY)
    assert which == ("e1",)
    assert more > 0
    assert further_repeats(GOOD[0] + GOOD[1], POLICY) == (0, ("e1", "e2")), "judged before looks were counted"
    held = verdict_on(looked, *GOOD[2:])
    assert held.decision is Decision.HOLD
    assert held.kinds == (RefusalKind.LUCK,)
    assert f" {more} more " in held.reasons[0]


def test_the_trials_that_chose_a_task_count_for_it_and_no_others_of_the_base() -> None:
    own = [replace(one, look=1, repeat=FIRST) for one in trials("e1", "", "p")]
    base = trials("e1", "f", "")[0]
    made = {
        repeat: replace(base, id=f"base-{repeat}", repeat=repeat, look=1)
        for repeat in (CHOOSING - 1, CHOOSING, FIRST - 1, FIRST + 1)
    }
    found = judged_trials(CANDIDATE, [*own, *made.values()])
    assert {one.repeat for one in found if one.arm is Arm.BASE} == {CHOOSING, FIRST - 1}


# --- the edges of each rule -----------------------------------------------------------------------


def bare(task: str, before: str, after: str) -> list[Trial]:
    """Without checks."""
    return [replace(one, outcome=replace(one.outcome, checks=())) for one in trials(task, before, after)]


def test_the_first_edition_ends_where_checks_are_asked_for() -> None:
    now = replace(POLICY, edition=CHECKED)
    assert verdict_on(*GOOD, bare("e3", "ff", "pp"), policy=now).fixed == ("e1", "e2")
    unchecked = [replace(one, outcome=replace(one.outcome, checks=())) for one in VARY[0]]
    assert verdict_on(unchecked, *VARY[1:], policy=now).fixed == ("e2", "e3")
    assert verdict_on(trials("e1", "ff", "pp"), policy=now).decision is Decision.PROMOTE
    first = replace(POLICY, edition=CHECKED - 1, judge=replace(POLICY.judge, min_tasks=3))
    assert verdict_on(*GOOD[:2], policy=first).decision is Decision.HOLD
    assert verdict_on(*GOOD[:3], policy=first).decision is Decision.PROMOTE


def test_only_evidence_that_failed_is_to_be_mended() -> None:
    found = verdict_on(*GOOD, trials("g5", "ff", "ff"), trials("e5", "pp", "pp"), trials("e6", "ff", "ff"))
    assert found.decision is Decision.PROMOTE
    assert by_kind(found)[SupportKind.FIXED].startswith("2 of 3 ")
    assert SupportKind.ENDED not in found.kinds, "what still fails does not end"


@pytest.mark.parametrize(
    "evidence",
    [
        [trials("e1", "ff", "pp"), bare("e2", "ff", "ff"), bare("e3", "ff", "ff")],
        [trials("e1", "ff", "ff"), bare("e2", "ff", "pp"), bare("e3", "ff", "pp")],
    ],
)
def test_enough_is_mended_of_all_and_of_what_has_checks(evidence: list[list[Trial]]) -> None:
    assert verdict_on(*evidence, *GOOD[2:]).decision is Decision.REJECT


def test_an_edit_that_mends_nothing_is_refused_whatever_share_is_asked_for() -> None:
    policy = replace(POLICY, judge=replace(POLICY.judge, min_fixed_share=0.0))
    assert verdict_on(trials("e1", "ff", "ff"), *GOOD[2:], policy=policy).decision is Decision.REJECT


def test_what_cannot_be_replayed_makes_no_refusal_a_hold_and_evidence_holds_nothing() -> None:
    assert verdict_on(*GOOD, HELD, trials("g8", "pp", "ff")).decision is Decision.REJECT
    lost = of(trials("e7", "", "pp"), outcome=Outcome(Result.NOT_REPLAYABLE, 0.0, ""))
    assert verdict_on(*GOOD, trials("e7", "pp", ""), lost).decision is Decision.PROMOTE


def test_only_mended_evidence_is_tried_more_often() -> None:
    looked = of(trials("e1", "ff", "pp"), look=1)
    others = [*trials("g5", "ff", "pp"), *of(trials("e2", "ff", "ff"), look=1)]
    assert further_repeats([*looked, *others], POLICY)[1] == ("e1",)
    assert further_repeats(of(trials("e1", "ff", "ff"), look=1), POLICY) == (0, ())


def test_rates_that_are_undecided_are_not_refused_for_hidden_tasks_yet() -> None:
    undecided = [pairs("e1", "ff", "pp"), pairs("e2", "ff", "pp"), *GOOD[2:], *SHOWN[1:]]
    assert verdict_on(*undecided).decision is Decision.HOLD
    assert verdict_on(*undecided, *UNMENDED).decision is not Decision.PROMOTE


def test_of_before_looks_were_counted_the_first_trials_chose_what_varies() -> None:
    base = trials("e1", "f", "")[0]
    made = [replace(base, id=f"base-{repeat}", repeat=repeat) for repeat in (0, 3, 4, 6, 7)]
    paired = [replace(one, number=1, repeat=6) for one in trials("e1", "", "p")]
    found = judged_trials(CANDIDATE, [*paired, *made])
    assert {one.repeat for one in found if one.arm is Arm.BASE} == {0, 3, 6}
    steady = [replace(one, repeat=6) for one in trials("e1", "", "p")]
    found = judged_trials(CANDIDATE, [*steady, *made])
    assert {one.repeat for one in found if one.arm is Arm.BASE} == {0, 3, 4, 6, 7}


def test_what_chose_other_tasks_chose_not_this_one() -> None:
    own = of(trials("e1", "f", "p"), look=1)
    chosen = of(trials("e1", "f", ""), look=1, repeat=CHOOSING, id="chosen")
    assert chosen[0] not in judged_trials(CANDIDATE, [*own, *chosen])
    later = [replace(one, look=1, number=1, repeat=FIRST + 5) for one in trials("e1", "f", "p")]
    edge = of(trials("e1", "f", ""), look=1, repeat=FIRST, id="edge")
    assert edge[0] not in judged_trials(CANDIDATE, [*later, *edge])
