"""Where a server's code comes from: wheels that are locked, or files of an npm package, kept by their SHA-256.

Both are had on the host, once, when the server is added, as the person's own pip and npm are set up; no code of a
package is run there. What is kept is what every later run gets.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agentos.durable import write_whole
from agentos.errors import ErrorKind, Invalid, Unavailable, UserError, to_type
from agentos.home import Home
from agentos.sandboxes.plainfiles import write_tar

_TIMEOUT_S = 300.0
_FILES_MAX, _MB_MAX = 3_500, 64  # of the 4,096 files that a box's file system takes
# No program of a package reads these.
_NOT_RUN = (".d.ts", ".d.mts", ".d.cts", ".map", ".md", ".markdown")
_OPTIONS = {"-y", "--yes", "-q", "--quiet"}


@dataclass(frozen=True, slots=True)
class Packages:
    """How a server is started, and which packages that takes: names as pip and npm know them."""

    command: tuple[str, ...]
    wheels: tuple[str, ...] = ()
    npm: str = ""


def packages_of(command: Sequence[str]) -> Packages:
    """What is meant by a command as documentation gives it: ``uvx PACKAGE …``, ``npx -y PACKAGE …``, or a program.

    Raises UserError.
    """
    first, words = command[0], list(command[1:])
    if first not in ("uvx", "npx"):
        return Packages(tuple(command))
    while words and words[0] in _OPTIONS:
        words.pop(0)
    own, more = "", list[str]()
    while first == "uvx" and words[:1] in (["--from"], ["--with"]) and len(words) > 2:
        if words[0] == "--from":
            own = words[1]
        else:
            more.append(words[1])
        words = words[2:]
    if not words or words[0].startswith("-"):
        raise UserError(
            f"'{' '.join(command)[:200]}' names no package: expected {first} PACKAGE [ARGUMENT …]"
        )
    package, *arguments = words
    if first == "npx":
        return Packages((package, *arguments), npm=package)
    name = package.partition("@")[0]
    version = package.partition("@")[2]
    wheel = own or (f"{name}=={version}" if version and version != "latest" else name)
    return Packages((name.partition("[")[0], *arguments), wheels=(wheel, *more))


def archive(home: Home, sha256: str) -> bytes:
    """The files that a server brings. Raises Unavailable when they are gone or altered."""
    try:
        data = (home.servers / f"{sha256}.tar").read_bytes()
    except OSError as error:
        raise Unavailable(
            f"the files of an MCP server are gone ({sha256[:12]}): {error.strerror}",
            kind=ErrorKind.UNREADABLE,
        ) from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise Unavailable(
            f"the files of an MCP server are damaged ({sha256[:12]}): add it again", kind=ErrorKind.DAMAGED
        )
    return data


def keep(home: Home, data: bytes) -> str:
    """Store them; their SHA-256."""
    sha256 = hashlib.sha256(data).hexdigest()
    home.servers.mkdir(mode=0o700, exist_ok=True)
    write_whole(home.servers / f"{sha256}.tar", data)
    return sha256


def install(packages: Packages) -> tuple[Packages, bytes]:
    """The npm package with all that it needs, as a tar, and the command that starts it there. Raises Invalid."""
    npm = shutil.which("npm")
    if npm is None:
        raise UserError(
            f"'{packages.npm}' is a package of npm, and there is no npm here: type ",
            to_type("apt-get install npm"),
        )
    with tempfile.TemporaryDirectory(prefix="agentos-npm-") as place:
        command = [
            npm,
            "install",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--no-bin-links",
            "--omit=dev",
        ]
        try:
            done = subprocess.run(
                [*command, "--loglevel=error", "--prefix", place, packages.npm],
                cwd=place,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:
            raise Invalid(packages.npm, [f"npm took longer than {_TIMEOUT_S:.0f} s"]) from None
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "npm warn" not in line] or [
                "no reason was given"
            ]
            raise Invalid(packages.npm, [f"npm could not install it: {' '.join(lines)[:600]}"])
        own = Path(place, "node_modules", _name(packages.npm))
        program = _program(own, packages.npm).relative_to(Path(place).resolve())
        data = pack(Path(place))
    return replace(
        packages, command=("node", *_options(), f"{{server}}/{program}", *packages.command[1:])
    ), data


def _options() -> list[str]:
    """Without it WebAssembly (and so ``fetch``) reserves 10 GB of addresses, more than a box has; from node 20.15 on."""
    option = "--disable-wasm-trap-handler"
    try:
        known = subprocess.run(["node", option, "--eval", "0"], capture_output=True, timeout=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [] if known.returncode else [option]


def pack(folder: Path) -> bytes:
    """The plain files below a folder that a program may read, the same bytes for the same files. Raises Invalid."""
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder")
    files: dict[str, bytes] = {}
    size = 0
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not path.is_file() or name.lower().endswith(_NOT_RUN):
            continue
        files[name] = path.read_bytes()
        size += len(files[name])
        if len(files) > _FILES_MAX or size > _MB_MAX << 20:
            most = f"{_MB_MAX} MB in {_FILES_MAX:,} files"
            raise Invalid(folder.name, [f"what the server brings is more than a box has room for ({most})"])
    return write_tar(files)


def _name(package: str) -> str:
    """Without its version."""
    scope, slash, rest = package.rpartition("/")
    return f"{scope}{slash}{rest.partition('@')[0]}"


def _program(own: Path, package: str) -> Path:
    try:
        says = json.loads((own / "package.json").read_text("utf-8"))
        found = says["bin"]
        target = found if isinstance(found, str) else found.get(own.name) or next(iter(found.values()))
        program = (own / target).resolve()
    except (OSError, ValueError, KeyError, AttributeError, StopIteration, TypeError):
        raise Invalid(package, ["it brings no program to start"]) from None
    if not program.is_relative_to(own.resolve()):
        raise Invalid(package, ["its program lies outside of it"])
    return program
