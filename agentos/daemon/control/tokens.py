"""Personal tokens: what lets a program in, as whom, and to what. Standard library; the command line imports it.

A token is shown once. The home keeps a file for each, for its owner alone, with a digest of the secret (256 random
bits, so that a plain digest cannot be guessed back), who made it and what it may. Removing the file revokes it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from agentos.errors import Conflict, ErrorKind, NotFound, UserError, meant, to_type
from agentos.evolver.promote.consent import person
from agentos.home import Home
from agentos.models.secrets import read_private

DAYS, DAYS_MAX = 90, 3650
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_FORM = re.compile(r"agentos_([a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?)_([A-Za-z0-9_-]{43})")


class TokenScope(StrEnum):
    """What a token may; none includes another."""

    LOOK = "look"  # read everything
    TALK = "talk"  # converse with agents, and rate what they answered
    FILE = "file"  # add and cancel tasks, answer questions, rate runs, run schedules
    APPROVE = "approve"  # decide on evolutions, in the name of who made the token
    ADMINISTER = "administer"  # pin resources, change schedules
    WORK = "work"  # join as a worker, and hold boxes for the home; nothing else


class TokenRole(StrEnum):
    """Scopes of a user of the page, in one word."""

    LOOK = "look"
    APPROVE = "approve"  # and file: whoever decides also answers and tries things out
    ADMINISTER = "administer"  # everything that a person does
    WORKER = "worker"  # a machine that holds boxes, and may not even look

    @property
    def scopes(self) -> tuple[TokenScope, ...]:
        """What the role may."""
        first = (TokenScope.LOOK, TokenScope.FILE, TokenScope.APPROVE)
        people = tuple(scope for scope in TokenScope if scope is not TokenScope.WORK)
        by_role = {TokenRole.LOOK: first[:1], TokenRole.APPROVE: first, TokenRole.WORKER: (TokenScope.WORK,)}
        return by_role.get(self, people)


@dataclass(frozen=True, slots=True)
class Token:
    """A token without its secret. ``id`` is of this one alone; a name may be given again after it was revoked."""

    name: str
    id: str
    scopes: tuple[TokenScope, ...]
    principal: str  # who made it, as the kernel of the machine knew them
    created_at: datetime
    expires_at: datetime

    @property
    def given(self) -> str:
        """How a word came that came with it."""
        return f"token {self.name}"


def add(home: Home, name: str, scopes: Sequence[TokenScope], days: int, now: datetime) -> tuple[Token, str]:
    """Make one; it and the text that is shown once. Raises UserError, and Conflict where the name is taken."""
    if not _NAME.fullmatch(name):
        raise UserError(
            f"A token's name has 1 to 40 of a-z, 0-9 and -, such as my-laptop; found {name[:60]!r}."
        )
    if not 1 <= days <= DAYS_MAX:
        raise UserError(f"A token lasts 1 to {DAYS_MAX:,} days, not {days:,}.")
    secret = secrets.token_urlsafe(32)
    made = tuple(dict.fromkeys(scopes)) or (TokenScope.LOOK,)
    token = Token(name, secrets.token_hex(8), made, person(), now, now + timedelta(days=days))
    home.api_tokens.mkdir(mode=0o700, exist_ok=True)
    path, aside = home.api_tokens / name, home.api_tokens / f".{token.id}"
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump({**asdict(token), "digest": _digest(secret)}, file, default=datetime.isoformat)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(aside, path)  # whole, or not there; never over another one
    except FileExistsError:
        raise Conflict(
            f"There is a token '{name}': take another name, or ", to_type(f"agentos token revoke {name}"), "."
        ) from None
    finally:
        aside.unlink()
    _note(home, "token.added", token)
    return token, f"agentos_{name}_{secret}"


def tokens(home: Home) -> Sequence[Token]:
    """All that are not revoked, by name; those that have expired too."""
    if not home.api_tokens.is_dir():
        return ()
    names = sorted(path.name for path in home.api_tokens.iterdir() if _NAME.fullmatch(path.name))
    return [found[0] for name in names if (found := _read(home, name))]


def revoke(home: Home, name: str) -> Token:
    """It lets nobody in from now on. Raises NotFound."""
    found = _read(home, name) if _NAME.fullmatch(name) else None
    if found is None:
        hint = meant(name, [token.name for token in tokens(home)], "Try: ", to_type("agentos token list"))
        raise NotFound(f"There is no token '{name[:60]}'. ", hint)
    (home.api_tokens / name).unlink(missing_ok=True)
    _note(home, "token.revoked", found[0])
    return found[0]


def token_of(home: Home, text: str, now: datetime) -> Token | None:
    """The token that the text is, None for one that is none, was revoked, or has expired."""
    parts = _FORM.fullmatch(text)
    found = _read(home, parts[1]) if parts else None
    if parts is None or found is None:
        return None
    token, kept = found
    same = hmac.compare_digest(kept.encode(), _digest(parts[2]).encode())
    return token if same and now < token.expires_at else None


def known_token(home: Home, text: str) -> Token | None:
    """As ``token_of`` at this moment; one whose file is damaged or open to others lets nobody in."""
    try:
        return token_of(home, text, datetime.now(UTC))
    except UserError:
        return None


def still_stands(home: Home, name: str, id: str) -> bool:
    """Whether this very token is neither revoked nor expired."""
    try:
        found = _read(home, name)
    except UserError:
        return False
    return found is not None and found[0].id == id and datetime.now(UTC) < found[0].expires_at


def looks_like_one(text: str) -> bool:
    """Whether a token stands somewhere in a text."""
    return _FORM.search(text) is not None


def _read(home: Home, name: str) -> tuple[Token, str] | None:
    """It and the digest of its secret. Raises UserError where others may read the file, or it is damaged."""
    data = read_private(home.api_tokens / name)
    if not data:
        return None
    try:
        said = json.loads(data)
        scopes = tuple(TokenScope(scope) for scope in said["scopes"])
        times = [datetime.fromisoformat(said[key]) for key in ("created_at", "expires_at")]
        return Token(name, str(said["id"]), scopes, str(said["principal"]), *times), str(said["digest"])
    except (ValueError, KeyError, TypeError):
        raise UserError(
            f"{home.api_tokens / name} is damaged: remove it, and make the token again by ",
            to_type(f"agentos token add {name}"),
            ".",
            kind=ErrorKind.DAMAGED,
        ) from None


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def note_entry(home: Home, token: Token) -> None:
    """On record: somebody came to the page with it."""
    _note(home, "token.entered", token)


def _note(home: Home, event: str, token: Token) -> None:
    from agentos.ledger.store import Ledger

    with closing(Ledger(home.ledger)) as ledger:
        said = {"id": token.id, "scopes": list(token.scopes), "principal": token.principal, "by": person()}
        ledger.note(event, token.name, said | {"expires_at": token.expires_at.astimezone(UTC).isoformat()})
