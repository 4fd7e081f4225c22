"""Where groups may be made, read from the kernel's files; version 2 on a tree of plain files."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path

import pytest

from agentos.errors import Unavailable
from agentos.sandboxes import cgroups, seccomp
from agentos.sandboxes.box import box_limits
from agentos.sandboxes.cgroups import ControlGroup, Quota
from agentos.sandboxes.seccomp import call_list


def machine(root: Path, mounts: str, own: str) -> None:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mountinfo").write_text(mounts)
    (root / "proc/self/cgroup").write_text(own)


def directory(path: Path, **files: str) -> Path:
    path.mkdir(parents=True)
    for name in ("cgroup.procs", *files):
        (path / name.replace("_", ".", 1)).write_text(files.get(name, ""))
    return path


def test_version_2_as_root_goes_to_the_top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    machine(tmp_path, "30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n", "0::/system.slice/agentos.service\n")
    directory(tmp_path / "cg", cgroup_controllers="cpu io memory pids", cgroup_subtree_control="memory pids")
    found = cgroups.find(tmp_path)
    assert (found.version, found.parents) == (2, (tmp_path / "cg",))
    assert (tmp_path / "cg/cgroup.subtree_control").read_text() == "+cpu"


def test_version_2_as_a_user_goes_below_what_is_delegated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    delegated = tmp_path / "cg/user.slice/user@1000.service"
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).is_relative_to(delegated))
    machine(
        tmp_path,
        "30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n",
        "0::/user.slice/user@1000.service/app.slice/a\n",
    )
    directory(delegated / "app.slice/a")
    (delegated / "cgroup.procs").write_text("")
    (delegated / "cgroup.controllers").write_text("cpu memory pids")
    (delegated / "cgroup.subtree_control").write_text("cpu memory pids")
    assert cgroups.find(tmp_path).parents == (delegated,)


def test_version_2_without_delegation_says_why_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    machine(tmp_path, "30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n", "0::/session\n")
    directory(tmp_path / "cg/session")
    found = cgroups.find(tmp_path)
    assert found.parents == ()
    assert "delegated" in found.why_not
    assert found.group("label", "box-1", Quota(1, 1, 1.0)) is None


def test_version_1_goes_below_our_own_group_in_each_hierarchy(tmp_path: Path) -> None:
    lines = [
        "33 31 0:31 / /cg/memory rw - cgroup cgroup rw,memory",
        "34 31 0:32 /outer /cg/pids rw - cgroup cgroup rw,pids",
        "35 31 0:33 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct",
        "36 31 0:34 / /cg/devices rw - cgroup cgroup rw,devices",
    ]
    machine(tmp_path, "\n".join(lines), "3:memory:/mine\n2:pids:/outer/mine\n1:cpu,cpuacct:/\n")
    places = [directory(tmp_path / f"cg/{name}") for name in ("memory/mine", "pids/mine", "cpu")]
    found = cgroups.find(tmp_path)
    assert found.version == 1
    assert list(found.parents) == places


def test_no_control_groups_at_all(tmp_path: Path) -> None:
    machine(tmp_path, "", "")
    assert cgroups.find(tmp_path).why_not == "no control groups are mounted"


def test_use_is_read_in_both_formats(tmp_path: Path) -> None:
    (tmp_path / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1\n")
    (tmp_path / "memory.peak").write_text("4096\n")
    (tmp_path / "memory.events").write_text("low 0\noom 1\noom_kill 2\n")
    assert ControlGroup((tmp_path,)).used() == cgroups.GroupUsage(1.5, 4096, oom=True)
    one = tmp_path / "one"
    one.mkdir()
    (one / "cpuacct.usage").write_text("2500000000\n")
    (one / "memory.max_usage_in_bytes").write_text("8192\n")
    (one / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 0\n")
    assert ControlGroup((one,)).used() == cgroups.GroupUsage(2.5, 8192, oom=False)


def test_a_group_that_would_not_go_goes_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "_PATIENCE_S", 0.0)
    groups = cgroups.Cgroups((tmp_path,), frozenset({"memory", "pids"}), version=2)
    quota = Quota(1 << 20, 8, 1.0)
    busy, other = groups.group("me", "box-1", quota), groups.group("me", "box-2", quota)
    assert busy is not None
    assert other is not None
    (busy.places[0] / "process").touch()  # as a directory that is not empty it cannot be removed
    busy.remove()
    other.remove()
    assert [place.name for place in (tmp_path / "agentos-me").glob("box-*")] == ["box-1"]
    (busy.places[0] / "process").unlink()
    assert groups.group("me", "box-3", quota) is not None
    assert [place.name for place in (tmp_path / "agentos-me").glob("box-*")] == ["box-3"]
    assert groups.stayed == []


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_is_a_sound_program(machine: str) -> None:
    """Every jump stays inside, every path ends in a return, and the architecture is asked first."""
    program = seccomp.assemble(call_list(), machine)
    instructions = list(struct.iter_unpack("=HBBI", program))
    assert 50 < len(instructions) < 4096
    assert instructions[0][3] == 4  # the architecture
    for position, (code, yes, no, _) in enumerate(instructions):
        if code & 7 == 5:
            assert position + 1 + max(yes, no) < len(instructions)
    assert instructions[-1][0] == 6


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_allows_what_the_list_names_and_nothing_else(machine: str) -> None:
    calls = call_list()
    named = {number: name for name, number in calls.numbers[machine].items()}
    program = list(struct.iter_unpack("=HBBI", seccomp.assemble(calls, machine)))
    arch = program[1][3]
    for number in range(600):
        verdict = judged(program, {0: number, 4: arch, 16: 0, 24: 0, 32: 0})
        if named.get(number) in ("socket", "socketpair"):
            assert verdict == 0x50000 | errno.EAFNOSUPPORT
        elif number in named:
            assert verdict == 0x7FFF0000, named[number]
        elif number == 435 or number > max(named):  # clone3, and what came after the list
            assert verdict == 0x50000 | errno.ENOSYS, number
        else:
            assert verdict == 0x50000 | errno.EPERM, number
    lingering = {0: calls.numbers[machine]["setsockopt"], 4: arch, 16: 3, 24: 1, 32: 13}
    assert judged(program, lingering) == 0x50000 | errno.EPERM
    # TCP_FASTOPEN's neighbours have the same number
    assert judged(program, {**lingering, 24: 6}) == 0x7FFF0000
    assert judged(program, {**lingering, 4: 0x40000003}) == 0x80000000  # 32-bit calls: killed


def judged(program: list[tuple[int, int, int, int]], data: dict[int, int]) -> int:
    """What the kernel would say of this system call."""
    place, loaded = 0, 0
    while True:
        code, yes, no, value = program[place]
        place += 1
        if code == 0x06:
            return value
        if code == 0x20:
            loaded = data[value]
        else:
            holds = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[code]
            place += yes if holds else no


def test_an_unknown_machine_is_refused() -> None:
    with pytest.raises(Unavailable, match="riscv64"):
        seccomp.assemble(call_list(), "riscv64")


def test_the_shipped_limits_are_complete() -> None:
    assert box_limits().cpus > 0
