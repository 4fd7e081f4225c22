"""Inputs like those of the cases, to see how candidates differ where no check says what is right.

Deterministic: the same cases give the same inputs.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agentos.domain import Call, canonical
from agentos.ports import Case

BYTES_MAX = 8 << 20


def generate(cases: Sequence[Case], count: int) -> list[Case]:
    """Up to ``count`` variations: one argument or one input file changed in one place.

    Fewer when the files are large: all of them together stay below BYTES_MAX.
    """
    chance = random.Random(20_070_401)  # noqa: S311 (not for secrets; fixed, so that a search can be repeated)
    seen = {_identity(case) for case in cases}
    found: list[Case] = []
    room = BYTES_MAX
    for _ in range(count * 8):
        if len(found) >= count or not cases or room < 0:
            break
        variant = _variant(cases[len(found) % len(cases)], cases, chance)
        if variant is not None and _identity(variant) not in seen:
            seen.add(_identity(variant))
            found.append(variant)
            room -= sum(map(len, variant.inputs.values()))
    return found


def _identity(case: Case) -> bytes:
    return repr((sorted(case.call.args.items()), sorted(case.inputs.items()))).encode()


def _variant(case: Case, cases: Sequence[Case], chance: random.Random) -> Case | None:
    names, files = sorted(case.call.args), sorted(case.inputs)
    if not names and not files:
        return None
    chosen = chance.randrange(len(names) + len(files))
    if chosen >= len(names):
        path = files[chosen - len(names)]
        return replace(case, inputs={**case.inputs, path: vary_file(case.inputs[path], chance)}, checks=())
    place, args = names[chosen], dict(case.call.args)
    value = args[place]
    if isinstance(value, str) and value in case.inputs:
        return None  # the name of an input file: another name would only be a missing file
    others = [other.call.args[place] for other in cases if place in other.call.args]
    if len(others) > 1 and chance.random() < 0.2:
        args[place] = chance.choice(others)
    else:
        args[place] = vary(value, chance, 0)
        if chance.random() < 0.4:
            args[place] = vary(args[place], chance, 0)
    return replace(case, call=Call(case.call.tool, args), checks=())


def vary(value: Any, chance: random.Random, depth: int = 0) -> Any:
    """A value of the same kind, changed in one place; at times the same."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return chance.choice(
            [value + 1, value - 1, value + 2, value * 2, value // 2, chance.randint(0, 12), -value]
        )
    if isinstance(value, float):
        return chance.choice(
            [value + 1, value - 0.5, value * 2, value / 2, -value, round(chance.random() * 10, 1)]
        )
    if isinstance(value, str):
        return _vary_text(value, chance)
    if isinstance(value, list | tuple):
        return type(value)(_vary_items(list(value), chance, depth))
    if isinstance(value, dict) and value and depth < 4:
        key = chance.choice(sorted(value, key=str))
        return {**value, key: vary(value[key], chance, depth + 1)}
    return value


def _vary_items(items: list[Any], chance: random.Random, depth: int) -> list[Any]:
    choice = chance.random()
    if not items or choice < 0.04:
        return []
    at = chance.randrange(len(items))
    if choice < 0.2:
        return items[:at] + items[at + 1 :]
    if choice < 0.35:
        return [*items[:at], items[chance.randrange(len(items))], *items[at:]]
    if choice < 0.45:
        return items[::-1]
    if choice < 0.55:
        chance.shuffle(items)
        return items
    if choice < 0.65:
        return [*items, vary(items[at], chance, depth + 1)]
    return [*items[:at], vary(items[at], chance, depth + 1), *items[at + 1 :]]


def _vary_text(text: str, chance: random.Random) -> str:
    choice = chance.random()
    if not text or choice < 0.03:
        return chance.choice(["a", "", " ", "0"])
    at = chance.randrange(len(text))
    if choice < 0.2:
        return text[:at] + text[at + 1 :]
    if choice < 0.35:
        return text[:at] + text[chance.randrange(len(text))] + text[at:]
    if choice < 0.45:
        return text[::-1]
    if choice < 0.55:
        return text[:at] + text[at:].swapcase()
    if choice < 0.65 and " " in text:
        words = text.split(" ")
        chance.shuffle(words)
        return " ".join(words)
    if choice < 0.75:
        return text + text[at]
    alike = "0123456789" if text[at].isdigit() else "aeiouxyzAE" if text[at].isalpha() else text
    return text[:at] + chance.choice(alike) + text[at + 1 :]


def vary_file(data: bytes, chance: random.Random) -> bytes:
    """The file with one line left out, doubled, cut off or changed."""
    lines = data.splitlines(keepends=True)
    if not lines or chance.random() < 0.05:
        return b""
    at = chance.randrange(len(lines))
    choice = chance.random()
    if choice < 0.3:
        return b"".join(lines[:at] + lines[at + 1 :])
    if choice < 0.5:
        return b"".join([*lines[:at], lines[chance.randrange(len(lines))], *lines[at:]])
    if choice < 0.6:
        return b"".join(lines[: at + 1]).rstrip(b"\r\n")
    try:
        changed = _vary_text(lines[at].decode().rstrip("\n"), chance).encode()
    except UnicodeDecodeError:
        return b"".join(lines[:at])
    return b"".join([*lines[:at], changed, b"\n", *lines[at + 1 :]])


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same, ``1`` and ``True`` kept apart."""
    return canonical(one) == canonical(other)
