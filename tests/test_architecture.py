"""The walls of docs/architecture.md, checked on the syntax tree: nothing is imported to find out.

Rows: imports go down only, and parts of one row are strangers. A part is a module or package
directly below ``agentos``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from agentos.syntax import parse

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "agentos"

ROWS = [
    {"__main__"},
    {"cli"},
    {"daemon"},
    {"evolver", "gateway", "web", "worker"},
    {"registry", "ledger", "sandboxes", "models", "retrieval", "trajectories", "testing"},
    {"resources", "settings", "shipped", "taskfile"},
    {"checks"},  # below taskfile, which refuses a task whose checks break their rules
    {"ports"},
    {"domain", "messages"},
    {"functions", "wire", "home", "identity", "syntax"},
    {"errors"},
]
ROW_OF = {part: number for number, row in enumerate(ROWS) for part in row}

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
    "libcst": {"evolver"},
    "watchfiles": {"daemon"},
    "croniter": {"daemon", "taskfile"},
    "structlog": {"daemon"},
    "pydantic_settings": {"settings"},
    "tenacity": {"daemon", "gateway"},
    "starlette": {"gateway", "web"},
    "uvicorn": {"gateway", "web"},
    "httpx": {"gateway"},
    "numpy": {"retrieval"},
    "wordllama": {"retrieval"},
    "opentelemetry": {"trajectories"},
}

# What is visible inside a sandbox, so all that such code may import.
INSIDE = {"worker", "wire", "messages", "checks", "functions"}


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


def known(module: str) -> str:
    """The module that a dotted name (perhaps of something inside it) belongs to."""
    while module and not ((ROOT / Path(*module.split("."))).with_suffix(".py").exists()):
        if (ROOT / Path(*module.split(".")) / "__init__.py").exists():
            return module
        module = module.rpartition(".")[0]
    return module


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_imports_go_down_and_parts_of_one_row_are_strangers(path: Path) -> None:
    own = part_of(name_of(path))
    if own is None:
        return
    for module in imports(path):
        other = part_of(module)
        if other in (None, own) or other == "__version__":
            continue
        assert other in ROW_OF, f"{name_of(path)} imports {module}: give agentos.{other} a row"
        assert ROW_OF[own] < ROW_OF[other], (
            f"{name_of(path)} (row {ROW_OF[own] + 1}) imports {module} (row {ROW_OF[other] + 1})"
        )


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_each_foreign_library_has_one_home(path: Path) -> None:
    own = part_of(name_of(path))
    for module in imports(path):
        library = module.split(".")[0]
        if library in HOMES:
            assert own in HOMES[library], f"{name_of(path)} imports {library}, whose home is {HOMES[library]}"


@pytest.mark.parametrize("path", [p for p in modules() if part_of(name_of(p)) in INSIDE], ids=name_of)
def test_code_inside_a_sandbox_knows_nothing_of_the_kernel(path: Path) -> None:
    for module in imports(path):
        other = part_of(module)
        assert other is None or other in INSIDE, f"{name_of(path)} imports {module}"


def test_there_is_no_cycle_between_modules() -> None:
    graph = {
        name_of(path): {known(module) for module in imports(path) if module.startswith("agentos.")}
        for path in modules()
    }
    for name, others in graph.items():
        others.discard(name)
        # a package and its own modules: the submodule may name the package's path, not its content
        graph[name] = {other for other in others if not name.startswith(other + ".")}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


def test_the_page_has_the_rows_of_this_test() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    table = re.findall(r"^\| \d+ \| ([^|]+) \|", page, re.MULTILINE)
    there = {part_of(name_of(path)) for path in modules()} - {"__main__"}
    rows = [row & there for row in ROWS if row & there]
    assert [set(re.findall(r"`(\w+)`", row)) for row in table] == rows


def code_lines(path: Path) -> int:
    return sum(
        1 for line in path.read_text().splitlines() if line.strip() and not line.strip().startswith("#")
    )


@pytest.mark.parametrize("path", [*modules(), *sorted((ROOT / "registry").rglob("*.py"))], ids=str)
def test_no_file_is_long(path: Path) -> None:
    assert code_lines(path) <= 400, f"{path} has {code_lines(path)} code lines"


def test_no_empty_names() -> None:
    banned = {"core", "utils", "common", "helpers", "manager", "base"}
    assert not [path for path in modules() if path.stem in banned or path.parent.name in banned]


def broad_handlers(path: Path) -> Iterator[int]:
    for node in ast.walk(parse(path.read_text())):
        if isinstance(node, ast.ExceptHandler):
            names = (
                {name.id for name in ast.walk(node.type) if isinstance(name, ast.Name)}
                if node.type
                else {"BaseException"}
            )
            if names & {"Exception", "BaseException"}:
                yield node.lineno


def test_broad_handlers_stand_only_in_marked_places() -> None:
    marked = {"agentos/cli/main.py", "agentos/daemon/tick.py"}
    inside = {"agentos/worker"}  # there, what is caught is the evolvable code's own error, sent on as data
    for path in modules():
        name = str(path.relative_to(ROOT))
        for line in broad_handlers(path):
            assert name in marked or any(name.startswith(place) for place in inside), (
                f"{name}:{line}: broad except"
            )
