"""Vigenere's cipher."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "vigenere_text",
    "description": "Encipher or decipher a letter with a key word, as Vigenere did",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    key: str = Field(description="Letters; others in it are left out")
    decipher: bool = False


class Output(BaseModel):
    text: str
    letters: int


def shifts(key: str) -> list[int]:
    return [ord(sign) - ord("a") for sign in key.lower() if "a" <= sign <= "z"]


def run(input: Input) -> Output:
    """Letters move by those of the key, and keep their case; all else stays, and uses up no letter of the key."""
    moves = shifts(input.key)
    if not moves:
        raise ValueError("the key has no letters")
    sense = -1 if input.decipher else 1
    done = 0
    out = []
    for place, sign in enumerate(Path(input.path).read_text(encoding="utf-8")):
        low = sign.lower()
        if "a" <= low <= "z":
            move = sense * moves[place % len(moves)]
            new = chr((ord(low) - ord("a") + move) % 26 + ord("a"))
            out.append(new.upper() if sign != low else new)
            done += 1
        else:
            out.append(sign)
    return Output(text="".join(out), letters=done)
