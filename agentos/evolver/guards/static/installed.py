"""Screen rules of other distributions: they may refuse an edit or have a person asked, and let nothing pass.

A rule that is installed and cannot be applied, for whatever reason, counts as found: a rule that refuses refuses, any
other asks a person. Somebody installed it to be protected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentos.evolver.screen_rules import RuleHit
from agentos.plugins import registry
from agentos.plugins.registry import Plugin, PluginFailed

ASK, REFUSE = "ask", "refuse"
_FINDINGS_MAX = 50  # of one rule
_WHY_MAX = 300


def installed_findings(old: Mapping[str, str], new: Mapping[str, str]) -> list[RuleHit]:
    """What installed rules find in the edit: ``old`` are the base's texts of the resource, ``new`` whole new ones."""
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
