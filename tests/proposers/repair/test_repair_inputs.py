"""Generated inputs keep the form of those that they are made of, and go where these do not."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping

import pytest

from agentos.domain import Call, Check, Json, canonical
from agentos.evolver.propose.case_variants import with_more_entries, with_other_spans
from agentos.evolver.propose.input_variation import (
    Variation,
    generate,
)
from agentos.evolver.propose.neighbours import Neighbour, neighbours, stepped
from agentos.ports import Case

SOURCE = """
class Unit(Enum):
    KM = "km"
    MILE = "mile"

class Input(BaseModel):
    path: str
    opening: str = "0,00"
    unit: Unit = Field("km")
    mode: Literal["up", "down"] = "up"
    count: int = Field(3, ge=1, lt=20)

def run(input):
    return 365
"""
TABLE = b"day;amount\n1;1.250,00\n2;-40,00\n3;7,50\n"


def case(args: Mapping[str, Json], files: Mapping[str, bytes] | None = None) -> Case:
    return Case("t", Call("f", dict(args)), files or {}, ())


def test_a_value_of_a_file_comes_to_stand_in_an_argument_of_its_form() -> None:
    made = generate([case({"path": "a.csv", "opening": "200,00"}, {"a.csv": TABLE})], 60)
    assert "1.250,00" in {item.call.args["opening"] for item in made}
    assert {item.call.args["path"] for item in made} == {"a.csv"}


def test_arguments_that_no_case_gives_are_set_to_what_input_names() -> None:
    made = generate([case({"path": "a.csv"}, {"a.csv": TABLE})], 150, SOURCE)
    seen = {name: {item.call.args.get(name) for item in made} for name in ("unit", "mode", "count")}
    assert {"km", "mile"} <= seen["unit"]
    assert {"up", "down"} <= seen["mode"]
    assert {1, 3, 19} <= seen["count"]


def test_numbers_are_at_times_next_to_constants_of_the_source() -> None:
    made = generate([case({"count": 5})], 80, "def run(a):\n    return a > 365\n")
    assert {364, 365, 366} & {item.call.args["count"] for item in made}
    assert {0, 6, -5} <= {item.call.args["count"] for item in made}


def test_a_table_keeps_its_head_and_a_document_its_syntax() -> None:
    tables = generate([case({}, {"a.csv": TABLE})], 60)
    heads = [item.inputs["a.csv"].startswith(b"day;amount") for item in tables]
    assert sum(heads) > 0.8 * len(heads)
    lengths = {len(item.inputs["a.csv"].splitlines()) for item in tables}
    assert {1, 2, 3, 5} <= lengths, "none, one, fewer and more lines than there were"
    document = json.dumps({"rows": [{"n": 1, "name": "x"}, {"n": 2, "name": "y"}]}).encode()
    for item in generate([case({}, {"a.json": document})], 60):
        json.loads(item.inputs["a.json"])


def test_the_same_chance_gives_the_same_inputs() -> None:
    cases = [case({"opening": "1,00"}, {"a.csv": TABLE})]
    assert generate(cases, 30, SOURCE) == generate(cases, 30, SOURCE)
    variation = Variation.of(cases, "no python (")
    assert variation.varied(cases[0], "opening", random.Random(1)) is not None


ODD: dict[str, tuple[str, dict[str, Json], bytes]] = {
    "two signs": ("text: str", {"text": "from --5 on"}, b"a --5\n--7 b\n"),
    "more digits than Python reads": ("text: str", {"text": "a"}, b"n " + b"7" * 5_000 + b"\nm 8\n"),
    "a whole number beyond any float": ("n: int", {"n": 10**30 + 1}, b"1\n"),
    "a tuple of any length": ("of: tuple[int, ...]", {"of": [1, 2]}, b"1\n"),
    "bytes": ('text: str\n    raw: bytes = b"a"', {"text": "a"}, b"1\n"),
    "a set": ('text: str\n    of: set[str] = {"a"}', {"text": "a"}, b"1\n"),
    "a bound that is none": ("n: int = Field(1, gt=None)", {"n": 1}, b"1\n"),
    "a choice that JSON has not": ("n: float\n    of: Literal[1j] = 1j", {"n": 1.5}, b"1\n"),
}


@pytest.mark.parametrize("odd", ODD)
def test_odd_inputs_and_fields_are_varied_as_any(odd: str) -> None:
    field, args, data = ODD[odd]
    source = f"class Input(BaseModel):\n    path: str\n    {field}\n"
    shown = [Case("task", Call("tool", {"path": "a.txt", **args}), {"a.txt": data}, ())]
    found = [*neighbours(shown, source, b"key", 80, unsaid=True), *stepped(shown, b"key", 20)]
    found += [Neighbour(case, 0, "") for case in generate(shown, 80, source)]
    assert found
    assert all(json.loads(canonical(dict(item.case.call.args))) is not None for item in found)


def test_a_step_is_one_of_the_number_as_long_as_it_is() -> None:
    shown = [Case("task", Call("tool", {"n": 10**30}), {}, ())]
    (found,) = stepped(shown, b"key", 8)
    assert abs(found.case.call.args["n"] - 10**30) in (1, 2)


def test_a_long_row_of_one_sign_is_varied_soon() -> None:
    """Such as a log's progress: in it no word begins."""
    asked = Case("t", Call("x", {"path": "a.log"}), {"a.log": b"." * 200_000 + b"\nab.c\n"}, ())
    assert len(neighbours([asked], "", b"key", 12)) == 12


def test_a_span_ends_as_failing_work_does_in_its_column() -> None:
    """The other columns' numbers, and what fails in none, say nothing of a weekday."""
    shown = [case({}, {"tab": b"30 6,7 a\n"}), case({}, {"tab": b"# all\n15 1-5 b\n10 x-5 1-5\n"})]
    made = [(number, item.inputs["tab"].splitlines()[1]) for number, _, item in with_other_spans(shown, {1})]
    assert made == [(1, b"15 1-6 b"), (1, b"15 6-5 b"), (1, b"15 1-7 b"), (1, b"15 7-5 b")]
    assert [*with_other_spans(shown, {0, 1})] == []


@pytest.mark.parametrize(
    ("args", "text", "many"),
    [
        ({}, "name,n\nAda,1\nBo,2\n", "name,n\n" + "".join(f"Ada{end},1\nBo{end},2\n" for end in ["", *"bcdefghij"])),
        ({}, "Ada 1\nBo 2", "".join(f"Ada{end} 1\nBo{end} 2\n" for end in ["", *"bcdefghij"])),
        ({}, '{"Ada": 1, "Bo": 2}', json.dumps({f"{name}{end}": n for end in ["", *"bcdefghij"] for n, name in ((1, "Ada"), (2, "Bo"))})),
        ({}, "name,n\nEve,1\n", None),  # no name that the answer repeats
        ({}, "Ada,Bo\n", None),  # a head alone
        ({}, "", None),
        ({"names": ["Ada", "Bo"]}, "", [f"{name}{end}" for end in ["", *"bcdefghij"] for name in ("Ada", "Bo")]),
    ],
)  # fmt: skip
def test_entries_come_until_there_are_twenty_names(args: dict[str, Json], text: str, many: Json) -> None:
    answer = (Check("equals", {"value": {"rank": ["1. Ada", "2. Bo"]}}),)
    shown = [Case("task", Call("tool", args), {"a.txt": text.encode()}, answer)]
    made = [*with_more_entries(shown, 'rank = "name"')]
    got = [item.call.args["names"] if args else item.inputs["a.txt"].decode() for _, _, item in made]
    assert got == ([] if many is None else [many])


def test_a_word_of_the_source_is_no_name_of_an_entry() -> None:
    answer = (Check("equals", {"value": {"kind": "Ada"}}),)
    shown = [Case("task", Call("tool", {}), {"a.txt": b"Ada 1\n", "b.bin": b"\xff"}, answer)]
    assert [*with_more_entries(shown, 'if kind == "ada":')] == []
