"""Consent cannot be forged, moved to another candidate, or used late."""

import os
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentos.domain import (
    Candidate,
    Consent,
    Decision,
    Edit,
    Layer,
    Manifest,
    Snapshot,
    Tier,
    Verdict,
    tier_of,
)
from agentos.errors import Conflict, UserError
from agentos.evolver.promote.consent import issue, make_key, read_key, verify

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = bytes(range(32))
MANIFEST = Manifest("evd-1", "cause", "edit", ("skill/x/tools/t.py",), (), (), Layer.SKILL, "why")
CANDIDATE = Candidate(
    "cand-1-1", "evo-1", "repair", 1, MANIFEST, Edit({}, "e", "o"), Snapshot("b", "t0"), Snapshot("c", "t1")
)
VERDICT = Verdict(
    "verdict-1", "evo-1", "cand-1-1", Decision.PROMOTE, (), (), (), (), "t1", "t0", "m", "t", "p"
)
CONSENT = issue(KEY, CANDIDATE, VERDICT, "person:ada", NOW + timedelta(hours=1))


def test_a_consent_stands_for_what_it_was_given() -> None:
    verify(KEY, CONSENT, CANDIDATE, VERDICT, NOW)


@pytest.mark.parametrize("field", [field.name for field in fields(Consent) if field.name != "token"])
def test_a_changed_field_breaks_the_token(field: str) -> None:
    value = getattr(CONSENT, field)
    changed = value + timedelta(days=999) if isinstance(value, datetime) else f"{value}x"
    with pytest.raises(Conflict, match="was not issued"):
        verify(KEY, replace(CONSENT, **{field: changed}), CANDIDATE, VERDICT, NOW)


@pytest.mark.parametrize(
    "forge", [str.upper, lambda token: token + "0", lambda _: "", lambda _: "0" * 64, lambda _: "ü"]
)
def test_an_invented_token_is_refused(forge: Callable[[str], str]) -> None:
    with pytest.raises(Conflict):
        verify(KEY, replace(CONSENT, token=forge(CONSENT.token)), CANDIDATE, VERDICT, NOW)


def test_a_token_made_with_another_key_is_refused() -> None:
    forged = issue(bytes(32), CANDIDATE, VERDICT, "person:ada", NOW + timedelta(hours=1))
    with pytest.raises(Conflict, match="was not issued"):
        verify(KEY, forged, CANDIDATE, VERDICT, NOW)


@pytest.mark.parametrize(
    ("candidate", "verdict"),
    [
        (replace(CANDIDATE, snapshot=Snapshot("c2", "t2")), VERDICT),
        (replace(CANDIDATE, id="cand-1-2"), VERDICT),
        (replace(CANDIDATE, manifest=replace(MANIFEST, edit="another")), VERDICT),
        (CANDIDATE, replace(VERDICT, broken=("g1",))),
    ],
)
def test_a_consent_for_something_else_is_stale(candidate: Candidate, verdict: Verdict) -> None:
    with pytest.raises(Conflict, match="stale"):
        verify(KEY, CONSENT, candidate, verdict, NOW)


def test_a_late_consent_is_refused() -> None:
    with pytest.raises(Conflict, match="expired"):
        verify(KEY, CONSENT, CANDIDATE, VERDICT, NOW + timedelta(hours=1))


def test_the_key_is_private_and_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "consent.key"
    make_key(path)
    key = read_key(path)
    make_key(path)
    assert read_key(path) == key
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with pytest.raises(UserError, match="readable by others"):
        read_key(path)


def test_a_missing_or_short_key_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "consent.key"
    with pytest.raises(UserError, match="agentos init"):
        read_key(path)
    path.touch(mode=0o600)
    os.truncate(path, 5)
    with pytest.raises(UserError, match="5 bytes"):
        read_key(path)


@pytest.mark.parametrize(
    ("paths", "tier"),
    [
        (("memory/a/memory.md",), Tier.LOW),
        (("skill/x/tools/t.py",), Tier.MEDIUM),
        (("memory/a/memory.md", "harness/default/harness.py"), Tier.HIGH),
        (("registry.toml",), Tier.HIGH),
        (("skill/../harness/x.py", "unknown/x"), Tier.HIGH),
        ((), Tier.HIGH),
    ],
)
def test_the_tier_is_the_highest_of_what_is_touched(paths: tuple[str, ...], tier: Tier) -> None:
    assert tier_of(paths) is tier
