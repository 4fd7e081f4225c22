"""What hostile code would try, one function for each attack: "" when it was stopped, else the loot.

Run inside a box through ``guest.serve``, and by ``test_attacks.py`` also outside or in a weak box,
to see that the attack itself works. Bounded and harmless: canaries of the test, loopback only.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import platform
import pty
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"
NEW_USER, NEW_NET = 0x10000000, 0x40000000


def refused(attempt: Callable[[], object]) -> str:
    try:
        result = attempt()
    except (OSError, ValueError):
        return ""
    return f"it worked: {result!r}"[:200]


def denied(x86: int, arm: int, *arguments: object) -> str:
    """A system call must be refused by the filter: EPERM, or as if it did not exist."""
    ctypes.set_errno(0)
    result = LIBC.syscall(x86 if X86 else arm, *arguments)
    number = ctypes.get_errno()
    stopped = result == -1 and number in (errno.EPERM, errno.ENOSYS, errno.EAFNOSUPPORT)
    return "" if stopped else f"returned {result}, {errno.errorcode.get(number, number)}"


def first(*findings: str) -> str:
    return next((finding for finding in findings if finding), "")


def works(*command: str) -> bool:
    """Whether a program is there and ends well."""
    with contextlib.suppress(OSError):
        return subprocess.run(command, capture_output=True).returncode == 0
    return False


def in_child(work: Callable[[], object]) -> int:
    """Wait status of a forked child that runs ``work``."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            work()
            os._exit(0)
        os._exit(1)
    return os.waitpid(child, 0)[1]


# --- the host ---------------------------------------------------------------------------------


def host_file(path: str) -> str:
    return refused(lambda: Path(path).read_text())


def host_environment(name: str) -> str:
    found = os.environ.get(name, "")
    with contextlib.suppress(OSError):
        found += Path("/proc/1/environ").read_bytes().decode(errors="replace") if os.getpid() != 1 else ""
    return f"read {name}" if name in found or os.environ.get(name) else ""


def host_files_by_place() -> str:
    expected = {
        "bin",
        "dev",
        "etc",
        "lib",
        "lib32",
        "lib64",
        "opt",
        "proc",
        "sbin",
        "snapshot",
        "tmp",
        "usr",
        "ws",
    }
    expected.add(Path(sys.base_prefix).parts[1])
    in_etc = {"ld.so.cache", "alternatives", "passwd", "group", "hosts"}
    if os.path.exists("/.dockerenv"):  # what the engine puts into every container
        expected |= {".dockerenv", "run", "sys"}
        in_etc |= {"hostname", "mtab", "resolv.conf"}
    strange = set(os.listdir("/")) - expected
    etc = set(os.listdir("/etc")) - in_etc
    for place in ("/sys", "/run/agentos"):
        strange |= set(os.listdir(place)) if os.path.isdir(place) else set()
    told = Path("/etc/resolv.conf").read_text() if os.path.exists("/etc/resolv.conf") else ""
    servers = [line for line in told.splitlines() if line.startswith(("nameserver", "search"))]
    strange |= set(servers) - {"nameserver 127.0.0.1"}
    return f"sees {sorted(strange | etc)}" if strange or etc else ""


def host_loopback(port: int) -> str:
    return refused(lambda: socket.create_connection(("127.0.0.1", port), 2))


def host_abstract_socket(name: str) -> str:
    return refused(lambda: socket.socket(socket.AF_UNIX).connect("\0" + name))


def host_path_socket(path: str) -> str:
    return refused(lambda: socket.socket(socket.AF_UNIX).connect(path))


def host_process(pid: int) -> str:
    with contextlib.suppress(OSError):
        os.kill(pid, 0)
        return f"can signal {pid}"
    return ""


def network() -> str:
    """No interface but a loopback of its own, no route, so also no metadata service."""
    names = [line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]]
    routes = Path("/proc/net/route").read_text().splitlines()[1:]
    metadata = refused(lambda: socket.create_connection(("169.254.169.254", 80), 2))
    return first(
        metadata, f"interfaces {names}" if names != ["lo"] else "", f"routes {routes}" if routes else ""
    )


def visible_processes() -> str:
    others = [name for name in os.listdir("/proc") if name.isdigit() and int(name) not in (1, os.getpid())]
    return f"sees {others}" if others or os.getpid() != 1 else ""


def shared_memory() -> str:
    """A writable mapping that outlived the fork would be a wire to every sibling."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    shared = [line for line in lines if line.split()[1].startswith("rw") and line.split()[1].endswith("s")]
    return f"shares {shared}" if shared else ""


def write_outside(*directories: str) -> str:
    def write(directory: str) -> str:
        path = Path(directory) / "agentos-attack"
        path.write_text("x")
        path.unlink()
        return directory

    return first(*(refused(lambda place=place: write(place)) for place in directories))  # type: ignore[misc]


def write_anywhere() -> str:
    """Every directory that the read-only part consists of, and the code the worker runs on."""
    places = [
        "/",
        "/etc",
        "/opt",
        "/usr",
        "/usr/bin",
        "/dev",
        "/proc",
        *sys.path,
        sys.base_prefix,
        *os.listdir("/"),
    ]
    places += [str(path) for path in Path("/opt").glob("*/agentos")]
    writable = {"ws", "tmp", "snapshot"}
    return write_outside(*(place for place in places if place not in writable and os.path.isdir(place)))


def inherited_descriptors() -> str:
    def target(name: str) -> str:
        try:
            return os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            return "gone"  # the listing's own

    found = {int(name): target(name) for name in os.listdir("/proc/self/fd")}
    strange = {
        number: path
        for number, path in found.items()
        if path not in ("/dev/null", "gone") and number not in (3, 4)
    }
    return f"holds {strange}" if strange else ""


# --- the kernel -------------------------------------------------------------------------------


def kernel_settings() -> str:
    """Nothing below /proc/sys can be written: a core_pattern handler would run outside as root."""
    for directory, _, names in os.walk("/proc/sys"):
        for name in names:
            path = os.path.join(directory, name)
            if os.access(path, os.W_OK):
                return f"{path} is writable"
    return refused(lambda: os.close(os.open("/proc/sysrq-trigger", os.O_WRONLY)))


def tracing() -> str:
    def attach() -> None:
        if LIBC.ptrace(16, os.getppid(), 0, 0) != 0:  # PTRACE_ATTACH
            raise OSError

    traceme = in_child(lambda: os._exit(0 if LIBC.ptrace(0, 0, 0, 0) == 0 else 1))
    return first(
        "PTRACE_TRACEME is allowed" if traceme == 0 else "",
        "attached to the parent" if in_child(attach) == 0 else "",
        denied(310, 270, os.getppid(), None, 0, None, 0, 0),  # process_vm_readv
        denied(438, 438, 0, 0, 0),  # pidfd_getfd
    )


def first_process() -> str:
    """A child of equal uid looks into or ends the worker."""

    def look() -> None:
        for name in ("mem", "environ", "maps", "fd/3"):
            with contextlib.suppress(OSError), open(f"/proc/1/{name}", "rb") as file:
                file.read(1)
                return
        raise OSError

    def end() -> None:
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP, signal.SIGINT):
            os.kill(1, number)

    before = os.getpid()
    in_child(end)
    return first(
        "read the worker's memory or files" if in_child(look) == 0 else "", "" if before == 1 else "no init"
    )


def mounting() -> str:
    return first(
        denied(165, 40, b"tmpfs", b"/tmp", b"tmpfs", 0, None),
        denied(166, 39, b"/proc", 2),
        denied(155, 41, b"/ws", b"/ws"),
        denied(161, 51, b"/ws"),
        denied(428, 428, -100, b"/", 1),
        denied(429, 429, -1, b"", -1, b"/ws", 0),
        denied(430, 430, b"tmpfs", 0),
        denied(442, 442, -1, b"/", 0, None, 0),
    )


def namespaces() -> str:
    return first(
        denied(272, 97, NEW_USER),
        denied(272, 97, NEW_NET),
        denied(56, 220, NEW_USER | signal.SIGCHLD, 0, 0, 0, 0),
        denied(435, 435, None, 0),
        refused(lambda: _setns()),
        "unshare(1) worked" if works("unshare", "--user", "true") else "",
    )


def _setns() -> None:
    with open("/proc/self/ns/net") as file:
        if LIBC.setns(file.fileno(), 0) != 0:
            raise OSError


def identity() -> str:
    suid = Path("/ws/suid") if os.path.isdir("/ws") else Path("/tmp/suid")
    suid.write_bytes(b"")
    status = Path("/proc/self/status").read_text()
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    options = {line.split()[4]: line.split()[5].split(",") for line in lines}
    loose = [place for place, found in options.items() if "rw" in found and "nosuid" not in found]
    return first(
        *(refused(lambda: os.setuid(0)), refused(lambda: os.setgid(0)), refused(lambda: os.setgroups([0]))),
        refused(lambda: os.chown(suid, 0, 0)),
        "" if "NoNewPrivs:\t1" in status else "privileges can be gained",
        "" if "CapEff:\t0000000000000000" in status else "it has capabilities",
        f"setuid works on {loose}" if loose else "",
        "su worked" if works("su", "-c", "true") else "",
    )


def keyrings() -> str:
    return first(
        denied(250, 219, 0, -3, 1),
        denied(248, 217, b"user", b"k", b"v", 1, -3),
        denied(249, 218, b"user", b"k", None, -3),
    )


def terminal() -> str:
    """Typing into another's terminal; the call itself must fail, and there is none to open."""
    return first(
        denied(16, 29, 0, 0x5412, b"x"),  # TIOCSTI
        denied(16, 29, 0, 0x541C, b"\2"),  # TIOCLINUX
        refused(lambda: os.close(os.open("/dev/tty", os.O_RDWR))),
        refused(pty.openpty),
    )


def clock() -> str:
    return first(
        refused(lambda: time.clock_settime(time.CLOCK_REALTIME, time.time())),
        denied(164, 170, None, None),
        denied(159, 171, None),
        denied(305, 266, 0, None),
    )


def devices() -> str:
    known = {"null", "zero", "full", "random", "urandom", "tty", "pts", "ptmx", "shm", "fd", "core"}
    strange = set(os.listdir("/dev")) - known - {"stdin", "stdout", "stderr", "console", "mqueue"}
    if os.path.isdir("/dev/mqueue") and (os.listdir("/dev/mqueue") or os.access("/dev/mqueue", os.W_OK)):
        strange.add("mqueue")
    where = "/ws/node" if os.path.isdir("/ws") else "/tmp/node"
    return first(
        f"sees {sorted(strange)}" if strange else "",
        refused(lambda: os.mknod(where, 0o60600, os.makedev(8, 0))),
        refused(lambda: os.mknod(where, 0o20600, os.makedev(1, 1))),
        "/dev/shm is executable as setuid" if os.statvfs("/dev/shm").f_flag & os.ST_NOSUID == 0 else "",
    )


def exotic_calls() -> str:
    """Dependencies of the kernel that reach past a namespace or have been ways out of it."""
    families = {"netlink": 16, "packet": 17, "alg": 38, "vsock": 40, "xdp": 44, "bluetooth": 31}
    opened = [
        name
        for name, family in families.items()
        if refused(lambda f=family: socket.socket(f, socket.SOCK_RAW))
    ]  # type: ignore[misc]
    opened += [
        name
        for name, family in families.items()
        if refused(lambda f=family: socket.socket(f, socket.SOCK_DGRAM))
    ]  # type: ignore[misc]
    return first(
        f"sockets of {opened}" if opened else "",
        denied(425, 425, 1, None),  # io_uring_setup
        denied(321, 280, 0, None, 0),  # bpf
        denied(298, 241, None, 0, -1, -1, 0),  # perf_event_open
        denied(323, 282, 0),  # userfaultfd
        denied(246, 104, 0, 0, None, 0),  # kexec_load
        denied(175, 105, None, 0, b""),  # init_module
        denied(304, 265, -1, None, 0),  # open_by_handle_at
        denied(169, 142, 0, 0, 0),  # reboot, with wrong magic numbers
        denied(103, 116, 10, None, 0),  # syslog
    )


def shared_kernel() -> str:
    """What the kernel keeps for the whole machine, and charges to nobody."""

    def linger() -> None:
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))

    return first(
        denied(206, 0, 1, None),  # io_setup: the machine has 65,536 events
        denied(162, 81),  # sync
        denied(306, 267, 0),  # syncfs
        denied(240, 180, b"/x", os.O_CREAT | os.O_RDWR, 0o600, None),  # mq_open
        denied(278, 75, 0, None, 0, 0),  # vmsplice
        denied(237, 235, None, 0, 0, None, 0, 0),  # mbind
        refused(linger),
    )


def raw_socket() -> str:
    return refused(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))


def other_numbers() -> str:
    """The same calls by the numbers of 32-bit programs, which the filter must not overlook."""
    if not X86:
        return ""

    def by_interrupt() -> None:
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # mov eax, getpid; int 0x80; ret
        ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()

    status = in_child(by_interrupt)
    stopped = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGSYS, signal.SIGSEGV)
    x32 = in_child(lambda: os._exit(0 if LIBC.syscall(0x40000000 | 39) != -1 else 1))  # getpid
    return first("" if stopped else "int 0x80 works", "" if x32 != 0 else "x32 numbers work")


def core_dump() -> str:
    where = "/ws" if os.path.isdir("/ws") else os.getcwd()
    status = in_child(lambda: (os.chdir(where), os.abort()))
    left = [name for name in os.listdir(where) if "core" in name]
    return "a core was written" if os.WCOREDUMP(status) or left else ""


def raise_limit(name: str) -> None:
    """Beyond what it is; a container has no NPROC, its processes are counted by a control group."""
    number = getattr(resource, f"RLIMIT_{name}")
    most = resource.getrlimit(number)[1]
    if name == "NPROC" and most == resource.RLIM_INFINITY and os.path.exists("/.dockerenv"):
        raise OSError
    resource.setrlimit(number, (resource.RLIM_INFINITY if most == resource.RLIM_INFINITY else most + 1,) * 2)


def priorities() -> str:
    return first(
        refused(lambda: os.nice(-1)),
        refused(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))),
        *(
            refused(lambda limit=limit: raise_limit(limit))
            for limit in ("NPROC", "AS", "FSIZE", "CORE", "NOFILE")
        ),  # type: ignore[misc]
    )


# --- siblings ---------------------------------------------------------------------------------


def hide_something(secret: str) -> list[int]:
    """In one box: put the secret everywhere, and listen on everything."""
    for place in ("/ws", "/tmp", "/dev/shm", "/snapshot"):
        Path(place, secret).write_text(secret)
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind("\0" + secret)
    abstract.listen()
    loopback = socket.create_server(("127.0.0.1", 0))
    subprocess.Popen(["sleep", "60"])
    segment = LIBC.shmget(4711, 4096, 0o1666)
    globals()["kept"] = (abstract, loopback)
    return [loopback.getsockname()[1], segment]


def find_something(secret: str, port: int) -> str:
    """In the other: find any of it."""
    files = [place for place in ("/ws", "/tmp", "/dev/shm", "/snapshot") if Path(place, secret).exists()]
    running = [name for name in os.listdir("/proc") if name.isdigit() and name != "1"]
    return first(
        f"files in {files}" if files else "",
        f"processes {running}" if running else "",
        host_abstract_socket(secret),
        host_loopback(port),
        "a shared memory segment" if LIBC.shmget(4711, 4096, 0) != -1 else "",
    )


def control_group() -> str:
    """Its own place among the control groups: a name there once said for which run a box was made."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    return first(*(line for line in lines if line.split(":", 2)[2] != "/"))


def kill_everything() -> str:
    """All that a signal can be aimed at without a pid, by a child, so that the caller lives to tell."""

    def shoot() -> None:
        for target in (0, -1):
            with contextlib.suppress(OSError):
                os.kill(target, signal.SIGKILL)

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.kill(0, signal.SIGTERM)
    in_child(shoot)
    return f"the parent {os.getppid()} is in reach" if os.getppid() != 0 else ""
