"""What starts and stops a daemon needs nothing of what the daemon works with."""

from __future__ import annotations

import signal
import subprocess
import sys

from agentos.daemon.process import Signals

HEAVY = ("dbos", "sqlalchemy", "pygit2", "docker", "pydantic", "agentos.daemon.service")


def test_it_imports_nothing_heavy() -> None:
    program = f"import sys, agentos.daemon.control.daemon_lock\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_terminal_that_goes_drains_like_sigterm() -> None:
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    try:
        asked = Signals()
        signal.raise_signal(signal.SIGHUP)
        assert asked.count == 1
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
