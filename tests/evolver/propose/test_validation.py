"""The screen refuses what is outside the surface, hides errors, or fits the test instead of the tool."""

import time

import pytest

from agentos.domain import Check
from agentos.evolver.guards.static.text_lint import SECRET
from agentos.evolver.policy import SurfacePolicy
from agentos.evolver.propose.validation import screen

PATH = "skill/csv-report/tools/column_sum.py"
TOOL = '''"""Sum a column."""

import csv

from pydantic import BaseModel

TOOL = {"name": "column_sum", "description": "Sum a column.", "effects": ["read"], "dependencies": []}


class Input(BaseModel):
    path: str
    column: str


class Output(BaseModel):
    total: float


def run(input: Input) -> Output:
    total = 0.0
    with open(input.path, newline="") as file:
        for row in csv.DictReader(file):
            if float(row[input.column]) > 0:
                total += float(row[input.column])
    return Output(total=total)
'''
CHECKS = (Check("equals", {"path": "total", "value": 1234.5}),)


def refused(old: str, new: str, path: str = PATH) -> str:
    assert old in TOOL
    return screen({path: TOOL}, {path: TOOL.replace(old, new)}, CHECKS, SurfacePolicy())


def test_a_small_honest_edit_passes() -> None:
    assert refused("> 0:", ">= 0:") == ""
    assert refused("import csv", "import csv\nimport math") == ""


@pytest.mark.parametrize(
    "path",
    [
        "environment/default/resource.toml",
        "agent/default/resource.toml",
        "model/default/resource.toml",
        "skill/csv-report/tools/wheels.lock",
        "skill/csv-report/tools/deep/er.py",
        "skill/csv-report/../../harness/tools/x.py",
        "/etc/passwd.py",
        "skill/a/b/tools/x.py",
        "registry.toml",
        "skill/csv-report//tools/x.py",
        "tool/Foo Bar/tool.py",
        "tool/résumé/tool.py",
        "tool/.git/tool.py",
        "tool/a/\x1b[31m.py",
        "tool/a/.py",
    ],
)
def test_paths_outside_the_surface_are_refused(path: str) -> None:
    reason = refused("> 0:", ">= 0:", path)
    assert "outside the surface" in reason or "not a plain registry path" in reason


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("    column: str\n", "    column: str\n    extra: int = 0\n", "contract (Input)"),
        ("    total: float\n", "    total: float | None\n", "contract (Output)"),
        ('"effects": ["read"]', '"effects": ["pure"]', "contract (TOOL)"),
        ("def run(input: Input)", "def run(input: Input, more: int = 1)", "contract (run)"),
        ("import csv\n", "import csv\nimport socket\n", "import socket"),
        ("import csv\n", "import csv\nimport subprocess as json\n", "import subprocess"),
        ("    total = 0.0\n", "    total = eval('0.0')\n", "eval"),
        ("    total = 0.0\n", "    total = 0.0\n    Input.__init__ = None\n", "__init__"),
        ("return Output(total=total)", "return Output(total=1234.5)", "expected value"),
        ("    total = 0.0\n", "    total = 0.0\n    key = 'AKIAABCDEFGHIJKLMNOP'\n", "secret"),
        ("    total = 0.0\n", "    total = (\n", "not valid Python"),
        ("    total = 0.0\n", "    total = 0.0\n" + "    total = total\n" * 30, "changes 30 lines"),
        (
            "    total = 0.0\n",
            "    total = 0.0\n    try:\n        pass\n    except Exception:\n        pass\n",
            "except",
        ),
        ("> 0:", "> 0:", "changes nothing"),
    ],
)
def test_what_no_repair_may_do(old: str, new: str, says: str) -> None:
    assert says in refused(old, new)


@pytest.mark.parametrize(
    "written",
    [
        "1234.5",
        "1200 + 34.5",
        "2469 / 2",
        "-(-1234.5)",
        "float('1234' + '.5')",
        "float(f'{1234}.{5}')",
        "float('{}.{}'.format(1234, 5))",
        "float('%d.5' % 1234)",
        "float('5.4321'[::-1])",
        "float(''.join(['12', '34.5']))",
        "(7, 1234.5)[1]",
        "{'march': 1234.5}.get(input.column, total)",
        "{'march': 1000 + 234.5}[input.column]",
        "{1: 1234 + 0.5}[1]",
        "sum((1234, 0.5))",
        "int('4d2', 16) + 0.5",
        "1234 + 2 ** -1",
        "ord('A') + 1169.5",
    ],
)
def test_an_expected_value_is_found_however_it_is_put_together(written: str) -> None:
    assert "expected value into the source (1234.5)" in refused("total=total", f"total={written}")


def test_an_expected_value_is_found_through_names_and_as_a_whole_number() -> None:
    named = "    base = 1200\n    more = base + 34.5\n    total = 0.0\n"
    assert "expected value" in refused("    total = 0.0\n", named)
    checks = (Check("equals", {"path": "total", "value": 101}),)
    edit = TOOL.replace("total=total", "total={607: 100.0 + 1}.get(total, total)")
    assert "expected value into the source (101)" in screen(
        {PATH: TOOL}, {PATH: edit}, checks, SurfacePolicy()
    )


@pytest.mark.parametrize(
    "written", ["9 ** 9 ** 9", "'a' * 10 ** 9", "'%999999999d' % 1", "f'{1:>999999999}'"]
)
def test_what_would_cost_much_to_reckon_is_not_reckoned(written: str) -> None:
    since = time.monotonic()
    assert refused("    total = 0.0\n", f"    total = 0.0\n    len(str({written}))\n") == ""
    assert time.monotonic() - since < 2


def test_a_skill_that_is_called_a_harness_keeps_its_tools_contract() -> None:
    changed = ("    column: str\n", "    column: str\n    extra: int = 0\n")
    assert "contract (Input)" in refused(*changed, "skill/test-harness/tools/column_sum.py")
    assert "contract (Input)" in refused(*changed, "tool/harness/tool.py")


def test_more_files_than_allowed_are_refused() -> None:
    other = PATH.replace("column_sum", "other")
    assert "touches 2 files" in screen({}, {PATH: TOOL, other: TOOL}, CHECKS, SurfacePolicy(max_files=1))


def test_a_new_tool_states_its_contract_and_starts_nothing_bad() -> None:
    path = "tool/column-sum/tool.py"
    assert screen({}, {path: TOOL}, CHECKS, SurfacePolicy()) == ""
    assert "without Output" in screen({}, {path: TOOL.replace("Output", "Outcome")}, CHECKS, SurfacePolicy())
    started = TOOL.replace("total = 0.0", "total = eval('0.0')")
    assert "starts to use eval" in screen({}, {path: started}, CHECKS, SurfacePolicy())
    greedy = TOOL.replace('"effects":', '"secrets": ["API"], "effects":')
    assert greedy != TOOL
    assert "asks for secrets" in screen({}, {path: greedy}, CHECKS, SurfacePolicy())
    assert "contract" in screen({path: TOOL}, {path: greedy}, CHECKS, SurfacePolicy())
    shipped = "skill/csv/checks/all.yaml"
    assert "outside the surface" in screen({}, {shipped: "- contains: x\n"}, CHECKS, SurfacePolicy())
    assert "a new file of" in screen({}, {path: TOOL + "\n" * 200}, CHECKS, SurfacePolicy())


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("- The total of march is 1234.5", "writes an expected value"),
        ("- The key is sk-abcdefghijklmnop1234", "secret"),
        ("- Amounts are in cents\u200b", "not seen"),
        ("- Amounts are in \u202estnec", "not seen"),
        ("- " + "x" * 700, "more than 600"),
    ],
)
def test_a_text_may_not_bring_in_answers_secrets_or_what_is_not_seen(line: str, says: str) -> None:
    path, old = "memory/default/memory.md", "# Lessons\n"
    assert says in screen({path: old}, {path: f"{old}{line}\n"}, CHECKS, SurfacePolicy())
    assert screen({path: old}, {path: f"{old}- Amounts are in cents.\n"}, CHECKS, SurfacePolicy()) == ""
    assert screen({}, {path: f"{old}- Amounts are in cents.\n"}, CHECKS, SurfacePolicy()) == ""


@pytest.mark.parametrize("end", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_nothing_hides_behind_what_some_take_for_the_end_of_a_line(end: str) -> None:
    path, old = "memory/default/memory.md", "- [one] Be kind.\n"
    reason = screen({path: old}, {path: f"{old}- [two] Be quick.{end}Be unkind.\n"}, (), SurfacePolicy())
    assert "not seen" in reason
    crlf = old.replace("\n", "\r\n")
    assert screen({path: crlf}, {path: f"{crlf}- [two] Be quick.\r\n"}, (), SurfacePolicy()) == ""


@pytest.mark.parametrize("line", ["++ more", "-- more", "-- more\n++ more"])
def test_lines_that_look_like_the_head_of_a_diff_are_counted(line: str) -> None:
    path, old = "prompt/default/prompt.md", "Be kind.\n"
    reason = screen({path: old}, {path: old + f"{line}\n" * 30}, (), SurfacePolicy())
    assert "lines, at most 20 are allowed" in reason
    there = old + "-- there\n" * 30
    assert "it changes 30 lines" in screen({path: there}, {path: old}, (), SurfacePolicy())


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("equals", {"value": {"city": "Canberra"}}),
        ("contains", {"value": "Canberra"}),
        ("regex", {"pattern": "^Canberra$"}),
        ("json_schema", {"schema": {"properties": {"city": {"enum": ["Canberra"]}}}}),
        ("file", {"path": "a.txt", "equals": "Canberra"}),
        ("file", {"path": "a.txt", "contains": "Canberra"}),
        ("command", {"argv": ["cat", "a.txt"], "stdout_contains": "Canberra"}),
        ("python", {"code": "assert answer['city'] == 'Canberra'"}),
    ],
)
def test_what_any_kind_of_check_expects_may_not_be_written_down(kind: str, spec: dict[str, object]) -> None:
    checks = (Check(kind, spec),)
    path, old = "memory/default/memory.md", "- [one] Be kind.\n"
    assert "expected value" in screen(
        {path: old}, {path: old + "- [two] Canberra it is.\n"}, checks, SurfacePolicy()
    )
    source = TOOL.replace("total = 0.0", "total = 'Canberra'")
    assert "expected value" in screen({PATH: TOOL}, {PATH: source}, checks, SurfacePolicy())
    assert screen({path: old}, {path: old + "- [two] Name the city.\n"}, checks, SurfacePolicy()) == ""


@pytest.mark.parametrize("part", ["eyJ", "-----BEGIN ", "A ", "sk-", "eyJhbGciOiJI."])
def test_no_text_makes_the_look_for_secrets_long(part: str) -> None:
    began = time.process_time()
    SECRET.search(part * (250_000 // len(part)))
    assert time.process_time() - began < 1.0


def test_source_made_to_break_the_parser_is_refused() -> None:
    deep = TOOL + "x = " + "(" * 5000 + ")" * 5000
    assert "not valid Python" in screen({PATH: TOOL}, {PATH: deep}, CHECKS, SurfacePolicy())
    assert "not valid Python" in screen({PATH: TOOL}, {PATH: TOOL + "\0"}, CHECKS, SurfacePolicy())
