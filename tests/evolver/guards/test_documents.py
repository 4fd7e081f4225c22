"""Of an agent's or environment's document an edit changes what work lacked, and nothing that holds it."""

from __future__ import annotations

import pytest

from agentos.domain import RefusalKind
from agentos.evolver.guards.static.documents import document_fault
from agentos.evolver.policy import SurfacePolicy
from agentos.evolver.propose.validation import screen

AGENT = "agent/desk/resource.toml"
BOX = "environment/desk/resource.toml"
OLD = (
    'tools = ["look"]\nskills = ["stock", "csv-*"]\nasks = ["recall"]\n\n[limits]\ncalls = 2\ncost_usd = 0\n'
)
BOX_OLD = 'sandbox = "auto"\n\n[limits]\nsteps = 8\nmemory_mb = 256\n'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('["look"]', '["look", "count"]'),
        ('["look"]', "[]"),
        ("calls = 2", "calls = 16"),
        ("calls = 2", "calls = 1"),
        ("calls = 2", "calls = 2\nsteps = 9"),
        ('["stock", "csv-*"]', '["stock", "shelves"]'),
    ],
)
def test_what_work_lacked_may_be_given(old: str, new: str) -> None:
    assert document_fault(AGENT, OLD, OLD.replace(old, new)) is None
    assert screen({AGENT: OLD}, {AGENT: OLD.replace(old, new)}, [], SurfacePolicy()) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('["look"]', '["*"]'),
        ('["look"]', '["look", "sh*"]'),
        ('["look"]', '["look", "[a-z]hell"]'),
        ('["look"]', '["look", "?hell"]'),
        ('tools = ["look"]\n', ""),  # left out it grants all
        ('["look"]', '"look"'),
        ("calls = 2", "calls = 17"),
        ("calls = 2", "calls = 0"),
        ("calls = 2\n", ""),
        ("calls = 2", "calls = true"),
        ("calls = 2", "calls = nan"),
        ("calls = 2", "calls = inf"),
        ('["stock", "csv-*"]', '["csv-*"]'),  # with it go the checks that it ships
        ('skills = ["stock", "csv-*"]\n', "skills = []\n"),
        ("calls = 2", "calls = 2\ntokens = 9000"),  # it would go before the budget of the settings
        ("cost_usd = 0", "cost_usd = 3"),
        ("\n[limits]\ncalls = 2\ncost_usd = 0\n", ""),
        ('asks = ["recall"]', 'asks = ["recall", "remember"]'),
        ('asks = ["recall"]', 'asks = ["recall"]\nmodel = "large"'),
        ('asks = ["recall"]', 'asks = ["recall"]\nagents = ["*"]'),
        ('asks = ["recall"]', 'asks = ["recall"]\nharness = "mine"'),
        ('asks = ["recall"]', 'asks = ["recall"]\nevolvable = false'),
        ('asks = ["recall"]', 'asks = ["recall"]\ndescription = "Ask me anything"'),
    ],
)
def test_what_holds_it_stays(old: str, new: str) -> None:
    fault = screen({AGENT: OLD}, {AGENT: OLD.replace(old, new)}, [], SurfacePolicy())
    assert fault is not None
    assert fault.kind is RefusalKind.SURFACE


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        ("steps = 8", "steps = 60", False),
        ("steps = 8", "steps = 65", True),
        ("steps = 8\n", "", True),
        ('sandbox = "auto"', 'sandbox = "none"', True),
        ('sandbox = "auto"', 'sandbox = "auto"\nlabels = ["gpu"]', True),
        ('sandbox = "auto"', 'sandbox = "auto"\ntools = ["*"]', True),
    ],
)
def test_of_a_box_only_limits_move(old: str, new: str, refused: bool) -> None:
    assert (document_fault(BOX, BOX_OLD, BOX_OLD.replace(old, new)) is not None) is refused


def test_a_new_one_is_for_people() -> None:
    assert document_fault(AGENT, None, OLD) is not None
    assert document_fault(BOX, None, BOX_OLD) is not None
    assert document_fault("tool/look/resource.toml", None, "") is None
