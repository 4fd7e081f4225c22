"""Answers a run's model calls: asks the gateway, and records each call as a step."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import Any

from agentos.daemon.requests.run_requests import Denied, RequestHandler, RunContext, RunEnds
from agentos.domain import Budget, Cost, Json, KernelFault, Limits, ModelSpec, Reply, Result, kernel_fault
from agentos.errors import KeyRefused, ModelAway, ModelFailed, Unavailable
from agentos.ports import Grant, Models

# How a failed call ends the run; kinds that stand in neither table are told to the agent.
_ENDS = {
    KernelFault.BUDGET: Result.BUDGET,
    KernelFault.EVOLUTION_BUDGET: Result.BUDGET,
    KernelFault.DAY_BUDGET: Result.BUDGET,
    KernelFault.NOT_RECORDED: Result.NOT_REPLAYABLE,
    KernelFault.NOT_ALLOWED: Result.FAILED,
    KernelFault.NO_MODEL: Result.FAILED,
}
_NAME_MAX = 200  # of what was asked by a name, as it is recorded
_AWAY = frozenset({"unreachable", "overloaded", "timeout"})
_LONG_S = 5.0  # a wait in which others may work


class PendingCalls:
    """Which runs wait for a model's answer. Thread-safe."""

    def __init__(self) -> None:
        self._out: dict[object, tuple[str, float]] = {}  # run, and since when

    @contextmanager
    def noted(self, run_id: str) -> Iterator[None]:
        """While the call is out."""
        call = object()
        self._out[call] = run_id, time.monotonic()
        try:
            yield
        finally:
            del self._out[call]

    def long(self) -> Set[str]:
        """Runs that have waited for some seconds, and need no processor meanwhile."""
        before = time.monotonic() - _LONG_S
        return {run_id for run_id, since in self._out.copy().values() if since <= before}


class ModelAsks(RequestHandler):
    """One run's model calls. ``specs`` are the models it may ask, the agent's own first."""

    def __init__(
        self, models: Models, specs: Sequence[ModelSpec], asking: RunContext, pending: PendingCalls
    ) -> None:
        self._asking, self._pending = asking, pending
        self._default = specs[0].name if specs else ""
        plan = asking.plan
        self._budget = budget_of(asking.bundle.limits)
        self._stopped = False
        recordings = plan.recording.run_ids if plan.recording else ()
        self._session = models.open(
            Grant(
                run_id=asking.run_id,
                mode=plan.mode,
                models=tuple(specs),
                budget=self._budget,
                evolution_id=plan.evolution_id,
                recordings=recordings,
                goes_on=plan.resume,
            )
        )

    def answer(self, body: Mapping[str, Any]) -> Mapping[str, Json]:
        """{"reply": chat completion}."""
        if not self._default:  # no gateway is started to say so
            raise RunEnds(
                Result.FAILED, kernel_fault(KernelFault.NO_MODEL, "no model is set up (agentos model add)")
            )
        # The gateway counts this run's calls; what agents below it used is known here alone.
        if limit := self._asking.spent.reached(self._budget):
            why = f"the run and the agents below it used up what they may of models ({limit})"
            raise RunEnds(Result.BUDGET, kernel_fault(KernelFault.BUDGET, why))
        rules = self._asking.rules
        if rules is not None:
            rules.model(str(body.get("model") or self._default)[:_NAME_MAX], body)
        try:
            with self._pending.noted(self._asking.run_id):
                reply = self._session.complete(dict(body), self._asking.deadline)
        except ModelFailed as error:
            if self._stopped:  # nothing that the model did
                if booked := self._booked(error):  # it may be paid all the same
                    told = {"error": KernelFault.KILLED.value, "message": "the run is over", **booked}
                    self._record(body, told, 0.0)
                raise RunEnds(Result.CANCELLED, kernel_fault(KernelFault.KILLED, "the run is over")) from None
            self._record(body, {"error": error.kind, "message": str(error), **self._booked(error)}, 0.0)
            if rules is not None and error.used:
                rules.asked_model(_tokens(error), error.used["usd"])
            raise _consequence(error) from None
        self._asking.spent.add(reply)
        self._record(body, _told(reply), reply.latency_ms)
        if rules is not None:
            return {"reply": rules.reply(reply, black_box=bool(self._asking.bundle.command))}
        return {"reply": reply.body}

    def stop(self) -> None:
        """Calls under way are waited for no longer; the gateway brings them onto its record all the same."""
        self._stopped = True
        self._session.close()

    def close(self) -> None:
        """End the grant, where it has not ended."""
        if not self._stopped:
            self.stop()

    def _booked(self, error: ModelFailed) -> Mapping[str, Json]:
        """What a call without a usable answer used all the same, counted: a provider that was too late is paid for what
        it was sent. Nothing where it used nothing, as one that was served from a recording."""
        used = error.used
        sizes = {name: int(used.get(name, 0)) for name in ("input_tokens", "output_tokens")}
        if used.get("recorded") or not any(sizes.values()):
            return {}
        self._asking.spent.merge(Cost(tokens=sum(sizes.values()), usd=used["usd"], calls=1, live_calls=1))
        return {"usage": {**sizes, "estimated": used["estimated"]}}

    def _record(self, body: Mapping[str, Any], observation: Json, duration_ms: float) -> None:
        sizes = {name: len(body[name]) for name in ("messages", "tools") if isinstance(body.get(name), list)}
        model = str(body.get("model") or self._default)[:_NAME_MAX]
        self._asking.step("model", {"model": model, **sizes}, observation, duration_ms)


def _tokens(error: ModelFailed) -> int:
    return sum(int(error.used.get(name, 0)) for name in ("input_tokens", "output_tokens"))


def budget_of(limits: Limits) -> Budget:
    """What the limits allow of model calls."""
    return Budget(limits.calls, limits.tokens, limits.cost_usd)


def model_asks(
    models: Models, specs: Callable[[RunContext], Sequence[ModelSpec]], pending: PendingCalls | None = None
) -> Callable[[RunContext], RequestHandler]:
    """Makes the answerer of each run's model calls. ``pending`` is told which are out."""
    told = pending or PendingCalls()
    return lambda asking: ModelAsks(models, specs(asking), asking, told)


def _told(reply: Reply) -> Json:
    choices = reply.body.get("choices") or [{}]
    return {
        "message": choices[0].get("message"),
        "finish_reason": choices[0].get("finish_reason"),
        "call": reply.call_id,
        "model": reply.model,
        "usage": {"input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens},
        "usd": reply.usd,
        "recorded": reply.recorded,
    }


def _consequence(error: ModelFailed) -> Exception:
    kind = next((kind for kind in _ENDS if kind == error.kind), None)
    if kind is not None:
        return RunEnds(_ENDS[kind], kernel_fault(kind, str(error)))
    if error.kind == "slow":
        return RunEnds(Result.TIMEOUT, kernel_fault(KernelFault.TIMEOUT, str(error)))
    if error.kind == "auth":
        again = "it is asked again when agentos.toml, keys.toml or the registry changes, else each hour"
        return KeyRefused(f"no model could be asked (auth): {error}; {again}")
    if error.kind in _AWAY:
        return ModelAway(f"no model could be asked ({error.kind}): {error}")
    if error.kind == "internal":  # no model is away, and the next attempt is told the same, unpaid
        return Unavailable(f"a model call ended by a bug of ours: {error}")
    return Denied(error.kind, str(error))
