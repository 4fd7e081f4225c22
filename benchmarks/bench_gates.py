"""What becomes of the edits that the search finds: the gates before a promotion, and fresh work after it, offline.

    python benchmarks/bench_gates.py search --edits FILE [--seconds S] [--only NAME,NAME] [--part K/N]
    python benchmarks/bench_gates.py right --edits FILE [--part K/N]
    python benchmarks/bench_gates.py gates --edits FILE --judged FILE [--part K/N]
    python benchmarks/bench_gates.py table --judged FILE

``search`` looks for edits of each tool that may be looked at (`data/tools/README.md`): some of its nine tasks are hold-out
or held back, as in a home. ``right`` takes the right version for the edit instead, without a search: what gates cost right
edits, in a tenth of the time. ``gates`` asks each gate of the first edit that passes all nine, with the other edits as its
rivals. ``table`` tells for both halves of the tools what is promoted and what of it is wrong, gate by gate, and with
how many fresh tasks that have to pass first. No daemon and no sandbox; files are continued where they ended.
Without arguments the gates are asked of the right versions of a few tools.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench_search import NOWHERE, PATH, brief_of
from bench_search import Tool as SearchTool
from bench_search import tools as search_tools
from bench_tools import same
from dice import limits
from local_bench import LocalBenches

from agentos.benches import Bench
from agentos.evolver.policy import Policy
from agentos.evolver.propose.ambiguity import Known, compared
from agentos.evolver.propose.neighbours import neighbours
from agentos.evolver.propose.unread_names import unread
from agentos.ports import Case
from agentos.proposers.repair import RepairProposer

DEVELOP = Path(__file__).resolve().parent / "data" / "tools" / "develop"
LIMIT_S = 5.0
SHOWN = 9
Row = dict[str, Any]


def looked_at(only: Sequence[str]) -> Iterator[SearchTool]:
    """The tools that may be looked at, in an order that has nothing to do with their names."""
    for name in sorted((path.name for path in DEVELOP.iterdir()), key=_hash):
        if not only or name in only:
            yield from search_tools(DEVELOP, [name])


def _hash(*words: object) -> str:
    return hashlib.sha256(" ".join(map(str, words)).encode()).hexdigest()


def half(name: str) -> int:
    """Which half a tool is in: gates are fitted on 0, and told of by 1."""
    return int(_hash("half", name), 16) % 2


def sets(name: str, failing: Sequence[int], working: Sequence[int]) -> tuple[list[int], list[int]]:
    """Of the nine tasks those of the hold-out, and the evidence that is held back: drawn, as a home's key draws them."""
    hidden = [n for n in (*failing, *working) if int(_hash("hold-out", name, n), 16) % 5 == 0]
    while len([n for n in failing if n not in hidden]) < min(2, len(failing)):
        hidden.remove(next(n for n in hidden if n in failing))
    left = sorted((n for n in failing if n not in hidden), key=lambda n: _hash("held back", name, n))
    return hidden, left[: len(left) // 3]


# --- search -------------------------------------------------------------------------------------


def searched(tool: SearchTool, seconds: float) -> Row:
    """The edits that the search finds, each with what it has right of the nine tasks and of the others.

    With no seconds the right version is the only one.
    """
    before = answers(tool.source, tool.shown)
    passed = [verdict for verdict, _ in before]
    failing = [n for n, good in enumerate(passed) if not good]
    hold_out, held_back = sets(tool.name, failing, [n for n, good in enumerate(passed) if good])
    seen = [n for n in range(SHOWN) if n not in (*hold_out, *held_back)]
    if seconds:
        brief = brief_of(replace(tool, shown=tuple(tool.shown[n] for n in seen)), seconds)
        proposals = RepairProposer(LocalBenches(), 1).propose(brief) if brief.cases else iter(())
        found = [(each.files[PATH], each.weight, each.prior, each.summary) for each in proposals]
    else:
        found = [(_right(tool.name), 0.0, 0.0, "the right version")]
    edits = [
        {
            "splices": splices(tool.source, source),
            "weight": weight,
            "prior": prior,
            "summary": summary,
            "shown": bits(source, tool.shown),
            "kept": bits(source, tool.kept),
        }
        for source, weight, prior, summary in found
    ]
    return {
        "tool": tool.name,
        "edit": tool.edit,
        "hold_out": hold_out,
        "held_back": held_back,
        "base": bits(tool.source, tool.shown),
        "base_kept": bits(tool.source, tool.kept),
        "edits": edits,
    }


def _right(name: str) -> str:
    return (DEVELOP / name / "right.py").read_text(encoding="utf-8")


def answers(source: str, cases: Sequence[Case]) -> list[tuple[bool, Any]]:
    """Whether each passes, and its answer. The last digits of a number do not count."""
    bench = LocalBenches().bench(NOWHERE, PATH, cases, LIMIT_S)
    tried = bench.try_source(source)
    bench.close()
    found = []
    for case, passed, output in zip(cases, tried.passed, tried.outputs, strict=True):
        wanted = [check.spec["value"] for check in case.checks if set(check.spec) == {"value"}]
        found.append((passed or (bool(wanted) and same(output, wanted[0])), output))
    return found


def bits(source: str, cases: Sequence[Case]) -> str:
    """A 1 for each case that passes; of the kept ones five tasks, then the 24 fresh inputs."""
    return "".join(str(int(passed)) for passed, _ in answers(source, cases))


def splices(old: str, new: str) -> list[list[Any]]:
    """First and last character that go, and the text in their place, by lines: small, and easy to apply."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    codes = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [[start, end, "".join(after[since:to])] for tag, start, end, since, to in codes if tag != "equal"]


def spliced(old: str, changes: Sequence[Sequence[Any]]) -> str:
    """What ``splices`` took apart."""
    lines = old.splitlines(keepends=True)
    for start, end, text in reversed(changes):
        lines[start:end] = [text]
    return "".join(lines)


# --- gates --------------------------------------------------------------------------------------


def promotable(row: Row) -> int | None:
    """The first edit that the comparison of both sides would promote: number of it, None where there is none.

    It mends at least half of what was shown, as great a share of what was hidden, and breaks nothing.
    """
    hidden = {*row["hold_out"], *row["held_back"]}
    failing = [n for n, bit in enumerate(row["base"]) if bit == "0"]
    shown, alike = [n for n in failing if n not in hidden], [n for n in failing if n in hidden]
    for number, edit in enumerate(row["edits"]):
        now = edit["shown"]
        share = sum(now[n] == "1" for n in shown) / len(shown)
        kept = all(now[n] == "1" for n, bit in enumerate(row["base"]) if bit == "1")
        if kept and share >= 0.5 and sum(now[n] == "1" for n in alike) >= int(share * len(alike)):
            return number
    return None


def asked(tool: SearchTool, row: Row, number: int) -> Row:
    """What each gate says of one edit of the tool, with the others found as its rivals."""
    rules, edit = Policy().replay, row["edits"][number]
    own = spliced(tool.source, edit["splices"])
    others = {str(n): each for n, each in enumerate(row["edits"]) if n != number}
    hidden = {*row["hold_out"], *row["held_back"]}
    order = sorted(range(SHOWN), key=lambda n: n in hidden)  # hidden ones last
    working = {at for at, n in enumerate(order) if row["base"][n] == "1" or n in row["hold_out"]}
    known = Known(
        [tool.shown[n] for n in order],
        working,
        _hash("key", tool.name).encode(),
        rules,
        {name: each["weight"] for name, each in others.items() if each["weight"]},
        rules.rival_share * edit["weight"],
        {*range(SHOWN - len(hidden), SHOWN)},
        edit["weight"],
    )

    def opened(cases: Sequence[Case]) -> Bench:
        return LocalBenches().bench(NOWHERE, PATH, cases, rules.neighbour_s)

    rivals = {name: spliced(tool.source, each["splices"]) for name, each in others.items()}
    found = compared(opened, known, tool.source, own, rivals)
    return {
        "tool": tool.name,
        "edit": number,
        "summary": edit["summary"],
        "prior": edit["prior"],
        "share": found.share,
        "rivals": [*found.rivals],
        "partial": "0" in edit["shown"],
        "unguarded": bool(found.unguarded),
        "unmended": found.unmended,
        "breaks": found.breaks,
        "idle": found.idle,
        "needless": found.needless,
        "loosened": found.loosened,
        "accepted": found.accepted,
        "noise": found.noise,
        "depends": found.depends,
        "unread": unread(tool.source, own),
        "broad": broad(
            [tool.shown[n] for n in order if n not in hidden and row["base"][n] == "1"],
            tool.source,
            own,
            known,
        ),
        "fresh": edit["kept"],
        "base_fresh": row["base_kept"],
    }


def broad(guards: Sequence[Case], old: str, own: str, known: Known) -> bool:
    """Whether it changes most answers next to the guards that are shown."""
    rules = known.rules
    cases = [item.case for item in neighbours(guards, old, known.key, rules.neighbours // 2)]
    before, after = ([output for _, output in answers(source, cases)] for source in (old, own))
    pairs = [
        (one, other)
        for one, other in zip(before, after, strict=True)
        if not (isinstance(one, dict) and "error" in one)
    ]
    differ = sum(one != other for one, other in pairs)
    return len(pairs) >= rules.neighbours_min and differ > rules.broad_share * len(pairs)


# --- the table ----------------------------------------------------------------------------------

NEW = (" beside ", "with max(", "with min(", "with sorted(", "order reversed")
GATES: dict[str, Callable[[Row], bool]] = {
    "another edit found": lambda row: any(name.isdigit() for name in row["rivals"]),
    "mutants: beside, by size, order": lambda row: any(
        word in each for each in row["rivals"] for word in NEW
    ),
    "other mutants": lambda row: any(
        not name.isdigit() and not any(word in name for word in NEW) for name in row["rivals"]
    ),
    "partial": lambda row: row["partial"],
    "unguarded": lambda row: row["unguarded"],
    "unmended": lambda row: bool(row["unmended"]),
    "breaks": lambda row: bool(row["breaks"]) and not row["breaks"].endswith("it does not end"),
    "endless": lambda row: row["breaks"].endswith("it does not end"),
    "loosened": lambda row: bool(row["loosened"]),
    "idle": lambda row: bool(row["idle"]),
    "needless": lambda row: bool(row["needless"]),
    "accepted": lambda row: bool(row.get("accepted")),
    "noise": lambda row: bool(row.get("noise")),
    "depends": lambda row: bool(row.get("depends")),
    "unread": lambda row: bool(row["unread"]),
    "broad": lambda row: row["broad"],
    "far-fetched": lambda row: 0 < row["prior"] < Policy().replay.prior_min,
    "unlikely": lambda row: 0 < row["share"] < Policy().replay.share_min,
}
FRESH = ((0, 0), (5, 0), (10, 0), (10, 5), (15, 5), (20, 0), (20, 5), (20, 9))
DRAWS = 2000
A_FEW = 8


def is_wrong(row: Row) -> bool:
    return "0" in row["fresh"]


def learning_curve(chosen: Sequence[Row], seed: int = 1) -> dict[tuple[int, int], tuple[float, float]]:
    """By how many fresh tasks have to pass, and how many of these to fail on the base: edits that are promoted, and wrong.

    Wrong on the rest, that is, which was not drawn.
    """
    draw = random.Random(seed)
    found: dict[tuple[int, int], tuple[float, float]] = {}
    for count, telling in FRESH:
        kept, missed = 0, 0
        for row in chosen:
            tasks, fresh, before = row["fresh"][:-24], row["fresh"][-24:], row["base_fresh"][-24:]
            for _ in range(DRAWS):
                drawn = set(draw.sample(range(24), count))
                mended = sum(before[n] == "0" for n in drawn)
                if all(fresh[n] == "1" for n in drawn) and mended >= telling:
                    kept += 1
                    missed += "0" in tasks or any(fresh[n] == "0" for n in range(24) if n not in drawn)
        found[count, telling] = (kept / DRAWS, missed / DRAWS)
    return found


def interval(wrong: float, of: float) -> str:
    """In percent, with the limits for the nearest whole numbers."""
    if not round(of):
        return "-"
    low, high = limits(round(wrong), round(of))
    return f"{wrong:.1f}: {wrong / of:.1%} ({low:.1%} to {high:.1%})"


def told(judged: Sequence[Row]) -> None:
    """By gate, then with all gates, then by fresh tasks; for each half of the tools and both."""
    right = sum(not is_wrong(row) for row in judged)
    print(f"{len(judged)} first edits, {right} right, {len(judged) - right} wrong")
    print("| gate | right edits asked about | wrong edits asked about | wrong edits that it alone finds |")
    print("|---|---|---|---|")
    for name, says in GATES.items():
        hit = [row for row in judged if says(row)]
        alone = [row for row in hit if sum(other(row) for other in GATES.values()) == 1]
        asked = sum(not is_wrong(row) for row in hit)
        print(f"| {name} | {asked} | {len(hit) - asked} | {sum(map(is_wrong, alone))} |")
    print("| gates | half | tools | promoted | wrong | right edits asked about | of right |")
    print("|---|---|---|---|---|---|---|")
    gone = {
        "none": set(GATES),
        "all": set(),
        "all but tests that decide nothing and edits without end": {"needless", "endless"},
        "as before": {"needless", "endless", "partial"},
        "all but partial": {"partial"},
        "all but far-fetched": {"far-fetched"},
    }
    for words, without in gone.items():
        for side in (0, 1, None):
            some = [row for row in judged if side is None or half(row["tool"]) == side]
            left = [
                row for row in some if not any(f(row) for name, f in GATES.items() if name not in without)
            ]
            wrong, good = sum(map(is_wrong, left)), sum(not is_wrong(row) for row in some)
            lost = good - (len(left) - wrong)
            part = {0: "first", 1: "second", None: "both"}[side]
            print(
                f"| {words} | {part} | {len(some)} | {len(left)} | {interval(wrong, len(left))} | {lost} | {good} |"
            )
    print("| gates | fresh tasks that pass | of them failed before | promoted | wrong on the rest |")
    print("|---|---|---|---|---|")
    for words, without in gone.items():
        left = [row for row in judged if not any(f(row) for name, f in GATES.items() if name not in without)]
        for (count, telling), (kept, missed) in learning_curve(left).items():
            print(f"| {words} | {count} | {telling} | {kept:.1f} | {interval(missed, kept)} |")
    for row in judged:
        if is_wrong(row):
            said = [name for name, says in GATES.items() if says(row)]
            misses, fewer = row["fresh"][-24:].count("0"), row["base_fresh"][-24:].count("0")
            print(
                f"{row['tool']:18} {misses:2} of 24 wrong (base {fewer:2}) {row['summary'][:90]}  {', '.join(said)}"
            )


# --- the whole ----------------------------------------------------------------------------------


def rows(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def add(file: Path, row: Row) -> None:
    with file.open("a") as out:
        out.write(json.dumps(row) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=["search", "right", "gates", "table"])
    parser.add_argument("--edits", type=Path)
    parser.add_argument("--judged", type=Path)
    parser.add_argument("--seconds", type=float, default=5.0, help="of CPU, for one search  [default: 5]")
    parser.add_argument("--only", default="")
    parser.add_argument("--part", default="0/1", help="every Nth tool, from the Kth on")
    options = parser.parse_args()
    first, of = map(int, options.part.split("/"))
    only = [name for name in options.only.split(",") if name]
    chosen = [tool for number, tool in enumerate(looked_at(only)) if number % of == first]
    if options.what is None:
        few(chosen[:A_FEW])
    elif options.what == "table":
        told(rows(options.judged))
    elif options.what == "gates":
        known = {row["tool"] for row in rows(options.judged)}
        found = {row["tool"]: row for row in rows(options.edits)}
        for tool in chosen:
            number = promotable(found[tool.name]) if tool.name in found.keys() - known else None
            if number is not None:
                add(options.judged, asked(tool, found[tool.name], number))
    else:
        seconds = options.seconds if options.what == "search" else 0.0
        known = {row["tool"] for row in rows(options.edits)}
        for tool in chosen:
            if tool.name not in known:
                row = searched(tool, seconds)
                add(options.edits, row)
                print(tool.name, len(row["edits"]), flush=True)


def few(chosen: Sequence[SearchTool]) -> None:
    """The result line of `benchmarks/README.md`, for a few tools."""
    found = [asked(tool, searched(tool, 0.0), 0) for tool in chosen]
    doubted = sum(any(says(row) for says in GATES.values()) for row in found)
    print(f"| right versions that the gates ask about | {doubted} of {len(found)} |  | no search |")


if __name__ == "__main__":
    main()
