"""A person's week, as examples/week lives it: the real command and the real daemon, on a clock that is moved."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

WEEK = Path(__file__).resolve().parent.parent / "examples" / "week" / "run.py"


@pytest.mark.sandbox
@pytest.mark.slow
def test_a_week_goes_as_its_page_says(tmp_path: Path) -> None:
    command = [sys.executable, str(WEEK), "--strict", "--home", str(tmp_path / "week")]
    done = subprocess.run(command, env=os.environ | {"NO_COLOR": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for told in ("links failed", "links passes again", "promoted", "rolled back", "secrets.json"):
        assert told in done.stdout, told
