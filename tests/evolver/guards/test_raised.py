"""Every way that was thought of to get past the raise that is the evidence, and repairs that are none."""

from __future__ import annotations

import pytest

from agentos.domain import Fault
from agentos.evolver.guards.static.raised import defused

PATH = "tool/total/tool.py"
SOURCE = '''"""Adds up."""
import contextlib
class Odd(ValueError): pass
def check(row):
    if len(row) != 2:
        raise Odd(f"a row has 2 fields, not {len(row)}")
    return row
def parse(line):
    try:
        return check(line.split(","))
    except KeyError:
        return []
def run(input):
    total = 0
    for line in input.lines:
        name, amount = parse(line)
        total += int(amount)
    return total
'''
FAULT = Fault("Odd", "a row has 2 fields, not 3", f"{PATH}:check", "tool/total")
TEST = "if len(row) != 2:"
RAISE = '        raise Odd(f"a row has 2 fields, not {len(row)}")\n'
CALL = 'return check(line.split(","))'


def why(old: str, new: str, *, checked: bool = True, fault: Fault = FAULT, source: str = SOURCE) -> str:
    assert old in source
    found = defused({PATH: source}, {PATH: source.replace(old, new)}, [fault], checked=checked)
    return found.reason if found else ""


GOT_PAST = {
    "deleted": (f"    {TEST}\n{RAISE}", ""),
    "a default in its place": (RAISE, "        return ['', '0']\n"),
    "pass in its place": (RAISE, "        pass\n"),
    "another exception": (RAISE, RAISE.replace("Odd(", "KeyError(")),
    "a print in its place": (RAISE, "        print(row)\n"),
    "an assertion in its place": (f"    {TEST}\n{RAISE}", "    assert len(row) == 2\n"),
    "False and": (TEST, "if False and len(row) != 2:"),
    "and not itself": (TEST, "if len(row) != 2 and len(row) == 2:"),
    "a negative length": (TEST, "if len(row) < 0:"),
    "a length below none": (TEST, "if 0 > len(row):"),
    "minus one": (TEST, "if len(row) == -1:"),
    "a length that nothing has": (TEST, "if len(row) > 10000000 + 7 and True:"),
    "a large one": (TEST, "if len(row) > 99999999:"),
    "unlike itself": (TEST, "if row != row:"),
    "in nothing": (TEST, "if len(row) in ():"),
    "of no class": (TEST, "if isinstance(row, ()):"),
    "not always": (TEST, "if not len(row) >= 0:"),
    "all and never": (TEST, "if all([len(row) != 2, False]):"),
    "a constant": (TEST, "STRICT = False\n    if STRICT and len(row) != 2:"),
    "a loop over nothing": (f"    {TEST}\n{RAISE}", f"    for _ in ():\n{RAISE}"),
    "in the else of what always holds": (f"    {TEST}\n{RAISE}", f"    if len(row) >= 0:\n        pass\n    else:\n{RAISE}"),
    "behind a return": (f"    {TEST}\n{RAISE}    return row\n", f"    return row\n    {TEST}\n{RAISE}"),
    "behind a return within with": (f"    {TEST}\n{RAISE}    return row\n", f"    with contextlib.nullcontext():\n        return row\n    {TEST}\n{RAISE}"),
    "behind a return within try": (f"    {TEST}\n{RAISE}    return row\n", f"    try:\n        return row\n    finally:\n        pass\n    {TEST}\n{RAISE}"),
    "behind a try that always leaves": (f"    {TEST}\n{RAISE}    return row\n", f"    try:\n        row = [*row]\n    except KeyError:\n        return []\n    else:\n        return row\n    {TEST}\n{RAISE}"),
    "behind any case": (f"    {TEST}\n{RAISE}    return row\n", f"    match row:\n        case [name]:\n            return [name, '0']\n        case _:\n            return row\n    {TEST}\n{RAISE}"),
    "behind a return under its condition": (f"    {TEST}\n", f"    {TEST}\n        return ['', '0']\n    {TEST}\n"),
    "behind a return under more": (f"    {TEST}\n", f"    if not row or len(row) != 2:\n        return ['', '0']\n    {TEST}\n"),
    "in a function that is only named": (f"    {TEST}\n{RAISE}", f"    def strict():\n        {TEST}\n    {RAISE}    _ = strict\n"),
    "in a function that nobody calls": (f"    {TEST}\n{RAISE}", f"    def strict():\n        {TEST}\n    {RAISE}"),
    "wrapped": (f"    {TEST}\n{RAISE}", f"    try:\n        {TEST}\n    {RAISE}    except Odd:\n        pass\n"),
    "wrapped in finally": (f"    {TEST}\n{RAISE}    return row\n", f"    try:\n        {TEST}\n    {RAISE}    finally:\n        return row\n"),
    "suppressed": (f"    {TEST}\n{RAISE}", f"    with contextlib.suppress(ValueError):\n        {TEST}\n    {RAISE}"),
    "caught above by more": ("except KeyError:", "except (KeyError, Odd):"),
    "caught above by its base": ("except KeyError:", "except LookupError and ValueError:"),
    "caught above by any": ("except KeyError:", "except Exception:"),
    "caught in the caller's caller": ("        name, amount = parse(line)\n", "        with contextlib.suppress(Odd):\n            name, amount = parse(line)\n"),
    "not called": (CALL, 'return line.split(",")'),
    "called never": (CALL, 'return line.split(",") if True else check(line.split(","))'),
    "called where it cannot fail": (CALL, 'return line.split(",") or False and check(line)'),
    "called only where its condition does not hold": (CALL, 'return check(line.split(",")) if len(line) < 0 else line.split(",")'),
    "another function of its name": ("def parse(line):", "def check(row):\n    return row\ndef parse(line):"),
    "a decorator": ("def check(row):", "@(lambda f: lambda row: row)\ndef check(row):"),
    "a decorator above": ("def run(input):", "@safe\ndef run(input):"),
    "a generator": ("    return row\n", "    yield row\n"),
    "a coroutine": ("def check(row):", "async def check(row):"),
    "its name is another thing": ("class Odd(ValueError): pass", "class Odd(ValueError): pass\nOdd = KeyError"),
}  # fmt: skip


@pytest.mark.parametrize("how", GOT_PAST)
def test_no_edit_gets_past_the_raise(how: str) -> None:
    """Also for work with checks: those would say so, if there were enough of them."""
    assert "the failure is the `raise Odd(" in why(*GOT_PAST[how])


WITHOUT_CHECKS = {
    "a wider condition": (TEST, "if len(row) < 2:"),
    "a number that no input has": (TEST, "if len(row) == 99999:"),
    "one more condition": (TEST, "if len(row) != 2 and row[0]:"),
    "one more condition around it": (f"    {TEST}\n{RAISE}", f"    if row[0]:\n        {TEST}\n    {RAISE}"),
    "a condition before its own": (f"    {TEST}\n", f"    if row == []:\n        pass\n    el{TEST}\n"),
    "an exit before it": (f"    {TEST}\n", f"    if len(row) > 2:\n        return row[:2]\n    {TEST}\n"),
}


@pytest.mark.parametrize("how", WITHOUT_CHECKS)
def test_without_checks_its_condition_stays_as_it_is(how: str) -> None:
    assert "no check of the failing work asks for" in why(*WITHOUT_CHECKS[how], checked=False)
    assert why(*WITHOUT_CHECKS[how]) == ""


CALLER = "tool/total/parse.py"
CALLING = """from tool import check
def parse(line):
    try:
        return check(line.split(","))
    except KeyError:
        return []
"""
CALLED = {
    "not called": (CALL, 'return line.split(",")', False),
    "caught": ("except KeyError:", "except ValueError:", False),
    "behind a condition that never holds": (f"        {CALL}", f"        if not line and line:\n            {CALL}", False),
    "what leads there": ('line.split(",")', 'line.split(",", 1)', True),
    "beside it": ("return []", "return ['', '0']", True),
}  # fmt: skip


@pytest.mark.parametrize("how", CALLED)
def test_what_leads_to_it_may_lie_in_another_file(how: str) -> None:
    old, new, kept = CALLED[how]
    assert old in CALLING
    base = {PATH: SOURCE.replace("def parse(line):", "def parse_one(line):"), CALLER: CALLING}
    for edit in ({}, {PATH: base[PATH].replace("total = 0", "total = 1")}):
        found = defused(base, {CALLER: CALLING.replace(old, new), **edit}, [FAULT], checked=True)
        assert (found is None) is kept


CASES = """def check(row):
    match row:
        case [name, amount] if name:
            return row
        case list():
            raise Odd(f"a row has 2 fields, not {len(row)}")
def run(input):
    return [check(row) for row in input.rows]
"""


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        (
            "        case list():\n",
            "        case [_, _, _]:\n            return []\n        case list():\n",
            False,
        ),
        ("        case list():\n", "        case [_]:\n", False),
        (" if name:", ":", False),
        ("match row:", "match row[:2]:", False),
        ("return [check(row) for row in input.rows]", "return [check([*row]) for row in input.rows]", True),
        ("            raise Odd", "            print(row)\n            raise Odd", True),
        ('not {len(row)}")\n', 'not {len(row)}")\n        case _:\n            return []\n', True),
    ],
)
def test_the_cases_before_it_are_conditions(old: str, new: str, kept: bool) -> None:
    assert (why(old, new, checked=False, source=CASES) == "") is kept


REPAIRS = {
    "what leads there": ('line.split(",")', 'line.split(",", 1)'),
    "elsewhere": ("total += int(amount)", "total += int(amount.strip())"),
    "a new name beside it": ("    total = 0\n", "    total = 0\n    count = 0\n"),
    "a function around it moves": (
        "class Odd(ValueError): pass\n",
        "class Odd(ValueError): pass\nMOST = 3\n",
    ),
}


@pytest.mark.parametrize("how", REPAIRS)
def test_what_mends_the_cause_is_let_through(how: str) -> None:
    assert why(*REPAIRS[how], checked=False) == ""


def test_what_no_raise_of_the_file_says_protects_none() -> None:
    """The interpreter's own errors are mended where they come from."""
    source = "def run(input):\n    if not input:\n        raise ValueError('empty')\n    return int(input)\n"
    edit = ("    if not input:\n        raise ValueError('empty')\n", "")
    other = Fault("ValueError", "invalid literal for int() with base 10: 'x'", f"{PATH}:run", "tool/total")
    assert why(*edit, fault=other, source=source) == ""
    assert why(*edit, fault=Fault("ValueError", "empty", f"{PATH}:run"), source=source)


def test_of_equal_raises_none_may_go() -> None:
    twice = SOURCE.replace("    return row\n", f"    if row == ['']:\n{RAISE}    return row\n")
    assert why(f"    {TEST}\n{RAISE}", "", source=twice)


def test_a_message_of_many_words_is_soon_told_from_another() -> None:
    """As a pattern, the blanks between the fields of the first raise would be tried in all ways."""
    source = (
        "def run(a, b, c, d, e, f, g, h):\n"
        "    if a:\n        raise ValueError(f'{a} {b} {c} {d} {e} {f} {g} {h}!')\n"
        "    raise ValueError('too many words: ' + b)\n"
    )
    fault = Fault("ValueError", "too many words: " + "w " * 900, f"{PATH}:run")
    assert why("if a:", "if b:", fault=fault, source=source) == ""
    assert why("    raise ValueError('too many words: ' + b)\n", "", fault=fault, source=source)


@pytest.mark.parametrize(
    ("message", "own"), [("1 of 2!", True), ("of 2!", False), ("1 of 2", False), ("!1 of 2", False)]
)
def test_the_parts_of_a_message_stand_in_their_order(message: str, own: bool) -> None:
    source = "def run(a, b):\n    raise ValueError(f'{a} of {b}!')\n"
    edit = ("raise ValueError(f'{a} of {b}!')", "return a")
    assert bool(why(*edit, fault=Fault("ValueError", message, f"{PATH}:run"), source=source)) is own


def test_a_helper_that_was_no_python_does_not_hide_what_the_edit_gets_past() -> None:
    helper = "tool/total/_rows.py"
    new = {PATH: SOURCE.replace(RAISE, "        pass\n"), helper: "def rows(): return []\n"}
    for text in ("def rows(:\n", "x = 1\0"):
        assert defused({PATH: SOURCE, helper: text}, new, [FAULT], checked=True) is not None
