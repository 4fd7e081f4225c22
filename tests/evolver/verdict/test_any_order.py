"""A verdict follows from its trials, whatever order a ledger has them in: on drawn trials, by each edition of the rules."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from agentos.domain import (
    Arm,
    Candidate,
    CheckResult,
    Cost,
    Decision,
    Edit,
    EditedName,
    Layer,
    Manifest,
    Outcome,
    Result,
    Snapshot,
    Trial,
    TrialSet,
)
from agentos.evolver.policy import EDITION, Policy
from agentos.evolver.verdict.judge import judge, recompute
from agentos.evolver.verdict.pairing import FIRST

SIDES = {arm: Snapshot(arm.value, f"tree-{arm.value}") for arm in Arm}
MANIFEST = Manifest("evd-1", "cause", "edit", (), (), (), Layer.TOOL, "why")
OF_A_TOOL = Candidate(
    id="cand-1-1",
    evolution_id="evo-1",
    proposer="repair",
    rank=1,
    manifest=MANIFEST,
    edit=Edit({"tool/x/tool.py": ""}, "edit", "op"),
    base=SIDES[Arm.BASE],
    snapshot=SIDES[Arm.CANDIDATE],
    edited=(EditedName("tool/x/tool.py:1:run", ("run",)),),
    prior=1e-3,
)
OF_A_MEMORY = replace(
    OF_A_TOOL, edit=Edit({"memory/m/memory.md": ""}, "edit", "op"), control=SIDES[Arm.CONTROL], edited=()
)


def drawn(chance: random.Random, candidate: Candidate) -> Iterator[Trial]:
    """Trials of a repair that mostly mends and seldom breaks; some tasks vary, some trials cannot be replayed."""
    arms = [arm for arm in Arm if arm is not Arm.CONTROL or candidate.control]
    for which, most in zip(TrialSet, (6, 4, 3, 25), strict=True):
        for place in range(chance.randint(which is TrialSet.EVIDENCE, most)):
            before = chance.random() < (0.1 if which is TrialSet.EVIDENCE else 0.9)
            varies = which is not TrialSet.FRESH and chance.random() < 0.1
            mends = chance.random() < 0.93
            alike, work = chance.random() < 0.2, chance.choice(["", "a", "b"])
            for repeat in range(FIRST, FIRST + 20) if varies else range(2):
                for arm in arms:
                    is_own = arm is Arm.CANDIDATE
                    passed = (mends if is_own else before) is (chance.random() < (0.8 if varies else 0.998))
                    result = Result.PASSED if passed else Result.FAILED
                    yield Trial(
                        id=f"{which}-{place}-{arm}-{repeat}",
                        evolution_id="evo-1",
                        candidate_id="" if arm is Arm.BASE else candidate.id,
                        task_id=f"{which}-{place}",
                        set=which,
                        arm=arm,
                        repeat=repeat,
                        snapshot=SIDES[arm],
                        outcome=Outcome(
                            Result.NOT_REPLAYABLE if chance.random() < 0.003 else result,
                            float(passed),
                            "",
                            checks=(CheckResult("equals", passed),),
                            cost=Cost(chance.random(), 0.1, chance.randint(0, 99), chance.random() / 100),
                        ),
                        answer_sha256=chance.choice("aab"),
                        sandbox="fake",
                        level="none",
                        number=int(varies and is_own),
                        alike=alike and is_own,
                        look=int(is_own),
                        renamed=bool(repeat % 2),
                        reached=("run",),
                        work=work,
                    )


@pytest.mark.parametrize("edition", range(1, EDITION + 1))
def test_a_verdict_is_computed_again_from_trials_in_any_order(edition: int) -> None:
    policy, decided = Policy(edition=edition), set()
    for number in range(16):
        chance = random.Random(f"{edition} {number}")
        candidate = chance.choice((OF_A_TOOL, OF_A_TOOL, OF_A_MEMORY))
        trials = [*drawn(chance, candidate)]
        verdict = judge(candidate, trials, policy)
        decided.add(verdict.decision)
        chance.shuffle(trials)
        assert recompute(verdict, candidate, trials, policy) == [], number
    assert Decision.PROMOTE in decided
    assert len(decided) > 1
