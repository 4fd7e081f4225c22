"""The bubblewrap adapter of the Sandbox port: boxes forked from a template in milliseconds.

See docs/understand/security.md for what is promised and docs/decisions for why it forks. What a box looks
like from inside is ``agentos/worker/template.py``; the command line that starts it, ``launch.py``.
"""

from __future__ import annotations

import base64
import contextlib
import json
import math
import os
import resource
import socket
import struct
import subprocess
import tempfile
import threading
import time
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from agentos import shipped
from agentos.domain import Limits
from agentos.errors import ErrorKind, Unavailable, lacking
from agentos.sandboxes import cgroups, seccomp
from agentos.sandboxes.box import (
    BoxLimits,
    FirstProcess,
    WorkerBox,
    answer_bounds,
    box_limits,
    file_systems_and_limits,
    pipes,
)
from agentos.sandboxes.bubblewrap.launch import FILES, LABEL_VARIABLE, Runtime, command, remedy, require
from agentos.sandboxes.docker.image_host import runtime
from agentos.sandboxes.owner import GROUPS, Owner, OwnerNote, notes
from agentos.sandboxes.probe import Guarantee, probe, refusal
from agentos.sandboxes.seccomp import call_list
from agentos.wire import Channel, FrameError, WireClosed, WireLate

ENTRY = "agentos.worker.job:serve"
_WARM = ("agentos.worker.warm",)
_START_S = 60.0  # of the template
_HELLO_S = 60.0
# A box here is a fork with everything imported, so it needs little more; all that its group gives is filled.
_PROBE_MEMORY_MB = 16
_ENDING_S = 1.0  # a template that dies ends this soon after the box that noticed
_CREDENTIALS = struct.Struct("iII")  # struct ucred: pid, uid, gid


class Bubblewrap:
    """Boxes in fresh namespaces, without network, without host files.

    ``home`` labels what is left outside the process for the reaper. ``run_uid`` is the uid that
    sandboxes run as when this process is root. ``entry`` is what a box runs, ``module:function``,
    called with its channel. ``extra`` are directories of modules visible inside.

    Constructing costs nothing; the first ``open`` (or ``start``) starts the template.
    """

    name = "bubblewrap"
    reaches = "namespace"
    find_groups = staticmethod(cgroups.find)

    def __init__(
        self,
        home: Path,
        run_uid: int | None = None,
        *,
        entry: str = ENTRY,
        extra: tuple[Path, ...] = (),
    ) -> None:
        self.level = "unprobed"
        self.groups = cgroups.Cgroups()
        self._notes = home / GROUPS
        self._owner = str(Owner.here(home))
        self._run_uid = run_uid
        self._entry = entry
        self._extra = extra
        self._extras: BoxLimits | None = None
        self._template: Template | None = None
        self._starting = threading.Lock()
        self._lock = threading.Lock()
        self._closed = False
        self._refusal = "the sandbox is closed"  # what a closed one answers

    @property
    def image(self) -> str:
        """A digest of the host's Python as boxes see it."""
        return runtime()

    @property
    def lacks(self) -> str:
        """What this machine does not give once it is started, and what to type; "" where nothing is missing."""
        return self.groups.lacks

    def open(self, limits: Limits, *, light: bool = False, run: str = "") -> WorkerBox:
        """A fresh box under these limits. Raises Unavailable with what to install or enable.

        ``light`` changes nothing here: every box is forked with everything imported.
        """
        self.start()
        return self.open_entry(limits, self._entry, run=run)

    def start(self) -> None:
        """Start the template and probe it, unless that is done. Raises Unavailable as ``open``."""
        with self._starting:
            if self.level != "unprobed":
                return
            if why := refusal(self.examine()):
                self.close()
                self._refusal = why
                raise Unavailable(why)
            self.level = self.reaches

    def examine(self) -> tuple[Guarantee, ...]:
        """Try every promise once; the claims say what held."""
        self._running()
        return probe(self._open_small, grouped=bool(self.groups.parents), memory_mb=_PROBE_MEMORY_MB)

    def open_entry(self, limits: Limits, entry: str, *, run: str = "") -> WorkerBox:
        """As ``open``, with another program inside (the probe's)."""
        return self._open(limits, (entry, run))

    def _open_small(self, limits: Limits, entry: str) -> WorkerBox:
        """Small file systems: what may lie in them counts as memory, all of which the probe fills.

        With them it is still more than twice ``memory_mb``, which one process tries to get.
        """
        return self._open(limits, (entry, ""), small=True)

    def _open(self, limits: Limits, what: tuple[str, str], *, small: bool = False) -> WorkerBox:
        template, extras = self._running()
        if small:
            extras = replace(extras, tmp_mb=16, snapshot_mb=8, shm_mb=4)
        try:
            return self._make(template, extras, limits, what)
        except Unavailable:
            if not template.ended(_ENDING_S):
                raise
        template, _ = self._running()
        return self._make(template, extras, limits, what)

    def close(self) -> None:
        """End the template and with it every open box; idempotent."""
        with self._lock:
            self._closed = True
            template, self._template = self._template, None
        if template is not None:
            template.close()
        self.groups.drop(self._owner)
        for note in notes(self._notes):  # of boxes that nobody closed, because the daemon stops at once
            if str(note.owner) == self._owner:
                note.remove()

    def __enter__(self) -> Bubblewrap:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def template_pid(self) -> int:
        """The host's pid of the running template, -1 when there is none."""
        template = self._template
        return template.pid if template is not None and template.alive() else -1

    def _running(self) -> tuple[Template, BoxLimits]:
        """The template, started if there is none or it died."""
        with self._lock:
            if self._closed:
                raise Unavailable(self._refusal, kind=ErrorKind.CLOSED)
            if self._extras is None:
                self._extras = box_limits()
                self.groups = self.find_groups()
            if self._template is None or not self._template.alive():
                if self._template is not None:
                    self._template.close()
                    self._template = None
                start = {
                    "warm": [*_WARM, self._entry.partition(":")[0]],
                    "seccomp": seccomp.assemble(call_list()).hex(),
                    "known": _shipped_harness(),
                }
                # Kept from here on, as the template keeps what it imports: the files may become another release's.
                runtime()
                try:
                    self._template = Template(start, Runtime.here(self._extra), self._run_uid, self._owner)
                except OSError as error:
                    why = lacking(error) or error
                    raise Unavailable(f"the sandbox could not be made: {why}") from None
            return self._template, self._extras

    def _group(self, quota: cgroups.Quota, run: str) -> cgroups.ControlGroup | None:
        """A control group by a name that says nothing inside; what it is for is noted outside."""
        if not self.groups.parents:
            return None
        try:
            note = OwnerNote.fresh(self._notes, self._owner, run)
        except FileNotFoundError:
            self._notes.mkdir(mode=0o700, parents=True, exist_ok=True)
            note = OwnerNote.fresh(self._notes, self._owner, run)
        try:
            return self.groups.group(self._owner, note.token, quota, note.remove)
        except OSError:
            note.remove()
            raise

    def _make(
        self, template: Template, extras: BoxLimits, limits: Limits, what: tuple[str, str]
    ) -> WorkerBox:
        """Ask for a box in a control group of its own; start its clock when its walls stand; let it go."""
        began = time.monotonic()
        entry, run = what
        request = {"entry": entry, "sysctls": extras.sysctls, **file_systems_and_limits(limits, extras)}
        _require_limits(limits, request["rlimits"])
        try:
            with contextlib.ExitStack() as undo, contextlib.ExitStack() as handed:
                channel, theirs = pipes()
                undo.callback(channel.close)
                for end in theirs:
                    handed.callback(os.close, end)
                greeting, greeter = (handed.enter_context(sock) for sock in socket.socketpair())
                greeting.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
                group = self._group(
                    cgroups.Quota(_memory(limits, extras), limits.processes, extras.cpus), run
                )
                doors = []
                if group is not None:
                    undo.callback(group.remove)
                    doors = group.doors()
                for door in doors:
                    handed.callback(os.close, door)
                template.spawn(request, [*theirs, greeter.fileno(), *doors])
                greeter.close()
                process = FirstProcess(*_hello(greeting))
                channel.bound(*answer_bounds(limits))
                box = WorkerBox(channel, process, group, began, run)
                undo.pop_all()
            box.kill_after(limits.wall_s, extras.grace_s)
            with contextlib.suppress(WireClosed):  # it is dead already; its reader will see
                channel.send({"go": True})
        except (OSError, WireLate, FrameError, WireClosed) as error:
            why = lacking(error) or error or type(error).__name__
            raise Unavailable(f"the sandbox could not be made: {why}") from None
        return box


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
                for content in FILES:
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
            self._control.settimeout(_START_S)
            self._control.send(json.dumps(arguments).encode())
            answer = self._control.recv(1 << 16)
        except OSError:
            answer = b""
        if not answer:
            detail = self.close()
            raise Unavailable(f"bubblewrap could not start the sandbox{remedy(detail)}")
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


def _shipped_harness() -> str:
    """Its sources by registry path, packed: most runs bring just these, and compiling them costs a short run a third of its CPU."""
    place = shipped.folder("registry") / "harness" / "default"
    sources = {f"harness/default/{file.name}": file.read_text("utf-8") for file in sorted(place.glob("*.py"))}
    return base64.b64encode(zlib.compress(json.dumps(sources).encode())).decode()


def _memory(limits: Limits, extras: BoxLimits) -> int:
    """The group's memory holds its processes *and* what lies in the workspace and other tmpfs."""
    files = limits.workspace_mb + extras.tmp_mb + extras.snapshot_mb + extras.shm_mb
    return limits.memory_mb + files << 20


def _require_limits(limits: Limits, rlimits: Mapping[str, int]) -> None:
    """Raises Unavailable where a box could not get one of its limits: its tools would seem to fail by themselves."""
    for name, wanted in {**rlimits, "CPU": math.ceil(limits.wall_s)}.items():
        _, hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
        if hard != resource.RLIM_INFINITY and hard < wanted:
            raise Unavailable(
                f"a box needs a limit of {wanted} for {name}, and the hard limit here is {hard}: "
                f"raise it (ulimit -H, Limit{name}= of the service)"
            )


def _hello(sock: socket.socket) -> tuple[int, int]:
    """The box's pid on the host as the kernel (not the box) says it, and a descriptor of the process.

    No code of a job runs yet: what is read here comes from the template's own.
    """
    sock.settimeout(_HELLO_S)
    _, ancillary, _, _ = sock.recvmsg(1, socket.CMSG_SPACE(_CREDENTIALS.size), socket.MSG_PEEK)
    frame = Channel(sock).receive(deadline=time.monotonic() + _HELLO_S)
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS) and "hello" in frame.head:
            pid = int(_CREDENTIALS.unpack(data)[0])
            return pid, os.pidfd_open(pid)
    raise Unavailable(f"the sandbox could not be made: {frame.head.get('error', 'it sent no greeting')}")
