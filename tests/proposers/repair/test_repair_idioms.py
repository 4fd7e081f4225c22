"""Every idiom that the search knows: the mended text is among its edits, and nothing that must not be done is."""

import ast
import contextlib
import re

import pytest

from agentos.proposers.repair.places import edits_of
from agentos.proposers.repair.scope import GivenNames
from agentos.proposers.repair.site import FileFacts
from agentos.proposers.repair.source import CodeEdit, Program, spliced

# name: (head of the file, body of f, what is wrong, how it should be)
FAULTS = {
    "sum from nothing": ("", "c = {}\nfor x in a:\n    c[x] = b\nreturn c", "c[x] = b", "c[x] = c.get(x, 0) + b"),
    "assignment for a sum": ("", "c = a\nc[b] = 1\nreturn c", "c[b] = 1", "c[b] += 1"),
    "default of get": ("", "return a.get(b)", "a.get(b)", "a.get(b, 0)"),
    "the key itself": ("", "return a[b]", "a[b]", "a.get(b, b)"),
    "zero is not None": ("", "if a:\n    return a\nreturn b", "if a:", "if a is not None:"),
    "nothing to walk": ("", "for x in a:\n    b += x\nreturn b", "in a:", "in (a or []):"),
    "a limit that nobody uses": ("FLOOR = 5\n", "return 100 - 7 * a", "100 - 7 * a", "max(FLOOR, 100 - 7 * a)"),
    "at most what is there": ("", "c = a // b\nreturn c", "a // b", "min(a // b, b)"),
    "digits": ("", "return round(a / b)", "round(a / b)", "round(a / b, 2)"),
    "rounded up": ("", "return a // b", "a // b", "-(-a // b)"),
    "hundred seconds": ("", "return a * 100 + b", "100", "60"),
    "weeks for days": ("", "return a + timedelta(days=b)", "days", "weeks"),
    "bracket": ("", "return a * 5 / 9 - 32", "a * 5 / 9 - 32", "(a - 32) * 5 / 9"),
    "a field more": ("", "c = count(a, 'part')\nreturn c + b['Name']", "count(a, 'part')", "count(a, 'part') + count(a, 'full name')"),
    "a field of a row more": ("", "return b['Name']", "b['Name']", "b['Name'] + b['full name']"),
    "the least begins at nought": (
        "", "c = 0\nfor x in a:\n    c = min(c, x)\nreturn c", "c = 0", 'c = float("inf")',
    ),
    "both limits begin at nought": (
        "",
        "c = [0.0, 0.0]\nd = [0.0, 0.0]\nfor x, y in a:\n    c[x] = min(y, c[x])\n    d[x] = max(d[x], y)\nreturn c, d",
        "c = [0.0, 0.0]\n    d = [0.0, 0.0]",
        'c = [float("inf"), float("inf")]\n    d = [float("-inf"), float("-inf")]',
    ),
    "the rest of the fields": ("", "return a.split()[5]", "split()", "split(None, 5)"),
    "variable for element": ("", "c = a[0]\nreturn b - a[0]", "- a[0]", "- c"),
    "split once": ("", "return a.split(':')", "':'", "':', 1"),
    "delimiter": ("import csv\n", "return csv.reader(a)", "(a)", "(a, delimiter=';')"),
    "byte order mark": ("", "return open(a, encoding='utf-8')", "'utf-8'", "'utf-8-sig'"),
    "case of a pattern": ("import re\n", "return re.findall('x', a)", "'x', a", "'x', a, flags=re.IGNORECASE"),
    "sort key": ("", "return sorted(a)", "(a)", "(a, key=lambda item: item[1])"),
    "direction of a key": ("", "return sorted(a, key=lambda x: x[1])", "x: x[1]", "x: -x[1]"),
    "second criterion": ("", "return sorted(a, key=lambda x: -x[1])", "x: -x[1]", "x: (-x[1], x[0])"),
    "the sign of a number with a fraction": ("import re\n", r"return re.findall(r'(\d+(?:\.\d+)?)', a)", r"(\d+(?:", r"([+-]?\d+(?:"),
    "set back with another": (
        "",
        "n = 0\nm = 0\nfor x in a:\n    if x:\n        b.append((n, m))\n        n = 0\n    n += x\n    m = max(m, x)\nreturn b",
        "            n = 0\n",
        "            n = 0\n            m = 0\n",
    ),
    "greedy pattern": ("import re\n", "return re.match(r'(.+): (.*)', a)", "(.+):", "([^:]+):"),
    "greedy patterns of a line": (
        "import re\n", "return re.findall(r'<(.+)>=(.+);', a)", "(.+)>=(.+)", "(.+?)>=(.+?)",
    ),
    "signed numbers": ("import re\n", "return re.findall(r'\\d+', a)", "\\d+", "-?\\d+"),
    "day and month": ("", "return strptime(a, '%m.%d.%Y')", "%m.%d", "%d.%m"),
    "two digits": ("", "return f'{a}:{b}'", "{b}", "{b:02d}"),
    "thousands": ("", "return float(a)", "float(a)", "float(a.replace(',', ''))"),
    "a typographic sign": ("", "return float(a)", "float(a)", r"float(a.replace('\u2212', '-'))"),
    "kept as it is now": ("", "self.all.append((b, self.now))\nreturn a", "self.now", "self.now.copy()"),
    "both sides": ("", "return a == b", "a == b", "a.lower() == b.lower()"),
    "once each": ("", "c = list(a)\nreturn c", "return c", "return list(dict.fromkeys(c))"),
    "field name": ("", "return a['Name']", "'Name'", "'full name'"),
    "two marks": ("", "return a.startswith('#')", "'#'", "('#', ';')"),
    "a comma left out": ("", "return a in ['x', 'y' 'z', b]", "'y' 'z'", "'y', 'z'"),
    "a list that all calls share": (
        "",
        "def g(x, kept=[]):\n    kept.append(x)\n    return kept\nreturn g(a)",
        "kept=[]):\n        kept.append(x)\n",
        "kept=None):\n        if kept is None:\n            kept = []\n        kept.append(x)\n",
    ),
    "spans that overlap": ("", "c, d = b\nreturn a[0] <= c < a[1]", "a[0] <= c < a[1]", "c < a[1] and a[0] < d"),
    "both bounds": ("", "c = b\nreturn 1 < c < a", "1 < c < a", "1 <= c <= a"),
    "anchors of alternatives": (
        "import re\n", "return re.match('^ab|cd$', a)", "^ab|cd$", "^(?:ab|cd)$",
    ),
    "letters between cases": ("import re\n", "return re.match('[A-z]+', a)", "A-z", "A-Za-z"),
    "two digits of a printed text": ("", "return '%d:%d' % (a, b)", "%d:%d", "%d:%02d"),
    "two digits of a filled text": ("", "return '{}:{}'.format(a, b)", "{}:{}", "{}:{:02d}"),
    "to the other side": ("", "return f'{a:>8}'", ":>8", ":<8"),
    "one condition before another": (
        "",
        "if a:\n    return 1\nif b:\n    return 2\nreturn 3",
        "if a:\n        return 1\n    if b:\n        return 2\n",
        "if b:\n        return 2\n    if a:\n        return 1\n",
    ),
    "one case before another": (
        "",
        "match a:\n    case [c, d]:\n        b = c\n    case [c, 1]:\n        b = 2\nreturn b",
        "case [c, d]:\n            b = c\n        case [c, 1]:\n            b = 2\n",
        "case [c, 1]:\n            b = 2\n        case [c, d]:\n            b = c\n",
    ),
    "break": ("", "for x in a:\n    if x:\n        break\nreturn b", "break", "continue"),
    "moved far": ("", "a += 1\nb += 1\nif b:\n    b = a\nreturn b", "    a += 1\n", ""),
    "begun in each round": (
        "",
        "c = 0\nfor x in a:\n    c += x\n    b.append(c)\nreturn b",
        "    c = 0\n    for x in a:\n",
        "    for x in a:\n        c = 0\n",
    ),
    "caught in a loop": (
        "",
        "c = 0\nfor x in a:\n    c += int(x)\nreturn c",
        "        c += int(x)\n",
        "        try:\n            c += int(x)\n        except ValueError:\n            continue\n",
    ),
    "caught as elsewhere": (
        "def g(x):\n    try:\n        return int(x)\n    except TypeError:\n        return -1\n",
        "c = int(a)\nreturn c",
        "    c = int(a)\n    return c",
        "    try:\n        c = int(a)\n    except TypeError:\n        return -1\n    return c",
    ),
    "the last group": (
        "",
        "c = []\nd = []\nfor x in a:\n    if x:\n        c.append(d)\n    d = [x]\nreturn c",
        "        d = [x]\n",
        "        d = [x]\n    c.append(d)\n",
    ),
    "imported": (
        "from math import floor\n",
        "return floor(a)",
        "\ndef f(a, b):\n    return floor(a)",
        "\nfrom math import ceil\ndef f(a, b):\n    return ceil(a)",
    ),
    "cleaned before the rest": ("", "return a.replace(',', '.')", "a.rep", "a.replace('.', '').rep"),
    "span in brackets": ("", "return (a - b).seconds", "(a - b).seconds", "(a - b).total_seconds()"),
    "the other parameter": ("", "return int(a)", "int(a)", "int(a or b)"),
    "nothing for null": ("", "return sum(a)", "return", "a = [each or 0 for each in a]\n    return"),
    "sign in a class": ("import re\n", "return re.findall(r'[\\w.-]+@', a)", "[\\w", "[\\+\\w"),
    "order of a list": ("", "return [a, 1, b]", "[a, 1, b]", "[b, a, 1]"),
    "asked before": ("", "if a[-1] != b:\n    return 1\nreturn a", "a[-1] != b", "not a or a[-1] != b"),
    "bounds from zero": ("", "return a < 5 and b < 9", "a < 5 and b", "0 <= a < 5 and 0 <= b"),
    "other value for a field": ("", "c, d = b\nreturn a", "return a", "return -a if c else a"),
    "one step more": ("", "c = b\nreturn c", "c = b", "c = b\n    if c < a:\n        c += 1"),
    "late binding": ("", "for x in a:\n    b.append(lambda y: y + x)\nreturn b", "y: y", "y, x=x: y"),
    "one list many times": ("", "return [[0]] * a", "[[0]] * a", "[[0] for _ in range(a)]"),
    "used up": ("", "c = (x for x in a)\nreturn c", "(x for x in a)", "[x for x in a]"),
    "nulls": ("", "return min(a)", "(a)", "([each for each in a if each is not None])"),
    "present and empty": ("", "return a not in b", "a not in b", "not b.get(a)"),
    "zero is a value": ("", "return a or b", "a or b", "a if a is not None else b"),
    "the first stays": ("", "c = {}\nc[a] = b\nreturn c", "c[a] = b", "c.setdefault(a, b)"),
    "the last stays": ("", "a.setdefault(1, b)\nreturn a", "a.setdefault(1, b)", "a[1] = b"),
    "any of several": ("", "return a == b or a == 'any'", "a == b", "a in (b, 'any')"),
    "blanks": ("", "return a.split(' ')", "' '", ""),
    "in what nobody reads": ("ON = ('yes',)\n", "c = str(a)\nreturn c", "return c", "return c in ON"),
    "by their places": ("MARKS = 'ab'\n", "return a >= b", "a >= b", "MARKS.index(a) >= MARKS.index(b)"),
    "up to a sign": ("", "return str(a)", "str(a)", "str(a).split('+')[0]"),
    "halves up": (
        "from decimal import Decimal, ROUND_HALF_UP\n",
        "return a.quantize(b)",
        "(b)",
        "(b, rounding=ROUND_HALF_UP)",
    ),
    "half a character": ("", "return a.decode()", "()", "(errors='ignore')"),
    "to a zone": ("", "return a.replace(tzinfo=b)", "replace(tzinfo=b)", "astimezone(b)"),
    "groups of what is sorted": ("from itertools import groupby\n", "return groupby(a, key=b)", "by(a,", "by(sorted(a, key=b),"),
    "a pair in order": ("", "c, d = a, b\nreturn c", "= a, b", "= sorted((a, b), reverse=True)"),
    "one criterion turned": (
        "",
        "return sorted(a, key=lambda x: (x[0], x[1]), reverse=True)",
        "(x[0], x[1]), reverse=True",
        "(-x[0], x[1])",
    ),
    "repeated group": ("import re\n", "return re.sub(r'^(?:re|aw)', '', a)", "(?:re|aw)", "(?:(?:re|aw))+"),
    "with and without quotes": ("import re\n", "return re.match(r'x=-(\\w)-', a)", "x=-(\\w)-", "x=-?(\\w)-?"),
    "name in a placeholder": ("", "return f'{a - 1}'", "{a - 1}", "{b - 1}"),
    "both treated": ("", "return g(c=-a, d=b)", "d=b", "d=-b"),
    "from the other end": ("", "c = a\nc.append(b)\nreturn c", "    return", "    c.reverse()\n    return"),
    "method into the bracket": ("", "return f(a).replace(b, '')", "f(a).replace(b, '')", "f(a.replace(b, ''))"),
    "method out of the bracket": ("", "return f(a.strip())", "f(a.strip())", "f(a).strip()"),
    "factor into the bracket": ("", "return min(a, b) * 2", "min(a, b) * 2", "min(a * 2, b)"),
    "factor out of the bracket": ("", "return g(a / 2)", "g(a / 2)", "g(a) / 2"),
    "factor of all fields": ("", "return g(x=a * int(b), y=b)", "g(x=a * int(b), y=b)", "a * g(x=int(b), y=b)"),
    "factor of the whole": ("", "return a * b * 60 + b", "a * b * 60 + b", "a * (b * 60 + b)"),
    "again while it holds": ("", "if a in b:\n    a += 1\nreturn a", "if a", "while a"),
    "around a circle": ("", "return a[b + 1]", "[b + 1]", "[(b + 1) % len(a)]"),
    "not before the start": ("", "return a[b - 2 : b]", "b - 2 :", "max(b - 2, 0) :"),
    "within a hundred": ("", "if a in (11, 12):\n    return b\nreturn a", "if a in", "if a % 100 in"),
    "end as a whole": ("", "return a.rstrip('.csv')", "rstrip", "removesuffix"),
    "rounded up, one too many": ("", "return a // 4 + 1", "a // 4 + 1", "-(-a // 4)"),
    "equal but for the last digits": ("", "return sum(a) == b", "sum(a) ==", "round(sum(a), 2) =="),
    "year of the week": ("", "c = a.isocalendar()\nreturn f'{a.year}'", "{a.year}", "{a.isocalendar()[0]}"),
    "week of the year": ("", "return a.strftime('%Y-W%W')", "%W", "%V"),
    "the first comes first": ("", "return a.pop()", "pop()", "pop(0)"),
    "the other of a library": ("import bisect\n", "return bisect.bisect_left(a, b)", "bisect_left", "bisect_right"),
    "a text in a pattern": ("import re\n", "return re.sub(a, b, '')", "sub(a,", "sub(re.escape(a),"),
    "any sign instead": ("import re\n", "return re.match(r'([^(]+?) x', a)", "[^(]", "."),
    "the longest of them": ("", "return a[0]", "a[0]", "max(a, key=lambda item: item[1])"),
    "two fewer": ("", "return 2**a < b", "2**a", "2**a - 2"),
    "a part before it is stripped": ("", "return a.strip()", "a.strip", "a.split('+')[0].strip"),
    "one exception more": (
        "",
        "try:\n    return int(a)\nexcept ValueError:\n    return b",
        "except ValueError",
        "except (ValueError, TypeError)",
    ),
    "two exceptions more": (
        "",
        "try:\n    return int(a)\nexcept ValueError:\n    return b",
        "except ValueError",
        "except (ValueError, TypeError, OverflowError)",
    ),
    "not in place": ("", "a += b\nreturn a", "a += b", "a = a + b"),
    "copied first": ("", "a.pop()\nreturn a", "    a.pop", "    a = list(a)\n    a.pop"),
    "one stands for many": (
        "",
        "for x in a:\n    b += x\nreturn b",
        "    for",
        "    if isinstance(a, str):\n        a = [a]\n    for",
    ),
    "given back as it is": ("", "return g(b, a)", "    return", "    if not b:\n        return a\n    return"),
    "left out by its type": (
        "",
        "for x in a:\n    b.append(x.y)\nreturn b",
        "        b.append",
        "        if not isinstance(x, dict):\n            continue\n        b.append",
    ),
    "refused as elsewhere": (
        "",
        "if a is None:\n    raise ValueError('no')\nreturn g(b)",
        "    return",
        "    if b is None:\n        raise ValueError('no')\n    return",
    ),
    "the same slip twice": ("", "return a.x + b * a.x", "return a.x + b * a.x", "return abs(a.x) + b * abs(a.x)"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_the_idiom_is_among_the_edits(name: str) -> None:
    head, body, old, new = FAULTS[name]
    source = f"{head}def f(a, b):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    wanted = source.replace(old, new, 1)
    if name == "moved far":
        wanted = wanted.replace("        b = a\n", "        b = a\n    a += 1\n")
    assert among_edits(wanted, source)


@pytest.mark.parametrize("name", ["copied first", "the other parameter", "given back as it is"])
def test_the_idiom_is_among_the_edits_of_a_coroutine(name: str) -> None:
    head, body, old, new = FAULTS[name]
    source = f"{head}async def f(a, b):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    assert among_edits(source.replace(old, new, 1), source)


def test_a_start_value_is_set_again() -> None:
    source = (
        "class Day:\n    def __init__(self):\n        self.spent = 0.0\n\n"
        "    def close(self, found):\n        found.append(self.spent)\n"
    )
    wanted = source + "        self.spent = 0.0\n"
    assert among_edits(wanted, source)


def test_a_default_is_another() -> None:
    source = "def f(a, b=None, *, c=True):\n    return g(a, b, c)\n"
    assert among_edits(source.replace("c=True", "c=False"), source)
    assert among_edits(source.replace("b=None", "b=0"), source)


def test_the_class_above_is_asked_first() -> None:
    source = "class A(B):\n    def f(self, a):\n        self.a = a\n"
    assert among_edits(source.replace("        self.a", "        super().f(a)\n        self.a"), source)


def among_edits(wanted: str, source: str) -> bool:
    """Whether one of the edits makes this program, however it is written."""
    program = Program(source)
    for edit, _ in edits_of(FileFacts(program, GivenNames(("full name",), signs="+\u2212"))):
        text = made_like(program, edit, {letters(wanted)})
        with contextlib.suppress(SyntaxError):  # such an edit costs a try
            if text is not None and ast.dump(ast.parse(text)) == ast.dump(ast.parse(wanted)):
                return True
    return False


def made_like(program: Program, edit: CodeEdit, wanted: set[str]) -> str | None:
    """What it makes, if that has the letters of something wanted: to parse each of thousands takes long."""
    if letters(spliced(program.data, edit, parenthesised=False)) not in wanted:
        return None
    return program.apply(edit)


def letters(source: str) -> str:
    """Without what the same program may be written with and without."""
    return re.sub(r"[\s()\"',\\]", "", source)
