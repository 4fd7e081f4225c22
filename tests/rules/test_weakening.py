"""An evolution may make a rule stricter, never weaker: every way of weakening one that we could think of."""

from __future__ import annotations

import pytest

from agentos.domain import Refusal, RefusalKind, Tier, tier_of
from agentos.rules.document import weakened

PATH = "rule/mine/resource.toml"
SKILL = "skill/a/rules/mine.toml"
LINES = {
    "description": '"No."',
    "on": '"before_call"',
    "when": "\"tool == 'rm' || tool == 'dd'\"",
    "enforce": '"refuse"',
    "advice": '"Do not."',
    "examples": "{ stops = [{ tool = 'rm' }], passes = [{ tool = 'ls' }] }",
}


def document(**changes: str | None) -> str:
    lines = {**LINES, **changes}
    return "".join(f"{key} = {value}\n" for key, value in lines.items() if value is not None)


def refused(found: Refusal | None) -> bool:
    return found is not None and found.kind is RefusalKind.RULE and ": " in found.reason


@pytest.mark.parametrize("path", [PATH, SKILL])
@pytest.mark.parametrize(
    "changes",
    [
        {"when": "\"tool == 'rm'\""},
        {"when": '"false"'},
        {"when": "\"(tool == 'rm' || tool == 'dd') && args.force == true\""},
        {"when": "\"tool == 'rm' || tool == 'dd' && false\""},
        {"when": "\"(tool == 'rm' || tool == 'dd') || (true) && (false)\""},
        {"when": "\"(tool == 'rm' || tool == 'dd') || (true) ? false : (false)\""},
        {"when": "\"!(tool == 'rm' || tool == 'dd')\""},
        {"enforce": '"reflect"'},
        {"enforce": '"ask"'},  # a person may allow it, where nobody could
        {"enforce": '"replace"', "advice": None, "replace": "{ a = 1 }"},
        {"on": '"before_change"'},
        {"on_error": '"pass"'},
        {"examples": "{ stops = [], passes = [{ tool = 'ls' }] }"},
        {"examples": None},
        {"when": '"tool =="'},
        {"unknown": "1"},
    ],
)
def test_no_way_to_weaken_one(path: str, changes: dict[str, str | None]) -> None:
    assert refused(weakened({path: document()}, {path: document(**changes)}))


def test_one_that_wrote_no_arguments_comes_to_write_none() -> None:
    """A new rule that does is for people to add, so this is too, though it holds back more."""
    old = document(enforce='"reflect"')
    assert refused(weakened({PATH: old}, {PATH: document(enforce='"replace"', replace="{ a = 1 }")}))
    assert weakened({PATH: old}, {PATH: document()}) is None


def test_it_cannot_be_deleted_or_emptied() -> None:
    assert refused(weakened({PATH: document()}, {PATH: None}))
    assert refused(weakened({PATH: document()}, {PATH: ""}))


@pytest.mark.parametrize(
    "changes",
    [
        {"enforce": '"stop"'},
        {"when": "\"(tool == 'rm' || tool == 'dd') || (tool == 'mkfs')\""},
        {"description": '"Better said."'},
        {"advice": '"Ask first."'},
        {"examples": "{ stops = [{ tool = 'rm' }, { tool = 'dd' }], passes = [{ tool = 'ls' }] }"},
    ],
)
def test_it_may_be_made_stricter(changes: dict[str, str]) -> None:
    assert weakened({PATH: document()}, {PATH: document(**changes)}) is None


def test_a_new_rule_is_welcome_unless_it_writes_arguments() -> None:
    assert weakened({}, {PATH: document()}) is None
    writes = document(enforce='"replace"', advice=None, replace="{ a = 1 }")
    assert refused(weakened({}, {PATH: writes}))


def test_an_edit_of_rules_is_of_the_highest_tier() -> None:
    assert tier_of([PATH]) is Tier.HIGH
    assert tier_of([SKILL]) is Tier.HIGH
    assert tier_of(path for path in [SKILL]) is Tier.HIGH
    assert tier_of(["skill/a/tools/rules.py"]) is Tier.MEDIUM


def test_half_a_character_makes_a_document_that_nobody_can_read() -> None:
    text = document() + "# " + chr(0xD800)
    assert refused(weakened({}, {PATH: text}))
    assert refused(weakened({PATH: document()}, {PATH: text}))
