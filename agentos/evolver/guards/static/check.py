"""All guards on one edit: what they find, and which of it refuses the edit by the policy."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from agentos.domain import Kind, Tier, tier_of
from agentos.evolver.guards.static.denylist import MODULES
from agentos.evolver.guards.static.growth import growth
from agentos.evolver.guards.static.installed import REFUSE, installed_findings
from agentos.evolver.guards.static.references import imports, references, texts
from agentos.evolver.guards.static.scanner import scan
from agentos.evolver.guards.static.static_eval import FileNames, read
from agentos.evolver.guards.static.tells import tells
from agentos.evolver.guards.static.weakening import hidden, lost
from agentos.evolver.policy import Screen
from agentos.evolver.screen_rules import Construct, RuleHit, added

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
