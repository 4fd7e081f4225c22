"""What a guard finds, and the rules by name. docs/understand/guards.md explains each to a user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

# Rule -> what it says, as it stands in a refusal.
RULES = {
    "import": "an import that is not allowed",
    "dynamic": "code made or loaded while it runs",
    "reflection": "names put together, or objects reached around their names",
    "process": "processes, signals and the end of the interpreter",
    "network": "the network",
    "inside": "environment, descriptors, and paths outside the workspace",
    "sdk": "what the sdk keeps to itself, or an sdk made other than it is",
    "text": "a text that is not what it looks like",
    "record": "a step, a failure or a log line that is no longer recorded",
    "checks": "a raise, an assertion or a limit that is gone",
    "except": "any error at all that is caught, or dropped on the way out",
    "swallow": "an error of one kind that goes no further",
    "hooks": "a hook that no longer runs",
    "growth": "size and complexity",
    "scanner": "a finding of bandit",
    "tell": "the clock, times of files, the machine, folders above, earlier calls, chance: what may tell a trial from a live run",
}


@dataclass(frozen=True, slots=True)
class RuleHit:
    """One thing that an edit brings in or takes away. ``line`` is the candidate's, 0 where it has none."""

    rule: str
    path: str
    line: int
    why: str
    effect: str = ""  # "refuse" or "ask" of a plug-in's rule; "": as the policy says of the rule

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}{': ' if where else ''}{self.why} ({self.rule})"


@dataclass(frozen=True, slots=True)
class Construct:
    """A construct in one version. Equal keys are the same construct, wherever it stands."""

    finding: RuleHit
    key: Hashable


def added(before: Iterable[Construct], after: Iterable[Construct]) -> list[RuleHit]:
    """What the candidate has more of than the base: what was there before is not the edit's fault."""
    left = Counter((seen.finding.rule, seen.key) for seen in before)
    found = []
    for seen in after:
        key = (seen.finding.rule, seen.key)
        if left[key]:
            left[key] -= 1
        else:
            found.append(seen.finding)
    return found
