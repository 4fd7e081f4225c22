"""Complexity of a file's functions."""

import ast
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "branch_count",
    "description": "The cyclomatic complexity of each function at the top of a Python file: 1, and 1 more for each if (elif too), for, while, except and conditional expression, and for each and and or that it holds (a and b and c holds two); and the functions with more than a number",
    "effects": ["read"],
    "dependencies": [],
}

BRANCHES = (ast.If, ast.For, ast.While, ast.ExceptHandler, ast.IfExp)


class Input(BaseModel):
    path: str
    most: int = Field(10, ge=1)


class Output(BaseModel):
    functions: dict[str, int]
    complex: list[str]


def complexity(function: ast.FunctionDef) -> int:
    total = 1
    for node in ast.walk(function):
        if isinstance(node, BRANCHES):
            total += 1
        elif isinstance(node, ast.BoolOp):
            total += len(node.values) - 1
    return total


def run(input: Input) -> Output:
    tree = ast.parse(Path(input.path).read_text(encoding="utf-8"))
    functions = {node.name: complexity(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
    return Output(
        functions=functions,
        complex=[name for name, value in functions.items() if value > input.most],
    )
