"""Life and death: of boxes, of the template, of the process that owns them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentos.domain import Limits
from agentos.errors import ErrorKind, Unavailable
from agentos.sandboxes import cgroups
from agentos.sandboxes.bubblewrap.launch import LABEL_VARIABLE
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.sandboxes.owner import GROUPS, Owner, OwnerNote, home_id, notes, runs_of
from agentos.sandboxes.probe import refusal
from agentos.sandboxes.reaper import drop_strangers, leftovers, reap
from agentos.wire import WireClosed
from tests.refusals import raises

pytestmark = pytest.mark.sandbox

Run = Callable[..., Any]
Make = Callable[..., Bubblewrap]
Weakened = Callable[[str], Bubblewrap]


def until(true: Callable[[], bool], seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def labelled_processes(home: Path) -> list[str]:
    mark = f"{LABEL_VARIABLE}={home_id(home)}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes():
                found.append(entry.name)
        except OSError:
            continue
    return found


def groups(home: Path) -> list[Path]:
    return list(cgroups.labelled(home_id(home)))


def test_many_threads_open_boxes_at_once(sandbox: Bubblewrap, small: Limits, run: Run) -> None:
    answers: list[int] = []

    def work(number: int) -> None:
        for _ in range(2):
            with sandbox.open(small) as box:
                assert run(box, "os:getpid") == 1
                answers.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == sorted([*range(6), *range(6)])


def test_boxes_leave_no_descriptor_no_group_and_no_thread(
    sandbox: Bubblewrap, small: Limits, run: Run
) -> None:
    def groups_of_ours() -> list[Path]:
        mine = f"agentos-*-{os.getpid()}-*/*/"
        return [path for place in sandbox.groups.parents for path in place.glob(mine)]

    with sandbox.open(small):
        pass
    others = set(groups_of_ours())  # another sandbox of this process may still wait for its own
    descriptors, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    for _ in range(5):
        with sandbox.open(small) as box:
            run(box, "bombs:stray")
    assert len(os.listdir("/proc/self/fd")) == descriptors

    def nothing_stays() -> bool:
        sandbox.open(small).close()  # with each box, what a busy machine had not ended in time is tried again
        return others.issuperset(groups_of_ours())

    assert until(nothing_stays)
    assert until(lambda: threading.active_count() <= threads)


def test_a_box_opens_in_a_moment(sandbox: Bubblewrap, small: Limits, run: Run) -> None:
    """No exact measure (see benchmarks/), but importing the libraries anew would show in its CPU."""
    with sandbox.open(small) as box:
        assert run(box, "time:process_time") < 0.2


def test_a_template_that_died_is_started_again_once(make: Make, small: Limits, run: Run) -> None:
    with make() as sandbox:
        box = sandbox.open(small)
        first = sandbox.template_pid
        os.kill(first, signal.SIGKILL)
        with pytest.raises(WireClosed):
            box.channel.receive(deadline=time.monotonic() + 60)
        box.close()
        with sandbox.open(small) as other:
            assert run(other, "os:getpid") == 1
        assert sandbox.template_pid not in (-1, first)


_WITHOUT = """
import os, resource, sys
from agentos.errors import Unavailable
from agentos.sandboxes.bubblewrap.launch import Runtime
from agentos.sandboxes.bubblewrap.sandbox import Template
runtime = Runtime.here()
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
for spare in range(8):
    held = []
    try:
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
    for _ in range(spare):
        os.close(held.pop())
    try:
        Template({}, runtime, int(sys.argv[1]) or None, "nobody")
    except (OSError, Unavailable):
        print("told", flush=True)
    for file in held:
        os.close(file)
"""


def test_a_template_that_may_open_no_more_files_ends(run_uid: int | None) -> None:
    command = [sys.executable, "-W", "ignore", "-c", _WITHOUT, str(run_uid or 0)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split() == ["told"] * 8, done.stderr


def test_closing_the_sandbox_ends_its_boxes(make: Make, small: Limits, tmp_path: Path) -> None:
    sandbox = make(home=tmp_path)
    box = sandbox.open(small)
    sandbox.close()
    sandbox.close()
    with pytest.raises(WireClosed):
        box.channel.receive(deadline=time.monotonic() + 60)
    box.close()
    sandbox.close()
    assert labelled_processes(tmp_path) == []
    assert groups(tmp_path) == []
    with raises(Unavailable, ErrorKind.CLOSED):
        sandbox.open(small)


def test_an_entry_that_raises_says_so(sandbox: Bubblewrap, small: Limits) -> None:
    with sandbox.open_entry(small, "nowhere:serve") as box:
        fault = box.channel.receive(deadline=time.monotonic() + 60).head["fault"]
    assert (fault["type"], fault["where"]) == ("worker", "nowhere:serve")
    assert fault["message"].startswith("ModuleNotFoundError")


OWNER = """
import sys, time
from pathlib import Path
from agentos.domain import Limits
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
home, uid, inside = sys.argv[1:]
sandbox = Bubblewrap(Path(home), int(uid) or None, entry="guest:serve", extra=(Path(inside),))
box = sandbox.open_entry(Limits(processes=24, memory_mb=64), "guest:serve")
box.channel.send({"do": "bombs:stray", "args": []})
box.channel.receive()
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def owner(
    tmp_path: Path, run_uid: int | None, inside: Path, sandbox: Bubblewrap
) -> Iterator[subprocess.Popen[str]]:
    """Another process that owns a box with a daemon in it."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path), str(run_uid or 0), str(inside)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()
        process.wait()


def mounts_of_ours() -> list[str]:
    """All but those of a container engine, which comes and goes beside us."""
    lines = Path("/proc/mounts").read_text().splitlines()
    return [line for line in lines if "/docker/" not in line]


def test_an_owner_that_is_killed_leaves_no_process_and_no_mount(
    owner: subprocess.Popen[str], tmp_path: Path
) -> None:
    mounts = mounts_of_ours()
    assert labelled_processes(tmp_path)
    inside = [
        int(pid)
        for place in groups(tmp_path)
        for procs in place.glob("*/cgroup.procs")
        for pid in procs.read_text().split()
    ]
    assert leftovers(tmp_path) == []  # the owner lives
    owner.kill()
    owner.wait()
    assert until(lambda: not labelled_processes(tmp_path))
    assert until(lambda: not [pid for pid in inside if Path(f"/proc/{pid}").exists()])
    assert mounts_of_ours() == mounts
    found = leftovers(tmp_path)
    assert {leftover.kind for leftover in found} <= {"cgroup", "note"}
    assert reap(found) == []
    assert groups(tmp_path) == []
    assert notes(tmp_path / GROUPS) == []
    assert leftovers(tmp_path) == []


def test_a_control_group_has_a_random_name_and_its_run_is_noted_outside(
    sandbox: Bubblewrap, small: Limits
) -> None:
    """Of one that nobody removes the reaper tells the run, and takes the note away with it."""
    if not sandbox.groups.parents:
        pytest.skip("this machine gives no control groups")
    place = sandbox._notes
    known = {note.token for note in notes(place)}
    with sandbox.open(small, run="run-7/../x") as box, sandbox.open(small, run="trial-7") as other:
        names = {made.name for group in (box.group, other.group) if group for made in group.places}
        assert len(names) == 2
        assert all(re.fullmatch("[0-9a-f]{32}", name) for name in names)
        assert {note.token for note in notes(place)} - known == names
        assert sorted(run for name in names for run in runs_of(place, name)) == ["run-7x", "trial-7"]
    assert not names & {note.token for note in notes(place)}


def test_the_reaper_tells_for_which_run_an_orphaned_group_was(tmp_path: Path, sandbox: Bubblewrap) -> None:
    if not sandbox.groups.parents:
        pytest.skip("this machine gives no control groups")
    dead = Owner(home_id(tmp_path), 2**22 + 1, 1)
    (tmp_path / GROUPS).mkdir(parents=True)
    note = OwnerNote.fresh(tmp_path / GROUPS, dead, "run-9")
    assert sandbox.groups.group(str(dead), note.token, cgroups.Quota(1 << 26, 8, 1.0)) is not None
    found = leftovers(tmp_path)
    assert {(leftover.kind, leftover.runs) for leftover in found} == {
        ("cgroup", ("run-9",)),
        ("note", ("run-9",)),
    }
    assert reap(found) == []
    assert leftovers(tmp_path) == groups(tmp_path) == []


def test_the_reaper_ends_a_template_whose_owner_is_gone(tmp_path: Path) -> None:
    """What a kernel that did not follow die-with-parent would leave."""
    dead = Owner(home_id(tmp_path), 2**22 + 1, 1)
    orphan = subprocess.Popen(["sleep", "60"], env={LABEL_VARIABLE: str(dead)})
    stranger = subprocess.Popen(["sleep", "60"], env={LABEL_VARIABLE: str(Owner("0" * 12, 2**22 + 1, 1))})
    own = subprocess.Popen(["sleep", "60"], env={LABEL_VARIABLE: str(Owner.here(tmp_path))})
    try:
        found = leftovers(tmp_path)
        assert [(leftover.kind, leftover.what) for leftover in found] == [("process", str(orphan.pid))]
        assert reap(found) == []
        assert orphan.wait(60) == -signal.SIGKILL
        assert stranger.poll() is None
        assert own.poll() is None
    finally:
        for process in (orphan, stranger, own):
            process.kill()
            process.wait()


def test_the_reaper_empties_a_group_that_still_has_processes(tmp_path: Path, sandbox: Bubblewrap) -> None:
    if not sandbox.groups.parents:
        pytest.skip("this machine gives no control groups")
    dead = Owner(home_id(tmp_path), 2**22 + 1, 1)
    group = sandbox.groups.group(str(dead), "box-1", cgroups.Quota(1 << 26, 8, 1.0))
    assert group is not None
    orphan = subprocess.Popen(["sleep", "60"])
    for place in group.places:
        (place / "cgroup.procs").write_text(str(orphan.pid))
    found = leftovers(tmp_path)
    assert {leftover.kind for leftover in found} == {"cgroup"}
    threading.Thread(target=orphan.wait, daemon=True).start()
    assert reap(found) == []
    assert groups(tmp_path) == []


def test_an_owner_is_told_from_a_later_process_of_the_same_pid() -> None:
    here = Owner.here(Path("/somewhere"))
    assert here.alive()
    assert Owner.parse(str(here)) == here
    assert not Owner(here.home, here.pid, here.started + 1).alive()
    assert Owner.parse("box-1") is None


def test_without_bubblewrap_it_says_what_to_type(
    monkeypatch: pytest.MonkeyPatch, make: Make, small: Limits
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with (
        make() as sandbox,
        raises(Unavailable, ErrorKind.NOT_INSTALLED, type_next="apt-get install bubblewrap"),
    ):
        sandbox.open(small)


LIMITED = """
import resource, sys
from pathlib import Path
from agentos.domain import Limits
from agentos.errors import Unavailable
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
with Bubblewrap(Path(sys.argv[1]), int(sys.argv[2]) or None) as sandbox:
    for name, most in ("CPU", 2_000), ("FSIZE", 4 << 20), ("NOFILE", 300):
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
        try:
            sandbox.open(Limits(wall_s=3_000, memory_mb=64, workspace_mb=8, processes=24))
        except Unavailable as error:
            assert f"Limit{name}=" in str(error), error
        else:
            sys.exit(f"a box was opened with {name} at {most}")
"""


@pytest.mark.slow
def test_a_hard_limit_below_that_of_a_box_is_named_and_no_fault_of_a_tool(
    tmp_path: Path, run_uid: int | None
) -> None:
    """In a process of its own, which cannot raise them again."""
    subprocess.run([sys.executable, "-c", LIMITED, tmp_path, str(run_uid or 0)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="about root only")
def test_root_without_a_run_uid_is_refused(tmp_path: Path, small: Limits) -> None:
    for run_uid in (None, 0):
        with raises(Unavailable, ErrorKind.USAGE, names=["run_uid"]):
            Bubblewrap(tmp_path, run_uid).open(small)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("No permissions to create new namespace, likely", "user namespaces"),
        ("Can't fork for pid 1: Resource temporarily unavailable", "TasksMax="),
    ],
)
def test_a_machine_that_refuses_bubblewrap_is_told_the_remedy(
    monkeypatch: pytest.MonkeyPatch, make: Make, small: Limits, said: str, told: str
) -> None:
    """As bubblewrap itself puts it; there is no fallback to less isolation."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)  # the run uid has to get there
        broken = Path(place, "bwrap")
        broken.write_text(f'#!/bin/sh\necho "bwrap: {said}" >&2\nexit 1\n')
        broken.chmod(0o755)
        monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
        with make() as sandbox, pytest.raises(Unavailable, match=told):
            sandbox.open(small)


def test_ctrl_c_in_the_daemons_terminal_does_not_reach_the_sandbox(
    sandbox: Bubblewrap, small: Limits
) -> None:
    with sandbox.open(small) as box:
        for pid in (sandbox.template_pid, box.pid):
            assert os.getsid(pid) != os.getsid(0)


def test_a_box_knows_its_pid_from_the_kernel_not_from_the_box(sandbox: Bubblewrap, small: Limits) -> None:
    with sandbox.open(small) as box:
        status = Path(f"/proc/{box.pid}/status").read_text()
    assert next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[-1] == "1"


def test_the_channel_is_two_pipes(sandbox: Bubblewrap, small: Limits) -> None:
    """Over a socket a box could send descriptors, which whoever reads has to let go of."""
    with sandbox.open(small) as box:
        assert os.readlink(f"/proc/self/fd/{box.channel.fileno()}").startswith("pipe:")


def test_groups_of_killed_daemons_of_any_home_go_and_those_that_hold_a_process_stay(tmp_path: Path) -> None:
    mine = cgroups.find()
    if not mine.parents:
        pytest.skip(mine.why_not)
    dead = Owner(home_id(tmp_path / "gone"), 1, 1)
    places = [parent / f"{cgroups.PREFIX}{dead}" for parent in mine.parents]
    lives = [parent / f"{cgroups.PREFIX}{Owner.here(tmp_path / 'lives')}" for parent in mine.parents]
    for place in [*places, *lives]:
        (place / "box").mkdir(parents=True)
    child = subprocess.Popen(["sleep", "600"])
    try:
        (places[0] / "box" / "cgroup.procs").write_text(str(child.pid))
        drop_strangers(tmp_path)
        assert (places[0] / "box").exists()
        assert not any(place.exists() for place in places[1:])
        child.kill()
        child.wait()
        assert until(lambda: drop_strangers(tmp_path) >= 0 and not places[0].exists())
        assert all((place / "box").exists() for place in lives), "their process lives"
    finally:
        child.kill()
        child.wait()
        for place in [*places, *lives]:
            cgroups.remove(place / "box")
            cgroups.remove(place)


@pytest.mark.slow
def test_boxes_hold_where_the_kernel_tells_not_what_a_clone_needs(weakened: Weakened, small: Limits) -> None:
    twice = weakened("clone")
    assert refusal(twice.examine()) == ""
    with twice.open(small) as box:
        assert until(lambda: parent(box.pid) == "bwrap")  # once the fork between has ended


def test_a_box_is_the_clone_of_the_template(sandbox: Bubblewrap, small: Limits) -> None:
    with sandbox.open(small) as box:
        assert parent(box.pid).startswith("python")


@pytest.mark.slow
def test_a_box_that_cannot_be_cloned_leaves_the_template_alone(weakened: Weakened, small: Limits) -> None:
    without = weakened("namespace-kinds")
    for _ in range(2):
        with pytest.raises(Unavailable, match="clone: Invalid argument"):
            without.open(small)
        assert without.template_pid > 0


def parent(pid: int) -> str:
    """The name of the process that this one is a child of."""
    (number,) = re.findall(r"^PPid:\t(\d+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return Path(f"/proc/{number}/comm").read_text().strip()
