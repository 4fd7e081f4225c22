"""Domain records to JSON and back, driven by the records' own type hints.

It covers what ``agentos.records`` allows in a record and nothing else: text, numbers, aware datetimes,
enums, tuples, mappings, optional values, other records, and JSON values passed through as they
are. A type outside that list is a programming error and raises TypeError at first use.
"""

from __future__ import annotations

import json
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from agentos.errors import ErrorKind, Unavailable
from agentos.ledger.rows.dictionary import spread, squeezed
from agentos.ledger.rows.schema import LedgerConnection
from agentos.records.identity import Json, dataclass, json_encoder
from agentos.records.runs import Step
from agentos.records.trials import Arm, Fault, Trial, TrialLook, TrialSet, trial_id

R = TypeVar("R")
LONG = 100  # characters of a text; a longer one is kept compressed
encode = json_encoder()
_TRIALS, _LOOKS = 1_000, 10_000  # that are remembered, 2 kB each; evolutions whose looks are, some 2 kB each
_NEWER = (
    "SELECT 0 AS packed, seq, body FROM trial WHERE evolution_id = ? AND seq > ? UNION ALL "
    "SELECT 1, seq, body FROM trial_pack WHERE evolution_id = ? AND seq > ? ORDER BY packed, seq"
)
_ITS_ID = "="  # for the ``run_id`` of a trial in a bundle that is its id
_READ_AGAIN = 4_000  # characters or bytes of a body up to which its record is remembered
Convert = Callable[[Any], Any]
Rows = Callable[..., Iterable[Sequence[Any]]]  # runs a statement with its values


@dataclass(frozen=True, slots=True)
class _Pair:
    """How one type goes out and comes in; ``None`` means: as it is.

    ``same`` tells of a value whether the very same comes back, to the type of each number; ``None`` means: always.
    """

    out: Convert | None = None
    back: Convert | None = None
    same: Callable[[Any], bool] | None = None


def to_json(record: object) -> Json:
    """The record as plain JSON data."""
    kind: Any = type(record)
    convert = _pair(kind).out
    return convert(record) if convert else record


def from_json(kind: type[R], data: Json) -> R:
    """The record that ``to_json`` was given.

    A field that is missing takes its default (an older program wrote it); a key without a field
    is dropped. Raises Unavailable when the data does not fit.
    """
    key: Any = kind
    convert = _pair(key).back
    try:
        result: R = convert(data) if convert else data
    # the last: a whole number that no float holds
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise Unavailable(
            f"a stored {kind.__name__} is damaged: {type(error).__name__}: {error}", kind=ErrorKind.DAMAGED
        ) from None
    return result


def to_text(value: object) -> str:
    """A record or JSON value as text; pure ASCII, so that lone surrogates survive."""
    return encode(to_json(value) if is_dataclass(value) else value)


def from_text(kind: type[R], text: str | bytes) -> R:
    """The record in ``text``, as ``kept`` or plain; raises Unavailable when it is damaged.

    The same text may give the very same record: nobody changes what is within one.
    """
    found: R | None = _remembered.get((kind, text))
    if found is None:
        found = _decoded(kind, text)
        _remember(kind, text, found)
    return found


def _decoded(kind: type[R], text: str | bytes) -> R:
    try:
        return from_json(kind, json.loads(plain(text)))
    except (ValueError, RecursionError) as error:
        raise Unavailable(f"a stored {kind.__name__} is damaged: {error}", kind=ErrorKind.DAMAGED) from None


def _remember(kind: type, text: str | bytes, record: object) -> None:
    if len(text) <= _READ_AGAIN:
        with _remembering:
            if len(_remembered) >= _RECORDS:
                _remembered.popitem(last=False)
            _remembered[kind, text] = record


# Each stage of an evolution reads its task, runs and trials again, 800 records in all; 5 kB each.
_RECORDS = 1024
_remembered: OrderedDict[tuple[type, str | bytes], Any] = OrderedDict()  # what came first goes first
_remembering = threading.Lock()


def written(record: object, data: Json, text: str, *, packed: bool) -> str | bytes:
    """A record's ``text`` as it is stored, ``kept`` where it is ``packed``; ``from_text`` will know the record by it.

    ``data`` is what the text says.
    """
    stored = kept(text) if packed else text
    kind: Any = type(record)
    if not _holds_json(kind):  # of which the writer has the very object, and may change it
        same = _pair(kind).same
        _remember(kind, stored, record if same is None or same(record) else from_json(kind, data))
    return stored


@cache
def _holds_json(kind: Any) -> bool:
    """Whether a field within it is JSON of any kind."""
    inner = get_type_hints(kind).values() if is_dataclass(kind) else get_args(kind)
    return kind is Any or any(map(_holds_json, inner))


def kept(text: str) -> str | bytes:
    """A text as it is stored: what is short stays as it is."""
    return text if len(text) <= LONG else squeezed(text.encode())


def plain(body: str | bytes) -> str:
    """What ``kept`` was given; raises Unavailable when it is damaged."""
    try:
        return body if isinstance(body, str) else spread(body).decode()
    except (zlib.error, UnicodeDecodeError) as error:
        raise Unavailable(f"a stored record is damaged: {error}", kind=ErrorKind.DAMAGED) from None


def data_of(body: str | bytes) -> Json:
    """The JSON that was ``kept``, as data; raises Unavailable when it is damaged."""
    try:
        return json.loads(plain(body))
    except (ValueError, RecursionError) as error:
        raise Unavailable(f"a stored record is damaged: {error}", kind=ErrorKind.DAMAGED) from None


def fields_of(body: str | bytes) -> dict[str, Json]:
    """As ``data_of``, of a record; raises Unavailable also where it is no object."""
    found = data_of(body)
    if not isinstance(found, dict):
        raise Unavailable(
            f"a stored record is damaged: it is a {type(found).__name__}", kind=ErrorKind.DAMAGED
        )
    return found


def bundle(trials: Sequence[Trial], texts: Sequence[str]) -> bytes:
    """Trials, as their JSON texts, in one compressed list; without their ids where these follow from what they are."""
    short = map(_without_id, trials, texts)
    return squeezed(f"[{','.join(short)}]".encode())


def _without_id(trial: Trial, text: str) -> str:
    owner = (trial.evolution_id, trial.candidate_id, trial.task_id)
    name = trial_id(owner, trial.arm, trial.repeat, trial.snapshot.tree, renamed=trial.renamed)
    begins = f'{{"id":"{name}",'
    if not text.startswith(begins):
        return text
    return f'{{"id":"",{text[len(begins) :]}'.replace(f'"run_id":"{name}"', f'"run_id":"{_ITS_ID}"')


def in_bundle(data: bytes) -> list[Json]:
    """The trials of a ``bundle`` as JSON data; raises Unavailable when it is damaged."""
    found = data_of(data)
    try:
        for item in found:
            if item["id"] == "":
                owner = (item["evolution_id"], item["candidate_id"], item["task_id"])
                tree, renamed = item["snapshot"]["tree"], item["renamed"]
                item["id"] = trial_id(owner, item["arm"], item["repeat"], tree, renamed=renamed)
                if item["run_id"] == _ITS_ID:
                    item["run_id"] = item["id"]
    except (KeyError, TypeError) as error:
        raise Unavailable(
            f"stored Trials are damaged: {type(error).__name__}: {error}", kind=ErrorKind.DAMAGED
        ) from None
    return list(found)


def from_bundle(data: bytes) -> tuple[Trial, ...]:
    """As ``in_bundle``, as records."""
    return tuple(from_json(Trial, item) for item in in_bundle(data))


def time_text(moment: datetime) -> str:
    """The one stored form of a time: UTC, so that text order is time order."""
    if moment.tzinfo is None:
        raise ValueError("a naive datetime cannot be stored: give it a time zone")
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


@cache
def _pair(kind: Any) -> _Pair:
    if kind in (str, int, bool, Any, NoneType):
        return _Pair()
    if kind is float:
        return _Pair(None, float, lambda item: type(item) is float)
    if kind is datetime:
        return _Pair(time_text, datetime.fromisoformat, lambda item: item.tzinfo is UTC)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _Pair(attrgetter("_value_"), {item.value: item for item in kind}.__getitem__)
    if isinstance(kind, type) and is_dataclass(kind):
        return _record(kind)
    return _generic(kind)


def _generic(kind: Any) -> _Pair:
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType) and len(args) == 2 and NoneType in args:
        inner = _pair(args[0] if args[1] is NoneType else args[1])
        same = inner.same
        alike = (lambda item: item is None or same(item)) if same else None
        return _Pair(_unless_none(inner.out), _unless_none(inner.back), alike)
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        inner = _pair(args[0])
        return _Pair(_each(list, inner.out), _each(tuple, inner.back), _all_same(tuple, inner.same))
    if isinstance(origin, type) and issubclass(origin, Mapping) and args[0] is str:
        inner = _pair(args[1])
        return _Pair(_values(inner.out), _values(inner.back), _all_same(dict, inner.same))
    raise TypeError(f"{kind} has no stored form")


def _unless_none(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda item: None if item is None else convert(item)


def _each(collect: Callable[[Any], Any], convert: Convert | None) -> Convert:
    if convert is None:
        return collect
    return lambda items: collect(map(convert, items))


def _all_same(kind: Any, same: Callable[[Any], bool] | None) -> Callable[[Any], bool]:
    if same is None:
        return lambda items: type(items) is kind
    return lambda items: type(items) is kind and all(map(same, items.values() if kind is dict else items))


def _values(convert: Convert | None) -> Convert:
    if convert is None:
        return dict
    return lambda items: {key: convert(item) for key, item in items.items()}


def _record(kind: type[Any]) -> _Pair:
    hints = get_type_hints(kind)
    parts = [(field.name, _pair(hints[field.name])) for field in fields(kind)]
    inward = [(name, pair.back) for name, pair in parts]
    optional = {
        field.name
        for field in fields(kind)
        if field.default is not MISSING or field.default_factory is not MISSING
    }

    names = tuple(name for name, _ in parts)
    converts = [(place, pair.back) for place, (_, pair) in enumerate(parts) if pair.back]
    values = (
        f"{name!r}: {f'out_{name}(record.{name})' if pair.out else f'record.{name}'}" for name, pair in parts
    )
    told = ("type(record) is kind", *(f"same_{name}(record.{name})" for name, pair in parts if pair.same))
    known = {"kind": kind, **{f"out_{name}": pair.out for name, pair in parts}}
    known |= {f"same_{name}": pair.same for name, pair in parts}

    def back(data: Any) -> Any:
        if len(data) == len(names) and tuple(data) == names:  # as this release writes it
            given = [*data.values()]
            for place, convert in converts:
                given[place] = convert(given[place])
            return kind(*given)
        values = {
            name: convert(data[name]) if convert else data[name]
            for name, convert in inward
            if name in data or name not in optional
        }
        return kind(**values)

    return _Pair(_late(f"{{{', '.join(values)}}}", known), back, _late(" and ".join(told), known))


def _late(text: str, known: dict[str, Any]) -> Convert:
    """A function of a ``record``; compiled when it is called, since a command that only reads writes no record."""
    made: Convert | None = None

    def first(record: Any) -> Any:
        nonlocal made
        if made is None:
            made = eval(f"lambda record: {text}", known)  # noqa: S307 - names of fields alone
        return made(record)

    return first


# -------------------------------------------------------------------------------------------------
# Trials of evolutions that are over, all of one in one row: alike as they are, they take a tenth of
# the room.
# Nothing asks for a single one of them any more, only for all of an evolution's: to show it, to judge it again,
# and to see which edit came close.


def pack(connection: LedgerConnection, evolution_id: str) -> None:
    """Put its trials into one row. The caller knows that the evolution is over."""
    rows = connection.execute("SELECT body FROM trial WHERE evolution_id = ? ORDER BY seq", (evolution_id,))
    texts = [text for (text,) in rows]
    if not texts:
        return
    trials = [from_text(Trial, text) for text in texts]
    costs = [trial.outcome.cost.cpu_s for trial in trials if not trial.taken_from]
    row = (evolution_id, len(costs), sum(costs), bundle(trials, texts))
    connection.execute("INSERT INTO trial_pack (evolution_id, trials, cpu_s, body) VALUES (?, ?, ?, ?)", row)
    connection.execute("DELETE FROM trial WHERE evolution_id = ?", (evolution_id,))


class TrialMemory:
    """Trials of the evolutions that were asked for last. None ever changes, so only those that came since are read.

    Safe from any thread. ``rows`` runs a statement with its values.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, _KnownTrials] = {}  # by evolution, that which was asked for last at the end
        self._looks: dict[str, tuple[Sequence[object], tuple[TrialLook, ...]]] = {}
        self._count = 0  # of the trials that are known

    def of(self, rows: Rows, evolution_id: str) -> Sequence[Trial]:
        """All of an evolution, oldest first."""
        with self._lock:
            known = self._known.get(evolution_id, _KnownTrials())
        found = [*rows(_NEWER, evolution_id, known.row, evolution_id, known.pack)]
        own = [row[1:] for row in found if not row[0]]
        packs = [row[1:] for row in found if row[0]]
        if own or packs:
            packed = [trial for _, body in packs for trial in from_bundle(body)]
            trials = [*known.trials, *packed, *(_trial(body) for _, body in own)]
            if packs or known.pack:  # which may hold what was made again
                trials = each_once(trials)
            # The numbers of rows that were packed are given out again.
            row = own[-1][0] if own and not packs else 0
            known = _KnownTrials(row, packs[-1][0] if packs else known.pack, tuple(trials))
        with self._lock:
            before = self._known.pop(evolution_id, None)
            self._known[evolution_id] = known
            self._count += len(known.trials) - (len(before.trials) if before else 0)
            while self._count > _TRIALS and len(self._known) > 1:
                name = next(iter(self._known))
                gone = self._known.pop(name)
                self._count -= len(gone.trials)
                self._keep_looks(name, [gone.row or None, gone.pack or None], _looks_of(gone.trials))
        return known.trials

    def looks(self, rows: Rows, evolution_id: str, at: Sequence[object]) -> Sequence[TrialLook]:
        """Of its candidates' trials, alike ones once; they stay when the trials are forgotten. ``at``: their newest rows.

        Each evolution asks for those of all others of its failure, in the same order: where fewer are remembered
        than are asked for, none is.
        """
        before, looks = self._looks.get(evolution_id, ((), ()))
        if before != at:
            if evolution_id in self._known:
                looks = _looks_of(self.of(rows, evolution_id))
            else:
                looks = _stored_looks(rows, evolution_id)
            with self._lock:
                self._keep_looks(evolution_id, at, looks)
        return looks

    def _keep_looks(self, evolution_id: str, at: Sequence[object], looks: tuple[TrialLook, ...]) -> None:
        if len(self._looks) >= _LOOKS:
            del self._looks[next(iter(self._looks))]
        self._looks[evolution_id] = at, looks


def _trial(body: str | bytes) -> Trial:
    """As ``from_text``, which is asked for it no more."""
    found: Trial | None = _remembered.pop((Trial, body), None)
    return found or _decoded(Trial, body)


def _looks_of(trials: Sequence[Trial]) -> tuple[TrialLook, ...]:
    looks = (
        TrialLook(trial.candidate_id, trial.task_id, trial.set, trial.number, trial.look)
        for trial in trials
        if trial.arm is Arm.CANDIDATE
    )
    return tuple(dict.fromkeys(looks))


def _stored_looks(rows: Rows, evolution_id: str) -> tuple[TrialLook, ...]:
    """By the JSON alone: to make a record of each trial takes longer than to read all."""
    own = [*rows("SELECT body FROM trial WHERE evolution_id = ? ORDER BY seq", evolution_id)]
    packs = rows("SELECT body FROM trial_pack WHERE evolution_id = ? ORDER BY seq", evolution_id)
    try:
        found = [item for (body,) in packs for item in data_of(body)] + [data_of(body) for (body,) in own]
        names = {name: name for item in found for name in (item["candidate_id"], item["task_id"])}
        looks = (
            TrialLook(
                names[item["candidate_id"]],
                names[item["task_id"]],
                TrialSet(item["set"]),
                item.get("number", 0),
                item.get("look", 0),
            )
            for item in found
            if item["arm"] == Arm.CANDIDATE
        )
        return tuple(dict.fromkeys(looks))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Unavailable(
            f"a stored Trial is damaged: {type(error).__name__}: {error}", kind=ErrorKind.DAMAGED
        ) from None


@dataclass(frozen=True, slots=True)
class _KnownTrials:
    """Of one evolution, up to these rows of the two tables that have some."""

    row: int = 0
    pack: int = 0
    trials: tuple[Trial, ...] = ()


def each_once(records: Sequence[R]) -> list[R]:
    """The first of each id, in their order."""
    by_id: dict[object, R] = {getattr(record, "id"): record for record in reversed(records)}  # noqa: B009 - trials
    return [*by_id.values()][::-1]


def step_of(row: tuple[Any, ...]) -> Step:
    """A step from its columns, in the order of the table."""
    run_id, position, node, action, observation, fault, started_at, duration_ms = row
    return Step(
        run_id,
        int(position),
        node,
        data_of(action),
        data_of(observation),
        from_text(Fault, fault) if fault else None,
        datetime.fromisoformat(started_at),
        float(duration_ms),
    )
