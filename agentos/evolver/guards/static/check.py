"""All guards on one edit: what they find, and which of it refuses the edit by the policy."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from agentos.domain import Candidate, Kind, Refusal, RefusalKind, Snapshot, Tier, tier_of
from agentos.errors import Unavailable
from agentos.evolver.guards.static import Construct, RuleHit, added, unseen
from agentos.evolver.guards.static.edit import ParsedSource, SourceEdit, is_source, source_edit
from agentos.evolver.guards.static.rules_behaviour import HOOKS, hidden, tells, widened
from agentos.evolver.guards.static.rules_names import MODULES, imports, references
from agentos.evolver.policy import Screen
from agentos.plugins import registry
from agentos.plugins.registry import Plugin, PluginFailed
from agentos.syntax import UNKNOWN, is_python


def guard(old: Mapping[str, str], new: Mapping[str, str], screen: Screen) -> list[RuleHit]:
    """What the edit brings in or takes away, file by file (registry path -> text).

    ``old`` holds the base's files of the resource, ``new`` whole new texts. Files that are not Python, and
    other kinds of resources, are looked at by rules of plug-ins alone. Raises Unavailable when the scanner is gone.
    """
    found = findings(old, new, screen) + installed_findings(old, new)
    paths = list(filter(is_source, new))
    if not refusal(found, screen, tier_of(paths)):  # it takes a process, and the verdict stands already
        found += scan({path: old[path] for path in paths if path in old}, {path: new[path] for path in paths})
    return found


def findings(old: Mapping[str, str], new: Mapping[str, str], screen: Screen) -> list[RuleHit]:
    """As ``guard``, by our own rules alone."""
    return list(_findings(tuple(old.items()), tuple(new.items()), screen))


@lru_cache(maxsize=8)  # one edit is looked at when it is proposed, at consent, at its probe and at promotion
def _findings(
    old: tuple[tuple[str, str], ...], new: tuple[tuple[str, str], ...], screen: Screen
) -> tuple[RuleHit, ...]:
    if not any(is_source(path) for path, _ in new):
        return ()
    try:
        edit = source_edit(dict(old), dict(new))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        path = next(path for path, _ in new if is_source(path))
        return (RuleHit("text", path, 0, f"not valid Python: {error}"),)
    beside = {PurePosixPath(path).stem for path in edit.after}
    before, after = (
        [part for reading in side for part in _seen(reading, edit.before.get(reading.path), beside, screen)]
        for side in (edit.old, edit.new)
    )
    found = added(before, after)
    if not any(finding.rule == "swallow" for finding in found):
        found += widened(edit.old, edit.new)
    unread = [path for path in edit.written if path not in edit.before and dict(old).get(path)]
    found += [
        RuleHit("tell", path, 0, "the base is no Python that it could be held against") for path in unread
    ]
    return (*found, *_shadowing(edit), *lost(edit.old, edit.new), *growth(edit, screen))


def refusal(found: Sequence[RuleHit], screen: Screen, tier: Tier) -> Refusal | None:
    """Why the edit is refused, None when it is not: the first finding of a rule that refuses in this tier."""
    rules = {*screen.refuse, *(screen.refuse_high if tier is Tier.HIGH else ())}
    refused = [finding for finding in found if finding.effect == REFUSE or finding.rule in rules]
    more = f", and {len(refused) - 1} more" if len(refused) > 1 else ""
    return Refusal(RefusalKind.SCREEN, f"{refused[0]}{more}") if refused else None


def asked(old: Mapping[str, str], new: Mapping[str, str], screen: Screen) -> Refusal | None:
    """Why the policy wants a person to look at the edit; None where it does not."""
    found = [finding for finding in findings(old, new, screen) if finding.rule in screen.ask]
    # One that refuses may have been installed since the edit was screened.
    found += installed_findings(old, new)
    if not found:
        return None
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return Refusal(RefusalKind.SCREEN, f"a person is asked for such an edit: {found[0]}{more}")


def screened(
    files: Callable[[Snapshot, str], Mapping[str, bytes]], candidate: Candidate, screen: Screen
) -> Refusal | None:
    """As ``asked``, of a candidate; ``files`` are those of a resource in a snapshot."""
    before = {
        path: content.decode("utf-8", "replace")
        for resource in candidate.edit.resources
        for path, content in files(candidate.base, resource).items()
        if path.endswith(".py")
    }
    return asked(before, candidate.edit.files, screen)


def _seen(
    reading: ParsedSource, base: ParsedSource | None, beside: set[str], screen: Screen
) -> Iterator[Construct]:
    harness = reading.path.startswith(f"{Kind.HARNESS.value}/")
    allowed = {*(screen.imports_harness if harness else screen.imports), *_declared(reading)}
    longest = screen.max_line
    if base is not None:
        allowed |= {*_packages(base)} - {*MODULES, *screen.deny}
        longest = max(longest, *map(len, base.source.splitlines()), 0)
    yield from imports(reading, allowed, {*MODULES, *screen.deny}, beside - sys.stdlib_module_names)
    yield from references(reading)
    yield from texts(reading, longest)
    yield from hidden(reading)
    yield from tells(reading)


def _packages(reading: ParsedSource) -> Iterator[str]:
    """Those that it imports: whatever they are called where they are declared."""
    for node in reading.nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names if _is_package(alias.name))
        elif isinstance(node, ast.ImportFrom) and not node.level and _is_package(node.module or ""):
            yield (node.module or "").split(".")[0]


def _is_package(module: str) -> bool:
    return module.split(".")[0] not in {*sys.stdlib_module_names, "agentos", ""}


def _declared(reading: ParsedSource) -> Iterator[str]:
    """The packages that a tool declares; the screen sees to it that an edit does not change them."""
    for node in reading.tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if value and isinstance(targets[0], ast.Name) and targets[0].id == "TOOL":
            try:
                wanted = ast.literal_eval(value).get("dependencies", [])
                yield from (re.split(r"[^\w.-]", name)[0].replace("-", "_").lower() for name in wanted)
            except (ValueError, AttributeError, TypeError):
                return  # no literal: the contract's fault, told elsewhere


def _shadowing(edit: SourceEdit) -> Iterator[RuleHit]:
    """A new file by the name of a module that other files import."""
    for path in edit.written:
        name = PurePosixPath(path).stem
        if path not in edit.before and name in {*sys.stdlib_module_names, "agentos", "pydantic", "langgraph"}:
            yield RuleHit("import", path, 0, f"a file that stands in the way of the module {name}")


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


@dataclass(frozen=True, slots=True)
class Size:
    """How large a set of files is."""

    statements: int
    branches: int
    nesting: int  # of the deepest function
    constants: int  # bytes in texts and numbers that are no docstrings


def size_of(readings: Sequence[ParsedSource]) -> Size:
    """All files together."""
    nodes = [node for reading in readings for node in reading.nodes]
    return Size(
        statements=sum(isinstance(node, ast.stmt) for node in nodes),
        branches=sum(isinstance(node, _BRANCHES) for node in nodes),
        nesting=max((_nesting(node) for reading in readings for node in reading.functions), default=0),
        constants=sum(
            len(repr(node.value))
            for reading in readings
            for node in reading.nodes
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


def growth(edit: SourceEdit, screen: Screen) -> Iterator[RuleHit]:
    """Where the edit grows past the policy's limits: then nobody reviews it, whatever the trials say."""
    old, new, path = size_of(edit.old), size_of(edit.new), edit.written[0]
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


# --- What is gone: records, failures, limits and hooks -------------------------------------------
# Counted over the whole edit, so that code may move between its files, and only where it is reached: what
# stands below ``if False`` or after a ``return`` is not there.


_LIMITS = frozenset({"steps_left", "max_steps", "StepsUsedUp"})
_LOGGING = frozenset({"debug", "info", "warning", "error", "exception", "critical"})


def lost(before: Sequence[ParsedSource], after: Sequence[ParsedSource]) -> Iterator[RuleHit]:
    """What was recorded, checked or hooked in before the edit, and is not any more."""
    old, new = _kept(before), _kept(after)
    gone = Counter({key: len(places) - len(new.get(key, ())) for key, places in old.items()})
    for (rule, what), count in gone.items():
        if count > 0:
            path, line = old[rule, what][-1]
            where = f"line {line} before the edit" if count == 1 else f"{count} of {len(old[rule, what])}"
            yield RuleHit(rule, path, 0, f"{what} is gone ({where})")


def _kept(readings: Sequence[ParsedSource]) -> dict[tuple[str, str], list[tuple[str, int]]]:
    """(rule, what) -> where it stands."""
    found: dict[tuple[str, str], list[tuple[str, int]]] = {}
    called = {name for reading in readings for name in _mentioned(reading)}
    for reading in readings:
        idle = _idle(reading, called)
        for node in reading.reached:
            if node in idle:
                continue
            for key in _worth(reading, node):
                found.setdefault(key, []).append((reading.path, getattr(node, "lineno", 0)))
    return found


def _worth(reading: ParsedSource, node: ast.AST) -> Iterator[tuple[str, str]]:
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


def _recorded(reading: ParsedSource, node: ast.Call, func: ast.Attribute) -> Iterator[tuple[str, str]]:
    owner = ast.unparse(func.value).lower()
    if func.attr in ("step", "fail") and "sdk" in owner:
        first = reading.fold(node.args[0]) if node.args and func.attr == "step" else UNKNOWN
        yield "record", f"sdk.{func.attr}({first!r})" if first is not UNKNOWN else f"sdk.{func.attr}"
    elif func.attr in _LOGGING and "log" in owner:
        yield "record", f"a call of {func.attr} on the log"


def _mentioned(reading: ParsedSource) -> Iterator[str]:
    for node in reading.nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield node.name


def _idle(reading: ParsedSource, called: set[str]) -> set[ast.AST]:
    """The insides of private functions that nothing mentions."""
    return {
        inner
        for node in reading.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("_")
        and not node.name.startswith("__")
        and node.name not in called
        and not node.decorator_list
        for inner in ast.walk(node)
    }


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


# --- The text of a source file ------------------------------------------------------------------

# PEP 263; Python looks for it in the first two lines, comments that no syntax tree shows.
_CODING = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_PLAIN_CODINGS = frozenset({"utf-8", "utf8", "utf_8", "ascii", "us-ascii"})


def texts(reading: ParsedSource, longest_line: int) -> Iterator[Construct]:
    """A text that reads otherwise to a person, or to Python, than to these guards."""
    lines = re.split(r"\r\n|\r|\n", reading.source)  # as Python does; splitlines knows more ends
    for number, line in enumerate(lines, 1):
        found = _CODING.match(line) if number <= 2 else None
        if found and found.group(1).lower() not in _PLAIN_CODINGS:
            yield _line(reading, number, f"says that it is encoded as {found.group(1)[:20]}", line)
        if hidden := unseen(line):
            yield _line(reading, number, f"holds an invisible character (U+{ord(hidden[0]):04X})", line)
        if len(line) > longest_line:
            yield _line(reading, number, f"a line of {len(line)} characters", line)
    for node in reading.nodes:
        name = _identifier(node)
        if not name.isascii():
            why = f"a name that is not plain ASCII: {name[:30]}"
            yield Construct(RuleHit("text", reading.path, getattr(node, "lineno", 0), why), name)


def _line(reading: ParsedSource, number: int, why: str, line: str) -> Construct:
    return Construct(RuleHit("text", reading.path, number, why), line)


def _identifier(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.arg | ast.keyword):
        return node.arg or ""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    return ""


# --- What bandit finds in the new text and not in the old, in a process of its own ---------------
# Its plugins take a while to load and keep global state, so it is started as a program, isolated from
# environment and working directory. It reads the texts from memory, so that nothing is left of a scan that
# was killed. Its ``# nosec`` comments are ignored: a candidate could write them.


_TIMEOUT_S = 60.0
_DESCRIPTOR = "/proc/self/fd/{}"


@dataclass(frozen=True, slots=True)
class _ScanReport:
    """What bandit says of one text: its findings, and why it could not read it."""

    found: list[dict[str, str]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def scan(old: Mapping[str, str], new: Mapping[str, str]) -> list[RuleHit]:
    """Findings of at least medium severity and confidence that ``new`` has and ``old`` has not, by registry path.

    Raises Unavailable when bandit cannot do its work.
    """
    if not new:
        return []
    reports = _bandit(tuple(dict.fromkeys([*old.values(), *new.values()])))
    before = [_hit_of(path, text, item) for path, text in old.items() for item in reports[text].found]
    after = [_hit_of(path, text, item) for path, text in new.items() for item in reports[text].found]
    known = {path for path, text in old.items() if reports[text].unread and is_python(text)}
    return [
        RuleHit("scanner", path, 0, f"bandit cannot read it: {why}")
        for path, text in new.items()
        for why in reports[text].unread
        if path not in known
    ] + added(before, after)


def _hit_of(path: str, text: str, found: Mapping[str, str]) -> Construct:
    line = int(found["line_number"])
    why = f"{found['issue_text'].rstrip('.')} ({found['test_id']})"
    # the line as it stands: who changes a doubtful line answers for it
    return Construct(
        RuleHit("scanner", path, line, why), (found["test_id"], text.splitlines()[line - 1].strip())
    )


# The report follows from the texts alone, and what is screened twice would start a program twice.
@lru_cache(maxsize=32)
def _bandit(texts: tuple[str, ...]) -> Mapping[str, _ScanReport]:
    with ExitStack() as stack:
        files = {}
        for text in texts:
            descriptor = os.memfd_create("scan")
            stack.callback(os.close, descriptor)
            with open(descriptor, "wb", closefd=False) as file:
                file.write(text.encode())
            files[descriptor] = text
        said = _run_bandit(list(files))
    named = {_DESCRIPTOR.format(descriptor): text for descriptor, text in files.items()}
    reports = {text: _ScanReport() for text in texts}
    for item in said["results"]:
        reports[named[item["filename"]]].found.append(item)
    for item in said["errors"]:
        reports[named[item["filename"]]].unread.append(item["reason"])
    return reports


def _run_bandit(descriptors: list[int]) -> dict[str, list[dict[str, str]]]:
    # -ll and -ii: severity and confidence of medium or more. An exit code of 1 means findings.
    command = [
        sys.executable,
        "-I",
        "-m",
        "bandit",
        "-q",
        "-f",
        "json",
        "--ignore-nosec",
        "-ll",
        "-ii",
        *map(_DESCRIPTOR.format, descriptors),
    ]
    try:
        done = subprocess.run(
            command,
            cwd="/",
            env={},
            pass_fds=descriptors,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        report: dict[str, list[dict[str, str]]] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"bandit did not work, so no source edit can be screened: {error}") from None
    return report
