"""Edits that break what their base does with nothing at all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agentos.domain import Call, Check
from agentos.evolver.policy import ReplayPolicy
from agentos.evolver.propose.ambiguity import EditExamination, Known
from agentos.evolver.propose.neighbours import Neighbour, limits
from agentos.ports import Case

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))
from local_bench import LocalBench

SOURCE = '''"""First lines of the paragraphs of a file."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {"name": "heads", "description": "Works.", "effects": ["read"]}


class Input(BaseModel):
    path: str
    skip: list[str] = []


class Output(BaseModel):
    heads: list[str]


def run(input: Input) -> Output:
    groups, current = [], []
    for line in Path(input.path).read_text().splitlines():
        if line.startswith(" "):
            current.append(line)
            continue
        if current:
            groups.append(current)
        current = [line]
    return Output(heads=[group[0] for group in groups if group[0] not in input.skip])
'''
END = "        current = [line]\n"
ALWAYS = SOURCE.replace(END, END + "    groups.append(current)\n")
WHERE_THERE_IS_ONE = SOURCE.replace(END, END + "    if current:\n        groups.append(current)\n")
STRICT = WHERE_THERE_IS_ONE.replace(
    "    groups, current", '    if not input.skip:\n        raise ValueError("nothing")\n    groups, current'
)


def case(number: int, text: str, heads: list[str], skip: list[str]) -> Case:
    args = {"path": "a.txt", "skip": skip}
    checks = (Check("equals", {"value": {"heads": heads}}),)
    return Case(f"task-{number}", Call("heads", args), {"a.txt": text.encode()}, checks)


TASKS = [
    case(1, "a\n b\nc\n", ["a", "c"], ["x"]),
    case(2, "d\ne\n", ["d", "e"], ["x"]),
    case(3, "f\nx\n", ["f"], ["x"]),
]


KNOWN = Known(TASKS, {2}, b"k" * 32, ReplayPolicy())


def breaks(own: str, drawn: list[Neighbour], timeout_s: float = 0.5) -> str:
    bench = LocalBench([*TASKS, *(item.case for item in drawn)], timeout_s)
    try:
        return EditExamination(bench, KNOWN, drawn, [], SOURCE, own).findings({}).breaks
    finally:
        bench.close()


@pytest.mark.parametrize(
    ("own", "said"), [(ALWAYS, "IndexError"), (STRICT, "ValueError"), (WHERE_THERE_IS_ONE, "")]
)
def test_an_edit_that_ends_where_its_base_answers_is_said(own: str, said: str) -> None:
    found = breaks(own, limits(TASKS))
    assert said in found
    assert bool(said) == bool(found)


def test_what_ends_on_other_inputs_alone_is_not() -> None:
    malformed = [Neighbour(case(9, "", [], []), 0, "a.txt")]
    assert breaks(ALWAYS, malformed) == ""


def test_each_file_and_each_list_is_empty_once() -> None:
    found = limits(TASKS)
    files = [item.case.inputs["a.txt"] for item in found if item.along == "a.txt"]
    assert files == [b"", b"a\n", b"d\n", b"f\n"]
    assert [item.case.call.args["skip"] for item in found if item.along == "skip"] == [[]]
    assert not any(item.case.checks for item in found)
    assert limits([]) == []


ENDLESS = [  # each passes the tasks, in which no line is doubled
    "    while len({*heads}) < len(heads):\n        heads = heads[:]\n",
    "    while True:\n        if len({*heads}) == len(heads):\n            break\n",
    "    for head in heads:\n        if heads.count(head) > 1:\n            heads.append(head)\n",
]


@pytest.mark.parametrize("loop", ENDLESS)
@pytest.mark.slow
def test_an_edit_that_never_ends_where_its_base_answers_is_said(loop: str) -> None:
    last = "    return Output(heads=[group[0] for group in groups if group[0] not in input.skip])\n"
    own = WHERE_THERE_IS_ONE.replace(
        last, f"    heads = [group[0] for group in groups]\n{loop}    return Output(heads=heads)\n"
    )
    doubled = case(9, "a\na\nb\n", [], [])
    assert "does not end" in breaks(own, [Neighbour(doubled, 0, "a.txt")], timeout_s=0.1)
    assert breaks(own, [Neighbour(case(9, "a\nb\n", [], []), 0, "a.txt")]) == ""


@pytest.mark.slow
def test_what_never_ended_on_the_base_is_not_broken() -> None:
    spin = SOURCE.replace(
        "    groups, current", "    while input.skip == []:\n        pass\n    groups, current"
    )
    bench = LocalBench([*TASKS, case(9, "a\n", [], [])], 0.1)
    drawn = [Neighbour(case(9, "a\n", [], []), 0, "a.txt")]
    own = spin.replace("[group[0] for", "[str(group[0]) for")
    try:
        assert EditExamination(bench, KNOWN, drawn, [], spin, own).findings({}).breaks == ""
    finally:
        bench.close()
