"""Mutants of the last gates: one small change each, and the nearest tests have to fail.

    make mutants                       # all of them: hours
    make mutants ARGS="--sample 100"   # so many, drawn by --seed
    make mutants ARGS="--only consent"

Each mutant is a process of its own, in which the changed module is loaded in the place of the real one. A mutant that
no test notices *survives*; it is named, with what was changed. Messages, docstrings and annotations are left alone.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT_S = 300
PROMOTE, VERDICT = "tests/evolver/promote", "tests/evolver/verdict"

# Module -> its nearest tests, the fastest first.
TARGETS: dict[str, tuple[str, ...]] = {
    "agentos.evolver.promote.consent": (f"{PROMOTE}/test_consent.py", f"{PROMOTE}/test_refusals.py"),
    "agentos.evolver.promote.promotion": (f"{PROMOTE}/test_refusals.py",),
    "agentos.evolver.verdict.judge": (f"{VERDICT}/test_judge.py", f"{VERDICT}/test_safety.py"),
    "agentos.checks": ("tests/test_checks.py",),
    "agentos.worker.grading": ("tests/worker/test_grading.py",),
}

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitAnd: ast.BitOr,
}


@dataclass(frozen=True)
class Mutant:
    module: str
    line: int
    what: str
    source: str


def mutants(module: str) -> Iterator[Mutant]:
    """Every change of the module that the rules below know."""
    path = ROOT / f"{module.replace('.', '/')}.py"
    tree = ast.parse(path.read_text())
    count = sum(1 for _ in ast.walk(tree))
    for index in range(count):
        for way in range(4):
            changed = copy.deepcopy(tree)
            node = _nth(changed, index)
            if _silent(tree, index):
                break
            what = _change(changed, node, way)
            if what is None:
                break
            if what:
                source = ast.unparse(ast.fix_missing_locations(changed))
                yield Mutant(module, getattr(node, "lineno", 0), what, source)


def _nth(tree: ast.AST, index: int) -> ast.AST:
    for number, node in enumerate(ast.walk(tree)):
        if number == index:
            return node
    raise IndexError(index)


_SILENT: dict[int, set[int]] = {}


def _silent(tree: ast.Module, index: int) -> bool:
    """Whether the node stands in an annotation, a message or an import, where a change would mean nothing."""
    if id(tree) not in _SILENT:
        quiet: set[int] = set()
        for node in ast.walk(tree):
            inner: list[ast.AST] = []
            if isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom):
                inner = [node]
            elif isinstance(node, ast.arg | ast.AnnAssign) and node.annotation:
                inner = [node.annotation]
            elif isinstance(node, ast.FunctionDef):
                inner = [*([node.returns] if node.returns else []), *node.decorator_list]
            elif isinstance(node, ast.ClassDef):
                inner = [*node.decorator_list, *node.bases]
            for part in inner:
                quiet |= {id(child) for child in ast.walk(part)}
        _SILENT[id(tree)] = {number for number, node in enumerate(ast.walk(tree)) if id(node) in quiet}
    return index in _SILENT[id(tree)]


def _change(tree: ast.Module, node: ast.AST, way: int) -> str | None:
    """Make the ``way``-th change of the node in place; what it is, "" for none, None when there are no more."""
    if way > 0 and not isinstance(node, ast.Compare | ast.BoolOp):
        return None
    if isinstance(node, ast.Compare):
        if way >= len(node.ops):
            return None
        new = SWAPPED.get(type(node.ops[way]))
        if new is None:
            return ""
        old = type(node.ops[way]).__name__
        node.ops[way] = new()  # type: ignore[call-overload] # every operator is made without arguments
        return f"{old} -> {new.__name__} in {_short(node)}"
    if isinstance(node, ast.BoolOp):
        if way == 0:
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            return f"and <-> or: {_short(node)}"
        if way <= len(node.values) and way <= 3 and len(node.values) > 1:
            gone = node.values.pop(way - 1)
            return f"operand left out: {_short(gone)}"
        return None
    return _change_once(tree, node)


def _change_once(tree: ast.Module, node: ast.AST) -> str:
    if isinstance(node, ast.BinOp) and (new := SWAPPED.get(type(node.op))):
        node.op = new()  # type: ignore[assignment] # as above
        return f"operator: {_short(node)}"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        old = _short(node)
        node.op, node.operand = ast.Not(), ast.UnaryOp(ast.Not(), node.operand)
        return f"not left out: {old}"
    if isinstance(node, ast.Constant):
        return _constant(node)
    if isinstance(node, ast.If | ast.IfExp) and not isinstance(
        node.test, ast.Compare | ast.BoolOp | ast.UnaryOp
    ):
        old = _short(node.test)
        node.test = ast.UnaryOp(ast.Not(), node.test)
        return f"condition turned round: {old}"
    if isinstance(node, ast.Raise):
        return _to_pass(tree, node)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return _to_pass(tree, node)
    if isinstance(node, ast.Return) and node.value and not isinstance(node.value, ast.Constant):
        old = _short(node.value)
        node.value = ast.Constant(None)
        return f"returns None, not {old}"
    return ""


def _constant(node: ast.Constant) -> str:
    old = node.value
    if isinstance(old, bool):
        node.value = not old
    elif isinstance(old, int | float):
        node.value = old + 1
    else:
        return ""
    return f"{old!r} -> {node.value!r}"


def _to_pass(tree: ast.Module, node: ast.stmt) -> str:
    for parent in ast.walk(tree):
        for body in (getattr(parent, name, None) for name in ("body", "orelse", "finalbody")):
            if isinstance(body, list) and node in body:
                body[body.index(node)] = ast.copy_location(ast.Pass(), node)
                return f"left out: {_short(node)}"
    return ""


def _short(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:90]


# --- trying one -------------------------------------------------------------------------------


class _Instead(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads the mutant where its module is asked for."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, name: str, path: object, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self._mutant.module:
            return None
        where = str(ROOT / f"{name.replace('.', '/')}.py")
        return importlib.util.spec_from_file_location(name, where, loader=self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: object) -> None:
        where = str(ROOT / f"{self._mutant.module.replace('.', '/')}.py")
        exec(compile(self._mutant.source, where, "exec"), module.__dict__)  # noqa: S102 - what this is for


def outcome(mutant: Mutant | None, tests: Sequence[str]) -> str:
    """``killed``, ``timeout`` or ``survived``; without a mutant the tests have to pass."""
    child = os.fork()
    if child == 0:
        os.setsid()
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        if mutant:
            sys.meta_path.insert(0, _Instead(mutant))
        import pytest

        try:
            code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *tests])
        except BaseException:  # noqa: BLE001 - whatever the mutant raises, it was noticed
            code = 1
        os._exit(int(code))
    ends = time.monotonic() + TIMEOUT_S
    while time.monotonic() < ends:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "survived" if os.waitstatus_to_exitcode(status) == 0 else "killed"
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


def main() -> int:
    """Exit code 1 when fewer than nine of ten are killed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sample", type=int, default=0, help="so many of each module; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="modules whose name has this in it")
    parser.add_argument("--list", action="store_true", help="name them, try none")
    given = parser.parse_args()
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT)]
    import pydantic  # noqa: F401 - heavy ones once, before the forks; nothing of agentos
    import pytest  # noqa: F401

    killed = tried = 0
    for module, tests in TARGETS.items():
        if given.only not in module:
            continue
        found = list(mutants(module))
        chosen = found
        if given.sample and given.sample < len(found):
            drawn = random.Random(given.seed).sample(found, given.sample)  # noqa: S311 - so that it can be repeated
            chosen = sorted(drawn, key=lambda it: it.line)
        if given.list:
            print(f"{module}: {len(found)}", *(f"  {it.line}: {it.what}" for it in chosen), sep="\n")
            continue
        present = [name for name in tests if (ROOT / name).exists()]
        if outcome(None, present) != "survived":
            print(f"{module}: its tests fail as it is", flush=True)
            return 2
        survived = 0
        for mutant in chosen:
            if outcome(mutant, present) == "survived":
                survived += 1
                print(f"  survived  {module}:{mutant.line}  {mutant.what}", flush=True)
        killed, tried = killed + len(chosen) - survived, tried + len(chosen)
        print(f"{module}: {len(chosen) - survived} of {len(chosen)} killed ({len(found)} in all)", flush=True)
    if tried:
        print(f"{killed} of {tried} killed: {killed / tried:.1%}")
    return int(tried > 0 and killed < 0.9 * tried)


if __name__ == "__main__":
    sys.exit(main())
