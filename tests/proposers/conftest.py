"""Proposers are tried in the same small world as the stages of an evolution."""

from __future__ import annotations

import pytest

from tests.evolver.conftest import World


@pytest.fixture
def world() -> World:
    return World()
