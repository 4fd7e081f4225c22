"""All guards on one edit: what they find, and which of it refuses the edit by the policy."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from agentos.domain import Kind, Tier, tier_of
from agentos.evolver.guards.static.denylist import MODULES
from agentos.evolver.guards.static.references import imports, references, texts
from agentos.evolver.guards.static.scanner import scan
from agentos.evolver.guards.static.static_eval import FileNames, read
from agentos.evolver.guards.static.tells import tells
from agentos.evolver.guards.static.weakening import hidden, lost
from agentos.evolver.policy import Screen
from agentos.evolver.screen_rules import Construct, RuleHit, added
from agentos.plugins import registry
from agentos.plugins.registry import Plugin, PluginFailed

_KINDS = (Kind.TOOL, Kind.SKILL, Kind.HARNESS)


def guard(old: Mapping[str, str], new: Mapping[str, str], screen: Screen) -> list[RuleHit]:
    """What the edit brings in or takes away, file by file (registry path -> text).

    ``old`` holds the base's files of the resource, ``new`` whole new texts. Files that are not Python, and
    other kinds of resources, are looked at by rules of plug-ins alone. Raises Unavailable when the scanner is gone.
    """
    found = findings(old, new, screen) + installed_findings(old, new)
    paths = _sources(new)
    if not refusal(found, screen, tier_of(paths)):  # it takes a process, and the verdict stands already
        found += scan({path: old[path] for path in paths if path in old}, {path: new[path] for path in paths})
    return found


def findings(old: Mapping[str, str], new: Mapping[str, str], screen: Screen) -> list[RuleHit]:
    """As ``guard``, by our own rules alone."""
    return list(_findings(tuple(old.items()), tuple(new.items()), screen))


@lru_cache(maxsize=8)  # one edit is looked at when it is proposed, at consent, at its probe and at promotion
def _findings(
    old_files: tuple[tuple[str, str], ...], new_files: tuple[tuple[str, str], ...], screen: Screen
) -> tuple[RuleHit, ...]:
    old, new = dict(old_files), dict(new_files)
    paths = _sources(new)
    try:
        before = [read(path, old[path]) for path in paths if path in old]
        after = [read(path, new[path]) for path in paths]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return (RuleHit("text", paths[0], 0, f"not valid Python: {error}"),)
    beside = {PurePosixPath(path).stem for path in (*old, *new) if path.endswith(".py")}
    found = added(_seen(before, beside, screen), _seen(after, beside, screen))
    return (*found, *_shadowing(old, after), *lost(before, after), *growth(before, after, screen))


def _sources(files: Iterable[str]) -> list[str]:
    return [path for path in files if path.endswith(".py") and path.split("/")[0] in _KINDS]


def refusal(found: Sequence[RuleHit], screen: Screen, tier: Tier) -> str:
    """Why the edit is refused, "" when it is not: the first finding of a rule that refuses in this tier."""
    rules = {*screen.refuse, *(screen.refuse_high if tier is Tier.HIGH else ())}
    refused = [finding for finding in found if finding.effect == REFUSE or finding.rule in rules]
    more = f", and {len(refused) - 1} more" if len(refused) > 1 else ""
    return f"{refused[0]}{more}" if refused else ""


def asked(old: Mapping[str, str], new: Mapping[str, str], screen: Screen) -> str:
    """Why the policy wants a person to look at the edit, "" where it does not."""
    found = [finding for finding in findings(old, new, screen) if finding.rule in screen.ask]
    found += installed_findings(
        old, new
    )  # one that refuses may have been installed since the edit was screened
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return f"a person is asked for such an edit: {found[0]}{more}" if found else ""


def _seen(readings: Iterable[FileNames], beside: set[str], screen: Screen) -> Iterator[Construct]:
    for reading in readings:
        harness = reading.path.startswith(f"{Kind.HARNESS.value}/")
        allowed = {*(screen.imports_harness if harness else screen.imports), *_declared(reading)}
        yield from imports(reading, allowed, {*MODULES, *screen.deny}, beside - sys.stdlib_module_names)
        yield from references(reading)
        yield from texts(reading, screen.max_line)
        yield from hidden(reading)
        yield from tells(reading)


def _declared(reading: FileNames) -> Iterator[str]:
    """The packages that a tool declares; the screen sees to it that an edit does not change them."""
    for node in reading.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TOOL":
            try:
                wanted = ast.literal_eval(node.value).get("dependencies", [])
                yield from (re.split(r"[^\w.-]", name)[0].replace("-", "_").lower() for name in wanted)
            except (ValueError, AttributeError, TypeError):
                return  # no literal: the contract's fault, told elsewhere


def _shadowing(old: Mapping[str, str], after: Iterable[FileNames]) -> Iterator[RuleHit]:
    """A new file by the name of a module that other files import."""
    for reading in after:
        name = PurePosixPath(reading.path).stem
        if reading.path not in old and name in {*sys.stdlib_module_names, "agentos", "pydantic", "langgraph"}:
            yield RuleHit("import", reading.path, 0, f"a file that stands in the way of the module {name}")


_BRANCHES = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.IfExp,
    ast.BoolOp,
    ast.comprehension,
    ast.match_case,
)
_NESTS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.With, ast.AsyncWith, ast.Match)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Size:
    """How large a set of files is."""

    statements: int
    branches: int
    nesting: int  # of the deepest function
    constants: int  # bytes in texts and numbers that are no docstrings


def size_of(readings: Sequence[FileNames]) -> Size:
    """All files together."""
    nodes = [node for reading in readings for node in ast.walk(reading.tree)]
    return Size(
        statements=sum(isinstance(node, ast.stmt) for node in nodes),
        branches=sum(isinstance(node, _BRANCHES) for node in nodes),
        nesting=max((_nesting(node) for node in nodes if isinstance(node, _FUNCTIONS)), default=0),
        constants=sum(
            len(repr(node.value))
            for reading in readings
            for node in ast.walk(reading.tree)
            if isinstance(node, ast.Constant) and not isinstance(reading.parents.get(node), ast.Expr)
        ),
    )


def _nesting(node: ast.AST) -> int:
    deepest = 0
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                # "elif" is an If in the orelse of an If, and no deeper to the reader
                chained = (
                    isinstance(node, ast.If)
                    and name == "orelse"
                    and isinstance(child, ast.If)
                    and len(value) == 1
                )
                deepest = max(deepest, _nesting(child) + (isinstance(child, _NESTS) and not chained))
    return deepest


def growth(before: Sequence[FileNames], after: Sequence[FileNames], screen: Screen) -> Iterator[RuleHit]:
    """Where the edit grows past the policy's limits: then nobody reviews it, whatever the trials say."""
    old, new = size_of(before), size_of(after)
    path = after[0].path if after else ""
    for name, most in (
        ("statements", screen.max_new_statements),
        ("branches", screen.max_new_branches),
        ("constants", screen.max_new_constants),
    ):
        more = getattr(new, name) - getattr(old, name)
        if more > most:
            unit = "characters of constants" if name == "constants" else name
            yield RuleHit("growth", path, 0, f"{more} more {unit}, at most {most} are allowed")
    if new.nesting > max(old.nesting, screen.max_nesting):
        why = f"blocks nested {new.nesting} deep, at most {screen.max_nesting} are allowed"
        yield RuleHit("growth", path, 0, why)


ASK, REFUSE = "ask", "refuse"
_FINDINGS_MAX = 50  # of one rule
_WHY_MAX = 300


def installed_findings(old: Mapping[str, str], new: Mapping[str, str]) -> list[RuleHit]:
    """What screen rules of other distributions find: they may refuse an edit or have a person asked.

    ``old`` are the base's texts of the resource, ``new`` whole new ones. A rule that is installed and cannot be
    applied, for whatever reason, counts as found: one that refuses refuses, any other asks a person. Somebody
    installed it to be protected.
    """
    found: list[RuleHit] = []
    for plugin, rule in registry.usable("screen_rules"):
        if isinstance(rule, PluginFailed):
            found.append(RuleHit(str(plugin), "", 0, f"a screen rule is not in force: {rule}", ASK))
            continue
        try:
            found += registry.call(plugin, lambda at=plugin, by=rule: [*_look(at, by, old, new)])  # type: ignore[misc]
        except PluginFailed as error:
            effect = REFUSE if _effect(rule) == REFUSE else ASK
            found.append(RuleHit(str(plugin), "", 0, f"a screen rule could not be applied: {error}", effect))
    return found


def _look(plugin: Plugin, rule: Any, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[RuleHit]:
    if (effect := _effect(rule)) not in (ASK, REFUSE):
        raise ValueError(f"its `effect` is {effect!r:.60}, and no {ASK!r} or {REFUSE!r}")
    for number, (path, line, why) in enumerate(rule.look(dict(old), dict(new))):
        if number == _FINDINGS_MAX:
            return
        yield RuleHit(str(plugin), str(path)[:_WHY_MAX], int(line), str(why)[:_WHY_MAX], effect)


def _effect(rule: Any) -> object:
    return getattr(rule, "effect", ASK)
