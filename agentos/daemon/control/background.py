"""A daemon seen from the command line: started in the background, asked to end.

Nothing of what the daemon works with is imported here: that takes a second, and only the daemon needs it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from agentos.daemon.control.daemon_lock import DaemonInfo, daemon_info
from agentos.errors import Unavailable, UserError
from agentos.home import Home

_READY_S = 60.0
_POLL_S = 0.05


def start_daemon(home: Home) -> DaemonInfo:
    """Start a daemon in the background and wait until it takes tasks.

    Raises UserError when one runs, Unavailable with its last words when it does not come up.
    """
    info = daemon_info(home)
    if info is not None and info.alive:
        raise UserError(f"the daemon of {home.root} runs already (pid {info.pid})")
    if not home.is_there:
        raise UserError(f"there is no home at {home.root}; type `agentos init`")
    home.logs.mkdir(mode=0o700, exist_ok=True)
    said = home.logs / "daemon.out"
    command = [sys.executable, "-P", "-m", "agentos", "--home", str(home.root), "daemon", "run", "--quiet"]
    with said.open("wb") as out:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            cwd=home.root,
        )
    deadline = time.monotonic() + _READY_S
    while time.monotonic() < deadline:
        info = daemon_info(home)
        if info is not None and info.pid == child.pid and info.ready:
            return info
        if child.poll() is not None:
            words = said.read_text(errors="replace").strip().splitlines()
            raise Unavailable(f"the daemon did not start: {words[-1] if words else 'it said nothing'}")
        time.sleep(_POLL_S)
    raise Unavailable(f"the daemon is not ready after {_READY_S:.0f} s; see {home.logs / 'daemon.log'}")


def stop_daemon(home: Home, *, at_once: bool) -> bool:
    """Ask the daemon to drain (or to stop at once) and wait until it is gone; False when none ran."""
    info = daemon_info(home)
    if info is None or not info.alive:
        return False
    os.kill(info.pid, signal.SIGTERM)
    asked = time.monotonic()
    while (now := daemon_info(home)) is not None and now.alive and now.owner == info.owner:
        # a second signal that follows too closely would be merged with the first
        if at_once and time.monotonic() - asked > 4 * _POLL_S:
            os.kill(info.pid, signal.SIGTERM)
            asked = time.monotonic()
        time.sleep(_POLL_S)
    return True
