"""The container engine, spoken to through the ``docker`` SDK: who it is, and what its failures mean.

The SDK's client mixes up answers when two threads or a forked child share it, so every thread and
process gets one of its own here. Every call has a time limit.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentos.errors import ErrorKind, Unavailable, missing_extra, to_type
from agentos.sandboxes.docker.profile import BOX_LABEL, HOME_LABEL, OWNER_LABEL
from agentos.sandboxes.owner import BOXES, Leftover, Owner, home_id, orphaned, runs_of

SOCKET = "unix:///var/run/docker.sock"
_MISSING = (
    "The container engine does not answer ({why}): start it with `systemctl start docker` (or, as root, "
    '`dockerd`), install it with `apt-get install docker.io`, or set sandbox = "bubblewrap" in agentos.toml.'
)
_FORBIDDEN = (
    "This user may not use the container engine ({why} at {address}): type `sudo usermod -aG docker {user}`, "
    "log in anew and start the daemon again (that group is as good as root on this machine, see "
    'docs/use/docker.md), or set sandbox = "bubblewrap" in agentos.toml.'
)


class _ThreadClient:
    """The client of one thread in one process; closed when that thread ends, or the engine is closed."""

    def __init__(self, client: docker.APIClient) -> None:
        self.client = client
        self.pid = os.getpid()
        self.close = weakref.finalize(self, client.close)


class DockerEngine:
    """The engine of this machine. Constructing costs nothing and connects to nothing."""

    def __init__(self, timeout_s: float = 60.0) -> None:
        self.address = os.environ.get("DOCKER_HOST") or SOCKET
        self._timeout_s = timeout_s
        self._local = threading.local()
        self._all: weakref.WeakSet[_ThreadClient] = weakref.WeakSet()
        self._lock = threading.Lock()

    @property
    def api(self) -> docker.APIClient:
        """This thread's own client. Use within ``answering``."""
        held: _ThreadClient | None = getattr(self._local, "held", None)
        if held is None or held.pid != os.getpid():
            if not self.address.startswith("unix://"):
                raise Unavailable(
                    f"The engine must run on this machine, since a box is reached through a socket in a directory; "
                    f"DOCKER_HOST is {self.address}: unset it."
                )
            client = docker.APIClient(base_url=self.address, version="auto", timeout=self._timeout_s)
            # No proxy leads to a socket: else all variables are read at each request, while others set some.
            client.trust_env = False
            self._local.held = held = _ThreadClient(client)
            with self._lock:
                self._all.add(held)
        return held.client

    def version(self) -> dict[str, Any]:
        """What the engine says of itself; raises Unavailable when there is none."""
        with answering():
            return dict(self.api.version())

    def close(self) -> None:
        """Close every thread's connections; the threads must be done with them."""
        with self._lock:
            clients = list(self._all)
        self._local = threading.local()
        for held in clients:
            held.close()


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Engine failures as Unavailable, with what to do about those that are known."""
    try:
        yield
    except docker.errors.ImageNotFound as error:
        raise Unavailable(
            f"{error.explanation}: type ", to_type("agentos sandbox build --from-host")
        ) from None
    except docker.errors.APIError as error:
        raise Unavailable(f"the container engine refused: {error.explanation or error}") from None
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise Unavailable(_advice(_innermost(error))) from None


def _innermost(error: BaseException) -> BaseException:
    """The cause; what lies above is the SDK's and urllib3's packaging."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error


def _advice(error: BaseException) -> str:
    """What happened, and what to type."""
    why = (getattr(error, "strerror", None) or str(error))[:200]
    if not isinstance(error, PermissionError):
        return _MISSING.format(why=why)
    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        user = "$USER"
    return _FORBIDDEN.format(why=why, address=os.environ.get("DOCKER_HOST") or SOCKET, user=user)


# -------------------------------------------------------------------------------------------------
# The ``docker`` SDK, which is an extra: importing this module raises Unavailable where it is not
# installed.


try:
    import docker
    import docker.errors
    import requests
except ModuleNotFoundError:
    raise Unavailable(
        missing_extra("docker", "The container sandbox"), kind=ErrorKind.NOT_INSTALLED
    ) from None

__all__ = ["docker", "requests"]


# --- Finds and removes what a killed daemon left in the container engine and of its socket directories
# A container whose daemon died ends by itself when it waits or its job is over, but nobody removes it;
# one in the middle of a job goes on until it is removed here. Images belong to no home: what a build
# that was cut short leaves is removed by ``image.prune``.


def leftovers(home: Path) -> list[Leftover]:
    """All orphans of this home; those of living owners are not. Without an engine, what can be seen."""
    found: list[Leftover] = []
    with _engine() as engine, contextlib.suppress(Unavailable):
        found += _containers(engine, home)
    return [*found, *_directories(home)]


def reap(found: list[Leftover]) -> list[Leftover]:
    """Remove them; those that would not go."""
    with _engine() as engine:
        return [leftover for leftover in found if not _remove(engine, leftover)]


@contextlib.contextmanager
def _engine() -> Iterator[DockerEngine]:
    engine = DockerEngine()
    try:
        yield engine
    finally:
        engine.close()


def _containers(engine: DockerEngine, home: Path) -> Iterator[Leftover]:
    with answering():
        rows = engine.api.containers(all=True, filters={"label": f"{HOME_LABEL}={home_id(home)}"})
    for row in rows:
        label = row["Labels"].get(OWNER_LABEL, "")
        owner = Owner.parse(label)
        if owner is None or not owner.alive():
            yield Leftover(
                "container", row["Id"], label, runs_of(home / BOXES, row["Labels"].get(BOX_LABEL, ""))
            )


def _directories(home: Path) -> Iterator[Leftover]:
    """A note is written before its directory is made, and is removed after it."""
    for note in orphaned(home / BOXES):
        if (home / BOXES / note.token).is_dir():
            yield Leftover("directory", str(home / BOXES / note.token), str(note.owner))
        yield Leftover("note", str(note.path), str(note.owner))


def _remove(engine: DockerEngine, leftover: Leftover) -> bool:
    if leftover.kind == "directory":
        return _remove_directory(Path(leftover.what))
    try:
        with answering():
            engine.api.remove_container(leftover.what, force=True, v=True)
    except Unavailable as error:
        return isinstance(error.__context__, docker.errors.NotFound)
    return True


def _remove_directory(directory: Path) -> bool:
    """Only what we put there; nothing inside a box can add to it."""
    for name in ("socket", "start.json"):
        (directory / name).unlink(missing_ok=True)
    try:
        directory.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
