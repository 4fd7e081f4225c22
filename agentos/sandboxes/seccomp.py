"""The system-call filter of a box, assembled from the authored allow list without any library.

A classic BPF program (seccomp(2), linux/filter.h): instructions of eight bytes that read
``struct seccomp_data`` and return a verdict. The list is ``sandboxes/seccomp.toml``.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from agentos import shipped
from agentos.errors import Unavailable

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # AUDIT_ARCH
_CLONE3 = 435
_X32 = 0x40000000  # x86_64 only: the same calls once more under other numbers
# CLONE_NEW: time, ns, cgroup, uts, ipc, user, pid, net
NEW_NAMESPACE = 0x80 | 0x20000 | 0x2000000 | 0x4000000 | 0x8000000 | 0x10000000 | 0x20000000 | 0x40000000
SOL_SOCKET = 1
CONDITIONAL = ("clone", "ioctl", "personality", "setsockopt", "socket", "socketpair")

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NR, _ARCH, _ARG0, _ARG1, _ARG2 = 0, 4, 16, 24, 32  # offsets; the low word of an argument (little endian)
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000


@dataclass(frozen=True, slots=True)
class CallList:
    """``seccomp.toml``: the system calls that a box may make."""

    numbers: dict[str, dict[str, int]]  # machine -> name -> number
    families: tuple[int, ...]  # of sockets, allowed
    ioctls: tuple[int, ...]  # refused
    options: tuple[int, ...]  # of sockets, refused

    @property
    def names(self) -> frozenset[str]:
        """Of the calls of every machine."""
        return frozenset(name for calls in self.numbers.values() for name in calls)


def call_list() -> CallList:
    """The system calls of every box."""
    table = shipped.table("sandboxes", "seccomp.toml")
    calls = [word.split(":") for group in table["allow"].values() for word in group.split()]
    numbers = {
        machine: {call[0]: int(call[column]) for call in calls if call[column] != "-"}
        for column, machine in enumerate(("x86_64", "aarch64"), 1)
    }
    return CallList(numbers, *(tuple(table[name]) for name in ("families", "ioctls", "options")))


def assemble(calls: CallList, machine: str | None = None) -> bytes:
    """The program for this machine; raises Unavailable for an architecture the list lacks."""
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURES:
        raise Unavailable(
            f"The sandbox's system-call filter knows {' and '.join(_ARCHITECTURES)}, and this machine is {machine}: "
            "add its numbers to sandboxes/seccomp.toml."
        )
    allowed = calls.numbers[machine]
    denied = _refuse(errno.EPERM)
    looks = {
        "clone": [*_load(_ARG0), *_when(_ANY_BIT, NEW_NAMESPACE, denied)],
        "ioctl": [*_load(_ARG1), *_each(calls.ioctls, denied)],
        "personality": [*_load(_ARG0), *_unless(_EQUAL, 0, denied)],
        "setsockopt": [
            *_load(_ARG1),
            *_unless(_EQUAL, SOL_SOCKET, _ALLOW),
            *_load(_ARG2),
            *_each(calls.options, denied),
        ],
    }
    family = [
        *_load(_ARG0),
        *_each(calls.families, _ALLOW),
        _instruction(_RETURN, _refuse(errno.EAFNOSUPPORT)),
    ]
    looks |= {"socket": family, "socketpair": family}
    program = [*_load(_ARCH), *_unless(_EQUAL, _ARCHITECTURES[machine], _KILL), *_load(_NR)]
    if machine == "x86_64":
        program += _when(_AT_LEAST, _X32, _refuse(errno.ENOSYS))
    program += _when(_EQUAL, _CLONE3, _refuse(errno.ENOSYS))
    for name in CONDITIONAL:
        body = [*looks[name], _instruction(_RETURN, _ALLOW)]
        program += [_instruction(_EQUAL, allowed[name], 0, len(body)), *body]
    for first, last in _ranges(number for name, number in allowed.items() if name not in CONDITIONAL):
        program += [*_unless(_AT_LEAST, first, denied), _instruction(_AT_LEAST, last + 1, 1, 0)]
        program.append(_instruction(_RETURN, _ALLOW))
    program.append(_instruction(_RETURN, _refuse(errno.ENOSYS)))  # above all that is known
    return b"".join(program)


def _ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """First and last of each row of numbers that follow one another, ascending."""
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


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
