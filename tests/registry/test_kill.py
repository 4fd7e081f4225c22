"""Writers that are killed with SIGKILL in the middle, and several writers at once."""

from __future__ import annotations

import os
import pickle
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentos.registry.store import Registry
from agentos.resources import parse_id
from tests.registry.conftest import SEED, TOOL

ADD = parse_id("tool/add-up")

WRITER = """
import sys
from pathlib import Path
from agentos.errors import Conflict
from agentos.registry.store import Registry

path, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
tool = sys.stdin.read()
registry = Registry(path)
print("ready", flush=True)
for number in range(count):
    text = f"{tool}\\n# {name} {number}\\n"
    while True:
        base = registry.stable()
        candidate = registry.add_candidate(f"c-{name}-{number}-{base.commit[:8]}", base, {"tool/add-up/tool.py": text})
        try:
            after = registry.promote(base, candidate, {"Evolution": f"evo-{name}-{number}"}, "Promote")
        except Conflict:
            continue
        break
    print(after.commit, flush=True)
"""


def writer(registry: Registry, name: str, count: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(registry.repository.path), name, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdin is not None
    process.stdin.write(TOOL)
    process.stdin.close()
    return process


@pytest.mark.slow
def test_writers_at_once_lose_nothing(registry: Registry) -> None:
    processes = [writer(registry, name, 15) for name in "abc"]
    said: list[str] = []
    for process in processes:
        assert process.stdout is not None
        with process.stdout:
            said += [line.strip() for line in process.stdout if line.strip() != "ready"]
        assert process.wait(60) == 0
    versions = registry.versions(ADD)
    assert len(said) == 45
    assert {version.commit for version in versions} >= set(said)
    assert [version.number for version in versions] == [f"1.0.{number}" for number in range(45, -1, -1)]
    assert registry.check().faults == ()


@pytest.mark.slow
def test_a_killed_writer_leaves_no_half_promotion(registry: Registry) -> None:
    chance = random.Random(7)
    for attempt in range(12):
        process = writer(registry, f"k{attempt}", 10_000)
        assert process.stdout is not None
        with process.stdout:
            assert process.stdout.readline() == "ready\n"
            reported = process.stdout.readline().strip() if attempt % 2 else ""
            deadline = time.monotonic() + chance.random() * 0.05
            while time.monotonic() < deadline:
                os.sched_yield()
            process.send_signal(signal.SIGKILL)
            process.wait(10)
            rest = process.stdout.read().split()
        again = Registry(registry.repository.path)
        again.repair()
        versions = again.versions(ADD)
        line = {version.commit for version in versions}
        assert {commit for commit in [reported, *rest] if len(commit) == 40} <= line
        assert versions[0].digest == str(again.repository.entry(again.stable().tree, "tool/add-up").id)  # type: ignore[union-attr]  # it is there
    report = registry.check()
    assert report.faults == ()
    assert report.repaired == 0
    registry.commit({"tool/add-up/tool.py": TOOL.encode()}, "Goes on", "edit")


@pytest.mark.slow
def test_an_interrupted_init_is_finished(tmp_path: Path) -> None:
    code = (
        "import pickle, sys; from pathlib import Path; from agentos.registry.store import Registry; "
        "seed = pickle.load(sys.stdin.buffer); print('go', flush=True); Registry.init(Path(sys.argv[1]), seed)"
    )
    chance = random.Random(3)
    for attempt in range(6):
        path = tmp_path / f"{attempt}.git"
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdin:
            pickle.dump(SEED, process.stdin)
        with process.stdout:
            process.stdout.readline()
        deadline = time.monotonic() + chance.random() * 0.03
        while time.monotonic() < deadline:
            os.sched_yield()
        process.kill()
        process.wait(10)
        registry = Registry.init(path, SEED)
        assert registry.check().faults == ()
        assert len(registry.names(registry.stable())) == 6
        assert registry.upgrade(SEED, "1").items == ()


@pytest.mark.parametrize("name", ["HEAD.lock", "config.lock", "packed-refs.lock"])
def test_whatever_lock_file_a_killed_init_left_the_next_one_goes_on(tmp_path: Path, name: str) -> None:
    path = tmp_path / "registry.git"
    path.mkdir()
    (path / name).touch()
    assert Registry.init(path, SEED).check().faults == ()
