"""Does once, in the template that boxes are forked from, what would otherwise be slow in every box.

langgraph and pydantic import and cache much at their first use. Importing this module uses both in
the smallest way; a fork inherits what that has filled.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, TypedDict

import yaml
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

from agentos.worker import toolfile
from agentos.worker.job import QUIET

_TOOL = '''"""Warms up."""
from pydantic import BaseModel, Field
TOOL = {"name": "warm", "description": "warms up", "effects": ["pure"]}
class Input(BaseModel):
    items: list[str] = Field([], description="some")
    limit: int | None = None
class Output(BaseModel):
    found: dict[str, float]
def run(input: Input) -> Output:
    return Output(found={"a": 1.0})
'''


class _State(TypedDict):
    turn: int


def _first(state: _State) -> Command[Any]:
    return Command(goto="last", update={"turn": 1})


def _last(state: _State) -> None:
    return None


def _warm_up() -> None:
    graph = StateGraph(_State)
    graph.add_node("first", _first)
    graph.add_node("last", _last)
    graph.add_edge(START, "first")
    graph.add_edge("last", END)
    graph.compile().invoke({"turn": 0})
    path = "tool/warm/tool.py"
    tool = toolfile.load(_TOOL, path, Path("/nowhere"))
    sys.path.remove("/nowhere/tool/warm")
    toolfile.card(tool, toolfile.declared(_TOOL, path))
    toolfile.call(tool, {"items": ["a"]}, 1000)
    yaml.safe_load("name: front matter of a skill")


_before = dict(os.environ)
os.environ.update(QUIET)
_warm_up()
os.environ.clear()
os.environ.update(_before)  # a box inherits nothing of the template's environment
