"""Spans as OTLP's JSON form demands them, and nothing of what was said unless it is asked for."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agentos.domain import CheckResult, Json, Result
from agentos.trajectories.chat import FinishedRun
from agentos.trajectories.conversations import SAYS_NOTHING
from agentos.trajectories.readers import formats
from agentos.trajectories.spans import otlp, spans_of

Make = Callable[..., FinishedRun]

USAGE = {"input_tokens": 11, "output_tokens": 7}
ASKED = (
    "model",
    {"model": "main", "messages": 2},
    {
        "message": {"role": "assistant", "content": "the password is tulip"},
        "finish_reason": "stop",
        "call": "call-1",
        "model": "main",
        "usage": USAGE,
        "usd": 0.25,
        "recorded": False,
    },
)
FETCHED = (
    "fetch",
    {"method": "GET", "url": "https://tulip.example.org/"},
    {"type": "unreachable", "error": "tulip.example.org does not answer"},
)
ACTED = ("act", {"tool": "add", "args": {"a": "tulip"}}, {"ok": True, "output": "tulip"})


def valid(request: Json) -> list[dict[str, Any]]:
    """The request's spans, after every rule of OTLP/JSON that they could break."""
    json.dumps(request, allow_nan=False, ensure_ascii=False).encode()
    assert list(request) == ["resourceSpans"]
    (resource,) = request["resourceSpans"]
    assert set(resource) == {"resource", "scopeSpans"}
    assert read(resource["resource"]["attributes"])["service.name"] == "agentos"
    (scope,) = resource["scopeSpans"]
    assert set(scope) == {"scope", "spans"}
    for span in scope["spans"]:
        assert_span(span)
    assert len({span["spanId"] for span in scope["spans"]}) == len(scope["spans"])
    spans: list[dict[str, Any]] = scope["spans"]
    return spans


FIELDS = {
    *("traceId", "spanId", "parentSpanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano"),
    *("attributes", "events", "links", "status"),
}


def assert_span(span: Json) -> None:
    assert set(span) <= FIELDS
    assert len(bytes.fromhex(span["traceId"])) == 16
    for key in ("spanId", "parentSpanId"):
        assert key not in span or len(bytes.fromhex(span[key])) == 8
    assert span["kind"] in range(1, 6)
    assert isinstance(span["name"], str)
    assert span["name"]
    assert 0 < int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
    assert isinstance(span["startTimeUnixNano"], str)
    read(span["attributes"])
    for event in span.get("events", []):
        assert set(event) == {"timeUnixNano", "name", "attributes"}
        read(event["attributes"])
    for link in span.get("links", []):
        assert set(link) == {"traceId", "spanId"}
    assert set(span.get("status", {})) <= {"code", "message"}


def read(attributes: Json) -> dict[str, Any]:
    """Attributes as a dictionary."""
    found = {}
    for attribute in attributes:
        assert set(attribute) == {"key", "value"}
        found[attribute["key"]] = value_of(attribute["value"])
    assert len(found) == len(attributes)
    return found


def value_of(value: Json) -> Any:
    ((kind, inner),) = value.items()
    if kind == "intValue":
        assert isinstance(inner, str)
        return int(inner)
    if kind == "arrayValue":
        return [value_of(item) for item in inner["values"]]
    assert type(inner) is {"stringValue": str, "doubleValue": float, "boolValue": bool}[kind]
    return inner


def test_a_run_its_model_call_and_its_tool_call(happened: Make) -> None:
    run, model, tool, other = valid(otlp([happened(ASKED, ACTED, ("verify", None, None))]))
    assert (run["name"], model["name"], tool["name"], other["name"]) == (
        "invoke_agent default",
        "chat main",
        "execute_tool add",
        "verify",
    )
    assert (run["kind"], model["kind"], tool["kind"]) == (1, 3, 1)
    assert {span["traceId"] for span in (model, tool, other)} == {run["traceId"]}
    assert {span["parentSpanId"] for span in (model, tool, other)} == {run["spanId"]}
    assert "parentSpanId" not in run
    about = read(run["attributes"])
    assert about["gen_ai.operation.name"] == "invoke_agent"
    assert about["gen_ai.agent.version"] == "c" * 40
    assert about["agentos.run.result"] == "passed"
    assert (about["gen_ai.usage.input_tokens"], about["gen_ai.usage.output_tokens"]) == (11, 7)
    assert "agentos.cost.usd" not in about  # it is not known
    asked = read(model["attributes"])
    assert asked["gen_ai.request.model"] == "main"
    assert asked["gen_ai.response.finish_reasons"] == ["stop"]
    assert asked["gen_ai.usage.output_tokens"] == 7
    assert asked["agentos.cost.usd"] == 0.25
    assert read(tool["attributes"])["gen_ai.tool.name"] == "add"
    assert int(run["endTimeUnixNano"]) - int(run["startTimeUnixNano"]) == 2_000_000_000
    assert int(tool["endTimeUnixNano"]) - int(tool["startTimeUnixNano"]) == 2_500_000


def test_what_the_machinery_lost_is_taken_in_as_unknown(happened: Make) -> None:
    run = happened(ASKED, ACTED)
    assert run.run.outcome is not None
    for kind in Result:
        ended = replace(run, run=replace(run.run, outcome=replace(run.run.outcome, result=kind)))
        (found,) = formats.read(otlp([ended], content=True), "otel")
        assert found.ended.result is (Result.UNKNOWN if kind in SAYS_NOTHING else kind), kind
    spans = json.loads(
        json.dumps(otlp([run], content=True)).replace(
            '{"stringValue": "passed"}', '{"arrayValue": {"values": []}}'
        )
    )
    (found,) = formats.read(spans, "otel")
    assert found.ended.result is Result.UNKNOWN, "a result that is no word is none"


def test_what_was_said_is_left_out_unless_it_is_asked_for(happened: Make) -> None:
    run = happened(ASKED, ACTED)
    run = replace(run, run=replace(run.run, outcome=failing(run, "tulip")))
    assert "tulip" not in json.dumps(otlp([run]))
    told = otlp([run], content=True)
    valid(told)
    assert json.dumps(told).count("tulip") == 5  # message, arguments, result, check, reason


def failing(run: FinishedRun, said: str) -> Any:
    assert run.run.outcome is not None
    checks = (CheckResult("equals", False, said), CheckResult("regex", True, ""))
    return replace(run.run.outcome, result=Result.FAILED, reason=said, checks=checks)


def test_of_what_failed_its_kind_is_told_and_no_more(happened: Make) -> None:
    away = ("model", {"model": "main"}, {"error": "timeout", "message": "tulip did not answer"})
    own = ("reflect", None, {"error": "the tulip is gone"})
    request = otlp([happened(ASKED, FETCHED, away, own)])
    assert "tulip" not in json.dumps(request)
    _, model, *others = (read(span["attributes"]).get("error.type") for span in valid(request))
    assert [model, *others] == [None, "unreachable", "timeout", None]


def test_failures_and_checks_are_told(happened: Make) -> None:
    made = happened(ASKED, ACTED, fault_at=1)
    run, model, tool = valid(otlp([replace(made, run=replace(made.run, outcome=failing(made, "")))]))
    assert run["status"] == {"code": 2}
    assert read(run["attributes"])["error.type"] == "failed"
    assert "status" not in model
    assert tool["status"] == {"code": 2}
    assert read(tool["attributes"])["error.type"] == "ValueError"
    events = [read(event["attributes"]) for event in run["events"]]
    assert [event["gen_ai.evaluation.score.label"] for event in events] == ["failed", "passed"]


def test_the_same_run_has_the_same_ids_and_a_sub_run_is_linked_to_its_parent(happened: Make) -> None:
    parent = happened(ASKED)
    child = happened(ASKED, id="run-2")
    child = replace(child, run=replace(child.run, parent="run-1"))
    assert otlp([parent]) == otlp([parent])
    (above, _), (below, _) = spans_of(parent), spans_of(child)
    assert below["links"] == [{"traceId": above["traceId"], "spanId": above["spanId"]}]
    assert below["traceId"] != above["traceId"]


def test_hostile_steps_give_valid_spans(happened: Make) -> None:
    usage = {"input_tokens": -5, "output_tokens": 10**30}
    hostile = [
        ("model", 5, None),
        ("model", {"model": ["x"]}, {"usage": [], "finish_reason": {}, "usd": math.inf, "error": {}}),
        ("model", {"model": "m" * 10_000}, {"usage": usage, "recorded": "yes", "usd": True, "call": 10**30}),
        ("act", [], "x"),
        ("act", {"tool": {"a": 1}, "args": None}, []),
        ("\ud800", {}, {"a": "\ud800"}),
        ("", None, None),
    ]
    run = happened(*hostile)
    long = replace(run, steps=tuple(replace(step, duration_ms=math.inf) for step in run.steps))
    for content in (False, True):
        assert len(valid(otlp([long], content=content))) == 8
