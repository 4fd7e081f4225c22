"""One model call from request to answer: served from the record, or reserved, recorded, asked, recorded."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from agentos.domain import Mode, ModelSpec, Price, new_id
from agentos.errors import ModelFailed
from agentos.gateway.asking import AttemptTally, Completion, ModelCall, Providers, ask, listed_price
from agentos.gateway.calls import Bodies, CallRecord, CallTotals, ProviderCall, body_of, envelope
from agentos.gateway.sessions import LIFE_S, BudgetAccount, Session, Tokens, plus, reserve
from agentos.gateway.setup import GatewayLimits
from agentos.gateway.speed import FRESH_S
from agentos.models.redaction import Redactor
from agentos.models.requests import (
    FAULTS,
    Usage,
    effective,
    finding_of,
    output_limit,
    request_fault,
    request_key,
    tokens_of,
    usage_of,
    with_usage,
)
from agentos.ports import Grant

# A call that failed in one of these ways is over; after any other it may be asked again.
_FINAL = frozenset({*FAULTS, "context", "request", "internal"})
log = logging.getLogger("agentos.gateway")
_DEARER = 20.0  # times the price of plain text, for sounds and pictures


@dataclass(frozen=True, slots=True)
class GatewayReply:
    """A call that came to its end. ``body`` is the chat completion, byte for byte as it is on record."""

    call: ProviderCall
    body: bytes


class CallEnded(ModelFailed):
    """A ModelFailed that is itself on record: the call has its number, and a replay fails the same way."""

    def __init__(self, call: ProviderCall) -> None:
        self.call = call
        super().__init__(call.fault, call.message)


class CallUnanswered(ModelFailed):
    """A ModelFailed after which the same call may be asked again; what it is booked with stands in ``call``."""

    def __init__(self, call: ProviderCall) -> None:
        self.call = call
        super().__init__(call.fault, call.message)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One call on its way. ``call`` is its row as it is written first."""

    session: Session
    spec: ModelSpec
    asked: Mapping[str, Any]
    call: ProviderCall
    texts: Bodies | None  # None: they are not kept
    before: ProviderCall | None  # an earlier try of the same call, perhaps of another run

    @property
    def moved(self) -> str:
        """Id of the row of another run that this one takes over."""
        other = self.before is not None and self.before.run_id != self.call.run_id
        return self.before.id if self.before and other else ""


class CallService:
    """Answers the calls of all runs, ``calls_max`` at a time. On one event loop."""

    def __init__(
        self,
        record: CallRecord,
        providers: Providers,
        redactor: Redactor,
        limits: GatewayLimits,
        calls_max: int,
    ) -> None:
        self.tokens = Tokens()
        self.in_flight = 0
        self.redactor = redactor
        self._record = record
        self._providers = providers
        self._limits = limits
        self._room = asyncio.Semaphore(calls_max)
        # of runs and evolutions, for as long as a session or a call refers to them; the record has the rest
        self._accounts: weakref.WeakValueDictionary[str, BudgetAccount] = weakref.WeakValueDictionary()
        self._today: tuple[str, BudgetAccount] | None = None

    # --- grants -------------------------------------------------------------------------------

    def open(self, grant: Grant, done: Mapping[str, Sequence[int]]) -> tuple[Session, str]:
        """A session and its token. ``done`` are the numbers by key that the holder has had before."""
        for expired in self.tokens.expired():
            self.tokens.revoke(expired)
        session = Session(
            id=new_id("grant"),
            grant=grant,
            accounts=tuple(self._accounts_of(grant)),
            ends_at=time.monotonic() + LIFE_S,
            diverged=self._record.was_asked(grant.run_id),
            taken={key: set(numbers) for key, numbers in done.items()},
        )
        return session, self.tokens.add(session)

    def _accounts_of(self, grant: Grant) -> Iterator[BudgetAccount]:
        account = self._accounts.get(f"run {grant.run_id}")
        if account is None:
            account = BudgetAccount(
                "budget",
                "the run",
                "raise the limits of the task, or run_… of [budget] in agentos.toml",
                grant.budget,
                self._used(grant),
            )
            self._accounts[f"run {grant.run_id}"] = account
        yield account
        if not grant.evolution_id:
            return
        account = self._accounts.get(f"evolution {grant.evolution_id}")
        if account is None:
            account = BudgetAccount(
                "evolution_budget",
                "the evolution",
                "raise evolution_… of [budget] in agentos.toml",
                self._limits.evolution,
                self._record.spent(evolution_id=grant.evolution_id),
            )
            self._accounts[f"evolution {grant.evolution_id}"] = account
        yield account

    def _used(self, grant: Grant) -> CallTotals:
        """By the run, in all its attempts."""
        used = self._record.spent(run_id=grant.run_id)
        for run_id in grant.recordings if grant.goes_on else ():
            used = plus(used, self._record.spent(run_id=run_id))
        return used

    def _day(self) -> BudgetAccount:
        start = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        if self._today is None or self._today[0] != start.isoformat():
            account = BudgetAccount(
                "day_budget",
                "all runs of a day",
                "raise day_… of [budget] in agentos.toml, or wait until midnight UTC",
                self._limits.day,
                self._record.spent(midnight=start.timestamp()),
            )
            self._today = (start.isoformat(), account)
        return self._today[1]

    # --- calls --------------------------------------------------------------------------------

    async def complete(self, session: Session, request: Any, timeout_s: float) -> GatewayReply:
        """The answer to an OpenAI chat completion request; raises ModelFailed.

        Goes on to the record even when whoever waits for it is cancelled.
        """
        deadline = time.monotonic() + timeout_s
        self.in_flight += 1
        task = asyncio.ensure_future(self._complete(session, request, deadline))
        task.add_done_callback(self._landed)
        return await asyncio.shield(task)

    def _landed(self, task: asyncio.Future[GatewayReply]) -> None:
        self.in_flight -= 1
        if not task.cancelled():
            task.exception()  # it was told to whoever asked; asyncio need not complain if they are gone

    async def _complete(self, session: Session, request: Any, deadline: float) -> GatewayReply:
        if fault := request_fault(request):
            raise ModelFailed("request", fault)
        spec = session.spec(request.get("model"))
        asked = self.redactor.value(effective(request, spec))
        key = request_key(asked, spec, session.grant.run_id)
        nth = session.take(key)
        kept = False
        try:
            answer = await self._nth(session, spec, asked, (key, nth), deadline)
            kept = True
            return answer
        except CallEnded:
            kept = True
            raise
        finally:
            if not kept:
                session.give_back(key, nth)

    async def _nth(
        self,
        session: Session,
        spec: ModelSpec,
        asked: Mapping[str, Any],
        place: tuple[str, int],
        deadline: float,
    ) -> GatewayReply:
        own, other = self._recorded(session, place)
        for found in (own, other):
            # of a live call, whose words are not kept, only what needs none can be given again
            if found is not None and found.state == "done" and (found.response or found.fault in _FINAL):
                return await self._serve(session, found)
        if session.grant.mode is Mode.REPLAY:
            raise ModelFailed(
                "not_recorded",
                f"the recording has no call {place[1] + 1} of {place[0][:12]} to '{spec.name}'",
            )
        session.diverged = True
        return await self._ask(self._wanted(session, spec, asked, place, own or other), deadline)

    def _recorded(
        self, session: Session, place: tuple[str, int]
    ) -> tuple[ProviderCall | None, ProviderCall | None]:
        """This very call of the run itself, and of the first recording that has it."""
        grant = session.grant
        own = self._record.find(grant.run_id, *place)
        found = [call for run_id in grant.recordings if (call := self._record.find(run_id, *place))]
        if grant.mode is Mode.REPLAY_THEN_LIVE and session.diverged:
            found = [call for call in found if call.state != "done"]
        return own, next((call for call in found if call.state != "moved"), None)

    async def _serve(self, session: Session, found: ProviderCall) -> GatewayReply:
        call = found
        if found.run_id != session.grant.run_id:
            call = replace(
                found,
                id=new_id("call"),
                run_id=session.grant.run_id,
                evolution_id=session.grant.evolution_id,
                idempotency="",
                usd=0.0 if found.usd is not None else None,
                latency_ms=0.0,
                tries=0,
                served_from=found.served_from or found.id,
                started_at=time.time(),
            )
            await self._record.put(call)
        else:
            call = replace(found, served_from=found.served_from or found.id)
        # A rule counts what the run has cost so far, also where it goes on from a record.
        call = replace(call, usd=self._record.usd(found.served_from) if found.served_from else found.usd)
        if call.fault in _FINAL:
            raise CallEnded(call)
        return GatewayReply(call, self._record.body(call.response))

    def _wanted(
        self,
        session: Session,
        spec: ModelSpec,
        asked: Mapping[str, Any],
        place: tuple[str, int],
        before: ProviderCall | None,
    ) -> _Wanted:
        """The call with its row. One that was sent ``before``, without an answer, is sent again as it was:
        with the same key and the same words, so that a provider knows it and counts it once."""
        own = before is not None and before.run_id == session.grant.run_id
        if before is not None and before.request:
            asked = self._record.request(before)
        elif not own:
            before = None
        request, texts = envelope(asked)
        live = session.grant.mode is Mode.LIVE
        usage = Usage(tokens_of(len(request) + texts.size), output_limit(asked), estimated=True)
        call = ProviderCall(
            id=before.id if before and own else new_id("call"),
            run_id=session.grant.run_id,
            evolution_id=session.grant.evolution_id,
            key=place[0],
            nth=place[1],
            idempotency=before.idempotency if before else secrets.token_hex(16),
            state="intent",
            model=spec.name,
            answered_by="",
            request="" if live else request,
            response="",
            input_tokens=usage.input,
            output_tokens=usage.output,
            estimated=1,
            usd=_dearest(spec, usage),
            latency_ms=0.0,
            tries=before.tries if before else 0,
            fault="",
            message="",
            served_from="",
            started_at=time.time(),
        )
        return _Wanted(session, spec, asked, call, None if live else texts, before)

    async def _ask(self, wanted: _Wanted, deadline: float) -> GatewayReply:
        self._refuse_hopeless(wanted, deadline - time.monotonic())
        hold = reserve(self._accounts_for(wanted), _spent(wanted.call))
        call: ProviderCall | None = None
        body = b""
        try:
            await self._room_before(deadline)
            try:
                await self._record.put(wanted.call, wanted.texts, moved=wanted.moved)
                call = wanted.call
                call, body = await self._sent(wanted, deadline)
                texts = Bodies(others=((call.response, body),)) if call.response else None
                await self._record.put(call, texts)
            finally:
                self._room.release()
        finally:
            hold.settle(_spent(call) if call else None)
        if call.state == "failed":
            raise CallUnanswered(call)
        if call.fault in _FINAL:
            raise CallEnded(call)
        return GatewayReply(call, body)

    def _refuse_hopeless(self, wanted: _Wanted, left_s: float) -> None:
        """Raises ModelFailed("slow") for what a server of one's own cannot answer in time: it is not sent or paid."""
        spec, size = wanted.spec, wanted.call.input_tokens
        if spec.fallbacks or not self._providers.arguments(spec).get("api_base"):
            return
        if self._record.speed(spec.name, time.time() - FRESH_S).hopeless(size, left_s):
            raise ModelFailed(
                "slow",
                f"{spec.model} was not asked: by its last calls it cannot answer about {size:,} tokens in "
                f"{left_s:.0f} s; give the run more time (limits: wall_s), the agent fewer tools, or take a faster model",
            )

    async def _room_before(self, deadline: float) -> None:
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                await self._room.acquire()
        except TimeoutError:
            raise ModelFailed("timeout", "other model calls took all the time (see model_calls)") from None

    def _accounts_for(self, wanted: _Wanted) -> list[tuple[BudgetAccount, CallTotals]]:
        """The accounts that the call is for, and what each has booked for it already."""
        today = self._day()
        before = wanted.before
        if before is None or before.state == "moved":
            return [(account, CallTotals()) for account in (*wanted.session.accounts, today)]
        run, *others = wanted.session.accounts
        is_of_today = datetime.fromtimestamp(before.started_at, UTC).date() == datetime.now(UTC).date()
        same_evolution = before.evolution_id == wanted.call.evolution_id
        booked = _spent(before)
        return [
            (run, booked if wanted.session.grant.goes_on or not wanted.moved else CallTotals()),
            *((account, booked if same_evolution else CallTotals()) for account in others),
            (today, booked if is_of_today else CallTotals()),
        ]

    async def _sent(self, wanted: _Wanted, deadline: float) -> tuple[ProviderCall, bytes]:
        """The call as it ended, in whatever way, and the reply as bytes."""
        began, tally = time.monotonic(), AttemptTally(wanted.call.tries)
        try:
            call = ModelCall(wanted.asked, wanted.call.idempotency, deadline, tally)
            ended, body = self._ended(wanted, await ask(wanted.spec, call, self._providers))
            ended = _with_late(ended, wanted.call, tally.given_up)
        except ModelFailed as error:
            ended, body = self._failed(wanted.call, error, uncertain=tally.uncertain), b""
        # the call may be paid: without an end on record it would be paid again and again
        except Exception as bug:
            log.exception("a bug of ours over the call %s", wanted.call.id)
            told = ModelFailed(
                "internal", f"a bug of the gateway ({type(bug).__name__}); see logs/gateway.log"
            )
            ended, body = self._failed(wanted.call, told, uncertain=True), b""
        return replace(ended, latency_ms=(time.monotonic() - began) * 1e3, tries=tally.tries), body

    def _failed(self, call: ProviderCall, error: ModelFailed, *, uncertain: bool) -> ProviderCall:
        """``uncertain``: a provider may have counted it, so its estimate stays booked."""
        return replace(
            call,
            state="done" if error.kind in _FINAL else "failed",
            fault=error.kind,
            message=_plain(self.redactor.text(str(error))),
            input_tokens=call.input_tokens if uncertain else 0,
            output_tokens=call.output_tokens if uncertain else 0,
            usd=call.usd if uncertain or call.usd is None else 0.0,
        )

    def _ended(self, wanted: _Wanted, answered: Completion) -> tuple[ProviderCall, bytes]:
        usage = usage_of(answered.body, wanted.call.input_tokens)
        reply = self.redactor.value(with_usage(answered.body, usage))
        found = finding_of(reply, wanted.asked)
        sha256, body = body_of(reply)
        call = replace(
            wanted.call,
            state="done",
            answered_by=answered.spec.name,
            response="" if wanted.texts is None else sha256,
            input_tokens=usage.input,
            output_tokens=usage.output,
            estimated=int(usage.estimated),
            usd=_cost(answered, usage),
            fault=found.fault,
            message=_plain(found.message),
        )
        return call, body


def _plain(text: str) -> str:
    """As it can be stored: a provider's words may hold half of a surrogate pair."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _with_late(ended: ProviderCall, estimate: ProviderCall, models: int) -> ProviderCall:
    """With what so many models may charge that were too late: as of a call that none answered."""
    if not models:
        return ended
    return replace(
        ended,
        input_tokens=ended.input_tokens + models * estimate.input_tokens,
        output_tokens=ended.output_tokens + models * estimate.output_tokens,
        estimated=1,
        usd=None if ended.usd is None else ended.usd + models * (estimate.usd or 0.0),
    )


def _spent(call: ProviderCall) -> CallTotals:
    return CallTotals(1, call.input_tokens + call.output_tokens, call.usd or 0.0, call.latency_ms / 1e3)


def _dearest(spec: ModelSpec, usage: Usage) -> float | None:
    """What it costs at most, whichever of the model and its fallbacks answers; None where no price is known."""
    known = [usd for one in (spec, *spec.fallbacks) if (usd := _usd(one, usage)) is not None]
    return max(known, default=None)


def _cost(answered: Completion, usage: Usage) -> float | None:
    """By litellm's count where the price is of its list, as it knows more of caches and long requests: but it counts with
    whatever numbers the provider gave."""
    own = _usd(answered.spec, usage)
    if own is None or answered.usd is None or answered.spec.price is not None or usage.estimated:
        return own
    return answered.usd if 0 <= answered.usd <= _DEARER * own else own


def _usd(spec: ModelSpec, usage: Usage) -> float | None:
    """By the resource's price, else by the list's; None where neither knows."""
    price: Price | None = spec.price or listed_price(spec.model)
    if price is None:
        return None
    cached = price.input if price.cached is None else price.cached
    fresh = usage.input - usage.cached
    return (fresh * price.input + usage.cached * cached + usage.output * price.output) / 1e6
