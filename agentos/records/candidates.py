"""An edit, what is known of it, and the verdict: why it may not go on, or may.

A reason is a kind that code decides by, and a sentence for people.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from agentos.records.identity import Snapshot, dataclass, digest, folder_of


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


class Layer(StrEnum):
    """Where a fault lies; ordered, cheapest first."""

    MEMORY = "memory"
    PROMPT = "prompt"
    SKILL = "skill"
    TOOL = "tool"
    AGENT = "agent"
    ENVIRONMENT = "environment"
    RULE = "rule"  # what runs are held to
    HARNESS = "harness"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a candidate claims; written before it is tried."""

    evidence_id: str
    cause: str
    edit: str
    files: tuple[str, ...]
    predicted_fixes: tuple[str, ...]  # task ids
    tasks_at_risk: tuple[str, ...]  # task ids
    layer: Layer
    why_this_layer: str


@dataclass(frozen=True, slots=True)
class Edit:
    """One logical change: whole new content of each file it touches."""

    files: Mapping[str, str]  # registry path -> new text
    summary: str
    operator: str

    @property
    def resources(self) -> tuple[str, ...]:
        """Those that it touches, sorted."""
        return tuple(sorted(set(map(folder_of, self.files))))


@dataclass(frozen=True, slots=True)
class Migration:
    """Memories of a candidate's base, brought by its ``migrate.py`` to the form that its harness reads."""

    harness: str
    old: int  # form
    new: int
    files: Mapping[str, str]  # registry path -> new text; part of the candidate's snapshot, as its edit is

    @property
    def memories(self) -> tuple[str, ...]:
        """Their ids, sorted."""
        return tuple(sorted(set(map(folder_of, self.files))))

    def __str__(self) -> str:
        return f"{', '.join(self.memories) or 'no memory'} from form {self.old} to {self.new}"


@dataclass(frozen=True, slots=True)
class Rebase:
    """An edit put on a newer base, on which its trials would get the very same files."""

    base: Snapshot
    snapshot: Snapshot
    bundles_sha256: str  # digest over (trial, bundle) of all trials that were looked at
    trials: int
    at: datetime


@dataclass(frozen=True, slots=True)
class EditedName:
    """A function or name of a module that an edit changes or brings; it ran where one of ``shown_by`` was entered."""

    name: str  # "path:line:function", or "path:name"
    # Labels as in ``Trial.reached``, of itself or of what looks it up; () where nothing can show it.
    shown_by: tuple[str, ...]
    new_file: bool = False  # it stands in a file that the base has not


@dataclass(frozen=True, slots=True)
class Ambiguity:
    """Another edit passes all the same tasks, and answers this call otherwise: nobody said which is right."""

    rivals: int  # other edits of which that is true
    call: str
    answer: str
    other: str  # what the rival answers
    rival: str  # the id of its candidate, or by what it is a mutant of the edit


@dataclass(frozen=True, slots=True)
class Behaviour:
    """An edit of a tool and its base on the same inputs: how many there were, and at how many they differ.

    Of an edit of a text, which nothing runs by itself, there are none.
    """

    shown: int  # inputs of the evidence that its proposer saw
    shown_differ: int
    beside: int  # neighbours of these, and evidence that was held back
    beside_differ: int
    around_guards: int  # inputs of guards, and their neighbours
    around_guards_differ: int
    samples: tuple[str, ...] = ()  # a few differences beside what was shown, a line each
    ambiguity: Ambiguity | None = None
    unguarded: bool = False  # no working call runs the lines that it changes
    unmended: str = ""  # a call that still ends, or whose answer is still wrong, as those of the evidence
    broad: bool = False  # it changes most of what the tool answered next to guards
    breaks: str = ""  # a call with an empty file or list that its base answers, and it ends by an exception
    loosened: str = ""  # an anchor or a condition that it takes away and puts nothing in the place of
    needless: str = ""  # without or with what every answer that was tried is the same
    accepted: str = ""  # a call that its base ended by another error than the evidence, and it answers
    unread: str = ""  # a name, where it edits, that nothing reads with it either
    noise: str = ""  # a call that it answers with the last digits of a float, which neither its base nor a right answer has
    uncompared: str = ""  # the sources that it changes, where these are not one of the tool
    depends: str = ""  # a known call, put otherwise, with which it does not do as its base
    share: float = 0.0  # of its proposer's belief in all edits that pass the known tasks; 0 where it has none
    listed: str = ""  # what a text that it writes names each of the failing tasks by that were shown
    # Ids of the open tasks it was compared on, in their order; () before that was written down.
    known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reexamination:
    """What an edit that waits looks like where fresh tasks, which it passes, are among the known ones."""

    task_ids: tuple[str, ...]
    behaviour: Behaviour


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposed change to a base snapshot; committed under ``refs/candidates/<id>``."""

    id: str
    evolution_id: str
    proposer: str
    rank: int
    manifest: Manifest
    edit: Edit
    base: Snapshot
    snapshot: Snapshot
    screened: str = ""  # "" if it passed the screen, else the reason
    created_at: datetime | None = None
    control: Snapshot | None = None  # of an edit of memories: the same without anything remembered
    removes: bool = False  # it does nothing but take lessons out of memories
    parents: tuple[str, ...] = ()  # earlier candidates whose edits its proposer was shown to start from
    migration: Migration | None = None  # what came with the edit because of another form of memories
    model: str = ""  # the model, or the coding agent, that wrote it; "" where it was searched for
    rebase: Rebase | None = None  # of one whose verdict was made on an older base
    # The functions and names that it changes; () before it was written down.
    edited: tuple[EditedName, ...] = ()
    behaviour: Behaviour | None = None  # beside what was shown; None where it was not tried there
    weight: float = 0.0  # its proposer's belief in it beside its other edits, up to 1; 0 where it has none
    plugin: str = ""  # name, distribution and version of a proposer that is installed beside agentos
    prior: float = 0.0  # that belief among all edits of the file, before any was tried; 0 where it has none
    # The place of the newest task when it was proposed (``Journal.arrived``); None before that was written down.
    known_tasks: int | None = None
    reexamination: Reexamination | None = None  # the newest; ``behaviour`` stays as it was

    @property
    def stands_on(self) -> tuple[Snapshot, Snapshot]:
        """Base and snapshot with which it would be promoted now."""
        now = self.rebase or self
        return now.base, now.snapshot


class Decision(StrEnum):
    """What a verdict says."""

    PROMOTE = "promote"
    REJECT = "reject"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A pure function of the trials; bound by hashes to what it judged."""

    id: str
    evolution_id: str
    candidate_id: str
    decision: Decision
    reasons: tuple[str, ...]
    fixed: tuple[str, ...]  # task ids that flipped from failing to passing
    broken: tuple[str, ...]  # task ids that flipped from passing to failing
    flaky: tuple[str, ...]
    candidate_tree: str
    base_tree: str
    manifest_sha256: str
    trials_sha256: str
    policy_sha256: str
    # Of each reason, in their order, a RefusalKind or SupportKind; () on a record from before they were written down.
    kinds: tuple[str, ...] = ()

    @property
    def grounds(self) -> tuple[tuple[str, str], ...]:
        """Kind ("" on such a record) and sentence of each reason."""
        return tuple(zip(self.kinds or ("",) * len(self.reasons), self.reasons, strict=False))

    @property
    def sha256(self) -> str:
        """What a consent is bound to: the digest of the record as it was stored."""
        names = [name for name in self.__dataclass_fields__ if name != "kinds" or self.kinds]
        return digest({name: getattr(self, name) for name in names})
