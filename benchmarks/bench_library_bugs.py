"""Faults of real libraries: one function that a release changed, whose tests fail before the change and pass after it.

    python benchmarks/bench_library_bugs.py FOLDER [--seconds S] [--most N] [--python PATH] [--list]

FOLDER holds source archives of successive releases, as `pip download --no-deps --no-binary :all: NAME==VERSION -d FOLDER`
leaves them. Of each two that follow one another the newer one's tests are run on the older one's files, with and
without each single changed function. What fails without it and passes with it is the evidence, and what passes
with both has to stay. No code of a library is kept here. A first proposal that passes all these tests is *right* if
it is the library's own change but for its writing, else it is printed, to be read. What the gates would ask a person
about can be told here as far as it rests on the search and both texts: a test is no call, so no inputs are made.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from agentos.benches import Bench, BenchResult
from agentos.domain import Call, Kind, ResourceId, Snapshot
from agentos.evolver.policy import Policy
from agentos.evolver.propose.edit_mutants import loosened, mutants
from agentos.evolver.propose.unread_names import unread
from agentos.ports import Brief, Case, Proposal
from agentos.proposers.repair import RepairProposer

SERVER = Path(__file__).with_name("library_bench_server.py")
LINES_MAX = 12  # that the change of a function adds and takes away
WORKING_MAX = 40  # tests that have to stay, those that run the file
NOWHERE = Snapshot("", "")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Bug:
    """One function of one file, as it was and as it is."""

    name: str
    place: Path  # the older release with the tests of the newer one
    file: Path  # below it
    right: str  # the file with the one function changed
    tests: tuple[str, ...]


@dataclass
class TestBench:
    """The port's ``Bench`` over the tests of a library, which are the cases."""

    bug: Bug
    python: str
    timeout_s: float = 2.0
    wanted: Sequence[int] = ()  # of all tests those that are cases
    tries: int = 0
    cpu_s: float = 0.0
    names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        roots = f"{self.bug.place / 'src'}:{self.bug.place}"
        self._server = subprocess.Popen(
            [self.python, str(SERVER), str(self.bug.place / self.bug.file), *self.bug.tests],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self.bug.place,
            text=True,
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": roots, "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"},
        )
        self.names = self._read() or []
        self.wanted = self.wanted or range(len(self.names))

    def _read(self) -> Any:
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        return json.loads(line) if line else None

    def try_source(
        self, source: str, *, trace: bool = False, cases: Sequence[int] | None = None, whole: bool = False
    ) -> BenchResult:
        """One source in a fork; what is left out after the first failure, but for ``whole``, has failed."""
        self.tries += 1
        numbers = [self.wanted[case] for case in (range(len(self.wanted)) if cases is None else cases)]
        asked = {
            "source": source,
            "wanted": numbers,
            "trace": trace,
            "timeout_s": self.timeout_s,
            "stop": not (trace or whole),
        }
        assert self._server.stdin is not None
        said: dict[str, Any] = {"results": [], "cpu_s": 0.0}
        with contextlib.suppress(BrokenPipeError):  # a test ended it: then nothing passes any more
            self._server.stdin.write(json.dumps(asked) + "\n")
            self._server.stdin.flush()
            said = self._read() or said
        self.cpu_s += said["cpu_s"]
        results = said["results"]
        results += [[False, {"error": "BoxDied", "message": "it ended early"}, [], 0, 0.0]] * (
            len(numbers) - len(results)
        )
        return BenchResult(
            tuple(r[0] for r in results),
            tuple(float(r[0]) for r in results),
            tuple(r[1] for r in results),
            tuple(tuple(r[2]) for r in results) if trace else (),
            tuple(r[3] for r in results) if trace else (),
            said["cpu_s"],
        )

    def close(self) -> None:
        """End the server."""
        self._server.kill()
        self._server.wait()


@dataclass
class TestBenches:
    """Opens them for one bug; a case's task is the number of its test."""

    bug: Bug
    python: str
    opened: list[TestBench] = field(default_factory=list)

    def bench(self, snapshot: Snapshot, path: str, cases: Sequence[Case], timeout_s: float) -> Bench:
        """As the port says."""
        numbers = [int(case.task_id) for case in cases]
        self.opened.append(TestBench(self.bug, self.python, max(0.2, timeout_s), numbers))
        return self.opened[-1]


# --- mining -----------------------------------------------------------------------------------


def bugs(folder: Path, scratch: Path) -> Iterator[Bug]:
    """Every single function that two successive releases differ in, as far as it is a small change."""
    by_name: dict[str, list[tuple[tuple[int, ...], Path]]] = {}
    for archive in sorted(folder.rglob("*.tar.gz")):
        name, _, version = archive.name.removesuffix(".tar.gz").rpartition("-")
        if all(part.isdigit() for part in version.split(".")):
            by_name.setdefault(name, []).append((tuple(map(int, version.split("."))), archive))
    for name, archives in by_name.items():
        trees = [unpacked(archive, scratch) for _, archive in sorted(archives)]
        for newer, older in pairwise(reversed(trees)):
            yield from between(name, older, newer, scratch)


def unpacked(archive: Path, scratch: Path) -> Path:
    """The archive's one folder."""
    place = scratch / archive.name.removesuffix(".tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(place, filter="data")
    inside = [each for each in place.iterdir() if each.is_dir()]
    return inside[0] if len(inside) == 1 else place


def is_test(file: Path) -> bool:
    """Whether it belongs to the tests, by its name or its folder."""
    return file.name.startswith("test") or file.name == "conftest.py" or "test" in "/".join(file.parts[:-1])


def between(name: str, older: Path, newer: Path, scratch: Path) -> Iterator[Bug]:
    """The functions that changed, each with the older release and the newer one's tests around it."""
    mixed = scratch / f"{name}-{older.parent.name}-tests"
    shutil.copytree(older, mixed, symlinks=True)
    files = [file.relative_to(newer) for file in newer.rglob("*") if file.is_file()]
    for file in (file for file in files if is_test(file)):
        (mixed / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(newer / file, mixed / file)
    tests = tuple(str(f) for f in files if is_test(f) and f.suffix == ".py" and "test" in f.name)
    for file in sorted(f for f in files if f.suffix == ".py" and not is_test(f) and (older / f).exists()):
        if file.parts[0] in ("setup.py", "docs", "bench", "benchmarks", "examples", "tools"):
            continue
        own = tuple(test for test in tests if file.stem.strip("_") in Path(test).stem) or tests
        if not any(differs(older / test, newer / test) for test in own):
            continue
        before, after = ((tree / file).read_text(encoding="utf-8") for tree in (older, newer))
        for function, right in changed(before, after):
            yield Bug(f"{name} {newer.parent.name}: {file.name} {function}", mixed, file, right, own)


def differs(older: Path, newer: Path) -> bool:
    return not older.exists() or older.read_bytes() != newer.read_bytes()


def changed(before: str, after: str) -> Iterator[tuple[str, str]]:
    """Each function that differs by few lines, and the older file with the newer function in its place."""
    try:
        old, new = functions(before), functions(after)
    except SyntaxError:
        return
    for name in sorted(old.keys() & new.keys()):
        (mine, mine_lines), (other, other_lines) = old[name], new[name]
        if bare(mine) == bare(other):
            continue
        one, two = (ast.unparse(ast.parse(bare_text(node))).splitlines() for node in (mine, other))
        differ = sum(
            line[0] in "+-"
            for line in difflib.unified_diff(one, two, n=0, lineterm="")
            if line[:2] not in ("++", "--")
        )
        if differ <= LINES_MAX:
            lines = before.splitlines(keepends=True)
            first, last = mine_lines
            text = after.splitlines(keepends=True)[other_lines[0] - 1 : other_lines[1]]
            yield name, "".join([*lines[: first - 1], *text, *lines[last:]])


def functions(source: str) -> dict[str, tuple[Function, tuple[int, int]]]:
    """By qualified name: functions of the module and of its classes, with their lines."""
    found: dict[str, tuple[Function, tuple[int, int]]] = {}
    waiting: list[tuple[str, ast.AST]] = [("", ast.parse(source))]
    for prefix, holder in waiting:
        for node in getattr(holder, "body", []):
            if isinstance(node, ast.ClassDef):
                waiting.append((f"{prefix}{node.name}.", node))
            elif isinstance(node, Function):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                found[prefix + node.name] = node, (first, node.end_lineno or first)
    return found


def bare_text(node: Function) -> str:
    """Without docstring and annotations."""
    copy = ast.parse(ast.unparse(node)).body[0]
    assert isinstance(copy, Function)
    for inner in ast.walk(copy):
        if isinstance(inner, Function):
            inner.returns = None
            for given in [*inner.args.posonlyargs, *inner.args.args, *inner.args.kwonlyargs]:
                given.annotation = None
            if ast.get_docstring(inner, clean=False) is not None:
                inner.body = inner.body[1:] or [ast.Pass()]
    return ast.unparse(copy)


def bare(node: Function) -> str:
    return ast.dump(ast.parse(bare_text(node)))


# --- measuring --------------------------------------------------------------------------------


@dataclass
class Evidence:
    """Which tests a change mends. The tests of a file are collected once for all of its functions."""

    python: str
    known: tuple[Path, Path, tuple[str, ...]] | None = None
    bench: TestBench | None = None
    before: BenchResult | None = None

    def of(self, bug: Bug) -> tuple[list[int], list[int]]:
        """Numbers of the tests that the change mends, and of those that pass either way and run the file."""
        if self.known != (bug.place, bug.file, bug.tests):
            self.close()
            self.known = bug.place, bug.file, bug.tests
            self.bench = TestBench(bug, self.python)
            self.before = self.bench.try_source("", trace=True)
            source = (bug.place / bug.file).read_text(encoding="utf-8")
            if self.before.passed != self.bench.try_source(source, whole=True).passed:
                self.before = None  # putting functions into place does not do here
        if self.bench is None or self.before is None or not self.bench.names:
            return [], []
        after = self.bench.try_source(bug.right, whole=True)
        both = list(enumerate(zip(self.before.passed, after.passed, self.before.lines, strict=True)))
        mended = [number for number, (old, new, lines) in both if new and not old and lines]
        kept = [number for number, (old, new, lines) in both if new and old and lines]
        return mended, kept

    def close(self) -> None:
        """End what it has open."""
        if self.bench is not None:
            self.bench.close()


def measured(bug: Bug, mended: Sequence[int], kept: Sequence[int], options: argparse.Namespace) -> str:
    """Search, say what came of it, and print what has to be read."""
    source = (bug.place / bug.file).read_text(encoding="utf-8")
    near = kept[:: max(1, len(kept) // WORKING_MAX)]
    failing = tuple(Case(str(number), Call("test", {}), {}, ()) for number in mended[:6])
    working = tuple((Case(str(number), Call("test", {}), {}, ()), None) for number in near)
    resource_id = ResourceId(Kind.TOOL, "library")
    brief = Brief("bug", NOWHERE, resource_id, str(bug.file), source, failing, working, options.seconds, 3)
    benches = TestBenches(bug, options.python)
    began = time.process_time()
    proposals = [
        p for p in RepairProposer(benches, 1).propose(brief) if len(p.predicted_fixes) == len(failing)
    ]
    cpu_s = time.process_time() - began + sum(bench.cpu_s for bench in benches.opened)
    tries = sum(bench.tries for bench in benches.opened)
    word, shown, tests = "none", "", (*mended, *kept)
    if proposals:
        made = proposals[0].files[str(bug.file)]
        if bare_file(made) == bare_file(bug.right):
            word = "right"
        else:
            passed = passes(bug, options.python, made, tests)
            word = "to read" if passed else "wrong"
            shown = "\n".join(difference(source, text) for text in (made, bug.right))
        asked = reasons(proposals[0], source, made)
        if rival := rival_of(bug, options.python, source, [p.files[str(bug.file)] for p in proposals], tests):
            asked = f"{asked}, ambiguous: {rival}".removeprefix(", ")
        word += " asked" if asked else " alone"
        shown += f"\n{asked}" if asked else ""
    print(
        f"{bug.name:60} {word:14} {cpu_s:5.1f} s of CPU {tries:5} tries, {len(mended)} mended, {len(kept)} kept",
        flush=True,
    )
    print(shown, flush=True)
    return word


def bare_file(source: str) -> str:
    """But for its writing: layout and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, Function | ast.ClassDef | ast.Module) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree)


def passes(bug: Bug, python: str, source: str, tests: Sequence[int]) -> bool:
    """Whether all of these tests pass with it."""
    bench = TestBench(bug, python, wanted=tests)
    try:
        return all(bench.try_source(source).passed)
    finally:
        bench.close()


def rival_of(bug: Bug, python: str, before: str, made: Sequence[str], tests: Sequence[int]) -> str:
    """Another proposal, or a mutant of the first, that passes all tests as well, in words; "" where there is none.

    The gates ask about the first where an input tells the two apart; here none is made, so all are taken to be told apart.
    """
    rivals = {f"proposal {number}": other for number, other in enumerate(made[1:], 2)}
    rivals |= mutants(before, made[0], Policy().replay.mutants)
    return next((words for words, source in rivals.items() if passes(bug, python, source, tests)), "")


def reasons(proposal: Proposal, before: str, after: str) -> str:
    """For what a person would be asked about this edit, as far as it rests on the search and both texts."""
    policy = Policy()
    rules = policy.replay
    found = {
        "far-fetched": 0 < proposal.prior < rules.prior_min,
        "unlikely": 0 < proposal.weight < rules.share_min,
        "few guards": len(proposal.tasks_at_risk) < policy.judge.min_tasks,
        "loosened": bool(loosened(before, after)),
        "unread": bool(unread(before, after)),
    }
    return ", ".join(reason for reason, holds in found.items() if holds)


def difference(before: str, after: str) -> str:
    """The lines that differ."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm="")
    return "\n".join(["---", *(line for line in lines if line[:3] not in ("---", "+++"))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--seconds", type=float, default=10.0, help="of CPU for each")
    parser.add_argument("--most", type=int, default=60)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the tests")
    parser.add_argument("--only", default="", help="parts of names, with semicolons")
    parser.add_argument("--list", action="store_true", help="mine only")
    options = parser.parse_args()
    if options.folder is None:
        print("skipped: it needs a folder of source archives")
        return
    words: list[str] = []
    evidence = Evidence(options.python)
    with tempfile.TemporaryDirectory() as scratch:
        for bug in bugs(options.folder, Path(scratch)):
            mended, kept = evidence.of(bug)
            if not mended:
                continue
            if options.only and not any(part in bug.name for part in options.only.split(";")):
                continue
            words.append("" if options.list else measured(bug, mended, kept, options))
            if options.list:
                print(f"{bug.name:60} {len(mended)} mended, {len(kept)} kept", flush=True)
            if len(words) >= options.most:
                break
        evidence.close()
    counted = ", ".join(f"{count} {word}" for word, count in sorted(Counter(words).items()))
    print(f"| faults of libraries | {len(words)} | {counted} | {options.seconds:g} s of CPU |")


if __name__ == "__main__":
    main()
