"""The walls of docs/understand/architecture.md, read off the source: nothing is imported to find out.

Which part may import which is said once, in the contracts of import-linter in pyproject.toml.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from agentos.syntax import parse

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "agentos"

# One home for each foreign library; a tuple where a second home has a reason of its own.
HOMES = {
    "git": {"registry"},
    "pygit2": {"registry"},
    "sqlmodel": {"ledger"},
    "sqlalchemy": {"ledger", "daemon"},  # the daemon hands DBOS an engine in WAL mode
    "alembic": {"ledger"},
    "dbos": {"daemon"},
    "docker": {"sandboxes"},
    "litellm": {"gateway"},
    "typer": {"cli"},
    "rich": {"cli"},
    "fastapi": {"web", "gateway"},
    "langgraph": {"worker"},  # the template process imports it ahead; only the harness uses it
    "watchfiles": {"daemon"},
    "croniter": {"daemon", "taskfile"},
    "structlog": {"daemon"},
    "fsspec": {"ledger"},
    "tenacity": {"daemon", "gateway", "ledger"},
    "jinja2": {"web"},
    "markupsafe": {"web"},
    "starlette": {"gateway", "web"},
    "uvicorn": {"gateway", "web"},
    "httpx": {"gateway", "sandboxes"},
    "numpy": {"retrieval"},
    "wordllama": {"retrieval"},
    "opentelemetry": {"trajectories"},
    "mcp": {"cli"},
    "cel_expr_python": {"rules"},
    "re2": {"rules"},
    "websockets": {"sandboxes"},
}


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "_shipped" not in path.parts)


def name_of(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[str]:
    """Full dotted names, lazy imports included; TYPE_CHECKING blocks count too."""
    for node in ast.walk(parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            for alias in node.names:
                yield f"{node.module}.{alias.name}"


def part_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "agentos" and len(parts) > 1 else None


CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
LAYERS = next(item["layers"] for item in CONTRACTS if item.get("containers") == ["agentos"])


def lint(cwd: Path) -> subprocess.CompletedProcess[str]:
    """import-linter over a checkout, with the contracts of its pyproject.toml."""
    code = "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-c", code, "--no-cache", "--no-logo"]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_the_contracts_of_imports_are_kept() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


ARROWS_BACK_UP = [
    ("evolver/select/curate.py", "import agentos.evolver.replay.trials", "stages"),
    ("evolver/verdict/judge.py", "import agentos.evolver.dependencies", "verdict"),
    ("evolver/find/triage.py", "import agentos.evolver.dependencies", "stages"),
    ("worker/job.py", "import agentos.domain", "sandbox"),
    ("ledger/store.py", "import agentos.registry.store", "strangers"),
    ("records/runs.py", "def later() -> None:\n    import agentos.ports", "strangers"),
]


def test_each_arrow_back_up_is_found(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "agentos", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for file, line, _ in ARROWS_BACK_UP:
        changed = tmp_path / "agentos" / file
        changed.write_text(changed.read_text() + f"\n{line}\n")
    done = lint(tmp_path)
    assert done.returncode == 1
    # What each broken contract says stands below its name, underlined.
    told = {
        name.lower(): text
        for name, text in re.findall(r"^(.+)\n-+\n((?:.*\n)*?)(?=^.+\n-+\n|\Z)", done.stdout, re.M)
    }
    for file, line, contract in ARROWS_BACK_UP:
        source, target = f"agentos.{file.removesuffix('.py').replace('/', '.')}", line.split()[-1]
        (text,) = [text for name, text in told.items() if contract in name]
        assert f"{source} -> {target}" in text, (source, text)


def test_a_stage_asks_for_few_ports_beside_those_of_the_stages_it_calls() -> None:
    faces = [
        node for path in (PACKAGE / "evolver").rglob("__init__.py") for node in parse(path.read_text()).body
    ]
    contexts = {
        node.name: node.body for node in faces if isinstance(node, ast.ClassDef) and "Context" in node.name
    }
    asked = {
        name: sum(isinstance(item, ast.AnnAssign | ast.FunctionDef) for item in body)
        for name, body in contexts.items()
    }
    assert len(asked) > 20
    assert {name: ports for name, ports in asked.items() if ports > 7} == {}


def test_no_folder_is_crowded() -> None:
    counts = Counter(path.parent for path in modules() if path.parent != PACKAGE)
    assert max(counts.values()) <= 13, counts.most_common(3)  # twelve, and the face
    assert sum(path.parent == PACKAGE for path in modules()) <= 20  # what more than one part stands on
    assert len(modules()) <= 500  # a concept has one file: a new one takes the place of an old one


def test_each_foreign_library_has_one_home() -> None:
    named = re.compile(rf"\b({'|'.join(HOMES)})\b")  # a file without such a word need not be parsed
    for path in filter(lambda path: named.search(path.read_text()), modules()):
        own = part_of(name_of(path))
        for module in imports(path):
            library = module.split(".")[0]
            if library in HOMES:
                homes = HOMES[library]
                assert own in homes, f"{name_of(path)} imports {library}, whose home is {homes}"


def test_the_page_has_the_rows_of_this_test() -> None:
    page = (ROOT / "docs" / "understand" / "architecture.md").read_text()
    table = re.findall(r"^\| \d+ \| ([^|]+) \|", page, re.MULTILINE)
    rows = [set(re.findall(r"\w+", row)) for row in LAYERS if row != "__main__"]
    assert [set(re.findall(r"`(\w+)`", row)) for row in table] == rows


def code_lines(path: Path) -> int:
    return sum(
        1 for line in path.read_text().splitlines() if line.strip() and not line.strip().startswith("#")
    )


def test_no_file_is_long() -> None:
    for path in [*modules(), *sorted((ROOT / "registry").rglob("*.py"))]:
        assert code_lines(path) <= 400, f"{path} has {code_lines(path)} code lines"


# A command's options are its parameters, and so are the arguments of a tool that is served to an MCP client.
SERVED_TOOLS = "agentos/cli/connections/mcp_serving.py"


def test_a_function_asks_for_at_most_five_things() -> None:
    found = set()
    for path in modules():
        name = str(path.relative_to(ROOT))
        for node in ast.walk(parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            is_command = name.startswith("agentos/cli/") and node.decorator_list
            asked = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            if (
                not is_command
                and name != SERVED_TOOLS
                and len(asked) - (asked[0] in ("self", "cls") if asked else 0) > 5
            ):
                found.add(f"{name}:{node.name}")
    assert not found, "what travels together is one record, or known to one object"


def test_no_empty_names() -> None:
    banned = {"core", "utils", "common", "helpers", "manager", "base"}
    assert not [path for path in modules() if path.stem in banned or path.parent.name in banned]


def broad_handlers(path: Path) -> Iterator[int]:
    text = path.read_text()
    if not re.search(r"except:|BaseException|\bException\b", text):
        return
    for node in ast.walk(parse(text)):
        if isinstance(node, ast.ExceptHandler):
            names = (
                {name.id for name in ast.walk(node.type) if isinstance(name, ast.Name)}
                if node.type
                else {"BaseException"}
            )
            if names & {"Exception", "BaseException"}:
                yield node.lineno


def test_broad_handlers_stand_only_in_marked_places() -> None:
    # that of plug-ins catches what the code of other distributions raises
    marked = {
        "agentos/cli/main.py",
        "agentos/daemon/tick.py",
        "agentos/gateway/answering.py",  # a paid call has to come to its record, whatever went wrong
        "agentos/plugins/registry.py",
    }
    # there, what is caught is the evolvable code's own error, sent on as data
    inside = {"agentos/worker", "agentos/proposers/repair/reading/watcher.py"}
    for path in modules():
        name = str(path.relative_to(ROOT))
        for line in broad_handlers(path):
            assert name in marked or any(name.startswith(place) for place in inside), (
                f"{name}:{line}: broad except"
            )


def imported_at_once(path: Path, known: Mapping[str, Path], text: str = "") -> set[str]:
    """The modules of the package that an import of this one brings: neither types alone nor lazy imports."""
    found: set[str] = set()
    waiting: list[ast.AST] = [parse(text or path.read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting += node.orelse
            continue
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else str(node.module) for name in inner}
    return (found & known.keys()) - {name_of(path)}


def test_an_import_counts_wherever_it_is_made_at_once(tmp_path: Path) -> None:
    known = {
        name: tmp_path
        for name in ("agentos.a", "agentos.b", "agentos.c", "agentos.d", "agentos.e", "agentos.f")
    }
    file = PACKAGE / "no_such_file.py"
    text = """
from typing import TYPE_CHECKING
import agentos.a
from agentos import b as renamed
try:
    from agentos.c import name
finally:
    pass
class Holder:
    from agentos.d import name
if TYPE_CHECKING:
    from agentos.e import Type
def lazily():
    from agentos.f import name
"""
    found = imported_at_once(file, known, text)
    assert found == {"agentos.a", "agentos.b", "agentos.c", "agentos.d"}


def test_no_chain_of_imports_is_long() -> None:
    known = {name_of(path): path for path in modules()}

    @cache
    def chain(module: str) -> tuple[str, ...]:
        below = (chain(name) for name in sorted(imported_at_once(known[module], known)))
        return (module, *max(below, key=len, default=()))

    longest = max(map(chain, known), key=len)
    assert len(longest) <= 14, " > ".join(longest)


def test_no_public_class_name_stands_twice() -> None:
    """Enums and records included. ``Task`` is the word of the SDK for harnesses too, which many have copied."""
    found = Counter(
        node.name
        for path in modules()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in found.items() if count > 1} == {"Task"}
