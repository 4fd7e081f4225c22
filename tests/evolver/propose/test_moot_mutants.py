"""What an edit newly writes has to be pinned down by the tasks: made moot it must fail one; and ways around that."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from agentos.domain import Ambiguity, Call, Candidate, Check, Json, RefusalKind
from agentos.evolver.policy import Policy, ReplayPolicy
from agentos.evolver.propose.ambiguity import EditFindings, Known, compared
from agentos.evolver.propose.edit_mutants import mutants
from agentos.evolver.propose.moot_mutants import constant_tests, idle, moot, near_texts, undone
from agentos.evolver.propose.neighbours import spelled
from agentos.evolver.verdict.doubts import doubts
from agentos.ports import Case
from tests.evolver.propose.test_behaviour import FEE, REFUSALS, judged

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))
from local_bench import LocalBench

OLD = '''"""A tool."""

from pydantic import BaseModel

TOOL = {"name": "count", "description": "Works.", "effects": []}


class Input(BaseModel):
    names: list[str] = []
    limit: int = 3


class Output(BaseModel):
    result: list[str]
    many: bool


def run(input: Input) -> Output:
    found = []
    count = 0
    for name in input.names:
        count += 1
        found.append(name.strip(".csv"))
    return Output(result=found, many=count > input.limit)
'''
KEYS = [bytes([number]) * 32 for number in range(4)]
# What has no effect is looked for, whatever the number of rivals beside it: these cost the time.
ONE_RIVAL = ReplayPolicy(mutants=1)
WITHOUT_RIVALS = ReplayPolicy(mutants=0)


def changed(*pairs: tuple[str, str]) -> str:
    text = OLD
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(
    ("new", "wanted"),
    [
        (("count > input.limit)", "count > input.limit or found == [])"), "with found == [] always true"),
        (("count > input.limit)", "count > input.limit and found != [])"), "with found != [] always false"),
        (("        found.", "        if name in found:\n            break\n        found."), "without break"),
        (("        found.", "        if name in found:\n            break\n        found."), "with continue for break"),
        (("        found.", "        if name in found:\n            break\n        found."), "with name in found always true"),
        (("name.strip(", "name.lower().rstrip("), "with name for name.lower()"),
        (("name.strip(", "name.rstrip("), "with removesuffix for rstrip"),
        (("count += 1", "count += abs(len(name))"), "with len(name) for abs(len(name))"),
        (("append(name", "append(name[1:4]"), "without the bound 4"),
        (("append(name", "append((name if name else input.names[0])"), "with name always true"),
        (("count += 1", "count += round(len(name) / 2)"), "with halves rounded up"),
        ((".csv", ".txt"), "with '.tx' for '.txt'"),
        (("input.names:", "[n for n in input.names if n != '']:"), "with n != '' always true"),
        (("append(name", "append(input.names[-1]"), "with max(…, key=len)"),
        (("append(name", "append(input.names[len(input.names) - 1]"), "with min(…)"),
        (("input.names:", "sorted(input.names):"), "with the order reversed"),
        (("count > input.limit", "count > 3"), "with count > input.limit beside count > 3 (or)"),
        (("strip(\".csv\")", "strip(\".txt\")"), "with '.csv' beside '.txt'"),
        (("count += 1", "count += 2"), "with count += 1 beside count += 2"),
        (("append(name", "append(put(1, 2, 3, name)"), "with name for put(1, 2, 3, name)"),
        (("append(name", "append(put(by=len(name))"), "with len(name) for put(by=len(name))"),
    ],
)  # fmt: skip
def test_each_thing_that_is_newly_written_is_made_moot(new: tuple[str, str], wanted: str) -> None:
    found = mutants(OLD, changed(new), 32)
    assert f"the same edit {wanted}" in found
    assert all(source not in (OLD, changed(new)) for source in found.values())


def test_what_stood_there_before_is_not_made_moot() -> None:
    assert moot(OLD, OLD) == {}
    found = moot(OLD, changed(("name.strip(", "name.rstrip(")))
    assert not any("count" in name or "input.names" in name for name in found)
    # what only moved into a block was there as well
    moved = changed(
        ("        found.append(name.strip", "        if name:\n            found.append(name.strip")
    )
    assert {name.removeprefix("the same edit ") for name in moot(OLD, moved)} == {
        "with name always true",
        "with name always false",
    }
    assert moot("def f(:", OLD) == moot(OLD, "def f(:") == idle(OLD, "def f(:") == {}
    assert near_texts(OLD, "def f(:") == []


def case(number: int, wanted: Mapping[str, Json], **args: Json) -> Case:
    return Case(f"task-{number}", Call("count", args), {}, (Check("equals", {"value": dict(wanted)}),))


def found(
    own: str, tasks: list[Case], evidence: int, key: bytes, rules: ReplayPolicy, old: str = OLD
) -> EditFindings:
    known = Known(tasks, set(range(evidence, len(tasks))), key, rules)
    return compared(lambda cases: LocalBench(cases, 0.5), known, old, own, {})


def said(names: list[str], result: list[str], *, many: bool) -> tuple[list[str], dict[str, Json]]:
    return names, {"result": [*result], "many": many}


NAMES = [
    said(["csv_old.csv", "a.csv"], ["csv_old", "a"], many=False),
    said(["v.1.csv", "b.csv"], ["v.1", "b"], many=False),
    said(["wind.csv"], ["wind"], many=False),
    said(["rain.csv", "sun.csv"], ["rain", "sun"], many=False),
    said(["a.csv", "b.csv", "n.csv", "m.csv"], ["a", "b", "n", "m"], many=True),
]
TELLING = said(["basics.csv"], ["basics"], many=False)


def names(given: list[tuple[list[str], dict[str, Json]]]) -> list[Case]:
    return [case(number, wanted, names=[*each]) for number, (each, wanted) in enumerate(given)]


@pytest.mark.parametrize("key", KEYS[:2], ids=lambda key: key.hex()[:4])
@pytest.mark.slow
def test_a_method_whose_near_relative_passes_as_well_is_a_question(key: bytes) -> None:
    """``rstrip`` cuts off letters, too: no name that was shown ends in one of them, and inputs are made that do."""
    rules = ReplayPolicy()
    wrong, right = changed(("name.strip(", "name.rstrip(")), changed(("name.strip(", "name.removesuffix("))
    asked = found(wrong, names(NAMES), 2, key, rules).ambiguity
    assert asked is not None
    assert "removesuffix" in asked.rival
    assert found(right, names([*NAMES, TELLING]), 2, key, rules).ambiguity is None
    # without inputs that are spelled with its text few would show it
    assert not any("csv" in str(item.case.call.args) for item in spelled(names(NAMES), [], key, 32))


FIRST = '''"""A tool."""

from pydantic import BaseModel

TOOL = {"name": "count", "description": "Works.", "effects": []}


class Input(BaseModel):
    names: list[str]


class Output(BaseModel):
    first: str
    marked: list[str]


def run(input: Input) -> Output:
    names = input.names
    marked = [name for name in names if any(mark in name for mark in (",", ";"))]
    return Output(first=names[0], marked=marked)
'''


def first(number: int, names: str, wanted: str, marked: str = "") -> Case:
    answer = {"first": wanted, "marked": marked.split()}
    return Case(
        f"task-{number}", Call("count", {"names": names.split()}), {}, (Check("equals", {"value": answer}),)
    )


LONGEST = [
    first(0, "a bcd", "bcd"),
    first(1, "bcd a efgh", "efgh"),
    first(2, "a", "a"),
    first(3, "bc a", "bc"),
]
MARKED = [
    first(0, "a! b", "a!", "a!"),
    first(1, "c d!", "c", "d!"),
    first(2, "e,f g", "e,f", "e,f"),
    first(3, "h", "h"),
]


@pytest.mark.parametrize(
    ("gone", "wrong", "word", "tasks", "key"),
    [
        ("names[0]", "names[-1]", "max(", LONGEST[:3], KEYS[0]),
        ("names[0]", "names[len(names) - 1]", "max(", LONGEST[:3], KEYS[2]),
        ('(",", ";")', '(",", "!")', "beside", MARKED, KEYS[0]),
    ],
)
@pytest.mark.slow
def test_what_shown_tasks_leave_open_is_a_question(
    gone: str, wrong: str, word: str, tasks: list[Case], key: bytes
) -> None:
    """By place or by size; and whether something had to go for what came: the rival keeps it beside."""
    rivals = found(FIRST.replace(gone, wrong), tasks, 2, key, ReplayPolicy(), FIRST).rivals
    assert any(word in rival for rival in rivals)


@pytest.mark.parametrize("key", KEYS[:2], ids=lambda key: key.hex()[:4])
@pytest.mark.slow
def test_what_they_do_not_leave_open_is_none(key: bytes) -> None:
    size = FIRST.replace("names[0]", "max(names, key=len)")
    both = FIRST.replace('(",", ";")', '(",", ";", "!")')
    for own, tasks in ((size, LONGEST), (both, MARKED)):
        assert not found(own, tasks, 2, key, ReplayPolicy(), FIRST).rivals


SWITCHED_OFF = [
    ("count += 1", "count += 0"),
    ("count += 1", "count -= 0"),
    ("count += 1", "count *= 1"),
    ("count += 1", "count = count"),
    ("count += 1", "count = count + 0"),
    ("count += 1", "count += len([])"),
    ("count += 1", "count += 1 - 1"),
]


@pytest.mark.parametrize("new", SWITCHED_OFF, ids=[new for _, new in SWITCHED_OFF])
def test_an_edit_that_takes_an_effect_away_says_so_however_it_is_written(new: tuple[str, str]) -> None:
    tasks = [
        case(0, {"result": ["a", "b", "n", "m"], "many": False}, names=["a", "b", "n", "m"]),
        case(1, {"result": ["a"], "many": False}, names=["a"]),
        case(2, {"result": [], "many": False}, names=[]),
    ]
    assert found(changed(new), tasks, 1, KEYS[0], ONE_RIVAL).idle


@pytest.mark.slow
def test_what_has_an_effect_is_not_idle() -> None:
    tasks = names(NAMES)
    for new in (
        ("count += 1", "count += 2"),
        ("name.strip(", "name.removesuffix("),
        ("> input.limit", "> input.limit - 1"),
    ):
        assert not found(changed(new), tasks, 2, KEYS[0], ONE_RIVAL).idle


STRIPPED = "found.append(name.strip())"
DECIDES_NOTHING = {
    f"if count: {STRIPPED}": "count",
    f"if found is not None: {STRIPPED}": "found is not None",
    f"if len(found) < count: {STRIPPED}": "len(found) < count",
    f"if found or count > 0: {STRIPPED}": "found or count > 0",
    f"if name != '' or count: {STRIPPED}": "name != '' or count",
    f"if not count: continue\n        {STRIPPED}": "not count",
    f"if count == 0 or found is None: break\n        {STRIPPED}": "count == 0 or found is None",
    "found.append(name.strip() if count else name)": "count",
    "found += [each.strip() for each in [name] if count]": "count",
    "found.extend(each.strip() for each in [name] if count and each is name)": "count and each is name",
}


def decides(new: str) -> str:
    return changed(('found.append(name.strip(".csv"))', new))


@pytest.mark.parametrize("new", DECIDES_NOTHING)
def test_a_test_is_found_however_it_is_written(new: str) -> None:
    found = constant_tests(OLD, decides(new))
    assert {f"{DECIDES_NOTHING[new]} always {word}" for word in ("true", "false")} <= {*found}


@pytest.mark.parametrize("new", [[*DECIDES_NOTHING][at] for at in (4, 6, 9)])
@pytest.mark.slow
def test_a_test_that_decides_nothing_is_told(new: str) -> None:
    """A condition that never fails, in the place of one that did: nothing else is left of it to be found by."""
    assert "always" in found(decides(new), names(NAMES), 1, KEYS[0], ONE_RIVAL).needless


@pytest.mark.slow
def test_both_are_looked_for_only_where_the_policy_wants_mutants() -> None:
    idle_edit = changed(("count += 1", "count += 0"))
    needless = decides(f"if count: {STRIPPED}")
    for edit in (idle_edit, needless):
        seen = found(edit, names(NAMES), 1, KEYS[0], ReplayPolicy(mutants=0))
        assert (seen.idle, seen.needless) == ("", "")
    assert found(idle_edit, names(NAMES), 1, KEYS[0], ONE_RIVAL).idle
    assert "always" in found(needless, names(NAMES), 1, KEYS[0], ONE_RIVAL).needless


@pytest.mark.parametrize(
    "new",
    [
        f"if len(name) > 2: {STRIPPED}",
        f"if name not in found: {STRIPPED}",
        "found.append(name.strip() if count > 1 else name)",
        STRIPPED,
    ],
)
@pytest.mark.slow
def test_a_test_that_decides_something_is_not(new: str) -> None:
    assert not found(decides(new), names(NAMES), 1, KEYS[0], ONE_RIVAL).needless


def test_a_test_of_several_is_also_held_constant_as_a_whole() -> None:
    edit = changed(("        count += 1", "        if count >= 0 or found:\n            count += 1"))
    assert {"count >= 0 or found always true", "found always true"} <= {*constant_tests(OLD, edit)}
    default = changed(("count > input.limit", "count > (input.limit or 0)"))
    assert not any(words.startswith("0 ") for words in constant_tests(OLD, default)), "0 is no test"
    assert constant_tests(OLD, OLD) == constant_tests(OLD, "def f(:") == {}


def test_an_annotation_has_no_effect_to_lose() -> None:
    old = "def limit(days):\n    last = days\n    return last\n"
    new = "def limit(days: int | None) -> int | None:\n    last: int | None = days\n    return last\n"
    assert not any("|" in text and "last" not in text for text in idle(old, new))
    assert not any("None" in words and "last" not in words for words in moot(old, new))


REPAIR = ("name.strip(", "name.removesuffix(")
RIDES_ALONG = [
    [("in input.names:", "in [*input.names][:40]:")],
    [("many=count > input.limit", "many=count > min(input.limit, 900)")],
    [("result=found", "result=found or [each for each in input.names if not each]")],
    [("    count = 0\n", "    count = 0\n    if 'admin' in input.names:\n        return Output(result=[], many=False)\n")],
    [('removesuffix(".csv")', 'removesuffix(".csv").rsplit("/", 2)[-1]')],
]  # fmt: skip


@functools.cache
def plain_repair() -> EditFindings:
    return found(changed(REPAIR), names(NAMES), 2, KEYS[0], ReplayPolicy())


@pytest.mark.parametrize("more", RIDES_ALONG, ids=[more[0][1][:40] for more in RIDES_ALONG])
@pytest.mark.slow
def test_what_rides_along_with_a_repair_is_told(more: list[tuple[str, str]]) -> None:
    """The repair is right and needed; what stands beside it no task asks for."""
    plain = plain_repair()
    assert not plain.idle
    seen = found(changed(REPAIR, *more), names(NAMES), 2, KEYS[0], ReplayPolicy())
    new = {*seen.rivals} - {*plain.rivals}
    assert seen.idle or seen.needless or new


def test_the_parts_of_an_edit_are_lines_that_change_together_and_statements_at_one_place() -> None:
    both = changed(REPAIR, ("count = 0", "count = 1"))
    assert {changed(REPAIR), changed(("count = 0", "count = 1"))} == {*undone(OLD, both).values()}
    near = changed(("count = 0", "count = 1"), ("found = []", "found = ['']"))
    assert changed(("count = 0", "count = 1")) in undone(OLD, near).values(), "lines beside each other"
    within = changed(("many=count > input.limit", "many=count + 1 > input.limit - 1"))
    assert undone(OLD, within) == {}, "one expression is one part"
    assert undone(OLD, changed(REPAIR)) == undone(OLD, OLD) == undone(OLD, "def f(:") == {}


@pytest.mark.parametrize(
    "more",
    [
        ("    count = 0", "    # how many\n    count = 0"),
        ("    count = 0", "    count = 0  # how many"),
        ("-> Output:\n", '-> "Output":\n    """What is there."""\n'),
        ("from pydantic", "import math\n\nfrom pydantic"),
        ("def run", "def unused() -> None:\n    return None\n\n\ndef run"),
        ("def run", "UNUSED: list[str] = []\n\n\ndef run"),
    ],
)
def test_what_can_have_no_effect_is_no_part(more: tuple[str, str]) -> None:
    assert undone(OLD, changed(REPAIR, more)) == {}


def test_what_only_becomes_simpler_is_no_part_without_an_effect() -> None:
    loop = ("for name in input.names", "for at, name in enumerate(input.names)")
    edit = changed(REPAIR)
    assert changed(REPAIR, loop) in undone(changed(loop), edit).values(), "it may answer otherwise"
    assert changed(REPAIR, loop) not in idle(changed(loop), edit).values()
    check = ("    count = 0\n", "    count = 0\n    str(input.names)\n")
    gone = idle(changed(check), edit)
    assert changed(REPAIR, check) in gone.values(), "a line that goes as a whole"


@pytest.mark.parametrize(
    "more",
    [
        "def __getattr__(name: str) -> int:\n    return 3\n\n\n",
        "class Text(str):\n    def __eq__(self, other: object) -> bool:\n        return True\n\n\n",
        "LIMIT = print()\n\n\n",
    ],
)
def test_what_acts_without_being_named_is_a_part(more: str) -> None:
    assert len(undone(OLD, changed(REPAIR, ("def run", f"{more}def run")))) == 2


def test_statements_that_only_moved_are_no_parts() -> None:
    old = changed(("\n\ndef run", "\n\nMANY = 3\n\n\ndef run"), ("input.limit)", "MANY)"))
    new = changed(("from pydantic", "from math import inf\nfrom pydantic"), ("input.limit)", "inf)"))
    parts = undone(old, new)
    assert parts, "the lines are still parts"
    assert not [words for words in parts if "class" in words or "TOOL" in words], parts


def test_a_docstring_is_no_statement_without_an_effect() -> None:
    helper = 'def plain(name: str) -> str:\n    """The name alone."""\n    return name[:-4]\n\n\ndef run'
    edit = changed(('name.strip(".csv")', "plain(name)"), ("def run", helper))
    assert not any("alone" in words for words in (*idle(OLD, edit), *moot(OLD, edit)) if "without" in words)
    assert not any("alone" in words for words in idle(OLD, edit))


UNITS = (
    OLD[: OLD.index("class Input")]
    + """FACTORS = {"h": 60, "m": 1}


class Input(BaseModel):
    amount: int
    unit: str


class Output(BaseModel):
    minutes: int


def run(input: Input) -> Output:
    return Output(minutes=input.amount * FACTORS[input.unit])
"""
)
DAYS = [
    case(number, {"minutes": minutes}, amount=amount, unit=unit)
    for number, (amount, unit, minutes) in enumerate(
        [(2, "d", 960), (1, "d", 480), (2, "h", 120), (5, "m", 5), (7, "h", 420)]
    )
]
FOR_ALL = [
    "FACTORS.get(input.unit, 480)",
    "(FACTORS[input.unit] if input.unit in FACTORS else 480)",
    "{**FACTORS, input.unit: FACTORS.get(input.unit) or 480}[input.unit]",
    "next((FACTORS[each] for each in FACTORS if each == input.unit), 480)",
    "max(FACTORS.get(input.unit, 0), 480 * (input.unit not in FACTORS))",
]


@pytest.mark.parametrize("body", FOR_ALL)
@pytest.mark.slow
def test_a_default_for_one_missing_key_is_one_for_all(body: str) -> None:
    tasks = [*DAYS]
    edit = UNITS.replace("FACTORS[input.unit]", body)
    assert found(edit, tasks, 2, KEYS[0], WITHOUT_RIVALS, UNITS).accepted
    # of several missing keys the evidence says itself that more than one is meant
    tasks[1] = case(1, {"minutes": 480}, amount=1, unit="day")
    assert not found(edit, tasks, 2, KEYS[0], WITHOUT_RIVALS, UNITS).accepted


@pytest.mark.slow
def test_the_missing_key_in_its_table_is_no_default() -> None:
    right = UNITS.replace('"m": 1}', '"m": 1, "d": 480}')
    assert not found(right, DAYS, 2, KEYS[0], WITHOUT_RIVALS, UNITS).accepted


POLICY = (
    OLD[: OLD.index("class Input")]
    + """class Input(BaseModel):
    policy: str
    kind: str


class Output(BaseModel):
    sources: list[str]


def run(input: Input) -> Output:
    rules = {}
    for part in input.policy.split(";"):
        words = part.split()
        if words:
            rules[words[0]] = words[1:]
    return Output(sources=rules.get(input.kind, []))
"""
)
FALL_BACK = [
    ("default a; img b", "style", "a"),
    ("font c; default d", "img", "d"),
    ("default a; img b", "img", "b"),
    ("style c; img d", "style", "c"),
    ("style e", "style", "e"),
]


@pytest.mark.slow
def test_a_key_without_values_may_be_no_missing_one() -> None:
    tasks = [
        case(n, {"sources": [one]}, policy=policy, kind=kind)
        for n, (policy, kind, one) in enumerate(FALL_BACK)
    ]
    for test, many in (("rules.get(input.kind)", True), ("input.kind in rules", False)):
        chosen = f'rules[input.kind] if {test} else rules.get("default", [])'
        edit = POLICY.replace("rules.get(input.kind, [])", chosen)
        about = found(edit, tasks, 2, KEYS[0], ReplayPolicy(), POLICY).ambiguity
        assert bool(about and "None alone for nothing" in about.rival) is many, about


AREA = (
    UNITS[: UNITS.index("FACTORS")]
    + """

class Input(BaseModel):
    path: str


class Output(BaseModel):
    metres: int


def run(input: Input) -> Output:
    total = 0
    for line in open(input.path, encoding="utf-8"):
        total += int("".join(sign for sign in line if sign.isdigit()))
    return Output(metres=total)
"""
)


@pytest.mark.slow
def test_another_number_that_cannot_be_read_either_is_the_same_fault() -> None:
    given = [("120 m²\n", 120), ("120 m²\n25 sqm\n", 145), ("25 sqm\n", 25), ("7 sqm\n80\n", 87), ("9\n", 9)]
    tasks = [
        replace(case(n, {"metres": metres}, path=f"{n}.txt"), inputs={f"{n}.txt": text.encode()})
        for n, (text, metres) in enumerate(given)
    ]
    right = AREA.replace("isdigit", "isdecimal")
    assert not found(right, tasks, 2, KEYS[0], ReplayPolicy(), AREA).accepted
    # who makes a 0 of whatever cannot be read is asked
    swallowed = AREA.replace(
        "        total +=", "        if not line[:1].isdigit():\n            continue\n        total +="
    )
    swallowed = swallowed.replace("isdigit())", "isdecimal())")
    assert found(swallowed, tasks, 2, KEYS[0], ReplayPolicy(), AREA).accepted


@pytest.mark.slow
def test_many_other_new_things_do_not_hide_what_is_moot() -> None:
    """Padding: as many numbers as there are mutants, before the one thing that matters."""
    padding = "".join(f"    x{number} = {number} + {number + 1}\n" for number in range(20))
    edit = changed(("    found = []\n", f"    found = []\n{padding}"), ("count += 1", "count += 0"))
    tasks = [
        case(0, {"result": ["a", "b", "n", "m"], "many": False}, names=["a", "b", "n", "m"]),
        case(1, {"result": ["a"], "many": False}, names=["a"]),
    ]
    assert found(edit, tasks, 1, KEYS[0], ReplayPolicy()).idle


@pytest.mark.parametrize("sign", ["\x0c", "\u2028", "\x0b", "\x1c", "\x85"])
def test_a_sign_that_only_looks_like_the_end_of_a_line_hides_nothing(sign: str) -> None:
    old = OLD.replace("A tool.", f"A{sign}tool. é{sign}")
    edit = old.replace("count += 1", "count += abs(0)")
    assert any("0 for abs(0)" in name for name in moot(old, edit))
    assert [*idle(old, edit)] == ["count += abs(0)"]
    other = old.replace("name.strip(", "name.rstrip(")
    assert "the same edit with removesuffix for rstrip" in mutants(old, other, 32)


def test_words_are_spelled_with_the_texts_of_the_edit() -> None:
    given = Case(
        "task-1",
        Call("count", {"names": ["wind.csv"], "n": 3, "path": "a.txt"}),
        {"a.txt": b"rain.csv 7\n"},
        (),
    )
    made = spelled([given], [".csv"], KEYS[0], 64)
    assert made == spelled([given], [".csv"], KEYS[0], 64)
    texts = {str(item.case.call.args["names"][0]) for item in made if item.along == "names"}
    assert {"windc.csv", "wind.csv.csv", ".csvwind.csv", "cwind.csv"} & texts
    assert any(item.case.inputs["a.txt"] != b"rain.csv 7\n" for item in made if item.along == "a.txt")
    assert {item.along for item in made} == {"names", "a.txt"}  # a path names its file still
    assert spelled([given], [], KEYS[0], 9) == spelled([], ["x"], KEYS[0], 9) == []
    assert len(spelled([given], [".csv"], KEYS[0], 5)) <= 5
    names = {
        str(item.case.call.args["names"][0])
        for item in spelled([given], [r"\s*(\d+)x"], KEYS[0], 99)
        if item.along == "names"
    }
    assert any("x" in name and "\\" not in name for name in names)
    assert not any(sign in name for name in names for sign in "*(+" if r"\s*(\d+)x" not in name)


@pytest.fixture(scope="module")
def unlike_fee() -> Candidate:
    """A candidate with what was found of its behaviour; nobody changes it."""
    edit = FEE.replace("// 10", "// 9")
    return judged(FEE, edit, [{"amount": 607}], [{"amount": 30}], policy=REFUSALS)[1]


@pytest.mark.parametrize(
    ("prior", "least", "asked"),
    [(0.01, 1e-4, False), (9e-5, 1e-4, True), (1e-4, 1e-4, False), (9e-5, 0.0, False), (0.0, 1e-4, False)],
)
def test_a_far_fetched_edit_is_asked_about(
    unlike_fee: Candidate, prior: float, least: float, asked: bool
) -> None:
    policy = replace(Policy(), replay=ReplayPolicy(prior_min=least))
    plain = doubts(replace(unlike_fee, behaviour=None), (), policy)
    told = doubts(replace(unlike_fee, behaviour=None, prior=prior), (), policy)
    assert (len(told) > len(plain)) is asked
    assert all(each.kind is RefusalKind.UNLIKELY for each in {*told} - {*plain})


def test_its_question_names_what_is_moot(unlike_fee: Candidate) -> None:
    question = Ambiguity(1, "names=[]", "1", "2", "the same edit without break")
    assert unlike_fee.behaviour is not None
    told = doubts(
        replace(unlike_fee, behaviour=replace(unlike_fee.behaviour, ambiguity=question)), (), Policy()
    )
    assert any("the same edit without break 2: which is right?" in each.reason for each in told)


DUTIES = (
    OLD[: OLD.index("class Input")]
    + """class Input(BaseModel):
    price: int


class Output(BaseModel):
    duty: float


def run(input: Input) -> Output:
    return Output(duty=round(input.price * 0.07, 2))
"""
)
BANDS = "max(input.price - 1000, 0) * 0.07 + min(input.price, 1000) * 0.03"


@pytest.mark.slow
def test_digits_that_no_right_answer_has_are_asked_about() -> None:
    given = [(1000, 30.0), (1500, 65.0), (2000, 100.0), (3000, 170.0), (0, 0.0)]
    tasks = [case(n, {"duty": duty}, price=price) for n, (price, duty) in enumerate(given)]
    rounded = DUTIES.replace("input.price * 0.07", BANDS)
    noisy = DUTIES.replace("round(input.price * 0.07, 2)", BANDS)
    assert found(noisy, tasks, 4, KEYS[0], WITHOUT_RIVALS, DUTIES).noise
    assert not found(rounded, tasks, 4, KEYS[0], WITHOUT_RIVALS, DUTIES).noise


# --- doubles that a table drops ----------------------------------------------------------------

READINGS = '''"""A tool."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {"name": "readings", "description": "Works.", "effects": ["read"]}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    most: int
    count: int


def run(input: Input) -> Output:
    rows = (line.split() for line in Path(input.path).read_text().splitlines())
    most = max((int(level) for _, level in rows), default=0)
    return Output(most=most, count=len([*rows]))
'''
LEVELS = [
    Case(
        f"task-{text}",
        Call("readings", {"path": "a"}),
        {"a": text.encode()},
        (Check("equals", {"value": wanted}),),
    )
    for text, wanted in (
        ("01:00 7\n02:00 9\n", {"most": 9, "count": 2}),
        ("03:00 5\n", {"most": 5, "count": 1}),
        ("", {"most": 0, "count": 0}),
    )
]
ROWS = "    rows = (line.split() for line in Path(input.path).read_text().splitlines())\n"
TEXT = "Path(input.path).read_text().splitlines()"


@pytest.mark.parametrize(
    "rows",
    [
        f"    rows = {{line[:5]: line.split() for line in {TEXT}}}.values()\n",
        f"    rows = dict((line[:5], line.split()) for line in {TEXT}).values()\n",
        f"    found = {{}}\n    for line in {TEXT}:\n        found[line[:5]] = line.split()\n    rows = found.values()\n",
        f"    found = {{}}\n    for line in {TEXT}:\n        found.setdefault(line[:5], line.split())\n    rows = [*found.values()]\n",
        f"    rows = {{tuple(line.split()) for line in {TEXT}}}\n",
    ],
)
def test_who_drops_doubles_by_the_way_is_asked_whether_that_is_meant(rows: str) -> None:
    own = READINGS.replace(ROWS, rows)
    rules = ReplayPolicy(mutants=0, neighbours=8, drawn=2, crossed=0, stepped=0, spelled=0, symptom_min=0)
    known = Known(LEVELS, {2}, b"k" * 32, rules)
    rivals = {words: text for words, text in moot(READINGS, own).items() if "doubles" in words}
    found = compared(lambda cases: LocalBench(cases, 0.5), known, READINGS, own, rivals)
    assert {*rivals} & {*found.rivals}


# --- places within a text -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ('r"[A-Z]{2}-[0-9]{4}"', 'r"[A-Z]{2}-\\d{4}$"', r"[A-Z]{2}-[0-9]{4}$"),
        ('r"[A-Z]{2}-[0-9]{4}"', '"[A-Z][A-Z]-[0-9]" "{4}$"', r"[A-Z]{2}-[0-9]{4}$"),
        ('"%d.%m.%y"', '"%d/%m/%Y"', "%d/%m/%y"),
    ],
)
def test_each_place_of_a_text_is_a_part_of_the_edit(old: str, new: str, part: str) -> None:
    before, after = (f"import re\n\n\ndef run(input):\n    return {text}\n" for text in (old, new))
    texts = undone(before, after, simpler=False).values()
    assert any(repr(part) in source for source in texts)
    assert not undone(before, before.replace(old, '"wholly another one"'))


def test_the_hint_of_an_attribute_is_no_part_of_an_edit() -> None:
    old = "class A:\n    def __init__(self):\n        self.a: int = 0\n\n    def b(self):\n        return 1\n"
    new = old.replace("a: int", "a: list").replace("return 1", "return 2")
    assert [*undone(old, new)] == []
    field = "class A:\n    a: int = 0\n\n    def b(self):\n        return 1\n"
    assert undone(field, field.replace("a: int", "a: list").replace("return 1", "return 2"))


@pytest.mark.parametrize("sign", [chr(0xD800), chr(0xDFFF)])
def test_half_a_character_among_the_texts_of_an_edit_is_spelled_as_any(sign: str) -> None:
    asked = Case("t", Call("sum", {"path": "a.csv", "words": ["ab"]}), {"a.csv": b"ab cd"}, ())
    made = spelled([asked], [sign], b"key", 40)
    assert {item.along for item in made} == {"words", "a.csv"}
    assert {item.case.inputs["a.csv"].count(b"?") for item in made} == {0, 1}


def test_a_table_of_nothing_has_no_key_to_keep_apart() -> None:
    assert moot("x = 1\n", "x = dict(() for _ in [])\n")
