"""A month of work on one home, driven by a clock: what it leaves on disk, and how fast it answers then.

python benchmarks/month.py [--days 30] [--tasks 1000] [--evolutions 20] [--boxes 60] [--marks DAY...] [--svg FILE] [--json FILE]

Runs and evolutions are recorded through the product's own code, on days that pass at once: tasks by
``Ledger.add_past`` (the run, six steps, an input of 2 KB for every second and an output of 1 KB for every fourth),
evolutions by the whole pipeline without boxes (``bench_evolutions.py``). At each mark a real daemon starts on the home and
runs tasks in boxes. At the end the older two thirds are pruned, to tell what stays for good from what goes: a year
under the default retention is projected from that.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench_evolutions import Home as Evolving

from agentos.daemon.control.daemon_lock import daemon_info, start_daemon, stop_daemon
from agentos.daemon.setup import init_home
from agentos.daemon.upkeep import retention as daemon_retention
from agentos.daemon.upkeep.retention import prune
from agentos.domain import (
    Call,
    Check,
    Effect,
    InputFile,
    Limits,
    Outcome,
    Result,
    Run,
    Share,
    Step,
    Task,
    TaskState,
    new_id,
)
from agentos.home import Home
from agentos.ledger import store
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.settings import Retention

COMMANDS = (
    *("status", "task list", "run list", "evolution list", "registry list", "failure list", "schedule list"),
    *("evolution health", "doctor"),
)
USED = ("agent/default", "harness/default", "tool/word-count")
STEPS = 6
TIMES = 3  # that each command is typed
YEAR = 365
_DRAWN = random.Random(13)
_WORDS = ["".join(_DRAWN.choices("etaoinshrdlu", k=_DRAWN.randint(2, 9))) for _ in range(4000)]


def words(length: int) -> str:
    """Text of that many characters that no other step has: what a packer makes of one letter tells nothing."""
    text = ""
    while len(text) < length:
        text += f"{_DRAWN.choice(_WORDS)} "
    return text[:length]


class Clock(datetime):
    """What the ledger takes for the time."""

    at = datetime.now(UTC)

    @classmethod
    def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
        return cls.at


class Month(Evolving):
    """The home, and what happens in it on a day."""

    def now(self) -> datetime:
        return Clock.at

    def task(self, number: int) -> None:
        """One that ran at the clock's time."""
        Clock.at += timedelta(seconds=1)
        text = f"words of {number} {Clock.at}\n".encode().ljust(2048, b".")
        inputs = (self._file("text.txt", text),) if number % 2 else ()
        outputs = (self._file("out.txt", text[::-2]),) if number % 4 == 0 else ()
        call = Call("word_count", {"path": "text.txt"})
        task = Task(new_id("task"), f"count {number % 20}", f"count the words of {number}", call, inputs, "default",
                    Limits(), (Effect.READ,), (), None, Clock.at)  # fmt: skip
        done = Outcome(Result.PASSED, 1.0, "")
        run = Run(new_id("run"), task.id, task.key, Share.OPEN, 1, self.stable, "bubblewrap", "namespaces", Clock.at,
                  finished_at=Clock.at, outcome=done, answer={"words": number}, outputs=outputs, resources=USED)  # fmt: skip
        steps = [
            Step(run.id, index, "act", dict(call.args), {"output": {"words": number}, "text": words(200)}, None,
                 Clock.at, 2.5)
            for index in range(STEPS)
        ]  # fmt: skip
        self.ledger.add_past(task, run, steps, "run.finished")

    def _file(self, name: str, content: bytes) -> InputFile:
        blobs, sha256 = self.ledger.blobs, self.ledger.blobs.put(content)
        os.utime(blobs._path(sha256), (Clock.at.timestamp(),) * 2)
        return InputFile(name, sha256, len(content))

    def day(self, number: int, tasks: int, evolutions: int) -> None:
        """Everything of one day."""
        self.stable = self.registry.stable()
        for count in range(tasks):
            self.task(number * tasks + count)
        for count in range(evolutions):
            Clock.at += timedelta(minutes=1)
            self.one(number * evolutions + count, {})
        self.ledger.pack_trials(Clock.at)
        self.registry.maintain()


@dataclass(frozen=True)
class Mark:
    """The home at the end of a day. Sizes in MB, times in ms."""

    day: int
    tasks: int
    evolutions: int
    disk: Mapping[str, float]
    wall: Mapping[str, float]  # of each command, the median
    cpu: Mapping[str, float]
    start_s: float  # of the daemon, until it takes tasks
    rss: float  # of the daemon then
    rss_after: float  # after it ran ``boxes`` tasks
    boxes: int


def disk_of(home: Home) -> dict[str, float]:
    """By part. ``ledger`` is what is in use: room that was freed is used again."""
    with closing(sqlite3.connect(home.ledger)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ((pages,), (free,), (size,)) = (
            connection.execute(f"PRAGMA {name}").fetchone()
            for name in ("page_count", "freelist_count", "page_size")
        )
    sizes = {"ledger": (pages - free) * size}
    for path in home.root.rglob("*"):
        if path.is_file() and path.name != "ledger.db":
            part = path.relative_to(home.root).parts[0].removesuffix(".git").removesuffix(".db")
            sizes[part if part in ("blobs", "registry", "engine") else "other"] = (
                sizes.get(part if part in ("blobs", "registry", "engine") else "other", 0)
                + path.lstat().st_blocks * 512
            )
    return {part: found / 1e6 for part, found in sizes.items()}


def typed(home: Home, command: str) -> tuple[float, float]:
    """Milliseconds of a command: by the clock, and of CPU."""
    walls, cpus = [], []
    for _ in range(TIMES):
        began = time.perf_counter()
        words = [sys.executable, "-P", "-m", "agentos", "--home", str(home.root), *command.split()]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        # Of this child alone: a daemon that was stopped before is reaped here too, and its second and a half was
        # once taken for that of `task list`.
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0
        walls.append((time.perf_counter() - began) * 1e3)
        cpus.append((used.ru_utime + used.ru_stime) * 1e3)
    return statistics.median(walls), min(cpus)


def rss_mb(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS")) / 1024


def at_work(home: Home, boxes: int) -> tuple[float, float, float]:
    """A daemon starts and runs tasks in boxes: seconds until it takes them, MB then and afterwards."""
    began = time.perf_counter()
    start_daemon(home)
    start_s = time.perf_counter() - began
    info = daemon_info(home)
    assert info is not None
    before = rss_mb(info.pid)
    ledger = Ledger(home.ledger)
    for number in range(boxes):
        sha256 = ledger.blobs.put(text := f"three small words {number}\n".encode())
        task = Task(new_id("task"), "boxed", "count", Call("word_count", {"path": "t"}), (InputFile("t", sha256, len(text)),),
                    "default", Limits(wall_s=120.0), (Effect.READ,), (Check("equals", {"value": 4, "path": "words"}),), None,
                    datetime.now(UTC))  # fmt: skip
        ledger.add_task(task, Share.OPEN)
    reader = Reader(home.ledger)
    while reader.tasks(TaskState.QUEUED, 1) or reader.tasks(TaskState.RUNNING, 1):
        time.sleep(0.2)
    after = rss_mb(info.pid)
    ledger.close()
    reader.close()
    stop_daemon(home, at_once=False)
    return start_s, before, after


def mark(home: Home, day: int, tasks: int, evolutions: int, boxes: int) -> Mark:
    """Measure, and say it."""
    start_s, before, after = at_work(home, boxes)
    took = {command: typed(home, command) for command in COMMANDS}
    walls = {command: wall for command, (wall, _) in took.items()}
    cpus = {command: cpu for command, (_, cpu) in took.items()}
    found = Mark(day, tasks, evolutions, disk_of(home), walls, cpus, start_s, before, after, boxes)
    lists = " | ".join(f"{cpus[command]:.0f}" for command in COMMANDS)
    disk = " | ".join(f"{found.disk.get(part, 0):.1f}" for part in ("ledger", "blobs", "registry"))
    print(
        f"| {day} | {tasks:,} | {evolutions} | {disk} | {sum(found.disk.values()):.1f} | {start_s:.1f} | "
        f"{before:.0f} → {after:.0f} | {lists} |",
        flush=True,
    )
    return found


def projected(
    marks: Sequence[Mark], whole: Mapping[str, float], pruned: Mapping[str, float], gone_days: float
) -> tuple[float, float, float]:
    """MB a day that is kept whole, MB a day once it was pruned, and MB after a year under the default retention."""
    first, last = marks[0], marks[-1]
    a_day = (sum(whole.values()) - sum(first.disk.values())) / (last.day - first.day)
    stays = a_day - (sum(whole.values()) - sum(pruned.values())) / gone_days
    days = Retention().days
    return a_day, stays, sum(first.disk.values()) + a_day * min(days, YEAR) + stays * max(0, YEAR - days)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=30, help="at least 3")
    parser.add_argument("--tasks", type=int, default=1000, help="a day")
    parser.add_argument("--evolutions", type=int, default=20, help="a day")
    parser.add_argument("--boxes", type=int, default=60, help="tasks in real boxes at each mark")
    parser.add_argument(
        "--marks", type=int, nargs="*", help="days after which it is measured, beside the last"
    )
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--on", type=Path, help="a folder on the disk that is to be measured")
    given = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="month-", dir=given.on))
    home = Home(place / "home")
    init_home(home)
    home.settings.write_text(home.settings.read_text() + '\nevolve = "manual"\n')
    real = store.datetime
    Clock.at = datetime.now(UTC) - timedelta(days=given.days)
    first = Clock.at
    from agentos.registry.store import Registry

    month = Month(home.root, Registry(home.registry))
    marks = [mark(home, 0, 0, 0, given.boxes)]
    days = (3, 7, 14, 21, 30, 60, 90, 180, 365) if given.marks is None else given.marks
    wanted = {day for day in days if day < given.days} | {given.days}
    for day in range(1, given.days + 1):
        store.datetime = Clock  # type: ignore[misc]
        Clock.at = first + timedelta(days=day - 1)
        month.day(day, given.tasks, given.evolutions)
        store.datetime = real  # type: ignore[misc]
        if day in wanted:
            marks.append(mark(home, day, day * given.tasks, day * given.evolutions, given.boxes))
    kept = given.days // 3
    # As far as the daemon comes in time: git packs at some thousand objects, and files that nobody names go after a week.
    month.registry.maintain(loose=0)
    daemon_retention._ORPHAN_S = 0.0
    whole = disk_of(home)
    began = time.perf_counter()
    # By the clock of those days: this program took minutes, in which the last of them would grow old as well.
    prune(home, first + timedelta(days=given.days), Retention(days=kept, gb=0), apply=True)
    took_s, pruned = time.perf_counter() - began, disk_of(home)
    a_day, stays, year = projected(marks, whole, pruned, given.days - kept)
    print(
        f"pruning {given.days - kept:.0f} days: {took_s:.1f} s, {sum(pruned.values()):.1f} MB are left {pruned}"
    )
    print(f"a day: {a_day:.2f} MB, of which {stays:.2f} MB stay for good; a year: {year:.0f} MB")
    if given.json:
        facts = {
            "marks": [asdict(item) for item in marks],
            "whole": whole,
            "pruned": pruned,
            "a_day": a_day,
            "stays": stays,
            "year": year,
        }
        given.json.write_text(json.dumps(facts, indent=1))
    if given.svg:
        given.svg.write_text(picture(marks, a_day, stays), encoding="utf-8")
    shutil.rmtree(place)


# --- the picture --------------------------------------------------------------------------------

_W, _H = 330, 190  # of a chart
_LEFT, _TOP, _ROOM = 56, 44, 120  # beside and above it, and for the names of its lines
_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#aa3377", "#66ccee", "#777777", "#997700", "#000000")
_WANTED_MB = 1000.0


def picture(marks: Sequence[Mark], a_day: float, stays: float) -> str:
    """Disk, memory and the CPU of lists over the days, and the year as it is projected."""
    days = [float(item.day) for item in marks]
    base = sum(marks[0].disk.values())
    whole = float(Retention().days)
    year = [*(float(day) for day in range(0, YEAR, 5)), float(YEAR)]
    held = [base + a_day * min(day, whole) + stays * max(0.0, day - whole) for day in year]
    parts = ("ledger", "blobs", "registry")
    last = marks[-1]
    disk = {"all": [sum(item.disk.values()) for item in marks]}
    disk |= {part: [item.disk.get(part, 0.0) for item in marks] for part in parts}
    boxes = {"after the tasks": [item.rss_after for item in marks], "at start": [item.rss for item in marks]}
    cpu = {name: [item.cpu[name] for item in marks] for name in COMMANDS}
    charts = [
        chart(0, "Disk of the home, MB", days, disk),
        chart(1, f"Memory of the daemon, before and after {last.boxes} tasks in boxes, MB", days, boxes),
        chart(2, "CPU of a command, ms", days, cpu),
        chart(
            3,
            "Disk over a year, projected, MB",
            year,
            {"projected": held, "wanted": [_WANTED_MB] * len(year)},
        ),
    ]
    width, height = 2 * (_W + _LEFT + _ROOM), 2 * (_H + _TOP + 30) + 24
    title = f"{last.tasks:,} tasks and {last.evolutions:,} evolutions in {last.day} days"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>'
        f'<text x="{_LEFT}" y="22" font-size="14" font-weight="bold">{title}</text>{"".join(charts)}</svg>\n'
    )


def chart(place: int, title: str, days: Sequence[float], lines: Mapping[str, Sequence[float]]) -> str:
    """One of four: a line for each name, which stands with its last value where the line ends."""
    x0 = _LEFT + place % 2 * (_W + _LEFT + _ROOM)
    y0 = 24 + _TOP + place // 2 * (_H + _TOP + 30)
    step = _step(max(max(values) for values in lines.values()))
    top = step * (int(max(max(values) for values in lines.values()) / step) + 1)
    end = days[-1] or 1.0
    out = [f'<text x="{x0}" y="{y0 - 10}" font-weight="bold">{title}</text>']
    for line in range(int(top / step) + 1):
        y = y0 + _H - line * step / top * _H
        out.append(f'<path d="M{x0} {y:.1f}h{_W}" stroke="#dddddd"/>')
        out.append(f'<text x="{x0 - 6}" y="{y + 4:.1f}" text-anchor="end">{line * step:,.0f}</text>')
    ticks = days if len(days) < 10 else [float(day) for day in range(0, int(end) + 1, 73)]
    for day in ticks:
        x = x0 + day / end * _W
        out.append(f'<path d="M{x:.1f} {y0 + _H}v4" stroke="black"/>')
        out.append(f'<text x="{x:.1f}" y="{y0 + _H + 16}" text-anchor="middle">{day:.0f}</text>')
    out.append(f'<path d="M{x0} {y0}V{y0 + _H}H{x0 + _W}" fill="none" stroke="black"/>')
    out.append(f'<text x="{x0 + _W + 16}" y="{y0 + _H + 16}">day</text>')
    names = _beside({name: y0 + _H - values[-1] / top * _H for name, values in lines.items()})
    for number, (name, values) in enumerate(lines.items()):
        at = [
            (x0 + day / end * _W, y0 + _H - value / top * _H) for day, value in zip(days, values, strict=True)
        ]
        colour = _COLOURS[number]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        dashed = ' stroke-dasharray="4 3"' if name == "wanted" else ""
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"{dashed}/>')
        if len(at) < 10:
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="{colour}"/>' for x, y in at]
        said = f"{name} {values[-1]:,.0f}"
        out.append(f'<text x="{x0 + _W + 8}" y="{names[name] + 4:.1f}" fill="{colour}">{said}</text>')
    return "".join(out)


def _step(most: float) -> float:
    """Between two lines of the grid, so that there are three to seven of them."""
    power = 10.0
    while most / power < 1:
        power /= 10
    while most / power >= 10:
        power *= 10
    return next(power * part for part in (0.2, 0.5, 1.0, 2.0) if most / (power * part) <= 6)


def _beside(wanted: Mapping[str, float]) -> dict[str, float]:
    """Heights of names, near to those wanted and at least a line apart."""
    placed: dict[str, float] = {}
    for name, height in sorted(wanted.items(), key=lambda item: -item[1]):  # from below
        placed[name] = min(height, min(placed.values()) - 13) if placed else height
    return placed


if __name__ == "__main__":
    main()
