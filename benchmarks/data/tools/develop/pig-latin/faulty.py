"""Pig Latin."""

import re

from pydantic import BaseModel

TOOL = {
    "name": "pig_latin",
    "description": "Turns English words into Pig Latin: consonants before the first vowel go to the end, then ay (after a leading vowel: way); y is a vowel but at the start, qu goes as one; a word without any vowel just gets ay",
    "effects": ["pure"],
    "dependencies": [],
}

WORD = re.compile(r"[A-Za-z]+")


class Input(BaseModel):
    text: str


class Output(BaseModel):
    text: str
    words: int
    moved: int


def is_vowel(word: str, place: int) -> bool:
    letter = word[place]
    if letter == "u" and place > 0 and word[place - 1] == "q":
        return False
    return letter in "aeiou" or (letter == "y" and place > 0)


def pig(word: str) -> str:
    """A capital at the start stays at the start."""
    low = word.lower()
    cut = next(place for place in range(len(low)) if is_vowel(low, place))
    turned = low + "way" if cut == 0 else low[cut:] + low[:cut] + "ay"
    return turned.capitalize() if word[0].isupper() else turned


def run(input: Input) -> Output:
    words = WORD.findall(input.text)
    moved = sum(not is_vowel(word.lower(), 0) for word in words)
    return Output(text=WORD.sub(lambda found: pig(found[0]), input.text), words=len(words), moved=moved)
