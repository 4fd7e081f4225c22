"""Lists the functions of a Python file that are long."""

import ast
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "long_functions",
    "description": "Functions with at least so many lines in a Python file, longest first",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    source: str
    lines: int


class Output(BaseModel):
    functions: int
    long: list[str]


def length(node: ast.AST) -> int:
    """Lines from the first to the last, both included."""
    return node.end_lineno - node.lineno


def run(input: Input) -> Output:
    tree = ast.parse(Path(input.source).read_text(encoding="utf-8"))
    functions = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    found = [node for node in functions if length(node) >= input.lines]
    found.sort(key=lambda node: (-length(node), node.name))
    return Output(functions=len(functions), long=[node.name for node in found])
