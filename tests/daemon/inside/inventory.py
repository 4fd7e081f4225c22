"""Everything that can be read from inside a box: name -> text. Runs in a harness, in a tool, or in a search."""

import gc
import os
import resource
import socket
import sys
import threading

_MOST = 1 << 16
_BINARY = {
    "mem",
    "pagemap",
    "clear_refs",
    "kpagecount",
    "kpageflags",
    "kpagecgroup",
    "kcore",
    "kmsg",
    "vmcore",
}
_TREES = ("/proc", "/sys", "/dev", "/run", "/ws", "/snapshot", "/tmp", "/etc")
_STATIC = ("/usr", "/opt", sys.base_prefix)  # read-only, and large: its top is enough


def everything():
    """As above. Nothing is left out because it seems harmless: the test decides."""
    found = {}
    for tree in _TREES:
        _walk(tree, found)
    for name in sorted(os.listdir("/")):
        found[f"stat /{name}"] = _stat(f"/{name}")
    for place in _STATIC:
        found[f"list {place}"] = " ".join(sorted(os.listdir(place))) if os.path.isdir(place) else ""
    found |= _process()
    return found


def _walk(tree, found):
    pending = [tree]
    while pending:
        folder = pending.pop()
        try:
            names = os.listdir(folder)  # in the order in which the kernel gives them
        except OSError as error:
            found[f"list {folder}"] = type(error).__name__
            continue
        found[f"list {folder}"] = " ".join(names)
        for name in names:
            path = f"{folder}/{name}"
            found[f"stat {path}"] = _stat(path)
            if os.path.islink(path):
                found[f"link {path}"] = _link(path)
            elif os.path.isdir(path):
                if path.count("/") < 9:
                    pending.append(path)
            elif name not in _BINARY:
                found[path] = _text(path)


def _stat(path):
    try:
        said = os.lstat(path)
    except OSError as error:
        return type(error).__name__
    return f"{said.st_mode:o} {said.st_nlink} {said.st_uid}:{said.st_gid} {said.st_size} {said.st_rdev}"


def _link(path):
    try:
        return os.readlink(path)
    except OSError as error:
        return type(error).__name__


def _text(path):
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError as error:
        return type(error).__name__
    read = b""
    try:
        # a page of /proc at a time
        while len(read) < _MOST and (more := os.read(descriptor, _MOST - len(read))):
            read += more
    except OSError as error:
        return read.decode("utf-8", "replace") or type(error).__name__
    finally:
        os.close(descriptor)
    return read.decode("utf-8", "replace")


def _process():
    names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    found = {f"limit {name}": str(resource.getrlimit(getattr(resource, name))) for name in names}
    found |= {f"env {name}": value for name, value in os.environ.items()}
    found |= {f"env order {number}": name for number, name in enumerate(os.environ)}
    for number in sorted(map(int, os.listdir("/proc/self/fd"))):
        found[f"descriptor {number}"] = _link(f"/proc/self/fd/{number}")
    for place in ("/", "/ws", "/tmp", "/snapshot", "/dev/shm", "/dev", "/proc"):
        said = os.statvfs(place)
        found[f"statvfs {place}"] = (
            f"{said.f_bsize} {said.f_blocks} {said.f_files} {said.f_flag} {said.f_namemax}"
        )
        found[f"statvfs free {place}"] = f"{said.f_bfree} {said.f_ffree}"
    found |= {
        "uname": " ".join(os.uname()),
        "hostname": socket.gethostname(),
        "cwd": os.getcwd(),
        "ids": f"{os.getresuid()} {os.getresgid()} {os.getgroups()}",
        "pids": f"{os.getpid()} {os.getppid()} {os.getpgid(0)} {os.getsid(0)}",
        "affinity": str(sorted(os.sched_getaffinity(0))),
        "priority": f"{os.getpriority(os.PRIO_PROCESS, 0)} {os.sched_getscheduler(0)}",
        "argv": repr((sys.argv, sys.orig_argv, sys.executable, sys.flags, sys.path)),
        "modules": " ".join(sorted(sys.modules)),
        "threads": " ".join(thread.name for thread in threading.enumerate()),
        "gc": f"{gc.isenabled()} {gc.get_threshold()}",
        "umask": str(_umask()),
    }
    return found


def _umask():
    before = os.umask(0o22)
    os.umask(before)
    return before
