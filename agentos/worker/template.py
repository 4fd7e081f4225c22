"""The process inside bubblewrap that every box is forked from, and how a box locks itself in.

Importing langgraph costs more than half a second, so one template imports it once and forks a
box in milliseconds. A box is a process of its own in *fresh* user, mount, pid, network, ipc and
uts namespaces, nested in the template's: siblings share nothing that can be written or signalled.
The template itself runs nothing but this file and imports, and compiles what ships; it never sees a job.

``main`` speaks with the kernel on one SEQPACKET socket: first a *start* message (what to import
and to compile, the seccomp program), answered by *ready*; then one message for each box, which carries that box's ends
of two pipes, a socket for its greeting, and the doors of its control groups. The box greets when its walls
stand, so that the kernel of the machine can tell who it is; all further talk is on the pipes
(``agentos/wire.py``). The end of the socket is the end of the template, and with it of all boxes.
"""

from __future__ import annotations

import base64
import ctypes
import fcntl
import gc
import importlib
import json
import os
import resource
import signal
import socket
import struct
import sys
import threading
import time
import zlib
from typing import Any

from agentos.wire import Channel

MESSAGE_MAX = 1 << 16
_DESCRIPTORS_MAX = 16  # the box's channel, where it greets, and the doors of its control groups
_ASIDE = 64  # above all that are handed over
GO_S = 60.0  # how long a finished box waits for the kernel's word

_LIBC = ctypes.CDLL(None, use_errno=True)
# Whose functions are called under the interpreter's lock, as fork is.
_LOCKED_LIBC = ctypes.PyDLL(None, use_errno=True)
_LOCKED_LIBC.syscall.restype = ctypes.c_long
_LIBC.mount.argtypes = [*[ctypes.c_char_p] * 3, ctypes.c_ulong, ctypes.c_char_p]

# include/uapi/linux/sched.h: user, mount, pid, network, ipc, uts
_FRESH = 0x10000000 | 0x00020000 | 0x20000000 | 0x40000000 | 0x08000000 | 0x04000000
_CHILD_CLEARTID, _CHILD_SETTID = 0x00200000, 0x01000000
# Its number, and in which order it takes what follows the stack.
_SYS_CLONE = {
    "x86_64": (56, "parent_tid", "child_tid", "tls"),
    "aarch64": (220, "parent_tid", "tls", "child_tid"),
}
_CGROUP, _NEW_PID = 0x02000000, 0x20000000
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND = 1, 2, 4, 8, 32, 4096
_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 4, 22, 24, 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_PR_GET_TID_ADDRESS, _MADV_COLLAPSE = 40, 25
_LARGE = 2 << 20  # of a page
_CAPABILITY_VERSION_3 = 0x20080522
_HIDDEN = ("/dev/pts", "/dev/mqueue", "/sys")  # of a pod: terminals and queues are the machine's, and few
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


class _Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def main(control_fd: int) -> None:
    """Import what the start message names, then fork a box for each request until the end."""
    control = socket.socket(fileno=control_fd)
    start = json.loads(control.recv(MESSAGE_MAX))
    gc.disable()  # imports make little garbage and many objects: looking for it takes a sixth of their time
    for module in start["warm"]:
        importlib.import_module(module)
    known = json.loads(zlib.decompress(base64.b64decode(start["known"])))
    importlib.import_module("agentos.worker.tools.entered").know(known, "/snapshot")
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        sys.exit(f"the imports started {threads - 1} threads; a fork would copy their locks")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forked helpers end at once; nobody waits for them
    gc.freeze()  # a collection in a box must not touch, and so copy, the template's pages: one before finds nothing to give back
    gc.enable()
    _use_large_pages()
    control.send(json.dumps({"ready": True}).encode())
    program = bytes.fromhex(start["seccomp"])
    while True:
        message, fds, _, _ = socket.recv_fds(control, MESSAGE_MAX, _DESCRIPTORS_MAX)
        if not message:
            return
        try:
            if (os.fork() if _OWN_TID is None else _clone(_OWN_TID)) == 0:
                _box(fds, json.loads(message), program)
        except OSError as error:  # no process or namespace more: of this box, not of all
            Channel(socket.socket(fileno=os.dup(fds[2]))).send({"error": str(error)})
        for descriptor in fds:
            os.close(descriptor)


def _use_large_pages() -> None:
    """A fork copies what names each page of memory, so there are to be few; a kernel before 6.1 leaves it as it is."""
    with open("/proc/self/maps") as file:
        areas = [line.split() for line in file]
    for place, rights, _, _, inode, *name in areas:
        if (rights, inode) == ("rw-p", "0") and name in ([], ["[heap]"]):
            begin, end = (int(bound, 16) for bound in place.split("-"))
            begin, end = -(-begin // _LARGE) * _LARGE, end // _LARGE * _LARGE
            if begin < end:
                _LIBC.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), _MADV_COLLAPSE)


def _own_tid() -> int | None:
    """Where the C library keeps the number of its thread, which a clone has to set; None where nobody tells."""
    place = ctypes.c_void_p()
    if os.uname().machine not in _SYS_CLONE or _LIBC.prctl(_PR_GET_TID_ADDRESS, ctypes.byref(place), 0, 0, 0):
        return None
    kept = ctypes.c_int.from_address(place.value).value if place.value else 0
    return place.value if kept == threading.get_native_id() else None


_OWN_TID = _own_tid()
_IDS = os.getuid(), os.getgid()  # which in a namespace without a map nobody has


def _clone(own_tid: int) -> int:
    """As ``os.fork``, the child being in fresh namespaces, of its processes the first one.

    With unshare it takes two forks, each of which copies what names every page of this process.
    """
    number, *order = _SYS_CLONE[os.uname().machine]
    flags = _FRESH | _CHILD_SETTID | _CHILD_CLEARTID | signal.SIGCHLD
    ends = {"parent_tid": None, "child_tid": ctypes.c_void_p(own_tid), "tls": None}
    words = [ctypes.c_long(number), ctypes.c_long(flags), None, *(ends[name] for name in order)]
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = int(_LOCKED_LIBC.syscall(*words))
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
        return 0
    number = ctypes.get_errno()
    ctypes.pythonapi.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(number, f"clone: {os.strerror(number)}")
    return pid


def _box(fds: list[int], request: dict[str, Any], program: bytes) -> None:
    """In the forked child: become a box, serve, and never return."""
    try:
        reader, writer, greeting, *doors = keep(fds)
        hello = Channel(socket.socket(fileno=greeting))
        try:
            _become(request, doors, program)
            hello.send({"hello": os.getpid()})
        except (OSError, ValueError) as error:  # ValueError: a limit above the hard one
            hello.send({"error": str(error)})
            return
        hello.close()
        _serve(Channel((reader, writer)), request["entry"])
    finally:
        os._exit(0)


def _become(request: dict[str, Any], doors: list[int], program: bytes) -> None:
    """Every wall, in the one order in which each can still be built."""
    if _OWN_TID is not None:
        _map_user(*_IDS)
    else:
        _unshare()
        if os.fork() != 0:  # only a child is inside the new pid namespace: its first process
            os._exit(0)
    for door in doors:  # of its control groups: from here on everything counts
        os.write(door, b"0")
        os.close(door)
    _hide_groups()
    _mount(request)
    # kill(0) reaches a process group across pid namespaces, and the template's is shared by all
    os.setsid()
    lock_in(request, program)


def leave_the_pod(request: dict[str, Any]) -> None:
    """Every wall that a pod's description has no word for, built from within.

    A network of its own, without a way out; file systems that hold so many files; all that the node's runtime
    mounted, read-only. The pod's first process stays the box's: a pod has a pid namespace of its own.
    """
    _unshare(_FRESH & ~_NEW_PID)
    _hide_groups()
    _silence()  # the descriptors that it has are of the pod's own view
    _seal()
    _mount_places(request)
    for place in _HIDDEN:
        if os.path.isdir(place):
            _mount_one("tmpfs", place, _RDONLY | _NOSUID | _NODEV | _NOEXEC, "size=4k,nr_inodes=1")
    _loopback()
    os.chdir("/ws")


def lock_in(request: dict[str, Any], program: bytes) -> None:
    """The walls that a process builds around itself, wherever it runs."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a first process is immune only to what it does not handle
    _drop_capabilities()
    _limit(request)
    _filter_system_calls(program)


def _serve(channel: Channel, entry: str) -> None:
    """Wait for the kernel's word that the box is watched and its clock runs, then run the entry."""
    channel.receive(deadline=time.monotonic() + GO_S)
    call(entry, channel)


def call(entry: str, channel: Channel) -> None:
    """Run ``module:function`` with the channel; what it raises is sent on: whatever it is, the kernel must hear of it."""
    module, _, function = entry.partition(":")
    try:
        getattr(importlib.import_module(module), function)(channel)
    except Exception as error:  # noqa: BLE001 - the entry's own fault, sent on as data
        message = f"{type(error).__name__}: {error}"[:10_000].encode("utf-8", "backslashreplace").decode()
        fault = {"type": "worker", "message": message, "where": entry, "resource": ""}
        channel.send({"type": "fault", "fault": fault})


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _unshare(kinds: int = _FRESH) -> None:
    ids = os.getuid(), os.getgid()
    _check(_LIBC.unshare(kinds), "unshare")
    _map_user(*ids)


def _map_user(uid: int, gid: int) -> None:
    """In a fresh user namespace these are what they were outside."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _hide_groups() -> None:
    """The control groups that it is in now look like the top."""
    _check(_LIBC.unshare(_CGROUP), "unshare cgroup")


def _seal() -> None:
    """What is mounted so far takes no more writing, and no setuid; what else it is refused, it stays refused."""
    with open("/proc/self/mountinfo") as file:
        mounts = [line.split() for line in file]
    for fields in mounts:
        options = fields[5].split(",")
        flags = _REMOUNT | _BIND | _RDONLY | _NOSUID
        flags |= sum(flag for name, flag in (("nodev", _NODEV), ("noexec", _NOEXEC)) if name in options)
        place = fields[4].encode().decode("unicode_escape")  # \\040 for a space
        _check(_LIBC.mount(None, place.encode("latin-1"), None, flags, None), f"mount {place} read-only")


def _mount(request: dict[str, Any]) -> None:
    """Fresh file systems over every place that is not read-only already, and a fresh /proc.

    All of /proc is read-only: where the kernel lets a namespace's own user write below
    /proc/sys, a handler could be planted that runs outside (core_pattern).
    """
    _mount_places(request)
    # no terminals: the machine has few for all
    _mount_one("tmpfs", "/dev/pts", _RDONLY | _NOSUID | _NODEV | _NOEXEC, "size=4k,nr_inodes=1")
    _mount_one("proc", "/proc", _NOSUID | _NODEV | _NOEXEC, None)
    for name, value in request["sysctls"].items():
        with open(f"/proc/sys/{name.replace('.', '/')}", "w") as file:
            file.write(value)
    flags = _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV | _NOEXEC
    _check(_LIBC.mount(None, b"/proc", None, flags, None), "mount /proc read-only")
    _loopback()
    os.chdir("/ws")


def _mount_places(request: dict[str, Any]) -> None:
    for path, size_kb in request["tmpfs"].items():
        options = f"size={size_kb}k,nr_inodes={request['inodes']},mode=0700"
        _mount_one("tmpfs", path, _NOSUID | _NODEV, options)


def _loopback() -> None:
    """Up, for this box alone."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        query = struct.pack("16sH14x", b"lo", 0)
        (flags,) = struct.unpack_from("16xH", fcntl.ioctl(sock, _SIOCGIFFLAGS, query))
        fcntl.ioctl(sock, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))


def _mount_one(kind: str, path: str, flags: int, options: str | None) -> None:
    data = options.encode() if options else None
    _check(_LIBC.mount(kind.encode(), path.encode(), kind.encode(), flags, data), f"mount {path}")


def _drop_capabilities() -> None:
    """None now, none ever again, and no way for a child of equal uid to look into this process."""
    _check(_LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    _check(_LIBC.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "ambient capabilities")
    last = 0
    while _LIBC.prctl(_PR_CAPBSET_DROP, last, 0, 0, 0) == 0:  # ends at the first number unknown
        last += 1
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    _check(_LIBC.capset(header, bytes(24)), "capset")
    _check(_LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0), "dumpable")


def _limit(request: dict[str, Any]) -> None:
    for name, value in request["rlimits"].items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
    if "memory" in request:
        with open("/proc/self/statm") as file:
            mapped = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + request["memory"],) * 2)
    os.umask(0o022)


def _silence() -> None:
    """Standard input, output and error are nowhere."""
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)


def keep(fds: list[int]) -> list[int]:
    """Nothing but these stays open: they become 3, 4, … in this order, and nothing that is started gets them."""
    _silence()
    aside = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, _ASIDE) for descriptor in fds]
    kept = [os.dup2(descriptor, 3 + number, inheritable=False) for number, descriptor in enumerate(aside)]
    os.closerange(3 + len(kept), 1 << 20)
    return kept


def _filter_system_calls(program: bytes) -> None:
    buffer = ctypes.create_string_buffer(program, len(program))
    filtered = _Program(len(program) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    _check(_LIBC.prctl(_PR_SET_SECCOMP, 2, ctypes.byref(filtered), 0, 0), "seccomp")
