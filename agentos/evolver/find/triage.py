"""Triage: which failures have become evidence?

A fingerprint opens an evolution when it recurs (or a person flagged a run), when no other
evolution is at work on the same file, and when something is new since the last attempt. After
``attempts`` without success the circuit is open: it is reported, not tried again.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import takewhile

from agentos.domain import (
    AT_WORK,
    IMPORT,
    MUTED_CURSOR,
    PROMOTED_STATES,
    WITHOUT_SUCCESS,
    Evidence,
    Evolution,
    EvolutionState,
    Feedback,
    Fingerprint,
    RefusalKind,
    Result,
    Run,
    Share,
    Sighting,
    Task,
    digest,
    new_id,
    work_of,
)
from agentos.errors import Conflict, NotFound, UserError
from agentos.evolver.find import HoldBackContext, TriageContext
from agentos.evolver.policy import MinePolicy
from agentos.evolver.states import ReadContext
from agentos.ports import Cursor, Evolvable, ObservedRun
from agentos.resources import parse_id

CURSOR = "triage"
CLOSED = "mended:"  # cursors: sightings of a fingerprint up to here need no further look


@dataclass(frozen=True, slots=True)
class RipeFailure:
    """A failure that may become evidence now: its newest sighting of each distinct task."""

    fingerprint: Fingerprint
    sightings: tuple[Sighting, ...]
    fingerprints: frozenset[str]  # of all its sightings: lone failures of one file are several


def triage(parts: TriageContext) -> list[Evolution]:
    """Seal evidence for every failure that is ripe, and open one evolution for each.

    Two processes may do this at once (the daemon, `agentos evolve`): the one that finds the cursor
    moved stops, because what it read may have been opened by the other.
    """
    position = parts.cursor.read(CURSOR)
    opened: list[Evolution] = []
    at_work = parts.records.find(Evolution, state=AT_WORK)
    busy = {_file(_evidence_fingerprint(parts, item)) for item in at_work}
    # Faults of the environment, the task or the call are quarantined: no edit of a resource mends them.
    mendable = {klass.name for klass in parts.taxonomy if klass.evolvable}
    end = parts.records.last_sighting()
    sightings = parts.records.newest_sightings(mendable, parts.policy.look_back.sightings, CLOSED)
    quiet = {it for it in {item.fingerprint.id for item in sightings} if is_muted(parts.cursor, it)}
    withdrawn = _withdrawn(parts)
    sightings = [
        item for item in sightings if item.fingerprint.id not in quiet and item.run_id not in withdrawn
    ]
    hidden = dict.fromkeys(item for item in sightings if _is_hidden(parts, item))
    seen = [item for item in sightings if item not in hidden]
    for ripe in [*_ripe(seen, parts.policy.mine, parts.now()), *_starved(parts, seen, hidden)]:
        if _file(ripe.fingerprint) in busy or is_retired(parts.evolvable, ripe.fingerprint.resource):
            continue
        past = _past(parts, ripe.fingerprint)
        if not (unmended := _unmended(ripe.sightings, past, parts.now())):
            if past[-1].state is not EvolutionState.CANCELLED:
                _close(parts, ripe, end)
            continue
        if not _worth_trying(ripe, past, parts):
            continue
        try:
            opened.append(_open(parts, ripe, unmended, position + len(opened)))
        except Conflict:
            break
        busy.add(_file(ripe.fingerprint))
    return opened


def settled(parts: TriageContext, *, busy: bool, first_seen: datetime | None, quiet_s: float) -> bool:
    """May triage run now? Tasks come first: it waits until they are done, but not for ever."""
    rules = parts.policy.mine
    if first_seen is not None and parts.now() - first_seen > timedelta(seconds=rules.max_wait_s):
        return True
    return not busy and quiet_s >= rules.settle_s


def is_retired(evolvable: Evolvable, name: str) -> bool:
    """Whether the resource that failed was taken out of the registry since: nothing is left that an edit could mend.

    What never was there is not: an imported run may name it, and a task that was reported. It may still be made.
    """
    try:
        resource = parse_id(name)
    except UserError:
        return False
    why = evolvable.why_fixed(resource)
    is_there = why is None or why.kind is not RefusalKind.NO_RESOURCE
    return not is_there and bool(evolvable.versions(resource))


def _file(fingerprint: Fingerprint) -> str:
    """The file (or resource) that a fingerprint points to: two evolutions never work on one at once."""
    return fingerprint.signature.split(" | ")[0] or fingerprint.resource


def places(parts: TriageContext, evolution: Evolution) -> frozenset[str]:
    """What it works on, as far as that is known: the failure, and the file and the resource it lies in."""
    found = {evolution.fingerprint_id, evolution.resource}
    with suppress(NotFound):
        fingerprint = _evidence_fingerprint(parts, evolution)
        found |= {_file(fingerprint), fingerprint.resource}
    return frozenset(found - {""})


def _evidence_fingerprint(parts: TriageContext, evolution: Evolution) -> Fingerprint:
    return parts.records.get(Evidence, evolution.evidence_id).fingerprint


def _ripe(sightings: Sequence[Sighting], rules: MinePolicy, now: datetime) -> list[RipeFailure]:
    """Fingerprints with enough weight, heaviest first; lone failures of one file count together."""
    groups: dict[str, list[Sighting]] = {}
    for sighting in sightings:
        groups.setdefault(sighting.fingerprint.id, []).append(sighting)
    heavy: list[list[Sighting]] = []
    light: list[list[Sighting]] = []
    for group in groups.values():
        (heavy if _weighs_enough(group, rules, now) else light).append(group)
    files: dict[str, list[Sighting]] = {}
    for group in light:
        files.setdefault(_file(group[0].fingerprint), []).extend(group)
    heavy += [group for group in files.values() if _weighs_enough(group, rules, now)]
    heavy.sort(key=lambda group: (-len(group), group[0].seen_at))
    return [_newest(group) for group in heavy]


def _withdrawn(parts: TriageContext) -> set[str]:
    """Runs as words graded them that were taken back since."""
    said = parts.records.newest(Feedback, parts.policy.look_back.sets)
    if not said:
        return set()
    # Checks are models of pydantic, and commands that list failures do without.
    from agentos.evolver.find.feedback import taken_back

    opposed = taken_back(said)
    return {word.regraded_id for word in said if word.id in opposed}


def _is_hidden(parts: TriageContext, sighting: Sighting) -> bool:
    return sighting.hidden and not parts.cursor.read(GIVEN + sighting.task_key)


def _starved(
    parts: TriageContext, seen: Sequence[Sighting], hidden: Collection[Sighting]
) -> list[RipeFailure]:
    """Failures that recur only together with hidden tasks: with the oldest of these, as few as will do.

    Where there are enough, as many as it takes to hold some of the evidence back again. What was seen before
    the failure was mended counts for nothing.
    """
    rules, now = parts.policy.mine, parts.now()
    wanted = max(rules.recurrence, parts.policy.evidence.held_back)
    found: list[RipeFailure] = []
    for name in dict.fromkeys(item.fingerprint.id for item in hidden):
        alike = [item for item in (*seen, *hidden) if item.fingerprint.id == name]
        fresh = _unmended(alike, _past(parts, alike[-1].fingerprint), now)
        group = [item for item in fresh if item not in hidden]
        if _weighs_enough(group, rules, now):
            continue
        # a task is given with all its failures: one that failed twice recurs, as where it is not hidden
        room = max(0, wanted - len({item.task_key for item in group}))
        given = {item.task_key for item in _of_each_task([item for item in fresh if item in hidden])[:room]}
        group += [item for item in fresh if item in hidden and item.task_key in given]
        if _weighs_enough(group, rules, now):
            found.append(_newest(group))
    return found


def _weighs_enough(group: Sequence[Sighting], rules: MinePolicy, now: datetime) -> bool:
    if any(sighting.flagged for sighting in group):
        return True
    weight = sum(
        0.5 ** (max((now - sighting.seen_at).total_seconds(), 0.0) / 86_400 / rules.half_life_days)
        for sighting in group
    )
    return len({sighting.run_id for sighting in group}) >= rules.recurrence and weight >= rules.min_weight


def _of_each_task(group: Sequence[Sighting]) -> list[Sighting]:
    """The newest of each distinct task, oldest first."""
    ordered = sorted(group, key=lambda item: (item.seen_at, item.flagged))
    by_key = {sighting.task_key: sighting for sighting in ordered}
    return sorted(by_key.values(), key=lambda item: item.seen_at)


def _newest(group: Sequence[Sighting]) -> RipeFailure:
    latest = _of_each_task(group)
    return RipeFailure(
        latest[-1].fingerprint, tuple(latest), frozenset(item.fingerprint.id for item in group)
    )


def _past(parts: TriageContext, fingerprint: Fingerprint) -> Sequence[Evolution]:
    """The evolutions of a failure, oldest first; of those before a success nobody asks any more."""
    last = parts.records.newest(Evolution, 1, fingerprint_id=fingerprint.id)
    if last and last[0].state not in WITHOUT_SUCCESS:
        return last
    found = parts.records.newest(
        Evolution, parts.policy.look_back.same_failure, fingerprint_id=fingerprint.id
    )
    return [*takewhile(lambda item: item.state not in PROMOTED_STATES, found)][::-1]


def _unmended(sightings: Sequence[Sighting], past: Sequence[Evolution], now: datetime) -> Sequence[Sighting]:
    """What was seen since its last evolution, if that ended with success: what failed before passes now. None: it is mended.

    Of one that the machinery cut short all of it counts again, as soon as anything new is seen.
    """
    last = past[-1] if past else None
    if last is None or last.ended_at is None or last.state in WITHOUT_SUCCESS | AT_WORK:
        return sightings
    new = _since(last, sightings, now)
    return sightings if new and last.state is EvolutionState.CANCELLED else new


def _since(last: Evolution, sightings: Sequence[Sighting], now: datetime) -> Sequence[Sighting]:
    """What was seen since the evolution ended.

    One whose end lies ahead ended by a clock that was put back: what is not ahead was seen since, or is looked at again.
    """
    if last.ended_at is None:
        return sightings
    if last.ended_at > now:
        return [item for item in sightings if item.seen_at <= now]
    return [item for item in sightings if item.seen_at > last.ended_at]


def _close(parts: TriageContext, ripe: RipeFailure, end: int) -> None:
    """What was seen of it up to here is not read again."""
    for name in ripe.fingerprints:
        with suppress(Conflict):  # another process has looked further already
            parts.cursor.advance(CLOSED + name, end, [])


def _worth_trying(ripe: RipeFailure, past: Sequence[Evolution], parts: TriageContext) -> bool:
    if not past:
        return True
    last = past[-1]
    if last.state is EvolutionState.CIRCUIT_BROKEN or last.is_closed:
        return False
    since = _since(last, ripe.sightings, parts.now())
    if last.state not in WITHOUT_SUCCESS:
        return bool(since)
    sealed = [parts.records.get(Evidence, item.evidence_id) for item in past]
    tried = {task_id for evidence in sealed for task_id in evidence.task_ids}
    keys = {task.key for task in parts.tasks(tuple(tried))} if since else set()
    if all(item.task_key in keys for item in since) and not _changed_since(last, parts):
        return False
    if len([item for item in past if item.state in WITHOUT_SUCCESS]) >= parts.policy.mine.attempts:
        _break_circuit(parts, last, ripe)
        return False
    return True


def _changed_since(evolution: Evolution, parts: TriageContext) -> bool:
    """Has the resource at fault got another content since that attempt?"""
    if evolution.diagnosis is None or evolution.state is EvolutionState.ROLLED_BACK:
        return False
    place = evolution.diagnosis.path or evolution.diagnosis.resource  # "" is all of the registry
    then = parts.snapshots.files(evolution.base, place)
    return dict(then) != dict(parts.snapshots.files(parts.snapshots.stable(), place))


def _break_circuit(parts: TriageContext, last: Evolution, ripe: RipeFailure) -> None:
    broken = parts.opened(last.evidence_id, ripe.fingerprint.id)
    parts.move(
        broken,
        EvolutionState.CIRCUIT_BROKEN,
        f"{parts.policy.mine.attempts} evolutions of this failure ended without success; "
        f"`agentos evolution retry {last.id}` tries once more",
        end=True,
    )


def _open(parts: TriageContext, ripe: RipeFailure, sightings: Sequence[Sighting], position: int) -> Evolution:
    chosen = sightings[-parts.policy.evidence.max_tasks :]
    run_ids = tuple(item.run_id for item in chosen)
    task_ids = tuple(item.task_id for item in chosen)
    evidence = Evidence(
        id=new_id("evd"),
        fingerprint=ripe.fingerprint,
        run_ids=run_ids,
        task_ids=task_ids,
        sealed_at=parts.now(),
        sha256=digest([ripe.fingerprint, run_ids, task_ids]),
    )
    given = [item for item in chosen if _is_hidden(parts, item)]
    evolution = replace(
        parts.opened(evidence.id, ripe.fingerprint.id),
        given=tuple(item.task_id for item in given),
    )
    said = {"sha256": evidence.sha256, "evolution": evolution.id}
    note = ("evidence.sealed", evidence.id, said)
    if given:  # first of all: whatever a kill leaves of this, it is on record
        told = {"evolution": evolution.id, "tasks": list(evolution.given), "of": len(chosen)}
        parts.audit.note("hold_out.gave_way", evidence.id, told)
    # Before anybody is shown it: after a kill in between it must be no hold-out's any more.
    for item in given:
        parts.cursor.advance(GIVEN + item.task_key, 1, [])
    parts.cursor.advance(CURSOR, position + 1, [evidence, evolution], after=position, note=note)
    return evolution


# --- failures that a person does not want to have tried ----------------------------------------


def is_muted(cursor: Cursor, fingerprint_id: str) -> bool:
    """Whether no evolution may be opened for it."""
    return cursor.read(f"{MUTED_CURSOR}{fingerprint_id}") % 2 == 1


def mute(cursor: Cursor, fingerprint_id: str, principal: str, reason: str) -> None:
    """Open no evolution for it from now on; what is under way goes on. Raises Conflict where it is so already."""
    _turn(cursor, fingerprint_id, principal, reason, muted=True)


def unmute(cursor: Cursor, fingerprint_id: str, principal: str, reason: str) -> None:
    """Evolutions may be opened for it again. Raises Conflict where it is not muted."""
    _turn(cursor, fingerprint_id, principal, reason, muted=False)


def _turn(cursor: Cursor, fingerprint_id: str, principal: str, reason: str, *, muted: bool) -> None:
    name = f"{MUTED_CURSOR}{fingerprint_id}"
    now = cursor.read(name)
    if (now % 2 == 1) is muted:
        raise Conflict(f"{fingerprint_id} is muted already." if muted else f"{fingerprint_id} is not muted.")
    event = "failure.muted" if muted else "failure.unmuted"
    note = (event, fingerprint_id, {"principal": principal, "reason": reason})
    cursor.advance(name, now + 1, [], after=now, note=note)


# --- Which of the failing tasks no proposer is shown, and which runs of the others it may see
# From ``held_back`` failing tasks on, one of each so many stays hidden: an edit that fits what was shown and
# not what the tasks have in common fails on these. Which ones is decided by a keyed hash of the work under the
# home's consent key, so that nobody who only writes tasks can foresee or choose it. The order is the same for
# all evolutions of a home: work that was hidden once is the first to be hidden again.

GIVEN = "given:"  # cursors: the hold-out gave work of this key away, for good


def to_hide(parts: HoldBackContext, task_ids: Sequence[str]) -> tuple[str, ...]:
    """Of these failing tasks those that no proposer may see; none where there are too few.

    Work is hidden as a whole: who is shown one of two tasks that ask for the same is shown both.
    """
    every = parts.policy.evidence.held_back
    works: dict[str, list[Task]] = {}
    for task in parts.tasks(tuple(task_ids)):
        works.setdefault(work_of(task), []).append(task)
    count = len(works) // every if every else 0
    order = sorted(works.values(), key=lambda same: min(_place(parts.consent_key, task.key) for task in same))
    chosen = {task.id for same in order[:count] for task in same}
    return tuple(task_id for task_id in task_ids if task_id in chosen)


def shown_part(evidence: Evidence, hidden: Sequence[str]) -> Evidence:
    """The evidence without what is hidden: all that a diagnosis, a brief or a review may be made of."""
    pairs = zip(evidence.run_ids, evidence.task_ids, strict=True)
    shown = [(run_id, task_id) for run_id, task_id in pairs if task_id not in hidden]
    run_ids, task_ids = (tuple(side) for side in zip(*shown, strict=True)) if shown else ((), ())
    return replace(evidence, run_ids=run_ids, task_ids=task_ids)


def is_open(parts: ReadContext, run: Run) -> bool:
    """Whether it may be shown: its work never was in the hold-out, or was given away by it."""
    return run.share is Share.OPEN or bool(parts.cursor.read(GIVEN + run.task_key))


def _place(key: bytes, task_key: str) -> bytes:
    return hmac.digest(key, f"held-back:{task_key}".encode(), "sha256")


def runs_of(parts: ReadContext, tasks: Sequence[Task]) -> tuple[ObservedRun, ...]:
    """Open live runs of these tasks' work: first the failing ones of all, then those that pass; each newest first."""
    most = parts.policy.look_back.observed  # a passing one is kept beside failing ones where there is any
    failing: list[ObservedRun] = []
    passing: list[ObservedRun] = []
    for task in tasks:
        found: list[ObservedRun] = []
        for run in parts.journal.runs_of(task.key, parts.policy.look_back.shown):
            if is_open(parts, run) and run.outcome is not None and run.sandbox != IMPORT:
                found.append(ObservedRun(task, run, tuple(parts.journal.steps(run.id))))
        passed = [seen for seen in found if seen.run.passed][:most]
        failed = [seen for seen in found if _failed(seen)][: most - bool(passed)]
        failing += failed
        passing += passed[: most - len(failed)]
    return (*failing, *passing)


def _failed(seen: ObservedRun) -> bool:
    outcome = seen.run.outcome
    return outcome is not None and outcome.result in (Result.FAILED, Result.TIMEOUT, Result.BUDGET)
