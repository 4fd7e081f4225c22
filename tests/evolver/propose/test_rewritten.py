"""Known tasks put otherwise: what makes no difference to the base may make none to its edit; and ways around that.

The tools really run, in the bench without a sandbox.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agentos.benches import BenchResult
from agentos.domain import Call, Check, Json, digest
from agentos.evolver.policy import ReplayPolicy
from agentos.evolver.propose.ambiguity import EditFindings, Known, compared
from agentos.evolver.propose.neighbours import rewritten
from agentos.ports import Case

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))
from local_bench import LocalBench

FEW = ReplayPolicy(mutants=0, neighbours=2, drawn=1, crossed=0, stepped=0, spelled=0)

TABLE = '''"""A tool."""

import csv
import io
import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {"name": "people", "description": "Works.", "effects": ["read"]}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    people: list[str]


def run(input: Input) -> Output:
    text = Path(input.path).read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    return Output(people=[f"{row['number']} {row['name']}" for row in rows])
'''
MARKED = TABLE.replace('"utf-8"', '"utf-8-sig"')


def case(number: int, text: str, wanted: Json, **args: Json) -> Case:
    call = Call("people", {"path": "a.txt", **args})
    return Case(f"task-{number}", call, {"a.txt": text.encode()}, (Check("equals", {"value": wanted}),))


PEOPLE = [
    case(number, f"{mark}number,name\n{number},{name}\n", {"people": [f"{number} {name}"]})
    for number, (mark, name) in enumerate(
        [("\ufeff", "Ada"), ("\ufeff", "Bo"), ("", "Cy"), ("", "Di"), ("", "Eve")]
    )
]


def told(
    old: str,
    own: str,
    tasks: Sequence[Case],
    evidence: int,
    rules: ReplayPolicy = FEW,
    bench: type[LocalBench] = LocalBench,
) -> EditFindings:
    """Of tasks whose first ones are the evidence."""
    known = Known(tasks, set(range(evidence, len(tasks))), b"k" * 32, rules)
    return compared(lambda cases: bench(cases, 0.5), known, old, own, {})


class CuttingBench(LocalBench):
    """Tells answers with the name Di by their digest, as those that are too large to be shown."""

    def try_source(
        self, source: str, *, trace: bool = False, cases: Sequence[int] | None = None
    ) -> BenchResult:
        done = super().try_source(source, trace=trace, cases=cases)
        outputs = [
            {"sha256": digest(one), "size": len(str(one))} if "Di" in str(one) else one
            for one in done.outputs
        ]
        return replace(done, outputs=tuple(outputs))


def test_an_edit_that_is_steady_where_its_base_is_asks_nothing() -> None:
    assert told(TABLE, MARKED, PEOPLE, 2).depends == ""


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ('[{name.strip("\\ufeff"): cell for name, cell in row.items()} for row in table]', False),
        ('[{**row, "number": row.get("number", row.get("\\ufeffnumber"))} for row in table]', True),
        ('[*csv.DictReader(io.StringIO(text.replace("\\ufeffnumber", "number")))]', True),
        ('[*csv.DictReader(io.StringIO(text.partition("\\n")[2]), ["number", "name"])]', True),
    ],
)
def test_who_goes_by_the_place_of_a_column_is_found(rows: str, found: bool) -> None:
    own = TABLE.replace("    rows = list(", "    table = list(").replace(
        "    return", f"    rows = {rows}\n    return"
    )
    assert ("columns" in told(TABLE, own, PEOPLE, 2).depends) is found


def test_one_answer_that_is_too_large_hides_no_other() -> None:
    own = TABLE.replace(
        "DictReader(io.StringIO(text))",
        'DictReader(io.StringIO(text.partition("\\n")[2]), ["number", "name"])',
    )
    people = [*PEOPLE, case(5, "number,name\n5,Flo\n", {"people": ["5 Flo"]})]
    assert "columns" in told(TABLE, own, people, 2).depends
    assert "columns" in told(TABLE, own, people, 2, bench=CuttingBench).depends


@pytest.mark.parametrize(
    "text",
    [
        'Path(input.path).read_bytes().decode("ascii", errors="ignore")',
        '"".join(sign for sign in Path(input.path).read_text() if ord(sign) < 128)',
        're.sub(r"[^ -~\\n]", "", Path(input.path).read_text())',
    ],
)
def test_who_drops_letters_beyond_ascii_is_found(text: str) -> None:
    found = told(TABLE, TABLE.replace('Path(input.path).read_text(encoding="utf-8")', text), PEOPLE, 2)
    assert "é" in found.depends


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('Path(input.path).read_bytes().decode("utf-8-sig")', False),
        ('Path(input.path).read_text(encoding="utf-8-sig", errors="replace")', True),
        ('Path(input.path).read_bytes().decode("utf-8-sig", "surrogateescape")', True),
        ('Path(input.path).read_text(encoding="latin-1").removeprefix("ï»¿")', True),
    ],
)
def test_who_takes_any_bytes_is_found(text: str, found: bool) -> None:
    own = TABLE.replace('Path(input.path).read_text(encoding="utf-8")', text)
    assert bool(told(TABLE, own, PEOPLE, 2).depends) is found


SIZES = TABLE.replace("people: list[str]", "people: list[int]").replace(
    """[f"{row['number']} {row['name']}" for row in rows]""",
    "[int(float(row['number'])) * 10 for row in rows]",
)
SIZED = [
    case(number, f"number,name\n{text},A\n", {"people": [tenths]})
    for number, (text, tenths) in enumerate([("1.5", 15), ("20.3", 203), ("3.0", 30), ("41", 410), ("5", 50)])
]


@pytest.mark.parametrize(
    ("number", "found"),
    [
        ("round(float(row['number']) * 10)", False),
        ("int(row['number'].replace('.', '')) * (1 if '.' in row['number'] else 10)", True),
        ("int((row['number'] + '.0').split('.')[0]) * 10 + int((row['number'] + '.0').split('.')[1])", True),
    ],
)
def test_who_goes_by_the_length_of_a_decimal_is_found(number: str, found: bool) -> None:
    own = SIZES.replace("int(float(row['number'])) * 10", number)
    assert own != SIZES
    assert ("zero" in told(SIZES, own, SIZED, 2).depends) is found


PAGES = '''"""A tool."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {"name": "people", "description": "Works.", "effects": ["read", "write"]}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    pages: list[str]


def run(input: Input) -> Output:
    pages = []
    for number, line in enumerate(Path(input.path).read_text().splitlines(), start=1):
        page = Path(f"{number}-{line}.txt")
        page.write_text(line)
        pages.append(page.name)
    return Output(pages=pages)
'''
WRITTEN = [
    case(number, text, {"pages": pages})
    for number, (text, pages) in enumerate(
        [
            ("A\n", ["1-a.txt"]),
            ("B\n", ["1-b.txt"]),
            ("c\n", ["1-c.txt"]),
            ("d\ne\n", ["1-d.txt", "2-e.txt"]),
            ("f\ng\n", ["1-f.txt", "2-g.txt"]),
        ]
    )
]


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ([], False),
        ([("    pages = []\n", "    pages = []\n    there = len([*Path().glob('?-*.txt')])\n"), ("start=1", "start=there + 1")], True),
        ([("        page.write_text(line)\n", "        if page.exists():\n            continue\n        page.write_text(line)\n")], True),
        ([("        page.write_text", "        if Path(input.path + '.skip').exists():\n            return Output(pages=[])\n        page.write_text")], True),
        ([("        page.write_text", "        if Path(input.path).with_suffix('.done').exists():\n            break\n        page.write_text")], True),
        ([("        page.write_text", "        if not Path(input.path).exists():\n            break\n        page.write_text")], False),
    ],
)  # fmt: skip
def test_who_looks_at_what_an_earlier_run_left_is_found(changes: list[tuple[str, str]], found: bool) -> None:
    own = PAGES.replace("{line}", "{line.lower()}")
    for change in changes:
        assert change[0] in own
        own = own.replace(*change)
    assert ("left beside" in told(PAGES, own, WRITTEN, 2).depends) is found


def test_a_base_that_looks_at_what_was_left_lets_its_edit_do_so() -> None:
    base = PAGES.replace(
        "        page.write_text(line)\n",
        "        if page.exists():\n            continue\n        page.write_text(line)\n",
    )
    assert told(base, base.replace("{line}", "{line.lower()}"), WRITTEN, 2).depends == ""


def test_where_the_base_depends_on_it_nobody_asks_the_edit_not_to() -> None:
    places = TABLE.replace("csv.DictReader(io.StringIO(text))", "text.splitlines()[1:]").replace(
        "{row['number']} {row['name']}", "{' '.join(row.split(','))}"
    )
    tasks = [replace(each, inputs={"a.txt": each.inputs["a.txt"]}) for each in PEOPLE[2:]]
    wrong = case(9, "number,name\n1, Flo\n", {"people": ["1 Flo"]})
    assert told(
        places, places.replace("row.split(',')", "row.replace(',', ' ').split()"), [wrong, *tasks], 1
    ) == (EditFindings(unguarded=False))


SUMS = '''"""A tool."""

from itertools import groupby
from pathlib import Path

from pydantic import BaseModel

TOOL = {"name": "people", "description": "Works.", "effects": ["read"]}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    sums: dict[str, int]


def run(input: Input) -> Output:
    sums: dict[str, int] = {}
    lines = [line.split() for line in Path(input.path).read_text().splitlines()[1:]]
    for name, number in lines:
        sums[name] = sums.get(name, 0) + -(-int(number) // 10)
    return Output(sums=sums)
'''
ROUNDED = [
    case(number, f"name number\n{text}\n", {"sums": sums})
    for number, (text, sums) in enumerate(
        [
            ("a 3\na 4\nb 10", {"a": 1, "b": 1}),
            ("c 10\na 5\na 5", {"a": 1, "c": 1}),
            ("a 10\nb 20\na 10", {"a": 2, "b": 2}),
            ("a 7\nb 8", {"a": 1, "b": 1}),
            ("b 10\na 20", {"a": 2, "b": 1}),
        ]
    )
]


@pytest.mark.parametrize(
    ("lines", "rest", "found"),
    [
        ("sorted(lines)", "int(line[1])", False),
        ("lines", "int(line[1])", True),  # of entries that follow one another
    ],
)
def test_who_goes_by_the_order_of_lines_is_found(lines: str, rest: str, found: bool) -> None:
    own = SUMS.replace(
        "for name, number in lines:", f"for name, entries in groupby({lines}, lambda line: line[0]):"
    )
    own = own.replace("int(number)", f"sum({rest} for line in entries)")
    assert ("lines in another order" in told(SUMS, own, ROUNDED, 2).depends) is found


def test_an_order_that_matters_with_the_evidence_alone_is_one_that_matters() -> None:
    listed = SUMS.replace("sums: dict[str, int]\n\n\n", "sums: list[str]\n\n\n").replace(
        "sums=sums", "sums=[*sums]"
    )
    tasks = [
        case(0, "name number\nb 1\na 2\n", {"sums": ["b:1", "a:2"]}),
        *(case(n, f"name number\na {n}\na {n}\n", {"sums": ["a"]}) for n in range(1, 5)),
    ]
    own = listed.replace(
        "[*sums]", "[*sums] if len(sums) < 2 else [f'{name}:{line[1]}' for name, line in zip(sums, lines)]"
    )
    assert told(listed, own, tasks, 1).depends == ""


def test_of_an_order_that_the_base_ends_at_it_says_nothing() -> None:
    own = SUMS.replace("sums: dict[str, int]\n\n\n", "sums: list[str]\n\n\n").replace(
        "sums=sums", "sums=lines[0]"
    )
    base = own.replace("    return", "    assert len(sums) < 2\n    return")
    tasks = [
        case(0, "name number\nb 1\na 2\n", {"sums": ["b", "1"]}),
        *(case(n, f"name number\na {n}\na {n}\n", {"sums": ["a", str(n)]}) for n in range(1, 5)),
    ]
    assert told(base, own, tasks, 1).depends == ""


def test_a_head_stays_the_first_line_and_a_document_as_it_is() -> None:
    turned = [
        each.case.inputs["a.txt"]
        for text in ("name, number\na 1\nb 2\nc 3\n", "a 1\nb\n", "a 1\n", "[1,\n2]")
        for each in rewritten([case(1, text, {})], "")
        if "lines" in each.says
    ]
    assert turned == [b"name, number\nb 2\na 1\nc 3\n", b"b\na 1\n"]


YEARS = '''"""A tool."""

from calendar import isleap
from datetime import date
from pathlib import Path

from pydantic import BaseModel

TOOL = {"name": "people", "description": "Works.", "effects": ["read"]}


class Input(BaseModel):
    path: str
    years: list[int]


class Output(BaseModel):
    days: list[str]


def run(input: Input) -> Output:
    first = date.fromisoformat(Path(input.path).read_text())
    days = []
    for year in (first.year + years for years in input.years):
        day = first.day
        days.append(first.replace(year=year, day=day).isoformat())
    return Output(days=days)
'''
DAYS = [
    case(number, first, {"days": days}, years=years)
    for number, (first, years, days) in enumerate(
        [
            ("2020-02-29", [1, 4], ["2021-02-28", "2024-02-29"]),
            ("2020-02-29", [4], ["2024-02-29"]),  # later, the base ends by the very fault
            ("2020-05-01", [3], ["2023-05-01"]),
            ("2021-06-30", [3], ["2024-06-30"]),
            ("2021-06-30", [4], ["2025-06-30"]),
        ]
    )
]


@pytest.mark.parametrize(
    ("day", "found"),
    [
        ("28 if (first.month, first.day) == (2, 29) and not isleap(year) else first.day", False),
        ("28 if (first.month, first.day) == (2, 29) and (year - first.year) % 4 else first.day", True),
        ("min(first.day, {2: 28 + (year % 4 == 0)}.get(first.month, 31))", True),
        ("first.day - (first.month == 2 and first.day == 29 and year & 3 > 0)", True),
    ],
)
def test_who_takes_each_fourth_year_for_a_leap_year_is_found(day: str, found: bool) -> None:
    own = YEARS.replace("first.day\n", f"{day}\n", 1)
    assert bool(told(YEARS, own, DAYS, 1).depends) is found


def test_days_that_cannot_be_moved_and_words_that_no_answer_repeats_stay() -> None:
    [same] = rewritten([case(1, "2024-02-29", {"day": "2024-02-29"})], "")
    assert same.case.inputs == {"a.txt": b"2024-02-29\xff"}
    one, garbled = rewritten([case(1, "Ada open", {"people": ["Ada"]})], "")
    assert one.case.inputs == {"a.txt": "Adaé open".encode()}
    assert one.expect({"people": ["Ada", "open"]}, {"people": ["Adaé", "open"]})
    assert garbled.case.inputs == {"a.txt": b"Ada open\xff"}
    assert len(rewritten([case(1, "Ada open", {"people": ["Ada"]})], "if name == 'Ada'")) == 1
    # one and the same to some
    assert len(rewritten([case(1, "Ada ada@x.org", {"people": ["Ada"]})], "")) == 1


def test_an_answer_with_a_field_of_errors_is_no_refusal() -> None:
    refused = {"error": "UnicodeDecodeError", "message": "invalid start byte"}
    for other in rewritten([case(1, "2026-01-02", {"day": "2026-01-02", "error": 0})], ""):
        later = "years" in other.says
        assert other.expect({"error": 0, "day": ""}, {"error": "", "day": "2102-01-02"}) is later
        assert other.expect({"error": 0, "day": ""}, refused) is not later


LISTED = TABLE.replace("rows = list(csv.DictReader(io.StringIO(text)))", "rows = json.loads(text)").replace(
    "import csv\n", "import json\n"
)


def listed(number: int, name: str) -> Case:
    text = f'[\\n {{"number": "{number}", "name": {name}}}\\n]'.replace("\\n", "\n")
    return case(number, text, {"people": [f"{number} {name.strip(chr(34))}"]})


def test_json_says_the_same_without_blanks() -> None:
    tasks = [listed(number, name) for number, name in enumerate(['"Bo Ek"', '"Cy"', '"Di"', "null"])]
    tasks[3] = replace(tasks[3], checks=(Check("equals", {"value": {"people": ["3 ?"]}}),))
    texts = {item.case.inputs["a.txt"] for item in rewritten(tasks, "") if "JSON" in item.says}
    assert b'[{"number":"0","name":"Bo Ek"}]' in texts
    by_text = LISTED.replace(
        "json.loads(text)", 'json.loads(text.replace(\'"name": null\', \'"name": "?"\'))'
    )
    by_value = LISTED.replace("{row['name']}", "{row['name'] or '?'}")
    known = Known(tasks, {0, 1, 2}, b"k" * 32, FEW)

    def found(own: str) -> EditFindings:
        return compared(lambda cases: LocalBench(cases, 0.5), known, LISTED, own, {})

    assert "JSON" in found(by_text).depends
    assert found(by_value).depends == ""
