"""Brings answers and files of finished runs to where their task says: into folders, or to commands.

What is due is written with the run's outcome in one transaction, its content in a blob; so a daemon that dies
at any point later finds it and finishes it, once. A path is on record before anything stands there: after a
crash the file with our content at that path is ours. A command that began is never begun again by itself,
because nobody can tell how far it came.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import IO

import structlog

from agentos.daemon.scheduling.clock import local
from agentos.domain import (
    Delivery,
    DeliveryState,
    Destination,
    InputFile,
    Json,
    Result,
    Task,
    digest,
)
from agentos.errors import AgentOSError, Conflict, UserError, to_type
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.ports import Blobs
from agentos.schedule_document import filled, is_below
from agentos.sources import regex

PAUSES = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 30))  # before the next attempt
_NAME_MAX = 255  # bytes: of Linux' file systems
_PATH_MAX = 2_500  # bytes: an index of PostgreSQL takes 2,704
_NUMBERS_MAX = 10_000
_SAID = 400  # characters of what a command printed
_NEVER = (Result.INFRA, Result.WAITING, Result.CANCELLED, Result.NOT_REPLAYABLE)
# What a command gets of the daemon's environment: no key of a provider is among it.
_VARIABLES = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|TMPDIR|DISPLAY|WAYLAND_DISPLAY|XDG_RUNTIME_DIR|DBUS_SESSION_BUS_ADDRESS"
)

log = structlog.get_logger("agentos.delivery")


class Undeliverable(UserError):
    """A delivery that no other attempt would bring further."""


@dataclass(frozen=True, slots=True)
class RunResults:
    """What a run ended with, of which results are delivered."""

    result: Result
    answer: Json
    outputs: Sequence[InputFile]


def deliveries_of(task: Task, run_id: str, ended: RunResults, blobs: Blobs) -> list[Delivery]:
    """What is to be delivered of a run that ended so; nothing of what a run handed over."""
    if task.parent or ended.result in _NEVER:
        return []
    found: list[Delivery] = []
    for number, destination in enumerate(task.deliver):
        if destination.when == "passed" and ended.result is not Result.PASSED:
            continue
        for file, sha256, size in _contents(destination, ended, blobs):
            found.append(
                Delivery(
                    id=f"delivery-{digest([run_id, number, file])[:13]}",
                    run_id=run_id,
                    task_id=task.id,
                    schedule_id=task.schedule_id,
                    destination=destination,
                    file=file,
                    sha256=sha256,
                    size=size,
                    state=DeliveryState.PENDING,
                    created_at=task.created_at,
                )
            )
    return found


def _contents(destination: Destination, ended: RunResults, blobs: Blobs) -> list[tuple[str, str, int]]:
    """File ("" for the answer), digest and size of each thing to deliver."""
    answer = ended.answer
    if not destination.file:
        text = answer if isinstance(answer, str) else json.dumps(answer, indent=2, ensure_ascii=False)
        data = (text if text.endswith("\n") else f"{text}\n").encode("utf-8", "replace")
        return [("", blobs.put(data), len(data))]
    matches = re.compile(regex(destination.file)).fullmatch
    found = [(file.path, file.sha256, file.size) for file in ended.outputs if matches(file.path)]
    return found or [(destination.file, "", 0)]


class Deliverer:
    """Does what is due, one after another. Not thread-safe."""

    def __init__(self, ledger: Ledger, home: Home) -> None:
        self._ledger = ledger
        self._home = home

    def deliver_due(self, now: datetime) -> datetime | None:
        """Do it; when the next attempt at something is due, None if nothing is left."""
        later: list[datetime] = []
        for delivery in self._ledger.find(Delivery, state=DeliveryState.PENDING.value):
            # one that is due later than any pause takes was dated by a clock that was ahead
            if delivery.due_at is not None and now < delivery.due_at <= now + PAUSES[-1]:
                later.append(delivery.due_at)
                continue
            done = self._attempt(delivery, now)
            if done.due_at is not None:
                later.append(done.due_at)
        return min(later, default=None)

    def _attempt(self, delivery: Delivery, now: datetime) -> Delivery:
        delivery = replace(delivery, attempts=delivery.attempts + 1, due_at=None)
        try:
            delivery = self._deliver(delivery)
        except Undeliverable as error:
            newest = replace(self._newest(delivery), attempts=delivery.attempts)
            return self._end(newest, DeliveryState.FAILED, str(error), now)
        except (AgentOSError, OSError) as error:
            why = str(error)
            if isinstance(error, OSError):
                why = f"{error.filename or delivery.destination.folder}: {error.strerror}"
            newest = replace(self._newest(delivery), attempts=delivery.attempts)
            if delivery.attempts > len(PAUSES):
                return self._end(newest, DeliveryState.FAILED, why, now)
            waiting = replace(newest, due_at=now + PAUSES[delivery.attempts - 1], reason=why)
            if isinstance(error, Conflict):  # a command that did not do its work may be tried again
                waiting = replace(waiting, command_began=False)
            self._ledger.put(waiting)
            return waiting
        # Outside of the try: it is done, also where that cannot be written.
        return self._end(delivery, DeliveryState.DONE, delivery.reason, now)

    def _newest(self, delivery: Delivery) -> Delivery:
        return self._ledger.get(Delivery, delivery.id)

    def _end(self, delivery: Delivery, state: DeliveryState, reason: str, now: datetime) -> Delivery:
        ended = replace(delivery, state=state, reason=reason, ended_at=now, due_at=None)
        said = {"file": ended.file, "path": ended.path, "sha256": ended.sha256, "reason": reason}
        event = "run.delivered" if state is DeliveryState.DONE else "run.not_delivered"
        self._ledger.note(event, ended.run_id, {**said, "delivery": ended.id}, (ended,))
        (log.info if state is DeliveryState.DONE else log.warning)(
            event, run=ended.run_id, path=ended.path, why=reason
        )
        return ended

    def _deliver(self, delivery: Delivery) -> Delivery:
        destination = delivery.destination
        if not delivery.sha256:
            raise Undeliverable(f"the run left no file that matches '{delivery.file}'")
        if delivery.command_began:
            raise Undeliverable(
                "how the command ended was not written down, so nobody knows how far it came; "
                f"`agentos run deliver {delivery.run_id}` runs it again"
            )
        content = self._ledger.blobs.get(delivery.sha256)
        if destination.folder:
            delivery = self._put_file(delivery, content)
        if destination.command:
            delivery = self._run_command(delivery, content)
        return delivery

    # --- folders ------------------------------------------------------------------------------

    def _put_file(self, delivery: Delivery, content: bytes) -> Delivery:
        name = name_of(delivery, self._ledger.task(delivery.task_id))
        if not is_below(name):
            raise Undeliverable(f"{name!r} is no name below the folder {delivery.destination.folder}")
        folder = Path(delivery.destination.folder)
        if len(os.fsencode(folder / name)) > _PATH_MAX:
            raise Undeliverable(
                f"its path would have more than {_PATH_MAX:,} bytes; name a shorter folder or file"
            )
        real = Path(os.path.realpath(folder))  # Path.resolve raises no OSError at a circle of links
        if self._home.root.resolve() in (real, *real.parents):
            raise Undeliverable(f"{folder} lies in the home of agentos itself; name another folder")
        folder.mkdir(parents=True, exist_ok=True)
        with _opened(folder, PurePosixPath(name).parts[:-1]) as place:
            return self._put_into(place, delivery, PurePosixPath(name), content)

    def _put_into(self, place: int, delivery: Delivery, name: PurePosixPath, content: bytes) -> Delivery:
        folder = Path(delivery.destination.folder) / name.parent
        aside = f".{delivery.id}.part"
        try:
            if delivery.path and _is_still(place, Path(delivery.path).name, delivery):
                return delivery  # a daemon that died had come so far, perhaps not to removing what is aside
            _write_aside(place, aside, content)
            for number in range(1, _NUMBERS_MAX):
                candidate = _numbered(name, number)
                replaces = number == 1 and self._is_ours(place, candidate, delivery, str(folder / candidate))
                if not replaces and _is_there(candidate, place):
                    continue
                delivery = replace(delivery, path=str(folder / candidate))
                self._ledger.put(delivery)
                if _move(place, aside, candidate, over=replaces):
                    os.fsync(place)
                    return delivery
        finally:
            with suppress(FileNotFoundError):
                os.unlink(aside, dir_fd=place)
        raise Undeliverable(f"{_NUMBERS_MAX:,} files named like {name} are in {folder}")

    def _is_ours(self, place: int, name: str, delivery: Delivery, path: str) -> bool:
        """Whether what stands there was delivered by the same schedule and is as it was then."""
        if not delivery.destination.replace:
            return False
        found = self._ledger.newest(Delivery, 1, path=path, state=DeliveryState.DONE.value)
        ours = [
            old
            for old in found
            if (old.schedule_id or old.task_id) == (delivery.schedule_id or delivery.task_id)
        ]
        return bool(ours) and _is_still(place, name, ours[0])

    # --- commands -----------------------------------------------------------------------------

    def _run_command(self, delivery: Delivery, content: bytes) -> Delivery:
        destination = delivery.destination
        delivery = replace(delivery, command_began=True)
        with tempfile.TemporaryDirectory(
            prefix="delivery-", dir=self._home.run, ignore_cleanup_errors=True
        ) as aside:
            path = delivery.path
            if not path and any("{path}" in word for word in destination.command):
                path = str(Path(aside) / (PurePosixPath(delivery.file).name or "answer"))
                Path(path).write_bytes(content)
            command = [word.replace("{path}", path) for word in destination.command]
            with tempfile.TemporaryFile(dir=aside) as given, tempfile.TemporaryFile(dir=aside) as said:
                given.write(content)
                given.seek(0)
                self._ledger.put(delivery)
                _run(command, destination.timeout_s, given, said, _variables(delivery, path))
                reason = _tail(said)
        return replace(delivery, reason=reason)


def _variables(delivery: Delivery, path: str) -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if _VARIABLES.fullmatch(name)}
    own = {"RUN": delivery.run_id, "TASK": delivery.task_id, "DELIVERY": delivery.id, "PATH": path}
    return kept | {f"AGENTOS_{name}": value for name, value in own.items()}


def name_of(delivery: Delivery, task: Task) -> str:
    """What the file is to be called, below the folder."""
    zone = task.trigger.timezone if task.trigger is not None else ""
    at = local(delivery.created_at, zone)
    file = PurePosixPath(delivery.file)
    is_text = not delivery.file
    template = delivery.destination.name or ("{task}-{date}.txt" if is_text else "{file}")
    values = {
        "date": f"{at:%Y-%m-%d}",
        "time": f"{at:%H%M}",
        "task": re.sub(r"[^\w.-]+", "-", task.name).strip("-.")[:80] or "task",
        "run": delivery.run_id,
        "file": str(file) if delivery.file else "answer",
        "stem": file.stem or "answer",
        "ext": file.suffix.lstrip("."),
        "input": PurePosixPath(task.inputs[0].path).stem if task.inputs else "input",
    }
    name = filled(template, values)
    last = PurePosixPath(name)
    return str(last.with_name(_numbered(last, 1))) if len(os.fsencode(last.name)) > _NAME_MAX else name


def _numbered(name: PurePosixPath, number: int) -> str:
    """The last part of the name, with a number from 2 on; what a file system does not take is cut off its stem."""
    end = f"-{number}{name.suffix}" if number > 1 else name.suffix
    room = _NAME_MAX - len(os.fsencode(end))
    stem = os.fsencode(name.stem)
    return (stem[:room].decode(errors="ignore") if len(stem) > room > 0 else name.stem) + end


@contextmanager
def _opened(folder: Path, below: Sequence[str]) -> Iterator[int]:
    """A descriptor of the folder below ``folder``, made if it is not there, through no symbolic link."""
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in below:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=place)
            try:
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
            except NotADirectoryError:
                raise Undeliverable(f"{folder / name} is no folder, or a link to one") from None
            os.close(place)
            place = inner
        yield place
    finally:
        os.close(place)


def _write_aside(place: int, name: str, content: bytes) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=place)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with open(os.open(name, flags, 0o666, dir_fd=place), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _is_there(name: str, place: int) -> bool:
    try:
        os.stat(name, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _move(place: int, aside: str, name: str, *, over: bool) -> bool:
    """Give the file its name at once; False when another took that name meanwhile."""
    if over:
        os.rename(aside, name, src_dir_fd=place, dst_dir_fd=place)
        return True
    try:
        os.link(aside, name, src_dir_fd=place, dst_dir_fd=place, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError:  # no links on this file system: take the name, then put the content over our own file
        try:
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=place))
        except FileExistsError:
            return False
        os.rename(aside, name, src_dir_fd=place, dst_dir_fd=place)
    return True


def _is_still(place: int, name: str, delivery: Delivery) -> bool:
    """Whether a plain file of that name holds what was delivered; others may write there, so no more than that is read."""
    try:
        with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place), "rb") as file:
            return digest(file.read(delivery.size + 1)) == delivery.sha256
    except OSError:
        return False


def _run(
    command: Sequence[str], timeout_s: float, given: IO[bytes], said: IO[bytes], variables: Mapping[str, str]
) -> None:
    """Run it to its end. Raises Undeliverable when it cannot be started, Conflict when it did not do its work."""
    try:
        child = subprocess.Popen(
            command,
            stdin=given,
            stdout=said,
            stderr=subprocess.STDOUT,
            env=dict(variables),
            cwd=_begins_in(),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise Undeliverable(f"{command[0]} cannot be started: {why}") from None
    try:
        code = child.wait(timeout_s)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        raise Conflict(f"{command[0]} did not end within {timeout_s:g} s: {_tail(said)}") from None
    if code != 0:
        raise Conflict(f"{command[0]} ended with exit code {code}: {_tail(said) or 'it said nothing'}")


def _begins_in() -> str:
    """The home directory of the daemon's user, who in a container may have none."""
    found = os.path.expanduser("~")
    return found if os.path.isabs(found) else "/"


def _tail(said: IO[bytes]) -> str:
    size = said.seek(0, os.SEEK_END)
    said.seek(max(0, size - _SAID))
    return " ".join(said.read().decode("utf-8", "replace").split())


def again(ledger: Ledger, run_id: str, now: datetime) -> list[Delivery]:
    """Queue what could not be delivered of the run once more, as deliveries of their own.

    Raises Conflict when there is nothing to deliver again.
    """
    known = ledger.find(Delivery, run_id=run_id)
    newest = {(item.destination, item.file): item for item in known}  # the last of each
    failed = [item for item in newest.values() if item.state is DeliveryState.FAILED and item.sha256]
    if not failed:
        raise Conflict(
            f"nothing of {run_id} could not be delivered: ",
            to_type(f"agentos run show {run_id}"),
            " tells what was",
        )
    queued = [
        replace(
            item,
            id=f"delivery-{digest([item.id, now.isoformat()])[:13]}",
            state=DeliveryState.PENDING,
            attempts=0,
            due_at=None,
            command_began=False,
            ended_at=None,
            reason="",
        )
        for item in failed
    ]
    for item in queued:
        ledger.put(item)
    # last: a running daemon looks when the audit log grows
    ledger.note("run.deliver_again", run_id, {"deliveries": [item.id for item in queued]})
    return queued
