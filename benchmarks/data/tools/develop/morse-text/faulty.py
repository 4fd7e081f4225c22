"""Morse code to text."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "morse_text",
    "description": "Decode lines of Morse code, in which a space divides letters and a slash divides words",
    "effects": ["read"],
    "dependencies": [],
}

LETTERS = {
    ".-": "A", "-...": "B", "-.-.": "C", "-..": "D", ".": "E", "..-.": "F", "--.": "G", "....": "H", "..": "I",
    ".---": "J", "-.-": "K", ".-..": "L", "--": "M", "-.": "N", "---": "O", ".--.": "P", "--.-": "Q", ".-.": "R",
    "...": "S", "-": "T", "..-": "U", "...-": "V", ".--": "W", "-..-": "X", "-.--": "Y", "--..": "Z",
}


class Input(BaseModel):
    path: str = Field(description="Lines of Morse code; what no letter has becomes a question mark")


class Output(BaseModel):
    texts: list[str]
    unknown: int


def word(code: str) -> str:
    return "".join(LETTERS[signs] for signs in code.split())


def run(input: Input) -> Output:
    texts = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        words = [word(part) for part in line.split("/")]
        text = " ".join(found for found in words if found)
        if text:
            texts.append(text)
    return Output(texts=texts, unknown=sum(text.count("?") for text in texts))
