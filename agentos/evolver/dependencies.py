"""Every port of the pipeline in one record, for whoever wires it: the daemon, an offline command, a test.

No stage knows it. Each stage says in its face (``find/__init__.py`` and so on) what it needs, as a Protocol that
this record fits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from agentos.benches import Benches
from agentos.domain import (
    RUNNING_STATES,
    Candidate,
    Decision,
    Evolution,
    EvolutionEnding,
    EvolutionState,
    Kind,
    Layer,
    Refusal,
    RefusalKind,
    SafetyRate,
    Snapshot,
    Task,
    Trial,
    Verdict,
    digest,
    is_rule_file,
    new_id,
)
from agentos.errors import Conflict, ErrorKind, NotFound, Unavailable
from agentos.evolver.find import FailureClass
from agentos.evolver.guards.assurance.dynamic import measure
from agentos.evolver.guards.static.check import screened
from agentos.evolver.memory import MigrationResult
from agentos.evolver.policy import Policy
from agentos.evolver.propose.validation import is_on
from agentos.evolver.safety_probes import ExecutorWith, SafetyProbe
from agentos.evolver.verdict.gates import judged_rates
from agentos.evolver.verdict.judge import judge
from agentos.evolver.verdict.pairing import judged_trials
from agentos.ports import (
    Adviser,
    Audit,
    Blobs,
    CandidateStore,
    Cursor,
    Evolvable,
    Executor,
    Journal,
    Proposer,
    Records,
    Replayer,
    Snapshots,
)
from agentos.rules.document import weakened

# As ``promote.ProbeContext.load`` and ``memory.MigrationContext.migrate``.
Load = Callable[[Mapping[str, bytes], Sequence[str]], Sequence[str]]
Migrate = Callable[[Mapping[str, bytes], str, Mapping[str, str]], MigrationResult]


def _needs_daemon(what: str) -> Callable[..., Any]:
    """Stands for what only the daemon can do."""

    def refuse(*_: object) -> Any:
        raise Unavailable(f"{what} the daemon; type `agentos daemon start`.")

    return refuse


_NO_LOAD, _NO_MIGRATE = _needs_daemon("Tools are loaded in"), _needs_daemon("Memories are migrated in")
_NO_EXECUTOR, _NO_IMAGE = _needs_daemon("Suites and probes run in"), _needs_daemon("Sandboxes are known to")

_GONE = EvolutionState.ROLLED_BACK


@dataclass(slots=True)
class Dependencies:
    """Wired by the daemon with the real adapters, by tests with fakes.

    Nothing sets a field after that. It is not frozen because a Protocol's attribute can only be fitted by one that
    can be set.
    """

    snapshots: Snapshots
    candidates: CandidateStore
    evolvable: Evolvable
    records: Records
    journal: Journal
    cursor: Cursor
    audit: Audit
    blobs: Blobs
    executor: Executor
    replayer: Replayer
    proposers: Mapping[Layer, tuple[Proposer, ...]]
    policy: Policy
    taxonomy: tuple[FailureClass, ...]
    consent_key: bytes
    now: Callable[[], datetime]
    load: Load = _NO_LOAD
    migrate: Migrate = _NO_MIGRATE
    reviewer: Adviser | None = None
    executor_with: ExecutorWith = _NO_EXECUTOR
    safety_probes: tuple[SafetyProbe, ...] = ()
    # what boxes of a sandbox are made of now, as Trial.image
    image_of: Callable[[str], str] = _NO_IMAGE
    # whether the agent may ask one on the snapshot
    has_model: Callable[[Snapshot, str], bool] = lambda *_: False
    # why trials of that worker count for nothing, "" where they do
    distrusted: Callable[[str], str] = lambda _: ""
    benches: Benches | None = None  # where edits of tools are tried beside what was shown; None: nowhere
    winners: dict[str, tuple[str, Layer]] = field(default_factory=dict)  # as ``HistoryContext.winners``

    def evolution(self, evolution_id: str) -> Evolution:
        """The evolution's present state; raises NotFound."""
        return self.records.get(Evolution, evolution_id)

    def opened(self, evidence_id: str, fingerprint_id: str, reason: str = "") -> Evolution:
        """One against what is stable now; not stored yet."""
        return Evolution(
            id=new_id("evo"),
            evidence_id=evidence_id,
            fingerprint_id=fingerprint_id,
            state=EvolutionState.MINED,
            base=self.snapshots.stable(),
            reason=reason,
            created_at=self.now(),
        )

    def tasks(self, ids: tuple[str, ...]) -> list[Task]:
        """The tasks with these ids, in this order."""
        return [self.journal.task(task_id) for task_id in ids]

    def screened(self, candidate: Candidate) -> Refusal | None:
        """Why the guards of sources want a person to look at the edit; None where they do not."""
        return screened(self.snapshots.files, candidate, self.policy.screen)

    def outgrown(self, candidate: Candidate, verdict: Verdict) -> Refusal | None:
        """Why the policy of now would not promote what another one let pass; None where it would."""
        if verdict.policy_sha256 == self.policy.sha256:
            return None
        surface = (*self.policy.surface.allow, *self.policy.surface.searched)
        outside = [path for path in candidate.edit.files if not is_on(surface, path)]
        own = {"evolution_id": candidate.evolution_id}
        trials = judged_trials(candidate, self.records.find(Trial, **own))
        again = judge(
            candidate, trials, self.policy, judged_rates(candidate, self.records.find(SafetyRate, **own))
        )
        if again.decision is Decision.PROMOTE and not outside:
            return None
        why = f"{outside[0]} is outside the surface" if outside else again.reasons[0]
        return Refusal(RefusalKind.STALE, f"by the policy of now it may not be promoted: {why}")

    def weakened(self, candidate: Candidate) -> Refusal | None:
        """Which rule of the home or of a touched skill it weakens, by the trees, whatever the edit says."""
        skills = [name for name in candidate.edit.resources if name.startswith("skill/")]
        before, after = (
            {
                path: content.decode("utf-8", "replace")
                for place in (Kind.RULE.value, *skills)
                for path, content in self.snapshots.files(snapshot, place).items()
                if is_rule_file(path)
            }
            for snapshot in candidate.stands_on
        )
        paths = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
        return weakened(before, {path: after.get(path) for path in paths}) if paths else None

    def measured(self, evolution: Evolution, candidate: Candidate) -> list[SafetyRate]:
        """The rates of the safety probes, stored; raises Unavailable when the machinery failed."""
        return measure(self, evolution, candidate) if self.safety_probes else []

    def taken_back(self, files: Mapping[str, str]) -> str:
        """Why this very edit is not tried again: it was promoted once and taken back, or failed its probe."""
        if not self.cursor.read(_reverted(files)):
            return ""
        for evolution in self.records.newest(Evolution, self.policy.look_back.undone, state=_GONE):
            if evolution.promoted is None and self._edit_of(evolution) == files:
                return f"{evolution.id} tried the same edit: {evolution.reason}"
        return "the same edit was promoted before and rolled back"

    def _edit_of(self, evolution: Evolution) -> Mapping[str, str]:
        return self.records.get(Candidate, str(evolution.candidate_id)).edit.files

    def move(
        self,
        evolution: Evolution,
        state: EvolutionState,
        reason: str = "",
        *,
        end: bool = False,
        ending: EvolutionEnding = EvolutionEnding.UNSAID,
    ) -> Evolution:
        """Store a new state (``end`` also sets the time of the end), and note in the audit log where it waits or ends.

        Stages under way stand in the record alone, with their times. Raises Conflict when it ended meanwhile by another's hand: its record would be put back to what it was.
        """
        with suppress(NotFound):  # a new one
            stored = self.evolution(evolution.id)
            ended = stored.ended_at is not None and evolution.ended_at is None
            if ended or (stored.state is _GONE and evolution.state is not _GONE):
                raise Conflict(
                    f"{evolution.id} has ended meanwhile: it is {stored.state.value}.", kind=ErrorKind.OVER
                )
        if state is _GONE and evolution.candidate_id is not None:
            self.cursor.advance(_reverted(self._edit_of(evolution)), 1, [])
        under_way = state in RUNNING_STATES
        new = {state.value: self.now()} if under_way and evolution.state is not state else {}
        moved = replace(
            evolution,
            state=state,
            reason=reason or evolution.reason,
            ended_at=self.now() if end else evolution.ended_at,
            ending=ending or evolution.ending,
            began={**evolution.began, **new},
        )
        if moved != evolution and under_way:
            self.records.put(moved)
        elif moved != evolution:
            self.audit.note(f"evolution.{state.value}", evolution.id, {"reason": reason}, (moved,))
        return moved


def _reverted(files: Mapping[str, str]) -> str:
    """Name of the mark that an edit was taken back: looked up, however many were."""
    return f"reverted:{digest(dict(files))}"
