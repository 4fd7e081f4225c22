"""What starts and stops a daemon needs nothing of what the daemon works with."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("dbos", "sqlalchemy", "pygit2", "docker", "pydantic", "agentos.daemon.service")


def test_it_imports_nothing_heavy() -> None:
    program = (
        f"import sys, agentos.daemon.background\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
