"""A person's week, as examples/week lives it: the real command and the real daemon, on a clock that is moved."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.command_server import command_server

WEEK = Path(__file__).resolve().parent.parent / "examples" / "week" / "run.py"


@pytest.mark.sandbox
@pytest.mark.example
@pytest.mark.slow
def test_a_week_goes_as_its_page_says(tmp_path: Path) -> None:
    done = command_server().run(
        *("--strict", "--home", str(tmp_path / "week")),
        script=WEEK,
        env=os.environ | {"NO_COLOR": "1"},
        patience_s=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for told in ("links failed", "links passes again", "promoted", "rolled back", "secrets.json"):
        assert told in done.stdout, told
