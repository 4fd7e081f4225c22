"""What the program changes in itself, from a sighting of a failure to the attestation of its fix; probes and reviews on the way."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from datetime import datetime
from enum import StrEnum

from agentos.records.candidates import Layer
from agentos.records.identity import Snapshot, dataclass


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Normalised identity of a failure: equal fingerprints are the same failure again."""

    id: str  # 16 hex digits of the digest of the rest
    resource: str  # ResourceId that failed, "" where unknown
    klass: str  # failure class of evolver/taxonomy.toml
    signature: str  # normalised text

    @property
    def text(self) -> str:
        """The signature for a person: without the resource, and without what another part of it says, too."""
        parts = [part for part in dict.fromkeys(self.signature.split(" | ")) if part.strip()]
        told = [part for part in parts if not any(part in other for other in parts if other != part)]
        return " | ".join(part for part in told if part != self.resource)


@dataclass(frozen=True, slots=True)
class Sighting:
    """One failing run seen to carry a fingerprint."""

    run_id: str
    task_id: str
    task_key: str
    fingerprint: Fingerprint
    seen_at: datetime
    flagged: bool = False
    signals: tuple[str, ...] = ()  # of earlier versions; whoever asks reads them off the steps
    hidden: bool = False  # its work was in the hold-out then: evidence only once that gave it away


@dataclass(frozen=True, slots=True)
class Evidence:
    """A sealed batch of failing runs that anchors one evolution."""

    id: str
    fingerprint: Fingerprint
    run_ids: tuple[str, ...]
    task_ids: tuple[str, ...]  # distinct work: one task for each task key
    sealed_at: datetime
    sha256: str  # digest over fingerprint, run ids and task ids


class EvolutionState(StrEnum):
    """Stages while it runs, then exactly one end state."""

    MINED = "mined"
    REPRODUCING = "reproducing"
    PROPOSING = "proposing"
    REPLAYING = "replaying"
    AWAITING_CONSENT = "awaiting_consent"
    PROMOTING = "promoting"
    PROBATION = "probation"
    PROMOTED = "promoted"
    REJECTED = "rejected"
    NO_IMPROVEMENT = "no_improvement"
    NOT_REPRODUCIBLE = "not_reproducible"
    CANNOT_FIX = "cannot_fix"
    HELD = "held"
    CIRCUIT_BROKEN = "circuit_broken"
    STALE = "stale"
    ROLLED_BACK = "rolled_back"
    CANCELLED = "cancelled"


class EvolutionWait(StrEnum):
    """What an evolution under way stands still for."""

    NOTHING = ""
    MODEL = "model"
    BUDGET = "budget"  # of all runs of a day
    MACHINERY = "machinery"


class EvolutionEnding(StrEnum):
    """What ended an evolution or its watch, where something is decided by it; its ``reason`` is for people."""

    UNSAID = ""
    DECLINED = "declined"  # a person said no to it
    REVERTED = "reverted"  # a person took the promotion back
    SUPERSEDED = "superseded"  # a person changed what was promoted
    PINNED = "pinned"  # a person pinned what was promoted
    REGRESSED = "regressed"  # live work passes on the version before it and fails on it
    FELL = "fell"  # live runs pass less often than those before it
    STOOD = "stood"  # live use showed nothing against it
    UNPROVEN = "unproven"  # its time is over, and it was used for nothing that could tell
    UNUSED = "unused"  # its time is over, and nobody used it


RUNNING_STATES = frozenset(
    {
        EvolutionState.MINED,
        EvolutionState.REPRODUCING,
        EvolutionState.PROPOSING,
        EvolutionState.REPLAYING,
        EvolutionState.PROMOTING,
    }
)
AT_WORK = RUNNING_STATES | {EvolutionState.AWAITING_CONSENT}  # its evidence is taken
# Its edit went live and was not taken back; in this order, where they are gone through.
PROMOTED_STATES = (EvolutionState.PROBATION, EvolutionState.PROMOTED)
WITHOUT_SUCCESS = frozenset(
    {
        EvolutionState.REJECTED,
        EvolutionState.NO_IMPROVEMENT,
        EvolutionState.CANNOT_FIX,
        EvolutionState.HELD,
        EvolutionState.ROLLED_BACK,
    }
)
_DECLINED_ON_OLD_RECORD = "declined by "  # from before ``EvolutionEnding``


@dataclass(frozen=True, slots=True)
class Evolution:
    """One pass from evidence to its end state."""

    id: str
    evidence_id: str
    fingerprint_id: str
    state: EvolutionState
    base: Snapshot
    reason: str = ""
    diagnosis: Diagnosis | None = None
    candidate_id: str | None = None  # the best accepted one
    promoted: Snapshot | None = None
    created_at: datetime | None = None
    ended_at: datetime | None = None
    asked: tuple[ProposerCost, ...] = ()
    held_back: tuple[str, ...] = ()  # of its evidence that failed again, what no proposer was shown
    given: tuple[str, ...] = ()  # of its evidence, what the hold-out gave away for it
    ending: EvolutionEnding = EvolutionEnding.UNSAID
    waiting: EvolutionWait = EvolutionWait.NOTHING
    waits_until: datetime | None = None  # then it ends, if what it waits for has not come back
    # the candidate of an evolution gone stale whose edit is measured again, not searched for
    takes_up: str = ""
    undone_at: datetime | None = None  # when a person took back or changed what was promoted
    # its stages under way, and when it came to each
    began: Mapping[str, datetime] = field(default_factory=dict)

    @property
    def is_closed(self) -> bool:
        """A person said no: the failure is not taken up again until somebody reconsiders it."""
        if self.ending:
            return self.ending in (EvolutionEnding.DECLINED, EvolutionEnding.REVERTED)
        return self.reason.startswith(_DECLINED_ON_OLD_RECORD)

    @property
    def stands(self) -> bool:
        """It was promoted, and what was promoted is still what runs get."""
        promoted = self.state in PROMOTED_STATES
        return promoted and self.ending is not EvolutionEnding.SUPERSEDED

    @property
    def resource(self) -> str:
        """The resource at fault, "" before the diagnosis."""
        return self.diagnosis.resource if self.diagnosis else ""


@dataclass(frozen=True, slots=True)
class SearchEffort:
    """How far a search of edits came."""

    tried: int
    known: int  # edits that it had made by then
    cpu_s: float  # of its trials and of itself
    exhausted: bool  # there was nothing more to try; else its time was used up
    before: int = 0  # edits that it left out because earlier searches of the same had tried them
    files: tuple[str, ...] = ()  # registry paths of what was searched, the file at fault first

    def also(self, other: SearchEffort | None) -> SearchEffort:
        """Two searches told as one."""
        if other is None:
            return self
        return SearchEffort(
            self.tried + other.tried,
            self.known + other.known,
            self.cpu_s + other.cpu_s,
            self.exhausted and other.exhausted,
            self.before + other.before,
            tuple(dict.fromkeys(self.files + other.files)),
        )

    def __str__(self) -> str:
        last = self.before + self.tried
        if self.exhausted:
            left = self.known - last
            same = f" ({left:,} more come to the same as one of them)" if left > 0 else ""
            new = f", {self.tried:,} of them now," if self.before else ""
            return f"exhausted: tried all {last:,} edits{same}{new} in {self.cpu_s:.1f} s of CPU"
        tried = f"{self.before + 1:,} to {last:,}" if self.before and self.tried else f"{last:,}"
        return (
            f"starved: tried {tried} of at least {max(self.known, last):,} edits in {self.cpu_s:.1f} s of CPU"
        )


@dataclass(frozen=True, slots=True)
class ProposerCost:
    """What asking one proposer at one site came to cost: its own time, and the trials of what it proposed."""

    proposer: str
    layer: Layer
    seconds: float  # until it had proposed, or had given up
    cpu_s: float = 0.0  # of trials
    usd: float = 0.0  # of the models in them, as far as their prices are known
    search: SearchEffort | None = None  # where it found nothing to propose


@dataclass(frozen=True, slots=True)
class EditTarget:
    """Where an edit may mend a failure. ``path`` is "" where a new file of the layer's kind is wanted."""

    layer: Layer
    resource: str
    path: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Which resource is at fault, in which layer, and what says so."""

    layer: Layer
    resource: str
    path: str  # file within the registry that an edit would touch
    why: str
    step_refs: tuple[str, ...] = ()  # "run-id#index" of the steps it rests on
    also: tuple[EditTarget, ...] = ()  # where else it may be mended, cheapest first

    @property
    def sites(self) -> tuple[EditTarget, ...]:
        """All places where an edit may mend it, in the order in which they are tried."""
        return (EditTarget(self.layer, self.resource, self.path), *self.also)

    def at(self, layer: Layer, files: Collection[str]) -> Diagnosis:
        """The same with the site first at which an edit of ``files`` was made."""
        sites = sorted(self.sites, key=lambda site: (site.path not in files, site.layer is not layer))
        first, *others = sites
        return replace(self, layer=first.layer, resource=first.resource, path=first.path, also=tuple(others))


@dataclass(frozen=True, slots=True)
class EarlierAttempt:
    """An attempt at the same failure that is over."""

    layer: Layer
    summary: str
    files: tuple[str, ...]
    end: str  # the evolution's end state and its reason


@dataclass(frozen=True, slots=True)
class Parent:
    """An earlier edit of the same failure that came close: one to start from, not to repeat."""

    candidate_id: str
    summary: str
    diff: str  # against its own base, which may have been another than the present one
    says: str  # how close it came, in a sentence


@dataclass(frozen=True, slots=True)
class Consent:
    """A person's (or the policy's) approval, issued by the kernel, unforgeable elsewhere."""

    id: str
    evolution_id: str
    candidate_id: str
    candidate_tree: str
    manifest_sha256: str
    verdict_sha256: str
    principal: str  # "person:<login>(<uid>)" or "policy:<tier>=auto"
    expires_at: datetime
    token: str  # hex HMAC-SHA256 over all other fields
    given: str = ""  # "terminal", "--yes" or "standing" (by the policy); "" where nobody wrote it down


@dataclass(frozen=True, slots=True)
class Attestation:
    """Predicted against observed: by the replay at the promotion, by live use after the probation."""

    id: str
    evolution_id: str
    predicted_fixes: tuple[str, ...]
    observed_fixes: tuple[str, ...]
    predicted_risks: tuple[str, ...]
    observed_regressions: tuple[str, ...]
    verdict: str  # effective, partly, mixed, ineffective, harmful
    when: str = "probation"  # or "promotion"


@dataclass(frozen=True, slots=True)
class Pass:
    """One answer of one fresh box, beside one of the base in the same minute (0.0: there was none)."""

    boot: str  # drawn for this box; the answer named it
    agent: str
    start_s: float  # until the harness recorded its first step
    memory_mb: float  # the box's peak; 0.0 where it cannot be known
    base_start_s: float = 0.0
    base_memory_mb: float = 0.0


# the reason of a ledger's first probe: whoever made the home vouches, also for what another home learnt
BEGAN_WITH = "it is what the home began with"


@dataclass(frozen=True, slots=True)
class Probe:
    """What came of probing a snapshot. ``reason`` says why it did not pass, or who vouches for it.

    What is probed is how runs are driven, so another snapshot with the same harnesses, agents and
    environments (``driving_sha256``) has passed with it.
    """

    id: str
    snapshot: Snapshot
    driving_sha256: str
    passed: bool
    reason: str
    at: datetime
    evolution_id: str = ""  # "" where people changed the registry
    passes: tuple[Pass, ...] = ()
    canaries: tuple[str, ...] = ()  # ids of the tasks that were tried again
    seconds: float = 0.0


class ReviewOpinion(StrEnum):
    """What a review comes to."""

    PASS = "pass"  # noqa: S105 - an opinion
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Review:
    """What a second model said of an edit, without having read what its author meant by it.

    It can hold an edit back and promotes none. Bound by hashes to what was reviewed.
    """

    id: str
    evolution_id: str
    candidate_id: str
    candidate_tree: str
    evidence_sha256: str
    model: str  # resource that answered; "" when none could be asked
    opinion: ReviewOpinion
    reasons: tuple[str, ...]
    at: datetime
