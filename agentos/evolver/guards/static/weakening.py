"""Rules about what an edit takes away: records, failures, limits and hooks, and errors that it hides.

Counted over the whole edit, so that code may move between its files, and only where it is reached: what
stands below ``if False`` or after a ``return`` is not there.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence

from agentos.evolver.guards.static.static_eval import UNKNOWN, FileNames
from agentos.evolver.screen_rules import Construct, RuleHit

HOOKS = frozenset({"before_act", "after_observe", "on_finish"})
_LIMITS = frozenset({"steps_left", "max_steps", "StepsUsedUp"})
_LOGGING = frozenset({"debug", "info", "warning", "error", "exception", "critical"})
_BROAD = frozenset({"builtins.Exception", "builtins.BaseException"})
_TAKES_AWAY = frozenset({"clear", "remove", "pop", "__delitem__"})


def lost(before: Sequence[FileNames], after: Sequence[FileNames]) -> Iterator[RuleHit]:
    """What was recorded, checked or hooked in before the edit, and is not any more."""
    old, new = _kept(before), _kept(after)
    gone = Counter({key: len(places) - len(new.get(key, ())) for key, places in old.items()})
    for (rule, what), count in gone.items():
        if count > 0:
            path, line = old[rule, what][-1]
            where = f"line {line} before the edit" if count == 1 else f"{count} of {len(old[rule, what])}"
            yield RuleHit(rule, path, 0, f"{what} is gone ({where})")


def _kept(readings: Sequence[FileNames]) -> dict[tuple[str, str], list[tuple[str, int]]]:
    """(rule, what) -> where it stands."""
    found: dict[tuple[str, str], list[tuple[str, int]]] = {}
    called = {name for reading in readings for name in _mentioned(reading)}
    for reading in readings:
        idle = _idle(reading, called)
        for node in reading.reached():
            if node in idle:
                continue
            for key in _worth(reading, node):
                found.setdefault(key, []).append((reading.path, getattr(node, "lineno", 0)))
    return found


def _worth(reading: FileNames, node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Raise):
        yield "checks", "a raise"
    elif isinstance(node, ast.Assert) and reading.truth(node.test) is None:
        yield "checks", "an assertion"
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield from _recorded(reading, node, node.func)
    elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
        name = node.id if isinstance(node, ast.Name) else node.attr
        if name in _LIMITS:
            yield "checks", f"a look at {name}"
        elif name in HOOKS:
            yield "hooks", f"a use of {name}"
    elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.List):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if isinstance(target, ast.Name) and target.id in HOOKS:
            yield from (("hooks", f"{ast.unparse(item)} in {target.id}") for item in node.value.elts)


def _recorded(reading: FileNames, node: ast.Call, func: ast.Attribute) -> Iterator[tuple[str, str]]:
    owner = ast.unparse(func.value).lower()
    if func.attr in ("step", "fail") and "sdk" in owner:
        first = reading.fold(node.args[0]) if node.args and func.attr == "step" else UNKNOWN
        yield "record", f"sdk.{func.attr}({first!r})" if first is not UNKNOWN else f"sdk.{func.attr}"
    elif func.attr in _LOGGING and "log" in owner:
        yield "record", f"a call of {func.attr} on the log"


def _mentioned(reading: FileNames) -> Iterator[str]:
    for node in ast.walk(reading.tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield node.name


def _idle(reading: FileNames, called: set[str]) -> set[ast.AST]:
    """The insides of private functions that nothing mentions."""
    return {
        inner
        for node in ast.walk(reading.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("_")
        and not node.name.startswith("__")
        and node.name not in called
        and not node.decorator_list
        for inner in ast.walk(node)
    }


# --- errors that are hidden, hooks that are taken out -------------------------------------------


def hidden(reading: FileNames) -> Iterator[Construct]:
    """Errors that are caught broadly or swallowed, and hooks that are taken out while it runs."""
    for node in ast.walk(reading.tree):
        if isinstance(node, ast.ExceptHandler):
            yield from _handler(reading, node)
        elif isinstance(node, ast.Try | ast.TryStar):
            yield from _finally(reading, node)
        elif isinstance(node, ast.Call):
            yield from _suppressed(reading, node)
            yield from _taken_out(reading, node)
        elif isinstance(node, ast.Attribute | ast.Subscript | ast.Name) and not isinstance(
            node.ctx, ast.Load
        ):
            yield from _overwritten(reading, node)


def _handler(reading: FileNames, node: ast.ExceptHandler) -> Iterator[Construct]:
    caught = ast.unparse(node.type) if node.type else "everything"
    if _is_broad(reading, node.type):
        yield _seen(reading, "except", node, f"catches {caught}", caught)
    if not _tells(node):
        key = f"{caught}: {ast.dump(ast.Module(node.body, []))}"
        yield _seen(reading, "except", node, f"swallows {caught}", key)


def _is_broad(reading: FileNames, node: ast.expr | None) -> bool:
    if node is None:
        return True
    if isinstance(node, ast.Tuple):
        return any(_is_broad(reading, item) for item in node.elts)
    if not isinstance(node, ast.Name | ast.Attribute):
        return True  # put together: nobody can say what it catches
    paths = reading.dotted(node)
    return bool(paths & _BROAD) or any(path.endswith(".StepsUsedUp") for path in paths)


def _tells(node: ast.ExceptHandler) -> bool:
    """The handler raises, fails, or uses the exception."""
    for inner in (inner for statement in node.body for inner in ast.walk(statement)):
        if isinstance(inner, ast.Raise):
            return True
        if (
            isinstance(inner, ast.Name)
            and node.name
            and inner.id == node.name
            and isinstance(inner.ctx, ast.Load)
        ):
            return True
        if isinstance(inner, ast.Call) and ast.unparse(inner.func).rpartition(".")[2] in ("fail", "fault"):
            return True
    return False


def _finally(reading: FileNames, node: ast.Try | ast.TryStar) -> Iterator[Construct]:
    for statement in node.finalbody:
        for inner in ast.walk(statement):
            if isinstance(inner, ast.Return | ast.Break | ast.Continue):
                yield _seen(
                    reading,
                    "except",
                    inner,
                    "leaves a finally clause, which drops the error",
                    ast.dump(inner),
                )


def _suppressed(reading: FileNames, node: ast.Call) -> Iterator[Construct]:
    if "contextlib.suppress" in reading.dotted(node.func):
        for argument in node.args:
            caught = ast.unparse(argument)
            rule = "catches" if _is_broad(reading, argument) else "swallows"
            yield _seen(reading, "except", node, f"{rule} {caught}", f"suppress {caught}")


def _taken_out(reading: FileNames, node: ast.Call) -> Iterator[Construct]:
    func = node.func
    if isinstance(func, ast.Attribute) and func.attr in _TAKES_AWAY and (name := _hook(func.value)):
        yield _seen(reading, "hooks", node, f"takes hooks out of {name}", ast.dump(node))


def _overwritten(reading: FileNames, node: ast.Attribute | ast.Subscript | ast.Name) -> Iterator[Construct]:
    above = reading.parents.get(node)
    defined = isinstance(above, ast.Assign | ast.AnnAssign | ast.AugAssign) and isinstance(node, ast.Name)
    if not defined and (name := _hook(node)):
        yield _seen(reading, "hooks", node, f"overwrites {name}", ast.dump(node))


def _hook(node: ast.AST) -> str:
    """The hook list that an expression is, or is a part of."""
    while isinstance(node, ast.Subscript):
        node = node.value
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name if name in HOOKS else ""


def _seen(reading: FileNames, rule: str, node: ast.AST, why: str, key: str) -> Construct:
    return Construct(RuleHit(rule, reading.path, getattr(node, "lineno", 0), why), key)
