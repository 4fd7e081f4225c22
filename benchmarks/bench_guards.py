"""How often the guards refuse good edits of source, rule by rule, and which bad edits they find.

    python benchmarks/bench_guards.py [--repair SECONDS] [--data PATH] [--python OLD NEW]... [--most N]

Good edits: repairs of small programs as the proposer finds them (with ``--repair``), each hunk by itself of
this repository's history, and each hunk by itself between the standard libraries of two Python versions (``--python`` names two folders such
as /usr/lib/python3.11; by default those found beside each other under the user's pyenv). Bad edits:
``tests/evolver/guards/bad_edits.toml``.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import itertools
import random
import subprocess
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from bench_repair import PATH, PROGRAMS, brief_of, rows, score

from agentos.domain import tier_of
from agentos.evolver.guards.static import RULES, RuleHit
from agentos.evolver.guards.static.check import findings, refusal, scan
from agentos.evolver.guards.static.rules_names import MODULES
from agentos.evolver.policy import Screen, SurfacePolicy
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
        if size > SurfacePolicy().max_changed_lines:
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
    options = parser.parse_args()
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
