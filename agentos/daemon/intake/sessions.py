"""Session logs of the agents whose folders were adopted: taken in as runs, at once and as they come.

A session tells nothing of whether it went well, so its run's outcome is ``unknown``. One that grows after it was
taken in would be another run, so the daemon waits until nothing was written to it for a while.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import structlog

from agentos.errors import Invalid, UserError
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.trajectories.past import ImportTarget, Source, past_of
from agentos.trajectories.readers.formats import detect, read
from agentos.trajectories.readers.records import files_of, read_records

SETTLED_S = 600.0  # nothing was written for so long: the session is over
LOOK_S = 60.0
_MANY = 200  # files of one look
_LOOKED = "adopt.sessions"  # memo: folder of sessions -> time up to which its files were taken

log = structlog.get_logger("agentos.sessions")


def take_sessions(ledger: Ledger, into: ImportTarget, files: Sequence[Path]) -> Mapping[str, int]:
    """Take the sessions in these files in as runs: how many were "imported", "known" and "refused"."""
    counts: Counter[str] = Counter(imported=0, known=0, refused=0)
    for path in files:
        for record in read_records(path):
            try:
                if record.fault:
                    raise Invalid("record", [record.fault])
                name = detect(record.value)
                conversations = read(record.value, name)
            except Invalid:
                counts["refused"] += 1
                continue
            source = Source(name, record.file, record.number)
            for past in (past_of(conversation, source, into) for conversation in conversations):
                new = ledger.add_past(past.task, past.run, past.steps)
                counts["imported" if new else "known"] += 1
    return counts


def take_all(ledger: Ledger, into: ImportTarget, folder: Path) -> Mapping[str, int]:
    """The sessions there that are over; what is written, or may go on, is the daemon's."""
    until = time.time() - SETTLED_S
    counts = take_sessions(ledger, into, [path for path in _files(folder) if _changed(path) <= until])
    _remember(ledger, folder, until)
    return counts


class SessionLogs:
    """Looks into folders of sessions, once a minute."""

    def __init__(self, ledger: Ledger, registry: Registry, hold_out: float) -> None:
        self._ledger, self._registry, self._hold_out = ledger, registry, hold_out
        self._next = 0.0

    def look(self, folders: Iterable[str], now: float, clock: float) -> Mapping[str, int]:
        """Take in what is new and settled; the counts. ``now`` is monotonic, ``clock`` the time of files."""
        counts: Counter[str] = Counter()
        if now < self._next:
            return counts
        self._next = now + LOOK_S
        for folder in folders:
            counts.update(self._look_into(Path(folder), clock - SETTLED_S))
        return counts

    def _look_into(self, folder: Path, until: float) -> Mapping[str, int]:
        since = float(self._ledger.get_kv(_LOOKED, {}).get(str(folder), 0.0))
        if since > until + SETTLED_S:  # by a clock that was ahead: what was taken in is known
            since = 0.0
        written = sorted((_written(path), path) for path in _files(folder))
        new = [(at, path) for at, path in written if since < at <= until]
        if not new:
            return {}
        last = new[:_MANY][-1][0]
        into = ImportTarget(self._registry.stable(), self._hold_out, datetime.now(UTC))
        counts = take_sessions(self._ledger, into, [path for at, path in new if at <= last])
        _remember(self._ledger, folder, last)
        log.info("sessions taken in", folder=str(folder), **counts)
        return counts


def _files(folder: Path) -> Sequence[Path]:
    """None while the folder is away, or holds nothing yet."""
    try:
        return files_of(folder).files
    except UserError:
        return ()


def _changed(path: Path) -> float:
    """When its content was written; 0 for what is gone."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _written(path: Path) -> float:
    """When it was written, or came here; 0 for what is gone."""
    try:
        facts = path.stat()
    except OSError:
        return 0.0
    return max(facts.st_mtime, facts.st_ctime)


def _remember(ledger: Ledger, folder: Path, at: float) -> None:
    ledger.set_kv(_LOOKED, {**ledger.get_kv(_LOOKED, {}), str(folder): at})
