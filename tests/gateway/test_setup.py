"""What a gateway that ends says to those who wait for it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from agentos.gateway.setup import SOCKET, GatewayEnding, note_ending, read_ending


def test_a_gateway_that_ends_is_known_until_it_has_ended(tmp_path: Path) -> None:
    assert read_ending(tmp_path) is None
    ending = GatewayEnding(os.getpid(), 2, time.time() + 60)
    note_ending(tmp_path, SOCKET, ending)
    assert read_ending(tmp_path) == ending
    assert read_ending(tmp_path, "other.sock") is None
    note_ending(tmp_path, SOCKET, None)
    assert read_ending(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_nobody_waits_for_one_that_was_killed_or_whose_time_is_over(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        pass
    ending = GatewayEnding(dead.pid, 2, time.time() + 60)
    note_ending(tmp_path, SOCKET, ending)
    assert read_ending(tmp_path) is None
    note_ending(tmp_path, SOCKET, replace(ending, pid=os.getpid(), until=time.time() - 1))
    assert read_ending(tmp_path) is None
    (tmp_path / f"{SOCKET}.ending").write_text("[]")
    assert read_ending(tmp_path) is None
