"""Whether an edit weakens a rule. Evolutions may propose rules and make them stricter, never weaker.

That one predicate implies another cannot be decided in general, so it is not tried: the predicate stays as it is,
letter by letter, or becomes ``(old) || (more)``. Everything else about a rule that is there may only grow stronger.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentos.errors import Invalid, Unavailable
from agentos.rules.document import STRENGTH, Enforcement, RunRule, is_rule_file, read_rule
from agentos.rules.predicate import PredicateFault, compiled


def weakened(old: Mapping[str, str], new: Mapping[str, str | None]) -> str:
    """Why the edit from ``old`` to ``new`` (registry path -> text, None: gone) is refused, "" when it weakens nothing."""
    for path, text in new.items():
        if not is_rule_file(path):
            continue
        try:
            after = read_rule(path, text.encode()) if text is not None else None
        except (Invalid, Unavailable) as error:
            return f"{path}: a rule that cannot be read holds nothing: {error}"
        if path in old and (why := _weaker(path, old[path], after)):
            return f"{path}: an evolution may not weaken a rule: {why}"
        if path not in old and after is not None and after.enforce is Enforcement.REPLACE:
            return f"{path}: a rule that writes arguments is for people to add"
    return ""


def _weaker(path: str, old: str, after: RunRule | None) -> str:
    if after is None:
        return "it is gone"
    try:
        before = read_rule(path, old.encode())
    except (Invalid, Unavailable):
        return "the rule that is there cannot be read, so nobody can tell"
    if after.on is not before.on:
        return f"it is asked at {after.on} instead of {before.on}"
    asks_instead = before.enforce is Enforcement.REFUSE and after.enforce is Enforcement.ASK
    if STRENGTH[after.enforce] < STRENGTH[before.enforce] or asks_instead:
        return f"it would {after.enforce} where it would {before.enforce}"
    if (
        before.enforce is Enforcement.REPLACE
        and after.enforce is before.enforce
        and after.replace != before.replace
    ):
        return "it writes other arguments"
    if before.acts_on_error and not after.acts_on_error:
        return "it would let pass what it cannot judge"
    if not _covers(after.when.source, before.when.source):
        return f"its predicate has to stay, or to become ({before.when.source.strip()}) || (…)"
    if not (_all_in(before.stops, after.stops) and _all_in(before.passes, after.passes)):
        return "examples are gone"
    return ""


def _covers(after: str, before: str) -> bool:
    """Whether the new predicate is the old one, or the old one or something more."""
    if after.strip() == before.strip():
        return True
    head = f"({before.strip()}) || ("
    if (
        not after.strip().startswith(head)
        or not after.strip().endswith(")")
        or "//" in after[: len(head) + 4]
    ):
        return False
    more = after.strip()[len(head) : -1]
    try:
        compiled(more)  # whole by itself, so that no parenthesis of it closes ours
    except PredicateFault:
        return False
    return True


def _all_in(before: tuple[Mapping[str, object], ...], after: tuple[Mapping[str, object], ...]) -> bool:
    return all(one in after for one in before)
