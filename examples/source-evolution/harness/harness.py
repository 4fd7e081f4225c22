"""The default agent loop, as a LangGraph graph.

    route ─┬─ call ── act ── observe ─── verify ── finish       a task that names its tool
           └─ think ⇄ act ⇄ observe ─┬─ verify ── finish        any other (thinking.py)
                └────────────────────┘

Each node records what it did and names the node that follows; there are no routers, because an
exception in a router would end the graph in silence. ``sdk`` is agentos.worker.sdk.Sdk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import batches
import hooks
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from turn_state import Node, State, Turn

from agentos.worker.sdk import Sdk, fault


class Agent(Protocol):
    """What a run is driven by: its nodes, the first one first, the last one last."""

    def nodes(self) -> Sequence[Node]:
        """The nodes of the graph; all but the last say where it goes on."""
        ...


class Loop:
    """The nodes of a run whose task names the tool."""

    def __init__(self, sdk: Sdk) -> None:
        self.sdk = sdk
        self.turn = Turn()

    def nodes(self) -> Sequence[Node]:
        """See Agent."""
        return (self.route, self.call, self.act, self.observe, self.verify, self.finish)

    def route(self, state: State) -> Command[Literal["call"]]:
        """A task that names its tool needs no thought."""
        self.sdk.step("route", {"goal": self.sdk.task.goal[:500]}, {"goto": "call"})
        return Command(goto="call", update={"turn": state["turn"] + 1})

    def call(self, state: State) -> Command[Literal["act"]]:
        """Take over the tool and the arguments that the task names."""
        asked = self.sdk.task.call
        assert asked is not None
        self.turn.tool, self.turn.args = asked.tool, dict(asked.args)
        self.sdk.step("call", {"tool": asked.tool})
        return Command(goto="act")

    def act(self, state: State) -> Command[Literal["observe"]]:
        """Call the tool, once for each file that is named; the sdk records these steps."""
        for hook in hooks.before_act:
            hook(self.turn)
        self.turn.result = batches.call(self.sdk, self.turn.tool, self.turn.args)
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
    agent: Agent = Loop(sdk) if sdk.task.call else _thinker(sdk)
    nodes = agent.nodes()
    graph = StateGraph(State)
    for node in nodes:
        graph.add_node(node.__name__, node)
    graph.add_edge(START, nodes[0].__name__)
    graph.add_edge(nodes[-1].__name__, END)
    # Every node records a step or follows one that did, so the steps run out before this does.
    graph.compile().invoke({"turn": 0}, {"recursion_limit": 3 * sdk.task.max_steps + 10})


def _thinker(sdk: Sdk) -> Agent:
    """Imported only here: a task that names its tool need not wait for it."""
    from thinking import Thinker

    return Thinker(sdk)
