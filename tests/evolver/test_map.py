"""The map of an evolution (docs/contribute/map.md) against what one enters."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

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
    named = re.findall(r"`(agentos/[\w/]+\.py)`", section)
    entered = entered_by(world)
    not_by_it = {"agentos/evolver/watch/probation.py"}  # it begins with the first live run after
    assert [path for path in named if path not in entered and path not in not_by_it] == []
    (stated,) = re.findall(r"simplest evolution on fakes.*?\| (\d+) \|", page)
    assert len(entered) <= int(stated), "an evolution enters more files than the page says"
