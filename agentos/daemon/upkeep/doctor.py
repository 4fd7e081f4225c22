"""Looks for leftovers of what was killed and for damage; mends what can be mended without loss.

Takes as long in a home of any age: of ledger and registry the newest part is looked at, and all of them if asked.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

from agentos import __version__
from agentos.daemon.control.daemon_lock import DaemonLock, daemon_info
from agentos.daemon.upkeep.retention import FAILED
from agentos.daemon.upkeep.status import DEGRADED, HELD, daemon_status, unwritable
from agentos.domain import TaskState, dataclass, digest
from agentos.errors import AgentOSError, HomeBusy, NotFound, Unavailable, UserError
from agentos.evolver.promote.consent import read_key
from agentos.home import Home, not_a_folder
from agentos.ledger.blobs import GONE, BlobStore
from agentos.ledger.postgres.address import address_of
from agentos.ledger.reading import Reader
from agentos.models.secrets import read_keys, secrets_of
from agentos.programs import LOCK_FILE
from agentos.proposers.coders import load_coders
from agentos.registry.check import Report, sweep
from agentos.registry.check import leftovers as registry_leftovers
from agentos.registry.git import NO_GIT
from agentos.registry.store import Registry
from agentos.registry.wheels import locked
from agentos.sandboxes.owner import Leftover
from agentos.sandboxes.reaper import leftovers, reap
from agentos.shipped import folder

# Names of our temporary files and folders, those of earlier releases among them.
_OURS = re.compile(
    r"agentos-(((scan|probe|image|wheels|pip|npm|mcp|skill|edit|ask|test|mirror|filed|certificate)-)[a-z0-9_]{8}"
    r"|[a-z0-9_]{8}\.pem)$"
)
_BUBBLEWRAP = ("auto", "bubblewrap")  # settings with which a working bwrap is the sandbox
_SCRATCH_S = 86_400.0  # since anything was made or removed in one, until nobody is at work there
_WRITTEN_S = 60.0  # in which whoever writes a file aside is done with it
# Variables that name no setting: what a person gives, and what the daemon gives to others.
_VARIABLES = frozenset(
    f"AGENTOS_{name}"
    for name in (
        *("HOME", "WORKER_TOKEN", "REQUIRE", "COMPLETE", "SANDBOX", "OUTSIDE"),
        *("EVENT", "TITLE", "TASK", "RUN", "PATH", "DELIVERY"),
    )
)


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """Something that is not as it should be. ``mend`` is None when only a person can mend it."""

    what: str
    mend: Callable[[], object] | None = None  # True where something stays; raises AgentOSError and OSError
    mended: bool = False


def examine(home: Home, *, fix: bool, full: bool = False) -> list[DoctorFinding]:
    """Everything found, with what was mended if ``fix``; ``full`` reads the whole ledger, its blobs and the registry.

    Raises UserError without a home.
    """
    home.require()
    found = []
    ledger, registry = (_whole_ledger, _whole_registry) if full else (_ledger, _registry)
    looks: tuple[Callable[[Home], Iterator[DoctorFinding]], ...] = (
        *(
            _process,
            _read_only,
            _queue,
            _boxes,
            _git,
            _sandbox,
            _folders,
            _files,
            _key,
            _settings,
            _variables,
            ledger,
            registry,
            _wheels,
            _swap,
        ),
    )
    shut = False
    if fault := unwritable(home):  # once, not for each file and commit that cannot be locked
        # SQLite makes a file beside the ledger also to read it, where none is left: no look can open it, and all would say so.
        shut = home.ledger.exists() and not home.ledger.with_name(f"{home.ledger.name}-shm").exists()
        copied = ", nor the ledger: copy the home to where it can be" if shut else ""
        found.append(DoctorFinding(f"{fault}; what needs that was not looked at{copied}"))
        looks = (_process, _key, _settings, ledger, _swap)
    for look in looks:
        try:
            for finding in look(home):
                if not (shut and finding.what.startswith(home.ledger.name)):
                    found.append(finding)
        except AgentOSError as error:
            told = {finding.what for finding in found}  # an old ledger stops several looks
            if str(error) not in told and not (shut and str(home.ledger) in str(error)):
                found.append(DoctorFinding(str(error)))
        # a folder where a file belongs, a file of another owner: what the other looks find is said all the same
        except (OSError, ValueError, sqlite3.Error) as error:
            found.append(
                DoctorFinding(f"a part of the home cannot be looked at: {type(error).__name__}: {error}")
            )
    if not fix:
        return found
    return [_mend(finding) for finding in found]


def _mend(finding: DoctorFinding) -> DoctorFinding:
    if finding.mend is None or finding.mended:
        return finding
    try:
        left = finding.mend()
    except (AgentOSError, OSError) as error:
        return replace(finding, what=f"{finding.what}; it could not be mended: {error}")
    if left is True:
        return replace(finding, what=f"{finding.what}; it is still there")
    return replace(finding, mended=True)


def _process(home: Home) -> Iterator[DoctorFinding]:
    info = daemon_info(home)
    if info is not None and not info.alive:
        yield DoctorFinding(f"the daemon with pid {info.pid} was killed", lambda: _forget_daemon(home))
    for sentence in info.overdue if info is not None and info.alive else ():
        yield DoctorFinding(sentence)
    if info is None or not info.alive:
        count = len(Reader(home.ledger).tasks(TaskState.RUNNING))
        if count:
            yield DoctorFinding(f"{count} task(s) were under way; `agentos daemon start` takes them up again")


def _forget_daemon(home: Home) -> None:
    """Unless another one has started meanwhile."""
    with suppress(HomeBusy):
        DaemonLock(home).release()


def _read_only(home: Home) -> Iterator[DoctorFinding]:
    """Parts of a home that can be written else, which nothing tells until something is to be written there."""
    for path in (home.ledger, home.blobs):
        if path.exists() and not os.access(path, os.W_OK):
            yield DoctorFinding(f"{path} cannot be written: check its owner, its mode and its disk")


def _queue(home: Home) -> Iterator[DoctorFinding]:
    """A daemon that runs and takes no tasks."""
    status = daemon_status(home)
    if status.code == DEGRADED:
        yield DoctorFinding(f"the daemon runs, but {status.why}")
    reader = Reader(home.ledger)
    if why := reader.get_kv(FAILED, ""):
        yield DoctorFinding(f"old runs are not pruned, and the home grows: {why}")
    if (mirror := reader.get_kv("registry.mirror")) and mirror["why"]:
        yield DoctorFinding(
            f"the mirror {mirror['url']} lacks the newest versions since {mirror['at']}: {mirror['why']}"
        )


def _git(home: Home) -> Iterator[DoctorFinding]:
    """Runs and evolutions do without it; backups and upkeep of the registry do not."""
    if shutil.which("git") is None:
        yield DoctorFinding(f"no backup can be made, and the registry is not packed: {NO_GIT}")


def _sandbox(home: Home) -> Iterator[DoctorFinding]:
    """Without one no task runs. Tried where no daemon has done so."""
    info = daemon_info(home)
    if info is not None and info.ready and info.alive:
        return
    if _known_sandbox(home) in _BUBBLEWRAP and _bwrap_works():
        return
    from agentos.settings import load_settings

    try:
        settings = load_settings(home.settings)
    except UserError:  # told by `_settings`
        return
    if settings.sandbox in _BUBBLEWRAP and _bwrap_works():
        return
    from agentos.sandboxes.choice import Choice

    with closing(Choice(home.root, settings.run_uid, settings.sandbox)) as choice:
        try:
            choice.start()
        except Unavailable as error:
            yield DoctorFinding(f"there is no sandbox, so no task will run: {error}")


def _bwrap_works() -> bool:
    command = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]
    try:
        return subprocess.run(command, capture_output=True, timeout=10).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _boxes(home: Home) -> Iterator[DoctorFinding]:
    for leftover in leftovers(home.root):
        yield DoctorFinding(f"a sandbox's {leftover.kind} is left: {leftover}", partial(_reap, leftover))


def _reap(leftover: Leftover) -> bool:
    """Whether it is still there."""
    return bool(reap([leftover]))


def _files(home: Home) -> Iterator[DoctorFinding]:
    for path in [*home.run.glob("daemon.json.*"), *home.root.glob("*.new")]:
        if _is_left(path):
            yield DoctorFinding(f"half-written file: {path}", partial(path.unlink, missing_ok=True))
    for left in _scratch():
        yield DoctorFinding(
            f"left in the place for temporary files by a process that was killed: {left}",
            partial(_remove, left),
        )
    aside = home.blobs / "tmp"
    old = [path for path in aside.iterdir() if _is_left(path)] if aside.is_dir() else []
    info = daemon_info(home)
    if old and (info is None or not info.alive):
        blobs = BlobStore(home.blobs)
        yield DoctorFinding(f"{len(old)} half-written blob(s)", partial(blobs.sweep, _WRITTEN_S))


def _folders(home: Home) -> Iterator[DoctorFinding]:
    yield from (DoctorFinding(str(not_a_folder(folder))) for folder in home.folders if folder.is_file())


def _is_left(path: Path) -> bool:
    """Whether it is a file that nobody is about to rename: commands write beside a daemon and without one."""
    with suppress(OSError):
        known = path.lstat()
        return stat.S_ISREG(known.st_mode) and time.time() - known.st_mtime > _WRITTEN_S
    return False


def _scratch() -> list[Path]:
    """What lies of ours in the place for temporary files that nobody can be at work with any more, of any home."""
    found = []
    for path in Path(tempfile.gettempdir()).glob("agentos-*"):
        with suppress(OSError):
            known = path.lstat()
            is_ours = (
                known.st_uid == os.geteuid() and _OURS.match(path.name) and not stat.S_ISLNK(known.st_mode)
            )
            if is_ours and time.time() - known.st_mtime > _SCRATCH_S:
                found.append(path)
    return found


def _remove(path: Path) -> bool:
    """Whether it is still there."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
    return path.exists()


def _key(home: Home) -> Iterator[DoctorFinding]:
    mode = stat.S_IMODE(home.consent_key.stat().st_mode) if home.consent_key.exists() else None
    if mode is None:
        yield DoctorFinding("the consent key is missing; `agentos init` makes one")
    elif not home.consent_key.is_file():
        yield DoctorFinding(
            f"the consent key {home.consent_key} is no file: move it away, and type `agentos init`"
        )
    elif mode & 0o077:
        yield DoctorFinding(
            f"the consent key is open to others (mode {mode:o})", lambda: home.consent_key.chmod(0o600)
        )
    else:
        read_key(home.consent_key)  # raises with what is wrong


def _settings(home: Home) -> Iterator[DoctorFinding]:
    documents: list[Callable[[], object]] = [
        lambda: load_coders(folder("evolver") / "coders.toml", home.root / "coders.toml"),
        lambda: read_keys(home.keys),
        lambda: secrets_of(home),
        lambda: _find_blobs(home),
    ]
    if not _daemon_read(home) and not _known_sandbox(home):
        # pydantic, which takes longer to import than all that is looked at here
        documents = [lambda: _read_settings(home), *_own_documents(home), *documents]
    for read in documents:
        try:
            read()
        except AgentOSError as error:  # with a sentence for each fault of the document
            yield DoctorFinding(str(error))


def _variables(home: Home) -> Iterator[DoctorFinding]:
    """Those that are written as settings are, and are none: they change nothing, and nobody says so."""
    given = sorted(name for name in os.environ if name.upper().startswith("AGENTOS_"))
    if strange := [name for name in given if name.upper() not in _VARIABLES]:
        from agentos.settings import strange_variables  # takes long to import, and most have none of them

        for sentence in strange_variables(strange, home.settings, _VARIABLES):
            yield DoctorFinding(sentence)


def _find_blobs(home: Home) -> None:
    """Raises where their folder is gone, or they lie elsewhere, and what reaches them is not installed or not there."""
    blobs = BlobStore(home.blobs)
    with suppress(NotFound):
        blobs.get("0" * 64)
    if blobs.is_gone:
        raise Unavailable(f"{home.blobs}: {GONE}")


def _read_settings(home: Home) -> None:
    """Raises what is wrong with them; where nothing is, the next look at the same ones costs next to nothing."""
    from agentos.settings import load_settings

    settings = load_settings(home.settings)
    if not any(True for _ in _own_documents(home)):
        with suppress(OSError):
            _known(home).write_text(json.dumps([_state(home), settings.sandbox]), encoding="utf-8")


def _known_sandbox(home: Home) -> str:
    """The sandbox that the settings name, where these very ones were read before and nothing was wrong; else ""."""
    try:
        state, sandbox = json.loads(_known(home).read_bytes())
    except (OSError, ValueError, TypeError):
        return ""
    is_same = state == _state(home) and not any(True for _ in _own_documents(home))
    return str(sandbox) if is_same else ""


def _known(home: Home) -> Path:
    """It may be lost."""
    return home.run / "settings.json"


def _state(home: Home) -> str:
    """A digest of all by which settings are good or not: their text, the variables, this release and its plug-ins."""
    text = home.settings.read_text(encoding="utf-8", errors="replace") if home.settings.is_file() else ""
    variables = sorted(f"{name}={value}" for name, value in os.environ.items() if "AGENTOS" in name.upper())
    where = [place for place in sys.path if place.endswith("-packages") and os.path.exists(place)]
    places = [[place, os.stat(place).st_mtime_ns] for place in where]
    return digest([__version__, text, variables, places])


def _own_documents(home: Home) -> Iterator[Callable[[], object]]:
    """What reads a policy and probes that are the home's own: those that were shipped are as they were tested."""
    if not any((home.root / name).exists() for name in ("policy.toml", "safety_probes.toml")):
        return
    from agentos.daemon.offline import policy_of, probes_of

    yield lambda: policy_of(home)
    yield lambda: probes_of(home)


def _daemon_read(home: Home) -> bool:
    """Whether a daemon of this release works with these settings, policy and probes: it starts with no others."""
    info = daemon_info(home)
    if info is None or not (info.alive and info.ready) or info.version != __version__:
        return False
    began = datetime.fromisoformat(info.started_at).timestamp()
    paths = (home.settings, home.root / "policy.toml", home.root / "safety_probes.toml")
    return all(path.stat().st_ctime < began for path in paths if path.exists())


def _databases(home: Home) -> tuple[Path, ...]:
    """The files that ledger and engine lie in; none where PostgreSQL has them."""
    return () if address_of(home.ledger) else (home.ledger, home.engine)


def _ledger(home: Home) -> Iterator[DoctorFinding]:
    """Whether both databases can be read at all, and the newest entries follow one another up to the head."""
    for path in _databases(home):
        if path.exists():
            yield from _damage(path, "SELECT 'ok' FROM sqlite_schema LIMIT 1")
    for fault in Reader(home.ledger).verify(newest_only=True):
        yield DoctorFinding(f"audit: {fault}")


def _whole_ledger(home: Home) -> Iterator[DoctorFinding]:
    # with all that a verdict is computed from, which nobody pays for who only looks for leftovers
    from agentos.daemon.upkeep.auditing import verify_home

    for path in _databases(home):
        if path.exists():
            yield from _damage(path, "PRAGMA integrity_check(1)")
    for fault in verify_home(home).faults:
        yield DoctorFinding(f"audit: {fault}")


def _damage(path: Path, look: str) -> Iterator[DoctorFinding]:
    """What a statement finds wrong that answers "ok" for a database that is whole."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            (answer,) = connection.execute(look).fetchone() or ("it is empty",)
    except sqlite3.DatabaseError as error:
        answer = str(error)
    if answer != "ok":
        yield DoctorFinding(f"{path.name} is damaged: {answer}")


def _registry(home: Home) -> Iterator[DoctorFinding]:
    """What is served, and what the newest commits made."""
    registry = Registry(home.registry)
    yield from _checked(registry, registry.check_newest())


def _whole_registry(home: Home) -> Iterator[DoctorFinding]:
    registry = Registry(home.registry)
    yield from _checked(registry, registry.check())


def _checked(registry: Registry, report: Report) -> Iterator[DoctorFinding]:
    for told in (*report.faults, *report.warnings):
        yield DoctorFinding(f"registry: {told}")
    if report.repaired:
        yield DoctorFinding(f"registry: {report.repaired} version tag(s) were missing", mended=True)
    left = registry_leftovers(registry.repository)
    if left:
        yield DoctorFinding(
            f"registry: {len(left)} leftover(s) of killed writers", partial(sweep, registry.repository)
        )


def _wheels(home: Home) -> Iterator[DoctorFinding]:
    """Runs of tools whose wheels are not here as they were locked end as ``infra``."""
    registry = Registry(home.registry)
    main = registry.stable()
    for resource, own in registry.digests(main).items():
        # As in most: to follow a path to it costs four times as much.
        if LOCK_FILE not in registry.repository.tree(own):
            continue
        lock = locked(registry.files(main, f"{resource}/{LOCK_FILE}"))
        missing = registry.wheels.missing(lock) if lock is not None else []
        if lock is not None and missing:
            names = ", ".join(wheel.file for wheel in missing)
            yield DoctorFinding(
                f"wheels of {resource} are missing or altered: {names}",
                partial(registry.wheels.fetch, str(resource), lock),
            )


def _swap(home: Home) -> Iterator[DoctorFinding]:
    """What stands in the registry and is not served, because it did not pass its probe."""
    held = Reader(home.ledger).get_kv(HELD)
    if held and held["failed"] and held["main"] == Registry(home.registry).stable().commit:
        yield DoctorFinding(
            f"new runs do not get what the registry holds ({held['main'][:12]}), which failed its probe: "
            f"{held['why']}" + (f"; `{held['undo']}` undoes it" if held["undo"] else "")
        )


def system_parts() -> list[str]:
    """One line for each program that is needed, with the version that is there."""
    lines = []
    for program in ("git", "bwrap"):
        try:
            done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10)
            lines.append(done.stdout.strip().splitlines()[0])
        except (OSError, IndexError):
            lines.append(f"{program} is missing")
        except subprocess.TimeoutExpired:
            lines.append(f"{program} does not answer")
    return lines
