"""What rules cost a call, and what the rules that ship stop and hold back.

    python benchmarks/bench_rules.py [--json FILE]

Cost: the median and p99 of one event under 1, the shipped, and 50 rules (the shipped ones, over and over), for calls
of several sizes. Worth: 112 unsafe and 111 good events in the style of RedCode-Exec (benchmarks/data/rules), split
into halves by a hash of their text; rules may be changed for what the dev half shows, the test half is only
counted. Beside it stands what the same patterns do to the text as it stands, without uncovering what it hides.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from agentos.domain import digest
from agentos.rules.document import RunRule, read_rule
from agentos.rules.watching import RunRules
from agentos.shipped import folder

DATA = Path(__file__).parent / "data" / "rules"
HALVES = ("dev", "test")
_CALLS = {"100 B": 1000, "10 kB": 200, "1 MB": 7}
_TOOLS = {"sh": ("shell", "command"), "py": ("python", "code"), "sql": ("query_database", "query")}


@dataclass(frozen=True, slots=True)
class Event:
    kind: str
    category: str
    content: str
    unsafe: bool

    @property
    def half(self) -> str:
        return HALVES[int(digest(["rules", self.content])[:8], 16) % 2]

    def stopped_by(self, rules: Sequence[RunRule]) -> list[str]:
        """The rules that would hold it back."""
        watch = RunRules(rules)
        if self.kind in _TOOLS:
            tool, argument = _TOOLS[self.kind]
            decision = watch.before_call(tool, {argument: self.content.replace("\\n", "\n")}, ["write"])
        elif self.kind == "get":
            decision = watch.before_change(
                "fetch", {"method": "GET", "url": self.content, "headers": {}, "body": ""}
            )
        elif self.kind == "say":
            decision = watch.before_answer(self.content)
        else:
            tool, _, args = self.content.partition(" ")
            decision = watch.before_call(tool, json.loads(args), ["external"])
        return [act.rule.name for act in decision.acts]


def events() -> list[Event]:
    return [
        Event(*line.split("\t", 2), unsafe=name == "unsafe")
        for name in ("unsafe", "good")
        for line in (DATA / f"{name}.tsv").read_text("utf-8").splitlines()
        if line and not line.startswith("#")
    ]


def shipped() -> list[RunRule]:
    paths = sorted((folder("registry") / "rules").glob("*/resource.toml"))
    return [read_rule(f"rule/{path.parent.name}/resource.toml", path.read_bytes()) for path in paths]


def worth(rules: Sequence[RunRule], *, show: bool = True) -> dict[str, Any]:
    """Share of the unsafe that is stopped, and of the good that is held back, by half."""
    found: dict[str, Any] = {}
    for half in HALVES:
        mine = [event for event in events() if event.half == half]
        unsafe = [event for event in mine if event.unsafe]
        good = [event for event in mine if not event.unsafe]
        missed = [event for event in unsafe if not event.stopped_by(rules)]
        alarms = [event for event in good if event.stopped_by(rules)]
        found[half] = {
            "unsafe": len(unsafe),
            "stopped": len(unsafe) - len(missed),
            "good": len(good),
            "false_alarms": len(alarms),
        }
        if show and half == "dev":
            for event in missed:
                print(f"    missed       {event.kind:<4} {event.content[:90]}")
            for event in alarms:
                print(f"    false alarm  {event.kind:<4} {event.content[:90]}  {event.stopped_by(rules)}")
    return found


def timed(act: Callable[[], object], calls: int) -> tuple[float, float]:
    """Median and p99 in ms."""
    taken = []
    for _ in range(calls):
        began = time.perf_counter()
        act()
        taken.append((time.perf_counter() - began) * 1000)
    taken.sort()
    return statistics.median(taken), taken[int(0.99 * len(taken))]


def cost(rules: Sequence[RunRule]) -> dict[str, tuple[float, float]]:
    fifty = [replace(rules[n % len(rules)], name=f"rule/r{n}") for n in range(50)]
    calls: Mapping[str, Mapping[str, Any]] = {
        "100 B": {"command": "pytest -q tests/daemon && ruff check . # and the usual things after that"},
        "10 kB": {"command": "echo one of many lines of a script; " * 280},
        "1 MB": {"command": "echo one of many lines of a script; " * 28_000},
    }
    simple = read_rule(
        "rule/one/resource.toml",
        b'description = "x"\non = "before_call"\nwhen = "tool == \'never\'"\nenforce = "stop"\n',
    )
    found = {}
    for size, args in calls.items():
        for name, some in (
            ("no rule", []),
            ("1 plain rule", [simple]),
            (f"the {len(rules)} that ship", rules),
            ("50 plain rules", [replace(simple, name=f"rule/p{n}") for n in range(50)]),
            ("50 of the shipped", fifty),
        ):
            watch = RunRules(some)
            found[f"{size}, {name}"] = timed(
                lambda w=watch, a=args: w.before_call("shell", a, ["write"]), _CALLS[size]
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rules = shipped()
    print(f"{platform.machine()}, Python {platform.python_version()}, {len(rules)} rules that ship\n")
    print("one event before a tool call           median ms    p99 ms")
    costs = cost(rules)
    for name, (median, p99) in costs.items():
        print(f"  {name:<36} {median:9.3f} {p99:9.3f}")
    print("\nwhat the dev half shows (the test half is only counted):")
    measured = worth(rules)
    with patch("agentos.rules.watching.uncovered", lambda text: text):
        as_it_stands = worth(rules, show=False)
    for label, numbers in (("the rules that ship", measured), ("the same, nothing uncovered", as_it_stands)):
        for half, row in numbers.items():
            stopped, alarms = row["stopped"] / row["unsafe"], row["false_alarms"] / row["good"]
            print(
                f"{label:<28} {half:<5} stopped {row['stopped']:>3} of {row['unsafe']:>3} ({stopped:.0%}), "
                f"false alarms {row['false_alarms']:>2} of {row['good']:>3} ({alarms:.0%})"
            )
    if given.json:
        given.json.write_text(
            json.dumps({"cost_ms": costs, "worth": measured, "plain": as_it_stands}, indent=1)
        )


if __name__ == "__main__":
    main()
