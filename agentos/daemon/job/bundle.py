"""What a run needs of the registry: read straight from git at the pinned commit, nothing exported.

A task that names a tool gets the harness, its agent's texts and that tool's resource; a task
without a call gets what its agent may have, or the part of it that fits the goal. Whatever is missing is the task's own fault, so it is told as a
``Fault``, never raised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Protocol

from agentos.daemon.job.selection import Finder, RunRequest, allowed_tools, select
from agentos.domain import (
    BUDGETS,
    Budget,
    Check,
    Json,
    KernelFault,
    Kind,
    Limits,
    ResourceId,
    Snapshot,
    Task,
    is_rule_file,
    kernel_fault,
)
from agentos.errors import Invalid, UserError
from agentos.evolver.find.feedback import named
from agentos.messages import WHEELS
from agentos.ports import Snapshots
from agentos.programs import LOCK_FILE
from agentos.resources import read
from agentos.resources.declarations import without_server_locks
from agentos.resources.documents import DOCUMENT
from agentos.rules.document import RULES_MAX, RunRule, read_rule
from agentos.taskfile import checks_of

_WHEELS_MB = 48  # of the 64 that /snapshot has

CHECKS = "checks"  # folder of a skill, beside tools/
_CHECK_SUFFIXES = (".yaml", ".yml", ".json")


class Mismatch(Exception):
    """The task and the snapshot do not go together; ``fault`` says why."""

    def __init__(self, kind: KernelFault, message: str, resource: str = "") -> None:
        self.fault = kernel_fault(kind, message, resource=resource)
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Bundle:
    """Registry path -> content, the harness' directory, and what the run may use.

    ``agent`` holds the agent's settings; ``command`` what to start where the harness is any program.
    """

    files: Mapping[str, bytes]
    harness: str
    limits: Limits
    agent: Mapping[str, Json] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    rules: tuple[RunRule, ...] = ()  # of the home, and of the skills among the files
    checks: tuple[Check, ...] = ()  # that ship with a skill: they judge the run, and it never sees them
    more_skills: int = 0  # that its agent may have and the goal did not bring: the run can look for them

    @property
    def resources(self) -> frozenset[str]:
        """Those that it has files of, as kind/name."""
        return frozenset("/".join(path.split("/")[:2]) for path in self.files)


class Tools(Snapshots, Protocol):
    """Snapshots that also know where a tool lies, and what is alike (the registry)."""

    def find_tool(self, snapshot: Snapshot, reference: str) -> str:
        """The registry path of the tool's file; raises UserError."""
        ...

    def digests(self, snapshot: Snapshot) -> Mapping[ResourceId, str]:
        """Every resource with the digest of its files."""
        ...

    def wheels_of(self, files: Mapping[str, bytes]) -> Mapping[str, Mapping[str, bytes]]:
        """kind/name -> the modules that the locks among these files stand for; raises Unavailable."""
        ...


def bundle_of(registry: Tools, task: Task, snapshot: Snapshot, finder: Finder | None = None) -> Bundle:
    """The bundle of a task; raises Mismatch, or Unavailable when the registry cannot be read.

    ``finder`` chooses by the goal what a task without a call gets, where its agent may have much.
    """
    files = _files(registry, snapshot, Kind.AGENT, task.agent)
    agent = _settings(ResourceId(Kind.AGENT, task.agent), files)
    for kind in (Kind.HARNESS, Kind.PROMPT):
        files |= _files(registry, snapshot, kind, agent[kind])
    environment = _files(registry, snapshot, Kind.ENVIRONMENT, agent[Kind.ENVIRONMENT])
    limits = _settings(ResourceId(Kind.ENVIRONMENT, agent[Kind.ENVIRONMENT]), environment)["limits"]
    files |= environment
    wanted, more_skills = _wanted(registry, task, RunRequest(snapshot, task.goal, task.agent, agent), finder)
    for prefix in wanted:
        files |= registry.files(snapshot, prefix)
    checks = _checks_of_skills(task, agent, files)
    rules = _rules({**registry.files(snapshot, Kind.RULE.value), **files})
    files = {path: content for path, content in files.items() if not is_kernel_file(path)}
    files = with_wheels(registry, files)
    size = sum(len(content) for path, content in files.items() if f"/{WHEELS}/" in path) >> 20
    if size > _WHEELS_MB:
        raise Mismatch(
            KernelFault.LIMIT, f"its tools bring {size} MB of modules, a box has room for {_WHEELS_MB}"
        )
    harness = ResourceId(Kind.HARNESS, agent[Kind.HARNESS])
    return Bundle(
        files=files,
        harness=str(harness),
        limits=_least(_least(task.limits, limits), agent["limits"]),
        agent=agent,
        command=tuple(_settings(harness, registry.files(snapshot, str(harness)))["command"]),
        checks=checks,
        more_skills=more_skills,
        rules=rules,
    )


def is_kernel_file(path: str) -> bool:
    """Whether it is for the kernel alone: what judges a run, and what it is held to, no box ever sees."""
    return is_check_file(path) or is_rule_file(path)


def _rules(files: Mapping[str, bytes]) -> tuple[RunRule, ...]:
    """A rule that cannot be read lets no run begin. Raises Mismatch, and Unavailable without the library."""
    found = sorted(path for path in files if is_rule_file(path))
    if len(found) > RULES_MAX:
        raise Mismatch(KernelFault.RULE, f"there are {len(found)} rules, a run may have {RULES_MAX}")
    try:
        return tuple(read_rule(path, files[path]) for path in found)
    except Invalid as error:
        raise Mismatch(KernelFault.RULE, f"a rule cannot be read: {error}") from None


def is_check_file(path: str) -> bool:
    """Whether the registry path is a file of checks that ships with a skill. No box ever sees one."""
    if not path.endswith(_CHECK_SUFFIXES):  # most are spared being taken apart
        return False
    parts = PurePosixPath(path).parts
    return len(parts) > 3 and parts[0] == Kind.SKILL and parts[2] == CHECKS


def of_skill(skill: str, files: Mapping[str, bytes]) -> tuple[Check, ...]:
    """The checks that ``skill/NAME`` ships, each saying so. Raises Invalid."""
    found: list[Check] = []
    for path in sorted(files):
        if is_check_file(path) and path.startswith(f"{skill}/"):
            found += named(checks_of(files[path], path), skill)
    return tuple(found)


def _checks_of_skills(task: Task, agent: Mapping[str, Json], files: Mapping[str, bytes]) -> tuple[Check, ...]:
    """Of the skill whose tool the task calls; without a call, of those that its agent names outright."""
    skills = sorted({"/".join(path.split("/")[:2]) for path in files if is_check_file(path)})
    if task.call is None:
        skills = [name for name in skills if name.split("/")[1] in agent["skills"]]
    try:
        return tuple(check for skill in skills for check in of_skill(skill, files))
    except Invalid as error:
        raise Mismatch(KernelFault.GRADER, f"the checks of a skill cannot be read: {error}") from None


def with_wheels(registry: Tools, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files, and with them the modules that their tools bring. Raises Unavailable."""
    if not any(path.endswith(f"/{LOCK_FILE}") for path in files):
        return dict(files)
    brought = {
        f"{resource}/{WHEELS}/{name}": content
        for resource, modules in registry.wheels_of(without_server_locks(files)).items()
        for name, content in modules.items()
    }
    return {**files, **brought}


def asked_host(registry: Tools, task: Task, snapshot: Snapshot) -> tuple[str, tuple[str, ...]]:
    """The sandbox that the task's environment names, or "auto", and the labels; a task that is unfit asks for nothing."""
    try:
        agent = _settings(
            ResourceId(Kind.AGENT, task.agent), _files(registry, snapshot, Kind.AGENT, task.agent)
        )
        name = agent[Kind.ENVIRONMENT]
        files = _files(registry, snapshot, Kind.ENVIRONMENT, name)
        environment = _settings(ResourceId(Kind.ENVIRONMENT, name), files)
        return str(environment["sandbox"]), tuple(map(str, environment["labels"]))
    except Mismatch:
        return "auto", ()


def _wanted(
    registry: Tools, task: Task, wish: RunRequest, finder: Finder | None
) -> tuple[Sequence[str], int]:
    """What the run gets beside what its agent consists of: registry paths, each with what is below.

    And of how many skills more it may ask.
    """
    if task.call is None:
        names = registry.names(wish.snapshot)
        selection = select(wish, names, finder)
        if selection.missing:
            missing = ", ".join(map(str, selection.missing))
            raise Mismatch(
                KernelFault.NOT_FOUND,
                f"the agent '{task.agent}' names {missing}, which the registry does not have",
            )
        brought = allowed_tools(wish, names, _texts_of_skills(registry, wish, selection.resources))
        paths = [
            f"{found}/{DOCUMENT}" if found.kind is Kind.AGENT else str(found)
            for found in sorted({*selection.resources, *brought})
        ]
        return paths, selection.more_skills
    try:
        path = registry.find_tool(wish.snapshot, task.call.tool)
    except UserError as error:
        raise Mismatch(KernelFault.UNKNOWN_TOOL, str(error)) from None
    return ("/".join(path.split("/")[:2]),), 0


def _texts_of_skills(registry: Tools, wish: RunRequest, resources: Sequence[ResourceId]) -> list[str]:
    paths = [f"{found}/SKILL.md" for found in resources if found.kind is Kind.SKILL]
    return [registry.files(wish.snapshot, path).get(path, b"").decode("utf-8", "replace") for path in paths]


def _files(registry: Tools, snapshot: Snapshot, kind: Kind, name: str) -> dict[str, bytes]:
    files = dict(registry.files(snapshot, f"{kind}/{name}"))
    if not files:
        raise Mismatch(KernelFault.NOT_FOUND, f"the registry has no {kind} '{name}'")
    return files


def _settings(resource: ResourceId, files: Mapping[str, bytes]) -> Mapping[str, Json]:
    try:
        return _settings_of(resource, tuple(files.items()))
    except Invalid as error:
        raise Mismatch(KernelFault.NOT_FOUND, str(error), str(resource)) from None


@lru_cache(maxsize=32)
def _settings_of(resource: ResourceId, files: tuple[tuple[str, bytes], ...]) -> Mapping[str, Json]:
    """They follow from the files alone, which the registry gives out as the same objects from run to run."""
    return read(resource, dict(files)).settings


def with_default(limits: Limits, default: Budget) -> Limits:
    """The limits, with the default budget where they set none."""
    return replace(
        limits,
        calls=limits.calls or default.calls,
        tokens=limits.tokens or default.tokens,
        cost_usd=limits.cost_usd or default.usd,
    )


def _least(limits: Limits, allowed: Mapping[str, Json]) -> Limits:
    """The lower of each limit; what ``allowed`` does not name is as it was, and a budget of 0 is none."""
    lower = {
        name: min(filter(None, pair)) if name in BUDGETS and any(pair) else min(pair)
        for name, most in allowed.items()
        if (pair := (getattr(limits, name), most))
    }
    return replace(limits, **lower)
