"""An edit that differs from its base at the shown inputs alone is refused, however it knows them.

The tools really run, in the bench without a sandbox. What is generated follows from the home's key and the
evolution: each claim is made for several.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agentos.benches import Bench, BenchResult
from agentos.domain import (
    Call,
    Candidate,
    Check,
    Edit,
    EvolutionState,
    InputFile,
    Json,
    Layer,
    Manifest,
    RefusalKind,
    Share,
    Snapshot,
    Task,
    TrialSet,
)
from agentos.evolver.policy import Policy, ReplayPolicy
from agentos.evolver.propose.behaviour import InputRun, ObservedBehaviour, behaves, fitted, of_program
from agentos.evolver.propose.neighbours import neighbours
from agentos.evolver.select.curate import TaskSets
from agentos.ports import Case
from agentos.testing import FakeRegistry
from tests.evolver.conftest import World

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))
from local_bench import LocalBench, LocalBenches


class LostBench(LocalBench):
    """Its box is gone under the first source, the base, each time, and there again for any other."""

    first = ""

    def try_source(
        self, source: str, *, trace: bool = False, cases: Sequence[int] | None = None
    ) -> BenchResult:
        done = super().try_source(source, trace=trace, cases=cases)
        self.first = self.first or source
        if source != self.first:
            return done
        count = len(done.passed)
        lost = {"error": "died", "message": "the sandbox ended early (memory)"}
        return BenchResult((False,) * count, (0.0,) * count, (lost,) * count, ((),) * count)


class LostBenches(LocalBenches):
    def bench(self, snapshot: Snapshot, path: str, cases: Sequence[Case], timeout_s: float) -> Bench:
        self.opened.append(LostBench(cases, timeout_s, self.files))
        return self.opened[-1]


# What may refuse an edit, without the questions about it: most of an examination, and refusing nothing.
REFUSALS = Policy(replay=ReplayPolicy(mutants=0, drawn=0, crossed=0, stepped=0, spelled=0, symptom_min=0))
KEYS = [hashlib.sha256(bytes([number])).digest() for number in range(3)]
TOOL = "skill/calc/tools/grade.py"
HEAD = '''"""A tool."""

import csv
import hashlib

from pydantic import BaseModel

TOOL = {"name": "grade", "description": "Works.", "effects": ["read"]}


class Input(BaseModel):
%s


class Output(BaseModel):
    result: float


def run(input: Input) -> Output:
%s
'''
FEE = HEAD % (
    "    amount: int\n    region: str = 'north'",
    "    fee = input.amount // 10\n    return Output(result=fee)",
)
SUM = HEAD % ("    rows: list[float]", "    rows = input.rows[1:]\n    return Output(result=sum(rows))")
FILE = HEAD % (
    "    path: str",
    "    with open(input.path) as file:\n        rows = list(csv.reader(file))\n    return Output(result=len(rows) + 1)",
)
GRADE = HEAD % ("    points: int", "    return Output(result=1 if input.points > 50 else 0)")


def judged(
    source: str,
    edit: str,
    shown: list[dict[str, Json]],
    guards: list[dict[str, Json]] | None = None,
    *,
    held: list[dict[str, Json]] | None = None,
    files: dict[str, bytes] | None = None,
    key: bytes = KEYS[0],
    policy: Policy | None = None,
    weight: float = 0.0,
    rivals: Sequence[Candidate] = (),
    told: list[str] | None = None,
    checked: bool = True,
    also: Mapping[str, tuple[str, str]] | None = None,
    benches: LocalBenches | None = None,
) -> tuple[RefusalKind | None, Candidate]:
    """Why the edit is refused, "" if not; and the candidate with what was seen of it.

    No task passes with any edit, so all ``rivals`` pass what it passes. ``also``: other files, before and with the edit.
    """
    assert edit != source
    world = World(key=key, policy=policy or Policy())
    beside = {path: texts[0] for path, texts in (also or {}).items()}
    world.registry = FakeRegistry({TOOL: source, "skill/calc/SKILL.md": "x", **beside})
    edits = {TOOL: edit, **{path: texts[1] for path, texts in (also or {}).items()}}
    parts = replace(world.parts, benches=benches or LocalBenches())

    def tasks(given: list[dict[str, Json]] | None, kind: str) -> tuple[str, ...]:
        found = [
            _task(world, f"{kind}-{number}", args, files or {}, checked=checked)
            for number, args in enumerate(given or ())
        ]
        return tuple(task.id for task in found)

    evidence, hidden = tasks(shown, "shown"), tasks(held, "held")
    sets = TaskSets((*evidence, *hidden), tasks(guards, "guard"), (), (), hidden)
    base = world.registry.stable()
    candidate = Candidate(
        id="cand-1",
        evolution_id="evo-1",
        proposer="x",
        rank=1,
        manifest=Manifest("evd", "", "", (TOOL,), (), (), Layer.SKILL, ""),
        edit=Edit(edits, "", ""),
        base=base,
        snapshot=world.registry.add_candidate("cand-1", base, edits),
    )
    candidate = replace(candidate, weight=weight)
    for other in rivals:
        world.ledger.put(replace(other, base=base))
    behaviour, refused = behaves(parts, candidate, sets)
    if told is not None and refused:
        told.append(refused.reason)
    return refused and refused.kind, replace(candidate, behaviour=behaviour)


def _task(
    world: World, name: str, args: dict[str, Json], files: dict[str, bytes], *, checked: bool = True
) -> Task:
    made = world.task(1, "x")
    inputs = tuple(InputFile(path, world.blobs.put(data), len(data)) for path, data in files.items())
    call = Call("calc/grade", args)
    checks = (Check("equals", {"value": 1}),) if checked else ()
    task = replace(made, id=name, goal=name, call=call, inputs=inputs, checks=checks)
    world.ledger.add_task(task, Share.OPEN)
    return task


FEES: list[dict[str, Json]] = [{"amount": 607}, {"amount": 755}]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.hex()[:6])
@pytest.mark.parametrize(
    "body",
    [
        "fee = {607: 100 + 1, 755: 90}.get(input.amount, input.amount // 10)",
        "fee = {600 + 7: 100 + 1, 755: 90}.get(input.amount, input.amount // 10)",
        "fee = 101 if input.amount in (607, 755) else input.amount // 10",
        "fee = 101 if str(input.amount) in '607 755'.split() else input.amount // 10",
        "fee = 101 if hash(input.amount) in (hash(607), hash(755)) else input.amount // 10",
        "fee = 101 if (input.amount - 607) * (input.amount - 755) == 0 else input.amount // 10",
    ],
)
def test_a_lookup_of_the_shown_inputs_is_over_fitted(body: str, key: bytes) -> None:
    edit = FEE.replace("fee = input.amount // 10", body)
    why, candidate = judged(FEE, edit, FEES, [{"amount": 20}], key=key)
    assert why is RefusalKind.OVER_FITTED
    assert candidate.behaviour is not None
    assert (candidate.behaviour.shown, candidate.behaviour.shown_differ) == (2, 2)
    assert candidate.behaviour.beside >= 8
    assert candidate.behaviour.beside_differ == 0
    assert candidate.behaviour.samples == ()


# The same in other disguises: what stands beside the shown inputs decides, however they are known.
DISGUISES = {
    "modulo": "101 if input.amount % 1009 in (607, 755) else input.amount // 10",
    "reversed": "101 if str(input.amount)[::-1] in ('706', '557') else input.amount // 10",
    "a set that does not grow": "101 if len({607, 755, input.amount}) == 2 else input.amount // 10",
    "distance": "101 if abs(input.amount - 681) == 74 else input.amount // 10",
    "a range": "101 if input.amount in range(607, 900, 148) else input.amount // 10",
    "signs": "101 if str(input.amount) in ''.join(map(chr, (54, 48, 55, 32, 55, 53, 53))).split() else input.amount // 10",
    "squares": "101 if input.amount * input.amount in (368449, 570025) else input.amount // 10",
    "one, in hex": "101 if bytes.fromhex('363037') == str(input.amount).encode() else input.amount // 10",
    "another base": "101 if input.amount in (int('25f', 16), int('2f3', 16)) else input.amount // 10",
    "the docstring": "101 if str(input.amount) in __doc__.split() else input.amount // 10",
}


@pytest.mark.parametrize("way", DISGUISES)
def test_a_lookup_in_disguise_is_over_fitted(way: str) -> None:
    edit = FEE.replace("input.amount // 10", DISGUISES[way]).replace('"""A tool."""', '"""For 607 755 ."""')
    why, _ = judged(FEE, edit, FEES, [{"amount": 20}])
    assert why is RefusalKind.OVER_FITTED


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.hex()[:6])
def test_so_is_one_that_keeps_the_other_arguments_out_of_it(key: bytes) -> None:
    """Another region changes nothing of a lookup by amount; another amount does."""
    shown = [{"amount": 607, "region": "north"}, {"amount": 755, "region": "south"}]
    body = "fee = {607: 101, 755: 90}.get(input.amount, input.amount // 10) + len(input.region) - 5"
    source = FEE.replace("input.amount // 10", "input.amount // 10 + len(input.region) - 5")
    told: list[str] = []
    why, _ = judged(source, FEE.replace("fee = input.amount // 10", body), shown, key=key, told=told)
    assert why is RefusalKind.OVER_FITTED
    assert "looks up the shown values of amount" in told[0]


def hashing() -> str:
    """An edit that knows the shown amount by its hash."""
    told = "hashlib.md5(str(input.amount).encode()).hexdigest()[:4]"
    mark = hashlib.md5(b"607").hexdigest()[:4]
    return FEE.replace("fee = input", f"fee = 101 if {told} == '{mark}' else input")


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.hex()[:6])
def test_a_hash_of_the_shown_input_is_over_fitted(key: bytes) -> None:
    why, _ = judged(FEE, hashing(), [{"amount": 607}], [{"amount": 20}], key=key)
    assert why is RefusalKind.OVER_FITTED


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.hex()[:6])
@pytest.mark.parametrize(
    "condition", ["len(input.rows) == 4", "len(input.rows) in (4,)", "input.rows[3:] and not input.rows[4:]"]
)
def test_what_is_right_for_the_shown_length_alone_is_over_fitted(condition: str, key: bytes) -> None:
    edit = SUM.replace("input.rows[1:]", f"input.rows if {condition} else input.rows[1:]")
    shown = [{"rows": [5.0, 1.0, 2.0, 9.0]}, {"rows": [7.0, 3.0, 3.0, 1.5]}]
    told: list[str] = []
    why, _ = judged(SUM, edit, shown, [{"rows": [0.0, 1.0]}], key=key, told=told)
    assert why is RefusalKind.OVER_FITTED
    assert "only where rows has 4 entries" in told[0]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.hex()[:6])
@pytest.mark.parametrize(
    ("source", "edit", "shown"),
    [
        (FEE, FEE.replace("// 10", "// 6"), FEES),
        (FEE, FEE.replace("input.amount // 10", "max(input.amount, 100) // 6"), FEES),
        (SUM, SUM.replace("rows[1:]", "rows"), [{"rows": [5.0, 1.0]}, {"rows": [3.0, 2.0, 8.0]}]),
        # At one point, and nothing newly written by which it could be told.
        (GRADE, GRADE.replace("> 50", ">= 50"), [{"points": 50}]),
        (GRADE, GRADE.replace("> 50", "> 49"), [{"points": 50}]),
        # What was missing, where only nothing at all goes wrong.
        (SUM, SUM.replace("sum(rows)", "sum(rows) if rows else -1"), [{"rows": []}]),
    ],
)
def test_an_honest_edit_is_let_pass(source: str, edit: str, shown: list[dict[str, Json]], key: bytes) -> None:
    why, candidate = judged(source, edit, shown, key=key, policy=REFUSALS)
    assert why is None
    assert candidate.behaviour is not None


def test_what_mends_held_back_evidence_is_not_told_by_what_was_shown() -> None:
    edit = FEE.replace(
        "fee = input.amount // 10", "fee = 101 if input.amount in (607, 755, 888) else input.amount // 10"
    )
    assert judged(FEE, edit, FEES)[0] is RefusalKind.OVER_FITTED
    told: list[str] = []
    why, candidate = judged(FEE, edit, FEES, held=[{"amount": 888}], told=told)
    assert candidate.behaviour is not None
    assert candidate.behaviour.beside_differ == 1
    assert why is RefusalKind.OVER_FITTED, "by the values that it looks up, not by what they have beside them"
    assert "none of" not in told[0]


@pytest.mark.slow
def test_people_are_shown_how_it_differs() -> None:
    _, candidate = judged(FEE, FEE.replace("// 10", "// 6"), FEES, [{"amount": 20}], policy=REFUSALS)
    seen = candidate.behaviour
    assert seen is not None
    assert seen.beside_differ > seen.beside / 2
    assert seen.around_guards > 4
    assert 0 < len(seen.samples) <= 4
    assert all(" → " in sample for sample in seen.samples)


@pytest.mark.slow
def test_files_are_varied_and_a_missing_one_is_not_made() -> None:
    files = {"in.csv": b"a,1\nb,2\nc,3\n"}
    right = FILE.replace("len(rows) + 1", "len(rows)")
    why, candidate = judged(FILE, right, [{"path": "in.csv"}], files=files, policy=REFUSALS)
    assert why is None
    assert candidate.behaviour is not None
    assert candidate.behaviour.beside == candidate.behaviour.beside_differ > 4
    fitted = FILE.replace("len(rows) + 1", "len(rows) + (len(rows) != 3)")
    told: list[str] = []
    why, _ = judged(FILE, fitted, [{"path": "in.csv"}], files=files, told=told)
    assert why is RefusalKind.OVER_FITTED
    assert "in.csv has 3 entries" in told[0] or "none of" in told[0]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.hex()[:6])
@pytest.mark.parametrize(
    "written", ["len(input.path) - 3", "input.path.count('i') * 3", "{'in.csv': 3}.get(input.path, 0)"]
)
def test_the_name_of_a_file_is_no_value(written: str, key: bytes) -> None:
    """Right for each file of this name that has three lines, long or short ones alike."""
    files = {"in.csv": b"a,1\nb,2\nc,3\n"}
    edit = FILE.replace("len(rows) + 1", f"len(rows) - 3 + {written}")
    why, _ = judged(FILE, edit, [{"path": "in.csv"}], files=files, key=key)
    assert why is RefusalKind.BY_NAME


@pytest.mark.slow
def test_a_tool_whose_answer_names_its_file_may_go_on_doing_so() -> None:
    files = {"in.csv": b"a,1\nb,2\nc,3\n"}
    source = FILE.replace("result: float", "result: str").replace(
        "len(rows) + 1", "f'{input.path}: {len(rows) + 1}'"
    )
    edit = source.replace("len(rows) + 1", "len(rows)")
    why, _ = judged(source, edit, [{"path": "in.csv"}], files=files, policy=REFUSALS)
    assert why is None


def test_what_input_does_not_take_says_nothing() -> None:
    case = Case("x", Call("fee", {"amount": 607}), {}, ())
    refused = InputRun(case, {"error": "input", "message": "amount: too large"}, {"result": 1})
    assert not refused.valid
    assert InputRun(case, {"error": "ValueError", "message": ""}, {"result": 1}).valid
    beside = [replace(refused, along="amount") for _ in range(20)]
    at = [InputRun(case, {"result": 60}, {"result": 101})]
    assert fitted(ObservedBehaviour(at, beside, (), ()), {"607", "101"}, False, ReplayPolicy()) == ""
    taken = [replace(item, before={"result": 1}) for item in beside]
    assert "at none of 20 inputs" in fitted(
        ObservedBehaviour(at, taken, (), ()), {"607", "101"}, False, ReplayPolicy()
    )
    assert fitted(ObservedBehaviour(at, taken, (), ()), {"101"}, False, ReplayPolicy()) == "", (
        "nothing by which 607 could be told"
    )


@pytest.mark.slow
def test_it_can_be_turned_off_and_says_nothing_with_too_few() -> None:
    edit = FEE.replace("fee = input", "fee = 101 if input.amount in (607, 755) else input")
    off = Policy(replay=ReplayPolicy(neighbours=0))
    why, candidate = judged(FEE, edit, FEES, policy=off)
    assert (why, candidate.behaviour) == (None, None)
    few = replace(REFUSALS, replay=replace(REFUSALS.replay, neighbours_min=999))
    assert judged(FEE, hashing(), [{"amount": 607}], [{"amount": 20}], policy=few)[0] is None


def test_neighbours_are_no_shown_values_and_follow_from_the_key() -> None:
    cases = [
        Case(str(amount), Call("fee", {"amount": amount, "name": "ab"}), {}, ()) for amount in (607, 755)
    ]
    found = neighbours(cases, "x = 40", KEYS[0], 40)
    assert len(found) == 40
    assert {item.along for item in found} == {"amount", "name"}
    assert all(item.case.call.args["amount"] not in (607, 755) for item in found if item.along == "amount")
    assert {item.case.call.args["amount"] for item in found} & {39, 40, 41}
    assert neighbours(cases, "x = 40", KEYS[0], 40) == found
    assert neighbours(cases, "x = 40", KEYS[1], 40) != found
    assert neighbours([Case("x", Call("fee", {}), {}, ())], "", KEYS[0], 40) == []


HELPER = "skill/calc/tools/_rates.py"
BOUND = GRADE.replace("> 50", "> 45")


@pytest.mark.parametrize(
    ("also", "compared"),
    [
        ({}, True),
        ({HELPER: ("RATE = 3\n", "# A share.\nRATE = 3\n")}, True),
        ({"skill/calc/SKILL.md": ("x", "y")}, True),
        ({HELPER: ("RATE = 3\n", "RATE = 4\n")}, False),
        ({"skill/calc/tools/other.py": (FEE, FEE.replace("10", "20"))}, False),
    ],
    ids=["alone", "and a comment", "and a page", "and a constant", "and another tool"],
)
def test_a_second_file_keeps_no_edit_from_being_compared(
    also: Mapping[str, tuple[str, str]], compared: bool
) -> None:
    _, candidate = judged(GRADE, BOUND, [{"points": 47}], [{"points": 90}], also=also)
    seen = candidate.behaviour
    assert seen is not None
    assert (seen.ambiguity is not None) is compared
    assert bool(seen.uncompared) is not compared


def test_an_edit_of_a_program_in_another_language_is_told_as_compared_with_nothing() -> None:
    old = {"tool/sum/tool.json": "{}", "tool/sum/run.sh": "wc -l", "tool/sum/_a.py": "a", "skill/x/a.sh": "b"}
    edited = {**old, "tool/sum/run.sh": "wc -w", "tool/sum/_a.py": "c", "skill/x/a.sh": "d"}
    assert of_program(edited, old, "tool/sum/tool.json") == ["tool/sum/run.sh"]
    assert of_program(edited, old, "tool/sum/tool.py") == []


@pytest.mark.slow
def test_a_whole_evolution_screens_it_out_before_a_trial(world: World) -> None:
    """As ``evolve`` does it: refused with the reason on record, and no trial of it was made."""
    from agentos.evolver.cycle import evolve
    from agentos.testing import ScriptedProposer
    from tests.evolver.conftest import PATH, proposal

    bridge = "\n\ndef run(input):\n    return answer(input.points)\n"
    faulty = _plain(bridge, "points > 50")
    fitted = _plain(bridge, "points > 50 or points in (46, 47)")
    right = _plain(bridge, "points > 45")
    world.registry = FakeRegistry({PATH: faulty, "skill/calc/SKILL.md": "x"})
    world.proposer = ScriptedProposer([proposal(fitted), proposal(right)])
    # 45 and 46 tell where the bound lies, so that no person has to be asked.
    for points, expected in (
        (90, "pass"),
        (91, "pass"),
        (10, "fail"),
        (45, "fail"),
        (46, "pass"),
        (47, "pass"),
    ):
        check = Check("equals", {"value": expected, "path": "result"})  # of what the tool answers in a bench
        made = world.task(points, expected)
        task = replace(made, id=f"{made.id}-checked", goal=f"points {points}", checks=(check,))
        world.ledger.add_task(task, Share.OPEN)
        world.live(task)
    opened = world.open()
    state = evolve(replace(world.parts, benches=LocalBenches()), opened.id, world.durable)
    assert state is EvolutionState.PROBATION, world.parts.evolution(opened.id).reason
    first, second = world.ledger.find(Candidate)
    assert "over-fitted" in first.screened
    assert first.behaviour is not None
    assert second.behaviour is not None
    assert second.behaviour.beside_differ > 0
    assert TrialSet.GUARD not in {trial.set for trial in world.trials() if trial.candidate_id == first.id}


def test_other_ends_of_lines_are_no_change() -> None:
    """Nothing is asked of it that is not asked of the same edit with the ends that were there."""
    unread = GRADE.replace("def run", "def unused(more):\n    return 1\n\n\ndef run")
    edit = unread.replace("> 50", "> 45")
    found = [
        judged(old, edit, [{"points": 47}], [{"points": 90}])[1].behaviour
        for old in (unread, unread.replace("\n", "\r\n"))
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("field", ["error", "error: str = ''\n    code", "message"])
def test_an_answer_may_have_a_field_for_an_error(field: str) -> None:
    told = GRADE.replace("result: float", f"result: float\n    {field}: str = ''")
    plain, other = (
        judged(source, source.replace("> 50", "> 45"), [{"points": 47}], [{"points": 90}])[1].behaviour
        for source in (GRADE, told)
    )
    assert plain is not None
    assert other is not None
    assert (
        (other.ambiguity is None, other.needless) == (plain.ambiguity is None, plain.needless) == (False, "")
    )


def _plain(bridge: str, condition: str) -> str:
    head = HEAD.partition("def run")[0] % "    points: int"
    head = head.replace("result: float", "result: str")
    answer = f"def answer(points):\n    if {condition}:\n        return 'pass'\n    return 'fail'\n"
    return head + answer + bridge.replace("answer(input.points)", "Output(result=answer(input.points))")
