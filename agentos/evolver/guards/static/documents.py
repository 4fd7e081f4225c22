"""What an edit may change in the document of an agent or of an environment: what work lacked, and nothing that holds it.

A person is asked about each such edit (tier high). What nobody reads there by mistake is refused before: another model,
prompt, harness or sandbox, what an agent may ask of the kernel, tools by a pattern, a limit that is gone, or
a skill that is gone: its checks judge the work.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from agentos.domain import BUDGETS, Kind, Refusal, RefusalKind

_NAMED = {Kind.AGENT.value: ("tools", "skills"), Kind.ENVIRONMENT.value: ()}
_LIMITS = "limits"
LIMIT_GROWS = 8  # times as much as it was, at most
_PATTERN = frozenset("*?[")


def document_fault(path: str, old: str | None, new: str) -> Refusal | None:
    """Why the document at this path may not become this one; None where it may, or is of another kind."""
    kind = path.partition("/")[0]
    if kind not in _NAMED:
        return None
    if old is None:
        return Refusal(RefusalKind.SURFACE, f"an {kind} of its own is for people to add")
    before, after = tomllib.loads(old), tomllib.loads(new)
    why = next(_faults(kind, before, after), "")
    return Refusal(RefusalKind.SURFACE, why) if why else None


def _faults(kind: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    allowed = (*_NAMED[kind], _LIMITS)
    changed = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
    others = [key for key in changed if key not in allowed]
    if others:
        yield f"it changes {', '.join(others)}; only {', '.join(allowed)} may change in it"
    for key in _NAMED[kind]:
        if key in changed:
            yield from _list_faults(key, before.get(key, ["*"]), after.get(key))
    if _LIMITS in changed:
        yield from _limit_faults(before.get(_LIMITS, {}), after.get(_LIMITS, {}))


def _list_faults(key: str, before: Any, after: Any) -> Iterator[str]:
    if not isinstance(before, list) or not isinstance(after, list):
        yield f"it takes {key} away, which grants them all"
        return
    wider = [name for name in after if name not in before and _PATTERN & {*str(name)}]
    if wider:
        yield f"it grants {key} by a pattern ({wider[0]}); name each"
    gone = [name for name in before if name not in after and not _PATTERN & {*str(name)}]
    if gone and key == "skills":
        yield f"it takes out the skill {gone[0]}, and with it the checks of that skill"


def _limit_faults(before: Any, after: Any) -> Iterator[str]:
    if not isinstance(before, dict) or not isinstance(after, dict):
        yield "its limits are no table"
        return
    for key in {**before, **after}:
        was, now = before.get(key, 0), after.get(key, 0)
        if not isinstance(was, int | float) or not was:  # 0 is none
            if key in BUDGETS and now:
                yield f"it sets {key}, which would go before the budget of the settings"
            continue
        if isinstance(now, bool) or not isinstance(now, int | float) or not now > 0:
            yield f"it takes the limit of {key} away"
        elif not now <= was * LIMIT_GROWS:
            yield f"it raises {key} from {was} to {now}; {LIMIT_GROWS} times as much is the most"
