"""What is installed with the program, and what it says where a part of it was left out."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

from agentos.cli.admin.web import web
from agentos.domain import Budget, Mode
from agentos.errors import ErrorKind, ModelFailed, Unavailable, UserError
from agentos.gateway.client import GatewayModels
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ports import Grant
from agentos.rules.predicate import compiled, environment
from agentos.sandboxes.choice import Choice
from tests.refusals import raises

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def named(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w.-]", line)[0].lower().replace("_", "-") for line in requirements}


def imported() -> Iterator[tuple[str, str]]:
    """File and top-level module of each import of something foreign, in the package and the shipped harness."""
    for path in [*(ROOT / "agentos").rglob("*.py"), *(ROOT / "registry").rglob("*.py")]:
        own = {"agentos", *sys.stdlib_module_names, *(beside.stem for beside in path.parent.glob("*.py"))}
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                modules = [str(node.module)]
            yield from (
                (str(path.relative_to(ROOT)), top) for it in modules if (top := it.split(".")[0]) not in own
            )


@pytest.mark.slow
def test_what_is_imported_is_declared() -> None:
    declared = named(PROJECT["dependencies"])
    for extra in (
        "blobs",
        "models",
        "docker",
        "embeddings",
        "keyring",
        "kubernetes",
        "mcp",
        "postgres",
        "rules",
        "web",
        "workers",
    ):
        declared |= named(PROJECT["optional-dependencies"][extra])
    homes = packages_distributions()
    names = {top: {it.lower().replace("_", "-") for it in homes.get(top, [top])} for _, top in imported()}
    assert {top for top, found in names.items() if not found & declared} <= {"numpy"}  # of the embeddings


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes a library look as if it were not installed."""

    def hide(name: str) -> None:
        monkeypatch.setitem(sys.modules, name, None)
        lazy = ("agentos.sandboxes.docker.", "agentos.sandboxes.kubernetes.")
        for module in [it for it in sys.modules if it.startswith(lazy)]:
            monkeypatch.delitem(sys.modules, module)

    return hide


def test_without_the_extra_a_model_is_away_and_what_to_type_is_said(
    tmp_path: Path, without: Callable[[str], None]
) -> None:
    without("litellm")
    setup: Any = object
    models = GatewayModels(Home(tmp_path), setup)
    grant = Grant("run-1", Mode.RECORD, (), Budget())
    with pytest.raises(ModelFailed) as caught:
        models.open(grant).complete({"messages": []}, float("inf"))
    assert caught.value.kind == "unreachable"
    assert "agentos-daemon[models]" in str(caught.value)


def test_without_the_extra_only_who_wants_the_container_sandbox_is_refused(
    tmp_path: Path, without: Callable[[str], None]
) -> None:
    without("docker")
    choice = Choice(tmp_path, None, "docker")
    with raises(Unavailable, type_next="pip install 'agentos-daemon[docker]'"):
        choice.start()
    choice.close()


def test_without_the_extra_only_who_wants_pods_is_refused(
    tmp_path: Path, without: Callable[[str], None]
) -> None:
    without("httpx")
    choice = Choice(tmp_path, None, "kubernetes")
    with raises(Unavailable, type_next="pip install 'agentos-daemon[kubernetes]'"):
        choice.start()
    choice.close()


def test_pods_need_no_container_engine(tmp_path: Path, without: Callable[[str], None]) -> None:
    without("docker")
    choice = Choice(tmp_path, None, "kubernetes")
    with raises(
        Unavailable, type_next="agentos sandbox build", names=["[kubernetes] of agentos.toml"]
    ):  # it has no image yet
        choice.start()
    choice.close()


def test_without_the_extra_the_page_says_what_to_type(
    tmp_path: Path, without: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [it for it in sys.modules if it.startswith("agentos.web.")]:
        monkeypatch.delitem(sys.modules, module)
    without("jinja2")
    with raises(UserError, ErrorKind.NOT_INSTALLED, type_next="pip install 'agentos-daemon[web]'"):
        web(port=0, open_browser=False)


def test_without_the_extra_a_rule_says_what_to_type(without: Callable[[str], None]) -> None:
    compiled.cache_clear()
    environment.cache_clear()
    without("cel_expr_python")
    with raises(Unavailable, ErrorKind.NOT_INSTALLED, type_next="pip install 'agentos-daemon[rules]'"):
        compiled("tool == 'x'")
    environment.cache_clear()


def test_without_the_extra_a_ledger_in_postgresql_says_what_to_type(
    tmp_path: Path, without: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "agentos.ledger.postgres.connection", raising=False)
    without("psycopg")
    (tmp_path / "agentos.toml").write_text('database = "postgresql://host/agentos"\n')
    with raises(UserError, ErrorKind.NOT_INSTALLED, type_next="pip install 'agentos-daemon[postgres]'"):
        Reader(tmp_path / "ledger.db")
