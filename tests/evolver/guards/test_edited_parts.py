"""What an edit changes, and which functions show that it ran: read off the text, and hard to get around."""

from __future__ import annotations

import time

import pytest

from agentos.domain import EditedName
from agentos.evolver.guards.static.edited_parts import edited_parts

PATH, HELPER = "tool/fees/tool.py", "tool/fees/_rates.py"
SOURCE = '''"""Fees."""
import math
import _rates
from _rates import FACTOR
RATE = 5
ALIASED = RATE
UNUSED = 1
TABLE = {}
TABLE["a"] = RATE
def _made():
    return [RATE]
LIST = _made()
def twice(f):
    def inner(n):
        return f(n) * 2
    return inner
@twice
def fee(n, rate=RATE):
    return n * rate
def half(n):
    return [row / 2 for row in LIST if (lambda x: x > n)(row)]
def look(n):
    return TABLE.get(n, ALIASED)
def own(n):
    RATE = n
    return RATE
class Kind:
    most = 3
    def named(self):
        return self.most
def far(n):
    return _rates.scale(n) * FACTOR
def run(input):
    return fee(input.n)
'''
RATES = "FACTOR = 2\ndef scale(n):\n    return n + 1\n"


def parts(old: str, new: str, *, path: str = PATH) -> dict[str, set[str]]:
    texts = {PATH: SOURCE, HELPER: RATES}
    assert old in texts[path]
    found = edited_parts(texts, {path: texts[path].replace(old, new)})
    assert all(not part.new_file for part in found)
    return {short(part.name): set(map(short, part.shown_by)) for part in found}


def short(label: str) -> str:
    return label.rpartition(":")[2]


def test_an_edited_function_is_shown_by_itself_alone() -> None:
    assert parts("return fee(input.n)", "return fee(input.n + 0)") == {"run": {"run"}}


def test_the_innermost_function_is_what_has_to_run() -> None:
    """Entering the function around it says nothing of a branch that is never called."""
    assert parts("return f(n) * 2", "return f(n) * 3") == {"twice.inner": {"twice.inner"}}
    assert parts("x > n", "x >= n") == {"half.<lambda>@40": {"half.<lambda>@40"}}
    assert parts("row / 2", "row / 3") == {"half": {"half"}}


def test_an_edited_constant_runs_where_it_is_looked_up_also_by_what_is_made_of_it() -> None:
    found = parts("RATE = 5", "RATE = 6")
    # what a default and the tables are made of; not where a name of its own hides it, nor at load alone
    assert found == {"RATE": {"fee", "half", "look", "_made"}}


def test_what_is_called_while_the_module_is_loaded_alone_is_shown_by_what_uses_it() -> None:
    assert parts("return [RATE]", "return [RATE, 1]") == {"_made": {"_made", "half"}}


def test_a_function_that_others_call_is_not_shown_by_a_load() -> None:
    """Else a guard that only imports it would count as one that ran it."""
    both = SOURCE.replace("def run(input):\n", "def run(input):\n    _made()\n")
    new = both.replace("return [RATE]", "return [RATE, 1]")
    (part,) = edited_parts({PATH: both}, {PATH: new})
    assert set(map(short, part.shown_by)) == {"_made"}


def test_a_decorator_is_an_edit_of_what_it_stands_on() -> None:
    assert parts("def half(n)", "@twice\ndef half(n)") == {"half": {"half"}}
    found = parts("def half(n)", "def mine(f):\n    return lambda n: 0\n@mine\ndef half(n)")
    assert found["half"] == {"half"}  # which is never entered: its place was taken
    assert found["mine.<lambda>@11"] == {"mine.<lambda>@11"}


def test_a_change_of_a_class_is_shown_by_its_methods() -> None:
    assert parts("most = 3", "most = 4") == {"Kind": {"Kind.named"}}
    assert parts("return self.most", "return 0") == {"Kind.named": {"Kind.named"}}


def test_a_name_that_nobody_looks_up_is_no_change() -> None:
    assert parts("UNUSED = 1", "UNUSED = 2") == {}
    assert parts("import math", "import math, json") == {}


def test_a_statement_that_changes_something_in_place_counts_for_what_it_changes() -> None:
    assert parts('TABLE["a"] = RATE', 'TABLE["b"] = RATE')["TABLE"] == {"look"}
    assert parts("def half(n", 'TABLE.update({"x": 1})\ndef half(n')["TABLE"] >= {"look"}


def test_moving_a_statement_is_a_change() -> None:
    assert parts("RATE = 5\nALIASED = RATE\n", "ALIASED = 5\nRATE = 5\n") == {"ALIASED": {"look"}}
    assert parts("RATE = 5\nALIASED = RATE\n", "RATE = 4\nRATE = 5\nALIASED = RATE\n")["RATE"]


def test_other_files_show_what_they_take_from_it() -> None:
    assert parts("FACTOR = 2", "FACTOR = 3", path=HELPER) == {"FACTOR": {"far"}}
    assert parts("n + 1", "n + 2", path=HELPER) == {"scale": {"scale"}}


def test_what_can_be_traced_to_no_function_is_shown_by_none() -> None:
    found = parts("import math", "import math\nprint(math.pi)")
    assert all(not shown for shown in found.values())
    assert found


def test_a_function_that_takes_the_place_of_another_is_an_edit_though_its_text_stood_there() -> None:
    twice = SOURCE + "def fee(n):\n    return 0\n"
    (part,) = edited_parts({PATH: SOURCE}, {PATH: twice})
    assert part.name == f"{PATH}:35:fee"


def test_of_two_functions_of_a_name_it_is_an_edit_which_one_stands_last() -> None:
    one, other = "def rate(n):\n    return 1\n", "def rate(n):\n    return 2\n"
    calls = "def run(input):\n    return rate(input.n)\n"
    for new in (one + calls, other + calls + one):
        (part,) = edited_parts({PATH: one + calls + other}, {PATH: new})
        assert part.name == f"{PATH}:rate"
        assert "run" in set(map(short, part.shown_by))
    assert edited_parts({PATH: one + calls + other}, {PATH: calls + one + other}) == ()


@pytest.mark.parametrize(
    "own",
    [
        "    import json as RATE\n",
        "    try:\n        n += 1\n    except ValueError as RATE:\n        return RATE\n",
        "    match n:\n        case [*RATE]:\n            pass\n",
        "    def RATE():\n        return 1\n",
    ],
    ids=["import", "except", "match", "def"],
)
def test_a_name_may_be_a_functions_own_in_many_ways(own: str) -> None:
    source = SOURCE.replace("    RATE = n\n", own)
    found = edited_parts({PATH: source}, {PATH: source.replace("RATE = 5", "RATE = 6")})
    assert "own" not in {short(label) for part in found for label in part.shown_by}


def test_a_new_file_is_told_as_one() -> None:
    found = edited_parts({PATH: SOURCE}, {"tool/fees/_more.py": "def more():\n    return 1\n"})
    assert found == (EditedName("tool/fees/_more.py:1:more", ("tool/fees/_more.py:1:more",), True),)


@pytest.mark.parametrize("path", ["skill/x/SKILL.md", "prompt/default/prompt.md", "memory/m/memory.md"])
def test_texts_have_no_parts(path: str) -> None:
    assert edited_parts({}, {path: "def f(): pass"}) == ()


def test_a_long_row_of_names_that_follow_one_another_costs_little() -> None:
    row = "".join(f"n{number} = n{number - 1} + n{number - 1}\n" for number in range(1, 120))
    since = time.process_time()
    found = edited_parts({PATH: "n0 = 1\n"}, {PATH: f"n0 = 1\n{row}def run():\n    return n119\n"})
    assert len(found) == 120
    assert time.process_time() - since < 5


def test_a_name_beside_a_new_one_in_an_import_is_not_edited() -> None:
    found = parts("from _rates import FACTOR\n", "from _rates import FACTOR, scale\n")
    assert "FACTOR" not in found
    assert set(parts("from _rates import FACTOR\n", "from _other import FACTOR\n")) == {"FACTOR"}


def test_a_text_of_the_base_that_is_not_python_hinders_no_edit_of_another() -> None:
    """A skill may hold scripts of Python 2, or templates."""
    script = "tool/fees/old.py"
    new = {PATH: SOURCE.replace("n * rate", "n * rate + 1")}
    mended = {script: "def say():\n    print(1)\n"}
    for text in ("print 1\n", "x = 1\0"):
        assert edited_parts({PATH: SOURCE, script: text}, new) == edited_parts({PATH: SOURCE}, new)
        assert (
            edited_parts({PATH: SOURCE, script: text}, mended) == edited_parts({PATH: SOURCE}, mended) != ()
        )
