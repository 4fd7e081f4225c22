"""Inputs like those of the cases, to see how candidates differ where no check says what is right.

An input is changed in one place, within its form: a document of JSON stays one, a table keeps its columns, a text
that is a number stays a number. New values are those of other cases and of other places with the same form, the
bounds and choices that the tool's ``Input`` names, and the constants of the source and what lies next to them.
Deterministic: the same cases and the same chance give the same inputs.
"""

from __future__ import annotations

import ast
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from agentos.domain import Call, canonical
from agentos.ports import Case
from agentos.syntax import parse

BYTES_MAX = 8 << 20
_DEEP = 6  # levels of a value that are changed
# What is behind a sign begins no token: a row of 40,000 dots would be looked through from each of them.
_TOKEN = re.compile(r"(?<![\w.,:/+-])[\w.,:/+-]*\w")
_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)*")
_WHOLE = re.compile(r"-?[0-9]{1,4000}")  # Python reads no longer ones
_SIGNS = "'\"\\#%&;<>@`|"  # that quoting, patterns, comments and markup read otherwise than letters
_BOUNDS = ("ge", "gt", "le", "lt", "min_length", "max_length", "multiple_of")


def generate(cases: Sequence[Case], count: int, source: str | ast.Module = "") -> list[Case]:
    """Up to ``count`` variations of inputs of the tool with this source, which may be parsed already.

    Fewer when the files are large: all of them together stay below BYTES_MAX.
    """
    chance = random.Random(20_070_401)  # noqa: S311 (not for secrets; fixed, so that a search can be repeated)
    seen = {_identity(case) for case in cases}
    variation = Variation.of(cases, source)
    found: list[Case] = []
    room = BYTES_MAX
    for _ in range(count * 8):
        if len(found) >= count or not cases or room < 0:
            break
        case = cases[len(found) % len(cases)]
        places = [*variation.arguments(case), *sorted(case.inputs)]
        variant = variation.varied(case, chance.choice(places), chance) if places else None
        if variant is not None and _identity(variant) not in seen:
            seen.add(_identity(variant))
            found.append(variant)
            room -= sum(map(len, variant.inputs.values()))
    return found


def _identity(case: Case) -> bytes:
    return repr((sorted(case.call.args.items()), sorted(case.inputs.items()))).encode()


@dataclass
class Variation:
    """What the places of an input may be changed to."""

    numbers: list[float]  # constants of the source
    fields: dict[str, list[Any]]  # of ``Input``: defaults, bounds and choices
    arguments_seen: dict[str, list[Any]]
    texts: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # by their form
    rows: list[bytes] = field(default_factory=list)

    @classmethod
    def of(cls, cases: Sequence[Case], source: str | ast.Module) -> Variation:
        """What these cases and the tool's source offer."""
        try:
            tree = parse(source) if isinstance(source, str) else source
        except (SyntaxError, ValueError, RecursionError):
            tree = ast.Module([], [])
        arguments: dict[str, list[Any]] = defaultdict(list)
        for case in cases:
            for name, value in case.call.args.items():
                arguments[name].append(value)
        made = cls(sorted(set(_numbers(tree))), dict(_fields(tree)), arguments)
        texts: dict[str, None] = {}
        for case in cases:
            names = set(case.inputs)
            texts.update(dict.fromkeys(text for text in _texts(dict(case.call.args)) if text not in names))
            for data in case.inputs.values():
                lines = data.splitlines(keepends=True)
                made.rows += lines[1:200]
                words = _TOKEN.findall(b"".join(lines[:200]).decode("utf-8", "ignore"))
                texts.update(dict.fromkeys(words))
        for text in islice(texts, 5000):
            made.texts[form(text)].append(text)
        return made

    def arguments(self, case: Case, *, unsaid: bool = True) -> list[str]:
        """Those that may be changed: given ones that name no input file, and ``unsaid`` ones with a default."""
        given = case.call.args
        named = {name for name, value in given.items() if isinstance(value, str) and value in case.inputs}
        return sorted({*given, *(self.fields if unsaid else ())} - named)

    def varied(self, case: Case, along: str, chance: random.Random) -> Case | None:
        """The case with one argument or one input file changed in one place; None where that cannot be."""
        if along in case.inputs:
            changed = self.file(case.inputs[along], chance)
            return replace(case, inputs={**case.inputs, along: changed}, checks=())
        args = dict(case.call.args)
        if isinstance(args.get(along), str) and args[along] in case.inputs:
            return None  # another name would only be a missing file
        choices = self.fields.get(along, [])
        if along not in args or (choices and chance.random() < 0.3):
            if not choices:
                return None
            args[along] = chance.choice(choices)
            if chance.random() < 0.5:
                args[along] = self.value(args[along], chance)
        elif (others := self.arguments_seen[along]) and chance.random() < 0.15:
            args[along] = chance.choice(others)
        else:
            args[along] = self.value(args[along], chance)
            if chance.random() < 0.3:
                args[along] = self.value(args[along], chance)
        return replace(case, call=Call(case.call.tool, args), checks=())

    # --- values -----------------------------------------------------------------------------------

    def value(self, value: Any, chance: random.Random, depth: int = 0) -> Any:
        """A value of the same kind, changed in one place; at times the same."""
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return self._number(value, chance)
        if isinstance(value, float):
            steps = [
                value + 1,
                value - 0.5,
                value * 2,
                value / 2,
                -value,
                0.0,
                round(chance.random() * 10, 1),
            ]
            return chance.choice(steps)
        if isinstance(value, str):
            return self.text(value, chance)
        if isinstance(value, list | tuple):
            return type(value)(self._items(list(value), chance, depth))
        if isinstance(value, dict) and value and depth < _DEEP:
            key = chance.choice(sorted(value, key=str))
            if depth and chance.random() < 0.06:
                return {name: each for name, each in value.items() if name != key}
            return {**value, key: self.value(value[key], chance, depth + 1)}
        return value

    def _number(self, value: int, chance: random.Random) -> int:
        if self.numbers and chance.random() < 0.3:
            return int(chance.choice(self.numbers)) + chance.choice([-1, 0, 1])
        steps = [value + 1, value - 1, value + 2, value * 2, value // 2, chance.randint(0, 12), -value, 0]
        return chance.choice(steps)

    def _items(self, items: list[Any], chance: random.Random, depth: int) -> list[Any]:
        choice = chance.random()
        if not items or choice < 0.04:
            return []
        at = chance.randrange(len(items))
        if choice < 0.15:
            return items[:at] + items[at + 1 :]
        if choice < 0.19:
            return items[at : at + 1]
        if choice < 0.33:
            return [*items[:at], items[chance.randrange(len(items))], *items[at:]]
        if choice < 0.41:
            return items[::-1]
        if choice < 0.5:
            chance.shuffle(items)
            return items
        if choice < 0.58:
            return [*items, self.value(items[at], chance, depth + 1)]
        return [*items[:at], self.value(items[at], chance, depth + 1), *items[at + 1 :]]

    def text(self, text: str, chance: random.Random) -> str:
        """Another text of the same form, one with a changed word, or one with a changed character."""
        choice = chance.random()
        if choice < 0.45 and (alike := self.texts.get(form(text))):
            return chance.choice(alike)
        if choice < 0.6 and (words := list(_TOKEN.finditer(text))):
            word = chance.choice(words)
            return text[: word.start()] + self.word(word.group(), chance) + text[word.end() :]
        return _vary_text(text, chance)

    def word(self, word: str, chance: random.Random) -> str:
        """Another word of its form; a number that is next to it, to zero, or to a constant of the source."""
        alike = self.texts.get(form(word), [])
        if alike and chance.random() < 0.5:
            return chance.choice(alike)
        if _WHOLE.fullmatch(word):
            return str(self._number(int(word), chance)).zfill(len(word) if word[0] == "0" else 0)
        if _NUMBER.fullmatch(word):
            at = chance.choice([number for number, char in enumerate(word) if char.isdigit()])
            return word[:at] + chance.choice("0123456789") + word[at + 1 :]
        changed = (
            word.swapcase(),
            word.title(),
            f" {word}",
            f"{word} ",
            f"{word}é",
            f"{word}-{word}",
            word[:1],
            f"{word[:1]}'{word[1:]}",  # O'Neil
        )
        return chance.choice(changed)

    # --- files ------------------------------------------------------------------------------------

    def file(self, data: bytes, chance: random.Random) -> bytes:
        """The file changed in one place: a value of a document, a line, or a word of a line."""
        if data.lstrip()[:1] in (b"{", b"["):
            try:
                value = self.value(json.loads(data), chance)
                return json.dumps(value, ensure_ascii=False, indent=1).encode()
            except (ValueError, RecursionError):
                pass
        lines = data.splitlines(keepends=True)
        choice = chance.random()
        if not lines or choice < 0.03:
            return b""
        # The first line is often a table's head, without which nothing else says anything.
        first = 1 if len(lines) > 1 and chance.random() < 0.9 else 0
        at = chance.randrange(first, len(lines))
        if choice < 0.4:
            return self._other_lines(lines, first, at, chance)
        try:
            line = lines[at].decode()
        except UnicodeDecodeError:
            return b"".join(lines[:at])
        body = line.rstrip("\r\n")
        words = list(_TOKEN.finditer(body))
        if words and choice < 0.9:
            word = chance.choice(words)
            body = body[: word.start()] + self.word(word.group(), chance) + body[word.end() :]
        else:
            body = _vary_text(body, chance)
        changed = body + line[len(line.rstrip("\r\n")) :]
        return b"".join([*lines[:at], changed.encode("utf-8", "ignore"), *lines[at + 1 :]])

    def _other_lines(self, lines: list[bytes], first: int, at: int, chance: random.Random) -> bytes:
        """With a line left out, doubled, borrowed from another file, in another order, or cut off."""
        head, rest = lines[:first], lines[first:]
        choice = chance.random()
        if choice < 0.22:
            return b"".join(lines[:at] + lines[at + 1 :])
        if choice < 0.45:
            return _joined([*lines[:at], lines[chance.randrange(first, len(lines))], *lines[at:]])
        if choice < 0.62 and self.rows:
            return _joined([*lines[:at], chance.choice(self.rows), *lines[at:]])
        if choice < 0.74:
            return _joined([*head, *rest[::-1]])
        if choice < 0.86:
            chance.shuffle(rest)
            return _joined([*head, *rest])
        if choice < 0.9:
            return b"".join(head)
        if choice < 0.95:
            return b"".join([*head, lines[at]])
        return b"".join(lines[: at + 1]).rstrip(b"\r\n")


def _joined(lines: Sequence[bytes]) -> bytes:
    """Lines in a new order: the one that ended the file needs its end now."""
    end = next((line[len(line.rstrip(b"\r\n")) :] for line in lines if line.endswith(b"\n")), b"\n")
    return b"".join(line if line.endswith(b"\n") else line + end for line in lines)


def form(text: str) -> str:
    """What a text looks like: a number, a date or time, a word, several words, or what its signs are."""
    if _NUMBER.fullmatch(text):
        return "number"
    signs = "".join(sorted({char for char in text if not char.isalnum()}))
    if not any(char.isalpha() for char in text):
        return f"digits {signs}"
    return f"{'mixed' if any(char.isdigit() for char in text) else 'words'} {signs}"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _numbers(tree: ast.AST) -> Iterator[float]:
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9:
            yield value


def _fields(tree: ast.Module) -> Iterator[tuple[str, list[Any]]]:
    """Fields of ``Input`` with the values that their annotation and default name."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for node in classes["Input"].body if "Input" in classes else ():
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            values = [*_named(node.annotation, classes), *_defaults(node.value)]
            if values:
                yield node.target.id, values


def _named(annotation: ast.expr, classes: dict[str, ast.ClassDef]) -> Iterator[Any]:
    """Choices that a type names: those of a ``Literal`` or an enumeration, and None."""
    for node in ast.walk(annotation):
        if isinstance(node, ast.Constant):
            yield from _literal(node)
        elif isinstance(node, ast.Name) and node.id in classes:
            for item in classes[node.id].body:
                if isinstance(item, ast.Assign) and isinstance(item.value, ast.Constant):
                    yield from _literal(item.value)


def _defaults(value: ast.expr | None) -> Iterator[Any]:
    """The default, and numbers at the bounds of a ``Field``."""
    if not isinstance(value, ast.Call):
        yield from _literal(value)
        return
    for argument in value.args[:1]:
        yield from _literal(argument)
    for word in value.keywords:
        if word.arg in ("default", *_BOUNDS):
            step = {"gt": 1, "lt": -1}.get(word.arg, 0)
            for found in _literal(word.value):
                yield found + step if step and isinstance(found, int | float) else found


def _literal(node: ast.expr | None) -> Iterator[Any]:
    """What it says, if an argument can be that: no ``...``, no bytes, no set."""
    try:
        if node is not None:
            yield json.loads(json.dumps(ast.literal_eval(node), allow_nan=False))
    except (ValueError, TypeError, SyntaxError, RecursionError):
        pass


def _vary_text(text: str, chance: random.Random) -> str:
    choice = chance.random()
    if not text or choice < 0.04:
        return chance.choice(["a", "", " ", "0", "é"])
    at = chance.randrange(len(text))
    if choice < 0.2:
        return text[:at] + text[at + 1 :]
    if choice < 0.32:
        return text[:at] + text[chance.randrange(len(text))] + text[at:]
    if choice < 0.36:
        return text[:at] + chance.choice(_SIGNS) + text[at:]
    if choice < 0.43:
        return text[::-1]
    if choice < 0.53:
        return text[:at] + text[at:].swapcase()
    if choice < 0.63 and " " in text:
        words = text.split(" ")
        chance.shuffle(words)
        return " ".join(words)
    if choice < 0.7:
        return text + text[at]
    if choice < 0.75:
        return chance.choice([f" {text}", f"{text} ", f"{text} {text}"])
    alike = "0123456789" if text[at].isdigit() else "aeiouxyzAEé" if text[at].isalpha() else text
    return text[:at] + chance.choice(alike) + text[at + 1 :]


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same, ``1`` and ``True`` kept apart."""
    return canonical(one) == canonical(other)
