"""The map of an evolution (docs/contribute/map.md) against what one enters."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from agentos.syntax import parse

if TYPE_CHECKING:
    from conftest import World

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = str(ROOT / "agentos") + "/"


def entered_by(world: World) -> dict[str, None]:
    """Files of the package in the order in which one whole evolution first enters them."""
    found: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            found.setdefault(frame.f_code.co_filename.removeprefix(f"{ROOT}/"))

    world.seed()
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        world.evolve(world.open())
    finally:
        sys.setprofile(before)
    return found


def test_the_map_names_what_an_evolution_enters(world: World) -> None:
    page = next((ROOT / "docs").rglob("map.md")).read_text()
    section = page.partition("## One evolution")[2].partition("\n## ")[0]
    always, where_it_applies = (
        re.findall(r"`(agentos/[\w/]+\.py)`", part) for part in section.split("### Only where it applies")
    )
    entered = entered_by(world)
    assert [path for path in always if path not in entered] == []
    assert [path for path in where_it_applies if path in entered or not (ROOT / path).exists()] == []
    (stated,) = re.findall(r"simplest evolution on fakes.*?\| (\d+) \|", page)
    assert len(entered) <= int(stated), "an evolution enters more files than the page says"


def behind(path: Path, found: set[Path]) -> set[Path]:
    """Files of the package that are opened with this one's import: without what it imports in functions or for types."""
    for node in parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            at = ROOT / node.module.replace(".", "/")
            for name in (at, *(at / alias.name for alias in node.names)):
                for file in (name.with_suffix(".py"), name / "__init__.py"):
                    if file.is_relative_to(PACKAGE) and file.exists() and file not in found:
                        found.add(file)
                        behind(file, found)
    return found


def test_the_map_says_how_much_is_behind_an_import() -> None:
    page = " ".join(next((ROOT / "docs").rglob("map.md")).read_text().split())
    for name, folder in (("judge", "verdict"), ("promotion", "promote")):
        (stated,) = re.findall(rf"\b{name}(?: has)? (\d+)(?: modules)? \([\d,]+(?: lines)?\)", page)
        start = ROOT / "agentos" / "evolver" / folder / f"{name}.py"
        assert len(behind(start, {start}) - {start}) <= int(stated), name
