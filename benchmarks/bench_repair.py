"""How good the repair proposer is on small programs with one fault, of which it sees the example tests only.

    python benchmarks/bench_repair.py [--data PATH] [--only TEXT] [--budget SECONDS] [--verbose]

Each ``assert`` of the example test is a case: those that fail are the evidence, those that pass are
working calls. The full tests decide whether the first proposal is correct; nothing else reads them.
"""

from __future__ import annotations

import argparse
import ast
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from local_bench import LocalBenches, cases_of_asserts

from agentos.domain import Kind, ResourceId, Snapshot
from agentos.ports import Brief, Proposal
from agentos.proposers.repair import RepairProposer

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
PATH = "tool/program/tool.py"
PROGRAMS = "repair/humanevalfix_dev.jsonl"


@dataclass(frozen=True, slots=True)
class Score:
    """What came out for one program."""

    name: str
    evidence: int
    first: Proposal | None
    correct: bool
    proposals: int
    any_correct: bool
    seconds: float
    tries: int


def brief_of(row: dict[str, str], budget_s: float) -> Brief:
    """What the proposer sees: the faulty program with its docstring, and the visible asserts."""
    signature = row["declaration"].rstrip()
    docstring = "\n".join("    " + line for line in row["docstring"].replace('"""', "'''").splitlines())
    source = f'{signature}\n    r"""\n{docstring}\n    """\n{row["buggy_solution"]}'
    name = row["entry_point"]
    functions = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef) and n.name == name]
    start = row["example_test"].find(f"def check({name})")
    tests = row["example_test"][start:] if start >= 0 else ""
    cases = tuple(cases_of_asserts(tests, name, [a.arg for a in functions[-1].args.args]))
    bench = LocalBenches().bench(Snapshot("", ""), PATH, cases, 2.0)
    tried = bench.try_source(source)
    bench.close()
    failing = tuple(c for c, ok in zip(cases, tried.passed, strict=True) if not ok)
    working = tuple((c, o) for c, o, ok in zip(cases, tried.outputs, tried.passed, strict=True) if ok)
    tool = ResourceId(Kind.TOOL, "program")
    return Brief(row["task_id"], Snapshot("", ""), tool, PATH, source, failing, working, budget_s, 10)


def is_correct(row: dict[str, str], source: str) -> bool:
    """Whether the full tests pass."""
    program = f"{source}\n{row['test']}\n"
    try:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def score(row: dict[str, str], budget_s: float) -> Score:
    """Search, then judge every proposal."""
    brief = brief_of(row, budget_s)
    started = time.monotonic()
    benches = LocalBenches()
    proposals = list(RepairProposer(benches, 1).propose(brief)) if brief.cases else []
    seconds = time.monotonic() - started
    full = [p for p in proposals if len(p.predicted_fixes) == len(brief.cases)]
    right = [is_correct(row, p.files[PATH]) for p in full]
    first = full[0] if full else None
    tries = sum(bench.tries for bench in benches.opened)
    return Score(
        row["task_id"], len(brief.cases), first, right[:1] == [True], len(full), any(right), seconds, tries
    )


def rows(data: Path, only: str) -> Iterator[dict[str, str]]:
    """The programs, or those whose name contains ``only``."""
    for line in (data / PROGRAMS).read_text().splitlines():
        row = json.loads(line)
        if only in row["task_id"]:
            yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--only", default="")
    parser.add_argument("--budget", type=float, default=20.0)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    if not (options.data / PROGRAMS).is_file():
        print(f"skipped: there are no programs at {options.data / PROGRAMS}; say where with --data PATH")
        return
    scores = []
    for row in rows(options.data, options.only):
        scores.append(score(row, options.budget))
        if options.verbose:
            tell(scores[-1])
    summary(scores)


def tell(found: Score) -> None:
    """One line for one program."""
    word = "right" if found.correct else "wrong" if found.first else "none"
    later = " (right one later)" if found.any_correct and not found.correct else ""
    what = found.first.summary if found.first else f"{found.evidence} failing examples"
    print(f"{found.name:12} {word:5} {found.seconds:5.1f} s  {what}{later}", flush=True)


def summary(scores: list[Score]) -> None:
    """The result lines. What they stand beside was measured on the same programs (docs/understand/repair.md)."""
    count = max(1, len(scores))
    plausible = [s for s in scores if s.first]
    correct = [s for s in scores if s.correct]
    unseen = sum(not s.evidence for s in scores)
    programs = f"of {len(scores)} programs, {unseen} of which pass their examples and count as not repaired"
    report("plausible", share(len(plausible), count), "", f"{programs}; passes the example tests")
    report(
        "correct, first patch",
        share(len(correct), count),
        "38% by fixed operators in fixed order, 55% with ingredients of the file",
        "passes the hidden tests",
    )
    report(
        "precision of the first patch",
        share(len(correct), max(1, len(plausible))),
        "62% by enumeration with ingredients",
        f"{len(plausible) - len(correct)} first patches are wrong",
    )
    report("a correct one among the first ten", share(sum(s.any_correct for s in scores), count), "", "")
    searched = [s for s in scores if s.evidence]
    if not searched:
        return
    tries, seconds = [s.tries for s in searched], [s.seconds for s in searched]
    report(
        "candidates tried for each program",
        f"{statistics.median(tries):.0f}, median",
        f"{statistics.median(s.proposals for s in searched):.0f} proposed",
        f"{min(tries)} to {max(tries)}, {sum(tries) / sum(seconds):.0f} a second",
    )
    report(
        "time for each program",
        f"{statistics.median(seconds):.1f} s, median",
        "",
        f"{max(seconds):.1f} s at most, {sum(seconds):.0f} s in all",
    )


def share(part: int, whole: int) -> str:
    """A share with its count."""
    return f"{part / whole:.0%} ({part})"


def report(what: str, value: str, beside: str, remarks: str) -> None:
    """One result line."""
    print(f"| {what} | {value} | {beside} | {remarks} |", flush=True)


if __name__ == "__main__":
    main()
