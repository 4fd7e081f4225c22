"""The sentences of verdicts, word for word: a stored verdict is computed again with them, so they change by edition only.

Everything else asserts kinds, numbers and names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from agentos.domain import Arm, Outcome, Result, Snapshot, TrialSet, Verdict
from agentos.evolver.policy import CHECKED, STOOD
from agentos.evolver.verdict.paired_tests import PairCost, PairedDecision, decide
from tests.evolver.verdict import test_judge as flips
from tests.evolver.verdict.test_judge import GOOD, POLICY, bare, of, trials, unreplayable, verdict_on
from tests.evolver.verdict.test_paired_tests import RULE, rule_on, some

GOLDEN = Path(__file__).with_name("messages.txt")
WITHOUT_HOLD_OUT = {TrialSet.EVIDENCE: some(*["++++"] * 3), TrialSet.GUARD: some(*["=" * 6] * 8)}
FIRST, LATER = replace(POLICY, edition=CHECKED - 1), replace(POLICY, edition=STOOD - 1)


def by_flips() -> Iterator[Verdict]:
    moved = [replace(trial, snapshot=Snapshot("x", "other")) for group in GOOD for trial in group]
    control = Snapshot("control", "tree2")
    none = [
        replace(trial, arm=Arm.CONTROL, snapshot=control, id=f"{trial.id}-none")
        for task, letters in (("e1", "ff"), ("e2", "ff"), ("g1", "pp"), ("h1", "pp"))
        for trial in trials(task, "", letters)
    ]
    helped = [replace(trial, outcome=Outcome(Result.PASSED, 1.0, "")) for trial in none]
    other = [
        replace(trial, plugins=(f"checks/iban (bank {trial.arm})",)) for group in GOOD for trial in group
    ]
    yield from (
        verdict_on(*GOOD),
        verdict_on(*GOOD, bare("e3", "ff", "pp")),
        verdict_on(*GOOD, trials("g2", "pp", "ff")),
        verdict_on(*GOOD, trials("g2", "pp", "pf")),
        verdict_on(*GOOD, trials("h2", "pp", "ff")),
        verdict_on(*GOOD, *[trials(f"e{number}", "ff", "ff") for number in (3, 4, 5)]),
        verdict_on(*GOOD, trials("g2", "pp", "pp", (0.1, 30.0))),
        verdict_on(moved),
        verdict_on(other),
        verdict_on(),
        verdict_on(trials("e1", "ff", "pp"), policy=FIRST),
        verdict_on(of(trials("e1", "ff", "pp"), look=1), *GOOD[2:]),
        verdict_on(*GOOD, unreplayable(trials("g2", "pp", "ff"), Arm.CANDIDATE)),
        verdict_on(*GOOD, *flips.SHOWN, *flips.UNMENDED),
        verdict_on(*GOOD[:3], of(trials("h1", "pp", "pp"), look=POLICY.judge.hold_out_looks + 1)),
        verdict_on(
            *GOOD[:3], of(trials("h1", "pp", "pp"), look=POLICY.judge.hold_out_looks + 1), policy=LATER
        ),
        verdict_on(*GOOD, candidate=flips.MEMORY),
        verdict_on(*GOOD, none, candidate=replace(flips.MEMORY, control=control)),
        verdict_on(*GOOD, helped, candidate=replace(flips.MEMORY, control=control)),
    )


def by_pairs() -> Iterator[PairedDecision]:
    noisy = some(*["+-" * 3] * 8)
    yield from (
        rule_on(),
        decide({}, RULE),
        rule_on(evidence=some("++", "++", "+0")),
        rule_on(evidence=some(*["0000"] * 4)),
        rule_on(guards=some(*["=" * 4] * 15, "-" * 4)),
        rule_on(guards=some(*["-"] * 30)),
        rule_on(guards=some(*["="] * 60)),
        rule_on(hold_out=some(*["=" * 5] * 3, "-" * 5, name="hidden")),
        rule_on(guards=noisy, rules=replace(RULE, max_pairs=50), spent_usd=5.0),
        rule_on(spending=[PairCost("usd", [(1, 1.9)] * 30)]),
        rule_on(spending=[PairCost("usd", [(1, 2.1)] * 30)]),
        rule_on(spending=[PairCost("tokens", [(100, 90)] * 5)]),
        decide(WITHOUT_HOLD_OUT, RULE),
        decide({TrialSet.EVIDENCE: some(*["++++"] * 3)}, RULE),
    )


def test_the_sentences_are_what_they_were() -> None:
    told = [f"# {found.decision}\n{_lines(found.kinds, found.reasons)}" for found in by_flips()]
    told += [f"# {found.decision}, by pairs\n{_lines(found.kinds, found.reasons)}" for found in by_pairs()]
    assert "\n".join(told) == GOLDEN.read_text(encoding="utf-8")


def _lines(kinds: Sequence[str], reasons: Sequence[str]) -> str:
    return "".join(f"{kind}: {reason}\n" for kind, reason in zip(kinds, reasons, strict=True))


def test_all_kinds_of_a_comparison_are_among_them() -> None:
    seen = {kind for found in (*by_flips(), *by_pairs()) for kind in found.kinds}
    assert seen >= {
        "fixed", "ended", "gained", "guards_kept", "hold_out_kept", "no_tasks", "affordable", "control", "left_out",
        "other_trees", "no_evidence", "broken", "few_fixed", "fell", "luck", "undecided", "exhausted", "few_tasks",
        "unreplayable", "costly", "plugins", "over_fitted", "worn_out", "unmeasured",
    }  # fmt: skip
