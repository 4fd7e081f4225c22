"""What edits make of the values of a failing call, seen before one of them is tried."""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from agentos.benches import BenchResult
from agentos.domain import Call, Check, Json
from agentos.ports import Case
from agentos.proposers.repair.prior import RankedEdit
from agentos.proposers.repair.reading import watcher
from agentos.proposers.repair.reading.foresight import (
    FACTORS,
    KEPT,
    Foresight,
    can_be_watched,
    foresight_of,
)
from agentos.proposers.repair.source import CodeEdit, Program, Splice

HEAD = """from pydantic import BaseModel


class Input(BaseModel):
    rows: list[str]


class Output(BaseModel):
    answer: str


def run(input: Input) -> Output:
"""


def test_the_same_differences_are_looked_for_in_each_process() -> None:
    want, got = ({key: number + far for number, key in enumerate("abcdefghijkl")} for far in (0, 1))
    case = Case("t", Call("probe", {}), {}, (Check("equals", {"value": want}),))
    pairs = [(case, got)]
    seen = foresight_of(pairs, [], Program("x = 1\n"), lambda _: pytest.fail("nothing is run")).differences
    assert seen == [(want, got), *((number, number + 1) for number in range(7))]


@pytest.fixture
def looked(case) -> Iterator[object]:  # type: ignore[no-untyped-def]  # fixture
    """Which factors a replacement of ``old`` by each of ``texts`` has, for a call with these rows."""
    from local_bench import LocalBenches

    from agentos.domain import Snapshot

    opened = []

    def factors(
        body: str,
        old: str,
        texts: Sequence[str],
        rows: list[str],
        want: str,
        working: list[str] | None = None,
    ) -> list[float]:
        source = HEAD + "".join(f"    {line}\n" for line in body.split("\n"))
        program = Program(source)
        given = [(rows, want)] + ([(working, "")] if working is not None else [])
        cases = [
            Case(
                str(number), Call("probe", {"rows": each}), {}, (Check("equals", {"value": {"answer": say}}),)
            )
            for number, (each, say) in enumerate(given)
        ]
        bench = LocalBenches().bench(Snapshot("", ""), "tool/probe/tool.py", cases, 5.0)
        opened.append(bench)
        outputs = bench.try_source(source).outputs
        pairs = list(zip(cases, outputs, strict=True))
        seeing = foresight_of(pairs[:1], pairs[1:], program, bench.try_source)
        start = source.index(old, len(HEAD))
        edits = [CodeEdit((Splice(start, start + len(old), text),), "any") for text in texts]
        return list(seeing.factors(edits))

    yield factors
    for bench in opened:
        bench.close()


@pytest.mark.slow
def test_an_edit_by_which_the_expected_value_comes_about_is_likelier_than_one_that_changes_nothing(
    looked,
) -> None:  # type: ignore[no-untyped-def]  # fixture
    found = looked(
        "text = input.rows[0]\nreturn Output(answer=text)",
        "input.rows[0]",
        ["input.rows[-1]", "input.rows[0].strip()", "input.rows[1]", "input.rows[0] + 1"],
        ["b", "c", "a"],
        "a",
    )
    assert found == [FACTORS["hit"], FACTORS["same"], FACTORS["other"], FACTORS["raises"]]


def test_what_changes_no_working_call_is_likelier(looked) -> None:  # type: ignore[no-untyped-def]  # fixture
    found = looked(
        "found = sorted(input.rows)\nreturn Output(answer=found[0] + 'x')",
        "sorted(input.rows)",
        ["sorted(map(str.strip, input.rows))", "input.rows[::-1]", "input.rows[9]"],
        [" b", "a "],
        "?",
        working=["a", "b"],
    )
    assert found == [KEPT * FACTORS["other"], FACTORS["other"], FACTORS["raises"] ** 2]


def test_where_the_call_ended_an_edit_by_which_it_goes_on_is_likelier(looked) -> None:  # type: ignore[no-untyped-def]
    found = looked(
        "known = {'a': 'b'}\nreturn Output(answer=known[input.rows[0]])",
        "known[input.rows[0]]",
        ["known.get(input.rows[0], '')", "known[input.rows[0].strip()]"],
        ["z"],
        "",
    )
    assert found == [FACTORS["works"], FACTORS["same"]]


def test_what_is_read_once_or_changes_something_is_left_alone(looked) -> None:  # type: ignore[no-untyped-def]
    body = "rows = iter(input.rows)\nfound = list(rows)\nreturn Output(answer=found.pop())"
    assert looked(body, "list(rows)", ["sorted(rows)"], ["b", "a"], "x") == [1.0]
    assert looked(body, "found.pop()", ["found.pop(0)", "found[0]"], ["b", "a"], "b") == [1.0, 1.0]


def test_what_asks_where_it_stands_blinds_nothing() -> None:
    from local_bench import LocalBenches

    from agentos.domain import Snapshot

    source = (
        "class Row(list):\n    def at(self, n):\n        return super().__getitem__(n)\n\n\n"
        + HEAD
        + "    row = Row(input.rows)\n    return Output(answer=row.at(0))\n"
    )
    given = [Case("1", Call("probe", {"rows": ["a"]}), {}, ())]
    bench = LocalBenches().bench(Snapshot("", ""), "tool/probe/tool.py", given, 5.0)
    seeing, edits = Foresight(Program(source), bench.try_source, (), (False,)), []
    for old, new in (("super().__getitem__(n)", "super().__getitem__(-n)"), ("row.at(0)", "row[0]")):
        start = source.index(old)
        edits.append(CodeEdit((Splice(start, start + len(old), new),), "any"))
    found = seeing.factors(edits)
    bench.close()
    assert found == [1.0, FACTORS["same"]]


def test_a_guard_that_is_never_met_is_seen_beside_one_that_is(looked) -> None:  # type: ignore[no-untyped-def]
    source = HEAD + "    text = input.rows[0]\n    return Output(answer=text)\n"
    program = Program(source)
    at = source.index("text = input")

    def put(test: str) -> CodeEdit:
        text = f"if {test}:\n        return Output(answer='')\n    "
        return CodeEdit((Splice(at, at, text, expression=False),), "way out")

    from local_bench import LocalBenches

    from agentos.domain import Snapshot

    bench = LocalBenches().bench(
        Snapshot("", ""), "tool/probe/tool.py", [Case("1", Call("probe", {"rows": ["a"]}), {}, ())], 5.0
    )
    seeing = Foresight(program, bench.try_source, (), (False,))
    found = seeing.factors([put("not input.rows"), put("input.rows"), put("input.nothing")])
    bench.close()
    assert found == [FACTORS["same"], FACTORS["other"], FACTORS["raises"]]


def test_where_the_watched_source_does_not_answer_all_stays_as_it_was_and_nothing_more_is_asked() -> None:
    program = Program(HEAD + "    return Output(answer=input.rows[0])\n")
    asked = []

    def look(source: str) -> BenchResult:
        asked.append(source)
        return BenchResult((False,), (0.0,), ({"error": "timeout", "message": ""},))

    seeing = Foresight(program, look, (), (False,))
    start = program.source.index("input.rows[0]")
    edits = [CodeEdit((Splice(start, start + 13, "input.rows[1]"),), "any")]
    assert seeing.factors(edits) == [1.0]
    assert seeing.factors(edits) == [1.0]
    assert len(asked) == 1


def test_edits_keep_their_probability_and_come_by_their_turn() -> None:
    program = Program(HEAD + "    return Output(answer=input.rows[0])\n")
    start = program.source.index("input.rows[0]")
    edits = [CodeEdit((Splice(start, start + 13, f"input.rows[{n}]"),), "any") for n in (1, 2, 3)]
    order = [RankedEdit(edit, "any", 0.3 - n / 10) for n, edit in enumerate(edits)]

    def look(source: str) -> BenchResult:
        return BenchResult((True,), (1.0,), ({"seen_values": "soh", "ended": ""},))

    seeing = Foresight(program, look, (), (False,))
    found = list(seeing.in_order(order))
    assert [each.probability for each in found] == pytest.approx([0.1, 0.2, 0.3])
    assert [each.turn for each in found] == sorted((each.turn or 0 for each in found), reverse=True)


def test_letters_of_words_differ_and_the_watcher_needs_nothing_of_ours() -> None:
    assert len({word[0] for word in FACTORS}) == len(FACTORS)
    tree = ast.parse(Path(watcher.__file__).read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert not [node for node in imports if (node.module or "").startswith("agentos")]


@pytest.mark.parametrize(
    ("value", "answer", "same"),
    [
        (1.0, 1, True), (True, 1, False), ("1", 1, False), ((1, 2), [1, 2], True), ({1: "a"}, {"1": "a"}, True),
        (None, None, True), (0, None, False), ("a", "a", True),
    ],
)  # fmt: skip
def test_a_value_means_an_answer(value: object, answer: Json, same: bool) -> None:
    assert watcher.means(value, answer) is same


def test_a_file_that_is_no_tool_is_not_watched() -> None:
    assert not can_be_watched(Program("def f(x):\n    return x\n"))
