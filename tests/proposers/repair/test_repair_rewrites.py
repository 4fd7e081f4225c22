"""The catalogue of rewrites: every line is Python, and gives what it says at an example of itself."""

import ast
from pathlib import Path

import pytest

from agentos import shipped
from agentos.errors import Invalid
from agentos.proposers.repair.operators.rewrites import GAP, Form, Rewrite, read_rewrites, rewritten
from agentos.proposers.repair.site import FileFacts, sites
from agentos.proposers.repair.source import Program

CATALOGUE = read_rewrites(shipped.folder("evolver") / "rewrites.toml")
# what fits a gap that wants such a thing
SAMPLES = {"text": "'ab'", "number": "7", "call": "{}(1)", "lookup": "{}[0]", "sum": "({} + 1)", "test": "({} == 1)", "str": "str({})",
           "float": "float({})", "list": "list({})", "set": "set({})"}  # fmt: skip


def test_the_catalogue_is_large_and_no_line_stands_in_it_twice() -> None:
    pairs = [(rewrite.old.written, rewrite.new.written) for rewrite in CATALOGUE]
    assert len(pairs) > 200
    assert len(pairs) == len(set(pairs))


@pytest.mark.parametrize(
    "operator",
    [
        pytest.param(operator, marks=pytest.mark.slow if operator == "rewrite" else ())
        for operator in sorted({rewrite.operator for rewrite in CATALOGUE})
    ],
)
def test_each_line_gives_what_it_says(operator: str) -> None:
    for rewrite in (each for each in CATALOGUE if each.operator == operator):
        before, after = example_of(rewrite, rewrite.old), example_of(rewrite, rewrite.new)
        assert ast.dump(ast.parse(after)) in made_by(rewrite, before), (before, after)


def example_of(rewrite: Rewrite, form: Form) -> str:
    """A file that says this within a loop of a function, each gap filled by a name, or by what it wants."""
    wanted = rewrite.old.kinds
    text = GAP.sub(lambda gap: SAMPLES.get(wanted.get(gap[2], ""), "{}").format(f"v_{gap[2]}"), form.written)
    used = [what.rpartition(".")[0] for each in (rewrite.old, rewrite.new) for _, _, what, _ in each.parts]
    head = "".join(f"import {module}\n" for module in sorted(filter(None, {*used, rewrite.needs})))
    step = f"keep = {text}" if isinstance(rewrite.pattern, ast.expr) else text.replace("\n", "\n        ")
    return f"{head}def f(every):\n    for each in every:\n        {step}\n"


def made_by(rewrite: Rewrite, source: str) -> set[str]:
    program = Program(source)
    edits = (edit for site in sites(FileFacts(program)) for edit in rewrite.edits(site))
    return {ast.dump(ast.parse(text)) for edit in edits if (text := program.apply(edit)) is not None}


# what is written, and what is among the edits then, with the imports that it needs
IN_FILES = {
    "imported as a module": ("import re\ndef f(a):\n    return re.search(a, 'x')\n", "re.search(a", "re.search(re.escape(a)"),
    "imported by name": ("from math import floor\ndef f(a):\n    return floor(a)\n", "return floor(a)", "return int(a)"),
    "one more name of the module": (
        "from math import floor\ndef f(a):\n    return floor(a)\n",
        "floor\ndef f(a):\n    return floor(a)",
        "floor\nfrom math import trunc\ndef f(a):\n    return trunc(a)",
    ),
    "a module more": (
        '"""About."""\ndef f(a):\n    return sum(a)\n',
        "def f(a):\n    return sum(a)",
        "import math\ndef f(a):\n    return math.fsum(a)",
    ),
    "the other arguments stay": (
        "import csv\ndef f(a):\n    return csv.reader(a, strict=True)\n",
        "strict=True",
        "strict=True, delimiter=';'",
    ),
    "brackets around what needs them": (
        "def f(a, b):\n    return (a + b).lstrip('www.')\n",
        "lstrip",
        "removeprefix",
    ),
    "a name that is bound once": (
        "def f(a):\n    n = len(a)\n    mid = n // 2\n    return a[mid]\n",
        "def f(a):\n    n = len(a)\n    mid = n // 2\n    return a[mid]",
        "import statistics\ndef f(a):\n    n = len(a)\n    mid = n // 2\n    return statistics.median(a)",
    ),
    "operands the other way round": (
        "def f(a, b):\n    return 0 < a.find(b)\n",
        "0 < a.find(b)",
        "b in a",
    ),
    "a compiled pattern": (
        "import re\nWORD = re.compile('a+')\ndef f(a):\n    return WORD.findall(a)\n",
        "WORD.findall(a)",
        "[match.group() for match in re.finditer(WORD, a)]",
    ),
    "an argument by its name": ("def f(a):\n    return round(a, ndigits=1)\n", "round(a, ndigits=1)", "int(a)"),
    "within an f-string": (
        "def f(a):\n    return f\"{a.seconds // 60} min, {a!r}\"\n",
        "a.seconds // 60",
        "int(a.total_seconds() // 60)",
    ),
    "quotes within an f-string": (
        "def f(a, b):\n    return f\"{a[b]:>3}\"\n",
        "a[b]",
        "a.get(b, '')",
    ),
    "one chain of conditions in another order": (
        "def f(a):\n    if a > 1:\n        return 1\n    elif a > 2:\n        return 2\n    else:\n        return 3\n",
        "if a > 1:\n        return 1\n    elif a > 2:\n        return 2\n",
        "if a > 2:\n        return 2\n    elif a > 1:\n        return 1\n",
    ),
    "a step at the start of a loop": (
        "def f(a):\n    for b in a:\n        # why\n        c = b\n        print(c)\n    return a\n",
        "        # why\n",
        "        if not b.strip():\n            continue\n        # why\n",
    ),
    "a text over lines": (
        "def f(a):\n    b = (\n        'one'\n        'two'\n    )\n    return b\n",
        "b = (",
        "b += (",
    ),
    "two statements for one": (
        "def f(a, b):\n    try:\n        a[b].append(1)\n    finally:\n        return a\n",
        "a[b].append(1)",
        "a[b].append(1)\n        a[1].append(b)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_FILES)
def test_a_rewrite_fits_into_the_file(name: str) -> None:
    source, old, new = IN_FILES[name]
    program = Program(source)
    edits = [edit for site in sites(FileFacts(program)) for edit in rewritten(site)]
    texts = [text for edit in edits if (text := program.apply(edit)) is not None]
    assert ast.dump(ast.parse(source.replace(old, new, 1))) in {ast.dump(ast.parse(text)) for text in texts}


def test_an_argument_that_is_there_is_not_given_twice() -> None:
    program = Program("import csv\ndef f(a):\n    return csv.reader(a, delimiter='|')\n")
    edits = [edit for site in sites(FileFacts(program)) for edit in rewritten(site)]
    assert not any(edit.splices[0].text.count("delimiter=") > 1 for edit in edits)


def test_a_name_that_the_file_gives_to_something_else_is_not_imported() -> None:
    program = Program("def f(math):\n    return sum(math)\n")
    edits = [edit for site in sites(FileFacts(program)) for edit in rewritten(site)]
    assert not any("fsum" in splice.text for edit in edits for splice in edit.splices)


def test_what_needs_a_module_is_left_out_of_a_file_without_it() -> None:
    source = "def f(a, b):\n    return a <= b\n"
    for head, dated in (("", False), ("import datetime\n", True)):
        program = Program(head + source)
        edits = [edit for site in sites(FileFacts(program)) for edit in rewritten(site)]
        assert any("timedelta" in edit.splices[0].text for edit in edits) is dated


def test_a_name_that_is_bound_again_stands_for_nothing() -> None:
    program = Program("def f(a):\n    n = len(a)\n    n = n - 1\n    return a[n // 2]\n")
    edits = [edit for site in sites(FileFacts(program)) for edit in rewritten(site)]
    assert not any("median" in splice.text for edit in edits for splice in edit.splices)


@pytest.mark.parametrize(
    "text", ["[[group]]\nrewrites = 5\n", "[[group]]\nrewrites = [['a', 'b']]\n", "x = 1", "["]
)
def test_what_is_no_catalogue_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "rewrites.toml").write_text(text, encoding="utf-8")
    with pytest.raises(Invalid):
        read_rewrites(tmp_path / "rewrites.toml")


@pytest.mark.parametrize("body", ["b = b\n    return b[0]", "b = c\n    c = b\n    return b[0] + c[0]"])
def test_names_that_stand_for_one_another_come_to_an_end(body: str) -> None:
    program = Program(f"b = [1]\n\n\ndef f(a):\n    {body}\n")
    made = [edit for site in sites(FileFacts(program)) for edit in rewritten(site)]
    assert program.source not in [program.apply(edit) for edit in made]


def test_rounds_are_left_within_loops_only() -> None:
    source = "def f(a, b):\n    a[b] = [1]\n    while b:\n        a[b] = [1]\n"
    program = Program(source)
    edits = [edit for site in sites(FileFacts(program)) for edit in rewritten(site)]
    made = [text for edit in edits if "continue" in (text := program.apply(edit) or "")]
    assert made
    for text in made:
        compile(text, "edit", "exec")
