"""Consent cannot be forged, moved to another candidate, or used late."""

import errno
import hmac
import os
import pwd
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentos.domain import (
    Candidate,
    Consent,
    Decision,
    Edit,
    Layer,
    Manifest,
    RefusalKind,
    Snapshot,
    Tier,
    Verdict,
    canonical,
    tier_of,
)
from agentos.errors import Conflict, ErrorKind, PromotionRefused, UserError
from agentos.evolver.promote.consent import (
    TERMINAL,
    YES,
    Approval,
    issue,
    login,
    make_key,
    person,
    read_key,
    verify,
)
from tests.refusals import raises
from tests.test_durable import no_file_beyond

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = bytes(range(32))
MANIFEST = Manifest("evd-1", "cause", "edit", ("skill/x/tools/t.py",), (), (), Layer.SKILL, "why")
CANDIDATE = Candidate(
    "cand-1-1", "evo-1", "repair", 1, MANIFEST, Edit({}, "e", "o"), Snapshot("b", "t0"), Snapshot("c", "t1")
)
VERDICT = Verdict(
    "verdict-1", "evo-1", "cand-1-1", Decision.PROMOTE, (), (), (), (), "t1", "t0", "m", "t", "p"
)
CONSENT = issue(KEY, CANDIDATE, VERDICT, Approval("person:ada", NOW + timedelta(hours=1)))


def test_a_consent_stands_for_what_it_was_given() -> None:
    verify(KEY, CONSENT, CANDIDATE, VERDICT, NOW)


@pytest.mark.parametrize("field", [field.name for field in fields(Consent) if field.name != "token"])
def test_a_changed_field_breaks_the_token(field: str) -> None:
    value = getattr(CONSENT, field)
    changed = value + timedelta(days=999) if isinstance(value, datetime) else f"{value}x"
    with pytest.raises(PromotionRefused) as raised:
        verify(KEY, replace(CONSENT, **{field: changed}), CANDIDATE, VERDICT, NOW)
    assert raised.value.kind == RefusalKind.FORGED


@pytest.mark.parametrize(
    "forge", [str.upper, lambda token: token + "0", lambda _: "", lambda _: "0" * 64, lambda _: "ü"]
)
def test_an_invented_token_is_refused(forge: Callable[[str], str]) -> None:
    with pytest.raises(Conflict):
        verify(KEY, replace(CONSENT, token=forge(CONSENT.token)), CANDIDATE, VERDICT, NOW)


def test_a_token_made_with_another_key_is_refused() -> None:
    forged = issue(bytes(32), CANDIDATE, VERDICT, Approval("person:ada", NOW + timedelta(hours=1)))
    with pytest.raises(PromotionRefused) as raised:
        verify(KEY, forged, CANDIDATE, VERDICT, NOW)
    assert raised.value.kind == RefusalKind.FORGED


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
    with pytest.raises(PromotionRefused) as raised:
        verify(KEY, CONSENT, candidate, verdict, NOW)
    assert raised.value.kind == RefusalKind.OTHER


def test_a_late_consent_is_refused() -> None:
    with pytest.raises(PromotionRefused) as raised:
        verify(KEY, CONSENT, CANDIDATE, VERDICT, NOW + timedelta(hours=1))
    assert raised.value.kind == RefusalKind.EXPIRED


def test_the_key_is_private_and_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "consent.key"
    make_key(path)
    key = read_key(path)
    make_key(path)
    assert read_key(path) == key
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with raises(UserError, ErrorKind.EXPOSED, type_next="chmod 600"):
        read_key(path)


def test_a_key_for_which_there_was_no_room_is_made_later(tmp_path: Path) -> None:
    path = tmp_path / "consent.key"
    with no_file_beyond(0), raises(OSError, names=[f"[Errno {errno.EFBIG}]"]):
        make_key(path)
    make_key(path)
    assert read_key(path)


def test_a_missing_or_short_key_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "consent.key"
    with raises(UserError, ErrorKind.UNREADABLE, type_next="agentos init"):
        read_key(path)
    path.touch(mode=0o600)
    os.truncate(path, 5)
    with raises(UserError, ErrorKind.DAMAGED, names=["5 bytes"]):
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


def test_how_it_was_given_is_bound_and_cannot_be_dropped() -> None:
    given = issue(KEY, CANDIDATE, VERDICT, Approval("person:ada(1000)", NOW + timedelta(hours=1), YES))
    verify(KEY, given, CANDIDATE, VERDICT, NOW)
    for other in (TERMINAL, ""):
        with pytest.raises(PromotionRefused) as raised:
            verify(KEY, replace(given, given=other), CANDIDATE, VERDICT, NOW)
        assert raised.value.kind == RefusalKind.FORGED


def test_a_consent_from_before_that_was_written_down_still_stands() -> None:
    old = replace(CONSENT, token="", given="")
    fields_then = {name: getattr(old, name) for name in Consent.__dataclass_fields__ if name != "given"}
    token = hmac.new(KEY, canonical(fields_then), "sha256").hexdigest()
    verify(KEY, replace(old, token=token), CANDIDATE, VERDICT, NOW)


def test_the_environment_names_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The principal is the kernel's uid, whatever LOGNAME, USER and the like say."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "ceo")
    monkeypatch.delenv("SUDO_USER", raising=False)
    uid = os.getuid()
    assert login() == pwd.getpwuid(uid).pw_name
    assert person().startswith(f"person:{login()}({uid})")
    assert "ceo" not in person()


@pytest.mark.parametrize(("uid", "said"), [(0, True), (65534, False)])
def test_only_root_is_believed_what_sudo_names(uid: int, said: bool) -> None:
    """Really as that uid, in a process of its own."""
    if os.getuid() != 0:
        pytest.skip("only root can become another uid")
    code = "import os, sys; os.setuid(int(sys.argv[1])); from agentos.evolver.promote.consent import person; print(person())"
    env = {**os.environ, "SUDO_USER": "ada", "LOGNAME": "ceo"}
    command = [sys.executable, "-c", code, str(uid)]
    if uid:  # another uid may not be able to read the checkout: everything is imported before
        command[2] = code.replace("os.setuid", "import agentos.evolver.promote.consent; os.setuid")
    found = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.strip()
    assert found.startswith(f"person:{pwd.getpwuid(uid).pw_name}({uid})")
    assert (",sudo=ada" in found) is said
    assert "ceo" not in found


@pytest.mark.parametrize("name", ["ceo,x", "a b", "", "x" * 40, "\u202eceo", "ceo\nConsent: person:ceo"])
def test_what_sudo_names_is_a_login_or_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", name)
    assert "sudo=" not in person()


def test_root_of_a_user_namespace_is_told_from_root() -> None:
    """`unshare -r` makes anybody uid 0 in the eyes of os.getuid()."""
    code = "from agentos.evolver.promote.consent import person; print(person())"
    command = ["unshare", "--user", "--map-root-user", sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("no user namespaces here")
    assert done.stdout.strip().endswith(",userns")


def test_who_hides_which_user_namespace_it_is_in_is_told_from_root() -> None:
    code = "from agentos.evolver.promote.consent import person; print(person())"
    script = f'mount -t tmpfs none /proc && exec "{sys.executable}" -c "{code}"'
    command = ["unshare", "--user", "--mount", "--map-root-user", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("no user namespaces here, or none that may mount")
    assert done.stdout.strip().endswith(",userns")


@pytest.mark.parametrize(("inode", "said"), [(0xEFFFFFFD, False), (0xEFFFFFFE, True), (None, False)])
def test_the_first_user_namespace_is_known_by_its_number(
    monkeypatch: pytest.MonkeyPatch, inode: int | None, said: bool
) -> None:
    """Which one a test runs in is the machine's; a kernel without them has no such file."""
    stat = os.stat

    def seen(path: Any, *rest: Any, **more: Any) -> Any:
        if path != "/proc/self/ns/user":
            return stat(path, *rest, **more)
        if inode is None:
            raise FileNotFoundError(path)
        return SimpleNamespace(st_ino=inode)

    monkeypatch.setattr(os, "stat", seen)
    assert person().endswith(",userns") is said
