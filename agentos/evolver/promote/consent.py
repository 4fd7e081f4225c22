"""Consent: approval that only the kernel can issue, what it was given for, and what a second model said before it.

A token is an HMAC-SHA256 over everything it is bound to (candidate tree, manifest, verdict, who,
until when). The key lies in the home with mode 0600 and is in no sandbox, no registry and no
environment; so nothing that runs in a sandbox can make a token, and a token for one candidate is
worth nothing for another.
"""

from __future__ import annotations

import hmac
import os
import pwd
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from agentos.durable import flush_folder
from agentos.errors import ErrorKind, PromotionRefused, Unavailable, UserError
from agentos.records.candidates import Candidate, RefusalKind, Verdict
from agentos.records.evolution import Consent, Review, ReviewOpinion
from agentos.records.identity import Json, canonical, digest, new_id

if TYPE_CHECKING:
    from agentos.evolver.states import RecordContext
    from agentos.ports import Records, Snapshots

KEY_BYTES = 32
TERMINAL, YES, STANDING, PAGE = "terminal", "--yes", "standing", "page"  # how a consent was given
_LOGIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}")
_FIRST_USER_NAMESPACE = 0xEFFFFFFD  # PROC_USER_INIT_INO of the kernel


def make_key(path: Path) -> None:
    """Create the home's key, once; never replaces one."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(os.urandom(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        flush_folder(path.parent)
    except OSError:  # a full disk: half a key would stay for ever
        path.unlink()
        raise


def read_key(path: Path) -> bytes:
    """The key; raises UserError when it is missing, short, or readable by others."""
    try:
        mode = path.stat().st_mode
        key = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"The consent key {path} cannot be read ({error.strerror}); run `agentos init`.",
            kind=ErrorKind.UNREADABLE,
        ) from None
    if stat.S_IMODE(mode) & 0o077:
        raise UserError(
            f"The consent key {path} is readable by others; run `chmod 600 {path}` and replace the key.",
            kind=ErrorKind.EXPOSED,
        )
    if len(key) != KEY_BYTES:
        raise UserError(
            f"The consent key {path} has {len(key)} bytes, {KEY_BYTES} were expected: restore it from a backup, or remove "
            "it and run `agentos init`.",
            kind=ErrorKind.DAMAGED,
        )
    return key


def login() -> str:
    """The name that the user database has for the uid of this process, "" where it has none.

    Never from LOGNAME or USER, which whoever types may set as they like.
    """
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return ""


def person() -> str:
    """The principal for whoever runs this process, as the kernel knows it: ``person:ada(1000)``.

    Beside root stands the login that sudo names (``person:root(0),sudo=ada``): root's word. In a user
    namespace of its own a process may be any uid that it likes; then the principal says so.
    """
    uid = os.getuid()
    parts = [f"person:{login() or 'unknown'}({uid})"]
    behind = os.environ.get("SUDO_USER", "")
    if uid == 0 and _LOGIN.fullmatch(behind):  # anybody else could have set it
        parts.append(f"sudo={behind}")
    if _own_user_namespace():
        parts.append("userns")
    return ",".join(parts)


def _own_user_namespace() -> bool:
    try:
        return os.stat("/proc/self/ns/user").st_ino != _FIRST_USER_NAMESPACE
    except OSError:
        # A kernel without user namespaces has the folder. Who is in one of their own may hide all of it.
        return not os.path.isdir("/proc/self/ns")


@dataclass(frozen=True, slots=True)
class Approval:
    """Who says yes, until when that holds, and how it was given."""

    principal: str
    expires_at: datetime
    given: str = STANDING


def issue(key: bytes, candidate: Candidate, verdict: Verdict, approval: Approval) -> Consent:
    """A consent for exactly this candidate with this verdict."""
    blank = Consent(
        id=new_id("consent"),
        evolution_id=candidate.evolution_id,
        candidate_id=candidate.id,
        candidate_tree=candidate.snapshot.tree,
        manifest_sha256=digest(candidate.manifest),
        verdict_sha256=verdict.sha256,
        principal=approval.principal,
        expires_at=approval.expires_at,
        token="",
        given=approval.given,
    )
    return replace(blank, token=_token(key, blank))


def expiry(now: datetime, seconds: int) -> datetime:
    """When a consent given now ends."""
    return now + timedelta(seconds=seconds)


def verify(key: bytes, consent: Consent, candidate: Candidate, verdict: Verdict, now: datetime) -> None:
    """Returns when the consent stands; raises PromotionRefused with what does not fit."""
    if not hmac.compare_digest(consent.token.encode(), _token(key, consent).encode()):
        raise PromotionRefused(
            RefusalKind.FORGED, f"The token of {consent.id} was not issued by this home's kernel."
        )
    bound = {
        "candidate": (consent.candidate_id, candidate.id),
        "candidate tree": (consent.candidate_tree, candidate.snapshot.tree),
        "manifest": (consent.manifest_sha256, digest(candidate.manifest)),
        "verdict": (consent.verdict_sha256, verdict.sha256),
    }
    for name, (given, found) in bound.items():
        if given != found:
            raise PromotionRefused(
                RefusalKind.OTHER, f"{consent.id} was given for another {name}: it is stale."
            )
    if now >= consent.expires_at:
        raise PromotionRefused(
            RefusalKind.EXPIRED,
            f"{consent.id} expired at {consent.expires_at:%Y-%m-%d %H:%M}; approve again.",
        )


def genuine(key: bytes, stored: Mapping[str, Json]) -> bool:
    """Whether the key made the token of a consent, given as its stored JSON: fields added since do not matter."""
    try:
        expires = datetime.fromisoformat(str(stored["expires_at"])).isoformat()
        given = {name: value for name, value in stored.items() if name != "given" or value}  # as ``_token``
        bound = canonical({**given, "expires_at": expires, "token": ""})
        made = hmac.new(key, bound, "sha256").hexdigest()
        return hmac.compare_digest(str(stored["token"]).encode(), made.encode())
    except (KeyError, ValueError):
        return False


def _token(key: bytes, consent: Consent) -> str:
    bound: dict[str, Json] = {name: getattr(consent, name) for name in Consent.__dataclass_fields__}
    if not consent.given:  # made before that was written down
        del bound["given"]
    return hmac.new(key, canonical(bound | {"token": ""}), "sha256").hexdigest()


def misquoted(snapshots: Snapshots, candidate: Candidate) -> Iterator[str]:
    """Each file of the edit that is on record with another text than in the candidate's snapshot."""
    brought = candidate.migration.files if candidate.migration else {}
    for path, text in {**candidate.edit.files, **brought}.items():
        try:
            found = snapshots.files(candidate.snapshot, path).get(path)
        except Unavailable as error:
            yield f"{candidate.id}: its snapshot cannot be read: {error}"
            return
        if found != text.encode("utf-8", "replace"):
            yield f"{candidate.id}: {path} on record is not what stands in its snapshot"


def is_overtaken(parts: RecordContext, candidate: Candidate) -> bool:
    """The registry moved since the candidate was judged, or was put on a newer base."""
    return parts.snapshots.stable() != candidate.stands_on[0]


def failing_review(records: Records, candidate: Candidate) -> Review | None:
    """A review of this very tree that fails it: no consent opens that."""
    review = stored_review(records, candidate)
    return review if review is not None and review.opinion is ReviewOpinion.FAIL else None


def stored_review(records: Records, candidate: Candidate) -> Review | None:
    """What a second model said of this very tree."""
    found = records.find(Review, candidate_id=candidate.id)
    return next((one for one in found if one.candidate_tree == candidate.snapshot.tree), None)
