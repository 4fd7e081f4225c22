"""Mutants of the last gates: one small change each, and the nearest tests have to fail.

    make mutants                       # all of them
    make mutants ARGS="--sample 100"   # so many of each module, drawn by --seed
    make mutants ARGS="--only consent"

The tests of a module are collected once and run once, to learn which of them enter which of its functions. Each mutant
is then a fork, in which the code of one function is replaced, and only the tests that enter it are run, until one
fails. What stands outside of functions, and what other processes import, is tried with the changed module loaded in the
place of the real one (also in processes that tests start, by ``TRIED_MUTANT``) and with all tests. A mutant that no test notices *survives*; it is
named, with what was changed. Messages, docstrings and annotations are left alone.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import importlib
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT_S = 300
PROMOTE, VERDICT = "tests/evolver/promote", "tests/evolver/verdict"

# Module -> its nearest tests.
TARGETS: dict[str, tuple[str, ...]] = {
    "agentos.evolver.promote.consent": (f"{PROMOTE}/test_consent.py", f"{PROMOTE}/test_refusals.py"),
    "agentos.evolver.promote.promotion": (
        f"{PROMOTE}/test_refusals.py",
        f"{PROMOTE}/test_rebasing.py",
        "tests/evolver/replay/test_fresh.py",
    ),
    "agentos.evolver.verdict.judge": tuple(
        f"{VERDICT}/test_{name}.py"
        for name in ("judge", "unsteady", "overfitting", "no_memory_control", "pairing", "safety")
    ),
    "agentos.evolver.verdict.doubts": (f"{VERDICT}/test_doubts.py", f"{VERDICT}/test_fresh_work.py"),
    "agentos.checks": ("tests/test_checks.py",),
    "agentos.worker.jobs.grading": ("tests/worker/test_grading.py", "tests/worker/test_forged_checks.py"),
}
# Tested in other processes too, whose functions nobody here sees entered.
ELSEWHERE = {"agentos.evolver.promote.consent", "agentos.worker.jobs.grading"}

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


# Functions of records alone: tests that run whole evolutions take seconds each and are left out.
PURE = {f"agentos.evolver.verdict.{name}" for name in ("judge", "doubts")}


@dataclass(frozen=True)
class Mutant:
    module: str
    index: int  # of its node, as ast.walk counts
    way: int
    line: int
    what: str
    function: str  # the outermost function around it, as ``co_qualname`` names it; "" for none


def mutants(module: str) -> Iterator[Mutant]:
    """Every change of the module that the rules below know."""
    tree = _tree(module)
    silent, within = _silent(tree), _functions(tree)
    for index, node in enumerate(ast.walk(tree)):
        for way in range(0 if index in silent else 4):
            changed = copy.deepcopy(node)
            around = ast.Module([changed], [])  # type: ignore[list-item] # it looks for a statement only
            if what := _change(around, changed, way):
                yield Mutant(module, index, way, getattr(node, "lineno", 0), what, within.get(index, ""))
            elif what is None:
                break


def source(mutant: Mutant) -> str:
    """The module with this change."""
    tree = _tree(mutant.module)
    node = next(node for index, node in enumerate(ast.walk(tree)) if index == mutant.index)
    _change(tree, node, mutant.way)
    return ast.unparse(ast.fix_missing_locations(tree))


def _path(module: str) -> Path:
    return ROOT / f"{module.replace('.', '/')}.py"


def _tree(module: str) -> ast.Module:
    return ast.parse(_path(module).read_text())


def _functions(tree: ast.Module) -> dict[int, str]:
    """Of each node in a body of a function the name of the outermost one."""
    names: dict[int, str] = {}

    def walk(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                walk(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                for part in child.body:
                    names.update({id(inner): f"{prefix}{child.name}" for inner in ast.walk(part)})
            else:
                walk(child, prefix)

    walk(tree, "")
    return {index: names[id(node)] for index, node in enumerate(ast.walk(tree)) if id(node) in names}


def _silent(tree: ast.Module) -> set[int]:
    """Nodes in annotations, messages, imports, decorators and bases, where a change would mean nothing."""
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
    return {number for number, node in enumerate(ast.walk(tree)) if id(node) in quiet}


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


# --- trying them ------------------------------------------------------------------------------


# Loads the mutant where its module is asked for; also in each Python that a test starts, which imports it by itself.
INSTEAD = """
import importlib.abc, importlib.util, os, sys

name, _, changed = os.environ.get("TRIED_MUTANT", "").partition("=")


class Instead(importlib.abc.MetaPathFinder):
    def find_spec(self, asked, path, target=None):
        return importlib.util.spec_from_file_location(name, changed) if asked == name else None


sys.meta_path.insert(0, Instead())
"""


def _in_child(act: Callable[[], bool], limit_s: float | None = TIMEOUT_S) -> str:
    """``survived`` when ``act`` says True in a fork, else ``killed``, or ``timeout``."""
    child = os.fork()
    if child == 0:
        os.setsid()
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        code = 1
        with contextlib.suppress(BaseException):  # whatever the mutant raises, it was noticed
            code = 0 if act() else 1
        os._exit(code)
    began = time.monotonic()
    while limit_s is None or time.monotonic() < began + limit_s:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "survived" if os.waitstatus_to_exitcode(status) == 0 else "killed"
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:xdist")


def loaded_instead(mutant: Mutant, tests: Sequence[str], folder: Path) -> str:
    """All tests in a fork that has imported nothing yet, with the changed module in place of the real one."""

    def act() -> bool:
        import pytest

        changed = folder / "changed.py"
        changed.write_text(source(mutant))
        (folder / "sitecustomize.py").write_text(INSTEAD)
        os.environ |= {"TRIED_MUTANT": f"{mutant.module}={changed}", "PYTHONPATH": f"{folder}:{ROOT}"}
        exec(INSTEAD, {"__name__": "instead"})  # noqa: S102 - what this is for
        return pytest.main([*OPTIONS, f"--basetemp={folder / 'tmp'}", *tests]) == 0

    return _in_child(act)


class _Trials:
    """Instead of the tests themselves: which of them enter which function, then each mutant in a fork."""

    def __init__(self, chosen: Sequence[Mutant], folder: Path) -> None:
        self._chosen, self._folder, self._failed = chosen, folder, False

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._failed |= report.failed

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        if self._chosen[0].module in PURE:
            items[:] = [item for item in items if "world" not in item.fixturenames]

    def pytest_runtestloop(self, session: Any) -> bool:
        entering = self._folder / "entering.json"
        if _in_child(lambda: self._follow(session.items, entering), limit_s=None) != "survived":
            return True
        by_function = json.loads(entering.read_text())
        known = {item.nodeid: item for item in session.items}
        with (self._folder / "results").open("a") as results:
            for mutant in self._chosen:
                items = [known[name] for name in by_function.get(mutant.function, ())]
                said = _in_child(partial(self._try, mutant, items)) if items else "survived"
                results.write(f"{mutant.index} {mutant.way} {said}\n")
                results.flush()
        return True

    def _run(self, items: Sequence[Any]) -> bool:
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed:
                return False
        return True

    def _follow(self, items: Sequence[Any], entering: Path) -> bool:
        where, entered, took = str(_path(self._chosen[0].module)), dict[str, set[str]](), dict[str, float]()
        for item in items:
            own = entered.setdefault(item.nodeid, set())

            def call(frame: Any, event: str, arg: object, own: set[str] = own) -> None:
                if frame.f_code.co_filename == where:
                    own.add(frame.f_code.co_qualname.partition(".<locals>")[0])

            began = time.perf_counter()
            threading.settrace(call)
            sys.settrace(call)
            try:
                if not self._run([item]):
                    return False
            finally:
                sys.settrace(None)
                threading.settrace(None)
            took[item.nodeid] = time.perf_counter() - began
        names = {name for own in entered.values() for name in own}
        fastest = sorted(entered, key=took.__getitem__)
        entering.write_text(
            json.dumps({fn: [name for name in fastest if fn in entered[name]] for fn in names})
        )
        return True

    def _try(self, mutant: Mutant, items: Sequence[Any]) -> bool:
        module = importlib.import_module(mutant.module)
        changed = types.ModuleType(mutant.module)
        sys.modules[mutant.module] = changed  # dataclasses look it up while they are made
        exec(compile(source(mutant), str(_path(mutant.module)), "exec"), changed.__dict__)  # noqa: S102 - what this is for
        sys.modules[mutant.module] = module
        _function(module, mutant.function).__code__ = _function(changed, mutant.function).__code__
        return self._run(items)


def _function(module: types.ModuleType, qualname: str) -> Any:
    found: Any = module
    for name in qualname.split("."):
        found = found.__dict__[name]
    found = getattr(found, "fget", None) or getattr(found, "__func__", found)
    while hasattr(found, "__wrapped__"):
        found = found.__wrapped__
    return found


def outcomes(chosen: Sequence[Mutant], tests: Sequence[str]) -> dict[Mutant, str]:
    """``killed``, ``timeout`` or ``survived`` of each; empty where the tests fail as it is."""
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        inside = [it for it in chosen if it.function and it.module not in ELSEWHERE]
        results = folder / "results"
        results.touch()

        def act() -> bool:
            import pytest

            pytest.main([*OPTIONS, f"--basetemp={folder / 'tmp'}", *tests], plugins=[_Trials(inside, folder)])
            return True

        if inside:
            _in_child(act, limit_s=None)
        said = {tuple(map(int, row.split()[:2])): row.split()[2] for row in results.read_text().splitlines()}
        if inside and not said:
            return {}
        return {it: said.get((it.index, it.way)) or loaded_instead(it, tests, folder) for it in chosen}


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
        said = outcomes(chosen, tests)
        if chosen and not said:
            print(f"{module}: its tests fail as it is", flush=True)
            return 2
        left = [mutant for mutant in chosen if said[mutant] == "survived"]
        for mutant in left:
            print(f"  survived  {module}:{mutant.line}  {mutant.what}", flush=True)
        survived = len(left)
        killed, tried = killed + len(chosen) - survived, tried + len(chosen)
        print(f"{module}: {len(chosen) - survived} of {len(chosen)} killed ({len(found)} in all)", flush=True)
    if tried:
        print(f"{killed} of {tried} killed: {killed / tried:.1%}")
    return int(tried > 0 and killed < 0.9 * tried)


if __name__ == "__main__":
    sys.exit(main())
