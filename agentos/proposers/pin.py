"""The proposer of pins: a dependency that broke a tool is set back to the wheels that the resource had before.

No model is asked, and nothing is fetched: what is proposed is the lock of an earlier version of the same resource,
whose wheels a person once let in and which are here. The registry takes no other lock from an evolution.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping

from agentos.domain import Layer, ResourceId, Version, kind_of
from agentos.ports import Brief, Proposal, Snapshots
from agentos.programs import LOCK_FILE
from agentos.records.runs import WRONG_ANSWER

_Contents = Callable[[ResourceId], Iterable[tuple[Version, Mapping[str, bytes]]]]
BACK_MAX = 3  # locks that are proposed, newest first


class PinProposer:
    """Implements ``ports.Proposer``; ``contents`` gives a resource's versions with their files, newest first."""

    name = "pin"

    def __init__(self, snapshots: Snapshots, contents: _Contents) -> None:
        self._snapshots = snapshots
        self._contents = contents

    def propose(self, brief: Brief) -> Iterator[Proposal]:
        """Earlier wheels for what is declared now; none where a tool does its work and gives a wrong answer."""
        path = f"{brief.resource}/{LOCK_FILE}"
        lock = self._snapshots.files(brief.base, path).get(path)
        if brief.layer not in (Layer.TOOL, Layer.SKILL) or not brief.path or lock is None:
            return
        if brief.faults and all(kind_of(fault) in WRONG_ANSWER for fault in brief.faults):
            return
        now, seen = _read(lock), {lock}
        for version, files in self._contents(brief.resource):
            earlier = files.get(path)
            if earlier is None or earlier in seen or len(seen) > BACK_MAX:
                continue
            then = _read(earlier)
            if (then.get("requires"), then.get("machine")) == (now.get("requires"), now.get("machine")):
                seen.add(earlier)
                yield _proposal(brief, version, path, earlier.decode(), _differences(now, then))


def _read(lock: bytes) -> Mapping[str, object]:
    try:
        return tomllib.loads(lock.decode())
    except ValueError:
        return {}


def _differences(now: Mapping[str, object], then: Mapping[str, object]) -> str:
    """What is set back, as "NAME 2.0 to 1.0"."""
    here, there = _versions(now), _versions(then)
    names = sorted(name for name in here.keys() | there.keys() if here.get(name) != there.get(name))
    return ", ".join(f"{name} {here.get(name, 'none')} to {there.get(name, 'none')}" for name in names)


def _versions(lock: Mapping[str, object]) -> dict[str, str]:
    wheels = lock.get("wheel")
    return {str(it.get("name")): str(it.get("version")) for it in wheels} if isinstance(wheels, list) else {}


def _proposal(brief: Brief, version: Version, path: str, text: str, said: str) -> Proposal:
    fixes = [case.task_id for case in brief.cases] + [
        seen.task.id for seen in brief.runs if not seen.run.passed
    ]
    return Proposal(
        cause=f"{brief.resource} fails with other wheels than those of its version {version.number}",
        summary=f"pin {said}, as in version {version.number}"[:200],
        operator="pin wheels",
        files={path: text},
        why_this_layer="what it depends on changed, and what it says itself did not have to",
        predicted_fixes=tuple(dict.fromkeys(fixes)),
    )
