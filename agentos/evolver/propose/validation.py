"""Screen: what a candidate must look like before any trial is spent on it.

Everything here is read off the text; nothing is executed. A screen that lets something bad through
is no hole by itself (the boxes hold, and the replay measures), but it keeps edits small, within
the surface, and honest.
"""

from __future__ import annotations

import ast
import difflib
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import NamedTuple

from agentos.domain import IMPORT, Check, Evolution, Kind, Refusal, RefusalKind, Snapshot, is_rule_file
from agentos.errors import Invalid, Unavailable
from agentos.evolver.find.triage import is_open
from agentos.evolver.guards.static import SECRET, expected, fault_of_text
from agentos.evolver.guards.static.documents import document_fault
from agentos.evolver.guards.static.edit import read
from agentos.evolver.guards.static.rules_names import words
from agentos.evolver.history.recordings import in_full
from agentos.evolver.policy import SurfacePolicy
from agentos.evolver.propose import BriefContext, ProposalContext
from agentos.ports import ObservedRun, Proposal
from agentos.programs import widened
from agentos.resources import path_fault
from agentos.resources.declarations import recorded_effects
from agentos.rules.document import RuleTrigger, RunRule, read_rule, weakened
from agentos.rules.trying import faults_of, in_run
from agentos.syntax import is_python, parse

# Libraries that a repair may start to use; anything else it must have used before. They work on what they are given,
# and none hashes, which is how a source tells known inputs from new ones, or leads outside. What lies below them is for
# the guards to refuse, such as urllib.request.
HARMLESS_IMPORTS = frozenset(
    words(
        "abc array base64 bisect bz2 calendar cmath codecs collections colorsys configparser contextlib copy "
        "csv dataclasses datetime decimal difflib email enum fnmatch fractions functools graphlib gzip heapq "
        "html io ipaddress itertools json keyword lzma math mimetypes numbers operator pathlib plistlib "
        "pprint pydantic quopri re reprlib statistics string stringprep struct textwrap time tomllib typing "
        "unicodedata urllib xml zoneinfo"
    )
)
DANGEROUS = frozenset(
    words(
        "eval exec compile __import__ globals setattr delattr breakpoint input system popen fork execv execve "
        "kill unlink rmtree socket connect ctypes mmap"
    )
)

_LONGEST = 256 << 10  # characters that an edit may add to a file
_DEEPEST = 200  # levels of a syntax tree, unless it had more
_WIDEST = 10_000  # bits of a number: Python refuses to write the digits of much larger ones
_BESIDE = 3  # statements of a block in one line, unless there were more

# Powers of ten, and what days, hours, angles and kilobytes have: a repair may need them, whatever a check expects.
_UNITS = {
    *(repr(10**power) for power in range(2, 10)),
    *(repr(10.0**-power) for power in range(1, 10)),
    *("180", "360", "365", "366", "1024", "1440", "3600", "86400"),
}


def screen(
    old: Mapping[str, str],
    new: Mapping[str, str],
    checks: Sequence[Check],
    surface: SurfacePolicy,
    *,
    searched: bool = False,
) -> Refusal | None:
    """Why the edit from ``old`` to ``new`` (path -> text) is refused, None when it is not.

    ``searched`` says that the built-in search made it, which may edit texts that nobody else may. ``checks`` are the evidence's: an edit that writes one of their expected values into the source
    repairs the test, not the tool.
    """
    if len(new) > surface.max_files:
        told = f"it touches {len(new)} files, at most {surface.max_files} are allowed"
        return Refusal(RefusalKind.SURFACE, told)
    if any(map(is_rule_file, new)) and (weaker := weakened(old, dict(new))):
        return weaker
    for path, text in new.items():
        before = old.get(path)
        if before is not None and path.endswith(".py") and not is_python(before):
            before = ""  # a helper that nothing can import yet
        reason = _path_fault(path, surface, searched=searched)
        reason = reason or _bulk_fault(path, before or "", text) or _size_fault(path, before, text, surface)
        if is_on(surface.searched, path) and (why := widened(path, before or "", text)):
            reason = reason or Refusal(RefusalKind.SURFACE, why)
        if not path.endswith(".py"):
            reason = reason or fault_of_text(path, before or "", text, checks, surface)
            if path.startswith(("agent/", "environment/")):
                reason = reason or document_fault(path, before, text)
            reason = reason or (_document_fault(before, text) if path.startswith("harness/") else None)
        else:
            reason = reason or _source_fault(path, before, text, checks, tool=not path.startswith("harness/"))
        if reason:
            return Refusal(reason.kind, f"{path}: {reason.reason}")
    return None


def _path_fault(path: str, surface: SurfacePolicy, *, searched: bool) -> Refusal | None:
    if path_fault(path):
        return Refusal(RefusalKind.SURFACE, "not a plain registry path")
    if is_on(surface.allow, path) or (searched and is_on(surface.searched, path)):
        return None
    return Refusal(RefusalKind.SURFACE, f"outside the surface ({', '.join(surface.allow)})")


def is_on(surface: Sequence[str], path: str) -> bool:
    """Whether a registry path matches one of the patterns, part by part: fnmatch's * also matches "/"."""
    return any(fnmatchcase(path, pattern) and path.count("/") == pattern.count("/") for pattern in surface)


def _bulk_fault(path: str, old: str, new: str) -> Refusal | None:
    """What no rule is to work on: their cost grows with a text faster than the lines by which an edit is measured."""
    if len(new) > len(old) + _LONGEST:
        return Refusal(RefusalKind.SURFACE, f"it adds more than {_LONGEST:,} characters")
    if not path.endswith(".py"):
        return None
    try:
        before, after = _measured(old), _measured(new)
    except (SyntaxError, ValueError) as error:
        return Refusal(RefusalKind.TEXT, f"not valid Python: {error}")
    if after.depth > max(_DEEPEST, before.depth):
        return Refusal(RefusalKind.TEXT, f"it nests more than {_DEEPEST} levels")
    if after.bits > max(_WIDEST, before.bits):
        return Refusal(RefusalKind.TEXT, f"it has a number of more than {_WIDEST:,} bits")
    if after.beside > max(_BESIDE, before.beside):
        return Refusal(RefusalKind.SURFACE, f"it has more than {_BESIDE} statements in one line")
    return None


class _Bulk(NamedTuple):
    """Of a source: levels of its tree, bits of its widest number, and statements in one line."""

    depth: int
    bits: int
    beside: int


@lru_cache(maxsize=64)  # the base's file is measured for each edit of it
def _measured(source: str) -> _Bulk:
    tree = parse(source)
    return _Bulk(_depth(tree), _bits(tree), _in_one_line(tree))


def _depth(tree: ast.AST) -> int:
    found, level = 0, [tree]
    while level := [child for node in level for child in ast.iter_child_nodes(node)]:
        found += 1
    return found


def _bits(tree: ast.AST) -> int:
    numbers = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return max((value.bit_length() for value in numbers if isinstance(value, int)), default=0)


def _in_one_line(tree: ast.Module) -> int:
    """Of the statements of one block, the most that begin in one line."""
    bodies = (getattr(node, name, ()) for node in ast.walk(tree) for name in ("body", "orelse", "finalbody"))
    blocks = (Counter(item.lineno for item in body) for body in bodies if isinstance(body, list))
    return max((most for lines in blocks for most in lines.values()), default=0)


def _size_fault(path: str, old: str | None, new: str, surface: SurfacePolicy) -> Refusal | None:
    if old is None:
        lines, most = len(new.splitlines()), surface.max_new_lines
        told = f"a new file of {lines} lines, at most {most} are allowed"
        return Refusal(RefusalKind.SURFACE, told) if lines > most else None
    before, after = old.splitlines(), new.splitlines()
    blocks = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    changed = sum(end - start + to - since for tag, start, end, since, to in blocks if tag != "equal")
    if changed == 0:
        return Refusal(RefusalKind.SURFACE, "it changes nothing")
    most = surface.max_changed_code if path.endswith(".py") else surface.max_changed_lines
    if changed > most:
        told = f"it changes {changed} lines, at most {most} are allowed"
        return Refusal(RefusalKind.SURFACE, told)
    return None


def _document_fault(old: str | None, new: str) -> Refusal | None:
    """Of a harness' document an edit may raise the form of memories that it reads, and nothing else."""
    if old is None:
        return Refusal(RefusalKind.SURFACE, "a harness of its own is for people to add")
    before, after = tomllib.loads(old), tomllib.loads(new)
    changed = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    others = [key for key in changed if key != "state"]
    if not others:
        return None
    return Refusal(RefusalKind.SURFACE, f"it changes {', '.join(others)}; only 'state' may change in it")


def _source_fault(
    path: str, old: str | None, new: str, checks: Sequence[Check], *, tool: bool
) -> Refusal | None:
    """``old`` is None for a new file, which has a contract to state, not to keep."""
    try:
        before, after = read(path, old or ""), read(path, new)
    except (SyntaxError, ValueError, RecursionError) as error:
        return Refusal(RefusalKind.TEXT, f"not valid Python: {error}")
    secret = SECRET.search(new)
    if secret and secret.group() not in (old or ""):
        return Refusal(RefusalKind.TEXT, "it holds what looks like a secret")
    stated = _stated_fault(after.tree) if old is None else _contract_fault(before.tree, after.tree)
    contract = stated if tool else ""
    starts = _new_names_fault(before.nodes, after.nodes)
    if contract or starts:
        return Refusal(RefusalKind.CONTRACT if contract else RefusalKind.SCREEN, contract or starts)
    return _constant_fault(path, old or "", new, checks)


def _stated_fault(after: ast.Module) -> str:
    """What a new tool lacks, or has and may not."""
    stated = _contract(after)
    if "'secrets'" in "".join(stated.get("TOOL", ())):
        return "a new tool asks for secrets, which is for people to add"
    missing = [name for name in ("TOOL", "Input", "Output", "run") if name not in stated]
    return f"a tool without {missing[0]}" if missing else ""


def _contract_fault(before: ast.Module, after: ast.Module) -> str:
    """The public contract: TOOL, Input, Output and the signature of run."""
    old, new = _contract(before), _contract(after)
    changed = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return f"it changes the tool's contract ({changed[0]})" if changed else ""


_CONTRACT = frozenset({"TOOL", "Input", "Output", "run"})
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def _contract(module: ast.Module) -> dict[str, list[str]]:
    """By name all that defines it, and all that binds or changes it besides."""
    found: dict[str, list[str]] = defaultdict(list)
    deep = {
        part
        for scope in ast.walk(module)
        if isinstance(scope, (*_SCOPES, ast.comprehension))
        for child in ([scope.target] if isinstance(scope, ast.comprehension) else ast.iter_child_nodes(scope))
        for part in ast.walk(child)
    }
    for node in module.body:
        for inner in ast.walk(node):
            for name in _CONTRACT.intersection(_rebound(inner, at_top=inner not in deep)):
                if (
                    inner is node
                    and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                    and name == "run"
                ):
                    returned = ast.dump(node.returns) if node.returns else ""
                    text = type(node).__name__ + ast.dump(node.args) + returned
                else:
                    text = ast.dump(inner if inner in deep else node)
                found[name].append(text)
    return dict(found)


def _rebound(node: ast.AST, *, at_top: bool) -> Iterator[str]:
    """Names of the module that this binds, or into which it writes; what it calls on one at the top may do so."""
    if isinstance(node, ast.Global):
        yield from node.names
    elif isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
        yield re.split(r"\W", ast.unparse(node))[0]
    elif at_top and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield re.split(r"\W", ast.unparse(node.func))[0]
    elif at_top and isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif at_top and isinstance(node, ast.alias):
        yield node.asname or node.name
    elif at_top and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name


def _imports(nodes: Iterable[ast.AST]) -> set[str]:
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    return names


def _new_names_fault(before: Sequence[ast.AST], after: Sequence[ast.AST]) -> str:
    imports = _imports(after) - _imports(before) - HARMLESS_IMPORTS
    if imports:
        return f"it starts to import {', '.join(sorted(imports))}"
    new = _names(after) - _names(before)
    own = {arg.arg for node in after if isinstance(node, ast.arguments) for arg in node.args}
    own |= {
        node.target.id
        for node in before
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    if names := (new & DANGEROUS) - own:
        return f"it starts to use {', '.join(sorted(names))}"
    dunder = {name for name in new if name.startswith("__")}
    return f"it starts to use {', '.join(sorted(dunder))}" if dunder else ""


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {
        node.id if isinstance(node, ast.Name) else node.attr
        for node in nodes
        if isinstance(node, ast.Name | ast.Attribute) and not _is_pattern(node)
    }


def _is_pattern(node: ast.Name | ast.Attribute) -> bool:
    """``re.compile``, which shares a name with what makes code."""
    return isinstance(node, ast.Attribute) and ast.unparse(node) == "re.compile"


def _constant_fault(path: str, old: str, new: str, checks: Sequence[Check]) -> Refusal | None:
    written = newly_written(path, old, new)
    wanted = {as_one_text(value) for value in expected(checks)}
    numbers = {*map(_as_number, written)} - _UNITS
    alike = {value for value in wanted if _as_number(value) in numbers and _is_telling(_as_number(value))}
    same = {*filter(_is_telling, (written & wanted) - _UNITS)}
    hard_coded = same | alike
    if not hard_coded:
        return None
    told = f"it writes an expected value into the source ({', '.join(sorted(hard_coded))})"
    return Refusal(RefusalKind.EXPECTED, told)


def _is_telling(text: str) -> bool:
    """Whether it is long enough to be no chance."""
    return len(text.strip("'\"")) > 2


def _as_number(text: str) -> str:
    """A text that is a number as the number that it is: ``'12.50'`` is 12.5; any other as it is."""
    try:
        return as_one_text(float(text.strip("'\"")))
    except (ValueError, OverflowError):
        return text


def newly_written(path: str, old: str, new: str) -> set[str]:
    """The texts and numbers, as ``as_one_text`` has them, that stand in the new source and not in the old one."""
    return _constants(path, new) - (_constants(path, old) if is_python(old) else set())


def newly_named(old: str, new: str) -> set[str]:
    """Names, attributes and modules that are used in the new source and not in the old one."""
    before, after = [*ast.walk(parse(old if is_python(old) else ""))], [*ast.walk(parse(new))]
    return (_names(after) | _imports(after)) - _names(before) - _imports(before)


def _constants(path: str, source: str) -> set[str]:
    """Every text and number that stands in the source, or that is put together of what stands there."""
    reading = read(path, source)
    values = (reading.fold(node) for node in reading.nodes if isinstance(node, ast.expr))
    return {as_one_text(leaf) for value in values for leaf in _leaves(value)}


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, tuple):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value


def as_one_text(value: object) -> str:
    """One text for what is equal: 101.0 is 101."""
    whole = isinstance(value, float) and value.is_integer()
    return repr(int(value) if whole else value)  # type: ignore[call-overload] # a number


# -------------------------------------------------------------------------------------------------
# What a proposed rule would have done in good runs: one that would have held back a single one is
# refused.
# Rules hold for all runs of the home, so trials of the work at hand cannot tell what else a rule would stop: what runs
# did that passed tells it. The person who is asked to consent is told how many were looked at.


_NAMED = 3  # runs that a refusal names


def good_runs(parts: BriefContext, base: Snapshot) -> tuple[ObservedRun, ...]:
    """Open runs of any work that passed lately, newest first, without their checks; none where they are too few to tell."""
    look_back = parts.policy.look_back
    harnesses = [name for name in parts.snapshots.names(base) if name.kind is Kind.HARNESS]
    found = {
        run.id: run for name in harnesses for run in parts.journal.recent_runs(str(name), look_back.rules)
    }
    good = [run for run in found.values() if run.passed and run.sandbox != IMPORT and is_open(parts, run)]
    if len(good) < max(1, look_back.rules_min):
        return ()
    good.sort(key=lambda run: (run.finished_at or parts.now(), run.id), reverse=True)
    return tuple(
        ObservedRun(
            replace(parts.journal.task(run.task_id), checks=()), run, tuple(parts.journal.steps(run.id))
        )
        for run in good[: look_back.rules]
    )


_Rules = dict[str, tuple[RunRule, RunRule | None]]  # by path: as proposed, and as it stands


def rule_fault(parts: ProposalContext, evolution: Evolution, proposal: Proposal) -> Refusal | None:
    """Why a rule of the proposal may not be tried, None when all may; what was looked at is noted then."""
    rules: _Rules = {}
    for path in filter(is_rule_file, proposal.files):
        try:
            rule = read_rule(path, proposal.files[path].encode())
            present = parts.snapshots.files(evolution.base, path).get(path)
            rules[path] = (rule, read_rule(path, present) if present is not None else None)
        except (Invalid, Unavailable) as error:
            return Refusal(RefusalKind.RULE, f"{path}: {error}")
        if why := _untestable(rule):
            return Refusal(RefusalKind.RULE, f"{path}: {why}")
    alarms = _alarms(parts, evolution, rules) if rules else ""
    return Refusal(RefusalKind.RULE, alarms) if alarms else None


def _alarms(parts: ProposalContext, evolution: Evolution, rules: _Rules) -> str:
    """In which good runs a rule would have acted where it does not as it stands; "" where in none, which is noted."""
    held: dict[str, list[str]] = {path: [] for path in rules}
    looked, effects = 0, recorded_effects(parts.snapshots)
    for short in good_runs(parts, evolution.base):
        try:
            seen = in_full(parts.blobs, short)  # one at a time: long arguments and results lie apart
        except Unavailable:  # half a record says nothing
            continue
        looked += 1
        for path, (rule, before) in rules.items():
            if in_run(rule, seen, effects) and not (before and in_run(before, seen, effects)):
                held[path].append(seen.run.id)
    least = max(1, parts.policy.look_back.rules_min)
    if looked < least:
        return f"{min(rules)}: fewer than {least} runs have passed, so nobody can tell what else it would hold back"
    for path, ids in held.items():
        if ids:
            named = ", ".join(ids[:_NAMED]) + (" and others" if len(ids) > _NAMED else "")
            return f"{path}: it would have acted in {len(ids)} of {looked} runs that passed ({named})"
    parts.audit.note("rule.tested", evolution.id, {"rules": [*rules], "good_runs": looked, "alarms": 0})
    return ""


def _untestable(rule: RunRule) -> str:
    if rule.on is RuleTrigger.BEFORE_MODEL:
        return "what models are asked is not on record, so nobody can tell what else the rule would hold back"
    if not rule.stops:
        return "it names no example that it stops"
    if wrong := faults_of(rule):
        return f"its example {wrong[0].wanted} {wrong[0].number} does not hold: {wrong[0].why}"
    return ""
