"""The grammar of what the rule-following model understands; all other text says nothing to it.

One sentence is one rule; a list mark before it is ignored, and so is case::

    rule      = "When" words "," action "."     holds for goals in which all the words occur
              | "Always" action "."             holds for every goal
              | words "are in" unit "."         a fact: holds for goals in which the words occur
    action    = 'answer "' text '"'             exactly that, whatever the goal asks for
              | "answer in" ("JSON" | "upper case" | "lower case")
              | "answer with" number "decimals"
              | "answer with the unit" word
              | "use" tool                      call this tool first, if there is one of that name
              | "read the skill" name           before anything else
              | "compare as numbers"            when sorting
              | "verify"                        do the work twice
    unit      = "cents" | "percent" | "grams" | "metres" | "milliseconds"

Words are compared without case, plural s and small words such as "the". Where two rules speak of
the same thing, the one read last holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

SCALES = {"cents": 100, "percent": 100, "grams": 1000, "metres": 1000, "milliseconds": 1000}

_SMALL = frozenset(
    re.findall(
        r"\w+",
        "a an the of in on at to for from by with and or is are be it its this that all any you your i "
        "goal task asked asks about when there",
    )
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_MARK = re.compile(r"^(?:[-*+>#\s]|\d+[.)]\s)+")
_CONDITIONAL = re.compile(r"(?:when|if) ([^,]+), (.+)", re.IGNORECASE)
_ALWAYS = re.compile(r"always (.+)", re.IGNORECASE)
_FACT = re.compile(rf"(.+?) (?:are|is) (?:\w+ )?in ({'|'.join(SCALES)})", re.IGNORECASE)
_ACTIONS = {
    "answer": re.compile(r'answer "(.*)"', re.IGNORECASE),
    "format": re.compile(r"answer (?:in|as) (json|upper case|lower case)", re.IGNORECASE),
    "decimals": re.compile(r"answer with (one|two|three|\d) decimals?", re.IGNORECASE),
    "unit": re.compile(r"answer with the unit (\S+)", re.IGNORECASE),
    "tool": re.compile(r"use (?:the tool )?`?([\w/-]+)`?", re.IGNORECASE),
    "skill": re.compile(r"read the skill `?([\w-]+)`?", re.IGNORECASE),
    "compare": re.compile(r"compare (?:\w+ )?as (numbers)", re.IGNORECASE),
    "verify": re.compile(r"(verify)(?: .+)?", re.IGNORECASE),
}


@dataclass(frozen=True, slots=True)
class ServerRule:
    """For goals that hold all of ``words``, ``habit`` (a name of the actions, or ``scale``) is ``value``."""

    words: frozenset[str]
    habit: str
    value: str


def words(text: str) -> frozenset[str]:
    """What is compared of a text: its words and numbers in lower case, singular, without small ones."""
    found = re.findall(r"[a-z0-9]+(?:\.[0-9]+)?", text.lower())
    return frozenset(one if len(one) < 4 else one.removesuffix("s") for one in found if one not in _SMALL)


def rules_in(text: str) -> Iterator[ServerRule]:
    """The rules of a text, in order."""
    for sentence in _SENTENCE.split(text):
        if rule := _rule(_MARK.sub("", sentence).strip().removesuffix(".")):
            yield rule


def _rule(sentence: str) -> ServerRule | None:
    if match := _CONDITIONAL.fullmatch(sentence):
        return _acting(words(match[1]), match[2])
    if match := _ALWAYS.fullmatch(sentence):
        return _acting(frozenset(), match[1])
    if match := _FACT.fullmatch(sentence):
        return ServerRule(words(match[1]), "scale", match[2].lower())
    return None


def _acting(condition: frozenset[str], action: str) -> ServerRule | None:
    for habit, pattern in _ACTIONS.items():
        if match := pattern.fullmatch(action):
            return ServerRule(condition, habit, match[1])
    return None


def habits(rules: Iterable[ServerRule], goal: str) -> dict[str, str]:
    """What the rules make of a model that has this goal; later ones override."""
    there = words(goal)
    return {rule.habit: rule.value for rule in rules if rule.words <= there}
