"""An edit of what is remembered is held against nothing remembered at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agentos.domain import (
    Arm,
    Candidate,
    Decision,
    Edit,
    Evidence,
    Evolution,
    EvolutionState,
    Fingerprint,
    Layer,
    Limits,
    Manifest,
    Outcome,
    RefusalKind,
    Result,
    Share,
    Snapshot,
    Task,
    Trial,
    TrialSet,
    Verdict,
    digest,
)
from agentos.evolver.cycle import trials_of, try_candidate
from agentos.evolver.dependencies import Dependencies
from agentos.evolver.memory.lessons import added, id_of, lessons_in, removed
from agentos.evolver.policy import ONE_SIDED, Policy
from agentos.evolver.propose.proposing import with_control
from agentos.evolver.select.curate import TaskSets
from agentos.evolver.verdict.gates import control_trials, is_asked
from agentos.evolver.verdict.judge import judge, recompute
from agentos.evolver.verdict.pairing import FIRST
from agentos.ports import Attempt
from agentos.testing import FakeExecutor, FakeRegistry, MemoryLedger, attempt

World = Any  # of conftest

PATH = "memory/default/memory.md"
POLICY = Policy()
BASE, TREE, NONE = Snapshot("base", "tree0"), Snapshot("cand", "tree1"), Snapshot("none", "tree2")
MANIFEST = Manifest("evd-1", "cause", "edit", (PATH,), (), (), Layer.MEMORY, "why")
EDIT = Edit({PATH: "# Lessons\n\n- a\n- b\n"}, "edit", "lesson ADD")
CANDIDATE = Candidate("cand-1-1", "evo-1", "lesson", 1, MANIFEST, EDIT, BASE, TREE, control=NONE)
SETS = {"e": TrialSet.EVIDENCE, "g": TrialSet.GUARD, "h": TrialSet.HOLD_OUT}
SIDES = {Arm.BASE: BASE, Arm.CANDIDATE: TREE, Arm.CONTROL: NONE}


def trials(task: str, *, first: int = 0, number: int = 0, answers: str = "", **letters: str) -> list[Trial]:
    """``base``, ``candidate``, ``control``: a letter a repeat, p passes, f fails, x cannot be replayed."""
    made = []
    for arm, snapshot in SIDES.items():
        for repeat, letter in enumerate(letters.get(arm.value, "")):
            result = {"p": Result.PASSED, "f": Result.FAILED, "x": Result.NOT_REPLAYABLE}[letter]
            answer = answers if arm is Arm.CANDIDATE and answers else f"{task}-{letter}"
            made.append(
                Trial(
                    id=f"{task}-{arm}-{repeat}",
                    evolution_id="evo-1",
                    candidate_id="" if arm is Arm.BASE else CANDIDATE.id,
                    task_id=task,
                    set=SETS[task[0]],
                    arm=arm,
                    repeat=first + repeat,
                    snapshot=snapshot,
                    outcome=Outcome(result, float(letter == "p"), ""),
                    answer_sha256=digest(answer),
                    sandbox="fake",
                    level="none",
                    number=number if arm is Arm.CANDIDATE else 0,
                )
            )
    return made


def decide(*groups: list[Trial], candidate: Candidate = CANDIDATE) -> tuple[Decision, str]:
    verdict = judge(candidate, [trial for group in groups for trial in group], POLICY)
    return verdict.decision, "; ".join(verdict.reasons)


MENDED = trials("e1", base="ff", candidate="pp", control="ff")
KEPT = [trials(name, base="pp", candidate="pp", control="p") for name in ("g1", "g2", "h1")]


def test_what_beats_base_and_control_is_promoted() -> None:
    decision, why = decide(MENDED, *KEPT)
    assert decision is Decision.PROMOTE
    assert "with nothing remembered 0 of 2 trials of the evidence pass" in why


def test_without_its_control_nothing_is_promoted() -> None:
    bare = [[trial for trial in group if trial.arm is not Arm.CONTROL] for group in (MENDED, *KEPT)]
    decision, why = decide(*bare)
    assert decision is Decision.HOLD
    assert "without any memory are missing" in why
    assert decide(*bare, candidate=replace(CANDIDATE, control=None))[0] is Decision.HOLD
    other = replace(CANDIDATE, edit=Edit({"prompt/default/prompt.md": "x"}, "e", "o"), control=None)
    assert not is_asked(other)
    assert decide(*bare, candidate=other)[0] is Decision.PROMOTE


def test_a_control_on_another_tree_holds() -> None:
    moved = [
        replace(trial, snapshot=TREE) if trial.arm is Arm.CONTROL else trial
        for group in (MENDED, *KEPT)
        for trial in group
    ]
    assert decide(moved)[0] is Decision.HOLD
    assert decide(MENDED, *KEPT, candidate=replace(CANDIDATE, control=None))[0] is Decision.HOLD


def test_the_base_is_the_control_where_it_remembers_nothing() -> None:
    same = replace(CANDIDATE, control=BASE)
    bare = [trial for group in (MENDED, *KEPT) for trial in group if trial.arm is not Arm.CONTROL]
    assert {trial.arm for trial in control_trials(same, bare)} == {Arm.BASE}
    assert decide(bare, candidate=same)[0] is Decision.PROMOTE


def test_a_memory_that_outweighs_a_bad_one_is_rejected_and_the_bad_ones_removal_is_not() -> None:
    unearned = trials("e1", base="ff", candidate="pp", control="pp")
    decision, why = decide(unearned, *KEPT)
    assert decision is Decision.REJECT
    assert "take that one out" in why
    assert decide(unearned, *KEPT, candidate=replace(CANDIDATE, removes=True))[0] is Decision.PROMOTE


def test_what_is_remembered_may_not_be_worse_than_nothing() -> None:
    """The base fails there as well, so that the comparison with it says nothing."""
    for task in ("g3", "h3"):
        decision, why = decide(MENDED, *KEPT, trials(task, base="ff", candidate="ff", control="p"))
        assert decision is Decision.REJECT
        assert "does harm" in why
        assert ("h3" in why) is False
        removes = replace(CANDIDATE, removes=True)
        assert (
            decide(MENDED, *KEPT, trials(task, base="ff", candidate="ff", control="p"), candidate=removes)[0]
            is Decision.REJECT
        )
    assert decide(MENDED, *KEPT, trials("g3", base="ff", candidate="ff", control="x"))[0] is Decision.PROMOTE


def test_a_memory_that_dictates_an_answer_is_held_however_loose_the_checks() -> None:
    """Reward hacking: everything passes, on every side, and only the answers show it."""
    hacked = [
        trials(name, base="pp", candidate="pp", control="p", answers="42") for name in ("g1", "g2", "h1")
    ]
    decision, why = decide(MENDED, *hacked)
    assert decision is Decision.HOLD
    assert "dictate" in why
    # two tasks of three that get one answer may really have one
    assert decide(MENDED, *hacked[:2], KEPT[2])[0] is Decision.PROMOTE
    # and so may tasks that got one without it
    alike = [
        [
            replace(trial, answer_sha256="same")
            for trial in trials(name, base="pp", candidate="pp", control="p")
        ]
        for name in ("g1", "g2", "h1")
    ]
    assert decide(MENDED, *alike)[0] is Decision.PROMOTE


def test_dictating_is_not_hidden_by_work_in_which_the_memory_has_no_say() -> None:
    """In a home with much other work, most guards are of it, and are answered as ever."""
    hacked = [
        trials(name, base="pp", candidate="pp", control="p", answers="42") for name in ("g1", "g2", "h1")
    ]
    others = [trials(f"g{number}", base="pp", candidate="pp", control="p") for number in range(10, 30)]
    decision, why = decide(MENDED, *hacked, *others)
    assert decision is Decision.HOLD
    assert why.startswith("with it 3 tasks")
    assert decide(MENDED, *others)[0] is Decision.PROMOTE


def test_dictating_shows_where_the_base_is_the_control() -> None:
    hacked = [
        [trial for trial in trials(name, base="pp", candidate="pp", answers="42")]
        for name in ("g1", "g2", "h1")
    ]
    bare = trials("e1", base="ff", candidate="pp")
    assert decide(bare, *hacked, candidate=replace(CANDIDATE, control=BASE))[0] is Decision.HOLD


PAIRS = 16
VARYING: dict[str, Any] = {"first": FIRST, "number": 1}


def _varying(control: str, guards: str = "p" * PAIRS) -> list[list[Trial]]:
    """Evidence and guards that vary, decided against the base in any case."""
    many: dict[str, Any] = {
        "e1": {"base": "f" * PAIRS, "candidate": "p" * PAIRS, "control": control},
        "e2": {"base": "f" * PAIRS, "candidate": "p" * PAIRS, "control": control},
    }
    groups = [trials(name, **VARYING, **sides) for name, sides in many.items()]
    for name in ("g1", "g2", "g3", "h1", "h2", "h3"):
        groups.append(trials(name, base="p" * PAIRS, candidate="p" * PAIRS, control=guards, **VARYING))
    return groups


@pytest.mark.parametrize(
    ("control", "expected", "word"),
    [
        ("f" * PAIRS, Decision.PROMOTE, "more often"),
        ("p" * PAIRS, Decision.REJECT, "no more often than with nothing"),
        ("p" * (PAIRS - 1) + "f", Decision.HOLD, "is not shown"),
    ],
)
def test_tasks_that_vary_need_a_gain_over_nothing_at_the_same_level(
    control: str, expected: Decision, word: str
) -> None:
    decision, why = decide(*_varying(control))
    assert (decision, word in why) == (expected, True), why


def test_a_control_that_cannot_be_replayed_is_no_gain_over_nothing() -> None:
    """Neither that it fails with nothing remembered, nor that it passes."""
    lost = [trials("e1", base="ff", candidate="pp", control="xx"), *KEPT]
    for groups, earlier in ((_varying("x" * PAIRS), Decision.PROMOTE), (lost, Decision.REJECT)):
        stored = [trial for group in groups for trial in group]
        verdict = judge(CANDIDATE, stored, POLICY)
        assert (verdict.decision, verdict.kinds[0]) == (Decision.HOLD, RefusalKind.UNMEASURED)
        before = replace(POLICY, edition=ONE_SIDED - 1)
        assert judge(CANDIDATE, stored, before).decision is earlier, "as verdicts of before"
    assert (
        judge(CANDIDATE, [t for g in _varying("f" * 15 + "x") for t in g], POLICY).decision
        is Decision.PROMOTE
    )


def test_a_verdict_in_words_that_were_changed_since_stands() -> None:
    stored = [trial for group in _varying("f" * PAIRS) for trial in group]
    verdict = judge(CANDIDATE, stored, POLICY)
    earlier = tuple(said.replace("more often", "oftener") for said in verdict.reasons)
    assert earlier != verdict.reasons
    assert recompute(replace(verdict, reasons=earlier), CANDIDATE, stored, POLICY) == []


def test_varying_guards_may_not_pass_less_often_than_with_nothing() -> None:
    """Where the base's own memories make them fail already, at a rate that the base still serves at."""
    groups = _varying("f" * PAIRS)
    mixed = "pppf" * 4
    for name in ("g1", "g2", "g3", "h1", "h2", "h3"):
        groups.append(
            trials(
                f"{name}b",
                base=mixed[:PAIRS],
                candidate=mixed[:PAIRS],
                control="p" * PAIRS,
                **VARYING,
            )
        )
    decision, why = decide(*groups)
    assert decision is Decision.REJECT
    assert "nothing remembered at all it passes more often" in why


def test_a_verdict_with_a_control_is_recomputed_and_a_changed_control_shows() -> None:
    judged = [trial for group in (MENDED, *KEPT) for trial in group]
    verdict = judge(CANDIDATE, judged, POLICY)
    assert recompute(verdict, CANDIDATE, judged, POLICY) == []
    assert recompute(verdict, CANDIDATE, [one for one in judged if one.arm is not Arm.CONTROL], POLICY)
    forged = [
        replace(trial, answer_sha256="other") if trial.arm is Arm.CONTROL else trial for trial in judged
    ]
    assert any("trials_sha256" in fault for fault in recompute(verdict, CANDIDATE, forged, POLICY))


# --- over the whole of trying a candidate -----------------------------------------------------


class Remembering:
    """Tasks ``say X`` that pass by what is remembered: ``X`` mends one, ``not X`` breaks it without ``even X``."""

    def __init__(self, parts: Dependencies, ledger: MemoryLedger, memory: str) -> None:
        self.registry = FakeRegistry({PATH: memory, "memory/default/resource.toml": ""})
        self.ledger = ledger
        self.executor = FakeExecutor(self._script)
        self.parts = replace(parts, snapshots=self.registry, candidates=self.registry, executor=self.executor)
        self.ids = [self._task(word) for word in ("hard", "easy1", "easy2", "easy3")]

    def _task(self, word: str) -> str:
        now = self.parts.now()
        made = Task(f"task-{word}", word, f"say {word}", None, (), "default", Limits(), (), (), None, now)
        self.ledger.add_task(made, Share.OPEN)
        return made.id

    def _script(self, task: Task, snapshot: Snapshot) -> Attempt:
        texts = self.registry.files(snapshot, "memory")
        told = {lesson.text for text in texts.values() for lesson in lessons_in(text.decode())}
        word = task.goal.split()[1]
        knows = word.startswith("easy") or word in told
        hurt = f"not {word}" in told and f"even {word}" not in told
        dictated = next((text.removeprefix("always ") for text in told if text.startswith("always ")), "")
        return attempt(passed=bool(dictated) or (knows and not hurt), answer=dictated or word)

    def tried(self, edit: str) -> tuple[Verdict, int]:
        """The verdict on one edit of the memory, and how many trials its control took."""
        parts, base = self.parts, self.registry.stable()
        parts.records.put(
            Evidence("evd-1", Fingerprint("f", "", "", ""), (), (self.ids[0],), parts.now(), "")
        )
        parts.records.put(Evolution("evo-1", "evd-1", "f", EvolutionState.PROPOSING, base))
        snapshot = self.registry.add_candidate("cand-1-1", base, {PATH: edit})
        candidate = Candidate(
            "cand-1-1", "evo-1", "lesson", 1, MANIFEST, Edit({PATH: edit}, "e", "o"), base, snapshot
        )
        candidate = with_control(parts, candidate)
        parts.records.put(candidate)
        evidence, *guards, hold_out = self.ids
        try_candidate(parts, candidate.id, TaskSets((evidence,), tuple(guards), (hold_out,)))
        (verdict,) = parts.records.find(Verdict)
        stored = trials_of(parts, candidate)
        assert recompute(verdict, candidate, stored, parts.policy) == []
        return verdict, sum(trial.arm is Arm.CONTROL for trial in stored)


def test_the_first_memory_needs_no_trial_more(world: World) -> None:
    made = Remembering(world.parts, world.ledger, "# Lessons\n")
    verdict, control = made.tried(added("# Lessons\n", "hard"))
    assert (verdict.decision, control) == (Decision.PROMOTE, 0)


def test_a_later_one_is_tried_without_any(world: World) -> None:
    memory = added("# Lessons\n", "other")
    made = Remembering(world.parts, world.ledger, memory)
    verdict, control = made.tried(added(memory, "hard"))
    # one task of evidence four times, three others once
    assert (verdict.decision, control) == (Decision.PROMOTE, 7)


def test_a_loser_costs_no_control(world: World) -> None:
    memory = added("# Lessons\n", "other")
    verdict, control = Remembering(world.parts, world.ledger, memory).tried(added(memory, "useless"))
    assert (verdict.decision, control) == (Decision.REJECT, 0)


def test_outweighing_a_bad_memory_is_caught_and_taking_it_out_is_not(world: World) -> None:
    memory = added(added("# Lessons\n", "not easy0"), "other")
    made = Remembering(world.parts, world.ledger, memory)
    made.ids[0] = made._task("easy0")
    assert made.tried(added(memory, "even easy0"))[0].decision is Decision.REJECT


def test_taking_out_a_bad_memory_is_promoted(world: World) -> None:
    memory = added(added("# Lessons\n", "not easy0"), "other")
    made = Remembering(world.parts, world.ledger, memory)
    made.ids[0] = made._task("easy0")
    assert made.tried(removed(memory, id_of("not easy0")))[0].decision is Decision.PROMOTE


def test_a_reward_hacking_memory_is_caught(world: World) -> None:
    """The checks of all tasks let any firm answer pass; guards and hold-out see nothing."""
    made = Remembering(world.parts, world.ledger, "# Lessons\n")
    verdict, _ = made.tried(added("# Lessons\n", "always 42"))
    assert verdict.decision is Decision.HOLD
    assert verdict.broken == ()
    assert verdict.fixed == ("task-hard",)
    assert "dictate" in verdict.reasons[0]
