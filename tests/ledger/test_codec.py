"""Every record type survives the way into JSON and back; what does not fit is refused."""

from __future__ import annotations

import hashlib
import inspect
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentos import domain
from agentos.domain import (
    Arm,
    Cost,
    Evolution,
    EvolutionState,
    Outcome,
    Result,
    Snapshot,
    Trial,
    TrialSet,
    trial_id,
)
from agentos.errors import ErrorKind, Unavailable
from agentos.ledger.rows import dictionary
from agentos.ledger.rows.codec import (
    bundle,
    from_bundle,
    from_json,
    from_text,
    in_bundle,
    kept,
    plain,
    step_of,
    time_text,
    to_json,
    to_text,
    written,
)
from agentos.ledger.rows.dictionary import spread, squeezed
from agentos.records.trials import KernelFault, Origin
from tests.refusals import raises

RECORDS = [
    kind
    for _, kind in inspect.getmembers(domain, inspect.isclass)
    if is_dataclass(kind)
    and kind.__module__.startswith("agentos.records.")
    and kind is not domain.ModelSpec  # it contains its own kind, and is read from the registry each time
]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
_zones = st.sampled_from([UTC, timezone(timedelta(hours=2))])
_times = st.datetimes(timezones=_zones, min_value=datetime(1970, 1, 2))
st.register_type_strategy(datetime, _times.map(lambda moment: moment.replace(fold=0)))


def strategy(kind: type) -> st.SearchStrategy[object]:
    hints = inspect.get_annotations(kind, eval_str=True)

    def of(hint: object) -> st.SearchStrategy[object]:
        if hint is domain.Json:
            return json_values
        if hint in RECORDS:
            return strategy(hint)  # type: ignore[arg-type] # a dataclass
        origin, args = getattr(hint, "__origin__", None), getattr(hint, "__args__", ())
        if origin is tuple:
            return st.lists(of(args[0]), max_size=3).map(tuple)
        if origin is Mapping or getattr(origin, "__name__", "") == "Mapping":
            return st.dictionaries(st.text(), of(args[1]), max_size=3)
        if type(None) in args:
            return st.none() | of(next(arg for arg in args if arg is not type(None)))
        if hint is float:  # as people write one: 0 for 0.0
            return st.floats(allow_nan=False) | st.integers(-9, 9)
        return st.from_type(hint)  # type: ignore[arg-type]

    fields = {name: of(hint) for name, hint in hints.items()}
    if kind is domain.Fault:  # whose record refuses a kernel's kind that is not the kernel's
        return st.builds(kind, **fields | {"kind": st.just(KernelFault.NONE)}) | st.builds(
            kind, **fields | {"origin": st.just(Origin.KERNEL)}
        )
    return st.builds(kind, **fields)


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
def test_every_record_of_the_domain_survives(kind: type) -> None:
    @settings(max_examples=25, deadline=None)
    @given(strategy(kind))
    def survives(record: object) -> None:
        text = to_text(record)
        assert text.isascii()
        assert from_text(kind, text) == record
        # What the writer's process reads is what any other does, to the type of each number.
        stored = written(record, to_json(record), text, packed=True)
        assert repr(from_text(kind, stored)) == repr(from_json(kind, json.loads(text)))

    survives()


def test_a_time_is_stored_in_utc_and_text_order_is_time_order() -> None:
    east = datetime(2026, 1, 1, 1, 0, tzinfo=timezone(timedelta(hours=2)))
    assert time_text(east) == "2025-12-31T23:00:00.000000+00:00"
    with raises(ValueError, message="ledger.naive_datetime"):
        time_text(datetime(2026, 1, 1))


def test_a_missing_field_takes_its_default_and_an_unknown_key_is_dropped() -> None:
    data = to_json(Outcome(Result.PASSED, 1.0, "ok"))
    del data["checks"]
    data["written_by_nobody"] = 1
    assert from_json(Outcome, data) == Outcome(Result.PASSED, 1.0, "ok")


def test_a_damaged_step_is_unavailable() -> None:
    with raises(Unavailable, ErrorKind.DAMAGED):
        step_of(("run-1", 0, "act", "{", "{}", None, "2026-01-01T00:00:00+00:00", 1.0))


@pytest.mark.parametrize(
    "text",
    [
        *("", "null", "[]", '{"commit": "c"}', '{"result": "no such", "score": 1, "reason": ""}'),
        f'{{"result": "passed", "score": 1{"0" * 400}, "reason": ""}}',
    ],
)
def test_a_damaged_record_is_unavailable(text: str) -> None:
    kind = Outcome if "result" in text else Snapshot
    with raises(Unavailable, ErrorKind.DAMAGED, names=[kind.__name__]):
        from_text(kind, text)


def test_nested_and_optional_records() -> None:
    evolution = Evolution("evolution-1", "evidence-1", "f", EvolutionState.MINED, Snapshot("c", "t"))
    assert json.loads(to_text(evolution))["base"] == {"commit": "c", "tree": "t"}
    assert from_text(Evolution, to_text(evolution)) == evolution


def test_a_type_without_a_stored_form_is_a_programming_error() -> None:
    @dataclass(frozen=True, slots=True)
    class Odd:
        members: set

    with raises(TypeError, message="ledger.no_stored_form"):
        to_json(Odd(set()))


def test_a_lone_surrogate_survives() -> None:
    assert json.loads(to_text({"text": "\ud800"})) == {"text": "\ud800"}


def test_the_dictionary_stays_what_it_was() -> None:
    """Records on people's disks cannot be read with another: bring a second one, do not mend this."""
    said = hashlib.sha256(dictionary._WORDS).hexdigest()
    assert said == "4c5dd86683ee8528ef6831724f0412f4bcb2fd454abcfa26a6aa0447bc6775f5"
    said = hashlib.sha256(dictionary._NEWER_WORDS).hexdigest()
    assert said == "92d89352cd6161bc65fc54ab7d51bcafa61432e8395cb0a51c9c53c7660c7a62"


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(min_size=200) | st.text(alphabet='{}":,', min_size=200))
@pytest.mark.slow
def test_what_is_kept_reads_as_it_was(text: str) -> None:
    packed = kept(text)
    assert isinstance(packed, bytes)
    assert plain(packed) == text
    for damaged in (packed[:-1], packed[:1], b""):
        with raises(Unavailable, ErrorKind.DAMAGED):
            plain(damaged)


def test_a_short_record_takes_half_its_room() -> None:
    text = to_text(Evolution("evo-1", "evd-1", "f" * 16, EvolutionState.MINED, Snapshot("c" * 40, "t" * 40)))
    assert len(kept(text)) * 2 < len(text) < 1_000


def test_bodies_of_earlier_releases_are_read() -> None:
    evolution = Evolution("evo-1", "evd-1", "f" * 16, EvolutionState.MINED, Snapshot("c" * 40, "t" * 40))
    text = to_text(evolution)
    for body in (text, zlib.compress(text.encode()), kept(text)):
        assert from_text(Evolution, body) == evolution
    spoken = spread(b"\x01" + _packed_by_the_first(text))
    assert spoken == text.encode()


def _packed_by_the_first(text: str) -> bytes:
    packing = zlib.compressobj(9, zlib.DEFLATED, -14, 6, zlib.Z_DEFAULT_STRATEGY, dictionary._WORDS)
    return packing.compress(text.encode()) + packing.flush()


def _trial(name: str, run_id: str, repeat: int) -> Trial:
    cost = Cost(1.5, 0.25, 0, 0.0)
    return Trial(
        name,
        "evo-1",
        "cand-1",
        "task-1",
        TrialSet.GUARD,
        Arm.CANDIDATE,
        repeat,
        Snapshot("c" * 40, "d" * 40),
        Outcome(Result.PASSED, 1.0, "", None, (), cost),
        "e" * 64,
        "fake",
        "none",
        run_id,
    )


def test_trials_of_a_pack_get_their_ids_back() -> None:
    names = [
        trial_id(("evo-1", "cand-1", "task-1"), Arm.CANDIDATE, repeat, "d" * 40, renamed=False)
        for repeat in range(3)
    ]
    given = [
        *(_trial(name, name, repeat) for repeat, name in enumerate(names)),
        _trial(names[0], "", 0),
        _trial("trial-of-old", "trial-of-old", 1),
        _trial(names[2], "run-1", 2),
    ]
    texts = [*map(to_text, given)]
    for pack in (bundle(given, texts), zlib.compress(f"[{','.join(texts)}]".encode(), 9)):
        assert from_bundle(pack) == (*given,)
        assert [json.dumps(item, separators=(",", ":")) for item in in_bundle(pack)] == texts
    assert names[1].encode() not in spread(bundle(given, texts))
    with raises(Unavailable, ErrorKind.DAMAGED):
        from_bundle(squeezed(b'[{"id":""}]'))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(0, 300), max_size=600), st.integers(0, 31))
def test_digests_come_back_however_far_apart_they_are(places: list[int], cut: int) -> None:
    said = [hashlib.sha256(bytes([place % 256, place // 256])).hexdigest()[: 64 - cut] for place in places]
    data = json.dumps({"said": said, "beside": "\u0080 'deadbeefdeadbeef'", "odd": "a" * 17}).encode()
    packed = squeezed(data)
    assert spread(packed) == data
    if said and (64 - cut) % 2 == 0:
        for damaged in (packed[:-1], packed + b"0"):
            with pytest.raises(zlib.error):
                spread(damaged)
