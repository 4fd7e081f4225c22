"""What the trials of fresh work say of a candidate: one task at a time, and all that is wanted together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agentos.domain import (
    Ambiguity,
    Arm,
    Candidate,
    CheckResult,
    Decision,
    Edit,
    EditedName,
    Outcome,
    Reexamination,
    RefusalKind,
    Snapshot,
    Trial,
    TrialSet,
)
from agentos.evolver.policy import HIDDEN_LOST, PARTLY_LOST, SETTINGS, Judge, Policy
from agentos.evolver.promote.reexamination import comparable
from agentos.evolver.verdict.doubts import (
    FreshWork,
    doubts,
    fresh_work,
    wants_fresh,
    with_fresh,
)
from agentos.evolver.verdict.judge import judge, recompute
from agentos.evolver.verdict.pairing import reaches, split
from tests.evolver.verdict.test_doubts import BASE, BEHAVIOUR, CANDIDATE, RESULTS, TREE

CODE = replace(CANDIDATE, edit=Edit({"skill/x/tools/t.py": "x"}, "edit", "op"))
POLICY = Policy(judge=Judge(fresh_tasks=4, fresh_mended=2, fresh_answers=2))
SETS = {"e": TrialSet.EVIDENCE, "g": TrialSet.GUARD, "f": TrialSet.FRESH}
THERE = ("t.py:run",)


def side(task: str, arm: Arm, letters: str, *, checks: bool = True, **over: Any) -> list[Trial]:
    """One trial a letter: p passes, f fails, n cannot be replayed. Each task has its own answer."""
    said = (CheckResult("equals", True),) if checks else ()
    own = {"reached": THERE, "answer_sha256": task, **over}
    return [
        Trial(
            id=f"{task}-{arm}-{repeat}",
            evolution_id="evo-1",
            candidate_id="" if task[0] != "f" and arm is Arm.BASE else CANDIDATE.id,
            task_id=task,
            set=SETS[task[0]],
            arm=arm,
            repeat=repeat,
            snapshot=BASE if arm is Arm.BASE else TREE,
            outcome=Outcome(RESULTS[letter], float(letter == "p"), "", checks=said),
            sandbox="fake",
            level="none",
            **own,
        )
        for repeat, letter in enumerate(letters)
    ]


def both(task: str, before: str, after: str, **over: Any) -> list[Trial]:
    return [*side(task, Arm.BASE, before, **over), *side(task, Arm.CANDIDATE, after, **over)]


GAIN = [*both("e1", "ff", "pp"), *both("e2", "ff", "pp")]
MENDED = [*both("f1", "f", "p"), *both("f2", "f", "p")]
KEPT = [*both("f3", "p", "p"), *both("f4", "p", "p")]


def seen(*trials: Trial, policy: Policy = POLICY) -> FreshWork:
    return fresh_work(CODE, trials, policy)


def test_what_it_breaks_stays_broken_where_the_base_is_lost_once() -> None:
    broken = both("f5", "pn", "ff")
    assert seen(*GAIN, *broken).broken == ("f5",)
    assert seen(*GAIN, *broken, policy=replace(POLICY, edition=PARTLY_LOST - 1)).broken == (), "as before"
    assert seen(*GAIN, *both("f5", "n", "p")).passed == ()


def test_enough_of_both_kinds_leaves_no_doubt() -> None:
    found = seen(*GAIN, *MENDED, *KEPT)
    assert (found.passed, found.mended) == (("f1", "f2", "f3", "f4"), ("f1", "f2"))
    assert (found.missing, found.doubts()) == (0, [])
    assert (found.broken, found.unmended, found.lost) == ((), (), ())


@pytest.mark.parametrize(
    ("trials", "missing", "says"),
    [
        ([], 4, "0 of 4 so far, 0 of 2 that failed before"),
        ([*MENDED, *KEPT[:2]], 1, "3 of 4 so far, 2 of 2 that failed before"),
        ([*MENDED[:2], *KEPT, *both("f5", "p", "p")], 1, "4 of 4 so far, 1 of 2 that failed before"),
        ([*KEPT, *both("f5", "p", "p"), *both("f6", "p", "p")], 2, "4 of 4 so far, 0 of 2 that failed before"),
        (
            [*both("f1", "f", "p", answer_sha256="a"), *both("f2", "f", "p", answer_sha256="a"), *KEPT],
            1,
            "4 of 4 so far, 2 of 2 that failed before, all that it mended end in one answer",
        ),
    ],
)  # fmt: skip
def test_what_is_missing_is_counted_and_told(trials: list[Trial], missing: int, says: str) -> None:
    found = seen(*GAIN, *trials)
    assert (found.missing, found.so_far) == (missing, says)
    assert [doubt.kind for doubt in found.doubts()] == [RefusalKind.FRESH]
    assert says in found.doubts()[0].reason
    told = found.waits_for("skill/x")
    tasks = f"{missing} more checked {'task' if missing == 1 else 'tasks'} of skill/x"
    assert told.startswith(f"waits for you, or for {tasks}")
    assert ("that it fails now" in told) is (len(found.passed) >= 4)


def test_where_none_has_to_have_failed_before_it_is_told_all_the_same() -> None:
    policy = Policy(judge=replace(POLICY.judge, fresh_mended=0))
    assert seen(*GAIN, *MENDED, policy=policy).so_far == "2 of 4 so far, 2 of them failed before"
    assert seen(*GAIN, *KEPT, policy=policy).so_far == "2 of 4 so far"
    assert seen(*GAIN, *MENDED, *KEPT, policy=policy).missing == 0


def test_answers_are_those_of_the_edit_to_what_it_mends() -> None:
    """Neither the base's, nor those of what passed before, nor those of what it does not mend, make several of one."""
    one = [*both("f1", "f", "p", answer_sha256="a"), *side("f2", Arm.BASE, "f", answer_sha256="b")]
    one += side("f2", Arm.CANDIDATE, "p", answer_sha256="a")
    found = seen(*GAIN, *one, *KEPT, *both("f7", "f", "f"))
    assert (found.answers, found.answers_wanted, found.missing) == (1, 2, 1)


@pytest.mark.parametrize(
    ("evidence", "wanted"),
    [
        (GAIN, 2),
        ([*both("e1", "ff", "pp", answer_sha256="a"), *both("e2", "ff", "pp", answer_sha256="a")], 1),
        ([*both("e1", "ff", "pp"), *both("e2", "ff", "ff")], 1),  # it answers one of them wrongly
        ([*both("e1", "ff", "pp"), *both("e2", "ff", "pp", alike=True)], 1),  # a hidden one
        ([*both("e1", "ff", "pp"), *both("g1", "pp", "pp")], 1),
    ],
)
def test_as_many_answers_are_wanted_as_the_evidence_has(evidence: list[Trial], wanted: int) -> None:
    assert seen(*evidence, *MENDED, *KEPT).answers_wanted == wanted


@pytest.mark.parametrize(
    ("trials", "where"),
    [
        (both("f1", "p", "f"), "broken"),
        (both("f1", "p", "pf"), "broken"),
        (both("f1", "p", "n"), "lost"),
        (both("f1", "p", "pn"), "lost"),
        (both("f1", "f", "f", alike=True), "unmended"),
        (both("f1", "f", "p"), "mended"),
        (both("f1", "p", "p"), "passed"),
        (both("f1", "f", "n"), ""),
        (both("f1", "f", "f"), ""),  # it failed otherwise than the evidence, and goes on so
        (both("f1", "pf", "pp"), ""),
        (both("f1", "pf", "ff"), ""),
        (side("f1", Arm.BASE, "p"), ""),
        (side("f1", Arm.CANDIDATE, "p"), ""),
        (both("f1", "p", "p", checks=False), ""),
        (both("f1", "p", "p", reached=("other.py:run",)), ""),
        (both("f1", "f", "p", reached=("other.py:run",)), ""),
    ],
)
def test_each_end_of_a_fresh_task_says_one_thing(trials: list[Trial], where: str) -> None:
    found = seen(*GAIN, *trials)
    told = {name for name in ("broken", "lost", "unmended", "mended", "passed") if getattr(found, name)}
    assert told == ({"mended", "passed"} if where == "mended" else {where} - {""})
    assert found.tried == ("f1",)


def test_trials_of_another_tree_are_none_of_it() -> None:
    other = [replace(trial, snapshot=Snapshot("x", "tree9")) for trial in MENDED]
    assert seen(*GAIN, *other).tried == ()


# --- what failed as the evidence did ----------------------------------------------------------


@pytest.mark.parametrize(
    ("mended", "unmended", "asked"), [(1, 1, True), (0, 1, True), (3, 1, True), (1, 0, False), (0, 0, False)]
)
def test_fresh_failures_of_the_same_kind_are_mended_in_the_share_of_what_was_shown(
    mended: int, unmended: int, asked: bool
) -> None:
    alike = [trial for n in range(mended) for trial in both(f"f1{n}", "f", "p", alike=True)]
    alike += [trial for n in range(unmended) for trial in both(f"f2{n}", "f", "f", alike=True)]
    found = seen(*GAIN, *MENDED, *KEPT, *alike)
    assert (found.mended_alike, found.needed) == (mended, mended + unmended)
    assert bool(found.doubts()) is asked
    assert all(doubt.kind is RefusalKind.UNMENDED for doubt in found.doubts())


def test_who_mended_half_of_the_shown_has_to_mend_half_of_the_fresh() -> None:
    half = [*both("e1", "ff", "pp"), *both("e2", "ff", "ff")]
    alike = [*both("f7", "f", "p", alike=True), *both("f8", "f", "f", alike=True)]
    found = seen(*half, *MENDED, *KEPT, *alike)
    assert (found.mended_alike, found.needed, found.unmended) == (1, 1, ("f8",))
    assert found.doubts() == []
    # hidden evidence is no part of what was shown
    hidden = both("e3", "ff", "pp", alike=True)
    assert seen(*half, *hidden, *MENDED, *KEPT, *alike).needed == 1


def test_what_cannot_be_replayed_with_it_is_told() -> None:
    (doubt,) = seen(*GAIN, *MENDED, *KEPT, *both("f9", "p", "n")).doubts()
    assert doubt.kind is RefusalKind.LOST


def test_without_evidence_no_share_is_known() -> None:
    assert seen(*MENDED, *both("f8", "f", "f", alike=True)).needed == 0


# --- of which edits it is asked ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("skill/x/tools/t.py", True),
        ("harness/x/h.py", True),
        ("tool/x/resource.toml", True),
        ("tool/x/wheels.lock", True),
        ("skill/x/wheels.lock", True),
        ("skill/x/assets/limits.json", True),
        ("skill/x/tools/count/run.sh", True),
        ("skill/x/SKILL.md", False),
        ("prompt/tool/prompt.md", False),
    ],
)
def test_it_is_asked_of_edits_of_code(path: str, asked: bool) -> None:
    edit = replace(CANDIDATE, edit=Edit({path: "x"}, "edit", "op"))
    assert wants_fresh(edit, GAIN, POLICY) is asked
    assert not wants_fresh(edit, GAIN, Policy(judge=Judge(fresh_tasks=0)))
    found = fresh_work(edit, [*GAIN, *KEPT], POLICY)
    assert (found.wanted, found.telling, found.answers_wanted) == ((4, 2, 2) if asked else (0, 0, 0))
    assert bool(found.doubts()) is asked


def test_of_texts_beside_a_skills_code_only_since_they_are_edited() -> None:
    edit = replace(CANDIDATE, edit=Edit({"skill/x/assets/limits.json": "x"}, "edit", "op"))
    before = replace(POLICY, edition=SETTINGS - 1)
    assert wants_fresh(edit, GAIN, POLICY)
    assert not wants_fresh(edit, GAIN, before)


def pairs(task: str) -> list[Trial]:
    return [
        replace(trial, number=1, look=1) if trial.arm is Arm.CANDIDATE else trial
        for trial in both(task, "ffff", "pppp")
    ]


def test_where_all_evidence_varies_pairs_say_it() -> None:
    other = replace(CODE, id="cand-2")
    assert not wants_fresh(CODE, pairs("e1"), POLICY)
    assert wants_fresh(CODE, [*pairs("e1"), *both("e2", "ff", "pp")], POLICY)
    # steady evidence of another candidate, and guards, are no evidence of this one
    foreign = [replace(trial, candidate_id=other.id) for trial in side("e3", Arm.CANDIDATE, "pp")]
    assert not wants_fresh(CODE, [*pairs("e1"), *foreign], POLICY)
    assert not wants_fresh(CODE, [*pairs("e1"), *both("g1", "pp", "pp")], POLICY)
    assert wants_fresh(CODE, [], POLICY), "without any nobody knows"


def test_no_more_than_all_have_to_have_failed_before() -> None:
    few = Policy(judge=Judge(fresh_tasks=1, fresh_mended=5, fresh_answers=2))
    found = seen(*GAIN, *MENDED[:2], policy=few)
    assert (found.telling, found.answers_wanted, found.missing) == (1, 1, 0)


def test_what_only_brings_new_files_is_reached_by_anything() -> None:
    new = EditedName("u.py:1:run", ("u.py:run",), new_file=True)
    old = EditedName("t.py:1:run", THERE)
    assert reaches(replace(CODE, edited=()), [])
    assert reaches(replace(CODE, edited=(new,)), [])
    assert not reaches(replace(CODE, edited=(new, old)), ["u.py:run"])
    assert reaches(replace(CODE, edited=(new, old)), THERE)


def test_the_two_verdicts_have_their_own_names() -> None:
    assert with_fresh("verdict-1") != with_fresh("verdict-2")
    assert "verdict-1" in with_fresh("verdict-1")
    known, fresh = split([*GAIN, *MENDED])
    assert ([*known], [*fresh]) == (GAIN, MENDED)


def test_a_record_of_nothing_wants_nothing() -> None:
    nothing = FreshWork(0)
    assert (nothing.mended_alike, nothing.needed, nothing.telling) == (0, 0, 0)
    assert (nothing.answers, nothing.answers_wanted, nothing.missing) == (0, 0, 0)


def test_a_verdict_is_computed_again_from_trials_in_another_order() -> None:
    known = [*GAIN, *MENDED, *both("f3", "p", "f"), *both("f4", "p", "f")]
    verdict = judge(CODE, known, POLICY)
    assert len(verdict.broken) == 2
    assert recompute(verdict, CODE, known[::-1], POLICY) == []
    assert recompute(replace(verdict, broken=verdict.broken[:1]), CODE, known, POLICY) != []


# --- a doubt that more of it settles ------------------------------------------------------------

# What the known work asks nothing about by itself: two guards, and a search's belief that is high enough.
KNOWN = [*GAIN, *both("g1", "pp", "pp"), *both("g2", "pp", "pp")]
LUCK = Policy(judge=Judge(min_tasks=2, fresh_tasks=4, fresh_mended=1, fresh_answers=2, fresh_doubted=3))
ONE_MENDED = [*both("f1", "f", "p"), *KEPT, *both("f5", "p", "p")]
THREE_MENDED = [*MENDED, *both("f6", "f", "p"), *KEPT]
LIKELY, FAR_FETCHED, PAIR = 0.01, 1e-4, 1e-5


def lucky(prior: float, **seen: object) -> Candidate:
    return replace(CODE, prior=prior, behaviour=replace(BEHAVIOUR, **seen))  # type: ignore[arg-type]


def asked_of(edit: Candidate, *trials: Trial, policy: Policy = LUCK) -> list[RefusalKind]:
    return [doubt.kind for doubt in doubts(edit, trials, policy)]


@pytest.mark.parametrize(
    "edit", [lucky(FAR_FETCHED), lucky(LIKELY, unguarded=True), lucky(LIKELY, broad=True)]
)
def test_that_it_passes_by_luck_is_settled_by_more_that_failed_before(edit: Candidate) -> None:
    assert asked_of(lucky(LIKELY), *KNOWN, *ONE_MENDED) == []
    assert asked_of(edit, *KNOWN, *ONE_MENDED) == [RefusalKind.FRESH]
    assert asked_of(edit, *KNOWN, *THREE_MENDED) == []
    assert judge(edit, [*KNOWN, *THREE_MENDED], LUCK).decision is Decision.PROMOTE
    waits = fresh_work(edit, [*KNOWN, *ONE_MENDED], LUCK)
    assert (waits.missing, waits.telling) == (2, 3)
    (reason,) = (
        doubt.reason for doubt in doubts(edit, KNOWN, replace(LUCK, judge=Judge(min_tasks=2, fresh_tasks=0)))
    )
    for told in (
        waits.waits_for("skill/x"),
        waits.meanwhile("skill/x", alone=True),
        waits.doubts()[0].reason,
    ):
        assert reason in told, "who may decide now is told of it"


@pytest.mark.parametrize(
    ("edit", "kinds"),
    [
        (lucky(PAIR), [RefusalKind.UNLIKELY]),  # below ``luck_min``
        (lucky(FAR_FETCHED, unguarded=True), [RefusalKind.UNLIKELY, RefusalKind.UNGUARDED]),
        (lucky(FAR_FETCHED, accepted="unit='x'"), [RefusalKind.UNLIKELY, RefusalKind.LOOSENED]),
        (lucky(0.0, unguarded=True), [RefusalKind.UNGUARDED]),  # somebody wrote it
        (lucky(0.0, broad=True), [RefusalKind.BROAD]),
        # whatever belief who wrote it names
        (replace(lucky(LIKELY, unguarded=True), plugin="sure, of x 1.0"), [RefusalKind.UNGUARDED]),
        (replace(lucky(LIKELY, broad=True), model="main"), [RefusalKind.BROAD]),
        (replace(lucky(FAR_FETCHED), plugin="sure, of x 1.0"), [RefusalKind.UNLIKELY]),
        (lucky(LIKELY, share=0.1), [RefusalKind.UNLIKELY]),  # another edit is likelier meant
        (lucky(LIKELY, loosened="the condition x"), [RefusalKind.LOOSENED]),
    ],
)  # fmt: skip
def test_no_other_doubt_is_settled_by_it(edit: Candidate, kinds: list[RefusalKind]) -> None:
    assert asked_of(edit, *KNOWN, *THREE_MENDED) == kinds


def test_what_it_breaks_or_leaves_is_told_where_luck_is_the_doubt_too() -> None:
    edit = lucky(FAR_FETCHED)
    assert judge(edit, [*KNOWN, *THREE_MENDED, *both("f9", "pp", "ff")], LUCK).decision is Decision.REJECT
    left = both("f9", "f", "f", alike=True)
    assert asked_of(edit, *KNOWN, *THREE_MENDED, *left) == [RefusalKind.UNMENDED]


def test_where_the_policy_has_it_settle_none_it_is_asked_as_before() -> None:
    off = replace(LUCK, judge=replace(LUCK.judge, fresh_doubted=0))
    assert asked_of(lucky(FAR_FETCHED), *KNOWN, *THREE_MENDED, policy=off) == [RefusalKind.UNLIKELY]
    assert asked_of(lucky(FAR_FETCHED), *KNOWN, *ONE_MENDED[:2], policy=off) == [
        RefusalKind.UNLIKELY,
        RefusalKind.FRESH,
    ]


# --- fresh work as the guards that are missing --------------------------------------------------

ONE_GUARD = KNOWN[:-4]
FOUR_MENDED = [*THREE_MENDED[:-4], *both("f7", "f", "p")]


def test_what_passed_before_stands_for_guards_that_are_missing() -> None:
    edit = lucky(LIKELY)
    assert asked_of(edit, *ONE_GUARD) == [RefusalKind.FRESH]
    assert asked_of(edit, *ONE_GUARD, *ONE_MENDED) == []
    assert judge(edit, [*ONE_GUARD, *ONE_MENDED], LUCK).decision is Decision.PROMOTE
    waits = fresh_work(edit, [*ONE_GUARD, *FOUR_MENDED], LUCK)
    assert (len(waits.passed), waits.guarding, waits.missing) == (4, 1, 1), "of these none could be broken"
    assert "0 of 1 that passed before" in waits.so_far
    assert "that it passes now" in waits.waits_for("skill/x")
    assert asked_of(edit, *ONE_GUARD, *FOUR_MENDED) == [RefusalKind.FRESH]
    assert asked_of(edit, *ONE_GUARD, *FOUR_MENDED, *KEPT[:2]) == []


def test_both_are_wanted_where_luck_is_a_doubt_too() -> None:
    edit = lucky(FAR_FETCHED)
    assert asked_of(edit, *ONE_GUARD, *ONE_MENDED) == [RefusalKind.FRESH]
    assert asked_of(edit, *ONE_GUARD, *FOUR_MENDED) == [RefusalKind.FRESH]
    assert asked_of(edit, *ONE_GUARD, *THREE_MENDED) == []


@pytest.mark.parametrize(
    ("edit", "policy"),
    [
        (lucky(0.0), LUCK),  # somebody wrote it
        (replace(lucky(LIKELY), plugin="sure, of x 1.0"), LUCK),
        (replace(lucky(LIKELY), model="main"), LUCK),
        (lucky(LIKELY), replace(LUCK, edition=HIDDEN_LOST)),
        (lucky(LIKELY), replace(LUCK, judge=replace(LUCK.judge, fresh_tasks=0))),
    ],
)
def test_of_what_is_written_or_was_judged_before_a_person_is_asked_as_ever(
    edit: Candidate, policy: Policy
) -> None:
    assert asked_of(edit, *ONE_GUARD, *ONE_MENDED, policy=policy) == [RefusalKind.FEW_GUARDS]


def test_a_fresh_task_that_does_not_run_the_edit_or_has_no_checks_guards_nothing() -> None:
    idle = [trial for n in range(1, 5) for trial in both(f"f{n}", "p", "p", reached=("t.py:other",))]
    unchecked = [trial for n in range(5, 9) for trial in both(f"f{n}", "p", "p", checks=False)]
    edit = replace(lucky(LIKELY), edited=(EditedName("t.py:run", THERE),))
    mended = [trial for n in range(10, 14) for trial in both(f"f{n}", "f", "p")]
    assert asked_of(edit, *ONE_GUARD, *mended, *idle, *unchecked) == [RefusalKind.FRESH]
    assert asked_of(edit, *ONE_GUARD, *mended, *idle, *unchecked, *both("f20", "p", "p")) == []


def test_without_any_guard_a_person_is_asked_all_the_same() -> None:
    few = RefusalKind.FEW_GUARDS
    assert asked_of(lucky(LIKELY), *GAIN, *ONE_MENDED) == [few, RefusalKind.UNGUARDED]
    unnamed, far = (replace(lucky(prior), edited=()) for prior in (LIKELY, FAR_FETCHED))
    assert asked_of(unnamed, *GAIN, *ONE_MENDED) == [few]
    assert asked_of(far, *GAIN, *THREE_MENDED) == [few, RefusalKind.UNLIKELY]


# --- compared again with the fresh tasks among the known ones -----------------------------------

CHOICE = Ambiguity(1, "n=1", "2", "3", "cand-2")
GUARDS = [*both("g1", "pp", "pp"), *both("g2", "pp", "pp"), *both("g3", "pp", "pp")]
SEEN = replace(BEHAVIOUR, ambiguity=CHOICE, breaks="n=0 by KeyError", known=("e1", "g1"))
UNSURE = replace(CODE, behaviour=SEEN)
ALL = [*GAIN, *GUARDS, *MENDED, *KEPT]
CAME = ("f1", "f2", "f3", "f4")


def kinds_of(candidate: Candidate, trials: list[Trial], policy: Policy = POLICY) -> list[RefusalKind]:
    return [doubt.kind for doubt in doubts(candidate, trials, policy)]


def test_it_is_due_once_enough_count_and_once_more_for_as_many() -> None:
    assert comparable(UNSURE, ALL, POLICY) == CAME
    assert comparable(UNSURE, ALL[:-2], POLICY) == ()
    again = replace(UNSURE, reexamination=Reexamination(CAME, replace(SEEN, breaks="")))
    more = [trial for number in range(5, 9) for trial in both(f"f{number}", "p", "p")]
    assert comparable(again, [*ALL, *more[:6]], POLICY) == ()
    assert len(comparable(again, [*ALL, *more], POLICY)) == 8


@pytest.mark.parametrize(
    ("candidate", "trials", "policy"),
    [
        (UNSURE, ALL, replace(POLICY, edition=8)),
        (replace(CODE, behaviour=replace(BEHAVIOUR, known=("e1",))), ALL, POLICY),  # nothing is asked
        (replace(CODE, behaviour=replace(SEEN, known=())), ALL, POLICY),  # of an older version
        (replace(CODE, behaviour=replace(SEEN, broad=True)), ALL, POLICY),
        (replace(CODE, behaviour=replace(SEEN, unread="n")), ALL, POLICY),
        (replace(UNSURE, prior=1e-9), ALL, POLICY),
        (UNSURE, [*GAIN, *GUARDS[:4], *MENDED, *KEPT], POLICY),  # too few guards
        (UNSURE, [*ALL, *both("e3", "ff", "ff")], POLICY),  # it leaves some of the evidence
        (UNSURE, [*ALL, *both("f5", "p", "f")], POLICY),
        (UNSURE, [*ALL, *both("f5", "f", "f")], POLICY),  # for whatever reason
        (UNSURE, [*ALL, *both("f5", "p", "n")], POLICY),
        (replace(UNSURE, edit=Edit({"memory/x/memory.md": "x"}, "", "")), ALL, POLICY),
    ],
)
def test_it_is_not_due_where_a_person_is_asked_in_any_case(
    candidate: Candidate, trials: list[Trial], policy: Policy
) -> None:
    assert comparable(candidate, trials, policy) == ()


def test_what_it_found_counts_for_verdicts_with_those_tasks_alone() -> None:
    again = replace(UNSURE, reexamination=Reexamination(CAME, replace(SEEN, breaks="", ambiguity=None)))
    before = [RefusalKind.BREAKS, RefusalKind.AMBIGUOUS]
    assert kinds_of(UNSURE, ALL) == before
    assert kinds_of(again, ALL) == []
    assert kinds_of(again, [*GAIN, *GUARDS]) == [*before, RefusalKind.FRESH]
    assert kinds_of(again, ALL, replace(POLICY, edition=8)) == before
    failed = [*ALL[:-2], *both("f4", "p", "f")]
    assert kinds_of(again, failed)[:2] == before, "one of them passes no more"
    for trials, policy in ((ALL, POLICY), ([*GAIN, *GUARDS], POLICY), (ALL, replace(POLICY, edition=8))):
        verdict = judge(UNSURE if policy.edition == 8 else again, trials, policy)
        assert recompute(verdict, again, trials, policy) == []
    first = judge(UNSURE, [*GAIN, *GUARDS], POLICY)
    assert recompute(first, again, ALL, POLICY) == [], "the first verdict stays as it was"


def test_who_lets_it_wait_is_told_whether_that_may_end_what_is_asked() -> None:
    waits = fresh_work(UNSURE, ALL[:-2], POLICY)
    ends, stays = (waits.meanwhile("skill/x", alone=False, compared=each) for each in (True, False))
    assert ends != stays
    assert waits.so_far in ends
    assert waits.so_far in stays
