"""Why an edit may not go on: a kind that code decides by, and a sentence for people."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class RefusalKind(StrEnum):
    """What stands in the way of a promotion, of an approval or of a roll-back."""

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
