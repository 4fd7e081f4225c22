"""The nodes of a run that thinks: a model chooses among tools until it answers, or has to stop."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import hooks
from compaction import SUMMARISE, transcript
from context import Context, material_of
from history import Asked, Exchange, Seen
from langgraph.types import Command
from local_tools import LocalTools
from observations import TOLD_MAX, Outputs, clipped, told
from reflection import CIRCLES, Reflection
from replies import answer_of, exchange_of, text_of
from stop_rules import LAST_WORD, STEPS_KEPT, Circles, Nonsense, Spending, loop_fault
from text_calls import FLAGS
from tool_catalog import Entry, ToolCatalog, call_of
from turn_state import Node, State, Turn

from agentos.worker.sdk import Clip, Refused, Sdk, ToolResult, WireFault, fault

STUMBLES_MAX = 2  # unusable replies in a row that are answered with a word of advice
NARROWER_MAX = 3  # times that a request may be made smaller because the provider finds it too long
_ADVICE = {
    "empty": "Your last reply was empty. Call a tool, or give the answer as text.",
    "cut": "Your last reply was cut off because it was too long. Do the same in smaller parts.",
    "malformed": "Your last reply could not be read. Call a tool, or give the answer as text.",
    "call_as_text": "There are no tools. Give the answer itself, as text.",
}


class Thinker:
    """One run. Everything large is kept here and not in the graph's state."""

    def __init__(self, sdk: Sdk) -> None:
        self.sdk = sdk
        self.end = Turn()  # the answer, or why there is none
        self.spending = Spending(sdk.task.max_calls, sdk.task.max_tokens)
        self.circles, self.nonsense, self.reflection = Circles(), Nonsense(), Reflection()
        self.outputs = Outputs()
        self.stumbles = self.narrowed = 0
        self.text = ""  # of the last reply without a call
        self.exchange = Exchange(None)  # that is under way
        self.results: list[Turn] = []  # of its calls, in their order

    def nodes(self) -> Sequence[Node]:
        """See harness.Agent."""
        return (self.route, self.think, self.act, self.observe, self.verify, self.finish)

    def route(self, state: State) -> Command[Literal["think"]]:
        """A task without a call needs thought; what the model will be told is gathered once."""
        self.sdk.step("route", {"goal": self.sdk.task.goal[:500]}, {"goto": "think"})
        if self.sdk.models:
            self.catalog = ToolCatalog(self.sdk)
            self.local_tools = LocalTools(self.sdk, self.catalog, self.outputs)
            by_model = self.sdk.agent.get("compaction") == "model"
            self.context = Context(
                material_of(self.sdk, self.catalog),
                self.sdk.task.goal,
                self.catalog,
                self.outputs,
                self.sdk.models[0].context_tokens,
                self._summary if by_model else None,
            )
        return Command(goto="think", update={"turn": state["turn"] + 1})

    # --- think ----------------------------------------------------------------------------

    def think(self, state: State) -> Command[Literal["think", "act", "verify", "finish"]]:
        """Ask the model what to do next."""
        if not self.sdk.models:
            return self._thought(
                {}, fault("no_model", "no model is set up (agentos model add), and the task has no call")
            )
        why = self.spending.nearly_spent(self.sdk.steps_left)
        request = self.context.request(LAST_WORD.format(why=why) if why else "", self.spending.left)
        about = {name: len(request.get(name, ())) for name in ("messages", "tools")}
        about |= {"compacted": self.context.compacted, **self.context.left_out}
        try:
            body = self.sdk.model(request)
        except Refused as error:
            self.spending.add_unusable()
            return self._stumbled(about, error.fault)
        self.spending.add(body)
        offered = {tool["function"]["name"] for tool in request.get("tools", ())}
        self.exchange = exchange_of(body, self.spending.calls, offered)
        self.text = text_of(self.exchange.message or {})
        if self.exchange.as_text and not offered:
            return self._stumbled(about, fault("call_as_text", f"there are no tools to call, and {FLAGS}"))
        if self.exchange.asked and not why:
            return self._thought(about, goto="act", calls=[asked.name for asked in self.exchange.asked])
        if self.exchange.asked and not self.text.strip():
            return self._thought(about, fault("limit", f"there is no answer, and {why}"))
        if not self.text.strip():
            return self._stumbled(about, fault("empty", "the model gave neither a call nor an answer"))
        return self._thought(about, goto="verify", answered=len(self.text))

    def _thought(
        self,
        about: dict[str, Any],
        why: WireFault | None = None,
        goto: Literal["think", "act", "verify", "finish"] = "finish",
        **seen: Any,
    ) -> Command[Literal["think", "act", "verify", "finish"]]:
        """Record the step. With ``why`` and nowhere else to go, the run has failed."""
        self.sdk.step("think", about, {**seen, "goto": goto}, why)
        if goto == "finish":
            self.end.fault = why
        if goto in ("act", "verify"):
            self.stumbles = 0
        return Command(goto=goto)

    def _stumbled(
        self, about: dict[str, Any], why: WireFault
    ) -> Command[Literal["think", "act", "verify", "finish"]]:
        """No usable reply: make the request smaller, give advice, or give up."""
        if why.type == "context" and self.narrowed < NARROWER_MAX:
            self.narrowed += 1
            self.context.narrow()
            return self._thought(about, why, goto="think")
        if why.type in _ADVICE and self.stumbles < STUMBLES_MAX and self.sdk.steps_left > STEPS_KEPT:
            self.stumbles += 1
            self.context.exchanges.append(Exchange(None, note=_ADVICE[why.type]))
            return self._thought(about, why, goto="think")
        return self._thought(about, why)

    def _summary(self, going: list[Exchange]) -> str:
        """The model's own words about what has to go; "" where it has none, or nothing is left for them."""
        if not self.spending.can_spare:
            return ""
        text = f"The goal: {clipped(self.sdk.task.goal, 2_000)}\n\n"
        text += transcript(going, self.context.budget * 3 // 2)
        messages = [{"role": "system", "content": SUMMARISE}, {"role": "user", "content": text}]
        try:
            body = self.sdk.model({"messages": messages, "max_tokens": self.context.reply_max})
        except Refused:
            self.spending.add_unusable()
            return ""
        self.spending.add(body)
        return text_of(exchange_of(body, self.spending.calls).message or {}).strip()

    # --- act ------------------------------------------------------------------------------

    def act(self, state: State) -> Command[Literal["observe"]]:
        """Make the calls of the reply: the tools first, then whatever asks the kernel."""
        asked = self.exchange.asked
        self.results = [Turn(tool=one.name, args=dict(one.args)) for one in asked]
        room = self.sdk.steps_left - STEPS_KEPT
        tools: list[tuple[Turn, Entry]] = []
        local: list[tuple[Turn, Entry]] = []
        for number, (one, turn) in enumerate(zip(asked, self.results, strict=True)):
            entry = self._entry(one)
            if number >= room:
                turn.fault = fault("not_made", "too few steps are left for this call")
            elif entry is None:
                turn.fault = fault("unknown_tool" if "no tool" in one.wrong else "bad_arguments", one.wrong)
                self.sdk.step("act", {"tool": one.name, "args": one.args}, {"ok": False}, turn.fault)
            else:
                for hook in hooks.before_act:
                    hook(turn)
                (tools if entry.kind in ("tool", "script") else local).append((turn, entry))
        results = self.sdk.call_tools([call_of(entry, turn.args) for turn, entry in tools])
        for (turn, _), result in zip(tools, results, strict=True):
            turn.result = result
        self._run_local(local)
        return Command(goto="observe")

    def _entry(self, asked: Asked) -> Entry | None:
        """What it means in the catalog; ``asked.wrong`` says so when there is no such thing."""
        if asked.name not in self.catalog.entries:
            names = ", ".join(self.catalog.entries)
            asked.wrong = f"there is no tool '{asked.name[:100]}'; there are: {names}"
        return None if asked.wrong else self.catalog.entries[asked.name]

    def _run_local(self, local: list[tuple[Turn, Entry]]) -> None:
        """Other agents work side by side, and everything is recorded in the order of the calls."""
        if not local:
            return
        several = sum(entry.kind == "agent" for _, entry in local)
        with ThreadPoolExecutor(min(8, max(1, several))) as pool:
            under_way = [
                pool.submit(self.local_tools.run, entry, turn.args) if entry.kind == "agent" else None
                for turn, entry in local
            ]
            for (turn, entry), future in zip(local, under_way, strict=True):
                result = future.result() if future else self.local_tools.run(entry, turn.args)
                turn.result = result
                observed = {"ok": True, "output": result.output} if result.ok else {"ok": False}
                self.sdk.step("act", {"tool": entry.name, "args": turn.args}, observed, result.fault)

    # --- observe, verify, finish ----------------------------------------------------------

    def observe(self, state: State) -> Command[Literal["think", "finish"]]:
        """Take what the calls gave, with a word where it shows that the run gets nowhere."""
        most = min(TOLD_MAX, self.context.told_max // max(1, len(self.results)))
        for turn in self.results:
            self.exchange.seen.append(self._seen(turn, most))
        going_round = self.circles.on(self.exchange)
        self.end.fault = self.nonsense.on(self.exchange)
        if going_round == "tell":
            self.exchange.note = CIRCLES
        elif going_round == "stop":
            self.end.fault = self.end.fault or loop_fault(self.exchange)
        self.context.exchanges.append(self.exchange)
        if going_round or self.end.fault is not None:
            self.sdk.step("observe", None, {"circles": going_round}, self.end.fault)
        return Command(goto="finish" if self.end.fault else "think")

    def _seen(self, turn: Turn, most: int) -> Seen:
        if turn.result is None:  # the call was not made
            turn.result = ToolResult(False, None, turn.fault, Clip(), Clip(), 0.0)
        else:
            turn.answer, turn.fault = turn.result.output, turn.result.fault
            for hook in hooks.after_observe:
                hook(turn)
        text = told(turn)
        whole = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        too_long = len(text.encode("utf-8", "replace")) > most
        output = self.outputs.keep(text) if too_long else ""
        note = self.reflection.on(turn.tool, turn.args, ok=turn.fault is None)
        shown = clipped(text, most, output) + (f"\nNote: {note}" if note else "")
        return Seen(turn.fault is None, shown, whole, output)

    def verify(self, state: State) -> Command[Literal["finish"]]:
        """Take the text as the answer that it stands for."""
        self.end.answer = answer_of(self.text)
        self.sdk.step("verify", None, {"ok": True, "kind": type(self.end.answer).__name__})
        return Command(goto="finish")

    def finish(self, state: State) -> None:
        """End the run with the answer, or with why there is none."""
        for hook in hooks.on_finish:
            hook(self.end)
        if self.end.fault is not None:
            self.sdk.fail(self.end.fault)
        else:
            self.sdk.finish(self.end.answer)
        self.sdk.step("finish", None, {"ok": self.end.fault is None})
