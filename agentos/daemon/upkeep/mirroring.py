"""Keeps a mirror of the registry up to date beside the daemon's work, and brings the registry up to it before one leads."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime

import structlog

from agentos.errors import Unavailable, UserError
from agentos.home import Home
from agentos.ledger.integrity import LedgerSnapshot
from agentos.ledger.rows.codec import data_of
from agentos.ledger.store import Ledger
from agentos.registry.mirror import Mirror, MirrorState
from agentos.settings import RegistrySettings

MIRROR = "registry.mirror"  # memo in the ledger: what ``MirrorKeeper`` noted last
GIVEN = "registry.mirror.given"  # and the version of main that it was about to push
_LONGEST_S = 60.0  # between two tries
_NEWEST = 200  # evolutions that are looked at

log = structlog.get_logger("agentos.mirror")


class MirrorKeeper:
    """Pushes when there is something to push. ``look`` blocks as long as a push does: on a thread of its own."""

    def __init__(self, ledger: Ledger, mirror: Mirror, url: str, tell: Callable[[str], None]) -> None:
        self._ledger, self._mirror, self._url, self._tell = ledger, mirror, url, tell
        self._pushed = ""
        self._failures = 0
        self._due = 0.0
        kept = ledger.get_kv(MIRROR) or {}
        # what it has is not forgotten with the daemon: a stand-by follows it that far
        had = str(kept.get("main", "")) if kept.get("url") == url else ""
        self._said = MirrorState(had) if had else None
        self._since = ""  # when it began to lack something

    def look(self) -> None:
        """Push what is new, or what failed before, when its time has come."""
        if time.monotonic() < self._due:
            return
        fingerprint = self._mirror.fingerprint()
        if fingerprint == self._pushed:
            return
        given = self._mirror.main()
        self._ledger.set_kv(GIVEN, given)
        state = self._mirror.push(given)
        if state.why:
            state = MirrorState(self._said.main if self._said else "", state.why)
            self._failures += 1
            pause = min(2.0 ** min(self._failures, 10), _LONGEST_S)  # beyond 1023 there is no such float
            self._due = time.monotonic() + pause * random.uniform(0.5, 1.0)  # noqa: S311 - spreads tries
        else:
            self._pushed, self._failures = fingerprint, 0
        if state != self._said:
            if state.why and (self._said is None or state.why != self._said.why):
                self._tell(f"the mirror {self._url} did not get the newest versions: {state.why}")
            self._said = state
            at = datetime.now(UTC).isoformat(timespec="seconds")
            self._since = (self._since or at) if state.why else ""
            self._ledger.set_kv(MIRROR, {"url": self._url, "at": self._since or at, **asdict(state)})


def keeper_of(home: Home, ledger: Ledger, settings: RegistrySettings, term: int) -> MirrorKeeper | None:
    """Of the mirror that the settings name; without one nothing is told of one that there was."""
    url = settings.mirror
    if not url:
        if ledger.get_kv(MIRROR):
            ledger.set_kv(MIRROR, None)
        return None
    mirror = Mirror(home.registry, url, term, signing_key=settings.signing_key)
    return MirrorKeeper(ledger, mirror, url, lambda why: log.warning("mirror", why=why))


def follow(home: Home, url: str, term: int) -> None:
    """Before this control process leads: the registry is at least where the ledger has seen it, from the mirror if need be.

    Raises UserError where it is not: then the mirror lacks what was promoted last, and another registry has it.
    """
    mirror = Mirror(home.registry, url, term)
    away, seen = "", _seen(home)
    try:
        mirror.take_in({commit for _, commit in seen} | _given(home))
    except Unavailable as error:
        away = f" ({error})"
    if beyond := mirror.beyond():
        log.error(
            "the mirror has versions that the ledger does not know of: they are left there", newest=beyond
        )
    there = mirror.commits()
    for what, commit in seen:
        if commit not in there:
            raise UserError(
                f"the registry {home.registry} and its mirror {url} lack {commit[:12]}, {what}{away}: start the control "
                "process that led before, which has it, until its mirror is up to date"
            )
    with suppress(Unavailable):  # then the first push does, or says why not
        mirror.lead()


def _given(home: Home) -> set[str]:
    """What of main was given to the mirror, as the ledger says: people's changes, too."""
    with LedgerSnapshot(home.ledger) as reader:
        found = {
            str(key): json.loads(value)
            for key, value in reader.rows(
                f"SELECT key, value FROM memo WHERE key IN ('{GIVEN}', '{MIRROR}')"  # noqa: S608 - constants
            )
        }
    pushed = found.get(MIRROR) or {}
    return {str(found.get(GIVEN) or ""), str(pushed.get("main") or "")} - {""}


def _seen(home: Home) -> list[tuple[str, str]]:
    """Commits on main that the ledger knows of, newest first."""
    with LedgerSnapshot(home.ledger) as reader:
        runs = reader.rows("SELECT commit_id FROM run WHERE commit_id <> '' ORDER BY started_at DESC LIMIT 1")
        rows = reader.rows(f"SELECT body FROM evolution ORDER BY seq DESC LIMIT {_NEWEST}")  # noqa: S608 - a number
    promoted = [data_of(body).get("promoted") for (body,) in rows]
    found = [("which an evolution promoted", item["commit"]) for item in promoted if item]
    return found + [("on which the newest run stood", commit) for (commit,) in runs]
