"""How a box is asked of the engine: every wall that the engine builds, in one request.

The engine's own seccomp profile is replaced by a stricter one, made here from the authored list
``sandboxes/seccomp.toml``, of which the worker makes its own filter.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentos.domain import Limits
from agentos.sandboxes.box import BoxLimits, worker_environment
from agentos.sandboxes.seccomp import CONDITIONAL, NEW_NAMESPACE, SOL_SOCKET, call_list

HOME_LABEL, OWNER_LABEL, BOX_LABEL = "agentos.home", "agentos.owner", "agentos.box"
PLACE = "/run/agentos"
KERNEL, SITE, EXTRA = "/opt/agentos", "/opt/site", "/opt/extra-{}"
WORKER_MB = 96  # the interpreter and its libraries, which a task's own limit does not count
USER = "65534:65534"
_BOOT = "import sys; sys.path += {path!r}; from agentos.worker.container_init import main; main({place!r})"
_MASKED = (  # what the engine hides by itself, and the places that need not be there at all
    *("/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats"),
    *("/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys", "/dev/mqueue"),
    "/dev/pts",  # terminals are the machine's, few, and no task needs one
)
_ARCHITECTURES = ("SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64")  # neither x86 nor x32: their numbers are killed


@dataclass(frozen=True, slots=True)
class ProfileKind:
    """All that two boxes must have in common to stand in for one another."""

    memory_mb: int
    workspace_mb: int
    processes: int
    entry: str
    light: bool = False

    @classmethod
    def of(cls, limits: Limits, entry: str, *, light: bool = False) -> ProfileKind:
        """What the engine must know of these limits; the rest is held by the worker and the kernel."""
        return cls(limits.memory_mb, limits.workspace_mb, limits.processes, entry, light)


@dataclass(frozen=True, slots=True)
class ContainerProfile:
    """What every box of one sandbox gets. ``weak`` names what tests leave out."""

    image: str
    extras: BoxLimits
    extra: tuple[Path, ...]
    weak: frozenset[str]

    def request(self, kind: ProfileKind, directory: Path, labels: Mapping[str, str]) -> dict[str, Any]:
        """The body of the engine's call to create a container (API 1.41)."""
        return {
            "Image": self.image,
            "Cmd": ["/usr/local/bin/python3", "-I", "-S", "-c", self.boot()],
            "Entrypoint": [],
            "User": "0:0" if "user" in self.weak else USER,
            "Env": [f"{name}={value}" for name, value in worker_environment(self.path()).items()],
            "Hostname": "sandbox",
            "WorkingDir": "/ws",
            "Labels": dict(labels),
            "NetworkDisabled": "network" not in self.weak,
            "StopSignal": "SIGKILL",
            "AttachStdout": False,
            "AttachStderr": False,
            "HostConfig": self._host(kind, directory),
        }

    def boot(self) -> str:
        """The program of process 1."""
        return _BOOT.format(path=self.path(), place=PLACE)

    def path(self) -> list[str]:
        """Where modules are found inside."""
        return [KERNEL, SITE, *(EXTRA.format(number) for number in range(len(self.extra)))]

    def _host(self, kind: ProfileKind, directory: Path) -> dict[str, Any]:
        extras = self.extras
        seen = {PLACE: directory} | {EXTRA.format(number): place for number, place in enumerate(self.extra)}
        host: dict[str, Any] = {
            "NetworkMode": "bridge" if "network" in self.weak else "none",
            "ReadonlyRootfs": "read-only" not in self.weak,
            "Dns": ["127.0.0.1"],  # else the host's name servers stand in /etc/resolv.conf
            "IpcMode": "private",
            "CgroupnsMode": "private",  # or its path among the engine's groups could be read inside
            "MaskedPaths": list(_MASKED),
            "ReadonlyPaths": ["/proc"],  # all of it, or a handler could be planted that runs outside
            "Tmpfs": {
                "/ws": _tmpfs(kind.workspace_mb, extras.inodes),
                "/tmp": _tmpfs(extras.tmp_mb, extras.inodes),  # noqa: S108 - the box's own
                "/snapshot": _tmpfs(extras.snapshot_mb, extras.inodes),
                "/dev/shm": _tmpfs(extras.shm_mb, extras.inodes),  # noqa: S108 - the box's own
            },
            "Sysctls": dict(extras.sysctls),
            "Mounts": [  # and not "Binds", which take a place with a colon apart
                {"Type": "bind", "Source": str(place), "Target": target, "ReadOnly": True}
                for target, place in seen.items()
            ],
            "LogConfig": {"Type": "none"},  # a log would fill the host's disk
            "SecurityOpt": self._security(),
            "Ulimits": _ulimits(
                {"core": 0, "msgqueue": 0, "sigpending": extras.signals, "nofile": extras.open_files}
            ),
        }
        if "capabilities" not in self.weak:
            host["CapDrop"] = ["ALL"]
        if "limits" not in self.weak:
            files_mb = kind.workspace_mb + extras.tmp_mb + extras.snapshot_mb + extras.shm_mb
            memory = kind.memory_mb + files_mb + WORKER_MB << 20
            host |= {
                "Memory": memory,
                "MemorySwap": memory,  # the two together: no swap
                "PidsLimit": kind.processes,
                "NanoCpus": int(extras.cpus * 1e9),
            }
        return host

    def _security(self) -> list[str]:
        if "seccomp" in self.weak:
            return ["seccomp=unconfined"]
        return ["no-new-privileges:true", f"seccomp={json.dumps(seccomp_profile())}"]


def seccomp_profile(beside: Iterable[str] = ()) -> dict[str, Any]:
    """The profile in the engine's own form. ``beside``: calls that whoever builds walls inside needs too."""
    calls = call_list()
    rules = [
        _rule(sorted((calls.names - set(CONDITIONAL)) | set(beside))),
        _rule(["clone"], [(0, NEW_NAMESPACE, 0)]),
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},  # the C library falls back
    ]
    # Two comparisons of one argument are an OR to the engine, so "none of these" is said in prefixes.
    rules += [_rule(["ioctl"], [(1, mask, value)]) for mask, value in all_but(calls.ioctls)]
    rules += [_rule(["setsockopt"], [(1, mask, value)]) for mask, value in all_but([SOL_SOCKET])]
    rules += [_rule(["setsockopt"], [(2, mask, value)]) for mask, value in all_but(calls.options)]
    for family in calls.families:
        rules.append(_rule(["socket", "socketpair"], [(0, family, 0)], operator="SCMP_CMP_EQ"))
    rules.append(_rule(["personality"], [(0, 0, 0)], operator="SCMP_CMP_EQ"))
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "archMap": [{"architecture": name, "subArchitectures": []} for name in _ARCHITECTURES],
        "syscalls": rules,
    }


def pod_profile() -> dict[str, Any]:
    """That of a container, and the calls that the worker builds a pod's inner walls with.

    The worker's own filter, under which a job runs, has neither of the two.
    """
    return seccomp_profile(beside=("mount", "unshare"))


def all_but(points: Iterable[int], bits: int = 32) -> Iterator[tuple[int, int]]:
    """Masks and values such that a number matches one exactly if it is none of ``points``.

    Only the low bits are looked at, as the kernel does: a number with others set is no way round.
    """
    refused = set(points)
    pending = [(0, 0)]  # a prefix's value, and how many bits it has
    while pending:
        value, length = pending.pop()
        mask = ((1 << length) - 1) << (bits - length)
        if not any(point & mask == value for point in refused):
            yield mask, value
        elif length < bits:
            pending += [(value, length + 1), (value | 1 << (bits - length - 1), length + 1)]


def _rule(
    names: list[str], arguments: Iterable[tuple[int, int, int]] = (), operator: str = "SCMP_CMP_MASKED_EQ"
) -> dict[str, Any]:
    return {
        "names": names,
        "action": "SCMP_ACT_ALLOW",
        "args": [
            {"index": index, "value": value, "valueTwo": other, "op": operator}
            for index, value, other in arguments
        ],
    }


def _tmpfs(size_mb: int, inodes: int) -> str:
    return f"rw,exec,nosuid,nodev,size={size_mb}m,nr_inodes={inodes},mode=0700,uid=65534,gid=65534"


def _ulimits(limits: Mapping[str, int]) -> list[dict[str, Any]]:
    return [{"Name": name, "Soft": value, "Hard": value} for name, value in limits.items()]
