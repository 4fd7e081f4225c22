"""Cases with other spans, with many entries, and with files that an earlier run left: what the tasks themselves suggest.

Nothing is drawn by chance: the same cases give the same ones.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from itertools import chain, product
from string import ascii_lowercase

from agentos.domain import Call, canonical
from agentos.ports import Case

_SPAN = re.compile(rb"(?<!\S)([0-9]{1,9})-([0-9]{1,9})(?!\S)")  # between blanks
_ENDS = re.compile(rb"[0-9]{1,9}")
_NAME = re.compile(r"[^\W\d_]\w+")
_MANY = 20  # names: even where each of two has ties, a place, or what is counted, has two digits
_COPIED_MAX = 1 << 16  # characters
_FILE = re.compile(r'"([\w-][\w.-]*\.\w{1,8})"')
_ENDING = re.compile(r"[.~_-][\w.~-]{0,20}")
_LEFTOVERS = 16
_BOUNDARY = r"\b"
# Who writes a boundary before a word refuses all signs there: kinds of them, and what refuses one kind alone.
_KINDS = {b"!": r"(?![!#%&*;])", b".": r"(?![-+./$@~])"}
_LAST_LINE = re.compile(rb"^[ \t]*(?=\w[^\n]*\n?\Z)", re.MULTILINE)


def with_other_spans(cases: Sequence[Case], working: Set[int]) -> Iterator[tuple[int, str, Case]]:
    """Each case, by its number, with a span in one of its files that ends or begins as failing ones do in that column.

    ``5-7``, where a ``7`` stands in the column of ``5-6`` in evidence.
    """
    columns: dict[int, dict[bytes, None]] = defaultdict(dict)
    for case in (case for number, case in enumerate(cases) if number not in working):
        for line in chain.from_iterable(data.splitlines() for data in case.inputs.values()):
            for at, word in enumerate(line.split()):
                columns[at].update(dict.fromkeys(_ENDS.findall(word)))
    for number, case in enumerate(cases):
        for name, data in case.inputs.items():
            for span in _SPAN.finditer(data):
                column = len(data[data.rfind(b"\n", 0, span.start()) + 1 : span.start()].split())
                for value, end in product(columns[column], (2, 1)):
                    if value != span[end]:
                        changed = data[: span.start(end)] + value + data[span.end(end) :]
                        yield number, name, replace(case, inputs={**case.inputs, name: changed}, checks=())


def with_more_entries(cases: Sequence[Case], source: str) -> Iterator[tuple[int, str, Case]]:
    """Each case, by its number, with the entries of one list or file so often that it has twenty names or more.

    An entry is an item, a key or a line. Each time its names, which are words that the right answer repeats and the source does not have,
    end in another letter. A first line without any is a head, and stands once.
    """
    own = {word.casefold() for word in _NAME.findall(source)}
    for number, case in enumerate(cases):
        said = {*_NAME.findall(canonical([dict(check.spec) for check in case.checks]).decode())}
        said = {word for word in said if word.casefold() not in own}
        for along, data in case.inputs.items():
            try:
                text = data.decode()
            except UnicodeDecodeError:
                continue
            if changed := _more_entries(text, said):
                inputs = {**case.inputs, along: changed.encode()}
                yield number, along, replace(case, inputs=inputs, checks=())
        for along, value in case.call.args.items():
            text = json.dumps(value, ensure_ascii=False) if isinstance(value, list | tuple | dict) else ""
            if changed := _more_entries(text, said):
                call = Call(case.call.tool, {**case.call.args, along: json.loads(changed)})
                yield number, along, replace(case, call=call, checks=())


def _more_entries(text: str, names: Set[str]) -> str:
    """The text with its entries under ever other names; "" where it has none of these names, or many entries already."""
    here = names & {*_NAME.findall(text)}
    times = -(-_MANY // len(here)) if here else 0
    copies = [
        _NAME.sub(lambda found: found[0] + letter * (found[0] in here), text)  # noqa: B023 - called at once
        for letter in ("", *ascii_lowercase[1:times])
    ]
    if times < 2 or len(text) * times > _COPIED_MAX:
        return ""
    try:
        values = [json.loads(copy) for copy in copies]
    except (ValueError, RecursionError):
        head, *rest = text.splitlines(keepends=True)
        head = "" if here & {*_NAME.findall(head)} else head
        lines = [copy[len(head) :] for copy in copies] if rest else []
        return head + "".join(each if each.endswith("\n") else f"{each}\n" for each in lines)
    if all(isinstance(value, list) for value in values):
        return json.dumps([*chain.from_iterable(values)], ensure_ascii=False)
    if all(isinstance(value, dict) for value in values):
        return json.dumps({key: each for value in values for key, each in value.items()}, ensure_ascii=False)
    return ""


def of_one_kind(pattern: str, gone: Sequence[str]) -> list[str]:
    """The pattern with one kind of sign refused where it has a boundary that the one which it replaces lacks."""
    before, boundary, behind = pattern.partition(_BOUNDARY)
    return [before + look + behind for look in _KINDS.values() if boundary and before + behind in gone]


def with_signs_before(cases: Sequence[Case], old: str, new: str) -> Iterator[tuple[int, str, Case]]:
    """Each case, by its number, with a sign of each kind before the last line of a file, where the new text has a boundary more."""
    for number, case in enumerate(cases if new.count(_BOUNDARY) > old.count(_BOUNDARY) else ()):
        for (name, data), sign in product(case.inputs.items(), _KINDS):
            if at := _LAST_LINE.search(data):
                changed = data[: at.end()] + sign + data[at.end() :]
                yield number, name, replace(case, inputs={**case.inputs, name: changed}, checks=())


def with_leftovers(cases: Sequence[Case], texts: Sequence[str]) -> Iterator[tuple[int, Case]]:
    """Each case, by its number, with files beside its own that an earlier run may have left.

    They are called as right answers name files, and as its own with one of these texts behind or for the ending.
    """
    said = {
        name
        for case in cases
        for check in case.checks
        for name in _FILE.findall(json.dumps(dict(check.spec)))
    }
    for number, case in enumerate(cases):
        own = [*case.inputs, *(name.rpartition(".")[0] or name for name in case.inputs)]
        made = {f"{name}{text}" for text in texts if _ENDING.fullmatch(text) for name in own}
        made |= {text for text in texts if _FILE.fullmatch(f'"{text}"')} | said
        folders = {name.partition("/")[0] for name in own if "/" in name}
        left = dict.fromkeys(sorted(made - folders)[:_LEFTOVERS], b"\n")
        if not left.keys() <= case.inputs.keys():
            yield number, replace(case, inputs={**left, **case.inputs}, checks=())
