"""The command line of the template: seeing which directories, as whom; and what to do where it does not start.

The kernel never runs bubblewrap as uid 0: the sandbox's user would then be host root, and files
like ``core_pattern`` would open to it. As root it becomes the run uid first, in a private mount
namespace where the few directories that uid may not reach by itself (a virtual environment
below ``/root``) stand under other names.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import agentos
from agentos.errors import ErrorKind, Unavailable, to_type
from agentos.sandboxes.box import worker_environment

LABEL_VARIABLE = "AGENTOS_SANDBOX"  # in bubblewrap's own environment, for the reaper
_LIBRARIES = ("pydantic", "pydantic_core", "jsonschema", "langgraph")
_VISIBLE = (
    "__init__.py", "wire.py", "messages.py", "checks.py", "syntax.py", "frontmatter.py", "programs.py", "worker",
)  # fmt: skip
_SITE, _KERNEL, _EXTRA = "/opt/site-{}", "/opt/agentos", "/opt/extra-{}"
# What stands in passwd, group and hosts there.
FILES = (
    b"nobody:x:65534:65534:sandbox:/tmp:/bin/sh\n",
    b"nogroup:x:65534:\n",
    b"127.0.0.1 localhost sandbox\n::1 localhost\n",
)
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
            "The sandbox needs bubblewrap, and there is no bwrap on the PATH: type ",
            to_type("apt-get install bubblewrap"),
            ".",
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
                f"The sandbox needs {', '.join(missing)}: type ",
                to_type("apt-get install util-linux mount"),
                ".",
                kind=ErrorKind.NOT_INSTALLED,
            )
    return program


def command(program: str, runtime: Runtime, run_uid: int | None, data: list[int]) -> list[str]:
    """The whole command line; ``data`` are descriptors of ``FILES``.

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


def remedy(detail: str) -> str:
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
