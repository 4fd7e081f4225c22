"""What the kernel keeps for the whole machine: what a box can take of it, and that ordinary programs do not miss it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agentos.domain import Limits
from agentos.sandboxes.box import WorkerBox, box_limits
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.sandboxes.docker.sandbox import Docker
from tests.sandboxes.conftest import ON_THIS_MACHINE

Run = Callable[..., Any]


def test_timers_and_waiting_signals_are_counted(box: WorkerBox, run: Run) -> None:
    assert run(box, "shared:timers", 5_000) <= box_limits().signals


@ON_THIS_MACHINE
def test_sockets_that_nobody_reads_hold_little(box: WorkerBox, run: Run) -> None:
    """Without limits of its own a namespace gives each of thousands of sockets ten megabytes."""
    assert run(box, "shared:tcp_bytes", 0.5) < 64 << 20


SCRIPTS = {
    "git": (
        "git init -q r && cd r && git config user.email a@b.c && git config user.name a && echo 1 > f && git add . "
        "&& git commit -qm one && git gc -q && git clone -q . ../c && cd ../c && git log --oneline | wc -l",
        "1",
    ),
    "bash": (
        "for i in 3 1 2; do echo $i; done | sort -n | tee list | xargs | tr ' ' +; sync || true",
        "1+2+3",
    ),
    "node": ('node -e \'setTimeout(() => require("fs").readdir("/", () => console.log(6 * 7)), 5)\'', "42"),
    "gcc": ("echo 'int main(){return 7;}' > a.c && gcc a.c -o a && (./a || echo $?)", "7"),
    "sqlite3": ("sqlite3 x.db 'create table t(n); insert into t values (5); select n from t;'", "5"),
}


@pytest.fixture(scope="module")
def roomy(each_sandbox: Bubblewrap | Docker, small: Limits) -> Any:
    with each_sandbox.open(replace(small, memory_mb=1500, processes=64, workspace_mb=64)) as made:
        yield made


def test_python_finds_what_it_needs(roomy: WorkerBox, run: Run) -> None:
    assert run(roomy, "programs:python") == [10, 6, 3, 2, 5, 8]


def test_ordinary_programs_work(roomy: WorkerBox, run: Run) -> None:
    there = [program for program in SCRIPTS if run(roomy, "programs:has", program)]
    assert "bash" in there
    for program in there:
        script, expected = SCRIPTS[program]
        assert run(roomy, "programs:shell", script) == expected, program
