"""The hash chain of the audit log: what an entry's hash covers, and what is wrong with a chain.

Each entry carries the hash of the one before. An edited, removed, inserted or reordered entry
breaks the chain. Cutting off the newest entries does not, so the newest number and hash are also
kept in a file beside the ledger (``audit.head``). Whoever can write both files can rewrite the
whole log; only a head noted elsewhere (``agentos audit verify --head``) shows that.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from agentos.domain import Json, digest
from agentos.errors import ErrorKind, Unavailable, UserError
from agentos.ledger.rows.codec import fields_of, kept, plain
from agentos.ledger.rows.schema import LedgerConnection

_HEAD = re.compile(r"([0-9]{1,20}):([0-9a-f]{12,64})")
_NEWEST = 1_000  # entries
SHORT = 16  # hex digits of a head that is shown to be noted
PRUNED = "retention.pruned"  # the event of an entry that stands for what retention let go

Rows = Callable[..., Sequence[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class AuditHead:
    """The newest entry: how many there are, and its hash. Written ``number:hash``.

    One that a person noted may have the first digits of the hash only.
    """

    count: int = 0
    hash: str = "0" * 64

    def __str__(self) -> str:
        return f"{self.count}:{self.hash}"

    @property
    def short(self) -> str:
        """Enough of it to be noted by hand."""
        return f"{self.count}:{self.hash[:SHORT]}"

    @classmethod
    def parse(cls, text: str) -> AuditHead:
        """Raises UserError when ``text`` is not ``number:hash``."""
        found = _HEAD.fullmatch(text.strip())
        if not found:
            raise UserError(
                f"a head is 'number:hex digits' (12 to 64), as `agentos audit verify` prints it, not {text!r}",
                kind=ErrorKind.USAGE,
            )
        return cls(int(found[1]), found[2])


@dataclass(frozen=True, slots=True)
class Entry:
    """One decision or event. ``detail`` is kept as the JSON text that was hashed.

    ``previous`` is the hash of the entry before, or its first ``SHORT`` digits: enough to tell which entry is
    missing, while what the entry's own hash covers is the whole.
    """

    seq: int
    at: str
    event: str
    subject: str
    detail_text: str
    previous: str
    hash: str

    @property
    def detail(self) -> Json:
        """None where it is no JSON any more: then it was changed."""
        try:
            return json.loads(self.detail_text)
        except (ValueError, RecursionError):
            return None

    @classmethod
    def of(cls, row: Sequence[Any]) -> Self:
        """From its columns. What was damaged is no longer what was hashed."""
        seq, at, event, subject, detail, previous, sealed = row
        try:
            text = plain(detail)
        except Unavailable:
            text = "null"
        # bytes, where somebody wrote some
        return cls(seq, str(at), str(event), str(subject), text, in_digits(previous), in_digits(sealed))

    def row(self) -> dict[str, object]:
        """Its columns."""
        return {
            "seq": self.seq,
            "at": self.at,
            "event": self.event,
            "subject": self.subject,
            "detail": kept(self.detail_text),
            "previous": bytes.fromhex(self.previous),
            "hash": bytes.fromhex(self.hash),
        }


def chained(head: AuditHead, at: str, event: str, subject: str, detail_text: str) -> Entry:
    """The entry that follows ``head``."""
    seq = head.count + 1
    sealed = digest([head.hash, seq, at, event, subject, detail_text])
    return Entry(seq, at, event, subject, detail_text, head.hash[:SHORT], sealed)


Noted = tuple[AuditHead, str]  # a head that was kept elsewhere, and where


def faults(
    entries: Iterable[Entry],
    kept: AuditHead | None,
    noted: Sequence[Noted] = (),
    after: AuditHead = AuditHead(),
) -> list[str]:
    """What is wrong, one sentence each; empty when the chain is whole.

    ``kept`` is the head in the file, None when there is none; ``noted`` are those kept elsewhere. ``after`` is the
    head that the entries follow.
    """
    found: list[str] = []
    head = after
    wanted: dict[int, list[Noted]] = {}
    for known, where in (*(((kept, "the file audit.head"),) if kept else ()), *noted):
        wanted.setdefault(known.count, []).append((known, where))
    for entry in entries:
        found += _entry_faults(entry, head)
        head = AuditHead(entry.seq, entry.hash)
        for known, where in wanted.pop(entry.seq, ()):
            if not entry.hash.startswith(known.hash):
                found.append(f"entry {entry.seq} is not the one that {where} knows")
    for known, where in sorted(
        (item for items in wanted.values() for item in items), key=lambda it: it[0].count
    ):
        if known.count > 0:
            found.append(
                f"the log was cut short: {where} knows {known.count} entries, {head.count} are there"
            )
    if kept is None:
        found.append("the file audit.head is missing or unreadable, so a cut at the end would not show")
    return found


def _entry_faults(entry: Entry, head: AuditHead) -> Iterator[str]:
    """Why the entry does not follow the head before it."""
    follows = len(entry.previous) >= SHORT and head.hash.startswith(entry.previous)
    if entry.seq != head.count + 1:
        yield f"entry {head.count + 1} is missing: entry {entry.seq} follows entry {head.count}"
    elif not follows:
        yield f"entry {entry.seq} does not continue entry {head.count}"
    before = AuditHead(entry.seq - 1, head.hash if follows else entry.previous)
    if len(before.hash) < len(head.hash):
        return  # what it was hashed with is gone
    if chained(before, entry.at, entry.event, entry.subject, entry.detail_text).hash != entry.hash:
        yield f"entry {entry.seq} was changed: its hash does not match its content"


class HeadFile:
    """``audit.head``: overwritten in place after each commit, never behind a cut chain."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> AuditHead | None:
        """The head, None when the file is missing or unreadable."""
        try:
            return _parsed(self._path.read_bytes())
        except OSError:
            return None

    def publish(self, connection: LedgerConnection, before: AuditHead, new: AuditHead) -> None:
        """Move on to ``new``, a committed entry that follows ``before``, unless the chain does not contain the old head.

        A crash before this leaves the head a little behind, which is still true of the chain; the
        next call catches up. It is not flushed to disk, for the same reason. A file that is
        missing or unreadable stays so while there are entries: verify says it, and making a new
        one would hide a cut.
        """
        made = os.O_CREAT if new.count == 0 else 0
        try:
            file = os.open(self._path, os.O_RDWR | made | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            old = _parsed(os.pread(file, 200, 0))
            moved_on = (
                old is not None and new.count > old.count and (old == before or contains(connection, old))
            )
            if moved_on or (new.count == 0 and old is None):
                os.pwrite(file, f"{text_of(new)}\n".encode(), 0)
        finally:
            os.close(file)


def newest(connection: LedgerConnection) -> AuditHead:
    """The head of the chain in the ledger."""
    row = connection.execute("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1").fetchone()
    return AuditHead(row[0], in_digits(row[1])) if row else AuditHead()


def before_newest(connection: LedgerConnection, kept: AuditHead | None) -> AuditHead:
    """The head before the newest entries, and before the one that ``audit.head`` knows; the first where there is none."""
    seq = newest(connection).count - _NEWEST
    seq = min(seq, kept.count - 1) if kept else seq
    row = connection.execute("SELECT seq, hash FROM audit WHERE seq = ?", (seq,)).fetchone()
    return AuditHead(row[0], in_digits(row[1])) if row else AuditHead()


def beyond(head: AuditHead) -> str:
    """The condition on entries that follow a head; after the first one also those numbered 0 or less, which are none."""
    return f"WHERE seq > {head.count:d}" if head.count else ""


def contains(connection: LedgerConnection, head: AuditHead) -> bool:
    """Whether the chain in the ledger goes through the head."""
    return _hash_at(connection, head) == head.hash


def text_of(head: AuditHead) -> str:
    """As it stands in ``audit.head``: of one length, so that it can be overwritten in place."""
    return f"{head.count:020d}:{head.hash}"


def in_digits(stored: str | bytes) -> str:
    """A hash as it stands in its column: bytes, or digits in what an earlier release wrote."""
    return stored.hex() if isinstance(stored, bytes) else stored


def _hash_at(connection: LedgerConnection, head: AuditHead) -> str | None:
    """The hash of the entry with the head's number, as the ledger has it."""
    if head.count == 0:
        return AuditHead().hash
    row = connection.execute("SELECT hash FROM audit WHERE seq = ?", (head.count,)).fetchone()
    return in_digits(row[0]) if row else None


def _parsed(data: bytes) -> AuditHead | None:
    try:
        head = AuditHead.parse(data.decode("ascii", "replace"))
    except UserError:
        return None
    return head if len(head.hash) == len(AuditHead().hash) else None


@dataclass(frozen=True, slots=True)
class PrunedRange:
    """What an audit entry says of the runs from one ``seq`` to the other."""

    entry: int
    from_seq: int
    to_seq: int
    kept: frozenset[str]
    sha256: str


def range_of(entry: int, detail: Mapping[str, Json]) -> PrunedRange:
    """The range that an entry on runs speaks of; raises KeyError for another one."""
    kept = frozenset(detail["kept"])
    return PrunedRange(entry, detail["from_seq"], detail["to_seq"], kept, detail["sha256"])


@dataclass(frozen=True, slots=True)
class PrunedTotals:
    """What all entries together say has gone."""

    ranges: tuple[PrunedRange, ...] = ()
    evolutions: frozenset[str] = frozenset()  # the trajectories of whose trials are gone
    runs: frozenset[str] = frozenset()  # those whose steps are about to go

    def range_with(self, run_id: str, seq: int) -> PrunedRange | None:
        """The range in which the run lost its steps and files; None when it has them."""
        if not self.ranges or seq > self.ranges[-1].to_seq:
            return None
        at = bisect_left(self.ranges, seq, key=lambda item: item.to_seq)
        found = self.ranges[at]
        return found if found.from_seq <= seq and run_id not in found.kept else None


def pruned_so_far(rows: Rows) -> PrunedTotals:
    """Read from the audit log alone: the table ``pruned`` is there for the triggers."""
    ranges, evolutions = [], set[str]()
    for seq, detail in rows("SELECT seq, detail FROM audit WHERE event = ? ORDER BY seq", PRUNED):
        try:
            said = fields_of(detail)
            if "from_seq" in said:
                ranges.append(range_of(seq, said))
            evolutions.update(said.get("evolutions") or ())
        except (KeyError, TypeError) as error:
            raise Unavailable(
                f"entry {seq} of the audit log is damaged: {type(error).__name__}: {error}"
            ) from None
    return PrunedTotals(tuple(sorted(ranges, key=lambda item: item.to_seq)), frozenset(evolutions))
