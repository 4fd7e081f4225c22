"""A finished run as OpenTelemetry spans, in OTLP's JSON form: the run, below it each of its steps.

Ids are made of the run's, so that sending a run again gives the same spans, and a run that another
one handed its task to can be linked to it. What was said and given (messages, arguments, results)
is left out unless it is asked for.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from agentos import __version__
from agentos.domain import Json, Result, Step, digest
from agentos.trajectories.chat import FinishedRun
from agentos.trajectories.conversations import part_of
from agentos.trajectories.readers import genai

_INTERNAL, _CLIENT = 1, 3  # SpanKind
_ERROR = 2  # StatusCode
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DURATION_MAX_MS = 1e11
_FAULTS = {"model": "error", "fetch": "type"}  # by step of the kernel's, where it names the kind of a fault
_TEXT_MAX = 64 << 10  # characters of one attribute


def otlp(runs: Iterable[FinishedRun], *, content: bool = False) -> Json:
    """One OTLP export request (ExportTraceServiceRequest) with the spans of these runs."""
    spans = [span for happened in runs for span in spans_of(happened, content=content)]
    resource = {"attributes": _attributes({"service.name": "agentos", "service.version": __version__})}
    scope = {"name": "agentos.trajectories", "version": __version__}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]}


def spans_of(happened: FinishedRun, *, content: bool = False) -> list[Json]:
    """The run's span, then one for each step."""
    return [_run_span(happened, content), *(_step_span(happened, step, content) for step in happened.steps)]


def _run_span(happened: FinishedRun, content: bool) -> Json:
    task, run, outcome = happened.task, happened.run, happened.run.outcome
    attributes: dict[str, Json] = {
        genai.OPERATION: genai.INVOKE_AGENT,
        genai.AGENT_NAME: task.agent,
        genai.AGENT_VERSION: run.snapshot.commit,
        genai.CONVERSATION: task.id,
        genai.INPUT_TOKENS: sum(_tokens(step, "input_tokens") or 0 for step in happened.steps),
        genai.OUTPUT_TOKENS: sum(_tokens(step, "output_tokens") or 0 for step in happened.steps),
        "agentos.run.id": run.id,
        "agentos.run.attempt": run.attempt,
        "agentos.sandbox.name": run.sandbox,
        "agentos.sandbox.level": run.level,
    }
    error = ""
    events = []
    end = run.finished_at or run.started_at
    if outcome is not None:
        attributes |= {
            "agentos.run.result": outcome.result.value,
            "agentos.run.score": outcome.score,
            "agentos.cost.cpu_s": outcome.cost.cpu_s,
            "agentos.cost.usd": outcome.cost.usd,
        }
        if outcome.result is not Result.PASSED:
            error = outcome.fault.type if outcome.fault else outcome.result.value
        for check in outcome.checks:
            says = {
                genai.EVALUATION_NAME: check.kind,
                genai.EVALUATION_SCORE: 1.0 if check.passed else 0.0,
                genai.EVALUATION_LABEL: "passed" if check.passed else "failed",
                genai.EVALUATION_WHY: check.detail if content else None,
            }
            event = {"timeUnixNano": _nanos(end), "name": genai.EVALUATION, "attributes": _attributes(says)}
            events.append(event)
    span = {
        "traceId": _trace_id(run.id),
        "spanId": _span_id(run.id),
        "name": f"{genai.INVOKE_AGENT} {task.agent}",
        "kind": _INTERNAL,
        "startTimeUnixNano": _nanos(run.started_at),
        "endTimeUnixNano": _nanos(end),
        "events": events,
    }
    if run.parent:
        span["links"] = [{"traceId": _trace_id(run.parent), "spanId": _span_id(run.parent)}]
    return _closed(span, attributes, error, outcome.reason if outcome and content else "")


def _step_span(happened: FinishedRun, step: Step, content: bool) -> Json:
    name, kind, attributes = _what(step, content)
    span = {
        "traceId": _trace_id(step.run_id),
        "spanId": _span_id(f"{step.run_id}#{step.index}"),
        "parentSpanId": _span_id(happened.run.id),
        "name": _text(name),
        "kind": kind,
        "startTimeUnixNano": _nanos(step.started_at),
        "endTimeUnixNano": _nanos(
            step.started_at + timedelta(milliseconds=min(step.duration_ms, _DURATION_MAX_MS))
        ),
    }
    attributes |= {"agentos.step.index": step.index, "agentos.step.node": step.node}
    observed = part_of(step.observation, _FAULTS.get(step.node, ""))
    error = step.fault.type if step.fault else observed if isinstance(observed, str) else ""
    return _closed(span, attributes, error, step.fault.message if step.fault and content else "")


def _what(step: Step, content: bool) -> tuple[str, int, dict[str, Json]]:
    """Name, kind and own attributes of a step's span."""
    if step.node == "model":
        asked, answered = part_of(step.action, "model"), part_of(step.observation, "model")
        reason = part_of(step.observation, "finish_reason")
        attributes = {
            genai.OPERATION: genai.CHAT,
            genai.PROVIDER: "agentos",  # whoever stands behind the gateway is not in the step
            genai.REQUEST_MODEL: asked or answered or "unknown",
            genai.RESPONSE_MODEL: answered,
            genai.RESPONSE_ID: part_of(step.observation, "call"),
            genai.FINISH_REASONS: [reason] if isinstance(reason, str) else None,
            genai.INPUT_TOKENS: _tokens(step, "input_tokens"),
            genai.OUTPUT_TOKENS: _tokens(step, "output_tokens"),
            "agentos.cost.usd": part_of(step.observation, "usd"),
            "agentos.model.recorded": part_of(step.observation, "recorded"),
            genai.OUTPUT_MESSAGES: _json([part_of(step.observation, "message")]) if content else None,
        }
        return f"{genai.CHAT} {attributes[genai.REQUEST_MODEL]}"[:200], _CLIENT, attributes
    if step.node == "act":
        tool = str(part_of(step.action, "tool") or "unknown")[:200]
        attributes = {
            genai.OPERATION: genai.EXECUTE_TOOL,
            genai.TOOL_NAME: tool,
            genai.TOOL_TYPE: "function",
            genai.TOOL_ARGUMENTS: _json(part_of(step.action, "args")) if content else None,
            genai.TOOL_RESULT: _json(part_of(step.observation, "output")) if content else None,
        }
        return f"{genai.EXECUTE_TOOL} {tool}", _INTERNAL, attributes
    return step.node or "step", _INTERNAL, {}


def _closed(span: dict[str, Json], attributes: Mapping[str, Json], error: str, message: str) -> Json:
    """The span with its attributes and status. No status means neither success nor failure is said."""
    if error:
        attributes = {**attributes, genai.ERROR_TYPE: error}
        span["status"] = {"code": _ERROR, **({"message": _text(message)} if message else {})}
    return {**span, "attributes": _attributes(attributes)}


def _tokens(step: Step, name: str) -> int | None:
    count = part_of(part_of(step.observation, "usage"), name) if step.node == "model" else None
    return count if isinstance(count, int) and 0 <= count < 1 << 53 else None


def _attributes(values: Mapping[str, Json]) -> list[Json]:
    """OTLP's key-value pairs; what is None, no number or of another kind is left out."""
    pairs = ((key, _any_value(value)) for key, value in values.items())
    return [{"key": key, "value": value} for key, value in pairs if value is not None]


def _any_value(value: Json) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, str):
        return {"stringValue": _text(value)}
    if isinstance(value, int) and abs(value) < 1 << 63:
        return {"intValue": str(value)}  # 64 bits do not fit into JSON's numbers
    if isinstance(value, float) and math.isfinite(value):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_any_value(item) for item in value]}}
    return None


def _text(text: str) -> str:
    """Cut, and without lone surrogates: they are no UTF-8, so a collector may refuse the request."""
    return text[:_TEXT_MAX].encode("utf-8", "replace").decode()


def _json(value: Json) -> str | None:
    return None if value is None else json.dumps(value)


def _nanos(moment: datetime) -> str:
    return str((moment - _EPOCH) // timedelta(microseconds=1) * 1000)


def _trace_id(run_id: str) -> str:
    return digest(["trace", run_id])[:32]


def _span_id(of: str) -> str:
    return digest(["span", of])[:16]
