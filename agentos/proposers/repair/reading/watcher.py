"""What stands beside a program in the box and works out what edits would make of its values.

The kernel never imports this: its text goes with the program (``foresight.py``), so it imports the standard
library alone. It gives a letter for each text in the end, the first one of a word of ``foresight.FACTORS``.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from types import CodeType, FrameType
from typing import Any

ROUNDS = 24  # of one place that are looked at
ITEMS = 300  # of what is walked through once
DECIDED = frozenset("hrwu")
Outcome = tuple[Any, "Exception | None"]  # what came of an expression: its value, or what it raised


class Watcher:
    """``places`` has the texts that may stand at each place, ``differences`` what was expected and what came."""

    def __init__(
        self,
        places: Sequence[Sequence[str]],
        differences: Sequence[tuple[Any, Any]],
        changing: Sequence[str],
        most_s: float,
    ) -> None:
        self.places = places
        self.differences = differences
        self.changing = frozenset(changing)
        self.until = time.process_time() + most_s
        self.words = [["s"] * len(texts) for texts in places]  # where a call never comes, nothing changes
        self.codes: dict[int, list[CodeType | None]] = {}
        self.visits, self.skipped = [0] * len(places), [False] * len(places)
        self.busy = False

    def __call__(self, number: int, expression: Callable[[], Any]) -> Any:
        """The expression's value, after a look at what may stand there instead."""
        if self.busy or self.visits[number] >= ROUNDS or time.process_time() > self.until:
            self.skipped[number] = self.skipped[number] or not self.busy
            return expression()
        frame = sys._getframe(1)
        names = _names(frame)
        code: CodeType = expression.__code__
        if _used_up(names).intersection((*code.co_freevars, *code.co_names)):
            self.words[number] = ["u"] * len(self.places[number])  # a second look would find less
            return expression()
        result, raised = _outcome(expression)  # what it calls is watched as well
        self.busy = True
        try:
            old = _plain(expression()) if hasattr(result, "__next__") else result
            inner = frame.f_code.co_name.startswith("<") or bool(frame.f_code.co_freevars)
            self._compare(number, names, (old, raised), inner=inner)
        finally:
            self.busy = False
        if raised is not None:
            raise raised
        return result

    def _compare(self, number: int, names: dict[str, Any], old: Outcome, *, inner: bool) -> None:
        if number not in self.codes:
            self.codes[number] = [self._compiled(text) for text in self.places[number]]
        found, used_up = self.words[number], _used_up(names)
        for place, code in enumerate(self.codes[number]):
            if found[place] in DECIDED or time.process_time() > self.until:
                continue
            if code is None or (used_up and used_up.intersection(code.co_names)):
                found[place] = "u"
                continue
            found[place] = self._letter(code, names, old, found[place], inner=inner)
        self.skipped[number] = self.skipped[number] or time.process_time() > self.until
        self.visits[number] += 1

    def _letter(
        self, code: CodeType, names: dict[str, Any], before: Outcome, so_far: str, *, inner: bool
    ) -> str:
        old, raised = before
        new, error = _outcome(lambda: _plain(eval(code, names)))  # noqa: S307 (in the box, where edits are tried)
        if isinstance(error, NameError):  # what a function around this one knows is not always seen from here
            return "u" if inner else "r"
        if error is not None:
            if raised is None:
                return "r"
            return so_far if type(error) is type(raised) else "o"
        if raised is not None:
            return "w"
        alike, _ = _outcome(lambda: self._alike(old, new))  # values may refuse to be compared
        now = alike or "o"
        return now if now in "hn" or so_far == "s" else so_far

    def _alike(self, old: Any, new: Any) -> str:
        if type(old) is type(new) and bool(old == new):
            return "s"
        best = "o"
        for want, got in self.differences:
            if means(new, want) and not means(old, want):
                if means(old, got):
                    return "h"
                small = isinstance(want, bool) or want in (None, "", [], {}, 0, 1, 2)
                best = best if small else "n"
            elif _moves(old, new, want, got):
                best = "n"
        return best

    def _compiled(self, text: str) -> CodeType | None:
        try:
            code = compile(text, "<edit>", "eval")
        except (SyntaxError, ValueError, RecursionError):
            return None
        return None if self.changing.intersection(_named(code)) else code

    def seen(self) -> str:
        """The letters, place by place."""
        return "".join(
            "a" if letter == "s" and skipped else letter
            for found, skipped in zip(self.words, self.skipped, strict=True)
            for letter in found
        )


def _outcome(work: Callable[[], Any]) -> Outcome:
    try:
        return work(), None
    except Exception as error:  # noqa: BLE001 - the program's own error, which is compared and raised again
        return None, error


def _names(frame: FrameType) -> dict[str, Any]:
    """What the frame knows; a comprehension's also what stands around it."""
    around = frame.f_back.f_locals if frame.f_code.co_name.startswith("<") and frame.f_back else {}
    return {**frame.f_globals, **around, **frame.f_locals}


def _used_up(names: Mapping[str, Any]) -> set[str]:
    """Names of what can be walked through once only."""
    return {name for name, value in names.items() if hasattr(value, "__next__")}


def _named(code: CodeType) -> Iterator[str]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _named(each)
    yield from code.co_names


def _plain(value: Any) -> Any:
    return list(islice(value, ITEMS)) if hasattr(value, "__next__") else value


def _is_number(value: Any) -> bool:
    return hasattr(value, "__float__") and not isinstance(value, bool)


def means(value: Any, answer: Any) -> bool:
    """Whether the value is the answer, or is written so."""
    if isinstance(answer, bool) or isinstance(value, bool) or answer is None or value is None:
        return value is answer
    if isinstance(answer, int | float):
        return _is_number(value) and math.isclose(float(value), answer, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(answer, str):
        return str(value) == answer
    if isinstance(answer, list):
        alike = isinstance(value, list | tuple) and len(value) == len(answer)
        return alike and all(map(means, value, answer))
    known = isinstance(value, dict) and {str(key) for key in value} == set(answer)
    return known and all(means(each, answer[str(key)]) for key, each in value.items())


def _moves(old: Any, new: Any, want: Any, got: Any) -> bool:
    """Whether the value goes the way that the answer has to go: by as much, or to a part of the wanted text."""
    if isinstance(want, int | float) and isinstance(got, int | float):
        apart = want - got
        return bool(
            apart
            and _is_number(old)
            and _is_number(new)
            and math.isclose(float(new) - float(old), apart, rel_tol=1e-9)
        )
    if not (isinstance(want, str) and isinstance(old, str) and isinstance(new, str)):
        return False
    return len(new) > 1 and new in want and new not in str(got) and old in str(got)
