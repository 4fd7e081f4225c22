"""The screen refuses what is outside the surface, hides errors, or fits the test instead of the tool."""

import time
from collections.abc import Sequence

import pytest

from agentos.domain import Check
from agentos.domain import RefusalKind as K
from agentos.evolver.guards.static import SECRET, untold
from agentos.evolver.guards.static.check import findings
from agentos.evolver.policy import Screen, SurfacePolicy
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
SURFACE = SurfacePolicy()
CHECKS = (Check("equals", {"path": "total", "value": 1234.5}),)


def refused(old: str, new: str, path: str = PATH) -> K | None:
    assert old in TOOL
    return kind_of({path: TOOL}, {path: TOOL.replace(old, new)})


def kind_of(
    old: dict[str, str],
    new: dict[str, str],
    checks: Sequence[Check] = CHECKS,
    surface: SurfacePolicy = SURFACE,
) -> K | None:
    """As what the screen refuses it."""
    found = screen(old, new, checks, surface)
    return found and found.kind


def told(
    old: dict[str, str],
    new: dict[str, str],
    checks: Sequence[Check] = CHECKS,
    surface: SurfacePolicy = SURFACE,
) -> str:
    """What it says of it."""
    found = screen(old, new, checks, surface)
    return found.reason if found else ""


def test_a_small_honest_edit_passes() -> None:
    assert refused("> 0:", ">= 0:") is None
    assert refused("import csv", "import csv\nimport math") is None
    assert (
        refused("import csv", "import csv\nfrom calendar import monthrange\nfrom copy import deepcopy")
        is None
    )
    assert (
        refused("import csv", "import csv\nimport re\nMARK = re.compile('x')\nfrom html import unescape")
        is None
    )


@pytest.mark.parametrize(
    ("new", "rule"),
    [
        ("from urllib.request import urlopen", "import"),
        ("import urllib\nX = urllib.request", "network"),
        ("from contextlib import suppress\nwith suppress(ValueError):\n    X = int('1')", "swallow"),
        ("from builtins import compile", "dynamic"),
        ("import email.utils\nX = email.utils.localtime()", "tell"),
    ],
)
def test_what_lies_below_a_harmless_library_is_for_the_guards(new: str, rule: str) -> None:
    assert rule in {hit.rule for hit in findings({PATH: TOOL}, {PATH: f"{TOOL}\n\n{new}\n"}, Screen())}


@pytest.mark.parametrize(
    "path",
    [
        "environment/default/setup.sh",
        "agent/default/notes.md",
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
    assert refused("> 0:", ">= 0:", path) is K.SURFACE


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("    column: str\n", "    column: str\n    extra: int = 0\n", K.CONTRACT),
        ("    total: float\n", "    total: float | None\n", K.CONTRACT),
        ('"effects": ["read"]', '"effects": ["pure"]', K.CONTRACT),
        ("def run(input: Input)", "def run(input: Input, more: int = 1)", K.CONTRACT),
        ("import csv\n", "import csv\nimport socket\n", K.SCREEN),
        ("import csv\n", "import csv\nimport subprocess as json\n", K.SCREEN),
        ("    total = 0.0\n", "    total = eval('0.0')\n", K.SCREEN),
        ("    total = 0.0\n", "    total = 0.0\n    print(Input.__init__)\n", K.SCREEN),
        ("return Output(total=total)", "return Output(total=1234.5)", K.EXPECTED),
        ("    total = 0.0\n", "    total = 0.0\n    key = 'AKIAABCDEFGHIJKLMNOP'\n", K.TEXT),
        ("    total = 0.0\n", "    total = (\n", K.TEXT),
        ("    total = 0.0\n", "    total = 0.0\n" + "    total = total\n" * 50, K.SURFACE),
        ("> 0:", "> 0:", K.SURFACE),
    ],
)
def test_what_no_repair_may_do(old: str, new: str, kind: K) -> None:
    assert refused(old, new) is kind


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
    assert refused("total=total", f"total={written}") is K.EXPECTED
    assert "(1234.5)" in told({PATH: TOOL}, {PATH: TOOL.replace("total=total", f"total={written}")})


def test_a_word_that_all_failing_work_is_given_is_no_expected_value() -> None:
    given = ['{"kind":"script"}\ndefault-src a.com', '{"kind":"style"}\ndefault-src b.com']
    edit = TOOL.replace("total = 0.0", "total = {'default-src': 0.0}.get(input.column, 0.0)")

    def seen(wanted: str, texts: list[str]) -> K | None:
        checks = (Check("equals", {"value": {"by": wanted, "total": 12}}),)
        return kind_of({PATH: TOOL}, {PATH: edit.replace("default-src", wanted)}, untold(checks, texts))

    assert seen("default-src", given) is None
    assert seen("default-src", given[:1] * 2) is K.EXPECTED, "one input alone"
    assert seen("default-src", [*given, "img-src c.com"]) is K.EXPECTED, "not in each"
    assert seen("default", ["defaults a", "the defaults"]) is K.EXPECTED, "a part of a word"
    assert seen("rule-12", ["rule-12 a", "rule-12 b"]) is K.EXPECTED, "a code"
    checks = (Check("equals", {"value": {"by": "default-src"}}),)
    assert kind_of({PATH: TOOL}, {PATH: edit}, untold(checks, given)) is K.EXPECTED, "the whole answer"


def test_a_unit_is_no_expected_value_although_a_check_expects_it() -> None:
    for unit, kind in ((1000, None), (0.001, None), (3600, None), (1001, K.EXPECTED), ("1000", K.EXPECTED)):
        checks = (Check("equals", {"path": "total", "value": unit}),)
        edit = TOOL.replace("total=total", f"total={{'kg': {unit!r}}}.get(input.column, total)")
        assert kind_of({PATH: TOOL}, {PATH: edit}, checks) is kind


def test_an_expected_value_is_found_through_names_and_as_a_whole_number() -> None:
    named = "    base = 1200\n    more = base + 34.5\n    total = 0.0\n"
    assert refused("    total = 0.0\n", named) is K.EXPECTED
    checks = (Check("equals", {"path": "total", "value": 101}),)
    edit = TOOL.replace("total=total", "total={607: 100.0 + 1}.get(total, total)")
    assert kind_of({PATH: TOOL}, {PATH: edit}, checks) is K.EXPECTED
    assert "(101)" in told({PATH: TOOL}, {PATH: edit}, checks)


@pytest.mark.parametrize(
    "written", ["9 ** 9 ** 9", "'a' * 10 ** 9", "'%999999999d' % 1", "f'{1:>999999999}'"]
)
def test_what_would_cost_much_to_reckon_is_not_reckoned(written: str) -> None:
    since = time.process_time()
    assert refused("    total = 0.0\n", f"    total = 0.0\n    len(str({written}))\n") is None
    assert time.process_time() - since < 2


def test_a_skill_that_is_called_a_harness_keeps_its_tools_contract() -> None:
    changed = ("    column: str\n", "    column: str\n    extra: int = 0\n")
    assert refused(*changed, "skill/test-harness/tools/column_sum.py") is K.CONTRACT
    assert refused(*changed, "tool/harness/tool.py") is K.CONTRACT


def test_a_sign_may_say_how_it_is_drawn() -> None:
    path = "memory/default/memory.md"
    assert kind_of({path: "- a\n"}, {path: "- a\n- Mind \u26a0\ufe0f and \u2764\ufe0e.\n"}) is None


@pytest.mark.parametrize(
    ("wanted", "written", "kind"),
    [
        (1015, '{"a": "1015"}', K.EXPECTED),
        ("1015", '{"a": 1015}', K.EXPECTED),
        ("12.50", '{"a": 12.5}', K.EXPECTED),
        (1015, '{"a": "1016"}', None),
        ("007", '{"a": 7}', None),
        ("1000", '{"a": 1000}', None),
        ("a1015", '{"a": 1015}', None),
    ],
)
def test_a_number_is_the_one_that_is_expected_whether_it_is_a_text(
    wanted: object, written: str, kind: K | None
) -> None:
    new = TOOL.replace("total = 0.0", f"total = 0.0 + {written}.get(input.path, 0)")
    checks = (Check("equals", {"path": "total", "value": wanted}),)
    assert kind_of({PATH: TOOL}, {PATH: new}, checks) is kind


def test_a_field_may_have_the_name_of_what_is_dangerous() -> None:
    base = TOOL.replace("    column: str\n", "    column: str\n    system: str = ''\n")
    new = base.replace("total = 0.0", "total = 0.0 if input.system else 1.0")
    assert kind_of({PATH: base}, {PATH: new}) is None


def test_whether_a_tool_is_waited_for_belongs_to_its_contract() -> None:
    assert refused("def run(", "async def run(") is K.CONTRACT


LOOSE = "class Loose(BaseModel):\n    path: object\n\n\n"
REBOUND = {
    "another class": f"{LOOSE}Input = Loose\n",
    "by a hint": f"{LOOSE}Input: type = Loose\n",
    "among others": f"{LOOSE}Input, other = Loose, 1\n",
    "below a condition": "if True:\n    class Input(BaseModel):\n        path: object\n",
    "in a loop": f"{LOOSE}for Input in [Loose]:\n    pass\n",
    "in an expression": f"{LOOSE}print(Input := Loose)\n",
    "by an import": "from decimal import Decimal as Output\n",
    "from a function": f"{LOOSE}def exchange():\n    global Input\n    Input = Loose\n\n\nexchange()\n",
    "a field": "Input.model_fields['path'].annotation = object\n",
    "an attribute": "Output.model_config = {}\n",
    "a call": "Input.model_fields.clear()\n",
    "the function": "def other(input):\n    return Output(total=1)\n\n\nrun = other\n",
    "gone": "del Output\n",
    "a second one": "def run(input: Input, more=1) -> Output:\n    return Output(total=1)\n",
}


@pytest.mark.parametrize("way", REBOUND)
def test_the_contract_is_not_bound_anew(way: str) -> None:
    new = f"{TOOL}\n\n{REBOUND[way]}"
    assert kind_of({PATH: TOOL}, {PATH: new}) is K.CONTRACT
    changed = new.replace("total = 0.0", "total = 1.0")
    assert kind_of({PATH: new}, {PATH: changed}) is None  # what was there is not the edit's fault


@pytest.mark.parametrize(
    "more",
    [
        "class Steps:\n    def run(self):\n        Input = 1\n        return Input\n",
        "def helper(run, TOOL=None):\n    return [Input.model_validate(run)]\n",
        "first = [run for run in (1, 2)][0]\n",
    ],
    ids=["a method", "a parameter", "within a list"],
)
def test_names_of_ones_own_are_not_the_contracts(more: str) -> None:
    assert kind_of({PATH: TOOL}, {PATH: f"{TOOL}\n\n{more}"}) is None


def test_more_files_than_allowed_are_refused() -> None:
    other = PATH.replace("column_sum", "other")
    assert kind_of({}, {PATH: TOOL, other: TOOL}, CHECKS, SurfacePolicy(max_files=1)) is K.SURFACE
    assert "2 files" in told({}, {PATH: TOOL, other: TOOL}, CHECKS, SurfacePolicy(max_files=1))


def test_lines_that_a_long_file_has_often_are_no_change() -> None:
    old = TOOL + "".join(
        f"\n\ndef part_{at}(x):\n    if x:\n        return\n    return\n" for at in range(40)
    )
    new = old
    for at in range(4):  # what stands between two changes stays
        was = f"part_{at}(x):\n    if x:\n        return\n"
        new = new.replace(was, f"piece_{at}(x):\n    if x:\n        return 1\n")
    assert kind_of({PATH: old}, {PATH: new}, surface=SurfacePolicy(max_changed_code=16)) is None
    assert kind_of({PATH: old}, {PATH: new}, surface=SurfacePolicy(max_changed_code=15)) is K.SURFACE


def test_a_new_tool_states_its_contract_and_starts_nothing_bad() -> None:
    path = "tool/column-sum/tool.py"
    assert kind_of({}, {path: TOOL}) is None
    assert kind_of({}, {path: TOOL.replace("Output", "Outcome")}) is K.CONTRACT
    started = TOOL.replace("total = 0.0", "total = eval('0.0')")
    assert kind_of({}, {path: started}) is K.SCREEN
    greedy = TOOL.replace('"effects":', '"secrets": ["API"], "effects":')
    assert greedy != TOOL
    assert kind_of({}, {path: greedy}) is K.CONTRACT
    assert kind_of({path: TOOL}, {path: greedy}) is K.CONTRACT
    shipped = "skill/csv/checks/all.yaml"
    assert kind_of({}, {shipped: "- contains: x\n"}) is K.SURFACE
    assert kind_of({}, {path: TOOL + "\n" * 200}) is K.SURFACE
    assert "a new file of" in told({}, {path: TOOL + "\n" * 200})


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("- The total of march is 1234.5", K.EXPECTED),
        ("- The key is sk-abcdefghijklmnop1234", K.TEXT),
        ("- Amounts are in cents\u200b", K.TEXT),
        ("- Amounts are in \u202estnec", K.TEXT),
        ("- Amounts are in \u3164cents", K.TEXT),
        ("- Amounts \u2764" + "".join(chr(0xE0100 + byte) for byte in b"are in euros"), K.TEXT),
        ("- Amounts \u2764" + "\ufe0e\ufe0f" * 8, K.TEXT),
        ("- " + "x" * 700, K.TEXT),
    ],
)
def test_a_text_may_not_bring_in_answers_secrets_or_what_is_not_seen(line: str, kind: K) -> None:
    path, old = "memory/default/memory.md", "# Lessons\n"
    assert kind_of({path: old}, {path: f"{old}{line}\n"}) is kind
    assert kind_of({path: old}, {path: f"{old}- Amounts are in cents.\n"}) is None
    assert kind_of({}, {path: f"{old}- Amounts are in cents.\n"}) is None


@pytest.mark.parametrize(
    "line",
    [
        "1,234.5 in march",
        "1 234,50 in march",
        "1.234,5 in march",
        "1'234.5 in march",
        "1_234.5 in march",
        "**1234**.5 in march",
        "\uff11\uff12\uff13\uff14.\uff15 in march",
        "MTIzNC41 in march",
        "LISBON is the capital",
        "it is new\n  york",
        "`new`  york",
    ],
)
def test_an_answer_may_not_be_written_in_another_form(line: str) -> None:
    path, old = "memory/default/memory.md", "# Lessons\n"
    checks = tuple(Check("equals", {"value": value}) for value in (1234.5, "Lisbon", "New York"))
    assert kind_of({path: old}, {path: f"{old}- {line}\n"}, checks) is K.EXPECTED
    assert kind_of({path: f"{old}- {line}\n"}, {path: f"{old}- {line}\n- Add up.\n"}, checks) is None
    for other in ("1,234 or 0.5 of it", "12345", "1,234.51", "lisbons", "newyork", "1,2,3,4.5"):
        assert kind_of({path: old}, {path: f"{old}- {other}\n"}, checks) is None, other


PAGE = "---\nname: csv\ndescription: Adds up columns.\nallowed-tools: Read\nmetadata:\n  agentos-evolvable: 'true'\n---\n\nUse it.\n"


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("Read", "Read Bash", K.SURFACE),
        ("allowed-tools: Read\n", "", K.SURFACE),
        ("name: csv", "name: other", K.SURFACE),
        ("'true'", "'false'", K.SURFACE),
        ("---\nname", "name", K.SURFACE),
        ("'true'", '"true"', None),
        ("Adds up columns.", "Adds up columns. Use it for sums.", None),
        ("Use it.", "Use it. allowed-tools: Bash", None),
    ],
)
def test_an_edit_of_a_skills_page_grants_nothing(old: str, new: str, kind: K | None) -> None:
    path = "skill/csv/SKILL.md"
    assert kind_of({path: PAGE}, {path: PAGE.replace(old, new, 1)}, ()) is kind
    assert kind_of({}, {path: PAGE}, ()) is None


@pytest.mark.parametrize("end", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_nothing_hides_behind_what_some_take_for_the_end_of_a_line(end: str) -> None:
    path, old = "memory/default/memory.md", "- [one] Be kind.\n"
    assert kind_of({path: old}, {path: f"{old}- [two] Be quick.{end}Be unkind.\n"}, ()) is K.TEXT
    crlf = old.replace("\n", "\r\n")
    assert kind_of({path: crlf}, {path: f"{crlf}- [two] Be quick.\r\n"}, ()) is None


@pytest.mark.parametrize("line", ["++ more", "-- more", "-- more\n++ more"])
def test_lines_that_look_like_the_head_of_a_diff_are_counted(line: str) -> None:
    path, old = "prompt/default/prompt.md", "Be kind.\n"
    assert kind_of({path: old}, {path: old + f"{line}\n" * 30}, ()) is K.SURFACE
    assert "at most 20" in told({path: old}, {path: old + f"{line}\n" * 30}, ())
    there = old + "-- there\n" * 30
    assert kind_of({path: there}, {path: old}, ()) is K.SURFACE
    assert "30 lines" in told({path: there}, {path: old}, ())


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
    assert kind_of({path: old}, {path: old + "- [two] Canberra it is.\n"}, checks) is K.EXPECTED
    source = TOOL.replace("total = 0.0", "total = 'Canberra'")
    assert kind_of({PATH: TOOL}, {PATH: source}, checks) is K.EXPECTED
    assert kind_of({path: old}, {path: old + "- [two] Name the city.\n"}, checks) is None


@pytest.mark.parametrize("part", ["eyJ", "-----BEGIN ", "A ", "sk-", "eyJhbGciOiJI."])
def test_no_text_makes_the_look_for_secrets_long(part: str) -> None:
    began = time.process_time()
    SECRET.search(part * (250_000 // len(part)))
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize(
    "written",
    [
        "x = " + "(" * 5000 + ")" * 5000,
        "x = " + "-" * 100_000 + "1",  # each of these ends the parser, or what walks the tree, in its own way
        "x = " + "1 + " * 950 + "1",
        "x = Input" + ".a" * 600,
        "x = " + "lambda: " * 950 + "1",
        "x = 0x" + "f" * 5000,
        "x = 1; " * 4,
        "x = '" + "a" * 300_000 + "'",
        "\0",
    ],
    ids=lambda text: text[:12],
)
def test_source_made_to_break_what_reads_it_is_refused(written: str) -> None:
    assert kind_of({PATH: TOOL}, {PATH: f"{TOOL}{written}\n"}) in (K.TEXT, K.SURFACE)


@pytest.mark.parametrize("twice", ["{0} + {0}", "({0}, {0})", "{{1: {0}, 2: {0}}}", "[*{0}, *{0}]"])
def test_what_doubles_with_each_line_is_not_put_together(twice: str) -> None:
    lines = [f"t{number} = {twice.format(f't{number - 1}')}" for number in range(1, 80)]
    new = "\n".join([TOOL, "t0 = (1, 1)", *lines, "text = repr(t79)\n"])
    since = time.process_time()
    assert kind_of({}, {PATH: new}) is None
    assert time.process_time() - since < 5


@pytest.mark.parametrize("path", ["tool/double/resource.toml", "harness/default/resource.toml"])
def test_a_document_made_to_break_its_parser_is_refused(path: str) -> None:
    old = 'description = "x"\n'
    deep = "a = " + ("[" * 590 + "\n") * 9 + ("]" * 590 + "\n") * 9
    assert kind_of({path: old}, {path: old + deep}) is K.TEXT


def test_a_helper_that_is_no_python_is_mended_and_hides_no_expected_value() -> None:
    helper = PATH.replace("column_sum", "_rows")
    for broken in ("def rows(:\n", "x = 1\0"):
        old = {PATH: TOOL, helper: broken}
        assert kind_of(old, {helper: "def rows():\n    return []\n"}) is None
        assert kind_of(old, {helper: "def rows():\n    return 1234.5\n"}) is K.EXPECTED
        assert kind_of(old, {helper: "import socket\n"}) is not None
        assert kind_of(old, {helper: "def rows(::\n"}) is K.TEXT
