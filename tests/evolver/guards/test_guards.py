"""Each guard is tried by edits that would get past it, and by good edits that it must let through."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from agentos.domain import RefusalKind, Tier, tier_of
from agentos.errors import Invalid
from agentos.evolver.documents import load_policy
from agentos.evolver.guards.static import RULES, RuleHit
from agentos.evolver.guards.static.check import asked, findings, guard, refusal, scan
from agentos.evolver.guards.static.rules_names import SDK_METHODS, SDK_PRIVATE, SDK_PUBLIC
from agentos.evolver.policy import Screen
from tests.command_server import ForkedPopen
from tests.refusals import raises

ROOT = Path(__file__).parents[3]
DATA = tomllib.loads((Path(__file__).parent / "bad_edits.toml").read_text())
SOURCES = {
    path: text.lstrip("\n") if path.startswith("h") else text for path, text in DATA["sources"].items()
}
BESIDE = {**SOURCES, "harness/default/hooks.py": "def one(turn):\n    pass\n"}
HARNESS, TOOL = SOURCES


def edited(edit: dict[str, str]) -> dict[str, str]:
    source = SOURCES[edit["on"]]
    if "find" not in edit:
        return {edit["on"]: f"{source}\n\n{edit['put']}\n"}
    assert source.count(edit["find"]) == 1, edit["name"]
    return {edit["on"]: source.replace(edit["find"], edit["put"])}


@pytest.mark.parametrize("edit", DATA["edit"], ids=lambda edit: edit["name"])
def test_a_bad_edit_is_found_by_its_rule(edit: dict[str, str]) -> None:
    new = edited(edit)
    ast.parse(new[edit["on"]])
    found = guard(BESIDE, new, Screen())
    assert edit["rule"] in {finding.rule for finding in found}, list(map(str, found))


@pytest.mark.slow
def test_what_was_there_before_is_not_the_edits_fault() -> None:
    base = {}
    for number, edit in enumerate(DATA["edit"]):
        ((path, text),) = edited(edit).items()
        kind, _, name = path.split("/")
        base[f"{kind}/number-{number}/{name}"] = text
    new = {path: f"{text}\n\nEDITED = 1\n" for path, text in base.items()}
    beside = {"harness/default/hooks.py": BESIDE["harness/default/hooks.py"]}
    screen = Screen(max_new_statements=1_000)
    assert guard({**beside, **base}, new, screen) == []


GOOD = [
    (TOOL, 'float(row["n"])', 'float(row["n"].replace(",", "").strip() or 0)'),
    (TOOL, "import csv\n", "import csv\nimport decimal\nimport re\nfrom urllib.parse import quote\n"),
    (TOOL, 'raise KeyError("n")', "raise ValueError(f\"line {getattr(file, 'line', 1)}: no 'n'\")"),
    (TOOL, "import csv\n", "import csv\nimport tabulate\n"),
    (
        TOOL,
        "class Output(",
        "from typing import Annotated, Generic, NamedTuple, TypeVar\n\nfrom pydantic import Field\n\n"
        'V = TypeVar("V")\nLEAST = Annotated[int, Field(ge=0)]\nPair = NamedTuple("Pair", [("a", "int")])\n\n\n'
        'class Part(BaseModel, Generic[V]):\n    of: "dict[str, Part] | None" = None\n    n: LEAST | None\n'
        "    v: V\n    two: list[Pair]\n\n\nclass Output(",
    ),
    (TOOL, 'raise KeyError("n")', 'raise KeyError(os.path.join(input.path, "n"))'),
    (TOOL, "import csv\n", "import csv  # see /proc/self for the coding: utf-7\n"),
    (HARNESS, "LIMIT = 3", "LIMIT = 4"),
    (HARNESS, "[hooks.one]", "[hooks.one, hooks.two]"),
    (HARNESS, "import hooks\n", "import hooks\nfrom langgraph.graph import StateGraph\nimport threading\n"),
    (
        HARNESS,
        "from agentos.worker.sdk import Sdk, fault",
        "from agentos.worker.sdk import Failed, Sdk, fault",
    ),
    (HARNESS, 'raise ValueError("the tool gave nothing")', 'raise LookupError("nothing")'),
    (
        HARNESS,
        "    assert call.tool\n",
        "    for at, name in enumerate(sorted(call.args, key=str.lower)):\n        sdk.step('sort', {'at': at, 'name': name})\n"
        "    assert call.tool\n",
    ),
    (
        HARNESS,
        "    except ValueError as error:",
        "    except LookupError as error:\n        sdk.fail(fault('lookup', repr(error)))\n    except ValueError as error:",
    ),
]


@pytest.mark.parametrize(("path", "find", "put"), GOOD)
def test_a_good_edit_passes(path: str, find: str, put: str) -> None:
    assert find in SOURCES[path]
    assert guard(BESIDE, {path: SOURCES[path].replace(find, put, 1)}, Screen()) == []


OWN = SOURCES[TOOL].replace(
    "path: str\n", 'path: str\n    system: str = "metric"\n    today: str = ""\n    os: str = ""\n'
)
OWN = OWN.replace(
    "import csv\n", "import csv\nimport tarfile\nfrom dateutil.parser import parse\nimport requests\n"
)
OWN += f"\n\nNAMES = {dict.fromkeys(map(str, range(90)), 7)}\n"
LAST = "def f(input: Input):\n"
FIELDS = [
    (f'{LAST}    return input.system == "imperial" or input.today or input.os\n', []),
    (f"{LAST}    return input.system()\n", ["process"]),
    (f"{LAST}    input = tarfile\n    return input.os\n", ["reflection"]),
    ("def f(other):\n    return other.system\n", ["process"]),
    ("def f():\n    return tarfile.os\n", ["reflection"]),
    ("class Span:\n    def __init__(self, start, end):\n        self.start, self.end = start, end\n", []),
    ('def f(entry):\n    return getattr(entry, "path", "")\n', []),
    ('def f(entry):\n    return getattr(entry, "environ", "")\n', ["inside"]),
    ('def f():\n    return getattr(os, "kill")\n', ["process", "reflection"]),
    ("def f(x):\n    match x:\n        case Input(path=found):\n            return found\n", []),
    ("from dateutil.relativedelta import relativedelta\n", []),
    ("import dateutil._common\n", ["import"]),
    ("from requests import adapters\n", ["import"]),
    ("import pytz\n", ["import"]),
    (f"MORE = {dict.fromkeys(map(str, range(80)), 7)}\n", []),
    (f"MORE = {dict.fromkeys(map(str, range(99)), 7)}\n", ["text"]),
]


@pytest.mark.parametrize(("more", "rules"), FIELDS)
def test_what_a_tool_is_given_or_has_already_is_its_own(more: str, rules: list[str]) -> None:
    found = findings({TOOL: OWN}, {TOOL: f"{OWN}\n\n{more}"}, Screen())
    assert [finding.rule for finding in found if finding.rule != "growth"] == rules


GATHERED = "await asyncio.gather(*(one(n) for n in numbers[1:]))"
WAITING = f"""{SOURCES[TOOL]}


import asyncio


async def one(number):
    return number


async def all_of(numbers):
    return {GATHERED}
"""
WAITED = [
    ("await asyncio.gather(*(one(n) for n in numbers))", set()),
    ("[await asyncio.create_task(one(n)) for n in numbers]", set()),
    ("await (await asyncio.gather(one(1))).get_loop().subprocess_shell(print, 'ls')", {"network", "process"}),
    ("getattr(asyncio.create_task(one(1)), 'get_loop')()", {"network"}),
    ("asyncio.run(one(1), loop_factory=asyncio.new_event_loop)", {"network"}),
    ("await asyncio.open_connection('far', 1)", {"network"}),
    ("asyncio.gather.__globals__", {"network"}),
    ("[asyncio]", {"network"}),
    ("asyncio.TaskGroup()._loop", {"reflection"}),
    ("(kept := asyncio.gather).__globals__", {"network"}),
    ("asyncio.create_task(one(1)).get_coro().cr_frame", {"reflection"}),
]


@pytest.mark.parametrize(("put", "rules"), WAITED)
def test_what_waits_for_functions_of_the_program_reaches_nothing_outside(put: str, rules: set[str]) -> None:
    found = findings({TOOL: WAITING}, {TOOL: WAITING.replace(GATHERED, put)}, Screen())
    assert {finding.rule for finding in found} == rules


def test_packages_count_as_declared_however_the_declaration_is_written() -> None:
    base = SOURCES[TOOL].replace("TOOL =", "TOOL: dict[str, object] =")
    assert findings({TOOL: base}, {TOOL: f"{base}\n\nimport tabulate\n"}, Screen()) == []


@pytest.fixture
def _started(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scanner is started here as it is for users, and not forked as elsewhere in the suite."""
    monkeypatch.setattr(ForkedPopen, "forks", False)


@pytest.mark.usefixtures("_started")
@pytest.mark.slow
def test_a_scan_writes_nothing_that_a_killed_daemon_could_leave(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    found = scan(
        {TOOL: SOURCES[TOOL]},
        {TOOL: SOURCES[TOOL] + "\nimport subprocess\nsubprocess.call('x' + str(1), shell=True)\n"},
    )
    assert [finding.path for finding in found] == [TOOL]


@pytest.mark.usefixtures("_started")
@pytest.mark.slow
def test_what_bandit_cannot_read_is_a_finding() -> None:
    base = {TOOL: SOURCES[TOOL]}
    found = scan(base, {TOOL: "# coding: utf-7\n" + SOURCES[TOOL].replace("total", "täl")})
    assert [finding.rule for finding in found] == ["scanner"]


def test_code_may_move_between_the_files_of_an_edit() -> None:
    start = SOURCES[HARNESS].index("def check(")
    end = SOURCES[HARNESS].index("def name_of(")
    moved = SOURCES[HARNESS][start:end]
    new = {
        HARNESS: SOURCES[HARNESS]
        .replace(moved, "")
        .replace("import hooks", "import hooks\nfrom checking import check"),
        "harness/default/checking.py": f'"""What a result must be."""\n\n\n{moved}',
    }
    assert guard(BESIDE, new, Screen()) == []


HOLDING = """import contextlib


def rate(table, name):
    found = table[name.strip()]
    try:
        share = float(table["share"])
    except (KeyError, ValueError):
        share = 1.0
    with contextlib.suppress(KeyError):
        share *= table["more"]
    try:
        share += float(table["extra"])
    except KeyError as error:
        for part in error.args:
            if not part:
                continue
        raise LookupError("no extra") from error
    return found * share
"""
LOOKED_UP = "    found = table[name.strip()]\n"


@pytest.mark.parametrize(
    ("above", "asks"),
    [
        ('        share = float(table["share"])\n', True),
        ('        share *= table["more"]\n', True),
        ('        share += float(table["extra"])\n', False),  # its handler raises
        ("    return found * share\n", False),
    ],
)
def test_what_moves_to_where_a_handler_goes_on_is_asked_about(above: str, asks: bool) -> None:
    moved = LOOKED_UP.strip().rjust(len(above) - len(above.lstrip()) + len(LOOKED_UP.strip()))
    new = HOLDING.replace(LOOKED_UP, "").replace(above, f"{moved}\n{above}")
    found = findings({TOOL: HOLDING}, {TOOL: new}, Screen())
    assert [finding.rule for finding in found] == ["swallow"] * asks
    assert not findings({TOOL: new}, {TOOL: new.replace("1.0", "1.5")}, Screen())[
        1:
    ]  # the handler's own text alone
    copied = HOLDING.replace(above, f"{moved}\n{above}")
    assert findings({TOOL: HOLDING}, {TOOL: copied}, Screen()) == []


@pytest.mark.parametrize(
    "body",
    [
        "for sign in x:\n            if sign:\n                continue\n            break",
        "y = lambda: 1",
        "pass",
    ],
)
def test_a_loop_within_finally_is_its_own(body: str) -> None:
    new = SOURCES[TOOL] + f"\n\ndef f(x):\n    try:\n        return float(x)\n    finally:\n        {body}\n"
    assert findings(BESIDE, {TOOL: new}, Screen()) == []


@pytest.mark.parametrize("name", ["json", "socket", "agentos", "pydantic"])
def test_a_new_file_does_not_stand_in_the_way_of_a_module(name: str) -> None:
    found = guard(BESIDE, {f"harness/default/{name}.py": "X = 1\n"}, Screen())
    assert [finding.rule for finding in found] == ["import"]


def test_what_is_no_source_is_not_looked_at() -> None:
    assert guard({}, {"skill/x/SKILL.md": "eval(1)", "memory/x/memory.md": "import os"}, Screen()) == []
    assert [finding.rule for finding in guard({}, {TOOL: "def f(:"}, Screen())] == ["text"]
    deep = "X = " + "-" * 100_000 + "1"
    assert [finding.rule for finding in guard({}, {TOOL: deep}, Screen())] == ["text"]


def test_a_base_that_is_not_python_hinders_no_edit_of_another_and_is_mended_with_a_question() -> None:
    script = "skill/x/scripts/old.py"
    base = {TOOL: SOURCES[TOOL], script: "print 1\n"}
    assert guard(base, {TOOL: SOURCES[TOOL] + "\nX = 1\n"}, Screen()) == []
    found = findings(base, {script: "print(1)\n"}, Screen())
    assert [(finding.rule, finding.path) for finding in found] == [("tell", script)]
    assert asked(base, {script: "print(1)\n"}, Screen()) is not None


@pytest.mark.usefixtures("_started")
@pytest.mark.slow
def test_a_base_that_nobody_can_read_excuses_no_edit_that_bandit_cannot_read() -> None:
    found = scan({TOOL: "def f(:\n"}, {TOOL: "# coding: utf-7\nX = 'täl'\n"})
    assert [finding.rule for finding in found] == ["scanner"]


def refused_for(found: Sequence[RuleHit], screen: Screen, tier: Tier) -> str:
    refused = refusal(found, screen, tier)
    assert refused
    assert refused.kind is RefusalKind.SCREEN
    return refused.reason


def test_the_policy_says_which_rules_refuse_in_which_tier() -> None:
    found = guard(BESIDE, {HARNESS: SOURCES[HARNESS] + "\n\nimport pickle\nX = ().__class__\n"}, Screen())
    assert refused_for(found, Screen(), Tier.MEDIUM).endswith("(import), and 1 more")
    assert refusal(found, Screen(refuse=(), refuse_high=("reflection",)), Tier.MEDIUM) is None
    assert refused_for(found, Screen(refuse=(), refuse_high=("reflection",)), Tier.HIGH).endswith(
        "(reflection)"
    )
    assert refusal([], Screen(), Tier.HIGH) is None


@pytest.mark.parametrize(
    ("handler", "rules"),
    [
        ("except ValueError:\n        return 0.0", ["swallow"]),
        ("except ValueError as error:\n        return 0.0 * len(str(error))", ["swallow"]),
        ("except ValueError:\n        if x == 'never':\n            raise\n        return 0.0", ["swallow"]),
        ("except ValueError:\n        return 0.0\n        raise", ["swallow"]),
        ("except ValueError as error:\n        raise KeyError(x) from error", []),
        (
            "except ValueError:\n        if x:\n            raise\n        else:\n            raise KeyError(x)",
            [],
        ),
        ("except Exception:\n        return 0.0", ["except", "swallow"]),
    ],
)
def test_an_error_that_is_caught_goes_to_a_person_or_is_raised_again(handler: str, rules: list[str]) -> None:
    new = {TOOL: f"{SOURCES[TOOL]}\n\ndef f(x):\n    try:\n        return float(x)\n    {handler}\n"}
    screen, base = Screen(), {TOOL: SOURCES[TOOL]}
    found = findings(base, new, screen)
    assert [finding.rule for finding in found] == rules
    assert (refusal(found, screen, Tier.MEDIUM) is not None) == ("except" in rules)
    assert (refusal(found, screen, Tier.HIGH) is not None) == bool(rules)
    assert (asked(base, new, screen) is not None) == ("swallow" in rules)


def test_the_tier_is_the_highest_of_the_paths() -> None:
    assert tier_of([TOOL]) is Tier.MEDIUM
    assert tier_of(["memory/x/memory.md", "skill/x/SKILL.md"]) is Tier.MEDIUM
    assert tier_of([TOOL, HARNESS]) is Tier.HIGH
    assert tier_of(["elsewhere/x"]) is Tier.HIGH


def test_the_sdks_names_are_those_of_the_sdk() -> None:
    tree = ast.parse((ROOT / "agentos" / "worker" / "sdk.py").read_text())
    (sdk,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Sdk")
    methods = {node.name for node in sdk.body if isinstance(node, ast.FunctionDef)} - {"__init__"}
    stored = {
        node.attr
        for node in ast.walk(sdk)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and ast.unparse(node.value) == "self"
    }
    names = methods | stored
    assert {name for name in names if name.startswith("_")} == SDK_PRIVATE
    assert {name for name in names if not name.startswith("_")} == SDK_METHODS
    (public,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    assert set(ast.literal_eval(public)) == SDK_PUBLIC


def test_every_rule_has_a_bad_edit_and_none_has_another_name() -> None:
    assert {edit["rule"] for edit in DATA["edit"]} >= set(RULES)
    assert len(DATA["edit"]) >= 40


def test_a_policy_names_rules_that_exist(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text('[screen]\nrefuse = ["import", "imports"]\n')
    with raises(Invalid, names=["not 'imports'"]):
        load_policy(path)
    path.write_text('[screen]\nrefuse = []\ndeny = ["turtle"]\nimports = ["yaml"]\n')
    screen = load_policy(path).screen
    found = guard(BESIDE, {TOOL: SOURCES[TOOL] + "\n\nimport turtle, yaml\n"}, screen)
    assert [str(finding) for finding in found] == ["tool/sum/tool.py:31: imports turtle (import)"]
