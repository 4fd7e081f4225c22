"""What ``agentos.toml`` and ``keys.toml`` say of models now: a daemon that runs need not be restarted for a model.

All other settings are those of its start. What cannot be read changes nothing, and is told once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

import structlog

from agentos.domain import Json
from agentos.errors import AgentOSError
from agentos.gateway.setup import Setup
from agentos.home import Home
from agentos.models.redaction import redactor_of
from agentos.settings import Settings, load_settings

log = structlog.get_logger("agentos.current")


class LiveConfig:
    """Looks at both files whenever it is asked; reads them when they changed. Thread-safe."""

    def __init__(self, home: Home, settings: Settings) -> None:
        """Raises UserError when others may read the file of keys."""
        self._home = home
        # as text: this is looked at several times in each run
        self._paths = [str(path) for path in (home.settings, home.keys, home.secrets)]
        self._lock = threading.Lock()
        self._seen = self._stamps()
        self._take(settings)

    def model(self) -> str:
        """The setting ``model``."""
        self._look()
        return self._settings.model

    def setup(self) -> Setup:
        """What the gateway has to know; the same object until something changed."""
        self._look()
        return self._setup

    def redact(self, value: Json) -> Json:
        """The value without any secret of the home."""
        self._look()
        return self._redactor.value(value)

    def _look(self) -> None:
        with self._lock:
            stamps = self._stamps()
            if stamps == self._seen:
                return
            try:
                self._take(load_settings(self._home.settings))
            except AgentOSError as error:
                log.warning("models stay as they were set up", why=str(error))
            self._seen = stamps  # not where the machine cannot read them: then the next one looks again

    def _take(self, settings: Settings) -> None:
        self._redactor = redactor_of(self._home, settings)
        self._settings = settings
        self._setup = Setup.of(settings)

    def _stamps(self) -> Sequence[tuple[int, ...]]:
        return [_stamp(path) for path in self._paths]


def _stamp(path: str) -> tuple[int, ...]:
    try:
        about = os.stat(path)
    except OSError:
        return ()
    return about.st_ino, about.st_mtime_ns, about.st_size
