"""What the API answers to requests that a machine makes up of its description: never a 5xx, always what it describes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.conftest import Served

EXAMPLES = 3  # of each operation, of those that fit its form, and of those that do not
THERE = {
    "tasks": {"id": "task-hostile"},
    "runs": {"id": "run-hostile", "number": 1},
    "questions": {"id": "question-1"},
    "schedules": {"id": "task-nightly"},
    "resources": {"kind": "skill", "name": "calc"},
}


@pytest.mark.slow
def test_no_request_that_can_be_made_up_breaks_it(served: Served, token: str) -> None:
    import schemathesis  # no other test wants what it takes to import it

    schema = schemathesis.openapi.from_url(f"{served.address}/api/v1/openapi.json")
    there = {**THERE, "evolutions": {"id": served.evolution.id}}
    asked: list[tuple[str, int]] = []
    for found in schema.get_all_operations():
        operation = found.ok()
        name = str(operation.definition.raw["operationId"])
        if name.endswith(".follow"):
            continue  # it does not end; test_operations follows it
        known = there.get(name.partition(".")[0], {})
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
            _ask(operation, mode, token, {}, asked)
        _ask(operation, schemathesis.GenerationMode.POSITIVE, token, known, asked)
    assert len({name for name, _ in asked}) > 25
    reached = {name for name, status in asked if status < 300}
    assert len(reached) > 15, reached


def _ask(operation: Any, mode: Any, token: str, known: dict[str, Any], asked: list[tuple[str, int]]) -> None:
    """Ask ``EXAMPLES`` times; ``known`` stands for parts of the path, so that something is there."""
    from hypothesis import HealthCheck, Phase, given, seed, settings
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    cases = operation.as_strategy(generation_mode=mode)

    @seed(1)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def ask(case: Any) -> None:
        for name in known:
            if name in (case.path_parameters or {}):
                case.path_parameters[name] = known[name]
        headers = {"Authorization": f"Bearer {token}"}
        response = case.call_and_validate(
            headers=headers,
            checks=[
                not_a_server_error,
                checks.status_code_conformance,
                checks.content_type_conformance,
                checks.response_headers_conformance,
                checks.response_schema_conformance,
            ],
            timeout=60,
        )
        asked.append((operation.definition.raw["operationId"], response.status_code))

    ask()
