"""Repairs of tools that the search was not made with: how many are promoted, and how many of those are right.

    python benchmarks/bench_tools.py [--set develop|report|...|report9] [--only NAME,NAME] [--after NAME] [--part K/N] [--limit N]
                                     [--seconds S] [--fresh N] [--wanted N] [--json FILE]

Each tool of the set (`benchmarks/data/tools/README.md`) gets a fresh home with a daemon, is dropped into its folder
of skills with its fault, and works off nine of its fourteen tasks. An edit that then waits for fresh work gets
it: with ``--fresh N`` so many of the tool's fresh inputs, drawn by its name, are filed as checked tasks. What comes of it
is judged from outside: the edit is held against the five tasks that the program never saw, and against the right
version on the fresh inputs that were not filed. Without arguments, three tools of `develop` are tried, so
that `make bench` stays short. A run with ``--json`` goes on where the file ends.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from dice import limits
from tool_sets import SETS, Tool, folders, read, write_skill, write_tasks

from agentos.domain import Candidate, Evolution, Trial, TrialSet
from agentos.ledger.reading import Reader

HERE = Path(__file__).resolve().parent
LIVE = {"probation", "promoted"}
ASKED = {"awaiting_consent", "held"}
AT_WORK = {"mined", "reproducing", "proposing", "replaying", "promoting"}
QUIET_S = 3.0  # nothing at work for this long: it is done
FRESH_QUIET_S = 60.0  # no trial of fresh work for this long, and not all of it was tried: it says nothing
WAITS = "waits for you, or for "  # how the reason of an edit begins for which fresh work would do
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
    fresh: int  # of the fresh inputs that were not filed, as the right version answers them
    worse: int  # kept tasks and fresh inputs that the faulty version had right, and this one has not
    seconds: float
    diff: list[str]
    drawn: list[int] = field(default_factory=list)  # numbers of the fresh inputs that were filed
    inputs: int = 24  # fresh inputs of the tool

    @property
    def left(self) -> int:
        """How many fresh inputs judge it."""
        return self.inputs - len(self.drawn)

    @property
    def edited(self) -> bool:
        """Whether there is an edit: promoted, waiting or rejected."""
        return bool(self.diff)

    @property
    def right(self) -> bool:
        """Whether the edit is right wherever it was looked at."""
        return self.edited and self.kept == 5 and self.fresh == self.left

    @property
    def outcome(self) -> str:
        """What became of the edit: promoted unattended, rejected (by fresh work), waiting for more of it, asked for another doubt."""
        if self.promoted:
            return "promoted"
        if any(reason.startswith(WAITS) for reason in self.reasons):
            return "waiting"
        if ASKED & set(self.states):
            return "asked"
        if "rejected" in self.states:
            return "rejected by fresh work" if self.drawn else "rejected"
        return "no edit"

    @property
    def verdict(self) -> str:
        if not self.promoted:
            return self.outcome
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


def until(what: str, holds: Callable[[], bool], every_s: float = 0.3) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        if time.monotonic() > deadline:
            raise Stuck(f"waited {DEADLINE_S:.0f} s for {what}")
        time.sleep(every_s)


def work_off(agentos: Agentos, file: Path) -> int:
    """Queue the tasks and wait for them; how many of all runs so far did not pass."""
    with suppress(Stuck):  # that is what it says of tasks that fail
        agentos("task", "run", str(file))
    runs = Reader(agentos.home / "ledger.db").runs()
    return sum(run.outcome is None or run.outcome.result.value != "passed" for run in runs)


def settle(agentos: Agentos, quiet_s: float) -> Sequence[Evolution]:
    """Let the daemon look for failures and try repairs, until nothing has been at work for a while."""
    reader = Reader(agentos.home / "ledger.db")
    seen, since = list[tuple[str, str, str]](), time.monotonic()

    def quiet() -> bool:
        nonlocal seen, since
        now = [(item.id, item.state.value, item.reason) for item in reader.find(Evolution)]
        if now != seen or any(state in AT_WORK for _, state, _ in now):
            seen, since = now, time.monotonic()
        return time.monotonic() - since > quiet_s

    until("the evolutions to end", quiet)
    return reader.find(Evolution)


def fresh_numbers(tool: Tool, count: int) -> list[int]:
    """Which of its fresh inputs are filed: the same in each run."""
    return sorted(random.Random(f"fresh {tool.name}").sample(range(len(tool.fresh)), count))


def try_fresh(agentos: Agentos, tool: Tool, drawn: list[int], place: Path) -> Sequence[Evolution]:
    """File these fresh inputs, with their answers for checks, and let an edit that waits for such work have it."""
    tasks = [
        {
            **tool.fresh[number],
            "name": f"later {number}",
            "checks": [{"equals": {"value": tool.fresh[number]["answer"]}}],
        }
        for number in drawn
    ]
    work_off(agentos, write_tasks(tool, tasks, place))
    reader = Reader(agentos.home / "ledger.db")
    seen, since = 0, time.monotonic()

    def tried() -> bool:
        nonlocal seen, since
        trials = [trial for trial in reader.find(Trial) if trial.set is TrialSet.FRESH]
        if len(trials) != seen:
            seen, since = len(trials), time.monotonic()
        waits = any(item.reason.startswith(WAITS) for item in reader.find(Evolution))
        enough = len({trial.task_id for trial in trials}) == len(drawn)
        return not waits or enough or time.monotonic() - since > FRESH_QUIET_S

    until("fresh work to be tried", tried)
    return settle(agentos, QUIET_S)


def edit_of(agentos: Agentos, tool: Tool, evolutions: Sequence[Evolution]) -> dict[str, str]:
    """The files with the edit that was promoted, or came nearest to it; as they were dropped in where there is none."""
    reader = Reader(agentos.home / "ledger.db")
    files, place = tool.files("faulty"), f"skill/{tool.name}/tools/"
    for item in evolutions:
        for candidate in reader.find(Candidate, id=item.candidate_id) if item.candidate_id else ():
            edited = candidate.edit.files
            if any(place + name in edited for name in files):
                return {name: edited.get(place + name, source) for name, source in files.items()}
    return files


# --- judging from outside ---------------------------------------------------------------------


def outcomes(files: dict[str, str], cases: list[dict[str, Any]]) -> list[list[Any]]:
    """What a tool answers and writes for each case, worked out in a process of its own."""
    tool, *helpers = (name.removesuffix(".py") for name in files)
    sources = {name: files[f"{name}.py"] for name in (*helpers, tool)}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-I", str(HERE / "tool_calls.py")],
            input=json.dumps({"sources": sources, "cases": cases, "seconds": CASE_S}),
            capture_output=True,
            text=True,
            cwd=folder,
            check=True,
        )
    found: list[list[Any]] = json.loads(done.stdout)
    return found


def judge(tool: Tool, files: dict[str, str], drawn: list[int]) -> tuple[int, int, int]:
    """How many kept tasks and fresh inputs that were not drawn it has right, and how many of both it has lost."""
    left = [case for number, case in enumerate(tool.fresh) if number not in drawn]
    cases = [{"args": case["args"], "files": case["files"]} for case in (*tool.kept, *left)]
    right, faulty = outcomes(tool.files("right"), cases), outcomes(tool.files("faulty"), cases)
    now = outcomes(files, cases)
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


def attempt(tool: Tool, seconds: float, fresh: int, wanted: int | None) -> Result:
    """One tool from a fresh home to the judged end."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bench-tools-") as folder:
        agentos = Agentos(Path(folder) / "home")
        agentos("init")
        needed = "" if wanted is None else f"[judge]\nfresh_tasks = {wanted}\n"
        (agentos.home / "policy.toml").write_text(f"[propose]\nbudget_s = {seconds}\n{needed}")
        drawn: list[int] = []
        write_skill(tool, agentos.home / "skills")
        try:
            agentos("daemon", "start")
            until(f"{tool.name} to be taken in", lambda: agentos.source(tool) is not None)
            failed = work_off(agentos, write_tasks(tool, tool.shown, Path(folder) / "tasks"))
            agentos("evolve")
            evolutions = settle(agentos, QUIET_S)
            if fresh and any(item.reason.startswith(WAITS) for item in evolutions):
                drawn = fresh_numbers(tool, fresh)
                evolutions = try_fresh(agentos, tool, drawn, Path(folder) / "later")
            files = edit_of(agentos, tool, evolutions)
        finally:
            with suppress(Stuck):  # it never came up
                agentos("daemon", "stop", "--now")
    kept, right, worse = judge(tool, files, drawn)
    return Result(
        name=tool.name,
        edit=tool.edit,
        states=[item.state.value for item in evolutions],
        reasons=[item.reason for item in evolutions],
        failed_at_first=failed,
        promoted=any(item.state.value in LIVE for item in evolutions),
        kept=kept,
        fresh=right,
        worse=worse,
        seconds=round(time.monotonic() - began, 1),
        diff=changed(tool, files),
        drawn=drawn,
        inputs=len(tool.fresh),
    )


def changed(tool: Tool, files: dict[str, str]) -> list[str]:
    """The lines by which the files differ from those that were dropped in."""
    from difflib import unified_diff

    pairs = [(old.splitlines(), files[name].splitlines()) for name, old in tool.files("faulty").items()]
    lines = [line for old, new in pairs for line in unified_diff(old, new, n=0, lineterm="")]
    return [line for line in lines if line[0] in "+-" and line[:3] not in ("+++", "---")]


def table(results: list[Result]) -> None:
    print(f"{'tool':18} {'fault':8} {'end':22} {'kept':>5} {'fresh':>6} {'worse':>5} {'s':>6}  verdict")
    for item in results:
        line = f"{item.name:18} {item.edit:8} {item.outcome:22} {item.kept:>3}/5 {item.fresh:>3}/{item.left}"
        word = "" if item.promoted or not item.edited else ", right" if item.right else ", wrong"
        print(f"{line} {item.worse:>5} {item.seconds:>6.1f}  {item.verdict}{word}")


def summary(which: str, results: list[Result]) -> None:
    """The result lines of `benchmarks/README.md`."""
    for kind in ("one", "several", "none", "all"):
        chosen = [item for item in results if kind in (item.edit, "all")]
        promoted = [item for item in chosen if item.promoted]
        if not chosen:
            continue
        what = f"tools of `{which}`" + (f", faults of the kind {kind}" if kind != "all" else "")
        right, worse = sum(item.right for item in promoted), sum(item.worse > 0 for item in promoted)
        others = [
            f"{len(some)} {end} ({sum(item.right for item in some)} of them right)"
            for end in ("waiting", "asked", "rejected by fresh work", "rejected")
            if (some := [item for item in chosen if item.outcome == end])
        ]
        low, high = limits(len(promoted) - right, len(promoted)) if promoted else (0.0, 1.0)
        remarks = (
            f"{right} of them right everywhere, {worse} worse somewhere; wrong {low:.1%} to {high:.1%}; "
        )
        remarks += "; ".join([*others, f"n={len(chosen)}"])
        print(f"| {what} | {len(promoted)} promoted |  | {remarks} |")


def main() -> None:
    # by an exception, so that the daemon of the tool ends as well
    for ended in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ended, lambda number, _: sys.exit(128 + number))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--set", dest="which", choices=SETS, help="the whole set")
    parser.add_argument("--only", help="names, with commas between them")
    parser.add_argument("--after", default="", help="only those that come after this name")
    parser.add_argument("--part", default="0/1", help="every Nth of them, from the Kth on")
    parser.add_argument("--limit", type=int, help="only the first of them")
    parser.add_argument("--seconds", type=float, default=10.0, help="for one search  [default: 10]")
    parser.add_argument(
        "--fresh", type=int, default=0, help="fresh inputs that are filed for an edit that waits for them"
    )
    parser.add_argument("--wanted", type=int, help="of them that have to pass  [default: the policy's]")
    parser.add_argument("--json", type=Path, help="where to write everything that was found")
    options = parser.parse_args()
    which = options.which or "develop"
    first, of = map(int, options.part.split("/"))
    chosen = [read(folder) for folder in folders(which) if folder.name > options.after][first::of]
    if options.only:
        chosen = [tool for tool in chosen if tool.name in options.only.split(",")]
    limit = options.limit or (3 if not options.which and not options.only else len(chosen))
    run = {"set": which, "seconds": options.seconds, "fresh": options.fresh, "wanted": options.wanted}
    results = measured(options.json, run)
    known = {item.name for item in results}
    missed = 0
    for tool in (tool for tool in chosen[:limit] if tool.name not in known):
        try:
            results.append(attempt(tool, options.seconds, options.fresh, options.wanted))
        except Stuck as error:
            missed += 1
            print(f"{tool.name}: not measured: {error}", file=sys.stderr, flush=True)
            continue
        print(f"{tool.name}: {results[-1].verdict} ({results[-1].seconds:.0f} s)", flush=True)
        if options.json:  # after each tool: a run over a whole set is long
            said = [
                {**asdict(item), "right": item.right, "verdict": item.verdict, "outcome": item.outcome}
                for item in results
            ]
            options.json.write_text(json.dumps({**run, "tools": said}, indent=1))
    table(results)
    summary(which, results)
    if missed:
        sys.exit(1)


def measured(file: Path | None, run: dict[str, Any]) -> list[Result]:
    """What the file holds already of such a run."""
    if file is None or not file.exists():
        return []
    said = json.loads(file.read_text())
    if {name: said.get(name) for name in run} != run:
        sys.exit(f"{file} is of another run: {', '.join(f'{name} {said.get(name)}' for name in run)}")
    names = {part.name for part in fields(Result)}
    return [
        Result(**{name: value for name, value in item.items() if name in names}) for item in said["tools"]
    ]


if __name__ == "__main__":
    main()
