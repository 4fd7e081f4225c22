"""Who may look: one-time links, the sessions that they open, and what a session said that it is about to do.

All of it lives in the memory of one process: when that ends, every link and every session is void. Nothing here is
written to a log.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from agentos.daemon.control.tokens import Token, TokenScope
from agentos.errors import Conflict, ErrorKind
from agentos.evolver.promote.consent import PAGE, login, person

LINK_S = 600  # for which a link may be used
SESSION_S = 12 * 3600
INTENT_S = 900  # from seeing what an act would do to doing it
_SESSIONS_MAX, _OF_A_TOKEN, _INTENTS_MAX, _SENT_MAX = 256, 8, 256, 256


class LoginLinks:
    """Makes links that open one session each. Another process with the same key may make them too."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._used: dict[str, float] = {}
        self._lock = Lock()

    def make(self) -> str:
        """The text that the link ends with."""
        body = f"{int(time.time()) + LINK_S}.{secrets.token_urlsafe(16)}"
        return f"{body}.{self._mac(body)}"

    def redeem(self, given: str) -> bool:
        """Whether it is one of ours, is not too old, and comes for the first time."""
        body, _, mac = given.rpartition(".")
        if not hmac.compare_digest(mac.encode(), self._mac(body).encode()):
            return False
        now = time.time()
        expires = int(body.partition(".")[0])  # ours, so it is a number
        with self._lock:
            self._used = {text: until for text, until in self._used.items() if until > now}
            if expires <= now or body in self._used:
                return False
            self._used[body] = expires
        return True

    def _mac(self, body: str) -> str:
        return hmac.new(self._key, body.encode(), "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class Intent:
    """An act whose effect was shown. ``bound``: a digest of what it rested on then."""

    act: str
    subject: str
    bound: str
    expires: float


@dataclass(slots=True)
class WebSession:
    """One browser that was let in: by a link as who runs the server, else as the user whose ``token`` it gave.

    ``csrf`` begins what stands in each of its forms, and what follows it is another text on each page.
    """

    csrf: str
    expires: float
    token: Token | None = None
    intents: dict[str, Intent] = field(default_factory=dict)
    _sent: dict[str, str] = field(default_factory=dict)
    _acting: Lock = field(default_factory=Lock)

    def once(self, sent: str, do: Callable[[], str]) -> str:
        """The address that ``do`` leads to, or led to when the same was ``sent`` before: a button is pressed twice, a
        page is sent again. What failed may be tried again."""
        with self._acting:
            if sent not in self._sent:
                while len(self._sent) >= _SENT_MAX:
                    del self._sent[next(iter(self._sent))]
                self._sent[sent] = do()
            return self._sent[sent]

    @property
    def scopes(self) -> frozenset[TokenScope]:
        """What it may."""
        return frozenset(TokenScope if self.token is None else self.token.scopes)

    @property
    def principal(self) -> str:
        """In whose name it acts, and by which token."""
        return person() if self.token is None else f"{self.token.principal},token={self.token.name}"

    @property
    def given(self) -> str:
        """How a consent came."""
        return PAGE if self.token is None else f"{PAGE}, {self.token.given}"

    @property
    def author(self) -> str:
        """Of versions of resources."""
        return login() if self.token is None else self.token.name


class Sessions:
    """Sessions by the digest of their cookie; the oldest goes when there are too many. Safe from any thread."""

    def __init__(self) -> None:
        self._found: dict[str, WebSession] = {}
        self._lock = Lock()

    def open(self, token: Token | None = None) -> str:
        """A new one, of who runs the server or of a user; the value of its cookie."""
        cookie = secrets.token_urlsafe(32)
        with self._lock:
            if token is not None:  # nobody drives others out by coming again and again
                mine = [name for name, it in self._found.items() if it.token and it.token.id == token.id]
                for name in mine[: 1 - _OF_A_TOKEN]:
                    del self._found[name]
            while len(self._found) >= _SESSIONS_MAX:
                del self._found[next(iter(self._found))]
            fresh = WebSession(secrets.token_urlsafe(24), time.time() + SESSION_S, token)
            self._found[_digest(cookie)] = fresh
        return cookie

    def find(self, cookie: str) -> WebSession | None:
        """The session of a cookie, None for one that is void."""
        found = self._found.get(_digest(cookie))
        return found if found is not None and found.expires > time.time() else None

    def close(self, cookie: str) -> None:
        """It is void from now on."""
        with self._lock:
            self._found.pop(_digest(cookie), None)

    def intend(self, session: WebSession, act: str, subject: str, bound: str) -> str:
        """Note that the effect of an act was shown; the nonce with which it may be done, once."""
        nonce = secrets.token_urlsafe(18)
        with self._lock:
            while len(session.intents) >= _INTENTS_MAX:
                del session.intents[next(iter(session.intents))]
            session.intents[nonce] = Intent(act, subject, bound, time.time() + INTENT_S)
        return nonce

    def redeem(self, session: WebSession, nonce: str, act: str, subject: str, bound: str) -> None:
        """Returns where this very act was shown lately and rests on the same; raises Conflict else."""
        with self._lock:
            found = session.intents.pop(nonce, None)
        if found is None or (found.act, found.subject) != (act, subject):
            raise Conflict("This was done already, or was never shown: look at it again.")
        if found.expires <= time.time():
            raise Conflict("You looked at this too long ago: look at it again.", kind=ErrorKind.STALE)
        if found.bound != bound:
            raise Conflict("It has changed since you looked: look at it again.")


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()
