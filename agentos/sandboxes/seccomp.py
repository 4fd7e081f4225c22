"""The system-call filter of a box, assembled from the authored deny list without any library.

A classic BPF program (seccomp(2), linux/filter.h): instructions of eight bytes that read
``struct seccomp_data`` and return a verdict. The list is ``sandboxes/seccomp.toml``.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterable, Mapping
from typing import Any

from agentos.errors import Unavailable

# machine -> (column in the deny list, AUDIT_ARCH, clone, ioctl, socket, socketpair)
_MACHINES = {
    "x86_64": (0, 0xC000003E, 56, 16, 41, 53),
    "aarch64": (1, 0xC00000B7, 220, 29, 198, 199),
}
_CLONE3 = 435
_X32 = 0x40000000  # x86_64 only: the same calls once more under other numbers
# CLONE_NEW: time, ns, cgroup, uts, ipc, user, pid, net
_NEW_NAMESPACE = 0x80 | 0x20000 | 0x2000000 | 0x4000000 | 0x8000000 | 0x10000000 | 0x20000000 | 0x40000000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NR, _ARCH, _ARG0, _ARG1 = 0, 4, 16, 24  # offsets; the low word of an argument (little endian)
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000


def assemble(policy: Mapping[str, Any], machine: str | None = None) -> bytes:
    """The program for this machine; raises Unavailable for an architecture the list lacks."""
    machine = machine or platform.machine()
    if machine not in _MACHINES:
        raise Unavailable(
            f"The sandbox's system-call filter knows {' and '.join(_MACHINES)}, and this machine is {machine}: "
            "add its numbers to sandboxes/seccomp.toml."
        )
    column, arch, clone, ioctl, open_socket, socketpair = _MACHINES[machine]
    program = [*_load(_ARCH), *_unless(_EQUAL, arch, _KILL), *_load(_NR)]
    if machine == "x86_64":
        program += _when(_AT_LEAST, _X32, _refuse(errno.ENOSYS))
    for numbers in policy["deny"].values():
        if numbers[column] >= 0:
            program += _when(_EQUAL, numbers[column], _refuse(errno.EPERM))
    program += _when(_EQUAL, _CLONE3, _refuse(errno.ENOSYS))
    program += _call(clone, _ARG0, _when(_ANY_BIT, _NEW_NAMESPACE, _refuse(errno.EPERM)))
    program += _call(ioctl, _ARG1, _each(policy["ioctls"], _refuse(errno.EPERM)))
    for number in (open_socket, socketpair):
        families = [*_each(policy["families"], _ALLOW), _instruction(_RETURN, _refuse(errno.EAFNOSUPPORT))]
        program += _call(number, _ARG0, families)
    program.append(_instruction(_RETURN, _ALLOW))
    return b"".join(program)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _refuse(number: int) -> int:
    return _ERRNO | number


def _load(offset: int) -> list[bytes]:
    return [_instruction(_LOAD, offset)]


def _when(test: int, value: int, verdict: int) -> list[bytes]:
    return [_instruction(test, value, 0, 1), _instruction(_RETURN, verdict)]


def _unless(test: int, value: int, verdict: int) -> list[bytes]:
    return [_instruction(test, value, 1, 0), _instruction(_RETURN, verdict)]


def _each(values: Iterable[int], verdict: int) -> list[bytes]:
    return [part for value in values for part in _when(_EQUAL, value, verdict)]


def _call(number: int, argument: int, body: list[bytes]) -> list[bytes]:
    """``body`` looks at one argument of one call; what it lets pass is allowed."""
    inner = [*_load(argument), *body, _instruction(_RETURN, _ALLOW)]
    return [_instruction(_EQUAL, number, 0, len(inner)), *inner]
