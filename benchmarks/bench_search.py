"""The search for repairs alone, on small tools with one fault each: found, right on fresh inputs, CPU time.

    python benchmarks/bench_search.py [--set develop|report|report2|report3|report4] [--only NAME,NAME] [--seconds S] [--lines N] [--verbose]
    python benchmarks/bench_search.py --rank N [--set develop|report|report2|report3|report4] [--only NAME,NAME] [--half 0|1]

The search sees the nine tasks of each tool (`benchmarks/data/tools/README.md`) that are meant to be shown: those
that fail are the evidence, those that pass are working calls. A repair is right when it answers as the right
version does on 24 fresh inputs and passes the five other tasks. The search is made with the set `develop`; the
set `report` is for reporting only. With ``--rank`` nothing is tried: the first N edits are made in the order in which
they would be, and it is told which of them is the right version's text. `bench_tools.py` measures the whole program on the same tools.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import resource
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from local_bench import LocalBenches
from tool_sets import SETS

from agentos.benches import Bench, BenchResult
from agentos.domain import Call, Check, Kind, ResourceId, Snapshot
from agentos.ports import Brief, Case, Proposal
from agentos.proposers.repair import RepairProposer
from agentos.proposers.repair.proposer import (
    ground_of,
    in_order,
    looked_at,
    probe,
    program_of,
    shares,
    shipped_counts,
)
from agentos.proposers.repair.reading.foresight import foresight_of

DATA = Path(__file__).resolve().parent / "data" / "tools"
PATH = "tool/probe/tool.py"
SHOWN = 9
NOWHERE = Snapshot("", "")
LAYOUT = str.maketrans("", "", " \t\n()'\",")
EARLY = 200
LIMIT_S = 5.0  # for one call when a repair is judged


@dataclass(frozen=True, slots=True)
class Tool:
    """One faulty tool: what the search sees, and what it is judged by."""

    name: str
    edit: str
    source: str
    shown: tuple[Case, ...]
    kept: tuple[Case, ...]
    helpers: Mapping[str, bytes]

    @property
    def benches(self) -> LocalBenches:
        """With the helper modules beside the tool."""
        return LocalBenches(self.helpers)


@dataclass(frozen=True, slots=True)
class Score:
    """What came out for one tool."""

    tool: Tool
    first: Proposal | None
    right: bool
    any_right: bool
    tries: int
    cpu_s: float
    wall_s: float


def tools(folder: Path, only: Sequence[str]) -> Iterator[Tool]:
    """The tools below the folder, or those named. One whose fault is in a helper module is left out: that is not searched here."""
    for path in sorted(folder.glob("*/tool.json")):
        if (only and path.parent.name not in only) or any(path.parent.glob("faulty_*.py")):
            continue
        said = json.loads(path.read_text(encoding="utf-8"))
        cases = [_case(each, each["checks"]) for each in said["tasks"]]
        fresh = [_case(each, [{"equals": {"value": each["answer"]}}]) for each in said["fresh"]]
        source = (path.parent / "faulty.py").read_text(encoding="utf-8")
        shown, kept = tuple(cases[:SHOWN]), (*cases[SHOWN:], *fresh)
        helpers = {helper.name: helper.read_bytes() for helper in path.parent.glob("_*.py")}
        yield Tool(path.parent.name, said["edit"], source, shown, kept, helpers)


def _case(given: dict[str, Any], checks: Sequence[dict[str, Any]]) -> Case:
    inputs = {name: text.encode() for name, text in given.get("files", {}).items()}
    parsed = tuple(Check(kind, spec) for check in checks for kind, spec in check.items())
    return Case(given.get("name", "fresh"), Call("probe", given["args"]), inputs, parsed)


def brief_of(tool: Tool, seconds: float) -> Brief:
    """What the proposer sees: the failing tasks with their checks, and the working calls with their answers."""
    bench = tool.benches.bench(NOWHERE, PATH, tool.shown, LIMIT_S)
    tried = bench.try_source(tool.source)
    bench.close()
    shown = list(zip(tool.shown, tried.passed, tried.outputs, strict=True))
    failing = tuple(case for case, passed, _ in shown if not passed)
    working = tuple((case, output) for case, passed, output in shown if passed)
    resource_id = ResourceId(Kind.TOOL, "probe")
    return Brief(tool.name, NOWHERE, resource_id, PATH, tool.source, failing, working, seconds, 6)


def is_right(tool: Tool, source: str) -> bool:
    """Whether a repair passes everything that the search did not see."""
    bench = tool.benches.bench(NOWHERE, PATH, tool.kept, LIMIT_S)
    passed = bench.try_source(source).passed
    bench.close()
    return all(passed)


def score(tool: Tool, seconds: float) -> Score:
    """Search, then judge each proposal."""
    brief, benches = brief_of(tool, seconds), tool.benches
    began, before = time.monotonic(), time.process_time()
    proposals = list(RepairProposer(benches, 1).propose(brief))
    wall_s = time.monotonic() - began
    cpu_s = time.process_time() - before + sum(bench.cpu_s for bench in benches.opened)
    full = [p for p in proposals if len(p.predicted_fixes) == len(brief.cases)]
    right = [is_right(tool, p.files[PATH]) for p in full]
    tries = sum(bench.tries for bench in benches.opened)
    first = full[0] if full else None
    return Score(tool, first, right[:1] == [True], any(right), tries, cpu_s, wall_s)


def tell(found: Score) -> None:
    """One line for one tool."""
    word = "right" if found.right else "wrong" if found.first else "none"
    later = " (a right one later)" if found.any_right and not found.right else ""
    what = found.first.summary if found.first else ""
    numbers = f"{found.cpu_s:5.1f} s of CPU {found.wall_s:6.1f} s {found.tries:6} tries"
    print(f"{found.tool.name:18} {found.tool.edit:8} {word:5} {numbers}  {what}{later}", flush=True)


def summary(scores: Sequence[Score]) -> None:
    """A table, by kind of fault."""
    print("| faults | tools | found | right | wrong | CPU, median | CPU, most |")
    print("|---|---|---|---|---|---|---|")
    for kind in ("one", "several"):
        some = [each for each in scores if each.tool.edit == kind]
        if not some:
            continue
        found, right = sum(each.first is not None for each in some), sum(each.right for each in some)
        cpu_s = sorted(each.cpu_s for each in some)
        middle, most = cpu_s[len(cpu_s) // 2], cpu_s[-1]
        print(
            f"| {kind} | {len(some)} | {found} | {right} | {found - right} | {middle:.1f} s | {most:.1f} s |"
        )


# --- in which order edits would be tried -----------------------------------------------------


def half_of(name: str) -> int:
    """One of two halves of the tools, for what is fitted on one and told of the other."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 2


def bare(source: str) -> str:
    """The source but for its layout."""
    return ast.dump(ast.parse(source))


def made_in_order(tool: Tool, most: int) -> Iterator[tuple[int, str, str]]:
    """The first edits in the order in which they would be tried: number, operator, source. No source comes twice."""
    brief, benches = brief_of(tool, 10.0), tool.benches
    program = program_of(brief.source)
    ground = ground_of(brief, program, probe(brief, benches)) if program and brief.cases else None
    if program is None or ground is None:
        return
    failing, working = looked_at(ground)
    with closing(benches.bench(NOWHERE, PATH, [case for case, _ in (*failing, *working)], 1.0)) as bench:
        seeing = foresight_of(failing, working, program, bench.try_source)
        known = set[int]()
        for ranked in seeing.in_order(in_order(ground, shares(shipped_counts(), ground.probed))):
            made = program.change(ranked.edit)
            if made is None or made[1] == program.unchanged(ranked.edit) or hash(made[1]) in known:
                continue
            known.add(hash(made[1]))
            yield len(known), ranked.edit.operator, made[0]
            if len(known) >= most:
                return


def rank_of(tool: Tool, right: str, most: int) -> tuple[int | None, str]:
    """The number of the first edit that gives the right version, and its operator; None if not among the first."""
    wanted, letters = bare(right), right.translate(LAYOUT)
    for number, operator, source in made_in_order(tool, most):
        if source.translate(LAYOUT) == letters and bare(source) == wanted:
            return number, operator
    return None, ""


def ranks(found: Iterator[Tool], folder: Path, most: int, half: int | None) -> None:
    """The table of ranks, over faults of one edit."""
    places = []
    for tool in (tool for tool in found if tool.edit == "one" and half in (None, half_of(tool.name))):
        rank, operator = rank_of(tool, (folder / tool.name / "right.py").read_text(encoding="utf-8"), most)
        print(f"{tool.name:18} {rank or 'none':>6}  {operator}", flush=True)
        places.append(rank)
    reached = sorted(rank for rank in places if rank)
    early = sum(rank <= EARLY for rank in reached)
    print(f"| {len(places)} faults of one edit | {len(reached)} among {most} | {early} among {EARLY} |")


# --- a file of real size ----------------------------------------------------------------------


def lengthened(source: str, others: Sequence[str], lines: int) -> str:
    """The source with functions of other tools under names of their own behind it, until it has so many lines.

    They stand without annotations and defaults: what those name is not there, and the file has to load.
    """
    parts, number, count = [source], 0, len(source.splitlines())
    while count < lines:
        for node in ast.parse(others[number % len(others)]).body:
            if isinstance(node, ast.FunctionDef) and count < lines:
                node.name, node.returns, node.decorator_list = f"{node.name}_{number}", None, []
                node.args = ast.arguments([], [_bare(arg) for arg in node.args.args], None, [], [], None, [])
                parts.append(f"\n\n{ast.unparse(node)}\n")
                count += len(parts[-1].splitlines())
        number += 1
    return "".join(parts)


def _bare(argument: ast.arg) -> ast.arg:
    return ast.arg(argument.arg)


class FirstTry(LocalBenches):
    """Notes the CPU time of this process when the first edit is tried."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.source, self.cpu_s = source, 0.0

    def bench(self, snapshot: Snapshot, path: str, cases: Sequence[Case], timeout_s: float) -> Bench:
        made = super().bench(snapshot, path, cases, timeout_s)
        plain = made.try_source

        def noted(source: str, **options: Any) -> BenchResult:
            if source != self.source and not self.cpu_s:
                self.cpu_s = time.process_time()
            return plain(source, **options)

        made.try_source = noted  # type: ignore[method-assign]
        return made


def large(found: Sequence[Tool], lines: int, seconds: float) -> None:
    """One tool made so long: CPU time to the first try, and by how much memory grew."""
    tool = found[0]
    source = lengthened(tool.source, [each.source for each in found], lines)
    brief = replace(brief_of(tool, seconds), source=source)
    benches = FirstTry(source)
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    proposals = list(RepairProposer(benches, 1).propose(brief))
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    right = bool(proposals) and is_right(tool, proposals[0].files[PATH])
    first = f"{benches.cpu_s - began:.2f} s to the first try" if benches.cpu_s else "no edit tried"
    print(f"| {tool.name} with {len(source.splitlines()):,} lines | {first} | {seconds:g} s of CPU |")
    tries = sum(bench.tries for bench in benches.opened)
    print(f"| memory | {grown_mb:.0f} MB more | {tries} tries, right: {right} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--set", choices=SETS, default="develop")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument(
        "--lines", type=int, help="the first tool as a file of so many lines, and nothing else"
    )
    parser.add_argument("--rank", type=int, help="make so many edits in their order, and try none")
    parser.add_argument("--half", type=int, choices=(0, 1), help="of the tools, with --rank")
    options = parser.parse_args()
    only = [name for name in options.only.split(",") if name]
    if options.lines:
        large(list(tools(options.data / options.set, only)), options.lines, options.seconds)
        return
    if options.rank:
        folder = options.data / options.set
        ranks(tools(folder, only), folder, options.rank, options.half)
        return
    found = []
    for tool in tools(options.data / options.set, only):
        found.append(score(tool, options.seconds))
        if options.verbose:
            tell(found[-1])
    if not found:
        print(f"skipped: there are no tools in {options.data / options.set}")
        return
    summary(found)


if __name__ == "__main__":
    main()
