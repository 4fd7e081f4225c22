"""Does once, in the template that boxes are forked from, what would otherwise be slow in every box.

langgraph and pydantic import and cache much at their first use. Importing this module uses both in
the smallest way; a fork inherits what that has filled.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any, TypedDict

import yaml
from pydantic import BaseModel

from agentos.worker.job import QUIET
from agentos.worker.tools import toolfile


def _put_off(package: str) -> None:
    """Its submodules can be imported; its own file is run when a name is asked of it that it lacks until then."""
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        return
    if spec is None or spec.loader is None or package in sys.modules:
        return
    module = importlib.util.module_from_spec(spec)
    loader = spec.loader

    def load(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        del module.__getattr__
        loader.exec_module(module)
        return getattr(module, name)

    module.__getattr__ = load  # type: ignore[method-assign]
    sys.modules[package] = module
    parent, _, name = package.rpartition(".")
    if parent:
        setattr(sys.modules[parent], name, module)  # as an import does


# A third of what importing langgraph costs: the answers of a service, all of them, of which one is used; the client
# of another; and what draws on a terminal, for a command line that httpx does without where this cannot be imported.
_put_off("langsmith.types")
_put_off("langgraph_sdk")
_COMMAND_LINES = {"httpx._main", "httpx2._main"} - sys.modules.keys()
sys.modules |= dict.fromkeys(_COMMAND_LINES)  # type: ignore[arg-type]
# Nor do its models have to be ready before one is made.
BaseModel.model_config["defer_build"] = True
with contextlib.suppress(ModuleNotFoundError):
    importlib.import_module("langsmith.schemas")
del BaseModel.model_config["defer_build"]
from langgraph.graph import END, START, StateGraph  # noqa: E402
from langgraph.types import Command  # noqa: E402

for _name in _COMMAND_LINES:
    del sys.modules[_name]

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
