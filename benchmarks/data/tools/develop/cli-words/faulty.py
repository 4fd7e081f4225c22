"""Takes a command line apart."""

from pydantic import BaseModel

TOOL = {
    "name": "cli_words",
    "description": "Take the words of a command line apart: --key=value is an option (the later one wins), --flag and -f are flags, all else and everything after -- is a file",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    args: list[str]


class Output(BaseModel):
    options: dict[str, str]
    flags: list[str]
    files: list[str]


def run(input: Input) -> Output:
    options: dict[str, str] = {}
    flags: set[str] = set()
    files: list[str] = []
    words = iter(input.args)
    for word in words:
        if word == "--":
            files.extend(words)
        elif word.startswith("--") and "=" in word:
            key, value = word[2:].rsplit("=", 1)
            options[key] = value
        elif word.startswith("--"):
            flags.add(word[2:])
        elif word.startswith("-") and word != "-":
            flags.update(word[1:])
        else:
            files.append(word)
    return Output(options=options, flags=sorted(flags), files=files)
