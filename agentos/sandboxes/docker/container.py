"""One container from its creation to its removal: made, greeted, handed over, counted, taken away.

The container and the kernel meet at a socket in a directory that only this container sees. The
first to connect must show the token that lies beside it; then both are gone from the directory,
so that nothing inside can connect again, with that token or another.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
import select
import socket
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentos.domain import Limits
from agentos.errors import ErrorKind, Unavailable
from agentos.sandboxes import cgroups, seccomp
from agentos.sandboxes.box import FirstProcess, WorkerBox, answer_bounds, pipes
from agentos.sandboxes.docker.engine import DockerEngine, answering, docker
from agentos.sandboxes.docker.profile import BOX_LABEL, HOME_LABEL, OWNER_LABEL, ContainerProfile, ProfileKind
from agentos.sandboxes.owner import Owner, OwnerNote
from agentos.sandboxes.seccomp import call_list
from agentos.wire import Channel, FrameError, WireClosed, WireLate

_START_S = 60.0
_LOOK_S = 0.25
_PEER = struct.Struct("iII")  # struct ucred: pid, uid, gid
_LIGHT, _WHOLE = ("agentos.worker.job",), ("agentos.worker.warm",)


@dataclass(frozen=True, slots=True)
class ContainerMaker:
    """Makes containers of one sandbox; any thread may use it."""

    end: End
    walls: ContainerProfile
    owner: Owner
    places: Path  # where the socket directories are made

    def make(self, kind: ProfileKind) -> Container:
        """A running container that said hello. Raises Unavailable."""
        token = secrets.token_hex(32)
        try:
            with contextlib.ExitStack() as undo:
                note = OwnerNote.fresh(self.places, self.owner)
                undo.callback(note.remove)
                directory = self.places / note.token  # its path can be read inside, among the mounts
                name = f"agentos-{self.owner.home}-{note.token}"
                labels = {HOME_LABEL: self.owner.home, OWNER_LABEL: str(self.owner), BOX_LABEL: note.token}
                with _listening(directory) as listener:
                    start = json.dumps(_start(kind, self.walls, token))
                    (directory / "start.json").write_text(start)
                    with answering():
                        request = self.walls.request(kind, directory, labels)
                        made = self.end.engine.api.create_container_from_config(request, name)["Id"]
                        undo.callback(self.end.remove, made)
                        self.end.made(made, note)
                        self.end.engine.api.start(made)
                    until = time.monotonic() + _START_S
                    with self._accept(listener, made, until) as sock:
                        channel = _handed_out(sock)
                        undo.callback(channel.close)
                        pid = _greeted(channel, sock, token, made, until)
                container = Container(made, channel, pid, self.end, note)
                undo.pop_all()
                return container
        except OSError as error:  # it ended in the middle, or the disk is full
            raise Unavailable(f"the container could not be reached: {error}") from None

    def _accept(self, listener: socket.socket, container: str, until: float) -> socket.socket:
        """Whoever comes first, while the container runs."""
        listener.settimeout(_LOOK_S)
        while True:
            try:
                return listener.accept()[0]
            except TimeoutError:
                self._must_run(container)
                if time.monotonic() > until:
                    raise Unavailable(f"the container did not report within {_START_S:.0f} s") from None

    def _must_run(self, container: str) -> None:
        with answering():
            state = self.end.engine.api.inspect_container(container)["State"]
        if not state["Running"]:
            raise Unavailable(
                f"the container ended with code {state['ExitCode']} before it began {state['Error']}"
            )


class Container:
    """A started container that waits for its hand-over, in the pool or out of it."""

    def __init__(self, id: str, channel: Channel, pid: int, end: End, note: OwnerNote) -> None:
        self.id = id
        self._note = note
        self.pid = pid
        self._channel = channel
        self._end = end
        self._pidfd = os.pidfd_open(pid)

    def usable(self) -> bool:
        """Whether its process still runs and it said nothing it was not asked for."""
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        poll.register(self._channel.fileno(), select.POLLIN)
        return not poll.poll(0)

    def note(self, run: str) -> None:
        """Write down for which run it is used: its labels were made before anybody knew.

        Raises Unavailable, and ends it, where nothing can be written.
        """
        if not run:
            return
        try:
            self._note.write(run)
        except OSError as error:
            self.discard()
            raise Unavailable(f"the container's note could not be written: {error}") from None

    def hand_over(self, limits: Limits, began: float, grace_s: float, run: str = "") -> WorkerBox:
        """Let it lock itself in and start its clock. Raises Unavailable if it cannot."""
        channel = self._channel
        channel.bound(*answer_bounds(limits))
        group = ContainerGroup(self.id, cgroups.of(self.pid), self._end)
        for place in group.places:
            with contextlib.suppress(OSError):  # an engine user who is not root; the engine itself has no way
                cgroups.hold_connections(place)
        box = ContainerBox(channel, FirstProcess(self.pid, self._pidfd), group, began, run)
        box.kill_after(limits.wall_s, grace_s)
        try:
            channel.send({"go": True})
            head = channel.receive(deadline=time.monotonic() + _START_S).head
        except (WireClosed, WireLate, FrameError) as error:
            head = {"error": str(error) or type(error).__name__}
        if "locked" not in head:
            box.close()
            raise Unavailable(
                f"the container could not lock itself in: {head.get('error', 'it said nothing')}"
            )
        return box

    def discard(self) -> None:
        """End it unused."""
        self._channel.close()
        os.close(self._pidfd)
        self._end.remove(self.id)


class End:
    """Ends containers and takes them away, in threads of its own: the engine needs a while for it."""

    def __init__(self, engine: DockerEngine, threads: int) -> None:
        self.engine = engine
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="container-end")
        self._here: dict[str, OwnerNote] = {}
        self._stayed: set[str] = set()
        self._lock = threading.Lock()
        self._closed = False

    def made(self, id: str, note: OwnerNote) -> None:
        """From now on this container is to be taken away in the end, and its note with it."""
        with self._lock:
            self._here[id] = note
            closed = self._closed
        if closed:
            self._remove(id)
            raise Unavailable("the sandbox is closed", kind=ErrorKind.CLOSED)

    def kill(self, id: str) -> None:
        """Through the engine, where this user may not signal the process itself."""
        with contextlib.suppress(Unavailable), answering():
            self.engine.api.kill(id, "SIGKILL")

    def ran_out_of_memory(self, id: str) -> bool:
        """What the engine says of one that has ended; False when it cannot be asked."""
        with contextlib.suppress(Unavailable), answering():
            return not self._closed and bool(self.engine.api.inspect_container(id)["State"]["OOMKilled"])
        return False

    def remove(self, id: str) -> None:
        """Soon; what the engine will not remove is left to the reaper."""
        with self._lock:
            if not self._closed:
                self._threads.submit(self._remove, id)

    def close(self) -> None:
        """Take away all that are there, in use or not, and wait until they are gone."""
        with self._lock:
            self._closed = True
            for left in self._here:
                self._threads.submit(self._remove, left)
        self._threads.shutdown()

    def _remove(self, id: str) -> None:
        try:
            with answering():
                self.engine.api.remove_container(id, force=True, v=True)
        except Unavailable as error:
            if not isinstance(error.__context__, docker.errors.NotFound):
                # what stays is tried again once the engine removes another one, and at the end
                with self._lock:
                    self._stayed.add(id)
                return
        with self._lock:
            note = self._here.pop(id, None)
            again, self._stayed = self._stayed - {id}, set()
        if note is not None:
            note.remove()
        for one in again:
            self.remove(one)


class ContainerGroup:
    """The ``Group`` of a container: the engine's control groups, which go when it goes."""

    def __init__(self, id: str, places: tuple[Path, ...], end: End) -> None:
        self.id = id
        self.places = places
        self.end = end
        self._before = cgroups.ControlGroup(places).used()
        self._last = self._before

    def note(self) -> None:
        """Read while it is there for certain."""
        now = cgroups.ControlGroup(self.places).used()
        self._last = cgroups.GroupUsage(
            max(self._last.cpu_s, now.cpu_s),
            max(self._last.memory_peak_bytes, now.memory_peak_bytes),
            self._last.oom or now.oom,
        )

    def used(self) -> cgroups.GroupUsage:
        """Since the hand-over."""
        self.note()
        oom = self._last.oom
        if not oom and not all(place.exists() for place in self.places):
            oom = self.end.ran_out_of_memory(self.id)
        return cgroups.GroupUsage(self._last.cpu_s - self._before.cpu_s, self._last.memory_peak_bytes, oom)

    def remove(self) -> None:
        """The container, and its groups with it."""
        self.end.remove(self.id)


class ContainerBox(WorkerBox):
    """A box whose first process belongs to the engine."""

    group: ContainerGroup

    def _signal(self) -> None:
        self.group.note()
        try:
            super()._signal()
        except PermissionError:  # an engine user who is not root
            self.group.end.kill(self.group.id)


@contextlib.contextmanager
def _listening(directory: Path) -> Iterator[socket.socket]:
    """A socket in a fresh directory; afterwards both are gone, while what is mounted of it stays, empty."""
    directory.mkdir(mode=0o755)
    handle = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"/proc/self/fd/{handle}/socket")  # the directory's own name may be too long
            os.chmod(directory / "socket", 0o666)  # noqa: S103 - for the user inside; the directory above is 0700
            listener.listen(1)
            yield listener
    finally:
        os.close(handle)
        for name in ("socket", "start.json"):
            (directory / name).unlink(missing_ok=True)
        directory.rmdir()


def _start(kind: ProfileKind, walls: ContainerProfile, token: str) -> dict[str, Any]:
    """What process 1 reads first (``agentos/worker/container_init.py``)."""
    request: dict[str, Any] = {"rlimits": {"CORE": 0}}
    if "limits" not in walls.weak:
        # NPROC is not among them: containers share the user id it counts by; the cgroup holds processes
        request["rlimits"] |= {"NOFILE": walls.extras.open_files, "FSIZE": kind.workspace_mb << 20}
        request["memory"] = kind.memory_mb << 20
    return {
        "token": token,
        "warm": [*(_LIGHT if kind.light else _WHOLE), kind.entry.partition(":")[0]],
        "entry": kind.entry,
        "request": request,
        "seccomp": seccomp.assemble(call_list()).hex(),
    }


def _handed_out(sock: socket.socket) -> Channel:
    """The pipes that all further talk is on go to whoever came. Nothing is ever read from the socket itself."""
    sock.shutdown(socket.SHUT_RD)
    channel, theirs = pipes()
    try:
        socket.send_fds(sock, [b"\0"], list(theirs))
    except OSError:
        channel.close()
        raise
    finally:
        for end in theirs:
            os.close(end)
    return channel


def _greeted(channel: Channel, sock: socket.socket, token: str, container: str, until: float) -> int:
    """The worker's pid on this host, once it has proved to be the worker. Raises Unavailable, OSError."""
    pid, _, _ = _PEER.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    try:
        frame = channel.receive(deadline=until)
        _check_hello(frame.head, token, pid, container)
    except (WireClosed, WireLate, FrameError, Unavailable) as error:
        raise Unavailable(f"the container did not begin: {error or type(error).__name__}") from None
    return int(pid)


def _check_hello(head: dict[str, Any], token: str, pid: int, container: str) -> None:
    """The one who speaks knows the token, and the kernel says that it lives in this very container."""
    if "error" in head:
        raise Unavailable(str(head["error"])[:500])
    if not hmac.compare_digest(str(head.get("hello", "")).encode(), token.encode()):
        raise Unavailable("it showed a token that is not its own")
    groups = Path(f"/proc/{pid}/cgroup").read_text() if pid > 0 else ""
    if container not in groups:
        raise Unavailable(
            "the process that answered is not the container's; the engine must run on this machine"
        )
