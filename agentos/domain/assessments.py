"""What is said of an edit or its snapshot: why it may not go on, or may; what probes, safety probes and a second model found.

A reason is a kind that code decides by, and a sentence for people.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from agentos.domain.identity import Snapshot, dataclass


class RefusalKind(StrEnum):
    """What stands in the way of a trial, of a promotion, of an approval or of a roll-back."""

    # of an edit's text: it is not tried
    UNUSABLE = "unusable"  # its proposer says so
    SURFACE = "surface"  # another file, or more of it, than an evolution may edit
    PINNED = "pinned"  # a resource that no evolution touches
    NOT_EVOLVABLE = "not_evolvable"  # it says so itself
    NO_RESOURCE = "no_resource"  # there is none of this name
    FORM = "form"  # a memory in one that only its harness knows
    UNEDITED = "unedited"  # no proposer edits its layer, or it is not known which
    TEXT = "text"  # a secret, what no reader sees, or no text of its kind
    CONTRACT = "contract"  # it breaks that of a tool or of a harness
    EXPECTED = "expected"  # it holds an answer that a check expects
    RAISED = "raised"  # it gets past the raise that is the failure
    TAKEN_NAME = "taken_name"  # its tool would be called in another's place
    TAKEN_BACK = "taken_back"  # it was rolled back before
    # of its trials: no promotion
    OTHER_TREES = "other_trees"  # than the candidate's and its base's
    NO_EVIDENCE = "no_evidence"  # nothing fails on the base
    BROKEN = "broken"  # what passed on the base does not with it
    FEW_FIXED = "few_fixed"  # less of the evidence than is wanted, or too small a gain
    FELL = "fell"  # in pairs it passes less often than the base
    LUCK = "luck"  # more trials would tell it from a repair
    UNDECIDED = "undecided"  # more pairs would tell
    EXHAUSTED = "exhausted"  # and no more are allowed, or paid
    FEW_TASKS = "few_tasks"
    UNSAFE = "unsafe"  # it violates a safety probe more often
    UNREPLAYABLE = "unreplayable"  # what passes on the base cannot be replayed with it
    OVER_FITTED = "over_fitted"
    BY_NAME = "by_name"  # it goes by what identifies a task
    PLUGINS = "plugins"  # of several versions: its trials cannot be compared
    COSTLY = "costly"
    MEMORY_HARMS = "memory_harms"  # what passes with nothing remembered fails with it
    MEMORY_IDLE = "memory_idle"  # what it repairs passes with nothing remembered as well
    DICTATED = "dictated"  # different answers became one
    UNMEASURED = "unmeasured"
    # of its trials: a person is asked
    UNCHECKED = "unchecked"  # its only gain is work without checks
    PARTIAL = "partial"  # it mends few of the tasks that it was found for
    FEW_GUARDS = "few_guards"
    UNGUARDED = "unguarded"  # some of it ran in no guard
    UNLIKELY = "unlikely"  # by how faults are mended, or by its search's belief
    UNMENDED = "unmended"  # the failure is still there
    BREAKS = "breaks"  # it ends where its base answers
    BROAD = "broad"  # it changes most answers
    LOOSENED = "loosened"
    NOISE = "noise"  # it alone answers with the last digits of a float
    DEPENDS = "depends"  # its answers depend on how a task is put, where its base's do not
    UNREAD = "unread"  # a name that nothing reads with it either
    AMBIGUOUS = "ambiguous"
    UNCOMPARED = "uncompared"  # with other edits: it changes several sources
    WORN_OUT = "worn_out"  # the hold-out, by candidates before it
    LOST = "lost"  # fresh tasks pass on its base and cannot be replayed with it
    # of the evolution
    NO_CANDIDATE = "no_candidate"
    NOT_WAITING = "not_waiting"  # it awaits no person's word
    AT_WORK = "at_work"
    OVER = "over"  # it ended, whoever consented to it
    NOT_PROMOTED = "not_promoted"  # there is nothing to undo
    STALE = "stale"  # the registry moved since it was judged
    # of the consent
    NO_CONSENT = "no_consent"
    FORGED = "forged"  # its token is not of this home's key
    OTHER = "other"  # it was given for another candidate, tree, manifest or verdict
    EXPIRED = "expired"
    # of the edit: no consent opens these
    VERDICT = "verdict"  # it does not promote this tree
    REVIEW = "review"
    RULE = "rule"  # it weakens one
    UNPROBED = "unprobed"  # it changes what runs are driven by, and passed no probe
    PROBE = "probe"  # it failed one
    UNTESTED = "untested"  # what the registry made of it is not the tree that was tested
    # of the edit: a person's consent opens these
    TIER = "tier"
    SCREEN = "screen"  # its text has what the policy asks about
    DOUBT = "doubt"  # its trials leave something open
    FRESH = "fresh"  # it has nothing against it but that work which came after it is wanted


@dataclass(frozen=True, slots=True)
class Refusal:
    """``reason`` is shown and stored; nothing is decided by its words."""

    kind: RefusalKind
    reason: str


class SupportKind(StrEnum):
    """What a verdict says for an edit, or beside what decided."""

    FIXED = "fixed"  # of the evidence, in every trial
    ENDED = "ended"  # of it, without checks: no repair
    GAINED = "gained"  # in pairs it passes more often
    GUARDS_KEPT = "guards_kept"
    HOLD_OUT_KEPT = "hold_out_kept"
    NO_TASKS = "no_tasks"  # of a set: nothing to keep
    AFFORDABLE = "affordable"
    SAFE = "safe"
    CONTROL = "control"  # what passes with nothing remembered
    LEFT_OUT = "left_out"  # what cannot be replayed


@dataclass(frozen=True, slots=True)
class Support:
    """``reason`` is shown and stored, as that of a ``Refusal``."""

    kind: SupportKind
    reason: str


Ground = Refusal | Support  # one reason of a verdict


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
