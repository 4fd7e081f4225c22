"""Memory, processes and CPU of a whole box, held and counted by the kernel's control groups.

Knows both file formats: one tree (version 2) and one tree for each controller (version 1).
Where this process may not make groups, ``find`` says so and the boxes have resource limits
only: memory is then held for each process and not for the box, and CPU not at all.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

PREFIX = "agentos-"
_WANTED = ("memory", "pids", "cpu", "cpuacct")
_TCP, _TCP_BYTES = "memory.kmem.tcp.limit_in_bytes", 32 << 20  # in the buffers of a box's connections
_FILES: dict[str, frozenset[str]] = {}  # of each group below a label's directory, by that directory
_MAKING = threading.Lock()
_PERIOD_US = 100_000
_PATIENCE_S = 1.0
_PEAKS = frozenset({"memory.max_usage_in_bytes", "memory.peak"})
_COUNTERS = _PEAKS | {"cpuacct.usage", "cpu.stat", "memory.oom_control", "memory.events"}


@dataclass(frozen=True, slots=True)
class Quota:
    """What one group may use."""

    memory_bytes: int
    processes: int
    cpus: float


@dataclass(frozen=True, slots=True)
class GroupUsage:
    """What one group has used so far."""

    cpu_s: float = 0.0
    memory_peak_bytes: int = 0
    oom: bool = False


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """The directories of one box: one in version 2, one for each hierarchy in version 1."""

    places: tuple[Path, ...]
    stayed: list[Path] = field(default_factory=list, compare=False)  # see ``Cgroups.stayed``
    forget: Callable[[], None] = lambda: None  # what goes with it

    def doors(self) -> list[int]:
        """Descriptors for a process of one thread that is to join: it writes ``0`` to each.

        The kernel asks what the opener may, not the writer. In version 1 a thread that moves itself
        costs microseconds; moved by another it waits for all processors (7 ms and more).
        """
        with contextlib.ExitStack() as undo:
            opened = []
            for place in self.places:
                name = "tasks" if "tasks" in _files(place) else "cgroup.procs"
                opened.append(os.open(f"{place}/{name}", os.O_WRONLY))
                undo.callback(os.close, opened[-1])
            undo.pop_all()
            return opened

    def used(self) -> GroupUsage:
        """Read before ``remove``."""
        cpu_s, peak, kills = 0.0, 0, 0
        for place in self.places:
            for name in _files(place) & _COUNTERS:
                path = f"{place}/{name}"
                if name.startswith("cpu"):
                    own = _keyed(path, "usage_usec") / 1e6 if name == "cpu.stat" else _number(path) / 1e9
                    cpu_s = max(cpu_s, own)
                elif name in _PEAKS:
                    peak = max(peak, _number(path))
                else:
                    kills += _keyed(path, "oom_kill")
        return GroupUsage(cpu_s, peak, kills > 0)

    def remove(self) -> None:
        """Take the directories away; the kernel may need a moment to see that they are empty."""
        until = time.monotonic() + _PATIENCE_S
        self.stayed.extend([place for place in self.places if not remove(place, until)])
        self.forget()


@dataclass(frozen=True, slots=True)
class Cgroups:
    """Where this process may make groups. ``controllers`` is empty when it may not."""

    parents: tuple[Path, ...] = ()
    controllers: frozenset[str] = frozenset()
    version: int = 0
    why_not: str = ""
    stayed: list[Path] = field(default_factory=list, compare=False)  # would not go; tried again later

    @property
    def lacks(self) -> str:
        """What does not hold without groups, and what to type; "" where there are some."""
        if self.parents:
            return ""
        return (
            f"Without control groups ({self.why_not}) memory is held for each process and not for the whole job, "
            "CPU time not at all, and neither is counted for sure. Tasks run all the same. For all of it type "
            "`systemd-run --user --scope -p Delegate=yes agentos daemon run`: see docs/understand/security.md, Control groups."
        )

    def group(
        self, label: str, name: str, quota: Quota, forget: Callable[[], None] = lambda: None
    ) -> ControlGroup | None:
        """A new, empty group below the label's own directory; None when there are no cgroups.

        ``forget`` is called when it was taken away.
        """
        if not self.parents:
            return None
        self._sweep(0.0)
        folders = [f"{parent}/{PREFIX}{label}" for parent in self.parents]
        group = ControlGroup(tuple(Path(f"{folder}/{name}") for folder in folders), self.stayed, forget)
        limits = _limits(quota)
        for folder, place in zip(folders, group.places, strict=True):
            if folder not in _FILES:
                self._make(place.parent)
            try:
                os.mkdir(place)
            except FileNotFoundError:  # somebody took the label's directory away
                self._make(place.parent)
                os.mkdir(place)
            _hold(place, limits)
        return group

    def _make(self, place: Path) -> None:
        """The label's directory. One thread at a time: before it is whole no group below has all its files.

        One that is there may be what a killed process left half made.
        """
        with _MAKING:
            place.mkdir(exist_ok=True)
            if self.version == 2:
                names = " ".join(f"+{name}" for name in sorted(self.controllers))
                (place / "cgroup.subtree_control").write_text(names)

    def drop(self, label: str) -> None:
        """Remove the label's own directories and all groups below, whose processes were killed."""
        until = time.monotonic() + 5 * _PATIENCE_S
        self._sweep(until)
        for parent in self.parents:
            place = parent / (PREFIX + label)
            for group in place.glob("*/"):
                remove(group, until)
            remove(place, 0.0)

    def _sweep(self, until: float) -> None:
        """Where the machine is busy, what was killed may outlast the patience of whoever closed its box."""
        for place in tuple(self.stayed):
            if remove(place, until):
                with contextlib.suppress(ValueError):  # another thread was faster
                    self.stayed.remove(place)


def _limits(quota: Quota) -> dict[str, str]:
    """File -> what it has to say, in all versions and hierarchies."""
    return {
        "memory.max": str(quota.memory_bytes),
        "memory.swap.max": "0",
        "memory.limit_in_bytes": str(quota.memory_bytes),
        "memory.memsw.limit_in_bytes": str(quota.memory_bytes),
        "pids.max": str(quota.processes),
        "cpu.max": f"{int(quota.cpus * _PERIOD_US)} {_PERIOD_US}",
        "cpu.cfs_quota_us": str(int(quota.cpus * _PERIOD_US)),
    }


def _hold(place: Path, limits: Mapping[str, str]) -> None:
    """Write the limits whose files exist here; which ones do depends on version and hierarchy."""
    there = _files(place)
    for name, value in limits.items():
        if name in there:
            _set(f"{place}/{name}", value)
    if _TCP in there:
        hold_connections(place)


def hold_connections(place: Path) -> None:
    """Bound the buffers of its TCP connections, which version 1 leaves out of its memory (2 counts them)."""
    _set(f"{place}/{_TCP}", str(_TCP_BYTES))


def _files(place: Path) -> frozenset[str]:
    """Names of the files in a group, none when it is gone. The same in all below one label: looked for once."""
    folder = str(place).rpartition("/")[0]
    if (known := _FILES.get(folder)) is None:
        try:
            known = frozenset(os.listdir(place))
        except OSError:
            return frozenset()
        if folder.rpartition("/")[2].startswith(PREFIX):
            _FILES[folder] = known
    return known


def _set(path: str, value: str) -> None:
    """Write one file of a group, if it is there. Plain calls: a box has a dozen of them."""
    with contextlib.suppress(FileNotFoundError):
        file = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(file, value.encode())
        finally:
            os.close(file)


def remove(place: Path, until: float | None = None) -> bool:
    """Remove one empty group, trying ``until`` then; False when it would not go (left to the reaper)."""
    until = time.monotonic() + _PATIENCE_S if until is None else until
    while True:
        try:
            place.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.002)
        else:
            return True


def labelled(prefix: str) -> Iterator[Path]:
    """Every group directory on this machine whose name starts so, wherever it was made, but for within such groups."""
    for place, _, kind in _mounts(Path("/")):
        if kind != "cgroup2" and not set(kind.split(",")) & set(_WANTED):
            continue  # none is ever made there
        for directory, names, _ in os.walk(place):
            yield from (Path(directory) / name for name in names if name.startswith(PREFIX + prefix))
            names[:] = [name for name in names if not name.startswith(PREFIX)]


def of(pid: int, root: Path = Path("/")) -> tuple[Path, ...]:
    """The groups that count and hold a process of this machine, made by whomever."""
    own = dict(_memberships(root, str(pid)))
    places = []
    for place, within, names in _mounts(root):
        path = own.get("" if names == "cgroup2" else next(iter(set(names.split(",")) & set(_WANTED)), "-"))
        if path is not None:
            places.append(place / os.path.relpath(path, within))
    return tuple(places)


def find(root: Path = Path("/")) -> Cgroups:
    """What this process may use, by the mounts and memberships under ``root``/proc."""
    mounts = list(_mounts(root))
    own = dict(_memberships(root))
    unified = [place for place, _, kind in mounts if kind == "cgroup2"]
    split = [(place, within, names) for place, within, names in mounts if names != "cgroup2"]
    usable = _version_1(split, own)
    if usable.parents:
        return usable
    if unified:
        return _version_2(unified[0], own.get("", "/"))
    return Cgroups(why_not="no control groups are mounted")


def _version_1(mounts: list[tuple[Path, str, str]], own: dict[str, str]) -> Cgroups:
    parents: list[Path] = []
    found: set[str] = set()
    for place, within, options in mounts:
        names = set(options.split(",")) & set(_WANTED)
        if not names:
            continue
        path = own.get(next(iter(names)), "/")
        parent = place / os.path.relpath(path, within) if path.startswith(within) else place
        if os.access(parent, os.W_OK) and (parent / "cgroup.procs").exists():
            parents.append(parent.resolve())
            found |= names
    if {"memory", "pids"} <= found:
        return Cgroups(tuple(parents), frozenset(found), 1)
    return Cgroups(why_not="this user may not make control groups")


def _version_2(mount: Path, own: str) -> Cgroups:
    """As root below the top; otherwise below the highest of our ancestors that is delegated to us."""
    here = mount / own.lstrip("/")
    line = [here, *here.parents]
    above = line[: line.index(mount) + 1] if mount in line else [mount]
    places = (
        [mount]
        if os.geteuid() == 0
        else [p for p in reversed(above) if os.access(p / "cgroup.procs", os.W_OK)]
    )
    for place in places:
        wanted = set(_WANTED) & set(_words(place / "cgroup.controllers"))
        if not {"memory", "pids"} <= wanted or not _enable(place, wanted):
            continue
        return Cgroups((place,), frozenset(wanted), 2)
    return Cgroups(why_not="no control group with memory and pids is delegated to this user")


def _enable(place: Path, wanted: set[str]) -> bool:
    missing = wanted - set(_words(place / "cgroup.subtree_control"))
    try:
        if missing:
            (place / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in sorted(missing)))
    except OSError:
        return False
    return os.access(place, os.W_OK)


def _mounts(root: Path) -> Iterator[tuple[Path, str, str]]:
    """Mount point, the part of the hierarchy seen there, and its controllers (or "cgroup2")."""
    for line in _lines(root / "proc/self/mountinfo"):
        left, _, right = line.partition(" - ")
        kind, _, options = right.split()[:3]
        if kind in ("cgroup", "cgroup2"):
            within, place = left.split()[3:5]
            yield root / place.lstrip("/"), within, kind if kind == "cgroup2" else options


def _memberships(root: Path, process: str = "self") -> Iterator[tuple[str, str]]:
    for line in _lines(root / "proc" / process / "cgroup"):
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            yield name, path


def _lines(path: Path | str) -> list[str]:
    """Plain calls here too: the buffers of an open file cost more than what a group's files hold."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            parts = [os.read(file, 1 << 16)]
            while parts[-1]:
                parts.append(os.read(file, 1 << 16))
        finally:
            os.close(file)
    except OSError:
        return []
    return b"".join(parts).decode("utf-8", "surrogateescape").splitlines()


def _words(path: Path | str) -> list[str]:
    return [word for line in _lines(path) for word in line.split()]


def _number(path: Path | str) -> int:
    words = _words(path)
    return int(words[0]) if words and words[0].isdigit() else 0


def _keyed(path: Path | str, key: str) -> int:
    for line in _lines(path):
        name, _, value = line.partition(" ")
        if name == key:
            return int(value)
    return 0
