"""Content of ``evolver/`` (trusted, outside the registry), read from TOML and checked: policy and taxonomy."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from agentos.domain import RESOURCE_NAME, Layer, Mode, Tier
from agentos.errors import ErrorKind, Invalid, meant, shown
from agentos.evolver.find import FailureClass
from agentos.evolver.guards.static import RULES
from agentos.evolver.policy import (
    ConsentPolicy,
    Judge,
    MinePolicy,
    Policy,
    Probation,
    ProposePolicy,
    ReplayPolicy,
    ReviewPolicy,
    SandboxPolicy,
    Screen,
)
from agentos.plaintext import line_of

_SECTIONS: Mapping[str, Any] = {
    item.name: item.default_factory for item in fields(Policy) if item.name != "edition"
}
# What a text may say, by section.
_WORDS: Mapping[type[Any], tuple[str, ...]] = {
    ConsentPolicy: ("auto", "ask"),
    ReviewPolicy: ("off", "advise"),
    ProposePolicy: ("diff", "whole"),
    SandboxPolicy: ("auto", "docker", "bubblewrap"),
    Screen: tuple(RULES),
    ReplayPolicy: (Mode.REPLAY_THEN_LIVE, Mode.REPLAY, Mode.LIVE),
}


# Numbers that are chances or shares, neither 0 nor 1.
_SHARES: Mapping[type[Any], tuple[str, ...]] = {
    ProposePolicy: ("parent_chance",),
    Judge: ("alpha", "beta", "min_effect", "margin", "dear_share", "steady_share"),
    Probation: ("alpha",),
}

# Numbers of trials: without one nothing is known, and their places are bounded (``verdict.pairing``).
_TRIALS: Mapping[type[Any], tuple[str, ...]] = {
    ReplayPolicy: ("repeats",),
    Judge: ("sieve_trials", "alike_trials"),
    Probation: ("beside",),
}

# Numbers that something is divided by.
_DIVISORS: Mapping[type[Any], tuple[str, ...]] = {
    MinePolicy: ("half_life_days",),
    ProposePolicy: ("hope_s", "falls_by"),
}

# The keys of each section that are bounded, the bound, and what is said of a number beyond it.
_BOUNDS: tuple[tuple[Mapping[type[Any], tuple[str, ...]], Callable[[Any], bool], str], ...] = (
    (_SHARES, lambda value: 0 < value < 1, "must lie between 0 and 1, not be"),
    (_DIVISORS, bool, "must be above 0, not"),
    (_TRIALS, lambda value: 1 <= value <= 100, "must lie between 1 and 100, not be"),
)

# Texts that name a resource.
_NAMES: Mapping[type[Any], tuple[str, ...]] = {ProposePolicy: ("model",), ReviewPolicy: ("model",)}


# Keys of earlier versions that decide nothing any more, by section: passed over in a file of a home, and in what was
# stored with a verdict. What decides a verdict stays in its section, or the verdict could not be computed again.
_RETIRED: Mapping[str, frozenset[str]] = {}


def load_policy(path: Path) -> Policy:
    """Read a policy file; raises Invalid with one sentence per fault."""
    document = toml_of(path)
    text = path.read_text(encoding="utf-8")
    faults = [
        f"{line_of(text, '', name)}[{name}] is not a section; known are {', '.join(_SECTIONS)}"
        for name in document
        if name not in _SECTIONS
    ]
    parts = {}
    for name, kind in _SECTIONS.items():
        section = document.get(name, {})
        if isinstance(section, dict):
            parts[name] = _section(kind, name, section, text, faults)
        else:
            faults.append(f"{line_of(text, name)}[{name}] must be a table")
    if not faults and not parts["review"].model and any(map(parts["review"].wants, Tier)):
        faults.append('[review] asks for a review and names no model; add model = "NAME"')
    if faults:
        raise Invalid(str(path), faults)
    return Policy(**parts)


_DRAWN = ("mutants", "stepped", "symptom_min", "spelled")
_FRESH = ("fresh_tasks", "fresh_mended", "fresh_answers", "fresh_doubted")
# What stood for a key that a stored policy lacks, where that is not today's default.
_BEFORE: Mapping[str, Mapping[str, Any]] = {
    "judge": {"unattended_share": 0.0, "hidden_share": 0.0, "hidden_gain": 0.0, **dict.fromkeys(_FRESH, 0)},
    "surface": {"searched": ()},
    "screen": {"ask": ()},
    "replay": {**dict.fromkeys(_DRAWN, 0), "prior_min": 0.0, "share_min": 0.0},
}


def policy_from_json(data: Mapping[str, Any]) -> Policy:
    """The policy whose canonical form was stored with a verdict (blob ``Verdict.policy_sha256``).

    Raises Invalid where a key is neither known nor retired: a later version stored it, and may have judged by it.
    """
    sections = {name: _current(name, {**_BEFORE.get(name, {}), **data.get(name, {})}) for name in _SECTIONS}
    unknown = [f"[{name}]" for name in data.keys() - _SECTIONS.keys() - {"edition"}]
    for name, kind in _SECTIONS.items():
        unknown += [f"[{name}] {key}" for key in sections[name].keys() - {item.name for item in fields(kind)}]
    if unknown:
        raise Invalid("the stored policy", [f"this version knows no {key}" for key in sorted(unknown)])
    parts: dict[str, Any] = {name: kind(**sections[name]) for name, kind in _SECTIONS.items()}
    return Policy(**parts, edition=data.get("edition", 1))


def _current(name: str, section: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is retired, and with tuples for JSON's lists."""
    return {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in section.items()
        if key not in _RETIRED.get(name, ())
    }


def _section(kind: type[Any], name: str, section: Mapping[str, object], text: str, faults: list[str]) -> Any:
    default = kind()
    known = {item.name: getattr(default, item.name) for item in fields(kind)}
    values: dict[str, Any] = {}
    for key, value in section.items():
        if key in _RETIRED.get(name, ()):
            continue
        if key not in known:
            there = meant(key, known, f"Known are {', '.join(known)}")
            faults.append(f"{line_of(text, key, name)}[{name}] {key} is not a setting. {there}")
            continue
        if key in _NAMES.get(kind, ()):
            good = isinstance(value, str) and (not value or RESOURCE_NAME.fullmatch(value))
            fault = "" if good else f"must be the name of a model, not {value!r}"
        else:
            fault = _fault_of(known[key], value, _WORDS.get(kind, ()))
        if not fault:
            told = (says for keys, fits, says in _BOUNDS if key in keys.get(kind, ()) and not fits(value))
            fault = next((f"{says} {value!r}" for says in told), "")
        if fault:
            faults.append(f"{line_of(text, key, name)}[{name}] {key} {fault}")
        else:
            values[key] = tuple(value) if isinstance(value, list) else value
    return kind(**values)


def _fault_of(default: object, value: object, words: tuple[str, ...]) -> str:
    """Why ``value`` cannot stand where ``default`` stands, "" if it can."""
    if isinstance(default, str):
        choice = " or ".join(f'"{word}"' for word in words)
        return "" if value in words else f"must be {choice}, not {value!r}"
    if isinstance(default, tuple):
        good = isinstance(value, list) and all(isinstance(item, str) for item in value)
        if not good:
            return "must be a list of patterns"
        choosing = words and default and set(default) <= set(words)
        wrong = [item for item in value if item not in words] if choosing else []  # type: ignore[attr-defined] # a list
        return f"may name only {', '.join(words)}, not {wrong[0]!r}" if wrong else ""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:  # TOML knows nan
        return f"must be a number of at least 0, not {value!r}"
    if isinstance(default, int) and not isinstance(value, int):
        return f"must be a whole number, not {value!r}"
    return ""


def load_taxonomy(path: Path) -> tuple[FailureClass, ...]:
    """Read the taxonomy; raises Invalid, a sentence with its line for each fault, when it is no list of whole classes."""
    classes = toml_of(path).get("class")
    if not isinstance(classes, list) or not classes:
        raise Invalid(str(path), ["expected at least one [[class]]"])
    lines = [
        number
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if _HEAD.match(line)
    ]
    faults: list[str] = []
    for number, entry in enumerate(classes):
        where = f"line {lines[number]}: " if len(lines) == len(classes) else ""
        faults += [f"{where}class {number + 1}: {fault}" for fault in _faults(entry)]
    if not faults and "*" not in classes[-1]["faults"]:
        faults.append('the last class must fit any fault: faults = ["*"]')
    if faults:
        raise Invalid(str(path), faults)
    return tuple(
        FailureClass(
            entry["name"], tuple(entry["faults"]), Layer(entry["layer"]), entry["evolvable"], entry["says"]
        )
        for entry in classes
    )


def _faults(entry: Any) -> Iterator[str]:
    """What is wrong with one class."""
    if not isinstance(entry, dict):
        yield "it is no table"
        return
    for key, wanted in _WANTED.items():
        value = entry.get(key)
        if key not in entry:
            yield f"'{key}' is missing, {wanted}"
        elif not _IS[key](value):
            yield f"'{key}' is {shown(value, 80)}, but it should be {wanted}"
    for key in entry.keys() - _WANTED.keys():
        yield f"'{key}' is no key of a class (there are: {', '.join(_WANTED)})"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


_HEAD = re.compile(r"\s*\[\[\s*class\s*\]\]")
_WANTED = {
    "name": "a text",
    "faults": "a list of texts",
    "layer": f"one of {', '.join(Layer)}",
    "evolvable": "true or false",
    "says": "a text",
}
_IS: Mapping[str, Callable[[Any], bool]] = {
    "name": _is_text,
    "faults": lambda value: isinstance(value, list) and all(map(_is_text, value)),
    "layer": lambda value: isinstance(value, str) and value in set(Layer),
    "evolvable": lambda value: isinstance(value, bool),
    "says": _is_text,
}


def toml_of(path: Path) -> dict[str, Any]:
    """A file's document; raises Invalid where it is missing or none."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise Invalid(str(path), ["the file is missing"], kind=ErrorKind.UNREADABLE) from None
    except OSError as error:
        raise Invalid(
            str(path), [f"it cannot be read: {error.strerror}"], kind=ErrorKind.UNREADABLE
        ) from None
    except (ValueError, RecursionError) as error:
        raise Invalid(str(path), [f"not TOML: {error}"]) from None
