"""Small functions with one honest mistake: whether the edit that mends them is among the edits, and is found.

    python benchmarks/bench_slips.py FILE [--most N] [--seconds S] [--only NAME,NAME] [--verbose]

A slip (`benchmarks/data/slips/README.md`) has calls that its faulty version answers wrongly, and others. Half of
either are shown to the search. *Covered* means that among the first N edits, in the order in which they would be
tried, one answers all calls as the right version does. With ``--seconds`` the search itself is made; it is right
when its first proposal answers all calls.
"""

from __future__ import annotations

import argparse
import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from bench_search import LIMIT_S, NOWHERE, PATH, Score, Tool, made_in_order, score
from local_bench import LocalBenches

from agentos.benches import Bench
from agentos.domain import Call, Check
from agentos.ports import Case

TRIAL_S = 0.3  # of CPU time, for one call of an edit


def slips(path: Path, only: Sequence[str] = ()) -> Iterator[Tool]:
    """The slips of the file as tools: half of the calls that fail, and of the others, are shown."""
    for line in path.read_text(encoding="utf-8").splitlines():
        slip = json.loads(line)
        if only and slip["name"] not in only:
            continue
        cases = cases_of(slip)
        failing = [case for case, wrong in cases if wrong]
        working = [case for case, wrong in cases if not wrong]
        shown = (*failing[::2], *working[::2])
        yield Tool(slip["name"], slip["edit"], slip["faulty"], shown, (*failing, *working))


def cases_of(slip: Mapping[str, Any]) -> Sequence[tuple[Case, bool]]:
    """Its calls with the right answers, and whether the faulty version gives another one."""
    run = next(n for n in ast.parse(slip["right"]).body if isinstance(n, ast.FunctionDef) and n.name == "run")
    names = [argument.arg for argument in run.args.args]
    calls = [Call("run", dict(zip(names, call, strict=False))) for call in slip["calls"]]
    with closing(
        LocalBenches().bench(NOWHERE, PATH, [Case("", call, {}, ()) for call in calls], LIMIT_S)
    ) as bench:
        answers = bench.try_source(slip["right"]).outputs
    cases = [
        Case(f"call-{number}", call, {}, (Check("equals", {"value": answer}),))
        for number, (call, answer) in enumerate(zip(calls, answers, strict=True))
    ]
    with closing(LocalBenches().bench(NOWHERE, PATH, cases, LIMIT_S)) as bench:
        passed = bench.try_source(slip["faulty"]).passed
    return [(case, not right) for case, right in zip(cases, passed, strict=True)]


def place_of(slip: Tool, most: int) -> tuple[int | None, str, str]:
    """The number of the first edit that answers all calls rightly, its operator and source; None if there is none."""
    with closing(LocalBenches().bench(NOWHERE, PATH, slip.kept, TRIAL_S)) as bench:
        for number, operator, source in made_in_order(slip, most):
            if answers_all(bench, source, len(slip.kept)):
                return number, operator, source
    return None, "", ""


def answers_all(bench: Bench, source: str, count: int) -> bool:
    """The failing calls are the first: most edits end at one of those."""
    return all(bench.try_source(source, cases=[number]).passed[0] for number in range(count))


def change_of(old: str, new: str) -> str:
    """The lines that differ, on one line."""
    before, after = old.splitlines(), new.splitlines()
    return " ; ".join(line.strip() for line in after if line not in before)


def summary(slips_of: Sequence[Tool], places: Mapping[str, int | None], scores: Mapping[str, Score]) -> None:
    """A table, by kind of mistake."""
    print("| mistake | slips | covered | place, median | among 200 | right | wrong | none | CPU, median |")
    print("|---|---|---|---|---|---|---|---|---|")
    for kind in ("one", "several"):
        some = [slip.name for slip in slips_of if slip.edit == kind]
        reached = sorted(place for name in some if (place := places.get(name)))
        found = [scores[name] for name in some if name in scores]
        right, wrong = sum(s.right for s in found), sum(s.first is not None and not s.right for s in found)
        middle = reached[len(reached) // 2] if reached else "-"
        cpu_s = sorted(s.cpu_s for s in found)
        median = f"{cpu_s[len(cpu_s) // 2]:.1f} s" if cpu_s else "-"
        searched = f"{right} | {wrong} | {len(found) - right - wrong}" if found else "- | - | -"
        early = sum(place <= 200 for place in reached)
        print(f"| {kind} | {len(some)} | {len(reached)} | {middle} | {early} | {searched} | {median} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--most", type=int, default=6000, help="edits that are made of each; 0 for none")
    parser.add_argument("--seconds", type=float, default=0.0, help="of CPU time a search; 0 for none")
    parser.add_argument("--only", default="")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    known, places, scores = list(slips(options.file, [n for n in options.only.split(",") if n])), {}, {}
    for slip in known:
        said = ""
        if options.most:
            places[slip.name], operator, source = place_of(slip, options.most)
            said = f"{places[slip.name] or 'none':>6} {operator:18} {change_of(slip.source, source)}"
        if options.seconds:
            found = scores[slip.name] = score(slip, options.seconds)
            word = "right" if found.right else "wrong" if found.first else "none"
            said += f" | {word} {found.tries} tries {found.first.summary if found.first else ''}"
        if options.verbose:
            print(f"{slip.name:26} {slip.edit:8} {said}", flush=True)
    summary(known, places, scores)


if __name__ == "__main__":
    main()
