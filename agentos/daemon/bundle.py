"""What a run needs of the registry: read straight from git at the pinned commit, nothing exported.

A task that names a tool gets the harness, its agent's texts and that tool's resource; a task
without a call gets everything. Whatever is missing is the task's own fault, so it is told as a
``Fault``, never raised.
"""

from __future__ import annotations

import threading
import tomllib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from agentos.domain import Fault, Json, Kind, Limits, Snapshot, Task
from agentos.ports import Snapshots

_KEPT = 64  # snapshots whose tool names are remembered


class Unfit(Exception):
    """The task and the snapshot do not go together; ``fault`` says why."""

    def __init__(self, type: str, message: str, resource: str = "") -> None:
        self.fault = Fault(type, message, resource=resource)
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Bundle:
    """Registry path -> content, the harness' directory, and what the run may use."""

    files: Mapping[str, bytes]
    harness: str
    limits: Limits


class Bundles:
    """Makes bundles; remembers which skill has which tool, by snapshot. Thread-safe."""

    def __init__(self, snapshots: Snapshots) -> None:
        self._snapshots = snapshots
        self._tools: OrderedDict[str, dict[str, list[str]]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, task: Task, snapshot: Snapshot) -> Bundle:
        """The bundle of a task; raises Unfit, or Unavailable when the registry cannot be read."""
        agent_path = f"agent/{task.agent}"
        files = self._resource(snapshot, agent_path)
        agent = _settings(files, agent_path)
        parts = {
            kind: f"{kind}/{agent.get(kind, 'default')}" for kind in ("harness", "prompt", "environment")
        }
        for path in parts.values():
            files |= self._resource(snapshot, path)
        environment = _settings(files, parts["environment"])
        if task.call is None:
            for kind in (Kind.TOOL, Kind.SKILL, Kind.MEMORY, Kind.PROMPT):
                files |= self._snapshots.files(snapshot, kind.value)
        else:
            files |= self._snapshots.files(snapshot, self.owner(task.call.tool, snapshot))
        return Bundle(files, parts["harness"], _least(task.limits, environment.get("limits", {})))

    def owner(self, ref: str, snapshot: Snapshot) -> str:
        """The directory of the resource that a tool reference means; raises Unfit."""
        skill, _, tool = ref.rpartition("/")
        if skill:
            if self._snapshots.files(snapshot, f"skill/{skill}/tools/{tool}.py"):
                return f"skill/{skill}"
            raise Unfit("unknown_tool", f"the registry has no tool '{tool}' in a skill '{skill}'")
        for name in dict.fromkeys((ref, ref.replace("_", "-"))):
            if self._snapshots.files(snapshot, f"tool/{name}/tool.py"):
                return f"tool/{name}"
        owners = self._skill_tools(snapshot).get(ref, [])
        if len(owners) > 1:
            choices = " or ".join(f"{owner.removeprefix('skill/')}/{ref}" for owner in owners)
            raise Unfit("unknown_tool", f"several skills have a tool '{ref}': write {choices}")
        if not owners:
            raise Unfit("unknown_tool", f"the registry has no tool '{ref}'")
        return owners[0]

    def _skill_tools(self, snapshot: Snapshot) -> dict[str, list[str]]:
        with self._lock:
            if snapshot.tree in self._tools:
                return self._tools[snapshot.tree]
        found: dict[str, list[str]] = {}
        for path in sorted(self._snapshots.files(snapshot, Kind.SKILL.value)):
            parts = path.split("/")
            if len(parts) == 4 and parts[2] == "tools" and path.endswith(".py"):
                found.setdefault(parts[3].removesuffix(".py"), []).append("/".join(parts[:2]))
        with self._lock:
            self._tools[snapshot.tree] = found
            if len(self._tools) > _KEPT:
                self._tools.popitem(last=False)
        return found

    def _resource(self, snapshot: Snapshot, path: str) -> dict[str, bytes]:
        files = dict(self._snapshots.files(snapshot, path))
        if not files:
            kind, name = path.split("/")
            raise Unfit("not_found", f"the registry has no {kind} '{name}'")
        return files


def _settings(files: Mapping[str, bytes], path: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(files[f"{path}/resource.toml"].decode("utf-8"))
    except (KeyError, ValueError) as error:
        raise Unfit("not_found", f"{path}/resource.toml cannot be read: {error}", path) from None


def _least(limits: Limits, allowed: Json) -> Limits:
    """The lower of each limit; what the environment does not name is as the task says."""
    lower = {
        name: min(getattr(limits, name), allowed[name])
        for name in (field.name for field in fields(Limits))
        if isinstance(allowed, Mapping) and type(allowed.get(name)) in (int, float)
    }
    return replace(limits, **lower)
