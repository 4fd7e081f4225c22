"""What a guard finds, the rules by name, and what no text may bring in. docs/understand/guards.md explains each to a user."""

from __future__ import annotations

import ast
import base64
import itertools
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace

from agentos import frontmatter
from agentos.domain import Check, Json, Refusal, RefusalKind
from agentos.evolver.policy import SurfacePolicy
from agentos.syntax import parse

# Rule -> what it says, as it stands in a refusal.
RULES = {
    "import": "an import that is not allowed",
    "dynamic": "code made or loaded while it runs",
    "reflection": "names put together, or objects reached around their names",
    "process": "processes, signals and the end of the interpreter",
    "network": "the network",
    "inside": "environment, descriptors, and paths outside the workspace",
    "sdk": "what the sdk keeps to itself, or an sdk made other than it is",
    "text": "a text that is not what it looks like",
    "record": "a step, a failure or a log line that is no longer recorded",
    "checks": "a raise, an assertion or a limit that is gone",
    "except": "any error at all that is caught, or dropped on the way out",
    "swallow": "an error of one kind that goes no further",
    "hooks": "a hook that no longer runs",
    "growth": "size and complexity",
    "scanner": "a finding of bandit",
    "tell": "the clock, times of files, the machine, folders above, earlier calls, chance: what may tell a trial from a live run",
}


@dataclass(frozen=True, slots=True)
class RuleHit:
    """One thing that an edit brings in or takes away. ``line`` is the candidate's, 0 where it has none."""

    rule: str
    path: str
    line: int
    why: str
    effect: str = ""  # "refuse" or "ask" of a plug-in's rule; "": as the policy says of the rule

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}{': ' if where else ''}{self.why} ({self.rule})"


@dataclass(frozen=True, slots=True)
class Construct:
    """A construct in one version. Equal keys are the same construct, wherever it stands."""

    finding: RuleHit
    key: Hashable


def added(before: Iterable[Construct], after: Iterable[Construct]) -> list[RuleHit]:
    """What the candidate has more of than the base: what was there before is not the edit's fault."""
    left = Counter((seen.finding.rule, seen.key) for seen in before)
    found = []
    for seen in after:
        key = (seen.finding.rule, seen.key)
        if left[key]:
            left[key] -= 1
        else:
            found.append(seen.finding)
    return found


# --- Wording: what an edit of a text (a prompt, a memory, a skill's page, a document) must not bring in
# As with source, nothing here is a wall: the boxes hold and the replay measures. It keeps secrets, texts
# that do not look like what they are, and answers to the very tasks of the evidence out of the registry.

# Linear in the length of the text, whatever stands in it: a search holds up the whole process.
SECRET = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY|AKIA[0-9A-Z]{16}|\b(?:sk|ghp|gho|xox[abp])[-_][A-Za-z0-9_-]{16,}"
    r"|(?<![\w-])eyJ[\w-]{10,}\.[\w-]{10,}\."
)
_HELD_IN = ("value", "equals", "contains", "stdout_contains")  # keys of a check that hold what is expected
# A regular expression that means one text: no operators but the ends, and only punctuation escaped.
_LITERAL = re.compile(r"\^?((?:[^\\^$|?*+()\[\]{}]|\\[^\w\s])+)\$?")


def fault_of_text(
    path: str, old: str, new: str, checks: Sequence[Check], surface: SurfacePolicy
) -> Refusal | None:
    """Why the new text is refused, None when it is not. ``checks`` are the evidence's."""
    there = set(old.splitlines())
    added = [line for line in new.splitlines() if line not in there]
    text = "\n".join(added)
    secret = SECRET.search(text)
    if secret and secret.group() not in old:
        return Refusal(RefusalKind.TEXT, "it holds what looks like a secret")
    # Of the whole texts: what ``splitlines`` takes for the end of a line is in no line.
    if hidden := _unseen_in(new) - _unseen_in(old):
        return Refusal(RefusalKind.TEXT, f"it holds a character that is not seen (U+{ord(min(hidden)):04X})")
    if any(len(line) > surface.max_text_line for line in added):
        return Refusal(RefusalKind.TEXT, f"it has a line of more than {surface.max_text_line} characters")
    if path.endswith("/SKILL.md") and (why := _front_matter_widened(old, new)):
        return Refusal(RefusalKind.SURFACE, why)
    if path.endswith(".toml"):
        try:
            tomllib.loads(new)
        except (ValueError, RecursionError) as error:
            return Refusal(RefusalKind.TEXT, f"not valid TOML: {error}")
    found = sorted(
        {
            value
            for value in _expected(checks, surface.expected_min)
            if _says(text, value) and not _says(old, value)
        }
    )
    if not found:
        return None
    return Refusal(RefusalKind.EXPECTED, f"it writes an expected value into the text ({', '.join(found)})")


_LIST_MIN = 3  # goals, or numbers, that make a list of the shown work
_WORD_MIN = 4  # letters: shorter ones are in most sentences
_SENTENCE = re.compile(r"[.;!?]\s|\n")
_MARK = re.compile(r"^\s*\d+[.)]\s", re.MULTILINE)  # of an entry of a numbered list


def tasks_named(old: str, new: str, goals: Sequence[str]) -> list[str]:
    """By what the new text names the work of these goals, one by one; [] where it does not.

    ``When week 1, answer in JSON.``, and so on for each week that was shown, says nothing of the week after. Each of the
    goals is named by words that few of them have and the old text has not, or by one of several numbers that at most half of
    them have. Where each goal is another kind of work a right text may do so too: a person is asked.
    """
    if len(goals) < 2:
        return []
    there = _words(old)
    sentences = [_words(part) - there for part in _SENTENCE.split(new)]
    seen = [_words(goal) & set().union(*sentences) for goal in goals]
    count = Counter(word for words in seen for word in words)
    rare = [[word for word in sorted(words) if count[word] <= max(1, len(goals) // 4)] for words in seen]
    if all(rare):  # of "week", "1" and "week 1" the last says most
        names = {max(words, key=lambda word: (" " in word, len(word))): None for words in rare}
        by_chance = any(map(str.isalpha, names)) and any({*names} <= words for words in sentences)
        if len(goals) >= _LIST_MIN or not by_chance:  # one sentence may share a word with each of two
            return list(names)
    numbers = {word for word in count if word.isdecimal() and count[word] <= len(goals) / 2}
    listed = len(numbers) >= _LIST_MIN and not any(numbers.isdisjoint(words) for words in seen)
    return sorted(numbers, key=int) if listed else []


def _words(text: str) -> set[str]:
    """Its words that may name something, and numbers with the word before, such as ``week 1``."""
    plain = re.findall(r"\w+", _MARK.sub("", text).casefold())
    pairs = (" ".join(pair) for pair in itertools.pairwise(plain) if pair[1].isdecimal())
    return {word for word in plain if len(word) >= _WORD_MIN or not word.isalpha()} | {*pairs}


def _front_matter_widened(old: str, new: str) -> str:
    """Which key but the description an edit of a skill's page changes: ``allowed-tools`` grants tools and scripts."""
    if not old:
        return ""  # a new skill, about which a person is asked
    try:
        before, after = (frontmatter.read(text).values for text in (old, new))
    except ValueError as error:
        return f"its page cannot be read: {error}"
    changed = sorted(key for key in {*before, *after} - {"description"} if before.get(key) != after.get(key))
    return (
        f"it changes {changed[0]} of the skill's page; only the description and the text may change"
        if changed
        else ""
    )


# Letters and marks that show as nothing, and take whole sentences as variation selectors do. One of the two that choose how
# a sign is drawn may follow it.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0d\uffa0\U000e0100-\U000e01ef]"
    "|(?<=[\ufe0e\ufe0f])[\ufe0e\ufe0f]"
)


def unseen(line: str) -> list[str]:
    """Its characters that show as nothing, or as the end of a line where Python and git see none."""
    odd = [] if line.isprintable() else [sign for sign in line if _is_odd(sign)]
    return odd + ([] if line.isascii() else _BLANK.findall(line))


def _is_odd(sign: str) -> bool:
    return sign not in "\n\t" and unicodedata.category(sign) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")


def _unseen_in(text: str) -> Counter[str]:
    return Counter(sign for line in text.replace("\r\n", "\n").split("\n") for sign in unseen(line))


def _expected(checks: Sequence[Check], least: int) -> Iterator[str]:
    return (text for value in expected(checks) if len(text := str(value)) >= least)


def expected(checks: Sequence[Check]) -> Iterator[Json]:
    """The texts and numbers that the checks want to find, whatever kind they are of."""
    for check in checks:
        for key in _HELD_IN:
            yield from leaves(check.spec.get(key))
        yield from _fixed_in(check.spec.get("schema"))
        if literal := _LITERAL.fullmatch(str(check.spec.get("pattern") or "")):
            yield re.sub(r"\\(.)", r"\1", literal[1])
        if code := check.spec.get("code"):
            yield from _compared_in(str(code))


def untold(checks: Sequence[Check], given: Sequence[str]) -> list[Check]:
    """The checks without the words that stand in each of several different inputs (their arguments and files as texts).

    Such a word tells none of these from another, and a tool that reads it there may have to name it. Nothing with a
    digit: codes and numbers are what is memorised; and no word that is all that a check wants: who writes it has the answer.
    """
    if len({*given}) < 2:
        return [*checks]
    wanted = {value for value in expected(checks) if isinstance(value, str) and value.strip()}
    words = {
        word
        for word in wanted
        if not any(sign.isdigit() for sign in word)
        and all(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) for text in given)
    }
    return [
        check
        if all(value in words for value in expected([check]))
        else replace(check, spec={key: _without(value, words) for key, value in check.spec.items()})
        for check in checks
    ]


def _without(value: Json, words: Set[str]) -> Json:
    if isinstance(value, dict):
        return {key: _without(item, words) for key, item in value.items()}
    if isinstance(value, list):
        return [_without(item, words) for item in value]
    return "" if isinstance(value, str) and value in words else value


def _fixed_in(schema: Json) -> Iterator[Json]:
    """The values that a JSON schema allows alone."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            yield from leaves(value) if key in ("const", "enum") else _fixed_in(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _fixed_in(item)


def _compared_in(code: str) -> Iterator[Json]:
    """What a snippet compares with."""
    for node in ast.walk(parse(code)):  # it compiled when its task was added
        sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        for side in sides:
            if isinstance(side, ast.Constant):
                yield from leaves(side.value if isinstance(side.value, str | int | float) else None)


_NUMBER = re.compile(r"\d{1,3}(?:[,.'\u2019_ ]\d{3})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)?")
_CODED = re.compile(r"(?<![\w+/])(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2,3}={0,2})?(?![\w+/])")
_MARKS = str.maketrans("", "", "*`")


def _says(text: str, value: str) -> bool:
    """Also in other letters, otherwise spaced, emphasised, coded, or as a number that is written otherwise."""
    plain, wanted = _plain(text), _plain(value)
    if re.search(rf"(?<![\w.]){re.escape(wanted)}(?![\w]|\.\d)", plain):
        return True
    try:
        number = abs(float(wanted))
    except ValueError:
        return False
    return any(number in _amounts(found) for found in _NUMBER.findall(plain))


def _plain(text: str) -> str:
    for coded in _CODED.findall(text):
        with suppress(ValueError):  # no base64, or no text in it
            text += f"\n{base64.b64decode(coded + '=' * (-len(coded) % 4)).decode()}"
    return " ".join(unicodedata.normalize("NFKC", text).casefold().translate(_MARKS).split())


def _amounts(number: str) -> set[float]:
    """What a number is with a point, and with a comma, before its fraction."""
    found = set()
    for fraction in ".,":
        with suppress(ValueError):
            found.add(float(re.sub(rf"[^\d{fraction}]", "", number).replace(",", ".")))
    return found


def leaves(value: Json) -> Iterator[Json]:
    """The texts and numbers within a JSON value."""
    if isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value
