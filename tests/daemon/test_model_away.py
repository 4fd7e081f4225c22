"""A model that nobody serves, with a real gateway: what asks no model goes on, and the rest says what it waits for."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agentos.daemon.service import Service, service
from agentos.domain import (
    Candidate,
    Decision,
    Edit,
    Evidence,
    Evolution,
    EvolutionState,
    Fingerprint,
    Layer,
    Manifest,
    Share,
    SupportKind,
    TaskState,
    new_id,
)
from agentos.errors import ModelAway
from agentos.evolver.guards.assurance.dynamic import measure
from agentos.evolver.verdict.gates import safety_ruling
from agentos.home import Home
from agentos.settings import load_settings
from tests.daemon.thinking_world import free_task, typed
from tests.refusals import raises

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

TOOL = "skill/test-kit/tools/double.py"


@pytest.fixture(scope="module")
def made(made_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    home = Home(tmp_path_factory.mktemp("away") / "home")
    shutil.copytree(made_home, home.root)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
    typed(
        home, "model", "add", "local", "--model", "openai/local", "--provider", "local", "--api-base", nobody
    )
    settings = load_settings(home.settings).model_copy(update={"sandbox": "bubblewrap"})
    with service(home, settings) as started:
        started.sandbox.start()
        asking = [probe for probe in started.parts.safety_probes if probe.model][:1]
        plain = [probe for probe in started.parts.safety_probes if not probe.model][:1]
        yield replace(started, parts=replace(started.parts, safety_probes=(*plain, *asking)))


def proposed(made: Service, path: str, old: bytes, new: bytes) -> tuple[Evolution, Candidate]:
    base = made.registry.stable()
    text = made.registry.files(base, path)[path]
    assert old in text
    files = {path: text.replace(old, new).decode()}
    task = free_task("total: 1 2 3", agent="default")
    made.ledger.add_task(task, Share.OPEN, TaskState.DONE)
    evidence = Evidence(new_id("evd"), Fingerprint("f", "", "", ""), (), (task.id,), task.created_at, "")
    evolution = Evolution(new_id("evo"), evidence.id, "f", EvolutionState.REPLAYING, base)
    name = new_id("cand")
    manifest = Manifest(evidence.id, "", "", (path,), (), (), Layer.SKILL, "")
    snapshot = made.registry.add_candidate(name, base, files)
    candidate = Candidate(name, evolution.id, "test", 1, manifest, Edit(files, "x", "test"), base, snapshot)
    for record in (evidence, evolution, candidate):
        made.ledger.put(record)
    return evolution, candidate


def test_the_body_of_a_tool_is_promoted_without_the_model(made: Service) -> None:
    old = b"return Output(n="
    evolution, candidate = proposed(made, TOOL, old, b"return Output(n=0 + ")
    rates = measure(made.parts, evolution, candidate)
    decision, reasons = safety_ruling(candidate, rates)
    assert decision is Decision.PROMOTE
    assert "1 that ask a model were left out" in reasons[-1].reason
    assert reasons[-1].kind is SupportKind.SAFE
    assert all(rate.ran for rate in rates), "those that ask nobody were run"


def test_what_a_model_reads_waits_for_it(made: Service) -> None:
    evolution, candidate = proposed(made, "prompt/default/prompt.md", b"\n", b"\nAlways verify.\n")
    with raises(ModelAway, names=["(unreachable)"]):
        measure(made.parts, evolution, candidate)
