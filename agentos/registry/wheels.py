"""What a resource's tools depend on: resolved to wheels when it enters the registry, locked by hash.

``wheels.lock`` lies in the resource's own directory and so is part of every snapshot; the wheels
lie in the home by their SHA-256. pip finds and downloads them here on the host, as the person who
runs it has configured it; no code of a package is run, and nothing is installed anywhere.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import subprocess
import sys
import sysconfig
import tempfile
import threading
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from agentos.domain import dataclass
from agentos.durable import write_whole
from agentos.errors import ErrorKind, Invalid, Sentence, Unavailable, to_type
from agentos.programs import LOCK_FILE as LOCK_FILE
from agentos.programs import is_manifest, requirements
from agentos.registry import wheelfile
from agentos.registry.wheelfile import BadWheel
from agentos.resources import is_tool_file
from agentos.syntax import tree_of

_TIMEOUT_S = 300.0
_KEPT_BYTES = 128 << 20  # of unpacked wheels in memory; unpacking costs more than all the rest

# A name, extras, versions: no address, no path, no option of pip, and no marker.
_REQUIREMENT = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?(?:\[[A-Za-z0-9._, -]{1,100}\])?"
    r"(?: ?(?:[<>=!~]=|[<>]) ?[A-Za-z0-9.*+!_-]{1,50}(?:, ?(?:[<>=!~]=|[<>]) ?[A-Za-z0-9.*+!_-]{1,50}){0,5})?"
)
_WHEEL = re.compile(
    r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[A-Za-z0-9_.!+]+)(-\d[^-]*)?-[^-]+-[^-]+-(?P<for>[^-]+)\.whl"
)
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.!+-]{0,199}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
# Every box has these, and in one version only: a tool gets them from the box.
_GIVEN = ("pydantic", "pydantic-core", "annotated-types", "typing-extensions", "typing-inspection")
_HEAD = "# Written by agentos: the wheels that `dependencies` stood for. `agentos registry wheels` fetches them.\n"


@dataclass(frozen=True, slots=True)
class Wheel:
    """One file of the lock. ``name`` is normalized (PEP 503)."""

    name: str
    version: str
    file: str
    sha256: str

    @property
    def anywhere(self) -> bool:
        """Whether it is for any machine and any Python 3."""
        return self.file.endswith("-none-any.whl")


@dataclass(frozen=True, slots=True)
class Lock:
    """``requires`` is what was declared; ``machine`` for which Python and platform it was resolved."""

    requires: tuple[str, ...]
    machine: str
    wheels: tuple[Wheel, ...]


# --- what a resource says ---------------------------------------------------------------------


def declared(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """What the tools among a resource's files depend on, each once, sorted.

    A file that breaks the contract of tools declares nothing here; that is said elsewhere.
    """
    found: set[str] = set()
    for path, content in files.items():
        if is_tool_file(path) and b"dependencies" in content:
            found |= set(_of_manifest(content) if is_manifest(path) else _of_tool(content))
    return tuple(sorted(found))


def needed(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """As ``declared``, and what its scripts ask for, which is had where it can be had."""
    scripts = {text for text in requirements(files) if _REQUIREMENT.fullmatch(text)}
    return tuple(sorted({*declared(files), *scripts}))


def unlocked(files: Mapping[str, bytes]) -> list[str]:
    """A sentence where the requirements of its scripts are not locked."""
    try:
        lock = locked(files)
    except Invalid:
        lock = None
    missing = sorted({*needed(files), *requirements(files)} - {*(lock.requires if lock else ())})
    return [f"its scripts run without {', '.join(missing)[:300]}, not to be had as wheels"] if missing else []


def locked(files: Mapping[str, bytes]) -> Lock | None:
    """The lock among a resource's files, None when there is none; raises Invalid."""
    for path, content in files.items():
        if path.count("/") == 2 and path.endswith("/" + LOCK_FILE):
            return _read(path, content)
    return None


def faults(files: Mapping[str, bytes]) -> list[str]:
    """One sentence for each way in which a resource's lock is not that of its tools."""
    requires = declared(files)
    if wrong := _wrong(requires):
        return wrong
    try:
        lock = locked(files)
    except Invalid as error:
        return [str(error)]
    if requires and lock is None:
        return [f"its dependencies ({', '.join(requires)}) are not locked: {LOCK_FILE} is missing"]
    if lock is not None and lock.requires not in (requires, needed(files)):
        had = ", ".join(lock.requires)
        return [f"{LOCK_FILE} is for {had}, its tools declare {', '.join(requires) or 'no dependencies'}"]
    return []


def same_needs(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> bool:
    """Whether two contents of a resource depend on the same, and on the same wheels of it."""

    def needs(files: Mapping[str, bytes]) -> tuple[object, ...]:
        return needed(files), *(data for path, data in files.items() if path.endswith("/" + LOCK_FILE))

    return needs(before) == needs(after)


def goes_back(
    before: Mapping[str, bytes], after: Mapping[str, bytes], earlier: Iterable[Mapping[str, bytes]]
) -> bool:
    """Whether the lock alone differs of what a resource depends on, and is that of an earlier content of it, byte for
    byte: for what is declared now, and for this machine's kind."""
    path = next((path for path in before if path.endswith("/" + LOCK_FILE)), "")
    if not path or path not in after or needed(before) != needed(after):
        return False
    try:
        old, new = locked(before), locked(after)
    except Invalid:
        return False
    alike = old is not None and new is not None and (old.requires, old.machine) == (new.requires, new.machine)
    return alike and any(files.get(path) == after[path] for files in earlier)


def _wrong(requires: Sequence[str]) -> list[str]:
    return [
        f"its dependency {text[:200]!r} is not a NAME, perhaps with versions, such as 'tabulate>=0.9,<1'"
        for text in requires
        if not _REQUIREMENT.fullmatch(text)
    ]


def _of_manifest(content: bytes) -> list[str]:
    try:
        listed = json.loads(content)["dependencies"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
    return [text for text in listed if isinstance(text, str)] if isinstance(listed, list) else []


def _of_tool(content: bytes) -> Iterator[str]:
    tree = tree_of(content)
    for node in tree.body if tree else ():
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "TOOL" for target in node.targets
        ):
            try:
                card = ast.literal_eval(node.value)
            except (ValueError, TypeError, RecursionError):
                return
            listed = card.get("dependencies") if isinstance(card, dict) else None
            if isinstance(listed, list):
                yield from (text for text in listed if isinstance(text, str))


# --- the lock file ----------------------------------------------------------------------------


def _read(path: str, content: bytes) -> Lock:
    try:
        table = tomllib.loads(content.decode("utf-8"))
        wheels = [Wheel(it["name"], it["version"], it["file"], it["sha256"]) for it in table.get("wheel", [])]
        lock = Lock(tuple(table["requires"]), table["machine"], tuple(wheels))
        texts = [lock.machine, *lock.requires, *(text for it in wheels for text in (it.name, it.version))]
        sound = all(isinstance(text, str) for text in texts)
        sound &= all(_WHEEL.fullmatch(it.file) and _PLAIN.fullmatch(it.file) for it in wheels)
        sound &= all(_PLAIN.fullmatch(it.name) and _PLAIN.fullmatch(it.version) for it in wheels)
        sound &= all(bool(_SHA256.fullmatch(it.sha256)) for it in wheels)
        sound &= len({it.file for it in wheels}) == len(wheels)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        sound = False
    if not sound:
        raise Invalid(
            path,
            ["it is no lock that agentos wrote; remove it, and it is made anew"],
            kind=ErrorKind.UNREADABLE,
        )
    return lock


def _write(lock: Lock) -> bytes:
    """Every text was held against a pattern without quotes and control characters."""
    requires = ", ".join(f'"{text}"' for text in lock.requires)
    lines = [_HEAD, f'requires = [{requires}]\nmachine = "{lock.machine}"\n']
    for wheel in lock.wheels:
        lines.append(f'\n[[wheel]]\nname = "{wheel.name}"\nversion = "{wheel.version}"\n')
        lines.append(f'file = "{wheel.file}"\nsha256 = "{wheel.sha256}"\n')
    return "".join(lines).encode()


def machine() -> str:
    """The Python and the platform that wheels are resolved for."""
    return f"python-{sys.version_info.major}.{sys.version_info.minor} {sysconfig.get_platform()}"


# --- the wheels -------------------------------------------------------------------------------


def place(registry: Path) -> Path:
    """Where the wheels of a home lie, beside its registry."""
    return registry.parent / "wheels"


class Wheels:
    """The wheels of a home, by their SHA-256. Any thread and process may use it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._known: dict[str, dict[str, bytes]] = {}  # unpacked before, by digest

    def unnamed(self, locks: Iterable[bytes], before: float) -> list[Path]:
        """Those files that none of the locks names, and that were fetched before that moment; oldest first.

        What is no lock names none: nothing is run by it.
        """
        named: set[str] = set()
        for content in locks:
            with suppress(Invalid):
                named |= {wheel.sha256 for wheel in _read(LOCK_FILE, content).wheels}
        there = {path: path.stat().st_mtime for path in self.root.glob("*.whl")}
        old = [path for path, at in there.items() if path.stem not in named and at < before]
        return sorted(old, key=there.__getitem__)

    def renewed(self, resource: str, files: Mapping[str, bytes]) -> dict[str, bytes | None]:
        """What has to change for the resource's lock to be that of its tools, {} when it is.

        Resolves what is declared anew, or fetches what a lock names and is not here. Raises Invalid
        with the reason when that cannot be had.
        """
        requires, wanted = declared(files), needed(files)
        path = f"{resource}/{LOCK_FILE}"
        if not wanted:
            return {path: None} if path in files else {}
        if wrong := _wrong(requires):
            raise Invalid(resource, wrong)
        lock = None if faults(files) else locked(files)
        if lock is not None and lock.requires == wanted:
            self.fetch(resource, lock)
            return {}
        try:
            return {path: self.resolve(resource, wanted)}
        except Invalid:
            if wanted == requires:
                raise
        if lock is not None and requires:  # what the scripts ask for is not to be had
            self.fetch(resource, lock)
            return {}
        return {path: self.resolve(resource, requires) if requires else None}

    def resolve(self, resource: str, requires: Sequence[str]) -> bytes:
        """The lock of what pip takes them to mean today; the wheels are here afterwards. Raises Invalid."""
        from importlib import metadata  # 14 ms that reading commands do not need

        with _aside() as place:
            given = Path(place, "given.txt")
            given.write_text("".join(f"{name}=={metadata.version(name)}\n" for name in _GIVEN))
            found = Path(place, "found")
            _pip(resource, ["--constraint", str(given), "--dest", str(found), *requires])
            wheels = []
            for file in sorted(found.iterdir()):
                match = _WHEEL.fullmatch(file.name)
                if match is None or not _PLAIN.fullmatch(file.name):
                    raise Invalid(resource, [f"pip brought {file.name!a}, which is no wheel"])
                name = re.sub(r"[-_.]+", "-", match["name"]).lower()
                if name not in _GIVEN:
                    data = file.read_bytes()
                    wheels.append(Wheel(name, match["version"], file.name, hashlib.sha256(data).hexdigest()))
            contents = {wheel.file: (found / wheel.file).read_bytes() for wheel in wheels}
            _must_fit(resource, contents)
            for wheel in wheels:
                self._put(wheel.sha256, contents[wheel.file])
        return _write(Lock(tuple(requires), machine(), tuple(wheels)))

    def missing(self, lock: Lock) -> list[Wheel]:
        """The wheels that are not here as they were locked."""
        return [wheel for wheel in lock.wheels if self._get(wheel) is None]

    def fetch(self, resource: str, lock: Lock) -> int:
        """Download exactly the locked wheels that are missing; how many. Raises Invalid."""
        missing = self.missing(lock)
        if not missing:
            return 0
        if lock.machine != machine() and not all(wheel.anywhere for wheel in missing):
            raise Invalid(resource, [_of_another_machine("it", resource, lock)], kind=ErrorKind.MISMATCHED)
        with _aside() as place:
            exact = Path(place, "exact.txt")
            lines = [f"{it.name}=={it.version} --hash=sha256:{it.sha256}\n" for it in missing]
            exact.write_text("".join(lines))
            found = Path(place, "found")
            _pip(
                resource, ["--no-deps", "--require-hashes", "--requirement", str(exact), "--dest", str(found)]
            )
            contents = {file.name: file.read_bytes() for file in found.iterdir()}
            _must_fit(resource, contents)
            for data in contents.values():
                self._put(hashlib.sha256(data).hexdigest(), data)
        if left := self.missing(lock):
            raise Invalid(
                resource, [f"{left[0].file} is not to be had as it was locked"], kind=ErrorKind.UNAVAILABLE
            )
        return len(missing)

    def of(self, files: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
        """``kind/name`` -> the modules (path -> content) of each lock among ``files``.

        Raises Unavailable when a wheel is missing or altered, or was locked for another machine.
        """
        found: dict[str, dict[str, bytes]] = {}
        for path, content in files.items():
            if path.count("/") == 2 and path.endswith("/" + LOCK_FILE):
                resource = path.removesuffix("/" + LOCK_FILE)
                found[resource] = {}
                for wheel in self._usable(resource, path, content):
                    found[resource] |= self._unpacked(resource, wheel)
        return found

    def _usable(self, resource: str, path: str, content: bytes) -> Iterator[Wheel]:
        try:
            lock = _read(path, content)
        except Invalid as error:
            raise Unavailable(error, kind=error.kind) from None
        for wheel in lock.wheels:
            if not wheel.anywhere and lock.machine != machine():
                raise Unavailable(_of_another_machine(resource, resource, lock), kind=ErrorKind.MISMATCHED)
            yield wheel

    def _unpacked(self, resource: str, wheel: Wheel) -> dict[str, bytes]:
        data = self._get(wheel)
        if data is None:
            raise Unavailable(
                f"The wheel {wheel.file} of {resource} is missing or altered: type ",
                to_type("agentos registry wheels"),
                kind=ErrorKind.DAMAGED,
            )
        with self._lock:
            known = self._known.get(wheel.sha256)
        if known is not None:
            return known
        try:
            contents = dict(wheelfile.contents(data))
        except BadWheel as error:
            raise Unavailable(
                f"The wheel {wheel.file} of {resource} cannot be used: {error}", kind=ErrorKind.DAMAGED
            ) from None
        with self._lock:
            if sum(sum(map(len, it.values())) for it in self._known.values()) > _KEPT_BYTES:
                self._known.clear()
            self._known[wheel.sha256] = contents
        return contents

    def _get(self, wheel: Wheel) -> bytes | None:
        try:
            data = (self.root / f"{wheel.sha256}.whl").read_bytes()
        except OSError:
            return None
        return data if hashlib.sha256(data).hexdigest() == wheel.sha256 else None

    def _put(self, sha256: str, data: bytes) -> None:
        """Raises Unavailable when the disk is full."""
        try:
            self.root.mkdir(mode=0o700, exist_ok=True)
            write_whole(self.root / f"{sha256}.whl", data)
        except OSError as error:
            raise Unavailable(
                f"A wheel could not be written below {self.root}: {error.strerror}",
                kind=ErrorKind.NOT_WRITTEN,
            ) from None


@contextmanager
def _aside() -> Iterator[str]:
    """A folder that is gone at the end. Raises Unavailable when there is no room for it, or for another process."""
    try:
        with tempfile.TemporaryDirectory(prefix="agentos-wheels-") as place:
            yield place
    except OSError as error:
        raise Unavailable(f"wheels could not be fetched: {error.strerror or error}") from error


def _of_another_machine(what: str, resource: str, lock: Lock) -> Sentence:
    again = to_type(f"agentos registry wheels {resource} --relock")
    return Sentence(f"{what} was locked for {lock.machine}, this is {machine()}: type ", again)


def _must_fit(resource: str, wheels: Mapping[str, bytes]) -> None:
    """Each can be unpacked, and all together. Raises Invalid."""
    size = count = 0
    for name, data in wheels.items():
        try:
            for _, content in wheelfile.contents(data):
                size, count = size + len(content), count + 1
        except BadWheel as error:
            raise Invalid(resource, [f"its dependency {name} cannot be used: {error}"]) from None
    if size > wheelfile.BYTES_MAX or count > wheelfile.FILES_MAX:
        most = f"{wheelfile.BYTES_MAX >> 20} MB in {wheelfile.FILES_MAX} files"
        raise Invalid(
            resource, [f"its dependencies are {size >> 20} MB in {count} files, a box has room for {most}"]
        )


def _pip(resource: str, arguments: Sequence[str]) -> None:
    """Download wheels, as the person's own pip would; raises Invalid with what it said."""
    command = [sys.executable, "-P", "-m", "pip", "--no-input", "--disable-pip-version-check", "download"]
    command += ["--quiet", "--progress-bar", "off", "--only-binary", ":all:", *arguments]
    with tempfile.TemporaryDirectory(prefix="agentos-pip-") as nowhere:  # nothing there for a name to mean
        try:
            done = subprocess.run(
                command, cwd=nowhere, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S
            )
            said = done.stderr
        except subprocess.TimeoutExpired:
            said = f"ERROR: it took longer than {_TIMEOUT_S:.0f} s"
        else:
            if done.returncode == 0:
                return
    if "No module named pip" in said:
        said = "ERROR: this Python has no pip; type `python -m ensurepip` with it"
    errors = [line.partition(":")[2].strip() for line in said.splitlines() if line.startswith("ERROR:")]
    why = "; ".join(errors) or said.strip()[-300:] or "pip gave no reason"
    raise Invalid(
        resource, [f"its dependencies could not be had as wheels: {why[:600]}"], kind=ErrorKind.UNAVAILABLE
    )
