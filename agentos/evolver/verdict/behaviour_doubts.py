"""Doubts that come of how an edit behaves beside the known tasks, and of how it compares with others there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agentos.evolver.policy import Policy
from agentos.records.candidates import Ambiguity, Behaviour, RefusalKind

SENSE = "Does the diff make sense?"


@dataclass(frozen=True, slots=True)
class Doubt:
    """A reason to ask a person. ``reason`` is stored, as that of a ``Refusal``; the rest is for who answers.

    ``asks`` is "" where nothing but waiting is asked for; ``about`` is the input or name that it is about; ``sides`` are the
    answers to choose from, each with what gives it: "" is the edit itself, else ``Ambiguity.rival``. ``luck``: that the known
    work may be passed by luck, which other work tells. ``compared``: that it comes of how the edit compares with others on
    the known tasks, which more of these may end.
    """

    kind: RefusalKind
    reason: str
    asks: str = ""
    about: str = ""
    sides: tuple[tuple[str, str], ...] = ()
    luck: bool = False
    compared: bool = False


# Of a ``Behaviour``: the field, what is stored and what is asked where it says something, and whether the question is
# about just that.
_SEEN = (
    ("unmended", RefusalKind.UNMENDED, "the failure is still there for {}",
     "The failure is still there for this input. May it be?", True),
    ("breaks", RefusalKind.BREAKS, "it ends where its base answers: {}",
     "This input was answered, and is no more. May that be?", True),
    ("broad", RefusalKind.BROAD,
     "it changes most of what the tool answers next to work that passes, which is not the repair of a slip",
     "It changes most answers next to work that passes. Is so much meant?", False),
    ("loosened", RefusalKind.LOOSENED, "it takes away {}, and puts nothing in its place: what did that keep out?",
     "It takes away {}. What did that keep out?", False),
    ("needless", RefusalKind.LOOSENED, "every answer that was tried is the same {}: nothing shows what it is for",
     "Every answer is the same {}. What is it for?", False),
    ("accepted", RefusalKind.LOOSENED, "it answers where its base ended by another error than what failed: {}",
     "This input ended by another error, and is answered now. May it be?", True),
    ("noise", RefusalKind.NOISE, "it alone answers with the last digits of a float: {}",
     "It alone answers with the last digits of a float. Should that be rounded?", True),
    ("depends", RefusalKind.DEPENDS, "where a known task is put otherwise it does not do as its base: {}",
     "Put otherwise, this does not end as its base would end it. May that be?", True),
    ("unread", RefusalKind.UNREAD, "nothing reads {}, with it either: is that what is missing?",
     "Nothing reads {}. Is that what is missing?", False),
    ("uncompared", RefusalKind.UNCOMPARED, "it changes {}, and only an edit of one source is held against others",
     "No other edit was held against this one, of {}. Does the diff make sense?", False),
)  # fmt: skip

# Of these, what is found on the known tasks and what is made of them, beside ``unguarded``, ``share`` and ``ambiguity``.
COMPARED = ("unmended", "breaks", "loosened", "needless", "accepted", "noise", "depends")


def of_behaviour(seen: Behaviour, policy: Policy, *, idle: bool) -> Iterator[Doubt]:
    """What a person is asked about. ``idle``: that something of it ran nowhere is said already."""
    if seen.unguarded and not idle:
        told = "no working call runs the lines that it changes, so nothing shows what it breaks there"
        asks = "No working task runs the lines that it changes. Are they right?"
        yield Doubt(RefusalKind.UNGUARDED, told, asks, luck=True, compared=True)
    for name, kind, told, asks, about in _SEEN:
        if value := getattr(seen, name):
            where, luck = value if about else "", kind is RefusalKind.BROAD
            compared = name in COMPARED
            yield Doubt(kind, told.format(value), asks.format(value), where, luck=luck, compared=compared)
    if 0 < seen.share < policy.replay.share_min:
        told = f"of its search's belief in all edits that pass the known tasks it has {seen.share:.0%}: another one is likelier meant"
        asks = (
            f"Another edit is likelier meant: this one has {seen.share:.0%} of the search's belief. {SENSE}"
        )
        yield Doubt(RefusalKind.UNLIKELY, told, asks, compared=True)
    if seen.ambiguity is not None:
        yield _choice(seen.ambiguity)


def _choice(found: Ambiguity) -> Doubt:
    one = found.rivals == 1
    others = "another edit passes" if one else f"{found.rivals} other edits pass"
    told = (
        f"it is ambiguous: {others} the same tasks, and for {found.call} this one answers {found.answer}, "
        f"{found.rival} {found.other}: which is right?"
    )
    asks = f"Which answer is right? {others[0].upper()}{others[1:]} the same tasks."
    return Doubt(
        RefusalKind.AMBIGUOUS,
        told,
        asks,
        found.call,
        (("", found.answer), (found.rival, found.other)),
        compared=True,
    )
