"""The picture of the loop's health is an XML document, whatever lessons and resources are called."""

from __future__ import annotations

from datetime import UTC, datetime
from xml.etree import ElementTree

import pytest

from agentos.evolver.watch.health import EvolutionCost, FixRecord, Health
from agentos.web.health_picture import picture

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize("name", ["\uffff", "\ufffe", "\0", "\ud800", "<&>", "\u202e"])
def test_any_name_makes_a_document(name: str) -> None:
    fix = FixRecord("evo-1", f"tool/{name}", NOW, NOW)
    health = Health(NOW, {}, (), 60.0, (fix,), EvolutionCost(0.0, 0, 0.0, 0), (), (), ())
    ElementTree.fromstring(picture(health))
