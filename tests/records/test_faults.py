"""Who says what of a failure: the kernel's kinds are a closed set, and old records are read as they were meant."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentos.domain import Fault, KernelFault, Origin, box_fault, kernel_fault, kind_of, origin_of, word_of
from agentos.evolver.documents import load_taxonomy
from agentos.ledger.rows.codec import from_json, to_json
from agentos.messages import RESERVED
from agentos.records.runs import KERNEL_ONLY
from agentos.shipped import folder
from tests.refusals import raises

WORKER = Path(__file__).resolve().parents[2] / "agentos" / "worker"
OLD = {"type": "no_model", "message": "none", "where": "", "resource": ""}


@pytest.mark.parametrize("type", [kind.value for kind in KernelFault if kind])
@pytest.mark.parametrize("resource", ["", "tool/x", "skill/x", "harness/default"])
def test_no_word_from_a_box_is_the_kernels(type: str, resource: str) -> None:
    said = box_fault(type, "the evolution may use 1 call of models", "", resource)
    assert origin_of(said) is not Origin.KERNEL
    assert kind_of(said) is KernelFault.NONE
    assert word_of(said) not in KERNEL_ONLY


def test_a_kind_without_the_kernels_origin_cannot_be_made() -> None:
    for origin in (Origin.TOOL, Origin.HARNESS, Origin.UNSAID):
        with raises(ValueError):
            Fault("no_model", "", origin=origin, kind=KernelFault.NO_MODEL)


def test_all_words_of_kernel_worker_and_taxonomy_are_reserved() -> None:
    taxonomy = load_taxonomy(folder("evolver") / "taxonomy.toml")
    words = {name for klass in taxonomy for name in klass.faults if name != "*" and ":" not in name}
    words |= {kind.value for kind in KernelFault if kind} | KERNEL_ONLY
    for path in WORKER.rglob("*.py"):
        words |= set(re.findall(r'\bfault\("([a-z_]+)"', path.read_text()))
    assert words <= RESERVED, words - RESERVED


def test_what_the_kernel_saw_survives_the_ledger() -> None:
    made = kernel_fault(KernelFault.DAY_BUDGET, "all runs of a day")
    assert from_json(Fault, to_json(made)) == made
    assert (made.type, kind_of(made)) == ("budget", KernelFault.DAY_BUDGET)


@pytest.mark.parametrize(
    ("changed", "origin", "kind"),
    [
        ({}, Origin.KERNEL, KernelFault.NO_MODEL),
        ({"resource": "tool/x"}, Origin.TOOL, KernelFault.NONE),
        ({"resource": "skill/x", "where": "a.py:run"}, Origin.TOOL, KernelFault.NONE),
        ({"resource": "harness/default"}, Origin.HARNESS, KernelFault.NONE),
        ({"type": "budget", "message": "the run may use 3"}, Origin.KERNEL, KernelFault.BUDGET),
        (
            {"type": "budget", "message": "the evolution may use 3"},
            Origin.KERNEL,
            KernelFault.EVOLUTION_BUDGET,
        ),
        ({"type": "budget", "message": "all runs of a day may use 3"}, Origin.KERNEL, KernelFault.DAY_BUDGET),
        ({"type": "loop"}, Origin.HARNESS, KernelFault.NONE),
    ],
)
def test_an_old_record_is_read_by_what_stands_on_it(
    changed: dict[str, str], origin: Origin, kind: KernelFault
) -> None:
    read = from_json(Fault, OLD | changed)
    assert (origin_of(read), kind_of(read)) == (origin, kind)
    assert (read.origin, read.kind) == (Origin.UNSAID, KernelFault.NONE), "digests of old records stay"


def test_words_of_a_budget_are_read_on_old_records_alone() -> None:
    new = kernel_fault(KernelFault.BUDGET, "the evolution may use 3 calls")
    assert kind_of(new) is KernelFault.BUDGET
