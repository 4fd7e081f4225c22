"""What every page is made with: the home's readers, the templates, and how values are written for a person."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar, cast

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from agentos import __version__
from agentos.domain import Json, Result, Trial, is_reference
from agentos.errors import AgentOSError
from agentos.home import Home
from agentos.ledger.blobs import BlobStore
from agentos.ledger.reading import Reader
from agentos.plaintext import clean
from agentos.plugins.registry import installed
from agentos.registry.store import Registry
from agentos.web.api.door import Buckets
from agentos.web.reach import Reach
from agentos.web.sessions import LoginLinks, Sessions, WebSession

V = TypeVar("V")
_log = logging.getLogger("uvicorn.error")  # which ``server`` writes to the home

HERE = Path(__file__).parent
_SHOWN = 6_000  # characters of a value on a page; the rest is a link away
GOOD, BAD, WARN, BUSY, QUIET = "good", "bad", "warn", "busy", "quiet"
TONES = {
    "promoted": GOOD, "probation": GOOD, "passed": GOOD, "done": GOOD, "passes": GOOD, "promote": GOOD,
    "pass": GOOD, "works": GOOD, "accepted": GOOD, "good": GOOD, "effective": GOOD,
    "awaiting_consent": WARN, "held": WARN, "hold": WARN, "waiting": WARN, "flaky": WARN, "infra": WARN,
    "warn": WARN, "paused": WARN, "low": WARN, "partly": WARN, "mixed": WARN, "open": WARN,
    "rejected": BAD, "cannot_fix": BAD, "circuit_broken": BAD, "failed": BAD, "timeout": BAD, "budget": BAD,
    "fails": BAD, "reject": BAD, "fail": BAD, "rolled_back": BAD, "damaged": BAD, "failing": BAD, "bad": BAD,
    "silent": BAD, "absent": BAD, "killed": BAD, "harmful": BAD, "ineffective": BAD,
    "running": BUSY, "mined": BUSY, "reproducing": BUSY, "proposing": BUSY, "replaying": BUSY,
    "promoting": BUSY, "queued": BUSY, "scheduled": BUSY, "starting": BUSY,
}  # fmt: skip


class Kept:
    """What took a while to gather, until what it was made of changes or it is too old."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[object, float, Any]] = {}
        self._making: set[str] = set()

    def get(self, name: str, of: object, seconds: float, make: Callable[[], V]) -> V:
        """What ``make`` gave for the same ``of``, at most ``seconds`` ago; else what it gives now."""
        now = time.monotonic()
        known = self._found.get(name)
        if known is not None and known[0] == of and now - known[1] < seconds:
            return cast(V, known[2])
        made = make()
        self._found[name] = (of, now, made)
        return made

    def late(self, name: str, seconds: float, make: Callable[[], V]) -> V:
        """What ``make`` gave at most ``seconds`` ago; older, while a thread makes it anew; waits for the first one only."""
        known = self._found.get(name)
        if known is None:
            return self.get(name, None, seconds, make)
        if time.monotonic() - known[1] >= seconds and name not in self._making:
            self._making.add(name)
            Thread(target=self._make, args=(name, make), name=f"make {name}", daemon=True).start()
        return cast(V, known[2])

    def _make(self, name: str, make: Callable[[], object]) -> None:
        try:
            self._found[name] = (None, time.monotonic(), make())
        except AgentOSError as error:
            _log.warning("%s could not be made: %s", name, error)
        finally:
            self._making.discard(name)


@dataclass(frozen=True, slots=True)
class WebContext:
    """Shared by all requests; every part is safe from any thread."""

    home: Home
    reader: Reader
    registry: Registry
    blobs: BlobStore
    sessions: Sessions
    links: LoginLinks
    reach: Reach
    kept: Kept = field(default_factory=Kept)
    buckets: Buckets = field(default_factory=Buckets)

    def page(self, request: Request, template: str, status: int = 200, **values: Any) -> Response:
        """An HTML page. Every value is escaped, whoever wrote it."""
        session: WebSession | None = request.scope.get("session")
        known = {
            "csrf": session.csrf if session else "",
            "may": session.scopes if session else frozenset(),
            "user": session.token.name if session and session.token else "",
            "path": request.url.path,
            "said": "",
            "version": __version__,
            "home": str(self.home.root),
            "plugin_pages": [found.name for found in installed("pages") if not found.fault],
        }
        text = environment().get_template(template).render(known | values)
        return HTMLResponse(text, status)


@cache
def environment() -> Environment:
    """Templates that escape everything and fail at a name that is not there."""
    found = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    found.filters |= {
        "when": when, "duration": duration, "tone": tone, "words": words, "value": value_text, "bytes": size_text,
        "ticks": ticks, "is_reference": is_reference, "plural": plural, "passes": passes,
    }  # fmt: skip
    return found


def _shown(value: Any) -> Any:
    """What stands on the page for a value: control and direction characters made visible, None as nothing."""
    if value is None:
        return ""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def when(moment: datetime | str | None) -> Markup:
    """Local time of this machine, as short as it says the day; in full for who points at it."""
    if not moment:
        return Markup("")
    local = (datetime.fromisoformat(moment) if isinstance(moment, str) else moment).astimezone()
    today = datetime.now(UTC).astimezone()
    short = f"{local:%H:%M:%S}" if local.date() == today.date() else f"{local:%d %b %H:%M}"
    if local.year != today.year:
        short = f"{local:%Y-%m-%d}"
    full = f"{local:%Y-%m-%d %H:%M:%S %Z}"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(local.isoformat(), full, short)


def duration(seconds: float | None) -> str:
    """For a person: 12 ms, 3.4 s, 5 min, 2.5 h, 3 d."""
    if seconds is None:
        return ""
    for limit, factor, unit in ((1, 0.001, "ms"), (120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            number = seconds / factor
            return f"{number:.0f} {unit}" if number >= 10 or unit == "ms" else f"{number:.1f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def tone(word: object) -> str:
    """How a state or a result is meant: good, bad, warn, busy or quiet. Never told by colour alone."""
    return TONES.get(str(word), QUIET)


def words(state: object) -> str:
    """A state as words."""
    return str(state).replace("_", " ")


def passes(trials: Sequence[Trial]) -> str:
    """How many of them passed: 3/12."""
    return f"{sum(trial.outcome.result is Result.PASSED for trial in trials)}/{len(trials)}"


def plural(count: int, noun: str) -> str:
    """1 task, 2 tasks."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}{'es' if noun.endswith('x') else 's'}"


def value_text(value: Json, most: int = _SHOWN) -> str:
    """A value of a step or an answer as text, cut where it is long."""
    if isinstance(value, dict) and is_reference(value):
        left = int(str(value["size"])) - len(str(value["head"])) - len(str(value["tail"]))
        return f"{value['head']}\n… {left:,} more …\n{value['tail']}" if left > 0 else str(value["head"])
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return text if len(text) <= most else f"{text[:most]}\n… {len(text) - most:,} more …"


def ticks(text: str) -> Markup:
    """The text with what stands between backticks as code."""
    pieces = clean(text).split("`")
    if len(pieces) % 2 == 0:
        return escape(clean(text))
    marked = (Markup("<code>{}</code>").format(it) if n % 2 else escape(it) for n, it in enumerate(pieces))
    return Markup("").join(marked)


def size_text(count: int) -> str:
    """Bytes for a person."""
    size = float(count)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 10 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
