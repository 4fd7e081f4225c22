"""What a home lets go, and when: by age, and by how much room it takes. See ``ledger.retention`` for what stays."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING

import structlog

from agentos.domain import AT_WORK, Candidate, Evolution, dataclass
from agentos.home import Home
from agentos.ledger import retention
from agentos.ledger.audit import PRUNED, PrunedTotals, pruned_so_far, range_of
from agentos.ledger.integrity import LedgerSnapshot
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry

if TYPE_CHECKING:
    from agentos.settings import Retention  # with pydantic, which doctor does without

_GB = 1 << 30
_LAST = "retention.at"  # memo: when the daemon began to prune last, or put it off
_PUT_OFF = "retention.put_off"  # memo: whether it was the latter
FAILED = "retention.failed"  # memo: why the last daily prune failed, "" where it did not
_AWAY = timedelta(days=2)  # since then, from which on the clock may have gone wrong
_LONGEST_PRUNE = timedelta(hours=12)
_LONGEST = 600  # characters of a reason
_ORPHAN_S = 7 * 86_400.0  # a file this old that no row names belongs to nothing that is under way


log = structlog.get_logger("agentos.retention")


@dataclass(frozen=True, slots=True)
class RetentionReport:
    """What goes, or went. ``bytes`` counts files; room within the database is used again for what comes."""

    runs: int
    kept: int
    evolutions: int
    blobs: int
    bytes: int
    size_before: int
    wheels: int = 0


def prune(
    home: Home,
    now: datetime,
    limits: Retention,
    *,
    apply: bool,
    say: Callable[[str], None] = lambda _: None,
) -> RetentionReport:
    """Let go what is too old, and, where the home is too large, the oldest first.

    Without ``apply`` nothing is changed. Killed anywhere it is simply done again: a blob goes after the rows that named it.
    """
    size = size_of(home)
    with closing(Ledger(home.ledger)) as ledger:
        with LedgerSnapshot(home.ledger) as frozen:
            before = _cut(frozen, now, limits, size)
            rows = frozen.rows
            to_seq = retention.last_before(rows, before)
            protected = retention.protected_runs(rows) | retention.ended_later(rows, before, to_seq)
            gone = pruned_so_far(rows)
            trials = retention.old_evolutions(rows, before) - gone.evolutions
            after = retention.covered_to(rows)
            batches = []
            while batch := retention.batch_after(rows, after, to_seq, protected):
                after = batch.to_seq
                batches.append(batch)
                say(f"{sum(len(item.runs) for item in batches)} runs looked at")
        if apply:
            for batch in batches:
                ledger.prune(batch)
            if trials:
                ledger.note(PRUNED, "trials", {"evolutions": sorted(trials)})
        planned = PrunedTotals(
            (*gone.ranges, *(range_of(0, batch.detail) for batch in batches)),
            gone.evolutions | trials,
            frozenset(name for batch in batches for name in batch.runs),
        )
        say("looking for files that nobody names")
        removed, freed = _sweep(home, ledger, planned, apply)
        wheels, more = _sweep_wheels(home, ledger, now, apply)
        runs, kept = (sum(len(getattr(batch, name)) for batch in batches) for name in ("runs", "kept"))
        return RetentionReport(runs, kept, len(trials), removed, freed + more, size, wheels)


def _sweep(home: Home, ledger: Ledger, gone: PrunedTotals, apply: bool) -> tuple[int, int]:
    """Blobs that no row names any more, also those of a prune that was killed: how many, and their bytes."""
    ledger.blobs.claim(ledger.name())
    limit = datetime.now(UTC) - timedelta(seconds=_ORPHAN_S)
    old = {info.name: info.size for info in ledger.blobs.everywhere() if info.stored_at <= limit}
    with LedgerSnapshot(home.ledger) as frozen:
        contents = {table: frozen.every_row(table) for table in frozen.tables()}
        free = sorted(old.keys() - retention.still_named(frozen.rows, contents, frozenset(old), gone))
    freed = [ledger.blobs.collect(name, _ORPHAN_S) if apply else old[name] for name in free]
    return sum(size > 0 for size in freed), sum(freed)


def _sweep_wheels(home: Home, ledger: Ledger, now: datetime, apply: bool) -> tuple[int, int]:
    """Wheels that neither the registry, nor one of the last locks of a resource, nor that of an edit which is still to be
    decided on names: how many, and their bytes."""
    registry = Registry(home.registry)
    if not registry.wheels.root.is_dir():
        return 0, 0
    sizes = []
    at_work = frozenset(evolution.id for evolution in ledger.find(Evolution, state=AT_WORK))
    undecided = [item.snapshot for item in ledger.find(Candidate, evolution_id=at_work)] if at_work else []
    for path in registry.wheels.unnamed(registry.newest_locks(undecided), now.timestamp() - _ORPHAN_S):
        sizes.append(path.stat().st_size)
        if apply:
            path.unlink()
    return len(sizes), sum(sizes)


def _cut(frozen: LedgerSnapshot, now: datetime, limits: Retention, size: int) -> datetime:
    """Before which moment things go. Beyond the size it moves on by the share that is too much."""
    days, gb = limits.days, limits.gb
    first_of_all = datetime.min.replace(tzinfo=now.tzinfo)
    cut = now - timedelta(days=days) if 0 < days < (now - first_of_all).days else first_of_all
    if not gb or size <= gb * _GB:
        return cut
    ((first,),) = frozen.rows(
        "SELECT min(finished_at) FROM run WHERE seq > ?", retention.covered_to(frozen.rows)
    )
    if not first:
        return cut
    oldest = datetime.fromisoformat(first)
    return max(cut, oldest + (now - oldest) * min(0.9, (size - gb * _GB) / size + 0.1))


def size_of(home: Home) -> int:
    """Bytes of all files of the home."""
    total = 0
    for root, _, names in os.walk(home.root):
        for name in names:
            try:
                total += Path(root, name).lstat().st_size
            except FileNotFoundError:
                continue
    return total


def is_due(ledger: Ledger, now: datetime) -> bool:
    """Whether a day has passed since it was so last; remembered. Of a new home the first day passes, too.

    Where more time seems to have passed nobody was here, or the clock is ahead, and to it all is old: a day more is
    waited then, once, in which somebody may put it right.
    """
    last, was_put_off = ledger.get_kv(_LAST), ledger.get_kv(_PUT_OFF, False)
    passed = now - datetime.fromisoformat(last) if last is not None else None
    if passed is not None and timedelta(0) <= passed < timedelta(days=1):
        return False
    put_off = passed is None or (passed > _AWAY and not was_put_off)
    ledger.set_kv(_LAST, now.isoformat())
    ledger.set_kv(_PUT_OFF, put_off)
    return not put_off


class DailyPrune:
    """Lets a process of its own prune once a day: reading a whole ledger must not make the daemon grow or wait."""

    def __init__(self, home: Home, ledger: Ledger) -> None:
        self._home, self._ledger = home, ledger
        self._child: subprocess.Popen[bytes] | None = None
        self._began = datetime.min.replace(tzinfo=UTC)
        self._said: IO[bytes] | None = None  # what it wrote for people

    def look(self, now: datetime) -> None:
        """Start it when a day has passed since the last one; tell how the one before ended."""
        if self._child is not None:
            if (code := self._child.poll()) is None:
                if (
                    now - self._began > _LONGEST_PRUNE
                ):  # else nothing would be pruned any more, and nobody told
                    self._child.kill()
                return
            self._ended(code)
        if is_due(self._ledger, now):
            self._began = now
            self._said = tempfile.TemporaryFile()  # noqa: SIM115 - until it has ended
            command = ["-m", "agentos", "--home", str(self._home.root), "prune", "--yes"]
            self._child = subprocess.Popen(
                [sys.executable, *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._said,
                preexec_fn=_be_nice,
            )
            atexit.register(self._child.terminate)

    def _ended(self, code: int) -> None:
        self._child, said, self._said = None, self._said, None
        assert said is not None
        with said:
            said.seek(0)
            words = said.read().decode(errors="replace").strip().splitlines()
        why = (words[-1][:_LONGEST] if words else f"it ended with {code}") if code else ""
        if why:
            log.warning("pruning failed", exit_code=code, why=why)
        else:
            log.info("pruned")
        if why != self._ledger.get_kv(FAILED, ""):
            self._ledger.set_kv(FAILED, why)


def _be_nice() -> None:
    os.nice(10)
