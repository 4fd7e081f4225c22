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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agentos.home import Home
from agentos.ledger.reading import Reader
from tests.web.conftest import make_waiting_home

REPEATS = 30
HALF_MS, MOST_MS, KB_MAX, MEMORY_MB, FOLLOWING = 150, 400, 120, 90, 10  # what the page is held to
TICK = os.sysconf("SC_CLK_TCK")


def report(what: str, value: str, beside: str, remarks: str) -> None:
    """One result line."""
    print(f"| {what} | {value} | {beside} | {remarks} |", flush=True)


def fill(home: Home, tasks: int, evolutions: int) -> None:
    """Copy rows: ids and what names them get a number behind."""
    with sqlite3.connect(home.ledger) as db:
        db.execute("PRAGMA synchronous = OFF")
        for table, key, count in (
            ("task", "task-1", tasks),
            ("run", "run-1", tasks),
            ("step", "run-1", tasks),
            ("sighting", "run-0", tasks // 20),
        ):
            _copy(
                db,
                table,
                f"{'run_id' if table in ('step', 'sighting') else 'id'} = '{key}'",
                ("task-1", "run-1", "task-0", "run-0"),
                count,
            )
        ((name, evidence),) = db.execute("SELECT id, evidence_id FROM evolution").fetchall()
        for table in ("evolution", "candidate", "verdict", "evidence", "trial"):
            where = (
                f"id = '{name}'"
                if table == "evolution"
                else "1"
                if table == "evidence"
                else f"evolution_id = '{name}'"
            )
            parts = (name.partition("-")[2], evidence.partition("-")[2])
            _copy(
                db,
                table,
                where,
                parts,
                evolutions,
                limit=20,
                state="promoted" if table == "evolution" else "",
            )
        db.execute("ANALYZE")


def _copy(
    db: sqlite3.Connection,
    table: str,
    where: str,
    names: tuple[str, ...],
    count: int,
    limit: int = 1,
    state: str = "",
) -> None:
    cursor = db.execute(f"SELECT * FROM {table} WHERE {where} LIMIT {limit}")
    columns = [column[0] for column in cursor.description]
    rows = cursor.fetchall()
    own = [columns.index(name) for name in ("no", "seq") if name in columns]
    places = ", ".join("?" * len(columns))
    finished = (
        db.execute(f"SELECT coalesce(max(seq), 0) FROM {table}").fetchone()[0] if "seq" in columns else 0
    )
    key = columns.index("no") if "no" in columns else columns.index("seq")

    def copies() -> Iterator[list[object]]:
        for number in range(count):
            for row in rows:
                own_names = (*names, row[columns.index("id")]) if "id" in columns else names
                fresh = [_renamed(value, own_names, number, state) for value in row]
                for place in own:
                    fresh[place] = None if place == key else finished + number + 1
                if state and "state" in columns:
                    fresh[columns.index("state")] = state
                yield fresh

    db.executemany(f"INSERT INTO {table} VALUES ({places})", copies())


def _renamed(value: object, names: tuple[str, ...], number: int, state: str) -> object:
    if not isinstance(value, str):
        return value
    for name in names:
        value = re.sub(rf"\b{re.escape(name)}(?!x?\d)", f"{name}x{number}", value)
    return value.replace('"awaiting_consent"', f'"{state}"') if state else value


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
