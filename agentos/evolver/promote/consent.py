"""Consent: approval that only the kernel can issue.

A token is an HMAC-SHA256 over everything it is bound to (candidate tree, manifest, verdict, who,
until when). The key lies in the home with mode 0600 and is in no sandbox, no registry and no
environment; so nothing that runs in a sandbox can make a token, and a token for one candidate is
worth nothing for another.
"""

from __future__ import annotations

import getpass
import hmac
import os
import stat
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from agentos.domain import Candidate, Consent, Json, Verdict, canonical, digest, new_id
from agentos.errors import Conflict, UserError

KEY_BYTES = 32


def make_key(path: Path) -> None:
    """Create the home's key, once; never replaces one."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "wb") as file:
        file.write(os.urandom(KEY_BYTES))
        file.flush()
        os.fsync(file.fileno())


def read_key(path: Path) -> bytes:
    """The key; raises UserError when it is missing, short, or readable by others."""
    try:
        mode = path.stat().st_mode
        key = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"The consent key {path} cannot be read ({error.strerror}); run `agentos init`."
        ) from None
    if stat.S_IMODE(mode) & 0o077:
        raise UserError(
            f"The consent key {path} is readable by others; run `chmod 600 {path}` and replace the key."
        )
    if len(key) != KEY_BYTES:
        raise UserError(f"The consent key {path} has {len(key)} bytes, {KEY_BYTES} were expected.")
    return key


def person() -> str:
    """The principal for whoever runs this process."""
    return f"person:{getpass.getuser()}"


def issue(
    key: bytes, candidate: Candidate, verdict: Verdict, principal: str, expires_at: datetime
) -> Consent:
    """A consent for exactly this candidate with this verdict."""
    blank = Consent(
        id=new_id("consent"),
        evolution_id=candidate.evolution_id,
        candidate_id=candidate.id,
        candidate_tree=candidate.snapshot.tree,
        manifest_sha256=digest(candidate.manifest),
        verdict_sha256=digest(verdict),
        principal=principal,
        expires_at=expires_at,
        token="",
    )
    return replace(blank, token=_token(key, blank))


def expiry(now: datetime, seconds: int) -> datetime:
    """When a consent given now ends."""
    return now + timedelta(seconds=seconds)


def verify(key: bytes, consent: Consent, candidate: Candidate, verdict: Verdict, now: datetime) -> None:
    """Returns when the consent stands; raises Conflict with what does not fit."""
    if not hmac.compare_digest(consent.token.encode(), _token(key, consent).encode()):
        raise Conflict(f"The token of {consent.id} was not issued by this home's kernel.")
    bound = {
        "candidate": (consent.candidate_id, candidate.id),
        "candidate tree": (consent.candidate_tree, candidate.snapshot.tree),
        "manifest": (consent.manifest_sha256, digest(candidate.manifest)),
        "verdict": (consent.verdict_sha256, digest(verdict)),
    }
    for name, (given, found) in bound.items():
        if given != found:
            raise Conflict(f"{consent.id} was given for another {name}: it is stale.")
    if now >= consent.expires_at:
        raise Conflict(f"{consent.id} expired at {consent.expires_at:%Y-%m-%d %H:%M}; approve again.")


def genuine(key: bytes, stored: Mapping[str, Json]) -> bool:
    """Whether the key made the token of a consent, given as its stored JSON: fields added since do not matter."""
    try:
        expires = datetime.fromisoformat(str(stored["expires_at"])).isoformat()
        bound = canonical({**stored, "expires_at": expires, "token": ""})
        made = hmac.new(key, bound, "sha256").hexdigest()
        return hmac.compare_digest(str(stored["token"]).encode(), made.encode())
    except (KeyError, ValueError):
        return False


def _token(key: bytes, consent: Consent) -> str:
    return hmac.new(key, canonical(replace(consent, token="")), "sha256").hexdigest()
