"""A box on the host: its last clock, and what is told of one that would not go."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agentos.sandboxes.box import _DEADLINES, FirstProcess, WorkerBox, overdue, pipes
from agentos.wire import WireClosed, WireLate


class Deaf(WorkerBox):
    """One that no signal ends, as a process is that waits in the kernel."""

    def _signal(self) -> None: ...


@contextmanager
def deaf_box() -> Iterator[Deaf]:
    channel, theirs = pipes()
    with subprocess.Popen(["sleep", "600"], pass_fds=theirs) as process:
        for end in theirs:
            os.close(end)
        first = FirstProcess(process.pid, os.pidfd_open(process.pid))
        made = Deaf(channel, first, None, time.monotonic(), "run-1")
        yield made
        process.kill()
        made.close()


@pytest.fixture
def deaf() -> Iterator[Deaf]:
    with deaf_box() as made:
        yield made


def test_a_box_whose_time_ends_before_that_of_an_earlier_one_is_not_kept_waiting(deaf: Deaf) -> None:
    deaf.kill_after(600)
    with deaf_box() as soon, deaf_box() as later:
        later.kill_after(600)
        soon.kill_after(0.05)
        with pytest.raises(WireClosed):
            soon.channel.receive(deadline=time.monotonic() + 30)
        later.kill_after(0.05)  # by the same clock, which has been awake since
        with pytest.raises(WireClosed):
            later.channel.receive(deadline=time.monotonic() + 30)
    with pytest.raises(WireLate):
        deaf.channel.receive(deadline=time.monotonic() + 0.01)


def test_a_box_that_is_held_up_at_its_end_keeps_no_other_alive(deaf: Deaf) -> None:
    with deaf._lock, deaf_box() as other:  # as while it is closed
        deaf.kill_after(0.01)
        other.kill_after(0.05)
        with pytest.raises(WireClosed):
            other.channel.receive(deadline=time.monotonic() + 30)


def test_without_room_for_a_thread_whoever_closes_a_box_is_not_held_up(
    deaf: Deaf, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        if thread.name == "box-over":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refused)
    with deaf._lock:  # as while it is closed
        deaf.kill_after(0.01)
        with pytest.raises(WireClosed):
            deaf.channel.receive(deadline=time.monotonic() + 30)
        closing = threading.Thread(target=_DEADLINES.remove, args=(deaf,))
        closing.start()
        closing.join(30)
        assert not closing.is_alive()


def test_the_last_clock_frees_the_reader_of_a_box_that_cannot_be_killed(deaf: Deaf) -> None:
    deaf.kill_after(0.1)
    with pytest.raises(WireClosed):
        deaf.channel.receive(deadline=time.monotonic() + 30)


def test_a_box_that_would_not_go_is_named_until_it_is_gone(deaf: Deaf) -> None:
    assert overdue() == []
    deaf.kill_after(0.01, 0.01)
    free = threading.Event()
    for _ in range(1000):
        if overdue():
            break
        free.wait(0.02)
    ((run, late_s),) = overdue()
    assert (run, late_s > 0) == ("run-1", True)
    assert overdue(patience_s=600) == []
    WorkerBox._signal(deaf)
    deaf.close()
    assert overdue() == []


STOPPED = """
import sys, time
from agentos.sandboxes import box
box._LOOK_S, box._STILL_S = 0.01, 1.0
deadlines, began = box._Deadlines(), time.monotonic()
deadlines.add(object(), began + 1000)
for _ in sys.stdin:
    print(deadlines.stood_still(began), flush=True)
"""


def test_a_process_tells_for_how_long_it_was_stopped() -> None:
    command = [sys.executable, "-c", STOPPED]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        asked, said = process.stdin, process.stdout
        assert asked is not None
        assert said is not None

        def told() -> float:
            asked.write("\n")
            asked.flush()
            return float(said.readline())

        assert told() == 0
        process.send_signal(signal.SIGSTOP)
        time.sleep(1.5)
        process.send_signal(signal.SIGCONT)
        stopped_s = told()
        assert stopped_s > 1
        assert told() < 2 * stopped_s, "it runs, and each stop is counted once"
