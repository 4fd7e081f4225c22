"""Known mistakes that the code alone tells: each is mended, and sound code like it is left alone."""

import ast

import pytest

from agentos.proposers.repair.operators.calls import awaits
from agentos.proposers.repair.operators.defects import defects
from agentos.proposers.repair.places import edits_of
from agentos.proposers.repair.site import FileFacts, sites
from agentos.proposers.repair.source import Program

# what is written, what of it is wrong, and what is among the edits for it
MENDED = {
    "a list shortened by its own loop": ("for x in a:\n    if x < b:\n        a.remove(x)\nreturn a", "in a:", "in list(a):"),
    "a dictionary": ("for k, v in a.items():\n    if v < b:\n        del a[k]\nreturn a", "a.items():", "list(a.items()):"),
    "by its places": ("for i in range(len(a)):\n    if a[i] == b:\n        del a[i]\nreturn a", "range(len(a))", "reversed(range(len(a)))"),
    "numbered": ("for i, x in enumerate(a):\n    if x == b:\n        a.pop(i)\nreturn a", "(a):", "(list(a)):"),
    "a generator read twice": ("c = (x + 1 for x in a)\nreturn sum(c), max(c)", "(x + 1 for x in a)", "[x + 1 for x in a]"),
    "a map read twice": ("c = map(int, a)\nreturn sum(c), max(c)", "map(int, a)", "list(map(int, a))"),
    "a group read twice": (
        "c = []\nfor k, g in groupby(a):\n    c.append((sum(g), max(g)))\nreturn c",
        "        c.append",
        "        g = list(g)\n        c.append",
    ),
    "the place of an equal one": (
        "c = []\nfor x in a:\n    c.append((a.index(x), x))\nreturn c",
        "for x in a:\n        c.append((a.index(x), x))",
        "for place, x in enumerate(a):\n        c.append((place, x))",
    ),
    "the place in a part": (
        "for x in a[1:]:\n    b.append(a.index(x))\nreturn b",
        "for x in a[1:]:\n        b.append(a.index(x))",
        "for place, x in enumerate(a[1:], 1):\n        b.append(place)",
    ),
    "one row many times": ("c = []\nd = {}\nfor x in a:\n    d['x'] = x\n    c.append(d)\nreturn c", "(d)", "(d.copy())"),
    "thrown away": ("c = a.lower()\nc.replace('x', 'y')\nreturn c", "    c.rep", "    c = c.rep"),
    "thrown away in a loop": ("for x in a:\n    x.strip()\n    b.append(x)\nreturn b", "x.strip()", "x = x.strip()"),
    "sorted for nobody": ("sorted(a, key=b)\nreturn a", "    sorted", "    a = sorted"),
    "nothing kept": ("a = a.append(b)\nreturn a", "a = a.app", "a.app"),
    "nothing given back": ("return a.sort(key=b)", "return a.sort(key=b)", "a.sort(key=b)\n    return a"),
    "a sum": ("c = 0\nfor x in a:\n    c =+ x\nreturn c", "=+", "+="),
    "an exchange": ("a = b\nb = a\nreturn a, b", "    a = b\n    b = a\n", "    a, b = b, a\n"),
    "the end in the first round": ("c = 0\nfor x in a:\n    c += x\n    return c", "        return", "    return"),
    "an else that ends it": (
        "for x in a:\n    if x > b:\n        return True\n    else:\n        return False\nreturn False",
        "        else:\n            return False\n",
        "",
    ),
    "an else that ends it, and no end": (
        "for x in a:\n    if x > b:\n        return True\n    else:\n        return False",
        "        else:\n            return False\n",
        "    return False\n",
    ),
    "the widest bound first": (
        "if a >= 10:\n    return 'low'\nelif a >= 50:\n    return 'high'\nreturn '-'",
        "a >= 10:\n        return 'low'\n    elif a >= 50:\n        return 'high'",
        "a >= 50:\n        return 'high'\n    elif a >= 10:\n        return 'low'",
    ),
    "the same, one by one": (
        "if a < 50:\n    return 'mid'\nif a < 10:\n    return 'low'\nreturn '-'",
        "a < 50:\n        return 'mid'\n    if a < 10:\n        return 'low'",
        "a < 10:\n        return 'low'\n    if a < 50:\n        return 'mid'",
    ),
    "true by itself": ("return a == 'x' or 'y'", "a == 'x' or 'y'", "a in ('x', 'y')"),
    "no comma": ("return a in ['x', 'yy'\n    'z']", "'yy'", "'yy',"),
    "no comma for one": ("return a in ('xyz')", "'xyz'", "'xyz',"),
    "no f": ("return '{a} of {b:02d}'", "'{a}", "f'{a}"),
    "a bell": ("return re.findall('\\bx', a)", "'\\bx'", "r'\\bx'"),
    "not called": ("return a if a.isdigit else b", "isdigit", "isdigit()"),
    "loose alternatives": ("return re.match(r'^x|y$', a)", "^x|y$", "^(?:x|y)$"),
    "loose alternatives, put in": ("c = '|'.join(a)\nreturn re.match(f'^{c}-', b)", "{c}", "(?:{c})"),
    "flags for a count": ("return re.sub(a, '', b, re.I | re.M)", "re.I |", "flags=re.I |"),
    "flags for a number of cuts": ("return re.split(a, b, re.IGNORECASE)", "re.IG", "flags=re.IG"),
    "from the end, in brackets": ("return a[1:-(b + 1)]", "-(b + 1)", "max(len(a) - (b + 1), 0)"),
    "from the end": ("return a[1:-b]", "-b", "max(len(a) - b, 0)"),
}  # fmt: skip
SHARED = "def f(a, seen=[]):\n    seen.append(a)\n    return seen\n"

SOUND = {
    "a count": "return re.sub(a, '', b, 1)",
    "flags by name": "return re.sub(a, '', b, flags=re.I)",
    "what grows while it is walked": "for x in a:\n    a.append(x) if x in b else None\nreturn a",
    "another list shortened": "for x in a:\n    b.remove(x)\nreturn b",
    "read once": "c = (x for x in a)\nreturn sum(c)",
    "its head taken first": "c = csv.reader(a)\nnext(c)\nreturn list(c)",
    "a row of its own": "c = []\nfor x in a:\n    d = {}\n    c.append(d)\nreturn c",
    "called for what it does": "a.append(b)\na.sort()\nreturn a",
    "bounds in order": "if a >= 50:\n    return 'high'\nelif a >= 10:\n    return 'low'\nreturn '-'",
    "bounds of two": "if a >= 10:\n    return 'low'\nelif b >= 50:\n    return 'high'\nreturn '-'",
    "a text over two lines": "return f('ab'\n    'cd')",
    "a template": "return '{a} of {b}'.format(a=a, b=b)",
    "grouped alternatives": "c = '|'.join(a)\nreturn re.match(f'^(?:{c})-', b)",
    "alternatives alone": "return re.match(r'x|y', a)",
    "from the end, by a number": "return a[:-1]",
    "handed on": "return sorted(a, key=str.lower)",
    "a default that nobody can change": "def g(x, y=()):\n    return x\nreturn g(a)",
}


def file_with(body: str) -> str:
    lines = "\n    ".join(body.split("\n"))
    return f"import csv\nimport re\nfrom itertools import groupby\n\n\ndef f(a, b):\n    {lines}\n"


def made_by_defects(source: str) -> list[str]:
    program = Program(source)
    edits = [edit for site in sites(FileFacts(program)) for edit in defects(site)]
    return [text for edit in edits if (text := program.apply(edit)) is not None]


def same(one: str) -> str:
    return ast.dump(ast.parse(one))


@pytest.mark.parametrize("name", MENDED)
def test_a_known_mistake_is_mended(name: str) -> None:
    body, wrong, right = MENDED[name]
    source = file_with(body)
    head, tail = source.split("def f", 1)
    assert wrong in tail
    wanted = head + "def f" + tail.replace(wrong, right, 1)
    assert same(wanted) in [same(text) for text in made_by_defects(source)]


def test_a_default_that_calls_share_is_made_in_each() -> None:
    wanted = SHARED.replace("[]", "None", 1).replace(
        "    seen", "    if seen is None:\n        seen = []\n    seen", 1
    )
    assert same(wanted) in [same(text) for text in made_by_defects(SHARED)]


@pytest.mark.parametrize("name", SOUND)
def test_sound_code_has_none(name: str) -> None:
    assert made_by_defects(file_with(SOUND[name])) == []


ASYNC = """import asyncio


async def read(a):
    await asyncio.sleep(0)
    return a


def plain(a):
    return a


async def both(a, b):
    found = {body}
    return found


def f(a, b):
    return {run}
"""
AWAITED = {
    "a call": ("read(a)", "await read(a)"),
    "and what it answers": ("read(a).x", "(await read(a)).x"),
    "those of a list": ("[read(x) for x in a]", "[await read(x) for x in a]"),
    "several at once": ("asyncio.gather(read(a), read(b))", "await asyncio.gather(read(a), read(b))"),
    "a plain function": ("await plain(a)", "plain(a)"),
}


def made_by_awaits(source: str) -> list[str]:
    program = Program(source)
    edits = [edit for site in sites(FileFacts(program)) for edit in awaits(site)]
    return [text for edit in edits if (text := program.apply(edit)) is not None]


@pytest.mark.parametrize("name", AWAITED)
def test_a_coroutine_is_awaited_where_it_is_called(name: str) -> None:
    wrong, right = (ASYNC.format(body=body, run="asyncio.run(both(a, b))") for body in AWAITED[name])
    assert [same(text) for text in made_by_awaits(wrong)] == [same(right)]
    assert made_by_awaits(right) == []


def test_a_coroutine_that_a_plain_function_calls_is_run() -> None:
    wrong, right = (
        ASYNC.format(body="await read(a)", run=run) for run in ("both(a, b)", "asyncio.run(both(a, b))")
    )
    assert [same(text) for text in made_by_awaits(wrong)] == [same(right)]


def test_a_task_that_is_awaited_later_is_left_alone() -> None:
    kept = ASYNC.format(body="read(a)", run="asyncio.run(both(a, b))").replace(
        "return found", "return await found"
    )
    assert made_by_awaits(kept) == []
    gathered = "[]\n    for x in a:\n        found.append(read(x))\n    found = await asyncio.gather(*found)"
    assert made_by_awaits(ASYNC.format(body=gathered, run="asyncio.run(both(a, b))")) == []


def test_how_long_a_pause_is_is_no_place_to_edit() -> None:
    facts = FileFacts(Program(ASYNC.format(body="await read(a)", run="asyncio.run(both(a, b))")))
    assert not [node for node in facts.nodes if isinstance(node, ast.Constant)]


BOUNDS = {
    "the next one": ("while a[b] < 5:\n    b += 1\nreturn b", "a[b] < 5", "b < len(a) and a[b] < 5"),
    "one before": ("if a[b - 1] < 5:\n    return b\nreturn a", "a[b - 1] < 5", "b >= 1 and a[b - 1] < 5"),
}


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.slow
def test_a_place_is_looked_up_once_it_is_there(name: str) -> None:
    body, wrong, right = BOUNDS[name]
    program = Program(file_with(body))
    made = [text for edit, _ in edits_of(FileFacts(program)) if (text := program.apply(edit)) is not None]
    assert same(program.source.replace(wrong, right)) in [same(text) for text in made]
