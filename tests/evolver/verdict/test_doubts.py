"""Each doubt is reached and each is escaped by the one thing that it asks for: no more, no less."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agentos.domain import (
    Ambiguity,
    Arm,
    Behaviour,
    Candidate,
    CheckResult,
    Edit,
    EditedName,
    Layer,
    Manifest,
    Outcome,
    Refusal,
    Result,
    Snapshot,
    Trial,
    TrialSet,
)
from agentos.domain import RefusalKind as K
from agentos.evolver.policy import CHECKED, HIDDEN_LOST, ONE_SIDED, PARTLY_LOST, ConsentPolicy, Judge, Policy
from agentos.evolver.verdict.doubts import doubts, questions, worn_out
from agentos.evolver.verdict.pairing import checked, guarding, idle_parts, ran

BASE, TREE = Snapshot("base", "tree0"), Snapshot("cand", "tree1")
MANIFEST = Manifest("evd-1", "cause", "edit", ("skill/x/tools/t.py",), ("e1",), (), Layer.SKILL, "why")
OWN = EditedName("t.py:1:run", ("t.py:run",))
CANDIDATE = Candidate(
    "cand-1-1", "evo-1", "repair", 1, MANIFEST, Edit({}, "edit", "op"), BASE, TREE, edited=(OWN,)
)
POLICY = Policy(judge=Judge(min_tasks=2, hold_out_looks=6))
SETS = {"e": TrialSet.EVIDENCE, "g": TrialSet.GUARD, "h": TrialSet.HOLD_OUT}
BEHAVIOUR = Behaviour(1, 1, 1, 1, 1, 0)
RESULTS = {"p": Result.PASSED, "f": Result.FAILED, "n": Result.NOT_REPLAYABLE}


def side(task: str, arm: Arm, letters: str, *, checks: bool = True, **over: Any) -> list[Trial]:
    """One trial a letter: p passes, f fails, n cannot be replayed."""
    said = (CheckResult("equals", True),) if checks else ()
    owner, snapshot = (CANDIDATE.id, TREE) if arm is not Arm.BASE else ("", BASE)
    over.setdefault("reached", ("t.py:run",))
    return [
        Trial(
            f"{task}-{arm}-{repeat}",
            "evo-1",
            owner,
            task,
            SETS[task[0]],
            arm,
            repeat,
            snapshot,
            Outcome(RESULTS[letter], float(letter == "p"), "", checks=said if letter != "n" else ()),
            "",
            "fake",
            "none",
            **over,
        )
        for repeat, letter in enumerate(letters)
    ]


def both(task: str, before: str, after: str, **over: Any) -> list[Trial]:
    return [*side(task, Arm.BASE, before, **over), *side(task, Arm.CANDIDATE, after, **over)]


GAIN = both("e1", "ff", "pp")
GOOD = [*GAIN, *both("g1", "pp", "pp"), *both("h1", "pp", "pp")]


def told(trials: list[Trial], policy: Policy = POLICY, **over: Any) -> str:
    return "; ".join(doubt.reason for doubt in doubts(replace(CANDIDATE, **over), trials, policy))


def kinds(trials: list[Trial], policy: Policy = POLICY, **over: Any) -> set[K]:
    return {doubt.kind for doubt in doubts(replace(CANDIDATE, **over), trials, policy)}


def test_of_an_edit_that_ran_in_as_many_guards_as_are_asked_for_there_is_no_doubt() -> None:
    assert told(GOOD) == ""


def test_by_the_first_edition_nobody_was_asked() -> None:
    assert told(GAIN, replace(POLICY, edition=CHECKED - 1)) == ""
    assert told(GAIN, replace(POLICY, edition=CHECKED)) != ""


@pytest.mark.parametrize(
    ("second", "share", "asked"),
    [
        (both("e2", "ff", "ff"), 1.0, True),
        (both("e2", "ff", "nf"), 1.0, True),
        (both("e2", "ff", "ff", alike=True), 1.0, True),  # held back: its number is told, never which
        (both("e2", "ff", "ff", checks=False), 1.0, True),
        (both("e2", "ff", "ff"), 0.5, False),
        (both("e2", "ff", "ff"), 0.0, False),  # a verdict of before
        (both("e2", "ff", "pp"), 1.0, False),
        (both("e2", "ff", "nn"), 1.0, True),  # made impossible to replay is not mended
        (side("e2", Arm.BASE, "ff"), 1.0, False),
    ],
)
def test_an_edit_that_leaves_evidence_as_it_was_is_asked_about(
    second: list[Trial], share: float, asked: bool
) -> None:
    """Who makes one of two failing tasks pass may have found another thing that happens to pass it."""
    policy = replace(POLICY, judge=replace(POLICY.judge, unattended_share=share))
    assert kinds([*GOOD, *second], policy) == ({K.PARTIAL} if asked else set())
    assert ("1 of the 2 failing tasks" in told([*GOOD, *second], policy)) is asked


def test_an_edit_that_makes_most_of_its_evidence_impossible_to_replay_is_asked_about() -> None:
    lost = [trial for number in (2, 3, 4) for trial in both(f"e{number}", "ff", "nn")]
    assert "1 of the 4 failing tasks" in told([*GOOD, *lost])
    assert told([*GOOD, *lost], replace(POLICY, edition=ONE_SIDED - 1)) == "", "as verdicts of before"


def test_nor_is_a_hidden_task_mended_that_it_makes_impossible_to_replay() -> None:
    """One that fails alike on the base: else an edit gets around it by asking for what is not on record."""
    hidden = [*side("h2", Arm.BASE, "ff"), *side("h2", Arm.CANDIDATE, "nn", alike=True)]
    assert kinds([*GOOD, *hidden]) == {K.PARTIAL}
    assert told([*GOOD, *hidden], replace(POLICY, edition=HIDDEN_LOST - 1)) == "", "as verdicts of before"
    failing = [*side("h2", Arm.BASE, "ff"), *side("h2", Arm.CANDIDATE, "ff", alike=True)]
    assert kinds([*GOOD, *failing]) == set(), "what can be replayed is for the rule of hidden tasks"
    assert kinds([*GOOD, *both("h2", "ff", "nn")]) == set(), "it failed otherwise"


@pytest.mark.parametrize("after", ["pn", "np"])
def test_a_task_that_passes_as_far_as_it_can_be_replayed_is_not_mended(after: str) -> None:
    """Else an edit gets around a trial under other names by asking there for what is not on record."""
    partly = [*GOOD, *both("e2", "ff", after)]
    assert kinds(partly) == {K.PARTIAL}
    assert told(partly, replace(POLICY, edition=PARTLY_LOST - 1)) == "", "as verdicts of before"
    assert kinds([*GOOD, *both("e2", "fn", "pn")]) == set(), "the base cannot be replayed there either"


def test_evidence_that_varies_is_left_to_the_pairs() -> None:
    pairs = [
        replace(trial, number=1, look=1) if trial.arm is Arm.CANDIDATE else trial
        for trial in both("e2", "ffff", "pffp")
    ]
    assert told([*GOOD, *pairs]) == ""


# --- what guards ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "second",
    [
        [],
        both("g2", "ff", "pp"),  # it failed before: nothing to break
        both("g2", "pp", "ff"),
        both("g2", "pp", "pf"),
        both("g2", "pp", "nn"),
        both("g2", "pp", "pp", checks=False),
        both("g2", "pp", "pp", reached=("other.py:run",)),
        both("e2", "pp", "pp"),  # the evidence does not count itself
        side("g2", Arm.CANDIDATE, "pp"),  # nobody knows that it passed before
        [*side("g2", Arm.BASE, "pp"), *side("g2", Arm.CONTROL, "pp")],
        both("g2", "pp", "pp", work="one") + both("e2", "ff", "pp", work="one"),  # the evidence's own work
    ],
)
def test_what_does_not_guard_is_not_counted(second: list[Trial]) -> None:
    trials = [*GAIN, *both("g1", "pp", "pp"), *second]
    assert guarding(CANDIDATE, trials) == {"g1"}
    assert told(trials) == (
        "of guards and hold-out tasks with checks, 1 pass with it and ran what it edits, and with fewer than 2 "
        "(min_tasks) nobody can tell what it breaks"
    )


def test_tasks_that_ask_for_the_same_work_count_once() -> None:
    twins = [
        trial
        for name in ("g1", "g2", "h1", "h2")
        for trial in both(name, "pp", "pp", work="w" + name[1:].replace("2", "1"))
    ]
    assert guarding(CANDIDATE, [*GAIN, *twins]) == {"g1"}
    assert "1 pass with it" in told([*GAIN, *twins])
    assert told([*GAIN, *twins, *both("h3", "pp", "pp", work="w3")]) == ""
    before = [replace(trial, work="") for trial in twins]
    assert told([*GAIN, *before]) == "", "of trials from before it was written down tasks are counted"


@pytest.mark.parametrize("fewest", [0, 1])
def test_one_guard_is_asked_for_whatever_the_policy_says(fewest: int) -> None:
    policy = replace(POLICY, judge=replace(POLICY.judge, min_tasks=fewest))
    assert K.FEW_GUARDS in kinds(GAIN, policy)
    assert "0 pass with it" in told(GAIN, policy)
    assert told([*GAIN, *both("h1", "pp", "pp")], policy) == ""


def test_one_that_passed_once_before_and_is_not_replayable_once_guards() -> None:
    trials = [*both("g1", "pf", "pn"), *both("h1", "pp", "pp")]
    assert guarding(CANDIDATE, trials) == {"g1", "h1"}


def test_of_pairs_some_may_fail() -> None:
    trials = [*side("g1", Arm.BASE, "pp"), *side("g1", Arm.CANDIDATE, "pf", number=1)]
    assert guarding(CANDIDATE, trials) == {"g1"}
    assert guarding(CANDIDATE, [*trials[:2], *side("g1", Arm.CANDIDATE, "ff", number=1)]) == frozenset()


def test_before_it_was_asked_what_stood_a_hidden_failure_counted() -> None:
    trials = both("h1", "ff", "pp")
    assert guarding(CANDIDATE, trials, CHECKED) == {"h1"}
    assert guarding(CANDIDATE, trials) == frozenset()


def test_who_has_checks_is_known_by_any_trial() -> None:
    assert checked([*both("g1", "n", "p"), *both("g2", "p", "p", checks=False)]) == {"g1"}


# --- what ran ---------------------------------------------------------------------------------


def test_what_ran_in_no_guard_is_named_the_first_three_and_how_many_more() -> None:
    idle = [EditedName(f"t.py:{number}:f{number}", (f"t.py:f{number}",)) for number in range(5)]
    assert told(GOOD, edited=(OWN, idle[0])) == "what it edits ran in no guard: t.py:0:f0"
    assert told(GOOD, edited=(OWN, *idle[:3])).endswith("t.py:0:f0, t.py:1:f1, t.py:2:f2")
    assert told(GOOD, edited=(OWN, *idle[:4])).endswith("and 1 more")
    assert told(GOOD, edited=(OWN, *idle)).endswith("t.py:0:f0, t.py:1:f1, t.py:2:f2 and 2 more")
    assert idle_parts(replace(CANDIDATE, edited=(OWN, *idle)), GOOD) == idle


def test_each_guard_may_run_another_part() -> None:
    other = EditedName("t.py:9:other", ("t.py:other", "t.py:looks"))
    trials = [
        *GAIN,
        *both("g1", "pp", "pp"),
        *both("h1", "pp", "pp", reached=("t.py:looks",)),
    ]
    assert told(trials, edited=(OWN, other)) == ""
    assert ran(other, {"t.py:looks"})
    assert not ran(other, {"t.py:run"})
    assert not ran(EditedName("t.py:x", ()), {"t.py:run"}), "what nothing can show has not run"


def test_each_trial_of_a_guard_may_run_another_part() -> None:
    first = side("g1", Arm.CANDIDATE, "p", reached=("a",))
    second = side("g1", Arm.CANDIDATE, "p", reached=("t.py:run",))
    assert guarding(CANDIDATE, [*side("g1", Arm.BASE, "p"), *second, *first]) == {"g1"}
    assert guarding(CANDIDATE, [*side("g1", Arm.BASE, "p"), *first, *second]) == {"g1"}


def test_where_only_new_files_are_edited_guards_are_counted_as_they_are_and_a_person_is_asked() -> None:
    new = EditedName("new.py:1:f", ("new.py:f",), new_file=True)
    assert guarding(replace(CANDIDATE, edited=(new,)), GOOD) == {"g1", "h1"}
    assert told(GOOD, edited=(new,)) == "what it edits ran in no guard: new.py:1:f"
    assert guarding(replace(CANDIDATE, edited=(new, OWN)), both("g1", "p", "p", reached=())) == frozenset()


def test_a_candidate_that_does_not_say_what_it_edits_is_counted_as_then() -> None:
    trials = [*GAIN, *both("g1", "pp", "pp", reached=())]
    assert told(trials, edited=()).startswith(
        "of guards and hold-out tasks with checks, 1 pass with it, and with"
    )


# --- what was gained --------------------------------------------------------------------------

BESIDE = GOOD[len(GAIN) :]


@pytest.mark.parametrize(
    ("evidence", "asked"),
    [
        (both("e1", "ff", "pp", checks=False), True),
        ([*both("e1", "ff", "pp", checks=False), *both("e2", "ff", "ff")], True),
        ([*both("e1", "ff", "pp", checks=False), *both("e2", "ff", "pp")], False),
        ([*both("e1", "ff", "pp", checks=False), *both("e2", "pp", "pp")], True),
        (both("e1", "fp", "pp", checks=False), True),
        (both("e1", "fp", "pf", checks=False), False),
        (both("e1", "fn", "pn", checks=False), True),
        (both("e1", "nn", "pp", checks=False), True),
        (both("e1", "ff", "nn", checks=False), False),
        (both("e1", "pnn", "ppp", checks=False), False),  # only what says something is a share
        ([*both("e1", "ff", "ff"), *both("g9", "ff", "pp", checks=False)], False),  # no evidence is gained
        ([*both("e1", "ff", "ff", checks=False), *side("e1", Arm.CONTROL, "pp", checks=False)], False),
    ],
)
def test_a_gain_without_checks_is_asked_for(evidence: list[Trial], asked: bool) -> None:
    assert (K.UNCHECKED in kinds([*evidence, *BESIDE])) is asked


def test_a_guard_without_checks_that_is_gained_is_no_gain() -> None:
    assert K.UNCHECKED not in kinds([*GOOD, *both("g9", "ff", "pp", checks=False)])


# --- what its behaviour shows -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "kind"),
    [
        ({}, None),
        ({"unguarded": True}, K.UNGUARDED),
        ({"unmended": "run(a=1)"}, K.UNMENDED),
        ({"breaks": "run(a=[]) by IndexError"}, K.BREAKS),
        ({"broad": True}, K.BROAD),
        ({"ambiguity": Ambiguity(1, "run(2)", "4", "5", "cand-1-2")}, K.AMBIGUOUS),
        ({"ambiguity": Ambiguity(2, "run(2)", "4", "5", "cand-1-2")}, K.AMBIGUOUS),
    ],
)
def test_what_is_seen_beside_the_tasks_is_asked(seen: dict[str, Any], kind: K | None) -> None:
    found = doubts(replace(CANDIDATE, behaviour=replace(BEHAVIOUR, **seen)), GOOD, POLICY)
    assert [doubt.kind for doubt in found] == ([kind] if kind else [])
    facts = [value for value in seen.values() if isinstance(value, str)]
    assert all(fact in found[0].reason for fact in facts)


def test_its_question_says_what_another_edit_answers() -> None:
    found = told(GOOD, behaviour=replace(BEHAVIOUR, ambiguity=Ambiguity(1, "run(2)", "4", "5", "cand-1-2")))
    assert "another edit passes the same tasks, and for run(2) this one answers 4, cand-1-2 5" in found
    assert "2 other edits" in told(
        GOOD, behaviour=replace(BEHAVIOUR, ambiguity=Ambiguity(2, "run(2)", "4", "5", "cand-1-2"))
    )


def test_a_choice_between_answers_is_asked_by_its_fields() -> None:
    seen = replace(
        BEHAVIOUR, ambiguity=Ambiguity(1, "run(2)", "4", "5", "cand-1-2"), loosened="the condition x"
    )
    found = {doubt.kind: doubt for doubt in doubts(replace(CANDIDATE, behaviour=seen), GOOD, POLICY)}
    choice = found[K.AMBIGUOUS]
    assert (choice.about, choice.sides) == ("run(2)", (("", "4"), ("cand-1-2", "5")))
    assert "run(2)" not in choice.asks
    assert "the condition x" in found[K.LOOSENED].asks
    assert not found[K.LOOSENED].sides


def test_nothing_is_asked_where_work_is_only_awaited() -> None:
    code = replace(CANDIDATE, edit=Edit({"skill/x/tools/t.py": ""}, "edit", "op"))
    (doubt,) = doubts(code, GOOD, replace(POLICY, judge=replace(POLICY.judge, fresh_tasks=20)))
    assert (doubt.kind, doubt.asks) == (K.FRESH, "")


def test_of_a_tier_that_is_left_to_people_nothing_else_is_asked() -> None:
    screened = Refusal(K.SCREEN, "it reads the clock")
    (doubt,) = questions(CANDIDATE, GOOD, POLICY, lambda: screened)
    assert (doubt.kind, doubt.about) == (K.SCREEN, screened.reason)
    asks = replace(POLICY, consent=ConsentPolicy(low="ask", medium="ask", high="ask"))
    (doubt,) = questions(CANDIDATE, GOOD, asks, lambda: screened)
    assert doubt.kind is K.TIER


@pytest.mark.parametrize(
    ("author", "asked"), [({}, []), ({"model": "main"}, [K.TIER]), ({"plugin": "given 1.0"}, [K.TIER])]
)
def test_what_somebody_wrote_is_left_to_people_where_the_policy_says_so(
    author: dict[str, str], asked: list[K]
) -> None:
    edit = replace(CANDIDATE, **author)
    assert questions(edit, GOOD, POLICY, lambda: None) == []
    asks = replace(POLICY, consent=ConsentPolicy(written="ask"))
    assert [doubt.kind for doubt in questions(edit, GOOD, asks, lambda: None)] == asked


def test_lines_that_no_call_runs_are_told_once() -> None:
    idle = EditedName("t.py:5:idle", ("t.py:idle",))
    seen = replace(BEHAVIOUR, unguarded=True)
    assert told(GOOD, edited=(OWN, idle), behaviour=seen) == "what it edits ran in no guard: t.py:5:idle"


# --- a hold-out that is used up ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("looks", "worn"), [((0,), False), ((6,), False), ((7,), True), ((7, 6), False), ((7, 0), True)]
)
def test_hidden_tasks_tell_of_so_many_candidates_and_no_more(looks: tuple[int, ...], worn: bool) -> None:
    trials = [
        trial for number, look in enumerate(looks) for trial in both(f"h{number}", "pp", "pp", look=look)
    ]
    assert bool(worn_out(trials, POLICY)) is worn
    every = [*GOOD[: -len(both("h1", "pp", "pp"))], *trials]
    assert (K.WORN_OUT in kinds(every)) is worn
    assert ("6 candidates" in told(every)) is worn
    assert K.WORN_OUT not in kinds(every, replace(POLICY, edition=CHECKED))


def test_looks_of_evidence_and_guards_wear_nothing_out() -> None:
    assert worn_out([*both("g1", "pp", "pp", look=9), *both("e1", "ff", "pp", look=9)], POLICY) is None


@pytest.mark.parametrize(
    ("seen", "kind"),
    [
        ({"loosened": "the condition x"}, K.LOOSENED),
        ({"needless": "without its change of line 3"}, K.LOOSENED),
        ({"accepted": "unit='furlong' (KeyError: 'furlong')"}, K.LOOSENED),
        ({"noise": "price=1011: 30.770000000000003"}, K.NOISE),
        ({"depends": "path='a' 76 years later: ValueError"}, K.DEPENDS),
        ({"unread": "goal"}, K.UNREAD),
        ({"uncompared": "tool/a/tool.py, tool/a/_b.py"}, K.UNCOMPARED),
        ({"share": 0.49}, K.UNLIKELY),
        ({"share": 1e-9}, K.UNLIKELY),
        ({"share": 0.5}, None),  # as likely as all others together
        ({"share": 0.0}, None),  # its proposer weighs nothing
    ],
)
def test_what_was_seen_of_an_edit_beside_its_tasks_is_told(seen: dict[str, Any], kind: K | None) -> None:
    behaviour = replace(BEHAVIOUR, **seen)
    assert kinds(GOOD, behaviour=behaviour) == ({kind} if kind else set())
    facts = [f"{value:.0%}" if isinstance(value, float) else value for value in seen.values()]
    assert all(fact in told(GOOD, behaviour=behaviour) for fact in facts) is (kind is not None)


@pytest.mark.parametrize(("prior", "asked"), [(0.0, False), (1e-6, True), (1e-3, False), (2e-4, False)])
def test_a_far_fetched_edit_is_asked_about(prior: float, asked: bool) -> None:
    """The floor itself is likely enough; 0 is that of a proposer that weighs nothing."""
    policy = replace(POLICY, replay=replace(POLICY.replay, prior_min=2e-4))
    assert kinds(GOOD, policy, prior=prior) == ({K.UNLIKELY} if asked else set())
