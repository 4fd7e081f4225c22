"""The page as a process beside the daemon: started with it, started again when it fell, gone when the daemon is.

The daemon imports nothing of the page. What ties them is a pipe: the page ends when its standard input does, so it also
goes with a daemon that was killed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import structlog

from agentos.daemon.control.daemon_lock import is_of
from agentos.errors import UserError
from agentos.home import Home, made_folder
from agentos.sandboxes.owner import Owner

# after which it is started again; twice as long each time that it fell at once
_FIRST_S, _LONGEST_S = (1.0, 60.0)
_STOOD_S = 30.0  # for which one has to be up, for the next fall to be a first one
_END_S = 6.0

log = structlog.get_logger("agentos.daemon")


def page_note(home: Home) -> dict[str, Any] | None:
    """What the page that is up wrote down of itself (``owner``, ``address``, ``key``), None where none is up."""
    try:
        said = json.loads(home.page_note.read_text())
        owner = Owner.parse(said["owner"])
        is_up = owner is not None and owner.alive() and is_of(home, said.get("place", ""), home.page_note)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return said if is_up else None


class PageKeeper:
    """Keeps the page of a home up. Not safe from several threads; ``keep`` returns at once."""

    def __init__(self, home: Home, port: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._home = home
        self._port = port
        self._clock = clock
        self._child: subprocess.Popen[bytes] | None = None
        self._began = self._due = clock()
        self._pause_s = _FIRST_S
        self.fault = ""  # why it is not up, once it fell twice at once

    def keep(self) -> None:
        """Start the page where none is up; one that a person started is left to them."""
        now = self._clock()
        if self._child is not None and (code := self._child.poll()) is not None:
            self.close()
            self._pause_s = _FIRST_S if now - self._began > _STOOD_S else min(2 * self._pause_s, _LONGEST_S)
            self._due = now + self._pause_s
            said = self._last_words()
            if self._pause_s > 2 * _FIRST_S:
                self.fault = said or f"it ended with code {code}"
            log.warning("the page ended", code=code, again_in_s=self._pause_s, said=said)
        elif self._child is not None and self.fault and now - self._began > _STOOD_S:
            self.fault = ""
        if self._child is None and now >= self._due:
            self._due = now + _FIRST_S
            if page_note(self._home) is not None:
                self.fault = ""
            else:
                try:
                    self._start(now)
                # A full disk, no more processes: the daemon goes on without the page.
                except (OSError, UserError) as error:
                    self._due = now + _LONGEST_S
                    self.fault = str(error)
                    log.warning("the page cannot be started", why=str(error), again_in_s=_LONGEST_S)

    def close(self) -> None:
        """End the page that was started here; idempotent."""
        child, self._child = self._child, None
        if child is None:
            return
        assert child.stdin is not None
        child.stdin.close()
        try:
            child.wait(_END_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    def _start(self, now: float) -> None:
        command = [sys.executable, "-P", "-m", "agentos", "--home", str(self._home.root)]
        command += ["web", "--port", str(self._port), "--kept"]
        made_folder(self._home.logs)
        with self._out.open("wb") as out:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                start_new_session=True,
                cwd=self._home.root,
            )
        self._began = now
        log.info("the page is kept up", port=self._port, pid=self._child.pid)

    @property
    def _out(self) -> Any:
        return self._home.logs / "web.out"

    def _last_words(self) -> str:
        try:
            words = self._out.read_text(errors="replace").strip().splitlines()
        except OSError:
            return ""
        return words[-1][:500] if words else ""
