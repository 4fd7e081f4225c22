"""Tells a person of changes of state: read off the audit log, stored with the place in it, sent, tried again.

A change is stored in the transaction that moves the cursor, so it is stored once, whatever dies. A notification
is marked before it is sent: one that a crash caught in between is not sent again, and ``agentos status`` says that
it may be lost. One that could not be sent is tried again for about a day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog
from tenacity import (
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    wait_fixed,
)

from agentos.daemon.people.channels import ChannelFailed, Send
from agentos.domain import (
    Evolution,
    Json,
    KernelFault,
    Notification,
    NotificationState,
    Result,
    Run,
    Task,
    kind_of,
)
from agentos.errors import NotFound
from agentos.evolver.find.mining import yours
from agentos.ledger.audit import Entry
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger

CURSOR = "notify"
ON = "notify.on"  # memo: whether anybody was told under the last daemon
BATCH = 500
TRIES = 10
_TITLE, _TEXT = 120, 500
_BAD = frozenset({Result.FAILED, Result.TIMEOUT})

log = structlog.get_logger("agentos.notify")


@dataclass(frozen=True, slots=True)
class Change:
    """What a person may want to know. Made of ids, names and states alone: no file, no answer, no secret."""

    subject: str
    event: str
    title: str
    text: str
    arrived: datetime | None = None  # of the files of a watched folder: when this one was taken in


class Notifier:
    """Used from one thread. ``on`` are the events that are told; ``channels`` may be none."""

    def __init__(
        self,
        ledger: Ledger,
        channels: Mapping[str, Send],
        on: Sequence[str],
        redact: Callable[[Json], Json],
        pause_s: float = 0.5,
    ) -> None:
        self._ledger = ledger
        self._channels = channels
        self._on = frozenset(on)
        self._redact = redact
        self._pause_s = pause_s

    def begin(self) -> bool:
        """Once, when the daemon starts: from where it goes on. Whether anybody is told at all."""
        wanted, before = bool(self._channels), bool(self._ledger.get_kv(ON, False))
        if wanted and not before:  # what happened before is no news
            self._ledger.advance(CURSOR, self._ledger.head().count, [])
        if wanted is not before:
            self._ledger.set_kv(ON, wanted)
        for note in self._ledger.find(Notification, state=NotificationState.SENDING):
            self._ledger.put(
                replace(note, state=NotificationState.UNCERTAIN, why="the daemon ended while it was sent")
            )
        return wanted

    def turn(self, now: datetime) -> None:
        """Store what changed, and send what is due."""
        self._read(now)
        for note in self._ledger.find(Notification, state=NotificationState.PENDING):
            # one that is due later than any pause takes was dated by a clock that was ahead
            if note.due is None or not now < note.due <= now + pause(TRIES):
                self._send(note, now)

    def _read(self, now: datetime) -> None:
        while entries := self._ledger.entries_after(self._ledger.read(CURSOR), BATCH):
            for entry in entries:
                change = change_of(self._ledger, entry)
                if change is not None:
                    self._ledger.advance(CURSOR, entry.seq, self._notes(change, entry, now))
            self._ledger.advance(CURSOR, entries[-1].seq, [])

    def _notes(self, change: Change, entry: Entry, now: datetime) -> list[Notification]:
        told = [*self._channels] if change.event in self._on else []
        state = NotificationState.PENDING if told else NotificationState.MUTED
        subject, title, text = (
            str(self._redact(text)) for text in (change.subject, change.title, change.text)
        )
        return [
            Notification(
                id=f"note-{entry.seq}{'-' if channel else ''}{channel}",
                subject=subject,
                event=change.event,
                channel=channel,
                title=_line(title, _TITLE),
                text=_line(text, _TEXT),
                at=now,
                state=state,
            )
            for channel in told or [""]
        ]

    def _send(self, note: Notification, now: datetime) -> None:
        send = self._channels.get(note.channel)
        if send is None:
            self._ledger.put(
                replace(note, state=NotificationState.FAILED, why="the settings name this way no more")
            )
            return
        note = replace(note, state=NotificationState.SENDING, tries=note.tries + 1, due=None)
        self._ledger.put(note)
        try:
            deliver(send, note, self._pause_s)
        except ChannelFailed as error:
            log.warning("not delivered", notification=note.id, why=str(error))
            over = note.tries >= TRIES
            due = None if over else now + max(pause(note.tries), timedelta(seconds=error.after_s))
            state = NotificationState.FAILED if over else NotificationState.PENDING
            self._ledger.put(replace(note, state=state, due=due, why=str(self._redact(str(error)))[:_TEXT]))
        else:
            self._ledger.put(replace(note, state=NotificationState.DELIVERED, why=""))


def deliver(send: Send, note: Notification, pause_s: float = 0.5) -> None:
    """Send it, and once more a moment later unless it is asked to wait longer. Raises ChannelFailed."""
    tries = Retrying(
        stop=stop_after_attempt(2),
        wait=wait_fixed(pause_s),
        retry=retry_if_exception(lambda error: isinstance(error, ChannelFailed) and error.after_s <= pause_s),
        reraise=True,
    )
    tries(send, note)


def pause(tries: int) -> timedelta:
    """Until the next try: a minute, then three times as long each time, at most four hours."""
    return timedelta(minutes=min(3 ** (tries - 1), 240))


def _line(text: str, most: int) -> str:
    plain = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"


# --- what is a change ---------------------------------------------------------------------------

_EVOLUTIONS: Mapping[str, tuple[str, str]] = {
    "evolution.awaiting_consent": ("needs_you", "waits for your consent"),
    "evolution.probation": ("promoted", "was promoted"),
    "evolution.rolled_back": ("rolled_back", "was rolled back"),
}


def change_of(reader: Reader, entry: Entry) -> Change | None:
    """What the entry says that a person did not know, None where that is nothing."""
    try:
        found = next(_changes(reader, entry), None)
    except NotFound:  # a ledger that was mended by hand
        return None
    if found is None:
        return None
    last = next(iter(reader.newest(Notification, 1, subject=found.subject)), None)
    if last is not None and found.arrived is not None and last.at >= found.arrived:
        return None  # it was there when a person was told of the others
    if found.event == "recovered":
        return found if last is not None and last.event in ("failed", "budget", "needs_you") else None
    return None if last is not None and last.event == found.event and found.arrived is None else found


def _changes(reader: Reader, entry: Entry) -> Iterator[Change]:
    if entry.event == "run.finished":
        run = reader.run(entry.subject)
        task = reader.task(run.task_id)
        if not task.parent:  # else a part of what is told of
            yield from (_of_its_folder(reader, task, change) for change in _of_run(reader, task, run))
    elif entry.event == "task.given_up":
        task = reader.task(entry.subject)
        text = f"The machinery could not bring it to an end: agentos task show {task.id}"
        yield Change(f"task:{task.name}", "failed", f"{task.name} failed", text)
    elif entry.event in _EVOLUTIONS:
        event, said = _EVOLUTIONS[entry.event]
        evolution = reader.get(Evolution, entry.subject)
        title = f"An edit of {evolution.resource or 'the registry'} {said}"
        yield Change(
            f"evolution:{evolution.id}", event, title, f"See it with: agentos evolution show {evolution.id}"
        )


def _of_its_folder(reader: Reader, task: Task, change: Change) -> Change:
    """Of a file that arrived in a watched folder what is told is of the folder: many come, and fail, together."""
    if not task.schedule_id or change.subject != f"task:{task.name}":
        return change
    schedule = reader.task(task.schedule_id)
    if schedule.trigger is None or schedule.trigger.watch is None:
        return change
    title = f"{schedule.name} passes again" if change.event == "recovered" else change.title
    return replace(change, subject=f"task:{schedule.name}", title=title, arrived=task.created_at)


def _of_run(reader: Reader, task: Task, run: Run) -> Iterator[Change]:
    outcome = run.outcome
    if outcome is None:
        return
    subject, see = f"task:{task.name}", f"See it with: agentos run show {run.id}"
    if outcome.result is Result.WAITING:
        answer = f"Answer with: agentos run answer {run.id}"
        yield Change(f"run:{run.id}", "needs_you", f"{task.name} asks you something", answer)
    elif kind_of(outcome.fault) is KernelFault.DAY_BUDGET:
        day = run.finished_at or run.started_at
        yield Change(f"budget:{day:%Y-%m-%d}", "budget", "The budget of the day is used up", see)
    elif outcome.result is Result.BUDGET:
        yield Change(subject, "budget", f"{task.name} used up its budget", see)
    elif yours(outcome, reader.steps(run.id)):
        text = f"See what to allow, or what else to do: agentos run show {run.id}"
        yield Change(subject, "needs_you", f"{task.name} needs what you did not allow", text)
    elif outcome.result in _BAD:
        yield Change(subject, "failed", f"{task.name} failed", f"It ended as {outcome.result.value}. {see}")
    elif outcome.result is Result.PASSED:
        yield Change(subject, "recovered", f"{task.name} passes again", see)
