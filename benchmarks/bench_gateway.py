"""The gateway: what it adds to a call over litellm, 64 calls in flight, memory over 10,000 calls.

python benchmarks/bench_gateway.py [--calls N] [--long N] [--on FOLDER]

The model is ``agentos.testing.ModelServer`` in a process of its own, which answers at once: a
provider's answer takes a hundred times as long as all that is measured here.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentos.domain import Budget, Mode, ModelSpec
from agentos.errors import ModelFailed
from agentos.gateway.client import GatewayModels, GatewaySession
from agentos.home import Home
from agentos.ports import Grant
from agentos.settings import Settings

BASE = [{"role": "system", "content": "You are a careful clerk. " * 20}]
IN_FLIGHT = 64


def report(what: str, value: str, beside: str, remarks: str) -> None:
    """One result line."""
    print(f"| {what} | {value} | {beside} | {remarks} |", flush=True)


def timed(work: Callable[[], object]) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


def messages(text: str, turns: int = 20) -> list[dict[str, str]]:
    """A conversation of the usual size, which ends in ``text``."""
    talk = [{"role": "user", "content": f"line {number}: " + "lorem ipsum " * 8} for number in range(turns)]
    return [*BASE, *talk, {"role": "user", "content": text}]


SERVER = """
import sys, threading
from agentos.testing import ModelServer, say
with ModelServer(lambda request, number: say("ok", delay_s=float(sys.argv[1]))) as server:
    print(server.base_url, flush=True)
    threading.Event().wait()
"""


@contextmanager
def server(delay_s: float = 0.0) -> Iterator[str]:
    """A model server in another process; its base URL."""
    command = [sys.executable, "-c", SERVER, str(delay_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


@contextmanager
def gateway(url: str, folder: Path) -> Iterator[tuple[GatewayModels, Callable[[str], GatewaySession]]]:
    """A gateway that is warm."""
    home = Home(Path(tempfile.mkdtemp(dir=folder)))
    for part in (home.run, home.logs):
        part.mkdir()
    settings = Settings(providers={"local": {"api_base": url}}, budget={"run_calls": 0, "run_tokens": 0})
    models = GatewayModels(home, settings)
    spec = ModelSpec("main", "openai/scripted", "local", {})
    opened = lambda run, mode=Mode.RECORD, of=(): models.open(  # noqa: E731
        Grant(run, mode, (spec,), Budget(), recordings=of)
    )
    try:
        ask(opened("warm"), "warm")
        yield models, opened
    finally:
        models.close()


def ask(session: GatewaySession, text: str) -> Any:
    """One call."""
    return session.complete({"messages": messages(text)}, time.monotonic() + 60)


def cpu_ms(pid: int) -> float:
    """What a process has used so far."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK") * 1e3


def added(url: str, folder: Path, calls: int) -> None:
    """One call at a time: direct and through the gateway in turns, so that both meet the same load."""
    import litellm

    direct: list[float] = []
    through: list[float] = []
    served: list[float] = []

    def directly(text: str) -> None:
        litellm.completion(
            model="openai/scripted",
            messages=messages(text),
            api_base=url,
            api_key="none",
            num_retries=0,
            max_retries=0,
        )

    with gateway(url, folder) as (models, opened):
        session, replay = opened("run"), opened("again", Mode.REPLAY, ("run",))
        for number in range(20):
            directly(f"warm {number}")
            ask(session, f"warm {number}")
        mine, its = os.getpid(), models.pid or 0
        before = cpu_ms(mine) + cpu_ms(its)
        for number in range(calls):
            text = f"question {number}"
            ways = [
                lambda text=text: direct.append(timed(lambda: directly(text))),
                lambda text=text: through.append(timed(lambda: ask(session, text))),
            ]
            random.Random(number).shuffle(ways)
            for way in ways:
                way()
        both = cpu_ms(mine) + cpu_ms(its) - before
        before = cpu_ms(mine)
        for number in range(calls):
            directly(f"once more {number}")
        alone = cpu_ms(mine) - before
        for number in range(calls):
            served.append(timed(lambda number=number: ask(replay, f"question {number}")))
    base, whole = statistics.median(direct), statistics.median(through)
    late = statistics.quantiles(through, n=100)[98] - statistics.quantiles(direct, n=100)[98]
    report("litellm directly", f"{base:.2f} ms", "", f"median of {calls}, 22 messages, same server")
    report(
        "added by the gateway",
        f"{whole - base:.2f} ms",
        f"{whole / base:.2f} x; target < 5 ms",
        f"two durable writes included; p99 adds {late:.2f} ms",
    )
    cpu = both / calls - 2 * alone / calls
    report(
        "added CPU",
        f"{cpu:.2f} ms",
        f"{cpu * calls / alone:.2f} x",
        "of both processes, beyond litellm's own",
    )
    report(
        "served from the record",
        f"{statistics.median(served):.2f} ms",
        f"{statistics.median(served) / base:.2f} x",
        "one durable write",
    )


def in_flight(folder: Path) -> None:
    """64 threads, each waiting for a model that thinks 0.2 s."""
    with server(0.2) as url, gateway(url, folder) as (_, opened):
        failed: list[ModelFailed] = []

        def work(number: int) -> None:
            session = opened(f"run-{number}")
            for place in range(5):
                try:
                    ask(session, f"{number} {place}")
                except ModelFailed as error:
                    failed.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(IN_FLIGHT)]
        took = timed(lambda: ([thread.start() for thread in threads], [thread.join() for thread in threads]))
        count = IN_FLIGHT * 5
        report(
            f"{IN_FLIGHT} calls in flight",
            f"{count / took * 1e3:,.0f} calls/s",
            "",
            f"{len(failed)} of {count} failed",
        )


def resident_mb(pid: int) -> float:
    """Of a process, now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def memory(url: str, folder: Path, calls: int) -> None:
    """Eight threads, a new run every 20 calls."""
    with gateway(url, folder) as (models, opened):
        marks = [calls // 10, calls // 2, calls]
        done, lock, seen = [0], threading.Lock(), {}
        began = time.perf_counter()

        def work(worker: int) -> None:
            while done[0] < calls:
                session = opened(f"run-{worker}-{done[0]}")
                for place in range(20):
                    session.complete(
                        {"messages": [*BASE, {"role": "user", "content": f"{place}"}]}, time.monotonic() + 60
                    )
                    with lock:
                        done[0] += 1
                        if done[0] in marks:
                            seen[done[0]] = resident_mb(models.pid or 0)
                session.close()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rate = done[0] / (time.perf_counter() - began)
        first, *others = seen.items()
        for count, value in others:
            report(
                f"memory after {count:,} calls",
                f"{value:.0f} MB",
                f"{value - first[1]:+.1f} MB over {first[0]:,}",
                f"{rate:.0f} calls/s by 8 threads",
            )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--long", type=int, default=10_000)
    parser.add_argument("--on", type=Path, help="folder on the disk to measure")
    given = parser.parse_args()
    os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="True", LITELLM_MODE="PRODUCTION", HF_HUB_OFFLINE="1")
    with tempfile.TemporaryDirectory(dir=given.on) as folder:
        with server() as url:
            added(url, Path(folder), given.calls)
        in_flight(Path(folder))
        with server() as url:
            memory(url, Path(folder), given.long)


if __name__ == "__main__":
    main()
