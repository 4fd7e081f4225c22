"""Equal faults get equal fingerprints; different ones do not."""

from datetime import UTC, datetime

import pytest

from agentos.domain import Fault, Outcome, Result, Run, Share, Snapshot
from agentos.evolver.documents import load_taxonomy
from agentos.evolver.find.fingerprints import classify, failure_of, normalise
from agentos.shipped import folder

TAXONOMY = load_taxonomy(folder("evolver") / "taxonomy.toml")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PATH = "skill/csv/tools/total.py"


def run(outcome: Outcome | None) -> Run:
    return Run("run-1", "task-1", "key", Share.OPEN, 1, Snapshot("c", "t"), "fake", "none", NOW, NOW, outcome)


def failed(fault: Fault | None, reason: str = "") -> Run:
    return run(Outcome(Result.FAILED, 0.0, reason, fault))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("row 17 is short", "row 4 is short"),
        ("no column 'price'", 'no column "amount"'),
        ("can't find 'alpha'", "can't find 'beta'"),
        ("b'alpha' isn't b'beta'", "b'gamma' isn't b'delta'"),
        ("cannot open /tmp/a/b.csv", "cannot open /var/x/y.csv"),
        ("object at 0x7f12ab", "object at 0x99"),
        ("took 1,234.5 s", "took 2 s"),
        ("a  b\n c", "a b c"),
    ],
)
def test_what_changes_from_run_to_run_is_replaced(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


def test_the_words_of_a_message_stay() -> None:
    assert normalise("list index out of range") != normalise("string index out of range")


def test_a_long_message_is_cut_and_cheap() -> None:
    assert len(normalise("x" * 10_000_000)) <= 200


def test_equal_exceptions_at_one_place_are_one_failure() -> None:
    one = failure_of(
        failed(Fault("KeyError", "'a'", "skill/csv/tools/total.py:run", "skill/csv")), PATH, TAXONOMY
    )
    other = failure_of(
        failed(Fault("KeyError", "'b'", "skill/csv/tools/total.py:run", "skill/csv")), PATH, TAXONOMY
    )
    third = failure_of(
        failed(Fault("KeyError", "'b'", "skill/csv/tools/total.py:parse", "skill/csv")), PATH, TAXONOMY
    )
    assert one
    assert other
    assert third
    assert one.fingerprint == other.fingerprint
    assert one.fingerprint.id != third.fingerprint.id


def test_wrong_answers_of_one_tool_are_one_failure_whatever_the_value() -> None:
    one = failure_of(failed(None, "equals total: 3, not 4"), PATH, TAXONOMY)
    other = failure_of(failed(None, "regex: nothing found"), PATH, TAXONOMY)
    assert one
    assert other
    assert one.fingerprint == other.fingerprint
    assert one.klass.name == "wrong_answer"
    assert one.fingerprint.resource == "skill/csv"


@pytest.mark.parametrize(
    "result", [Result.PASSED, Result.INFRA, Result.BUDGET, Result.CANCELLED, Result.FLAKY]
)
def test_other_results_are_no_failure_of_the_agent(result: Result) -> None:
    assert failure_of(run(Outcome(result, 0.0, "")), PATH, TAXONOMY) is None


def test_an_unfinished_run_is_no_failure() -> None:
    assert failure_of(run(None), PATH, TAXONOMY) is None


def test_the_last_class_fits_any_fault() -> None:
    assert classify(Fault("ZeroDivisionError", ""), TAXONOMY).name == "tool_error"
    assert not classify(Fault("no_model", ""), TAXONOMY).evolvable
