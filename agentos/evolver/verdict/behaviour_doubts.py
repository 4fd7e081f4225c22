"""Doubts that come of how an edit behaves beside the known tasks, and of how it compares with others there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentos.evolver.policy import Judge, Policy
from agentos.records.candidates import Ambiguity, Behaviour, Candidate, Refusal, RefusalKind
from agentos.records.trials import Arm, Trial, TrialSet

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
    ("listed", RefusalKind.BY_NAME, "it names the failing tasks that were shown one by one ({}), and not what they have in common",
     "It names the failing tasks one by one: {}. Does it hold for others?", False),
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


# --- one answer for different tasks ---------------------------------------------------------------
# Checks that let many answers pass (a pattern, a schema) say that an answer has the right form, not that it is the
# right one: ``When mood, answer "fine".`` passes all of them. An edit of a memory is held against nothing
# remembered (``gates``); an edit of any text against its base, and of that a person is asked.

# Checks of an answer's form. Others name it, or look at what was written beside it, where each answer may be "done".
_LOOSE = frozenset({"contains", "json_schema", "regex"})
_TASKS_MIN = 2  # of the evidence


def dictated(candidate: Candidate, known: Sequence[Trial], rules: Judge) -> Doubt | None:
    """What an edit of texts seems to answer in the agent's place; None where nothing shows it."""
    own = [trial for trial in known if trial.candidate_id == candidate.id and trial.arm is Arm.CANDIDATE]
    base = [trial for trial in known if trial.arm is Arm.BASE and _is_loose(trial)]
    if told := _evidence(own) or dictated_guards(base, own, rules, "on its base"):
        reason = told if isinstance(told, str) else told.reason
        return Doubt(
            RefusalKind.DICTATED, reason, "Different tasks get the same answer with it. Is it right for each?"
        )
    return None


def _evidence(own: Sequence[Trial]) -> str:
    """That what it mends ends in few answers, where no check says which is right; "" otherwise.

    What was held back counts with what was shown: it fails alike. Few: half as many as tasks, since who dictates one
    answer may as well dictate two, and who dictates one for each task names the tasks, which hidden ones tell.
    """
    passed = [trial for trial in own if (trial.set is TrialSet.EVIDENCE or trial.alike) and trial.passed]
    answers: dict[str, Counter[str]] = {}
    for trial in filter(_is_loose, passed):
        answers.setdefault(trial.work or trial.task_id, Counter())[trial.answer_sha256] += 1
    different = len({counts.most_common(1)[0][0] for counts in answers.values()})
    if len(answers) < _TASKS_MIN or different * 2 > len(answers):
        return ""
    many = "one answer" if different == 1 else f"{different} answers"
    return f"the {len(answers)} failing tasks that it mends end in {many}, and their checks would let others pass"


def _is_loose(trial: Trial) -> bool:
    """Whether nothing but the form of its answer was checked."""
    kinds = {check.kind for check in trial.outcome.checks}
    return bool(kinds) and kinds <= _LOOSE


def dictated_guards(
    none: Sequence[Trial], own: Sequence[Trial], rules: Judge, where: str = "without any memory"
) -> Refusal | None:
    """Where tasks that pass ``where`` by several answers get one and the same with it.

    One answer is given in ``one_answer`` of the trials, over ``answers_min`` tasks, where without it none was given
    in more than ``several_answers`` of them. Tasks that are answered as without it say nothing, however many there are.
    """
    others = [trial for trial in none if trial.set is not TrialSet.EVIDENCE and trial.passed]
    before, after = _given(others), _given(own)
    moved = {task_id for task_id in before.keys() & after.keys() if before[task_id] != after[task_id]}
    if len(moved) < rules.answers_min:
        return None
    without = [trial for trial in others if trial.task_id in moved]
    given = [trial for trial in own if trial.task_id in moved]
    if _commonest(given) < rules.one_answer or _commonest(without) > rules.several_answers:
        return None
    return Refusal(
        RefusalKind.DICTATED,
        f"with it {len(moved)} tasks that pass by different answers {where} get one and the same: "
        "it seems to dictate an answer that their checks let pass; make the checks stricter, or accept it by hand",
    )


def _given(trials: Sequence[Trial]) -> dict[str, set[str]]:
    """By task, the answers that were given."""
    found: dict[str, set[str]] = {}
    for trial in trials:
        found.setdefault(trial.task_id, set()).add(trial.answer_sha256)
    return found


def _commonest(trials: Sequence[Trial]) -> float:
    """The share of the answer that is given most often."""
    counts = Counter(trial.answer_sha256 for trial in trials)
    return max(counts.values()) / len(trials)
