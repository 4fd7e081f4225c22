"""Evaluates expressions with + - * / and brackets."""

import re
from fractions import Fraction

from pydantic import BaseModel

TOOL = {
    "name": "small_calculator",
    "description": "Value of an arithmetic expression",
    "effects": ["pure"],
    "dependencies": [],
}

TOKEN = re.compile(r"\s*(\d+|[-+*/()])")


class Input(BaseModel):
    expression: str


class Output(BaseModel):
    exact: str
    value: float


class Parser:
    """Recursive descent: a sum of products of atoms."""

    def __init__(self, text: str) -> None:
        self.tokens = TOKEN.findall(text)
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def total(self) -> Fraction:
        value = self.product()
        while self.peek() in ("+", "-"):
            if self.take() == "+":
                value += self.product()
            else:
                value -= self.product()
        return value

    def product(self) -> Fraction:
        value = self.atom()
        while self.peek() in ("*", "/"):
            if self.take() == "*":
                value *= self.atom()
            else:
                value /= self.atom()
        return value

    def atom(self) -> Fraction:
        token = self.take()
        if token == "(":
            value = self.total()
            if self.take() != ")":
                raise ValueError("a bracket is not closed")
            return value
        return Fraction(token)


def run(input: Input) -> Output:
    parser = Parser(input.expression)
    value = parser.total()
    if parser.peek():
        raise ValueError(f"{parser.peek()!r} was not expected")
    return Output(exact=str(value), value=round(float(value), 6))
