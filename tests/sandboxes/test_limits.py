"""Code that uses up what there is: each limit holds, the box answers afterwards, and it costs nothing more."""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentos.domain import Limits
from agentos.sandboxes.box import WorkerBox, box_limits
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.sandboxes.docker.container import ContainerBox
from agentos.sandboxes.docker.profile import WORKER_MB
from agentos.sandboxes.plainfiles import read_tar
from agentos.wire import FrameError, WireClosed, WireLate
from tests.sandboxes.conftest import ON_THIS_MACHINE

Run = Callable[..., Any]


def group_of(box: WorkerBox) -> list[int]:
    """Host pids in the box, where a cgroup can tell."""
    if box.group is None:
        pytest.skip(reason="this machine gives no control groups")
    return [int(pid) for pid in (box.group.places[0] / "cgroup.procs").read_text().split()]


def of_the_worker(box: WorkerBox) -> int:
    """MB of the worker itself: in a container they count, a fork shares its template's."""
    return WORKER_MB if isinstance(box, ContainerBox) else 0


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:  # it may go between the two
        return False
    return "Z" not in state


@ON_THIS_MACHINE
def test_a_fork_bomb_stops_at_its_limit_and_dies_with_the_box(
    box: WorkerBox, small: Limits, run: Run
) -> None:
    assert run(box, "bombs:forks", 0.3) < small.processes
    pids = group_of(box)
    assert 1 < len(pids) <= small.processes
    began = time.monotonic()
    box.close()
    assert not [pid for pid in pids if alive(pid)]
    assert time.monotonic() - began < 5


def test_a_process_that_eats_memory_dies_and_the_worker_lives(box: WorkerBox, run: Run) -> None:
    assert run(box, "bombs:memory") in ("exit 3", "signal 9")
    assert run(box, "os:getpid") == 1


@ON_THIS_MACHINE
def test_memory_that_no_process_maps_counts_too(box: WorkerBox, small: Limits, run: Run) -> None:
    group_of(box)
    with contextlib.suppress(WireClosed):  # whom the kernel ends, the eater or the worker, is its choice
        assert run(box, "bombs:memory_files", 60, 6 << 20) == 0
    usage = box.close()
    extras = box_limits()
    most = small.memory_mb + small.workspace_mb + extras.tmp_mb + extras.snapshot_mb + extras.shm_mb
    assert usage.oom
    assert usage.memory_peak_mb <= most + of_the_worker(box)


@pytest.mark.parametrize(
    ("directory", "size"),
    [
        ("/ws", 8),
        ("/tmp", box_limits().tmp_mb),
        ("/snapshot", box_limits().snapshot_mb),
        ("/dev/shm", box_limits().shm_mb),
    ],
)
def test_every_file_system_is_full_at_its_size(directory: str, size: int, box: WorkerBox, run: Run) -> None:
    assert run(box, "bombs:disk", directory, (size + 8) << 20) <= size << 20
    assert run(box, "bombs:file_count", directory, box_limits().inodes + 100) < box_limits().inodes


def test_garbage_is_collected(box: WorkerBox, run: Run) -> None:
    """It is not while the template imports."""
    assert run(box, "gc:isenabled") is True


def test_descriptors_run_out(box: WorkerBox, run: Run) -> None:
    assert run(box, "bombs:descriptors", 5_000) < box_limits().open_files


@ON_THIS_MACHINE
def test_four_busy_processes_get_one_core(box: WorkerBox, run: Run) -> None:
    group_of(box)
    began = time.monotonic()
    run(box, "bombs:burn", 4, 0.6)
    spent = time.monotonic() - began
    assert box.close().cpu_s < spent * box_limits().cpus * 1.3 + 0.1


@ON_THIS_MACHINE
def test_a_daemon_dies_with_the_box(box: WorkerBox, run: Run) -> None:
    run(box, "bombs:stray")
    pids = group_of(box)
    assert len(pids) >= 2
    box.close()
    assert not [pid for pid in pids if alive(pid)]


def test_the_last_clock_ends_a_box_that_nobody_reads(sandbox: Bubblewrap, small: Limits) -> None:
    with sandbox.open(small) as box:
        box.kill_after(0.1)
        box.channel.send({"do": "bombs:sleep_for_ever", "args": []})
        with pytest.raises(WireClosed):
            box.channel.receive(deadline=time.monotonic() + 60)


def test_a_reader_with_a_deadline_is_never_held_up(box: WorkerBox) -> None:
    box.channel.send({"do": "bombs:sleep_for_ever", "args": []})
    with pytest.raises(WireLate):
        box.channel.receive(deadline=time.monotonic() + 0.1)
    assert box.close() == box.close()


def test_talking_without_end_fills_nothing(box: WorkerBox) -> None:
    box.channel.send({"do": "bombs:talk_without_end", "args": []})
    until = time.monotonic() + 0.2
    while time.monotonic() < until:
        box.channel.receive(deadline=time.monotonic() + 60)
    assert box.close().memory_peak_mb < 64 + of_the_worker(box)


def test_what_is_no_frame_is_an_error_and_no_allocation(box: WorkerBox) -> None:
    box.channel.send({"do": "bombs:send_raw", "args": ["ffffffff"]})  # a header of four gigabytes
    with pytest.raises(FrameError):
        box.channel.receive(deadline=time.monotonic() + 60)


def test_half_a_frame_is_the_end(box: WorkerBox) -> None:
    box.channel.send({"do": "bombs:send_raw", "args": ["0000ffff7b", "exit"]})
    with pytest.raises(WireClosed):
        box.channel.receive(deadline=time.monotonic() + 60)


def test_no_descriptor_of_a_box_reaches_the_kernel_process(box: WorkerBox, run: Run) -> None:
    """A socket that lingers would hold up whoever lets go of it, whatever clock has run out."""
    before = len(os.listdir("/proc/self/fd"))
    assert run(box, "bombs:send_lingering_socket") == ["OSError"] * 2
    began = time.monotonic()
    box.close()
    assert time.monotonic() - began < 8
    # a pool that fills meanwhile opens a few of its own
    assert len(os.listdir("/proc/self/fd")) < before + 25


def test_what_a_box_leaves_comes_out_as_plain_files_only(box: WorkerBox, run: Run) -> None:
    impossible = run(box, "bombs:leave_traps")
    assert {"device", "foreign link"} >= set(impossible) >= {"device"}
    box.channel.send({"do": "bombs:send_workspace", "args": []})
    (archive,) = box.channel.receive(deadline=time.monotonic() + 60).blobs
    files, refused = read_tar(archive)
    assert set(files) <= {"good/plain.txt", "hard", "suid"}
    assert files["suid"] == b"x"
    told = "\n".join(refused)
    for trap in ("shadow", "everything", "fifo", "..", "/etc/cron.d/job", ".git", "\\x1b"):
        assert trap in told


def test_usage_is_counted(sandbox: Bubblewrap, small: Limits, run: Run) -> None:
    with sandbox.open(small) as box:
        run(box, "bombs:burn", 1, 1.0)
        usage = box.close()
    assert usage.cpu_s > 0.05  # a busy machine gives a twentieth
    assert usage.wall_s > 0.1
    assert usage.memory_peak_mb > 0
    assert not usage.oom


def test_without_control_groups_processes_and_memory_are_still_held(
    weakened: Callable[[str], Bubblewrap], small: Limits, run: Run
) -> None:
    sandbox = weakened("cgroups")
    with sandbox.open(small) as box:
        assert run(box, "bombs:forks", 0.2) < small.processes
        assert box.close().memory_peak_mb > 0
    with sandbox.open(replace(small, memory_mb=32)) as box:
        assert run(box, "bombs:memory") == "exit 3"


def test_a_slow_reader_is_no_lever(box: WorkerBox) -> None:
    """The box blocks on a full pipe; closing it still takes a moment only."""
    box.channel.send({"do": "bombs:talk_without_end", "args": []})
    select.select([box.channel], [], [], 60)
    began = time.monotonic()
    box.close()
    assert time.monotonic() - began < 8
