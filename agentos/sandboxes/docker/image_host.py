"""The container image made of the host's own Python, for machines that reach no image registry.

Knows which files of the host a worker needs: the interpreter with its standard library, the
libraries of ``sandboxes/image.toml``, a few programs, and every shared library that those load.
The image's name is the digest of exactly these contents.
"""

from __future__ import annotations

import compileall
import functools
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Any

import agentos
from agentos import shipped
from agentos.errors import Unavailable

SITE, PYTHON = "opt/site", "usr/local/bin/python3"
VISIBLE = (
    "__init__.py", "wire.py", "messages.py", "checks.py", "syntax.py", "frontmatter.py", "programs.py", "worker",
)  # fmt: skip
_FORMAT = b"agentos image 1"  # raise it when the same files would make another image
_PASSWD = b"root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:sandbox:/tmp:/bin/sh\n"
_GROUP = b"root:x:0:\nnogroup:x:65534:\n"
_DIRECTORIES = ("dev", "etc", "opt", "proc", "run/agentos", "snapshot", "sys", "tmp", "ws")


@dataclass(frozen=True, slots=True)
class ImageContent:
    """Files by their path in the image, and links by theirs."""

    files: Mapping[str, Path]
    links: Mapping[str, str]

    def digest(self) -> str:
        """Of all names, modes and bytes; 16 hex digits. The compiled modules follow from these."""
        total = hashlib.sha256(_FORMAT + sys.version.encode() + _PASSWD + _GROUP)
        for name in sorted(self.files):
            with self.files[name].open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            total.update(f"{name}\0{_mode(self.files[name]):o}\0{content}\n".encode())
        for name in sorted(self.links):
            total.update(f"{name}\0->\0{self.links[name]}\n".encode())
        return total.hexdigest()[:16]


def collect() -> ImageContent:
    """What an image of this host would hold below the worker. Reads names, and asks the loader once."""
    recipe = _recipe()
    executable = Path(os.path.realpath(sys.executable))
    files = {str(executable).lstrip("/"): executable}
    files |= dict(_standard_library(recipe["without"]))
    for name in sorted(closure()):
        files |= dict(_distribution(metadata.distribution(name)))
    programs = dict(_programs(recipe["programs"]))
    links = {PYTHON: f"/{str(executable).lstrip('/')}", "usr/local/bin/python": "python3"}
    first = dict[Path, str]()
    for name, path in programs.items():  # git is one program of several names
        if first.setdefault(path, name) != name:
            links[name] = Path(first[path]).name
        else:
            files.setdefault(name, path)
    objects = [path for path in files.values() if ".so" in path.name or path == executable]
    files |= dict(_shared([*objects, *programs.values()]))
    for name in ("bin", "sbin", "lib", "lib64"):  # as the host has it: merged into /usr, or not
        if (Path("/") / name).is_symlink():
            links[name] = f"usr/{name}"
    return ImageContent({_merged(name, links): path for name, path in files.items()}, links)


def layer(content: ImageContent) -> bytes:
    """The one layer of the image as a tar, modules compiled, the same bytes for the same content."""
    with tempfile.TemporaryDirectory(prefix="agentos-image-") as place:
        staged = Path(place)
        for name, path in content.files.items():
            target = staged / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            target.chmod(_mode(path))
        _compile(staged, "/", workers=os.cpu_count() or 1)
        return _tar(staged, content.links)


def closure() -> set[str]:
    """The distributions that a worker needs, with all that they require without extras."""
    found: set[str] = set()
    pending = list(_recipe()["distributions"])
    while pending:
        name = re.sub(r"[-_.]+", "-", pending.pop()).lower()
        if name in found:
            continue
        try:
            requires = metadata.distribution(name).requires or []
        except metadata.PackageNotFoundError:
            continue  # a marker excludes it here; what is truly missing shows when the image is tried
        found.add(name)
        for requirement in requires:
            match = re.match(r"[A-Za-z0-9._-]+", requirement)
            if match and "extra ==" not in requirement:
                pending.append(match[0])
    return found


@functools.cache
def runtime() -> str:
    """Of what a box gets that sees this Python itself: versions, and the worker's own source; 16 hex digits.

    The libraries stand for themselves by name and version: reading them all takes seconds.
    """
    total = hashlib.sha256(sys.version.encode())
    for name in sorted(closure()):
        total.update(f"\0{name}=={metadata.version(name)}".encode())
    for path, content in sorted(worker().items()):
        total.update(f"\0{path}\0{hashlib.sha256(content).hexdigest()}".encode())
    return total.hexdigest()[:16]


def worker() -> dict[str, bytes]:
    """The part of this package that is to be seen inside, by its path below ``KERNEL``."""
    package = Path(agentos.__file__).parent
    found: list[Path] = []
    for name in VISIBLE:
        found += [package / name] if name.endswith(".py") else sorted((package / name).rglob("*.py"))
    return {f"agentos/{path.relative_to(package).as_posix()}": path.read_bytes() for path in found}


def compiled(files: Mapping[str, bytes], place: str) -> dict[str, bytes]:
    """These modules and what they compile to when they lie at ``place``."""
    with tempfile.TemporaryDirectory(prefix="agentos-image-") as directory:
        staged = Path(directory)
        for name, content in files.items():
            (staged / name).parent.mkdir(parents=True, exist_ok=True)
            (staged / name).write_bytes(content)
        _compile(staged, place, workers=1)
        return {
            str(path.relative_to(staged)): path.read_bytes() for path in staged.rglob("*") if path.is_file()
        }


def _recipe() -> dict[str, Any]:
    return shipped.table("sandboxes", "image.toml")


def _mode(path: Path) -> int:
    return 0o755 if os.access(path, os.X_OK) else 0o644


def _standard_library(without: list[str]) -> Iterator[tuple[str, Path]]:
    for key in ("stdlib", "platstdlib"):
        root = Path(sysconfig.get_path(key))
        for directory, names, found in os.walk(root):
            names[:] = [name for name in names if not _left_out(name, without)]
            for name in found:
                path = Path(directory, name)
                if path.is_file() and not _left_out(name, without):
                    yield str(path).lstrip("/"), path


def _left_out(name: str, without: list[str]) -> bool:
    return name in ("__pycache__", "dist-packages") or any(fnmatch(name, pattern) for pattern in without)


def _distribution(of: metadata.Distribution) -> Iterator[tuple[str, Path]]:
    for file in of.files or []:
        path = Path(str(file.locate()))
        if file.parts[0] == ".." or file.suffix == ".pyc" or not path.is_file():
            continue  # scripts of its own lie outside, and no task calls them
        if file.parent.name.endswith(".dist-info") and file.name not in ("METADATA", "entry_points.txt"):
            continue  # RECORD and INSTALLER differ with the place and the installer
        yield f"{SITE}/{file.as_posix()}", path


def _programs(wanted: list[str]) -> Iterator[tuple[str, Path]]:
    for name in wanted:
        found = shutil.which(name, path="/usr/bin:/bin")
        if found is not None:
            yield f"usr/bin/{name}", Path(os.path.realpath(found))


def _shared(objects: list[Path]) -> Iterator[tuple[str, Path]]:
    """The shared libraries that the loader would load for these, at the paths it finds them."""
    done = subprocess.run(["ldd", *map(str, objects)], capture_output=True, text=True, env={"LC_ALL": "C"})
    for line in done.stdout.splitlines():
        match = re.match(r"\s+(?:\S+ => )?(/\S+) \(0x", line)
        if match:
            path = Path(os.path.normpath(match[1]))
            yield str(path).lstrip("/"), path
    if not done.stdout:
        raise Unavailable(f"The shared libraries could not be listed: {done.stderr.strip()[:300]}")


def _merged(name: str, links: Mapping[str, str]) -> str:
    first, _, rest = name.partition("/")
    return f"{links[first]}/{rest}" if first in links and rest else name


def _compile(staged: Path, place: str, workers: int) -> None:
    """Nothing inside can write its compiled modules, so they are there already, never looked at twice."""
    compileall.compile_dir(
        staged,
        maxlevels=50,
        quiet=2,
        workers=workers,
        stripdir=str(staged),
        prependdir=place,
        invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
    )


def _tar(staged: Path, links: Mapping[str, str]) -> bytes:
    entries: dict[str, Any] = {"etc/passwd": _PASSWD, "etc/group": _GROUP}
    entries |= {str(path.relative_to(staged)): path for path in staged.rglob("*") if path.is_file()}
    directories = set(_DIRECTORIES)
    for name in [*entries, *links, *_DIRECTORIES]:
        directories |= {str(parent) for parent in Path(name).parents if str(parent) != "."}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted({*directories, *entries, *links}):
            member = tarfile.TarInfo(name)
            if name in links:
                member.type, member.linkname = tarfile.SYMTYPE, links[name]
                archive.addfile(member)
            elif name in entries:
                source = entries[name]
                content = source if isinstance(source, bytes) else source.read_bytes()
                member.mode = 0o644 if isinstance(source, bytes) else _mode(source)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
            else:
                member.type, member.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(member)
    return buffer.getvalue()
