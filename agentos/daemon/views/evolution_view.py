"""What a screen or a page shows of one evolution, gathered from ledger and registry; drawn elsewhere."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentos.domain import (
    Candidate,
    Evidence,
    Evolution,
    EvolutionState,
    Kind,
    RefusalKind,
    ResourceId,
    Run,
    Snapshot,
    SupportKind,
    TrialSet,
    Verdict,
    Version,
    dataclass,
)
from agentos.errors import NotFound, to_type
from agentos.home import Home
from agentos.ledger.postgres.address import has_ledger
from agentos.ledger.reading import EvolutionRecords, Reader
from agentos.plaintext import clean
from agentos.registry.git import files_at, texts_at
from agentos.resources import parse_id

if TYPE_CHECKING:
    from agentos.evolver.policy import Probation
    from agentos.evolver.verdict.behaviour_doubts import Doubt
    from agentos.evolver.verdict.doubts import FreshWork
    from agentos.registry.skill_folders.folder import KnownFolders
    from agentos.registry.store import Registry


# Of all that a verdict says for an edit, what a person wants to know first.
_PROOF = (
    SupportKind.FIXED,
    SupportKind.ENDED,
    SupportKind.GAINED,
    SupportKind.GUARDS_KEPT,
    SupportKind.HOLD_OUT_KEPT,
)
_KEPT = {SupportKind.GUARDS_KEPT: TrialSet.GUARD, SupportKind.HOLD_OUT_KEPT: TrialSet.HOLD_OUT}
_LIVE = 200  # runs since the promotion that are looked at


@dataclass(frozen=True, slots=True)
class OpenQuestions:
    """What a person is asked about an edit that waits. ``waits``: what happens if they do not answer, "" for nothing."""

    mends: str
    doubts: Sequence[Doubt]  # each with a question; ``sides`` are named as people know them
    waits: str


@dataclass(frozen=True, slots=True)
class Scene:
    """What the screen shows, gathered by the command."""

    story: EvolutionRecords
    names: Mapping[str, str]  # task id -> the task's name
    failures: Mapping[str, str]  # run id -> why it failed
    before: Mapping[str, str]  # registry path -> text on the base
    live: Sequence[Run]  # finished runs since the promotion, newest first
    probation: Probation  # how long a promotion is watched
    asked: OpenQuestions | None = None  # of an edit that waits for a person
    beside: Sequence[Evolution] = ()  # whose edits wait too, and act on the same work

    def named(self, text: str) -> str:
        """The text with tasks called by their names; without control characters."""
        return clean(re.sub(r"task-\w+", lambda found: self._name(found[0]), text))

    def fate(self, candidate: Candidate) -> str:
        """What a candidate came to."""
        if verdict := verdict_on(self.story, candidate):
            return self.named(f"{verdict.decision.value}: {'; '.join(verdict.reasons)}")
        return self.named(f"screened out: {candidate.screened}") if candidate.screened else "not tried"

    def _name(self, task_id: str) -> str:
        return f"“{self.names[task_id]}”" if task_id in self.names else task_id


def chosen(story: EvolutionRecords) -> Candidate | None:
    """The candidate to show: the accepted one, else the last that was judged, else the first."""
    by_id = {candidate.id: candidate for candidate in story.candidates}
    wanted = story.evolution.candidate_id or (story.verdicts[-1].candidate_id if story.verdicts else "")
    return by_id.get(wanted) or (story.candidates[0] if story.candidates else None)


def verdict_on(story: EvolutionRecords, candidate: Candidate) -> Verdict | None:
    """The newest verdict on this candidate, None where it was not judged."""
    return next((item for item in reversed(story.verdicts) if item.candidate_id == candidate.id), None)


def base_text(home: Home, candidate: Candidate | None) -> dict[str, str]:
    """The files that the candidate edits, as they stood on its base."""
    if candidate is None:
        return {}
    paths = [*candidate.edit.files, *(candidate.migration.files if candidate.migration else ())]
    found = texts_at(home.registry, candidate.base.tree, paths)
    if found is None:  # who can say what is wrong takes long to import
        from agentos.registry.store import Registry

        registry = Registry(home.registry)
        found = {path: registry.files(candidate.base, path).get(path, b"") for path in paths}
    return {path: content.decode("utf-8", "replace") for path, content in found.items()}


def scene_of(home: Home, reader: Reader, story: EvolutionRecords) -> Scene:
    """All that is shown of an evolution."""
    evidence = story.evidence
    wanted = {trial.task_id for trial in story.trials} | set(evidence.task_ids if evidence else ())
    names = {task_id: reader.task(task_id).name or task_id for task_id in wanted}
    failures = {}
    for run_id in evidence.run_ids if evidence else ():
        outcome = reader.run(run_id).outcome
        failures[run_id] = outcome.reason if outcome else ""
    before = base_text(home, chosen(story))
    return Scene(
        story,
        names,
        failures,
        before,
        _live(reader, story),
        _probation(home, story.evolution),
        open_questions(home, story),
        edits_beside(reader, story) if story.evolution.state is EvolutionState.AWAITING_CONSENT else (),
    )


def edits_beside(reader: Reader, story: EvolutionRecords) -> list[Evolution]:
    """Others whose edits wait for a person: of what its failing runs used, or found by runs that used what it edits.

    Each was tried without the other.
    """
    evolution = story.evolution
    used = _used(reader, evolution)
    waiting = reader.find(Evolution, state=EvolutionState.AWAITING_CONSENT)
    return [
        other
        for other in waiting
        if other.id != evolution.id and (other.resource in used or evolution.resource in _used(reader, other))
    ]


def _used(reader: Reader, evolution: Evolution) -> set[str]:
    runs = map(reader.run, reader.get(Evidence, evolution.evidence_id).run_ids)
    return {evolution.resource, *(name for run in runs for name in run.resources)}


def open_questions(home: Home, story: EvolutionRecords) -> OpenQuestions | None:
    """As the policy asks now, which is held to at the promotion; None of an edit that does not wait for a person."""
    evolution = story.evolution
    candidate = chosen(story)
    if evolution.state is not EvolutionState.AWAITING_CONSENT or candidate is None:
        return None
    from agentos.daemon.offline import policy_of
    from agentos.evolver.guards.static.check import screened
    from agentos.evolver.policy import REEXAMINED
    from agentos.evolver.verdict.behaviour_doubts import Doubt
    from agentos.evolver.verdict.doubts import fresh_work, questions
    from agentos.evolver.verdict.pairing import judged_trials

    policy, trials = policy_of(home), judged_trials(candidate, story.trials)
    found = questions(
        candidate, trials, policy, lambda: screened(partial(_files, home), candidate, policy.screen)
    )
    if not found:  # whoever stored the reason had another policy
        found = [Doubt(RefusalKind.DOUBT, evolution.reason, evolution.reason)]
    asked = [replace(doubt, sides=_named_sides(story, doubt)) for doubt in found if doubt.asks]
    waits = ""
    if len(asked) < len(found):
        fresh = fresh_work(candidate, trials, policy)
        seen = candidate.behaviour
        comparable = policy.edition >= REEXAMINED and seen is not None and bool(seen.known)
        ends = comparable and all(doubt.compared for doubt in asked)
        waits = may_wait(fresh, evolution.resource, alone=not asked, compared=ends)
    elif (again := candidate.reexamination) is not None:
        waits = f"It was compared again with {len(again.task_ids)} new tasks that it passes; this is what they leave open."
    count = len(story.evidence.task_ids) if story.evidence else 0
    klass = story.evidence.fingerprint.klass if story.evidence else "evidence is missing"
    tasks = "1 failing task" if count == 1 else f"{count} tasks that failed alike"
    return OpenQuestions(f"{tasks} ({klass}), by {candidate.edit.summary}", asked, waits)


def may_wait(fresh: FreshWork, resource: str, *, alone: bool, compared: bool = False) -> str:
    """To a person who does not want to answer now; ``alone``: nothing else is asked of them, ``compared``: nothing that stays."""
    if alone:
        return f"It can simply wait: {fresh.missing} more checked tasks of {resource} promote it too ({fresh.so_far})."
    ends = (
        "They can refuse it, or end what is asked."
        if compared
        else "They can refuse it; what is asked stays."
    )
    return f"It can simply wait: new checked tasks of {resource} are tried with it ({fresh.so_far}). {ends}"


def _files(home: Home, snapshot: Snapshot, resource: str) -> Mapping[str, bytes]:
    found = files_at(home.registry, snapshot.tree, resource)
    if found is None:  # as in ``base_text``
        from agentos.registry.store import Registry

        found = dict(Registry(home.registry).files(snapshot, resource))
    return found


def _named_sides(story: EvolutionRecords, doubt: Doubt) -> tuple[tuple[str, str], ...]:
    edits = {item.id: f"With {item.edit.summary}" for item in story.candidates} | {"": "With this edit"}
    return tuple((edits.get(who) or who[:1].upper() + who[1:], answer) for who, answer in doubt.sides)


def grounds_beside(verdict: Verdict, asked: OpenQuestions | None) -> list[tuple[str, str]]:
    """The grounds of a verdict, without those that are asked about already."""
    hidden = set(RefusalKind) if asked else set()
    return [(kind, reason) for kind, reason in verdict.grounds if kind not in hidden]


def proof_of(story: EvolutionRecords, candidate: Candidate) -> str:
    """In a line what the trials say for an edit, and not what none of them could; "" where its verdict tells no kinds."""
    verdict = verdict_on(story, candidate)
    if verdict is None:
        return ""
    tried = {trial.set for trial in story.trials if trial.candidate_id == candidate.id}
    empty = {kind for kind, which in _KEPT.items() if which not in tried}
    if not verdict.fixed:
        empty.add(SupportKind.FIXED)
    return "; ".join(reason for kind, reason in verdict.grounds if kind in _PROOF and kind not in empty)


def _live(reader: Reader, story: EvolutionRecords) -> list[Run]:
    """Finished runs of new, checked work since the promotion, newest first."""
    evolution = story.evolution
    if not (evolution.promoted and evolution.ended_at and evolution.diagnosis):
        return []
    task_ids = story.evidence.task_ids if story.evidence else ()
    chosen_for = {reader.task(task_id).key for task_id in task_ids}
    return [
        run
        for run in reader.runs_using(evolution.diagnosis.resource, _LIVE)
        if run.started_at >= evolution.ended_at
        and run.task_key not in chosen_for
        and reader.task(run.task_id).checks
    ]


def _probation(home: Home, evolution: Evolution) -> Probation:
    """How long promotions are watched; read only where it is shown, for it imports much."""
    if evolution.state is not EvolutionState.PROBATION:
        from agentos.evolver.policy import Probation

        return Probation()
    from agentos.daemon.offline import policy_of

    return policy_of(home).probation


# --- What ``agentos registry … --json`` tells of resources, as data: for the command line and the API


_MANY = 500  # resources from which on what was found is kept for the next look


def resource_lines(home: Home, registry: Registry, kind: Kind | None = None) -> list[dict[str, Any]]:
    """Every resource that runs get, with its newest version, its pin, and a folder that differs from it."""
    stable = registry.stable()
    digests = {str(resource): digest for resource, digest in registry.digests(stable).items()}
    known, known_folders = _kept_index(home, stable.commit) if len(digests) >= _MANY else ({}, {})
    before = len(known), dict(known_folders)
    pinned, folders = registry.pinned(), folders_of(home, registry, known_folders)
    found = []
    for resource, digest in digests.items():
        if kind is not None and not resource.startswith(f"{kind}/"):
            continue
        line = known.get(resource)
        if line is None or line[0] != digest:
            version = registry.latest(parse_id(resource))
            facts = (
                (version.number, version.origin, version.created_at.timestamp(), version.reason)
                if version
                else 4 * (None,)
            )
            line = [version.digest if version else "", *facts]
            if line[0] == digest:
                known[resource] = line
        _, number, origin, time, reason = line
        found.append(
            {
                "resource": resource,
                "version": number,
                "origin": origin,
                "at": None if time is None else datetime.fromtimestamp(time, UTC),
                "reason": reason,
                "pinned": pinned.get(resource),
                "folder": folders.get(resource),
            }
        )
    if len(digests) >= _MANY and before != (len(known), known_folders):
        _keep_index(home, stable.commit, known, known_folders)
    return found


def _kept_index(home: Home, commit: str) -> tuple[dict[str, Any], KnownFolders]:
    """What was found at this very commit, and folders that were read. All of it may be lost.

    Of a resource: its digest, and number, origin, time and reason of its newest version. What does not fit the tree is
    not gone by.
    """
    try:
        kept, lines, folders = json.loads(_index(home).read_bytes())
        known = {name: (digest, stamp, tuple(paths)) for name, (digest, stamp, paths) in folders.items()}
        return (lines if kept == commit and all(len(line) == 5 for line in lines.values()) else {}), known
    except (OSError, ValueError, TypeError, AttributeError):
        return {}, {}


def _keep_index(home: Home, commit: str, lines: Mapping[str, Any], folders: KnownFolders) -> None:
    new = _index(home).with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        new.write_text(json.dumps([commit, lines, folders]), encoding="utf-8")
        new.replace(_index(home))


def _index(home: Home) -> Path:
    return home.run / "resources.json"


def version_of(registry: Registry, resource: ResourceId, number: str | None) -> Version:
    """The version, the newest where none is named. Raises NotFound."""
    version = registry.version(resource, number) if number else registry.latest(resource)
    if version is None and number:
        raise NotFound(
            f"There is no version {resource}@{number}. Try: ", to_type(f"agentos registry log {resource}")
        )
    if version is None:
        from agentos.resources import unknown

        raise unknown(resource, registry.names(registry.stable()))
    return version


def files_of(registry: Registry, resource: ResourceId, number: str | None) -> Mapping[str, bytes]:
    """Those of a version, as runs get them where none is named. Raises NotFound, also for what was retired."""
    version = version_of(registry, resource, number)
    snapshot = registry.repository.snapshot(version.commit) if number else registry.stable()
    files = registry.files(snapshot, str(resource))
    if not files:
        raise NotFound(
            f"{resource} was retired ({version.reason}). Try: ", to_type(f"agentos registry log {resource}")
        )
    return files


def resource_whole(registry: Registry, resource: ResourceId, number: str | None) -> dict[str, Any]:
    """What a version says of itself, with its files as text. Raises NotFound."""
    from agentos.registry import promotion
    from agentos.resources import examine

    version, files = version_of(registry, resource, number), files_of(registry, resource, number)
    found = examine(resource, files)
    fixed = promotion.why_fixed(registry.repository, registry.stable(), resource)
    return {
        "resource": str(resource),
        "version": version,
        "description": found.resource.description if found.resource else None,
        "settings": found.resource.settings if found.resource else None,
        "tools": found.resource.tools if found.resource else [],
        "may_evolve": not fixed,
        "why_not": fixed.reason if fixed else "",
        "faults": found.faults,
        "warnings": found.warnings,
        "files": {path: content.decode(errors="replace") for path, content in files.items()},
    }


def _watched(home: Home) -> Sequence[str]:
    """The setting ``skills``. Raises Invalid for settings that are none."""
    with suppress(OSError, ValueError):  # importing the settings takes longer than the command
        named = tomllib.loads(home.settings.read_text(encoding="utf-8-sig")).get("skills", [])
        if "AGENTOS_SKILLS" not in os.environ and isinstance(named, list):
            return list(map(str, named))
    from agentos.settings import load_settings

    return [str(place) for place in load_settings(home.settings).skills]


def folders_of(home: Home, registry: Registry, known: KnownFolders | None = None) -> Mapping[str, Any]:
    """Skill -> the folder that differs from the registry, and which side is ahead; see ``folder_differences``."""
    if not has_ledger(home.ledger):
        return {}
    from agentos.ledger.reading import Reader
    from agentos.registry.skill_folders.folder import ADOPTED, folder_differences

    named = [*_watched(home), *(item["folder"] for item in Reader(home.ledger).get_kv(ADOPTED, []))]
    places = [home.skills, *(Path(os.path.abspath(os.path.expanduser(place))) for place in named)]
    found = folder_differences(registry, places, known)
    return {str(item.skill): {"folder": str(item.folder), "ahead": item.ahead.value} for item in found}
