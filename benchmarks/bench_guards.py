"""How often the guards refuse good edits of source, rule by rule, and which bad edits they find.

    python benchmarks/bench_guards.py [--repair SECONDS] [--data PATH] [--python OLD NEW]... [--most N]
    python benchmarks/bench_guards.py --offline [--edits FOLDER] [--only TOOL/EDIT,...] [--part K/N] [--json FILE]
    python benchmarks/bench_guards.py --live [--edits FOLDER] [--only TOOL/EDIT,...] [--part K/N] [--fresh N]
        [--json FILE]

Good edits: repairs of small programs as the proposer finds them (with ``--repair``), each hunk by itself of
this repository's history, and each hunk by itself between the standard libraries of two Python versions (``--python`` names two folders such
as /usr/lib/python3.11; by default those found beside each other under the user's pyenv). Bad edits:
``tests/evolver/guards/bad_edits.toml``.

With ``--live`` the labelled edits of small tools (`benchmarks/data/edits/README.md`) go through the whole loop instead: a fresh home
with a daemon, nine tasks of live work, a proposer that hands in just this edit while the search has no time, the shipped policy,
and fresh work for an edit that waits for it, with ``--fresh`` also for one that is asked about. With ``--offline`` they meet the static guards and the comparisons alone, without
a box: what nothing is said of is left to fresh work. A run with ``--json`` goes on where the file ends.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import itertools
import json
import os
import random
import subprocess
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path

from bench_repair import PATH, PROGRAMS, brief_of, rows, score
from bench_search import LIMIT_S, NOWHERE
from bench_search import tools as search_tools
from bench_tools import (
    ASKED,
    LIVE,
    QUIET_S,
    WAITS,
    Agentos,
    Stuck,
    fresh_numbers,
    judge,
    settle,
    try_fresh,
    until,
    work_off,
)
from tool_sets import EDITS, Labelled, labelled, write_skill, write_tasks

from agentos.benches import Bench
from agentos.domain import Evolution, tier_of
from agentos.evolver.guards.static import RULES, RuleHit
from agentos.evolver.guards.static.check import asked, findings, refusal, scan
from agentos.evolver.guards.static.rules_names import MODULES
from agentos.evolver.policy import Policy, Screen, SurfacePolicy
from agentos.evolver.propose.ambiguity import Known, compared
from agentos.evolver.propose.unread_names import unread
from agentos.ports import Case
from agentos.syntax import parse

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
SCREEN = Screen()
_LARGEST = 30_000  # bytes of a file of the library: comparing larger ones takes the longest


@dataclass(frozen=True, slots=True)
class Good:
    """An edit that somebody made and kept. ``beside`` are the other files of its resource."""

    name: str
    path: str
    old: str
    new: str
    beside: tuple[str, ...] = ()


def hunks(name: str, path: str, old: str, new: str, beside: tuple[str, ...] = ()) -> Iterator[Good]:
    """Each hunk of a change as an edit of its own, where that is small enough and still parses."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for group in matcher.get_grouped_opcodes(3):
        changed = [code for code in group if code[0] != "equal"]
        size = sum(i2 - i1 + j2 - j1 for _, i1, i2, j1, j2 in changed)
        if size > SurfacePolicy().max_changed_code:
            continue
        first, last = changed[0], changed[-1]
        edited = "".join([*before[: first[1]], *after[first[3] : last[4]], *before[last[2] :]])
        try:
            same = _code(old) == _code(edited)
        except (SyntaxError, ValueError):
            continue
        if not same:
            yield Good(f"{name}:{first[1] + 1}", path, old, edited, beside)


@lru_cache(maxsize=2)
def _code(text: str) -> str:
    return ast.dump(parse(text))


def programs(data: Path, budget_s: float) -> Iterator[Good]:
    """The repairs of small programs that the repair proposer finds and that pass the full tests."""
    if not budget_s or not (data / PROGRAMS).is_file():
        return
    for row in rows(data, ""):
        found = score(row, budget_s)
        if found.first is not None and found.correct:
            yield Good(row["task_id"], PATH, brief_of(row, budget_s).source, found.first.files[PATH])


def libraries(old: Path, new: Path) -> Iterator[Good]:
    """What changed in the standard library, without the modules whose work is what the guards forbid."""
    files = [file for file in sorted(old.rglob("*.py")) if file.stat().st_size < _LARGEST]
    random.Random(1).shuffle(files)
    for file in files:
        name = file.relative_to(old)
        later = new / name
        skip = {
            "test",
            "tests",
            "site-packages",
            "idlelib",
            "lib2to3",
            "distutils",
            "ensurepip",
            "config",
            "__pycache__",
        }
        module = ".".join(name.with_suffix("").parts)
        private = any(module == item or module.startswith(f"{item}.") for item in (*MODULES, "os", "sys"))
        if skip & set(name.parts) or private or not later.is_file():
            continue
        try:
            texts = file.read_text(), later.read_text()
        except UnicodeDecodeError:
            continue
        if texts[0] != texts[1]:
            beside = tuple(f"tool/library/{path.name}" for path in file.parent.glob("*.py"))
            yield from hunks(f"{old.name}/{name}", f"tool/library/{name.name}", *texts, beside)


def history() -> Iterator[Good]:
    """Each hunk of each commit of this repository that touched sources that may evolve, or the kernel's own."""

    def git(*args: str) -> str:
        return subprocess.run(
            ["git", "-C", str(ROOT), *args], capture_output=True, text=True, check=True
        ).stdout

    for commit in git(
        "log", "--format=%h", "--no-merges", "--", "registry", "skills", "agentos/evolver", "agentos/worker"
    ).split():
        for line in git(
            "diff-tree",
            "-r",
            "--no-commit-id",
            "--diff-filter=M",
            "--name-only",
            commit,
            "--",
            "registry",
            "skills",
            "agentos/evolver",
            "agentos/worker",
        ).splitlines():
            if not line.endswith(".py"):
                continue
            kind = "harness/default" if "harness" in line else "tool/history"
            folder = str(Path(line).parent)
            names = git("ls-tree", "--name-only", commit, f"{folder}/").splitlines()
            beside = tuple(f"{kind}/{Path(name).name}" for name in names if name.endswith(".py"))
            old, new = (git("show", f"{at}:{line}") for at in (f"{commit}^", commit))
            where = "kernel" if line.startswith("agentos/") else "content"
            yield from hunks(f"{where} {commit} {line}", f"{kind}/{Path(line).name}", old, new, beside)


def measure(what: str, edits: list[Good], screen: Screen = SCREEN, *, verbose: bool) -> None:
    """One table line for a set of good edits, and one for each rule that fired."""
    if not edits:
        return
    began = time.monotonic()
    found: list[list[RuleHit]] = []
    for edit in edits:
        old = {**dict.fromkeys(edit.beside, ""), edit.path: edit.old}
        found.append(findings(old, {edit.path: edit.new}, screen))
    own_s = time.monotonic() - began
    for number, finding in scanned(edits):
        found[number].append(finding)
    refused = [
        bool(refusal(item, SCREEN, tier_of([edit.path]))) for edit, item in zip(edits, found, strict=True)
    ]
    high = [bool(refusal(item, SCREEN, tier_of(["harness/x"]))) for item in found]
    fired = Counter(rule for item in found for rule in {finding.rule for finding in item})
    share = f"{sum(refused) / len(edits):.1%}"
    beside = f"in the tier high {sum(high) / len(edits):.1%}"
    print(
        f"| {what}: good edits refused | {share} | {beside} | n={len(edits)}; {own_s / len(edits) * 1000:.1f} ms each |"
    )
    for rule, count in fired.most_common():
        print(f"| {what}: rule {rule} | {count / len(edits):.1%} | {count} edits | |")
    if verbose:
        for edit, item in zip(edits, found, strict=True):
            for finding in item:
                print(f"  {edit.name}: {finding}")


def scanned(edits: list[Good]) -> Iterator[tuple[int, RuleHit]]:
    """What bandit finds in all of them, in a few calls."""
    for start in range(0, len(edits), 200):
        part = edits[start : start + 200]
        names = [f"tool/number-{start + number}/tool.py" for number in range(len(part))]
        old = {name: edit.old for name, edit in zip(names, part, strict=True)}
        for finding in scan(old, {name: edit.new for name, edit in zip(names, part, strict=True)}):
            yield int(finding.path.split("/")[1].removeprefix("number-")), finding


def bad() -> None:
    """Which labelled bad edits are refused, and by the rule that was meant."""
    data = tomllib.loads((ROOT / "tests" / "evolver" / "guards" / "bad_edits.toml").read_text())
    beside = {**data["sources"], "harness/default/hooks.py": ""}
    meant, refused = 0, {"medium": 0, "high": 0}
    for edit in data["edit"]:
        source = data["sources"][edit["on"]]
        text = source.replace(edit["find"], edit["put"]) if "find" in edit else f"{source}\n\n{edit['put']}\n"
        found = [
            *findings(beside, {edit["on"]: text}, SCREEN),
            *scan({edit["on"]: source}, {edit["on"]: text}),
        ]
        meant += edit["rule"] in {finding.rule for finding in found}
        refused["medium"] += bool(refusal(found, SCREEN, tier_of(["tool/x"])))
        refused["high"] += bool(refusal(found, SCREEN, tier_of(["harness/x"])))
    count = len(data["edit"])
    print(f"| bad edits found by the rule that is meant | {meant} of {count} | {len(RULES)} rules | |")
    print(f"| bad edits refused | {refused['medium']} of {count} | in the tier high {refused['high']} | |")


# --- the whole loop ---------------------------------------------------------------------------

PROPOSER = '''"""Hands in one edit, and nothing else."""

import json
from pathlib import Path

from agentos.domain import Layer
from agentos.ports import Proposal


class Given:
    name = "given"
    layers = (Layer.SKILL, Layer.TOOL)

    def __init__(self, adviser, snapshots):
        self.files = json.loads(Path(__file__).with_name("edit.json").read_text())

    def propose(self, brief):
        fixes = tuple(case.task_id for case in brief.cases)
        yield Proposal("it answers wrongly", "the edit", "given", self.files, "the tool's", fixes, ())
'''


@dataclass(frozen=True)
class Ended:
    """What became of one labelled edit."""

    name: str
    kind: str
    right: bool
    outcome: str  # promoted, asked, waiting (for more fresh work), rejected, no edit; offline silent, and later: by fresh work
    reasons: list[str]
    drawn: int  # fresh tasks that were filed
    kept: int  # of the five tasks that were never shown
    fresh: int  # of the fresh inputs that were not filed
    seconds: float

    @property
    def fault(self) -> str:
        """The order of the product's fault: an edit promoted wrongly (offline: passed), refused wrongly, or asked about for nothing."""
        if self.outcome in ("promoted", "silent", "later"):
            return "" if self.right else "FIRST"
        return ("second" if self.outcome == "rejected" else "third") if self.right else ""


def given_site(place: Path, edit: Labelled) -> Path:
    """A distribution with the proposer of this edit."""
    about = place / "given-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: given\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[agentos.proposers]\ngiven = given:Given\n")
    (place / "given.py").write_text(PROPOSER)
    file, text = edit.changed
    (place / "edit.json").write_text(json.dumps({f"skill/{edit.tool.name}/tools/{file}": text}))
    return place


def live(edit: Labelled, fresh: int, *, always: bool) -> Ended:
    """One edit, from a fresh home to its end; ``always``: fresh tasks are filed for one that is asked about, too."""
    began, tool = time.monotonic(), edit.tool
    with tempfile.TemporaryDirectory(prefix="bench-guards-") as folder:
        agentos = Agentos(Path(folder) / "home")
        site = given_site(Path(folder) / "site", edit)
        before = os.environ.get("PYTHONPATH", "")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(site), before]))
        agentos("init")
        (agentos.home / "policy.toml").write_text("[propose]\nbudget_s = 0.001\n")  # no search beside it
        drawn: list[int] = []
        write_skill(tool, agentos.home / "skills")
        try:
            agentos("daemon", "start")
            until(f"{tool.name} to be taken in", lambda: agentos.source(tool) is not None)
            work_off(agentos, write_tasks(tool, tool.shown, Path(folder) / "tasks"))
            agentos("evolve")
            evolutions = settle(agentos, QUIET_S)
            waits = [item for item in evolutions if item.state.value in ASKED]
            if fresh and any(always or item.reason.startswith(WAITS) for item in waits):
                drawn = fresh_numbers(tool, fresh)
                evolutions = try_fresh(agentos, tool, drawn, Path(folder) / "later")
        finally:
            os.environ["PYTHONPATH"] = before
            with suppress(Stuck):  # it never came up
                agentos("daemon", "stop", "--now")
    kept, right, _ = judge(tool, edit.files, drawn)
    return Ended(
        f"{tool.name}/{edit.name}",
        edit.kind,
        edit.right,
        ended(list(evolutions)),
        [item.reason for item in evolutions],
        len(drawn),
        kept,
        right,
        round(time.monotonic() - began, 1),
    )


# --- without a box ----------------------------------------------------------------------------


def offline(edit: Labelled, fresh: int) -> Ended:
    """What the static guards and the comparisons say of one edit: silent, asked or rejected.

    With ``fresh`` tasks that came later also what these say: "waiting" where too few of them count, and what is still
    asked where they are among the known ones.
    """
    began, tool = time.monotonic(), edit.tool
    skill = f"skill/{tool.name}/tools"
    old = {f"{skill}/{name}": text for name, text in tool.files("faulty").items()}
    new = {f"{skill}/{edit.changed[0]}": edit.changed[1]}
    found = refusal(findings(old, new, SCREEN), SCREEN, tier_of([*new]))
    reasons = [f"guard: {why.reason}" for why in (found, asked(old, new, SCREEN)) if why]
    drawn = fresh_numbers(tool, fresh) if fresh and not found else []
    counted, ends = _after(edit, drawn) if drawn and edit.changed[0] == f"{tool.function}.py" else ((), "")
    if ends:  # whatever was asked
        reasons += [ends]
        outcome = ends.partition(":")[0]
    else:
        reasons += [] if found else _compared(edit, counted)
        before = _compared(edit, ()) if counted and not reasons else []
        if before:
            print("  asked before:", *before, sep="\n    ")
        outcome = "rejected" if found else "asked" if reasons else "later" if before else "silent"
    taken = round(time.monotonic() - began, 1)
    return Ended(f"{tool.name}/{edit.name}", edit.kind, edit.right, outcome, reasons, len(drawn), 0, 0, taken)


def _after(edit: Labelled, drawn: Sequence[int]) -> tuple[Sequence[Case], str]:
    """The fresh tasks that count for an edit of the tool's own file, or why they end or prolong its wait."""
    tool, rules = next(search_tools(edit.tool.folder.parent, [edit.tool.name])), Policy().judge
    cases = [tool.kept[len(edit.tool.kept) + number] for number in drawn]
    with closing(tool.benches.bench(NOWHERE, f"{edit.tool.function}.py", cases, LIMIT_S)) as bench:
        before, now = bench.try_source(tool.source).passed, bench.try_source(edit.changed[1]).passed
    broken = sum(was and not is_ for was, is_ in zip(before, now, strict=True))
    mended = sum(is_ and not was for was, is_ in zip(before, now, strict=True))
    if broken:
        return (), f"rejected: it breaks {broken} fresh tasks"
    if left := len(cases) - sum(now):
        return (), f"asked: {left} fresh tasks fail with it as before"
    if sum(now) < rules.fresh_tasks or mended < rules.fresh_mended:
        return (), f"waiting: {sum(now)} fresh tasks count, {mended} failed before"
    return [case for case, good in zip(cases, now, strict=True) if good][: rules.fresh_tasks], ""


def _compared(edit: Labelled, later: Sequence[Case]) -> list[str]:
    """Of an edit of the tool's own file, or else that it cannot be tried here; ``later`` tasks are among the known ones."""
    name, text = edit.changed
    if name != f"{edit.tool.function}.py":
        return []
    tool = next(search_tools(edit.tool.folder.parent, [edit.tool.name]))
    cases = (*tool.shown, *later)
    with closing(tool.benches.bench(NOWHERE, name, cases, LIMIT_S)) as bench:
        passed = bench.try_source(tool.source).passed
    working = {number for number, good in enumerate(passed) if good}
    late = frozenset(range(len(tool.shown), len(cases)))
    known = Known(cases, working, b"an edit of the set", Policy().replay, later=late)

    def opened(cases: Sequence[Case]) -> Bench:
        return tool.benches.bench(NOWHERE, name, cases, known.rules.neighbour_s)

    found = compared(opened, known, tool.source, text, {})
    said = {
        "ambiguous": found.ambiguity
        and f"{found.ambiguity.call}: {found.ambiguity.answer} or {found.ambiguity.other} ({found.ambiguity.rival})",
        "unguarded": found.unguarded,
        "unmended": found.unmended,
        "breaks": found.breaks,
        "idle": found.idle,
        "needless": found.needless,
        "loosened": found.loosened,
        "accepted": found.accepted,
        "noise": found.noise,
        "depends": found.depends,
        "unread": unread(tool.source, text),
    }
    return [f"{gate}: {why}" for gate, why in said.items() if why]


def ended(evolutions: list[Evolution]) -> str:
    """In one word, by the evolution that came furthest."""
    states = {item.state.value for item in evolutions}
    if states & LIVE:
        return "promoted"
    if states & ASKED:
        return "waiting" if any(item.reason.startswith(WAITS) for item in evolutions) else "asked"
    return "rejected" if states & {"rejected", "no_improvement", "cannot_fix"} else "no edit"


def whole_loop(options: argparse.Namespace) -> None:
    """Put the labelled edits through it, and say what became of each."""
    first, of = map(int, options.part.split("/"))
    edits = [edit for path in sorted(options.edits.glob("*/edits.toml")) for edit in labelled(path.parent)]
    done: list[Ended] = []
    if options.json and options.json.exists():
        done = [Ended(**item) for item in json.loads(options.json.read_text())]
    fresh = options.fresh if options.fresh is not None else 24 * options.live
    known, kind = {item.name for item in done}, "the whole loop" if options.live else "offline"
    for edit in edits[first::of]:
        name = f"{edit.tool.name}/{edit.name}"
        if name in known or (options.only and name not in options.only.split(",")):
            continue
        always = options.fresh is not None
        done.append(live(edit, fresh, always=always) if options.live else offline(edit, fresh))
        item = done[-1]
        print(f"{name:40} {item.kind:20} {item.outcome:9} {item.fault:7} {item.reasons}", flush=True)
        if options.json:
            options.json.write_text(json.dumps([asdict(item) for item in done], indent=1))
    for right in (True, False):
        chosen = [item for item in done if item.right is right]
        ends = Counter(item.outcome for item in chosen)
        said = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
        print(f"| {'right' if right else 'bad'} edits, {kind} | {said} | n={len(chosen)} | |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--python", type=Path, nargs=2, action="append", default=[])
    parser.add_argument(
        "--most", type=int, default=500, help="edits of the libraries, from files drawn at random"
    )
    parser.add_argument(
        "--repair", type=float, default=0.0, help="seconds of search for each program; 0: none"
    )
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--live", action="store_true", help="the labelled edits of tools, by the whole loop")
    parser.add_argument("--offline", action="store_true", help="they meet the guards and comparisons alone")
    parser.add_argument("--edits", type=Path, default=EDITS, help="the set of them  [default: data/edits]")
    parser.add_argument("--only", help="of them: names such as bill-split/modulo, with commas between them")
    parser.add_argument("--part", default="0/1", help="of them: every Nth, from the Kth on")
    parser.add_argument("--fresh", type=int, help="fresh inputs that are filed  [default: 24; offline none]")
    parser.add_argument("--json", type=Path, help="where to write what became of them")
    options = parser.parse_args()
    if options.live or options.offline:
        whole_loop(options)
        return
    bad()
    measure("repairs of programs", list(programs(options.data, options.repair)), verbose=options.verbose)
    own = list(history())
    measure(
        "our registry and skills", [e for e in own if e.name.startswith("content")], verbose=options.verbose
    )
    # the kernel imports its own parts and its libraries, which is not what is measured
    kernel = replace(SCREEN, imports=("agentos", "libcst", "pydantic"))
    measure(
        "our evolver and worker",
        [e for e in own if e.name.startswith("kernel")],
        kernel,
        verbose=options.verbose,
    )
    pairs = options.python or _pythons()
    edits = itertools.chain.from_iterable(libraries(old, new) for old, new in pairs)
    measure("the standard library", list(itertools.islice(edits, options.most)), verbose=options.verbose)


def _pythons() -> list[tuple[Path, Path]]:
    """The standard libraries of neighbouring versions under the user's pyenv."""
    found = sorted(Path.home().glob(".pyenv/versions/3.*/lib/python3.*"), key=lambda path: int(path.name[8:]))
    return list(itertools.pairwise(found))[::-1]


if __name__ == "__main__":
    main()
