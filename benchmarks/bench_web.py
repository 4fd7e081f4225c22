"""The page over a long history: how long each page takes, how large it is, what the process and its followers use.

python benchmarks/bench_web.py [--tasks N] [--evolutions N] [--followers N] [--on FOLDER]

The history is one small real home (`tests/web/conftest.py`), of which rows are copied until there are as many as asked
for: an evolution with its candidate, verdict, evidence and trials, a task with its run and steps, a sighting.
"""

from __future__ import annotations

import argparse
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agentos.home import Home
from agentos.ledger.audit import AuditHead, HeadFile, chained, newest
from agentos.ledger.reading import Reader
from agentos.ledger.rows.codec import kept, plain
from tests.web.conftest import make_waiting_home

REPEATS = 30
TRIALS = 20  # of an evolution
RENAMED = ("id", "run_id", "task_id", "evolution_id", "evidence_id", "candidate_id", "task_key", "body")
HALF_MS, MOST_MS, KB_MAX, MEMORY_MB, FOLLOWING = 150, 400, 120, 90, 10  # what the page is held to
TICK = os.sysconf("SC_CLK_TCK")


def report(what: str, value: str, beside: str, remarks: str) -> None:
    """One result line."""
    print(f"| {what} | {value} | {beside} | {remarks} |", flush=True)


def fill(home: Home, tasks: int, evolutions: int) -> None:
    """Copy rows inside SQLite: ids, and what names them, get a number behind; then the audit entries that go with them."""
    with sqlite3.connect(home.ledger) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA temp_store = MEMORY")
        done = ("task-1", "run-1")
        _copy(db, "task", "id = 'task-1'", done, tasks)
        _copy(db, "run", "id = 'run-1'", done, tasks)
        _copy(db, "step", "run_id = 'run-1'", done, tasks)
        _copy(db, "run_resource", "seq = (SELECT seq FROM run WHERE id = 'run-1')", done, tasks)
        _copy(db, "sighting", "run_id = 'run-0'", ("task-0", "run-0"), tasks // 20)
        ((name, evidence),) = db.execute("SELECT id, evidence_id FROM evolution").fetchall()
        parts = tuple(text.partition("-")[2] for text in (name, evidence))
        _copy(db, "evidence", f"id = '{evidence}'", parts, evolutions)
        _copy(db, "evolution", f"id = '{name}'", parts, evolutions, ended=True)
        for table in ("candidate", "verdict"):
            _copy(db, table, f"evolution_id = '{name}'", parts, evolutions, ended=True)
        _copy(db, "trial", f"evolution_id = '{name}'", parts, evolutions, limit=TRIALS)
        _audit(db, home, name, tasks, evolutions)
        db.execute("ANALYZE")


def _copy(
    db: sqlite3.Connection,
    table: str,
    where: str,
    names: Sequence[str],
    count: int,
    *,
    limit: int = 1,
    ended: bool = False,
) -> None:
    """``count`` copies of the first ``limit`` rows; ``ended``: what awaited consent was promoted."""
    own = (
        db.execute(f"SELECT id FROM {table} WHERE {where} LIMIT 1").fetchone()[0]
        if _has_id(db, table)
        else ""
    )
    known = any(name in own for name in names)  # else its id says nothing of what it belongs to

    def renamed(value: object, number: int) -> object:
        if not isinstance(value, str | bytes) or not value:
            return value
        text = plain(value)
        for name in names:
            text = text.replace(name, f"{name}x{number}")
        text = text if known or not own else text.replace(own, f"{own}x{number}")
        text = text.replace("awaiting_consent", "promoted") if ended else text
        return text if isinstance(value, str) else kept(text)  # what is searched in stands as text

    db.create_function("renamed", 2, renamed, deterministic=True)
    columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    values = []
    for column in columns:
        value = f"r.{column}"
        if column == "no" or (column == "seq" and "no" not in columns and "id" in columns):
            value = "NULL"
        elif column == "seq":  # of a run's end; what it used names it by that
            value = "(SELECT top FROM last) + n.value"
        elif column == "id" and not known:
            value = "r.id || 'x' || n.value"
        elif column in RENAMED or (ended and column == "state"):
            value = f"renamed({value}, n.value)"
        values.append(value)
    db.execute("CREATE TEMP TABLE IF NOT EXISTS last AS SELECT max(seq) AS top FROM run")
    db.execute(
        f"INSERT INTO {table} WITH RECURSIVE n(value) AS "
        f"(SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < {count}) SELECT {', '.join(values)} "
        f"FROM n, (SELECT * FROM {table} WHERE {where} LIMIT {limit}) AS r ORDER BY n.value"
    )


def _has_id(db: sqlite3.Connection, table: str) -> bool:
    return any(row[1] == "id" for row in db.execute(f"PRAGMA table_info({table})"))


def _audit(db: sqlite3.Connection, home: Home, evolution: str, tasks: int, evolutions: int) -> None:
    """An entry for the end of each run, and those of each evolution, chained as the ledger chains them."""
    rows = db.execute(
        "SELECT at, event, subject, detail FROM audit WHERE subject IN ('run-1', ?)", (evolution,)
    ).fetchall()
    ends = [row for row in rows if row[2] == "run-1"]
    stages = [row for row in rows if row[2] == evolution]
    head = newest(db)

    def entries() -> Iterator[tuple[object, ...]]:
        nonlocal head
        for many, found in ((tasks, ends), (evolutions, stages)):
            for number in range(1, many + 1):
                for at, event, subject, detail in found:
                    entry = chained(head, at, event, f"{subject}x{number}", detail)
                    head = AuditHead(entry.seq, entry.hash)
                    yield astuple(entry)

    db.executemany("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?)", entries())
    HeadFile(home.ledger.with_name("audit.head")).publish(db)


@contextmanager
def served(home: Home) -> Iterator[tuple[int, httpx.Client]]:
    """The process as a person starts it; its pid, and a client that is let in."""
    command = [sys.executable, "-m", "agentos", "--home", str(home.root), "web", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        link = next(found[0] for line in process.stdout if (found := re.search(r"http://\S+", line)))
        base = link.partition("/enter")[0]
        try:
            with httpx.Client(base_url=base, headers={"Origin": base}, timeout=120) as client:
                assert client.get(link).status_code == 303
                yield process.pid, client
        finally:
            process.terminate()


def pages(home: Home, client: httpx.Client, pid: int) -> None:
    """Each page `REPEATS` times."""
    reader = Reader(home.ledger)
    evolution = next(iter(reader.newest(_evolution_type(), 1))).id
    worst: list[tuple[float, float, float, str]] = []
    for address in ("/", "/evolutions", f"/evolutions/{evolution}", "/runs", "/runs?result=failed", "/runs/run-1",
                    "/tasks", "/tasks?state=queued", "/resources", "/resources/skill/calc", "/failures", "/health",
                    "/search?q=points"):  # fmt: skip
        times, size, used = [], 0, cpu_s(pid)
        for _ in range(REPEATS):
            began = time.perf_counter()
            answer = client.get(address)
            times.append((time.perf_counter() - began) * 1e3)
            assert answer.status_code == 200, (address, answer.text[:500])
            size = len(answer.content)
        times.sort()
        median, p95 = statistics.median(times), times[int(len(times) * 0.95)]
        worst.append((median, p95, size / 1e3, address))
        name = address.replace(evolution, "ID")
        cpu_ms = (cpu_s(pid) - used) / REPEATS * 1e3
        report(
            f"page {name}",
            f"{median:.0f} ms",
            f"p95 {p95:.0f} ms",
            f"{cpu_ms:.0f} ms of CPU, {size / 1e3:.0f} kB",
        )
    slow = [item[3] for item in worst if item[0] > HALF_MS or item[1] > MOST_MS or item[2] > KB_MAX]
    held = f"median {HALF_MS} ms, p95 {MOST_MS} ms, {KB_MAX} kB"
    report(
        "pages over what they are held to",
        str(len(slow)),
        f"0 of {len(worst)}",
        f"{held}: {', '.join(slow) or 'none'}",
    )


def _evolution_type() -> type:
    from agentos.domain import Evolution

    return Evolution


def memory_mb(pid: int) -> float:
    """Resident now."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) / 1e3


def cpu_s(pid: int) -> float:
    """So far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def followers(client: httpx.Client, pid: int, count: int, seconds: float) -> None:
    """Streams that are open, without a change to tell."""
    stop = threading.Event()

    def follow() -> None:
        with client.stream("GET", "/events", params={"path": "/runs/run-1", "since": ""}) as stream:
            for _ in stream.iter_lines():
                if stop.is_set():
                    return

    with httpx.Client(
        base_url=client.base_url,
        cookies=client.cookies,
        timeout=None,
        limits=httpx.Limits(max_connections=None),
    ) as many:
        client = many
        threads = [threading.Thread(target=follow, daemon=True) for _ in range(count)]
        for thread in threads:
            thread.start()
        time.sleep(3)
        before, began = cpu_s(pid), time.monotonic()
        time.sleep(seconds)
        share = (cpu_s(pid) - before) / (time.monotonic() - began)
        stop.set()
    report(
        f"{count} followers of a run", f"{share:.1%} of a core", f"{FOLLOWING} %", "one look a second each"
    )


def main() -> None:
    """All of it, once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=20_000)
    parser.add_argument("--evolutions", type=int, default=500)
    parser.add_argument("--followers", type=int, default=50)
    parser.add_argument("--on", type=Path, default=None)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.on) as folder:
        home = Home(Path(folder) / "home")
        make_waiting_home(home)
        began = time.monotonic()
        fill(home, given.tasks, given.evolutions)
        size = home.ledger.stat().st_size / 1e6
        counts = f"{given.tasks:,} tasks, {given.evolutions:,} evolutions, {given.evolutions * 20:,} trials"
        report("history", counts, f"{size:.0f} MB", f"made in {time.monotonic() - began:.0f} s")
        with served(home) as (pid, client):
            report("memory of the process", f"{memory_mb(pid):.0f} MB", f"{MEMORY_MB} MB", "after its start")
            pages(home, client, pid)
            report("memory of the process", f"{memory_mb(pid):.0f} MB", f"{MEMORY_MB} MB", "after all pages")
            followers(client, pid, given.followers, 10)


if __name__ == "__main__":
    main()
