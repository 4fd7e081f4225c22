"""How long a box takes to come and go, beside the plainest bubblewrap there is.

Everything in one run, interleaved where it is compared. Boxes are those of the real adapter, with
the real worker; the trivial job is a grade of one check.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agentos.domain import Limits
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap

RUN_UID = 61321 if os.geteuid() == 0 else None
DROP = ["setpriv", f"--reuid={RUN_UID}", f"--regid={RUN_UID}", "--clear-groups", "--"] if RUN_UID else []
PLAIN = [
    *DROP,
    "bwrap",
    "--ro-bind",
    "/usr",
    "/usr",
    "--symlink",
    "usr/lib",
    "/lib",
    "--symlink",
    "usr/lib64",
    "/lib64",
]
PLAIN += ["--proc", "/proc", "--dev", "/dev", "--unshare-all", "--die-with-parent"]
JOB = {"job": "grade", "checks": [{"kind": "equals", "spec": {"value": 1}}], "answer": 1, "wall_s": 5.0}


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def row(what: str, value: str, beside: str = "", remarks: str = "") -> None:
    print(f"| {what} | {value} | {beside} | {remarks} |", flush=True)


def middle(values: list[float]) -> str:
    ordered = sorted(values)
    return f"{statistics.median(ordered):.1f} ms (p95 {ordered[int(len(ordered) * 0.95)]:.1f})"


def trial(sandbox: Bubblewrap, parts: dict[str, list[float]] | None = None) -> None:
    began = time.perf_counter()
    box = sandbox.open(Limits())
    opened = time.perf_counter()
    box.channel.send(JOB, (b"",))
    box.channel.receive(deadline=time.monotonic() + 60)
    answered = time.perf_counter()
    box.close()
    if parts is not None:
        parts["open"].append((opened - began) * 1000)
        parts["job"].append((answered - opened) * 1000)
        parts["close"].append((time.perf_counter() - answered) * 1000)


def cold(home: Path) -> None:
    starts: list[float] = []
    for _ in range(3):
        with Bubblewrap(home, RUN_UID) as sandbox:
            starts.append(timed(lambda: sandbox.open_entry(Limits(), "agentos.worker.job:serve").close()))
    with Bubblewrap(home, RUN_UID) as sandbox:
        probed = timed(sandbox.start)
    row("template from nothing, with its first box", middle(starts), "", "n=3, once per daemon")
    row("the same, probed", f"{probed:.0f} ms", "", "n=1")


def single(sandbox: Bubblewrap, count: int) -> None:
    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else "python3"
    parts: dict[str, list[float]] = {"open": [], "job": [], "close": []}
    whole, plain_true, plain_python = [], [], []
    for _ in range(count):
        whole.append(timed(lambda: trial(sandbox, parts)))
        plain_true.append(timed(lambda: subprocess.run([*PLAIN, "true"], check=True)))
        plain_python.append(timed(lambda: subprocess.run([*PLAIN, python, "-c", "pass"], check=True)))
    base = statistics.median(plain_true)
    row("bwrap true", middle(plain_true), "", f"n={count}, no limits, no seccomp")
    row(
        "bwrap python3 -c pass",
        middle(plain_python),
        f"{statistics.median(plain_python) / base:.1f} x bwrap true",
        "",
    )
    for name, values in parts.items():
        row(
            f"box: {name}",
            middle(values),
            f"{statistics.median(values) / base:.1f} x bwrap true",
            f"n={count}",
        )
    row(
        "box: open, trivial job, close",
        middle(whole),
        f"{statistics.median(whole) / base:.1f} x bwrap true",
        "all walls",
    )


def parallel(sandbox: Bubblewrap, seconds: float) -> None:
    for width in (1, 2, 4, 8, 16):
        until = time.monotonic() + seconds
        spent: list[float] = []

        def work(_: int, until: float = until, spent: list[float] = spent) -> None:
            while time.monotonic() < until:
                spent.append(timed(lambda: trial(sandbox)))

        began = time.monotonic()
        with ThreadPoolExecutor(width) as pool:
            list(pool.map(work, range(width)))
        rate = len(spent) / (time.monotonic() - began)
        row(f"boxes with a trivial job, {width} at once", f"{rate:.0f} /s", middle(spent), f"n={len(spent)}")


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        cold(Path(place))
        with Bubblewrap(Path(place), RUN_UID) as sandbox:
            sandbox.start()
            trial(sandbox)
            single(sandbox, 40)
            parallel(sandbox, 1.5)


if __name__ == "__main__":
    main()
