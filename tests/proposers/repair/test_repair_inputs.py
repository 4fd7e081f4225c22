"""Generated inputs keep the form of those that they are made of, and go where these do not."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping

from agentos.domain import Call, Json
from agentos.evolver.propose.input_variation import Variation, generate
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
