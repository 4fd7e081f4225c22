"""What the kernel's parts ask of one another, so that none knows another's inside.

Each port is a Protocol of a few methods. Its docstring says what is returned, what is raised and
what the exception means to the caller. The adapters live in ``registry``, ``ledger`` and
``sandboxes``; ``agentos.testing`` ships a fake of each; ``daemon/service.py`` wires the real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TypeVar

from agentos.records.candidates import Layer, Refusal
from agentos.records.evolution import EarlierAttempt, Parent, Sighting
from agentos.records.identity import Json, ResourceId, Snapshot, Version, dataclass
from agentos.records.runs import Budget, ModelSpec, Recording, Reply, Run, Step
from agentos.records.tasks import Call, Check, Limits, Task
from agentos.records.trials import Fault, Mode, Outcome, TrialLook

if TYPE_CHECKING:
    from agentos.wire import Channel

T = TypeVar("T")
R = TypeVar("R")
Noted = tuple[str, str, Json] | tuple[()]  # an entry of the audit log: event, subject, detail


# --- registry ---------------------------------------------------------------------------------


class Snapshots(Protocol):
    """Reads immutable states of the registry. Safe from any thread and process; never blocks."""

    def stable(self) -> Snapshot:
        """The snapshot that new runs get: the tip of ``main``."""

    def files(self, snapshot: Snapshot, prefix: str) -> Mapping[str, bytes]:
        """Path -> content of every file at or below ``prefix`` (empty when there is none).

        Raises Unavailable when an object is missing or corrupt.
        """

    def names(self, snapshot: Snapshot) -> Sequence[ResourceId]:
        """Every resource in the snapshot, sorted."""


class CandidateStore(Protocol):
    """Writes candidates and moves the stable pointer. One writer at a time, under a lock."""

    def add_candidate(self, candidate_id: str, base: Snapshot, files: Mapping[str, str]) -> Snapshot:
        """Commit ``files`` (whole new contents) on top of ``base`` under ``refs/candidates/<id>``.

        Adding the same candidate again gives the same snapshot. Raises Invalid when a path lies outside a
        resource directory or a promotion would refuse what comes of it, and Conflict when the id is taken.
        """

    def promote(
        self, base: Snapshot, candidate: Snapshot, trailers: Mapping[str, str], message: str
    ) -> Snapshot:
        """Move ``main`` from ``base`` to a commit whose tree *is* the candidate's; tag new versions.

        Idempotent for equal arguments (a crash after the commit finds it again by its
        ``Evolution`` trailer). Raises Conflict when ``main`` is no longer at ``base``: the verdict
        is stale. Raises Conflict when a touched resource is pinned or not evolvable.
        """

    def revert_evolution(self, evolution_id: str, reason: str, origin: str) -> Snapshot:
        """Add versions whose content equals what stood before the evolution.

        Raises Conflict when later versions of the same resource build on it (names them), and
        NotFound when no commit carries the evolution's trailer.
        """


class Evolvable(Protocol):
    """What may be touched, and what a version number stands for."""

    def why_fixed(self, resource: ResourceId) -> Refusal | None:
        """Why no evolution may touch it (PINNED, NOT_EVOLVABLE, NO_RESOURCE), None when one may."""

    def versions(self, resource: ResourceId) -> Sequence[Version]:
        """Newest first."""


# --- ledger -----------------------------------------------------------------------------------


class Records(Protocol):
    """Stores domain records by type and id. Writes are durable when the call returns.

    Types: Evidence, Evolution, Candidate, Trial, Verdict, Consent, Attestation, Sighting, Probe.
    """

    def put(self, *records: object) -> None:
        """Insert, or replace the record with the same id; all of them or none. Append-only types refuse to change."""

    def get(self, kind: type[R], id: str) -> R:
        """The record; raises NotFound."""

    def find(self, kind: type[R], **equal: object) -> Sequence[R]:
        """Records whose top-level fields equal these, oldest first; a frozenset stands for any of its values."""

    def looks(self, fingerprint_id: str) -> Sequence[TrialLook]:
        """What trials of candidates for this failure were a look at, alike ones of an evolution once; oldest first."""

    def newest(self, kind: type[R], limit: int, **equal: object) -> Sequence[R]:
        """Of these, the ``limit`` newest, newest first.

        The names are those of fields that are looked up: what it costs follows the limit.
        """

    def newest_fields(
        self, kind: type, names: Sequence[str], limit: int, **equal: object
    ) -> Sequence[tuple[str, ...]]:
        """As ``newest``, these of their fields alone, which are such as are looked up: no record is made for it."""

    def newest_sightings(self, classes: Collection[str], limit: int, closed: str = "") -> Sequence[Sighting]:
        """The ``limit`` sightings of these failure classes that were stored last, oldest first.

        Others do not count against it; how far it looks, and how many it gives of one fingerprint, is bounded.
        ``closed``: without those whose newest sighting the cursor ``<closed><fingerprint's id>`` has reached.
        """

    def last_sighting(self) -> int:
        """The place of the sighting that was stored last, for such a cursor; 0 without any."""


class Journal(Protocol):
    """Tasks, runs and their steps: what happened."""

    def task(self, id: str) -> Task:
        """The task; raises NotFound."""

    def arrived(self, task_id: str = "") -> int:
        """The place of the task in the order in which tasks came in; of the newest without an id; 0 for none."""

    def runs_after(self, cursor: int, limit: int) -> Sequence[tuple[int, Run]]:
        """Finished runs in the order they finished, each with its cursor position."""

    def steps(self, run_id: str) -> Sequence[Step]:
        """The trajectory, in order."""

    def answers(self, task_id: str) -> Mapping[str, str]:
        """What people answered to the questions of the task's runs, by question."""

    def runs_of(self, task_key: str, limit: int) -> Sequence[Run]:
        """Finished runs of equal work, newest first."""

    def runs_using(self, resource: str, limit: int, *, hidden: bool = False) -> Iterator[Run]:
        """Finished runs that used the resource, one for each task key, newest first; a run is read when it is asked for."""

    def recent_runs(self, resource: str, limit: int, before: datetime | None = None) -> Sequence[Run]:
        """Runs that used the resource and finished (``before`` then), newest first, also several of equal work."""


class Cursor(Protocol):
    """A durable position that moves together with what was read up to it."""

    def read(self, name: str) -> int:
        """0 at first."""

    def advance(
        self, name: str, to: int, records: Sequence[object], *, after: int | None = None, note: Noted = ()
    ) -> None:
        """Store ``records``, the new position and an audit entry in one transaction: all or nothing.

        Raises Conflict when another reader was faster: the position is beyond ``to``, or is not
        ``after`` where the caller says from where it goes on.
        """


class Audit(Protocol):
    """The hash-chained log of decisions."""

    def note(self, event: str, subject: str, detail: Json, records: Sequence[object] = ()) -> None:
        """Store the records and append one entry with their digests; durable when the call returns."""


class Blobs(Protocol):
    """Content by SHA-256."""

    def put(self, data: bytes) -> str:
        """Store (write aside, fsync, rename); the digest."""

    def get(self, sha256: str) -> bytes:
        """The content; raises NotFound, or Unavailable when it does not match its name."""


# --- sandboxes --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BoxUsage:
    """What a box used up to its end."""

    wall_s: float
    cpu_s: float
    memory_peak_mb: float
    oom: bool
    lost: str = ""  # why nothing is known of it: the host that had it is gone, which says nothing of its job


class Box(Protocol):
    """One single-use sandbox with a worker inside, waiting for its job on ``channel``.

    Network-less, without host files, empty workspace. The caller sends one job frame
    (agentos/messages.py), reads frames until the job's last, and closes. Use as a context
    manager: leaving it kills whatever is left inside and removes every trace.
    """

    channel: Channel

    def close(self) -> BoxUsage:
        """Kill everything inside, wait until it is gone; idempotent, never raises for 'gone'."""

    def __enter__(self) -> Box: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Sandbox(Protocol):
    """Makes boxes. ``name`` is the adapter's, ``level`` the isolation level it was probed at."""

    @property
    def name(self) -> str:
        """The adapter's."""

    @property
    def level(self) -> str:
        """The isolation level it was probed at."""

    @property
    def image(self) -> str:
        """A digest of what its boxes are made of: interpreter, libraries, the kernel's worker."""

    def open(self, limits: Limits, *, light: bool = False, run: str = "") -> Box:
        """A fresh box under these limits. Raises Unavailable with what to install or enable.

        ``light`` promises that the job runs no harness (grade, load, search): an adapter need not
        have the agent's libraries imported in it. ``run`` is written on what a kill could leave.
        """

    def close(self) -> None:
        """Release templates and pools; boxes still open die with them."""


@dataclass(frozen=True, slots=True)
class Placement:
    """What is wanted of the host that a run gets its boxes on."""

    asked: str = "auto"  # the sandbox that its environment names
    prefer: str = "auto"  # the one to take where neither settings nor environment name one
    memory_mb: int = 0  # of its box, files included
    labels: tuple[str, ...] = ()  # all of them
    pair: str = ""  # runs of equal pairs are to be compared: they get the same host as long as that is there
    avoid: frozenset[str] = frozenset()  # names of hosts


@dataclass(frozen=True, slots=True)
class Place:
    """A sandbox of one host; ``host`` is the worker's name, "" for this machine.

    ``plugin`` is the label of what brings the sandbox, "" of one that ships.
    """

    sandbox: Sandbox
    host: str = ""
    plugin: str = ""


class Places(Protocol):
    """The hosts on which boxes can be made."""

    def place(self, wanted: Placement) -> AbstractContextManager[Place]:
        """One of them, which counts as busy until the context ends.

        Raises HostAway where none is there that has what is wanted, and Unavailable as ``Sandbox.open``.
        """


# --- models -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Grant:
    """What one run may ask of models. The gateway binds a token to it; no sandbox sees that token."""

    run_id: str
    mode: Mode
    models: tuple[ModelSpec, ...]  # the first is the one meant by a request that names none
    budget: Budget
    evolution_id: str = ""  # its trials share the evolution's budget
    recordings: tuple[str, ...] = ()  # run ids whose calls are served, the first one first
    goes_on: bool = False  # from those, which were cut: what they used is of this run's budget


class ModelSession(Protocol):
    """One run's way to its models. Safe from many threads at once."""

    def complete(self, request: Json, deadline: float) -> Reply:
        """Answer an OpenAI chat completion request; ``deadline`` is on the ``time.monotonic`` clock.

        The call is on record before this returns. Asking the same again after a crash gives what
        was recorded. Raises ModelFailed.
        """

    def close(self) -> None:
        """The grant ends here; idempotent."""


class Models(Protocol):
    """The way to the gateway, which starts with the first call."""

    def open(self, grant: Grant) -> ModelSession:
        """Cheap: nothing is asked or started yet."""

    def close(self) -> None:
        """End the gateway after the calls in flight are on record."""


# --- running ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plan:
    """How a run is to be executed, beside what and on which snapshot."""

    mode: Mode = Mode.RECORD
    recording: Recording | None = None
    resume: bool = False  # of an attempt that was cut: whatever is recorded is served, not tried again
    evolution_id: str = ""
    prefer: str = "auto"  # the sandbox to use where neither settings nor environment name one
    parent: str = ""  # the run that handed over this task
    depth: int = 0  # how many such hand-overs lie above
    pair: str = ""  # as ``Placement.pair``
    avoid: frozenset[str] = frozenset()  # as ``Placement.avoid``
    wall_s: float = 0.0  # it is ended earlier than its task allows, from outside, which it cannot see; 0: not

    @property
    def replays(self) -> bool:
        """What it asks of the outside comes from a record or not at all, and nothing of it is kept."""
        return bool(self.evolution_id) or self.mode is Mode.REPLAY


@dataclass(frozen=True, slots=True)
class Attempt:
    """What executing a task once gave, before anybody decided what it means."""

    outcome: Outcome
    answer: Json
    answer_sha256: str
    steps: tuple[Step, ...]  # () where ``on_step`` took them: a run may hold more than memory should
    resources: tuple[str, ...]
    sandbox: str
    level: str
    files: Mapping[str, bytes] = field(default_factory=dict)  # what the run left in its workspace
    drift: tuple[str, ...] = ()  # what came out differently from the recording, once for each cause
    memory_mb: float = 0.0  # the box's peak; 0.0 where it cannot be known
    image: str = ""  # what the box was made of, as ``Sandbox.image``
    bundle: str = ""  # what the run got of its snapshot, as ``Executor.given``
    reached: tuple[str, ...] = ()  # functions of evolvable code that were entered (agentos.syntax)
    plugins: tuple[str, ...] = ()  # what of other distributions it was measured with, as ``Trial.plugins``
    host: str = ""  # the worker that had its boxes; "" for this machine


class Executor(Protocol):
    """Runs a task once on a snapshot in a fresh box and grades the answer in another."""

    def execute(
        self,
        task: Task,
        snapshot: Snapshot,
        run_id: str,
        on_step: Callable[[Step], None] | None = None,
        plan: Plan | None = None,
    ) -> Attempt:
        """Blocks until graded. ``on_step`` gets each step as it happens, which is then not kept. Without a plan: live and recorded.

        Raises Unavailable when the machinery failed (an ``infra`` outcome, never counted).
        """

    def given(self, task: Task, snapshot: Snapshot) -> str:
        """Digest of all that a run of the task gets of the snapshot. Raises Unavailable when it cannot be told."""


@dataclass(frozen=True, slots=True)
class Case:
    """One task as the search sees it: the call, its input files and its checks."""

    task_id: str
    call: Call
    inputs: Mapping[str, bytes]
    checks: tuple[Check, ...]


# --- evolution --------------------------------------------------------------------------------


class Durable(Protocol):
    """Makes a step of a workflow survive a crash: done once, its result remembered."""

    def step(self, name: str, work: Callable[[], T]) -> T:
        """Run ``work`` unless a finished step of this name and position is on record.

        ``work`` must be safe to run again after a crash in the middle, and return plain data.
        """


@dataclass(frozen=True, slots=True)
class Proposal:
    """An edit with the manifest that was written before it."""

    cause: str
    summary: str
    operator: str
    files: Mapping[str, str] = field(default_factory=dict)
    why_this_layer: str = ""
    predicted_fixes: tuple[str, ...] = ()
    tasks_at_risk: tuple[str, ...] = ()
    unusable: str = ""  # why this is no edit at all: kept, so that it is counted, and never tried
    parents: tuple[str, ...] = ()  # ids of the brief's parents, where the proposer looked at them
    model: str = ""  # the model, or the coding agent, that wrote it; "" where it was searched for
    weight: float = 0.0  # belief in it beside the other edits that were found, up to 1; 0 where there is none
    prior: float = 0.0  # belief in it among all edits of the file before any was tried; 0: it has none
    beside: tuple[
        Proposal, ...
    ] = ()  # more edits that cost no further question: tried whatever the place's share


@dataclass(frozen=True, slots=True)
class ObservedRun:
    """A run that a proposer may look at: of the evidence, or an open one of the same work beside it."""

    task: Task
    run: Run
    steps: tuple[Step, ...]

    @property
    def passed(self) -> bool:
        """As ``Run.passed``: plug-ins go by it."""
        return self.run.passed


@dataclass(frozen=True, slots=True)
class KnownLesson:
    """One lesson of a memory, and how runs ended that had it before them (``evolver/memory/lessons.py``)."""

    path: str  # of the memory
    id: str
    text: str
    uses: int
    successes: int
    score: float  # from 0 to 1; 0.5 where nothing is known


@dataclass(frozen=True, slots=True)
class EarlierWork:
    """What was tried on the failure before, oldest first, and by proposer what its edits came to."""

    history: tuple[EarlierAttempt, ...] = ()
    calibration: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Brief:
    """All that a proposer gets: never a hold-out task, never a guard's checks.

    ``path`` is the file at fault and ``source`` its text, both "" where a new resource is wanted;
    ``files`` are the texts of the base that an edit in this layer may touch or should know.
    """

    evolution_id: str
    base: Snapshot
    resource: ResourceId
    path: str
    source: str
    cases: tuple[Case, ...]
    working_calls: tuple[tuple[Case, Json], ...]  # past successes: call, inputs, old output
    budget_s: float
    max_candidates: int
    layer: Layer = Layer.TOOL
    why: str = ""  # the diagnosis, in a sentence
    files: Mapping[str, str] = field(default_factory=dict)
    runs: tuple[ObservedRun, ...] = ()  # failing ones of the evidence first, newest first
    parents: tuple[Parent, ...] = ()
    surface: tuple[str, ...] = ()  # registry paths that an edit may touch, as shell patterns
    searched: tuple[str, ...] = ()  # and those that only edits of the built-in search may
    memories: tuple[KnownLesson, ...] = ()  # of the memory layer: every lesson in ``files``
    wished: tuple[str, ...] = ()  # of the memory layer: what runs of this work asked to be remembered
    successes: tuple[
        ObservedRun, ...
    ] = ()  # of the skill and rule layers: passing runs of other work, without its checks
    faults: tuple[Fault, ...] = ()  # how the evidence failed: a raise that one came from has to stay
    earlier: Callable[[], EarlierWork] = EarlierWork  # looked up when a proposer first reads any of it

    @property
    def history(self) -> tuple[EarlierAttempt, ...]:
        """What was tried on this failure lately, oldest first."""
        return self.earlier().history

    @property
    def calibration(self) -> Mapping[str, str]:
        """By proposer, what its edits came to lately."""
        return self.earlier().calibration


class Adviser(Protocol):
    """A model that the evolver may ask. Its calls are on record, within the evolution's budget."""

    name: str  # of the model resource

    @property
    def small(self) -> bool:
        """Whether it reads so little at once that it is better asked to choose than to write."""

    def ask(self, evolution_id: str, purpose: str, request: Json) -> Reply:
        """Answer a chat completion request; ``purpose`` is one of the evolution's, such as "propose".

        The same request of the same evolution and purpose is answered from the record: it is safe in
        a durable step. Raises ModelFailed, and Unavailable while the model cannot be reached.
        """


class Proposer(Protocol):
    """Turns evidence into edits, best first."""

    name: str

    def propose(self, brief: Brief) -> Iterator[Proposal]:
        """Lazily; stops at the brief's budget. No proposal at all means: it cannot fix this.

        Raises Unavailable when the machinery is away: asked again, it goes on. ModelFailed, when a model that
        it needs can be asked no more, or a bug of its own ends it alone: what was proposed stands.
        """


class Replayer(Protocol):
    """Runs trials side by side on all cores, results in the order of the jobs."""

    def map(self, work: Callable[[T], R], jobs: Sequence[T]) -> Sequence[R]:
        """Apply ``work`` to each job; the first exception is raised after all have ended."""
