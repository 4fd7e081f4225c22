"""Repairs of tools that the search was not made with: how many are promoted, and how many of those are right.

    python benchmarks/bench_tools.py [--set develop|report] [--only NAME,NAME] [--limit N] [--seconds S] [--json FILE]

Each tool of the set (`benchmarks/data/tools/README.md`) gets a fresh home with a daemon, is dropped into its folder
of skills with its fault, and works off nine of its fourteen tasks. What the daemon makes of the failures
is then judged from outside: the tool that stands in the registry is held against the five tasks that the
program never saw, and against the right version on 24 fresh inputs. Without arguments, three tools of
`develop` are tried, so that `make bench` stays short.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tool_sets import Tool, folders, read, write_skill, write_tasks

HERE = Path(__file__).resolve().parent
LIVE = {"probation", "promoted"}
ASKED = {"awaiting_consent", "held"}
AT_WORK = {"mined", "reproducing", "proposing", "replaying", "promoting"}
QUIET_S = 4.0  # nothing at work for this long: it is done
DEADLINE_S = 900.0
CASE_S = 5  # of CPU, for one call of a judged tool


@dataclass(frozen=True)
class Result:
    """What became of one tool."""

    name: str
    edit: str
    states: list[str]
    reasons: list[str]
    failed_at_first: int  # of the nine tasks
    promoted: bool
    kept: int  # of the five tasks that were never shown
    fresh: int  # of the 24 fresh inputs, as the right version answers them
    worse: int  # kept tasks and fresh inputs that the faulty version had right, and this one has not
    seconds: float
    diff: list[str]

    @property
    def right(self) -> bool:
        """Promoted, and right wherever it was looked at."""
        return self.promoted and self.kept == 5 and self.fresh == 24

    @property
    def verdict(self) -> str:
        if not self.promoted:
            return "asked" if ASKED & set(self.states) else "not promoted"
        if self.right:
            return "right"
        return "worse" if self.worse else "partly"


# --- the product, driven as a person would ----------------------------------------------------


class Stuck(Exception):
    """One tool could not be taken to its end; the next one is tried."""


class Agentos:
    """The `agentos` command on one home."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "agentos", *arguments],
            env={**os.environ, "AGENTOS_HOME": str(self.home)},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise Stuck(f"agentos {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json"))

    def source(self, tool: Tool) -> str | None:
        """The tool as it stands in the registry now; None before it is there. The registry is plain git."""
        place = f"main:skill/{tool.name}/tools/{tool.function}.py"
        done = subprocess.run(
            ["git", "--git-dir", str(self.home / "registry.git"), "show", place],
            capture_output=True,
            text=True,
        )
        return done.stdout if done.returncode == 0 else None


def until(what: str, holds: Any, every_s: float = 2.0) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        if time.monotonic() > deadline:
            raise Stuck(f"waited {DEADLINE_S:.0f} s for {what}")
        time.sleep(every_s)


def work_off(agentos: Agentos, file: Path) -> list[str]:
    """Queue the tasks and wait for them; how they ended."""
    ids = agentos.json("task", "add", str(file))
    ended: dict[str, str] = {}

    def done() -> bool:
        for run in agentos.json("run", "list", "--limit", "100"):
            if run["task_id"] in ids and run["outcome"]:
                ended[run["task_id"]] = run["outcome"]["result"]
        return len(ended) == len(ids)

    until("the tasks to be done", done)
    return [ended[task_id] for task_id in ids]


def settle(agentos: Agentos) -> list[dict[str, Any]]:
    """Let the daemon look for failures and try repairs, until nothing has been at work for a while."""
    seen, since = "", time.monotonic()

    def quiet() -> bool:
        nonlocal seen, since
        evolutions = agentos.json("evolution", "list")
        now = json.dumps([[item["id"], item["state"]] for item in evolutions])
        if now != seen or any(item["state"] in AT_WORK for item in evolutions):
            seen, since = now, time.monotonic()
        return time.monotonic() - since > QUIET_S

    agentos("evolve")
    until("the evolutions to end", quiet, 1.0)
    evolutions: list[dict[str, Any]] = agentos.json("evolution", "list")
    return evolutions


# --- judging from outside ---------------------------------------------------------------------


def outcomes(source: str, cases: list[dict[str, Any]]) -> list[list[Any]]:
    """What a tool answers and writes for each case, worked out in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-I", str(HERE / "tool_calls.py")],
            input=json.dumps({"source": source, "cases": cases, "seconds": CASE_S}),
            capture_output=True,
            text=True,
            cwd=folder,
            check=True,
        )
    found: list[list[Any]] = json.loads(done.stdout)
    return found


def judge(tool: Tool, source: str) -> tuple[int, int, int]:
    """How many kept tasks and fresh inputs it has right, and how many it has lost."""
    cases = [{"args": case["args"], "files": case["files"]} for case in (*tool.kept, *tool.fresh)]
    right = outcomes((tool.folder / "right.py").read_text(encoding="utf-8"), cases)
    faulty = outcomes((tool.folder / "faulty.py").read_text(encoding="utf-8"), cases)
    now = outcomes(source, cases)
    good = [same(mine, wanted) for mine, wanted in zip(now, right, strict=True)]
    before = [same(mine, wanted) for mine, wanted in zip(faulty, right, strict=True)]
    lost = sum(was and not is_ for was, is_ in zip(before, good, strict=True))
    return sum(good[: len(tool.kept)]), sum(good[len(tool.kept) :]), lost


def same(found: Any, wanted: Any) -> bool:
    """Equal but for the last digits of a number; true is not 1."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return wanted.keys() == found.keys() and all(same(found[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(same, found, wanted))
    if isinstance(wanted, bool) or isinstance(found, bool):
        return found is wanted
    if isinstance(wanted, int | float) and isinstance(found, int | float):
        return abs(found - wanted) <= 1e-6
    return type(found) is type(wanted) and bool(found == wanted)


# --- the whole --------------------------------------------------------------------------------


def attempt(tool: Tool, seconds: float) -> Result:
    """One tool from a fresh home to the judged end."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bench-tools-") as folder:
        agentos = Agentos(Path(folder) / "home")
        agentos("init")
        (agentos.home / "policy.toml").write_text(f"[propose]\nbudget_s = {seconds}\n")
        try:
            agentos("daemon", "start")
            write_skill(tool, agentos.home / "skills")
            until(f"{tool.name} to be taken in", lambda: agentos.source(tool) is not None)
            first = work_off(agentos, write_tasks(tool, tool.shown, Path(folder) / "tasks"))
            evolutions = settle(agentos)
            source = agentos.source(tool) or ""
        finally:
            with suppress(Stuck):  # it never came up
                agentos("daemon", "stop", "--now")
    kept, fresh, worse = judge(tool, source)
    return Result(
        name=tool.name,
        edit=tool.edit,
        states=[item["state"] for item in evolutions],
        reasons=[item["reason"] for item in evolutions],
        failed_at_first=sum(result != "passed" for result in first),
        promoted=any(item["state"] in LIVE for item in evolutions),
        kept=kept,
        fresh=fresh,
        worse=worse,
        seconds=round(time.monotonic() - began, 1),
        diff=changed(tool, source),
    )


def changed(tool: Tool, source: str) -> list[str]:
    """The lines by which the tool in the registry differs from the one that was dropped in."""
    from difflib import unified_diff

    old = (tool.folder / "faulty.py").read_text(encoding="utf-8")
    lines = unified_diff(old.splitlines(), source.splitlines(), n=0, lineterm="")
    return [line for line in lines if line[0] in "+-" and line[:3] not in ("+++", "---")]


def table(results: list[Result]) -> None:
    print(f"{'tool':18} {'fault':8} {'end':16} {'kept':>5} {'fresh':>6} {'worse':>5} {'s':>6}  verdict")
    for item in results:
        end = "+".join(item.states) or "none"
        line = f"{item.name:18} {item.edit:8} {end:16} {item.kept:>3}/5 {item.fresh:>3}/24"
        print(f"{line} {item.worse:>5} {item.seconds:>6.1f}  {item.verdict}")


def summary(which: str, results: list[Result]) -> None:
    """The result lines of `benchmarks/README.md`."""
    for kind in ("one", "several", "all"):
        chosen = [item for item in results if kind in (item.edit, "all")]
        promoted = [item for item in chosen if item.promoted]
        if chosen:
            right = sum(item.right for item in promoted)
            worse = sum(item.worse > 0 for item in promoted)
            what = (
                f"tools of `{which}`, faults of the kind {kind}" if kind != "all" else f"tools of `{which}`"
            )
            asked = sum(item.verdict == "asked" for item in chosen)
            remarks = (
                f"{right} of them right everywhere, {worse} worse somewhere; {asked} asked; n={len(chosen)}"
            )
            print(f"| {what} | {len(promoted)} promoted |  | {remarks} |")


def main() -> None:
    for ended in (
        signal.SIGTERM,
        signal.SIGHUP,
    ):  # by an exception, so that the daemon of the tool ends as well
        signal.signal(ended, lambda number, _: sys.exit(128 + number))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--set", dest="which", choices=["develop", "report"], help="the whole set")
    parser.add_argument("--only", help="names, with commas between them")
    parser.add_argument("--limit", type=int, help="only the first of them")
    parser.add_argument("--seconds", type=float, default=10.0, help="for one search  [default: 10]")
    parser.add_argument("--json", type=Path, help="where to write everything that was found")
    options = parser.parse_args()
    which = options.which or "develop"
    chosen = [read(folder) for folder in folders(which)]
    if options.only:
        chosen = [tool for tool in chosen if tool.name in options.only.split(",")]
    limit = options.limit or (3 if not options.which and not options.only else len(chosen))
    results = []
    for tool in chosen[:limit]:
        try:
            results.append(attempt(tool, options.seconds))
        except Stuck as error:
            print(f"{tool.name}: not measured: {error}", file=sys.stderr, flush=True)
            continue
        print(f"{tool.name}: {results[-1].verdict} ({', '.join(results[-1].states) or 'none'})", flush=True)
        if options.json:  # after each tool: a run over a whole set is long
            said = [{**asdict(item), "right": item.right, "verdict": item.verdict} for item in results]
            options.json.write_text(
                json.dumps({"set": which, "seconds": options.seconds, "tools": said}, indent=1)
            )
    table(results)
    summary(which, results)
    if len(results) < len(chosen[:limit]):
        sys.exit(1)


if __name__ == "__main__":
    main()
