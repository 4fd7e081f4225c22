"""Containers beside bubblewrap boxes, plain ``docker run`` and plain ``bwrap``: one table, one run.

Both sandboxes are the real adapters with the real worker. What is compared is interleaved, so that
a busy machine is busy for all.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from agentos.domain import Limits
from agentos.errors import Unavailable
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.sandboxes.docker.engine import DockerEngine
from agentos.sandboxes.docker.image import build_from_host
from agentos.sandboxes.docker.sandbox import Docker
from agentos.sandboxes.plainfiles import read_tar

RUN_UID = 61321 if os.geteuid() == 0 else None
DROP = ["setpriv", f"--reuid={RUN_UID}", f"--regid={RUN_UID}", "--clear-groups", "--"] if RUN_UID else []
BWRAP = [*DROP, "bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--unshare-all", "true"]
GRADE = {"job": "grade", "checks": [{"kind": "equals", "spec": {"value": 1}}], "answer": 1, "wall_s": 5.0}
COPY = b"""
import pathlib
def run(sdk):
    data = pathlib.Path("in.bin").read_bytes()
    pathlib.Path("out.bin").write_bytes(data[::-1])
    sdk.finish(len(data))
"""
LIMITS = Limits(wall_s=60)
SETTLE_S = 1.2  # for the pool to fill between two trials, where they are to be warm
PARALLEL_S = 2.0
Sandbox = Bubblewrap | Docker


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def middle(values: list[float]) -> str:
    ordered = sorted(values)
    return f"{statistics.median(ordered):.0f} ms (p95 {ordered[int(len(ordered) * 0.95)]:.0f})"


def row(what: str, value: str, beside: str, remarks: str) -> None:
    print(f"| {what} | {value} | {beside} | {remarks} |", flush=True)


def plain_bwrap() -> None:
    subprocess.run(BWRAP, check=True)


def docker_run(image: str) -> None:
    command = ["docker", "run", "--rm", "--network", "none", image, "true"]
    subprocess.run(command, check=True, capture_output=True)


def trial(sandbox: Sandbox, parts: list[float] | None = None) -> None:
    """Open, a trivial grade, close: what a trial costs beyond its own work."""
    began = time.perf_counter()
    box = sandbox.open(LIMITS, light=True)
    opened = time.perf_counter()
    box.channel.send(GRADE, (b"",))
    box.channel.receive(deadline=time.monotonic() + 60)
    answered = time.perf_counter()
    box.close()
    if parts is not None:
        parts += [
            (opened - began) * 1000,
            (answered - opened) * 1000,
            (time.perf_counter() - answered) * 1000,
        ]


def copy(sandbox: Sandbox, data: bytes) -> None:
    """10 MB into the workspace over the channel, and 10 other MB out of it as a tar."""
    job = {
        "job": "run",
        "run_id": "run-bench",
        "goal": "",
        "call": None,
        "agent": "bench",
        "effects": [],
        "max_steps": 5,
        "tool_wall_s": 5.0,
        "output_bytes": 1 << 16,
        "memory_mb": LIMITS.memory_mb,
        "harness": "harness/bench",
        "files": ["harness/bench/harness.py"],
        "inputs": ["in.bin"],
    }
    with sandbox.open(LIMITS) as box:
        box.channel.send(job, (COPY, data))
        frame = box.channel.receive(deadline=time.monotonic() + 60)
        assert len(read_tar(frame.blobs[0]).files["out.bin"]) == len(data), frame.head


def single(boxes: dict[str, Sandbox], image: str) -> None:
    whole: dict[str, list[float]] = {name: [] for name in (*boxes, "docker run", "bwrap")}
    parts: dict[str, list[list[float]]] = {name: [] for name in boxes}
    for sandbox in boxes.values():
        trial(sandbox)
    for _ in range(6):
        for name, sandbox in boxes.items():
            time.sleep(SETTLE_S)
            found: list[float] = []
            whole[name].append(timed(partial(trial, sandbox, found)))
            parts[name].append(found)
        time.sleep(SETTLE_S)
        whole["docker run"].append(timed(partial(docker_run, image)))
        whole["bwrap"].append(timed(plain_bwrap))
    row("plain docker run --rm --network none true", middle(whole["docker run"]), "", "n=6, same minute")
    row("plain bwrap true", middle(whole["bwrap"]), "", "no limits, no seccomp")
    for name, plain in (("docker", "docker run"), ("bubblewrap", "bwrap")):
        for number, what in enumerate(("start, warm", "exec (trivial grade)", "end")):
            row(f"{name}: {what}", middle([found[number] for found in parts[name]]), "", "")
        ratio = statistics.median(whole[name]) / statistics.median(whole[plain])
        row(f"{name}: whole trial, warm", middle(whole[name]), f"{ratio:.2f} x plain {plain}", "")


def copies(boxes: dict[str, Sandbox]) -> None:
    data = os.urandom(10 << 20)
    for name, sandbox in boxes.items():
        copy(sandbox, data)
        spent = []
        for _ in range(4):
            time.sleep(SETTLE_S)
            spent.append(timed(partial(copy, sandbox, data)))
        row(f"{name}: a run with 10 MB in, 10 MB out", middle(spent), "", "n=4, warm")


def cold(image: str) -> None:
    entry = "agentos.worker.job:serve"
    with tempfile.TemporaryDirectory() as place:
        with Docker(Path(place), ready=0, image=image) as bare:
            for what, light in (("a check", True), ("a run (imports langgraph)", False)):
                spent = [timed(lambda: bare.open_entry(LIMITS, entry, light=light).close()) for _ in range(4)]  # noqa: B023
                row(f"docker: start, cold, of a box for {what}", middle(spent), "", "n=4, with its end")
        with Bubblewrap(Path(place), RUN_UID) as template:
            spent = [timed(lambda: template.open_entry(LIMITS, entry).close())]
        row("bubblewrap: start, cold", middle(spent), "", "once for all boxes")


def parallel(boxes: dict[str, Sandbox], image: str) -> None:
    for width in (1, 2, 4, 8, 16):
        plain = rate(partial(docker_run, image), width), rate(plain_bwrap, width)
        row(
            f"docker: back to back, {width} at once",
            rate(partial(trial, boxes["docker"]), width),
            plain[0],
            "beside plain docker run",
        )
        row(
            f"bubblewrap: back to back, {width} at once",
            rate(partial(trial, boxes["bubblewrap"]), width),
            plain[1],
            "beside plain bwrap",
        )


def rate(work: Callable[[], object], width: int) -> str:
    began = time.monotonic()
    spent: list[float] = []

    def repeat(_: int) -> None:
        while time.monotonic() < began + PARALLEL_S:
            spent.append(timed(work))

    with ThreadPoolExecutor(width) as pool:
        list(pool.map(repeat, range(width)))
    return f"{len(spent) / (time.monotonic() - began):.1f} /s, {statistics.median(spent):.0f} ms each"


def main() -> None:
    engine = DockerEngine()
    try:
        took = time.perf_counter()
        image = build_from_host(engine)
        took = time.perf_counter() - took
    except Unavailable as error:
        sys.exit(f"no container engine to measure: {error}")
    finally:
        engine.close()
    row("finding the image, or building it", f"{took * 1000:.0f} ms", "", "once per daemon")
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        with Docker(home, image=image) as containers, Bubblewrap(home, RUN_UID) as namespaces:
            boxes: dict[str, Sandbox] = {"docker": containers, "bubblewrap": namespaces}
            single(boxes, image)
            copies(boxes)
            parallel(boxes, image)
    cold(image)


if __name__ == "__main__":
    main()
