"""Options of a command line."""

import shlex
from collections.abc import Iterator

from pydantic import BaseModel, Field

TOOL = {
    "name": "cli_options",
    "description": "Options, definitions (-D name=value) and positional arguments of a command line; --name value, --name=value, --no-name, -abc, -- ends options",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    line: str = Field(description="The arguments as a shell would take them")
    valued: list[str] = Field(default=[], description="Long options that take a value")


class Output(BaseModel):
    options: dict[str, str | bool | list[str]]
    defines: dict[str, str]
    positional: list[str]
    error: str = ""


class Parser:
    """Takes the words of a command line one by one."""

    def __init__(self, valued: list[str]) -> None:
        self.valued = valued
        self.options: dict[str, str | bool | list[str]] = {}
        self.defines: dict[str, str] = {}
        self.positional: list[str] = []

    def store(self, name: str, value: str) -> None:
        """A value; an option that comes again gets a list."""
        known = self.options.get(name)
        if isinstance(known, list):
            known.append(value)
        elif isinstance(known, str):
            self.options[name] = [known, value]
        else:
            self.options[name] = value

    def define(self, text: str) -> None:
        name, *value = text.split("=")
        self.defines[name] = value[0] if value else "1"

    def parse(self, words: list[str]) -> None:
        rest = iter(words)
        for word in rest:
            if word == "--":
                self.positional.extend(rest)
            elif word.startswith("--"):
                self.long(word[2:], rest)
            elif word.startswith("-D"):
                self.define(word[2:] or next(rest))
            elif word.startswith("-") and len(word) > 1:
                for letter in word[1:]:
                    self.options[letter] = True
            else:
                self.positional.append(word)

    def long(self, text: str, rest: Iterator[str]) -> None:
        if "=" in text:
            parts = text.split("=")
            self.store(parts[0], parts[1])
        elif text in self.valued:
            self.store(text, next(rest))
        elif text.startswith("no-"):
            self.options[text[3:]] = False
        else:
            self.options[text] = True


def run(input: Input) -> Output:
    parser = Parser(input.valued)
    try:
        parser.parse(shlex.split(input.line))
    except StopIteration:
        return Output(options={}, defines={}, positional=[], error="a value is missing")
    return Output(options=parser.options, defines=parser.defines, positional=parser.positional)
