"""Starts the template: which command line, seeing which directories, as whom.

The kernel never runs bubblewrap as uid 0: the sandbox's user would then be host root, and files
like ``core_pattern`` would open to it. As root it becomes the run uid first, in a private mount
namespace where the few directories that uid may not reach by itself (a virtual environment
below ``/root``) stand under other names.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import agentos
from agentos.errors import ErrorKind, Unavailable
from agentos.sandboxes.box import worker_environment

LABEL_VARIABLE = "AGENTOS_SANDBOX"  # in bubblewrap's own environment, for the reaper
START_S = 60.0
_LIBRARIES = ("pydantic", "pydantic_core", "jsonschema", "langgraph")
_VISIBLE = (
    "__init__.py", "wire.py", "messages.py", "checks.py", "syntax.py", "frontmatter.py", "programs.py", "worker",
)  # fmt: skip
_SITE, _KERNEL, _EXTRA = "/opt/site-{}", "/opt/agentos", "/opt/extra-{}"
_PASSWD = b"nobody:x:65534:65534:sandbox:/tmp:/bin/sh\n"
_GROUP = b"nogroup:x:65534:\n"
_HOSTS = b"127.0.0.1 localhost sandbox\n::1 localhost\n"
_BOOT = "import sys; sys.path += {path!r}; from agentos.worker.template import main; main(0)"

# In a private mount namespace, so /sys is covered for nobody else; bubblewrap needs nothing of it,
# nothing that we bind lies below it, and unlike a directory of our own it leaves no trace.
_STAGE = """
mount -t tmpfs -o mode=755 tmpfs /sys
n=0
while [ "$1" != -- ]; do
    mkdir /sys/$n; mount --bind "$1" /sys/$n; n=$((n + 1)); shift
done
shift
exec "$@"
"""


@dataclass(frozen=True, slots=True)
class Runtime:
    """The host's directories that a sandbox gets to see, read-only."""

    prefix: Path  # of the interpreter, seen at its own path (its shared libraries are found so)
    sites: tuple[Path, ...]  # where the installed libraries lie
    package: Path  # agentos itself, of which only the worker's side is shown
    extra: tuple[Path, ...] = ()  # further directories of modules

    @classmethod
    def here(cls, extra: tuple[Path, ...] = ()) -> Runtime:
        """The one this process runs on."""
        sites: list[Path] = []
        for library in _LIBRARIES:
            spec = importlib.util.find_spec(library)
            if spec is None or not spec.submodule_search_locations:
                raise Unavailable(
                    f"The library {library} is not installed: install agentos-daemon again.",
                    kind=ErrorKind.NOT_INSTALLED,
                )
            site = Path(next(iter(spec.submodule_search_locations))).parent
            if site not in sites:
                sites.append(site)
        package = Path(agentos.__file__).parent
        return cls(Path(sys.base_prefix).resolve(), tuple(sites), package, extra)

    def sources(self) -> tuple[Path, ...]:
        return (self.prefix, self.package, *self.sites, *self.extra)


def require(run_uid: int | None) -> str:
    """The path of bubblewrap; raises Unavailable with what to install or set."""
    program = shutil.which("bwrap")
    if program is None:
        raise Unavailable(
            "The sandbox needs bubblewrap, and there is no bwrap on the PATH: type `apt-get install bubblewrap`.",
            kind=ErrorKind.NOT_INSTALLED,
        )
    if os.geteuid() == 0:
        if not run_uid:
            raise Unavailable(
                "The sandbox is never started by root itself: set run_uid in agentos.toml to a uid "
                "that owns nothing, such as 65600.",
                kind=ErrorKind.USAGE,
            )
        missing = [name for name in ("unshare", "setpriv", "mount") if shutil.which(name) is None]
        if missing:
            raise Unavailable(
                f"The sandbox needs {', '.join(missing)}: type `apt-get install util-linux mount`.",
                kind=ErrorKind.NOT_INSTALLED,
            )
    return program


def command(program: str, runtime: Runtime, run_uid: int | None, data: list[int]) -> list[str]:
    """The whole command line; ``data`` are descriptors of passwd, group and hosts.

    The template speaks on its standard input: a descriptor's number would stand in the command line, which
    can be read inside, and differ from daemon to daemon.
    """
    as_root = os.geteuid() == 0
    sources = runtime.sources()
    seen = {path: Path(f"/sys/{n}") if as_root else path for n, path in enumerate(sources)}
    wrapped = [program, *_isolation(), *_system(data), *_python(runtime, seen)]
    if not as_root:
        return wrapped
    drop = ["setpriv", f"--reuid={run_uid}", f"--regid={run_uid}", "--clear-groups", "--pdeathsig=KILL", "--"]
    stage = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", _STAGE, "sh"]
    return [*stage, *map(str, sources), "--", *drop, *wrapped]


def _isolation() -> list[str]:
    return [
        *("--unshare-all", "--unshare-user", "--uid", "65534", "--gid", "65534", "--cap-drop", "ALL"),
        *("--die-with-parent", "--new-session", "--clearenv", "--hostname", "sandbox"),
    ]


def _system(data: list[int]) -> list[str]:
    arguments = ["--ro-bind", "/usr", "/usr"]
    for name in ("lib", "lib64", "lib32", "bin", "sbin"):
        host = Path("/") / name
        if host.is_symlink():
            arguments += ["--symlink", f"usr/{name}", f"/{name}"]
        elif host.is_dir():
            arguments += ["--ro-bind", f"/{name}", f"/{name}"]
    for path in ("/etc/ld.so.cache", "/etc/alternatives"):
        arguments += ["--ro-bind-try", path, path]
    for descriptor, path in zip(data, ("/etc/passwd", "/etc/group", "/etc/hosts"), strict=True):
        arguments += ["--ro-bind-data", str(descriptor), path]
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    for path in ("/tmp", "/ws", "/snapshot"):  # noqa: S108 - the sandbox's own, covered anew in every box
        arguments += ["--dir", path]
    return arguments


def _python(runtime: Runtime, seen: dict[Path, Path]) -> list[str]:
    arguments: list[str] = []
    if not runtime.prefix.is_relative_to("/usr"):
        arguments += ["--ro-bind", str(seen[runtime.prefix]), str(runtime.prefix)]
    path = [_KERNEL]
    for name in _VISIBLE:
        if (runtime.package / name).exists():
            arguments += ["--ro-bind", str(seen[runtime.package] / name), f"{_KERNEL}/agentos/{name}"]
    for number, site in enumerate(runtime.sites):
        arguments += ["--ro-bind", str(seen[site]), _SITE.format(number)]
        if (site / "agentos").is_dir():  # the whole package, where it is installed: not for the sandbox
            hidden = _SITE.format(number) + "/agentos"
            arguments += ["--tmpfs", hidden, "--remount-ro", hidden]
        path.append(_SITE.format(number))
    for number, extra in enumerate(runtime.extra):
        arguments += ["--ro-bind", str(seen[extra]), _EXTRA.format(number)]
        path.append(_EXTRA.format(number))
    python = runtime.prefix / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    for name, value in worker_environment(path, f"{runtime.prefix}/bin").items():
        arguments += ["--setenv", name, value]
    boot = _BOOT.format(path=path)
    # last, the file systems made so far close: boxes share them and must find nothing to write to
    return [
        *arguments,
        "--remount-ro",
        "/dev",
        "--remount-ro",
        "/",
        "--",
        str(python),
        "-I",
        "-S",
        "-c",
        boot,
    ]


class Template:
    """One running template. Made and ended by the adapter; ``spawn`` may be called by any thread.

    bubblewrap dies with the *thread* that started it, so the template has one of its own, which
    lives as long as it does.
    """

    def __init__(self, arguments: dict[str, Any], runtime: Runtime, run_uid: int | None, label: str) -> None:
        program = require(run_uid)
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
        self._process: subprocess.Popen[bytes] | None = None
        started = threading.Event()

        def keep() -> None:
            data: list[int] = []
            try:
                for content in (_PASSWD, _GROUP, _HOSTS):
                    data.append(_memory_file(content))
                self._process = subprocess.Popen(
                    command(program, runtime, run_uid, data),
                    stdin=theirs.fileno(),
                    stdout=self._errors,
                    stderr=self._errors,
                    pass_fds=data,
                    env={"PATH": os.environ.get("PATH", os.defpath), LABEL_VARIABLE: label},
                    cwd="/",
                    start_new_session=True,  # Ctrl-C in a terminal is for the daemon, which drains
                )
            except OSError as error:
                self._errors.write(str(error).encode())
                return
            finally:
                for descriptor in data:
                    os.close(descriptor)
                theirs.close()
                started.set()
            self._process.wait()

        self._keeper = threading.Thread(target=keep, name="sandbox-template", daemon=True)
        self._keeper.start()
        started.wait()
        try:
            self._control.settimeout(START_S)
            self._control.send(json.dumps(arguments).encode())
            answer = self._control.recv(1 << 16)
        except OSError:
            answer = b""
        if not answer:
            detail = self.close()
            raise Unavailable(f"bubblewrap could not start the sandbox{_remedy(detail)}")
        self._control.settimeout(None)

    @property
    def pid(self) -> int:
        """Of bubblewrap itself, on the host."""
        return self._process.pid if self._process else -1

    def alive(self) -> bool:
        """Whether it still runs."""
        return self._keeper.is_alive()

    def ended(self, within_s: float) -> bool:
        """Whether it ends within that time (its boxes may be seen to die a moment before it)."""
        self._keeper.join(within_s)
        return not self._keeper.is_alive()

    def spawn(self, request: dict[str, Any], descriptors: list[int]) -> None:
        """Ask for a box with these: the pipes that it reads and writes, the socket for its greeting, and
        the doors of its control groups. Raises Unavailable when the template is gone.
        """
        try:
            socket.send_fds(self._control, [json.dumps(request).encode()], descriptors)
        except OSError as error:
            raise Unavailable(f"the sandbox template is gone: {error}") from None

    def close(self) -> str:
        """End it and every box in it; what it wrote on standard error, for a message."""
        self._control.close()
        if self._process is not None:
            self._process.kill()
        self._keeper.join()
        if self._errors.closed:
            return ""
        self._errors.seek(0)
        text = self._errors.read()[-2000:].decode("utf-8", "replace").strip()
        self._errors.close()
        return text


def _memory_file(content: bytes) -> int:
    descriptor = os.memfd_create("agentos")
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _remedy(detail: str) -> str:
    """The reason, and for the ones that are known what to type."""
    if "setting up uid map" in detail or "No permissions to create" in detail:
        if Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").exists():
            return (
                ": this machine's AppArmor forbids user namespaces to bubblewrap. "
                "Give it a profile: see docs/understand/security.md, section AppArmor."
            )
        return (
            ": this machine forbids user namespaces. Type `sysctl -w kernel.unprivileged_userns_clone=1 "
            "user.max_user_namespaces=10000`; inside a container, user namespaces must be allowed from outside."
        )
    if "mount proc" in detail:
        return (
            ": this container hides parts of /proc, so no sandbox can have one of its own. Allow it from outside "
            "(docker run --security-opt systempaths=unconfined), or run on the host."
        )
    if "temporarily unavailable" in detail:
        return ": it may start no further process: raise the daemon's limit (ulimit -u, TasksMax=)"
    return f": {detail.splitlines()[-1] if detail else 'it said nothing'}"
