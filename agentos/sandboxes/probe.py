"""Whether the sandbox keeps its promises on this machine, found out by trying.

A flag that was passed is no proof: a kernel without a feature, an engine that ignores a limit or
a profile in the way are all silent. So before the first job a box is made exactly as jobs get it,
a check inside it (``agentos/worker/selfcheck.py``) tries what must fail, and this file judges.
"""

from __future__ import annotations

import os
import secrets
import socket
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from agentos.domain import Limits
from agentos.errors import Unavailable
from agentos.ports import Box
from agentos.wire import FrameError, WireClosed, WireLate, hangs_up

ENTRY = "agentos.worker.selfcheck:serve"
LIMITS = Limits(wall_s=30, memory_mb=48, workspace_mb=4, processes=12)
_HOGS = 8
_TRIES = 3  # silent ones were seen in a row, in the first boxes of an engine that had just got its image
_WRITABLE = {"/dev/shm", "/snapshot", "/tmp", "/ws"}  # noqa: S108 - the box's own
_VARIABLES = {
    *("PATH", "PYTHONPATH", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "HOME", "LANG", "TZ"),
    *("MALLOC_ARENA_MAX", "LANGSMITH_TRACING", "PWD", "LC_CTYPE"),
}


@dataclass(frozen=True, slots=True)
class Guarantee:
    """One promise, and whether it held. ``detail`` says what was found."""

    promise: str
    held: bool
    detail: str


class _Silent(Exception):
    def __init__(self, at: str) -> None:
        super().__init__(at)
        self.at = at


def probe(
    open_entry: Callable[[Limits, str], Box], *, grouped: bool, memory_mb: int | None = None
) -> tuple[Guarantee, ...]:
    """Try every promise in one box; ``grouped`` says that a cgroup is to hold it.

    ``memory_mb`` is what each process of it may get, where its sandbox can do with less than ``LIMITS`` gives.

    A box that is silent until its time is up has shown nothing: another one is tried, ``_TRIES`` in all.
    Raises Unavailable when there is no box to try it in.
    """
    silent_at = []
    for _ in range(_TRIES):
        limits = replace(LIMITS, memory_mb=memory_mb or LIMITS.memory_mb)
        try:
            return _probe_one(open_entry, limits, grouped=grouped)
        except _Silent as silent:
            silent_at.append(silent.at)
    told = f"{_TRIES} probes of the sandbox gave no answer in {LIMITS.wall_s:.0f} s each"
    raise Unavailable(f"{told}; they fell silent at: {', '.join(silent_at)}")


def _probe_one(
    open_entry: Callable[[Limits, str], Box], limits: Limits, *, grouped: bool
) -> tuple[Guarantee, ...]:
    with ExitStack() as stack:
        canaries = _canaries(stack, limits)
        box = stack.enter_context(open_entry(limits, ENTRY))
        watch = os.dup(box.channel.fileno())
        stack.callback(os.close, watch)
        try:
            found = _answer(box, canaries)
        except (WireClosed, FrameError) as error:
            raise Unavailable(f"the sandbox's probe did not answer: {error}") from None
        if "fault" in found:
            raise Unavailable(f"the sandbox's probe failed inside: {found['fault']}")
        box.close()
        return (
            *_identity(found),
            *_walls(found),
            *_limits(found, limits, grouped=grouped),
            _nothing_left(watch),
        )


def _answer(box: Box, canaries: dict[str, Any]) -> dict[str, Any]:
    """What it found; raises _Silent with what it was at.

    A box that ends while its processes eat memory together was held to it: some kernels let all of them pay.
    """
    until, at = time.monotonic() + LIMITS.wall_s, "its start"
    so_far: dict[str, Any] | None = None
    try:
        box.channel.send(canaries)
        while "at" in (found := box.channel.receive(deadline=until).head):
            at, so_far = str(found["at"])[:40], found.get("found")
    except WireClosed:
        if so_far is None:
            raise
        return so_far | {"together": 0}
    except WireLate:
        raise _Silent(at) from None
    return found


def refusal(claims: Iterable[Guarantee]) -> str:
    """Why no job may run where these were found; "" when every promise held."""
    broken = [f"{claim.promise} ({claim.detail})" for claim in claims if not claim.held]
    if not broken:
        return ""
    return (
        f"The sandbox does not hold on this machine: it must be that a job {'; '.join(broken)}. "
        "Type `agentos sandbox check` for the whole list."
    )


def _canaries(stack: ExitStack, limits: Limits) -> dict[str, Any]:
    """Things of the host that any process here can read or reach, and no box may."""
    secret = stack.enter_context(tempfile.NamedTemporaryFile(prefix="agentos-probe-"))  # noqa: SIM115 - the stack closes it
    os.chmod(secret.name, 0o644)
    loopback = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    name = f"agentos-probe-{secrets.token_hex(8)}"
    abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
    abstract.bind("\0" + name)
    abstract.listen()
    return {
        "file": secret.name,
        "port": loopback.getsockname()[1],
        "abstract": name,
        "workspace_bytes": limits.workspace_mb << 20,
        "memory_bytes": limits.memory_mb << 20,
        "processes": limits.processes,
        "hogs": _HOGS,
    }


def _identity(found: dict[str, Any]) -> tuple[Guarantee, ...]:
    status = found["status"]
    capabilities = {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
    strange = sorted(set(found["environment"]) - _VARIABLES)
    descriptors = [number for number in found["descriptors"] if number > 5]  # 3, 4 the channel, 5 the listing
    return (
        Guarantee(
            "runs as nobody", set(status["Uid"].split()) == {"65534"}, f"uid {status['Uid'].split()[0]}"
        ),
        Guarantee(
            "has no capabilities",
            capabilities == {"0" * 16},
            "none" if capabilities == {"0" * 16} else f"sets {', '.join(sorted(capabilities))}",
        ),
        Guarantee(
            "can gain no privileges", status["NoNewPrivs"] == "1", f"NoNewPrivs {status['NoNewPrivs']}"
        ),
        Guarantee("has its system calls filtered", status["Seccomp"] == "2", f"Seccomp {status['Seccomp']}"),
        Guarantee(
            "sees no process but its own", found["processes"] == ["1"], f"sees {len(found['processes'])}"
        ),
        Guarantee(
            "sees no name of its control group",
            set(found["control_groups"]) <= {"/"},
            ", ".join(found["control_groups"]),
        ),
        Guarantee("inherits no environment", not strange, ", ".join(strange) or "only what we set"),
        Guarantee("inherits no descriptors", not descriptors, f"{descriptors or 'only its channel'}"),
    )


def _walls(found: dict[str, Any]) -> tuple[Guarantee, ...]:
    reached = found["reached"]
    extra = sorted(set(found["writable"]) - _WRITABLE)

    def wall(promise: str, *names: str) -> Guarantee:
        open_ones = [name for name in names if reached[name]]
        return Guarantee(
            promise, not open_ones, f"reached: {', '.join(open_ones)}" if open_ones else "refused"
        )

    return (
        Guarantee(
            "has no network", not found["network"], ", ".join(found["network"]) or "only its own loopback"
        ),
        wall("reads no host file", "host file"),
        wall("reaches no host service", "loopback", "abstract socket"),
        wall("reaches no vsock, netlink or io_uring", "vsock", "netlink", "io_uring"),
        wall("cannot set the kernel's handlers", "core_pattern"),
        wall("cannot write to the system", "/usr", "/"),
        Guarantee(
            "writes only to its own file systems", not extra, ", ".join(extra) or ", ".join(sorted(_WRITABLE))
        ),
    )


def _limits(found: dict[str, Any], limits: Limits, *, grouped: bool) -> tuple[Guarantee, ...]:
    claims = [
        Guarantee(
            "is held to its disk",
            found["disk"] <= limits.workspace_mb << 20,
            f"{found['disk'] >> 10} of {limits.workspace_mb << 10} KB",
        ),
        Guarantee(
            "is held to its processes",
            found["forks"] <= limits.processes,
            f"{found['forks']} of {limits.processes}",
        ),
        Guarantee(
            "is held to its memory, each process",
            found["one_process"] == 0,
            f"{limits.memory_mb} MB, twice that {'was had' if found['one_process'] else 'refused'}",
        ),
    ]
    if grouped:
        claims.append(
            Guarantee(
                "is held to its memory, all processes",
                found["together"] < _HOGS,
                f"{found['together']} of {_HOGS} processes at three quarters of the limit each",
            )
        )
    return tuple(claims)


def _nothing_left(watch: int) -> Guarantee:
    """Every process in the box holds the other end of the channel: its end is theirs."""
    left = not hangs_up(watch, 2)
    return Guarantee("leaves nothing running", not left, "a stray process lived on" if left else "all dead")
