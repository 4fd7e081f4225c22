"""The default agent loop, as a LangGraph graph.

    route ─┬─ call ── act ── observe ─┬─ verify ── finish
           └─ think ──────────────────┴────────────┘

Each node records one step and names the node that follows; there are no routers, because an
exception in a router would end the graph in silence. ``sdk`` is agentos.worker.sdk.Sdk.
"""

from __future__ import annotations

from typing import Literal, TypedDict

import hooks
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from turn import Turn

from agentos.worker.sdk import Sdk, fault


class State(TypedDict):
    """Only where the run stands: graph state is copied at every step, so nothing large is in it."""

    turn: int


class Loop:
    """The nodes of one run."""

    def __init__(self, sdk: Sdk) -> None:
        self.sdk = sdk
        self.turn = Turn()

    def route(self, state: State) -> Command[Literal["call", "think"]]:
        """A task that names its tool needs no thought."""
        goto: Literal["call", "think"] = "call" if self.sdk.task.call else "think"
        self.sdk.step("route", {"goal": self.sdk.task.goal[:500]}, {"goto": goto})
        return Command(goto=goto, update={"turn": state["turn"] + 1})

    def call(self, state: State) -> Command[Literal["act"]]:
        """Take over the tool and the arguments that the task names."""
        asked = self.sdk.task.call
        assert asked is not None
        self.turn.tool, self.turn.args = asked.tool, dict(asked.args)
        self.sdk.step("call", {"tool": asked.tool})
        return Command(goto="act")

    def think(self, state: State) -> Command[Literal["finish"]]:
        """Decide what to do with a model; there is none yet."""
        why = "no model is configured: give the task a call, or set a model"
        self.turn.fault = fault("no_model", why)
        self.sdk.step("think", {"goal": self.sdk.task.goal[:500]}, None, self.turn.fault)
        return Command(goto="finish")

    def act(self, state: State) -> Command[Literal["observe"]]:
        """Call the tool; the sdk records this step."""
        for hook in hooks.before_act:
            hook(self.turn)
        self.turn.result = self.sdk.call_tool(self.turn.tool, self.turn.args)
        return Command(goto="observe")

    def observe(self, state: State) -> Command[Literal["verify", "finish"]]:
        """Take what the call gave: an answer, or why there is none."""
        result = self.turn.result
        assert result is not None
        self.turn.answer, self.turn.fault = result.output, result.fault
        for hook in hooks.after_observe:
            hook(self.turn)
        self.sdk.step("observe", None, {"ok": self.turn.fault is None}, self.turn.fault)
        return Command(goto="finish" if self.turn.fault else "verify")

    def verify(self, state: State) -> Command[Literal["finish"]]:
        """An answer that says nothing is none (its schema was checked when the tool returned)."""
        if self.turn.answer in (None, "", [], {}):
            self.turn.fault = fault("empty", f"{self.turn.tool}: the answer is empty")
        self.sdk.step("verify", None, {"ok": self.turn.fault is None}, self.turn.fault)
        return Command(goto="finish")

    def finish(self, state: State) -> None:
        """End the run with the answer, or with why there is none."""
        for hook in hooks.on_finish:
            hook(self.turn)
        if self.turn.fault is not None:
            self.sdk.fail(self.turn.fault)
        else:
            self.sdk.finish(self.turn.answer)
        self.sdk.step("finish", None, {"ok": self.turn.fault is None})


def run(sdk: Sdk) -> None:
    """What the worker calls, once for each run."""
    loop = Loop(sdk)
    graph = StateGraph(State)
    for node in (loop.route, loop.call, loop.think, loop.act, loop.observe, loop.verify):
        graph.add_node(node.__name__, node)
    graph.add_node("finish", loop.finish)
    graph.add_edge(START, "route")
    graph.add_edge("finish", END)
    graph.compile().invoke({"turn": 0}, {"recursion_limit": sdk.task.max_steps + 2})
