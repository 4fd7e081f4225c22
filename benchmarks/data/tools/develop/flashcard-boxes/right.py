"""Flash cards in boxes, by the method of Leitner."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "flashcard_boxes",
    "description": "Moves flash cards between five boxes after a round of answers and says when each comes next",
    "effects": ["read"],
    "dependencies": [],
}

DAYS = {1: 1, 2: 2, 3: 5, 4: 12, 5: 30}


class Input(BaseModel):
    deck: str = Field(description="Lines of a card and its box, with a tab between them")
    answers: str = Field(description="Lines of a card and y or n, in the order of the round")
    day: int = Field(description="Number of today")


class Output(BaseModel):
    boxes: dict[str, int]
    due: dict[str, int] = Field(description="The day on which each answered card comes next")
    known: int
    unknown: list[str] = Field(description="Answers about cards that are not in the deck")


def read_deck(path: str) -> dict[str, int]:
    boxes = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            card, box = line.split("\t")
            boxes[card] = int(box)
    return boxes


def run(input: Input) -> Output:
    boxes = read_deck(input.deck)
    due: dict[str, int] = {}
    unknown: list[str] = []
    known = 0
    for line in Path(input.answers).read_text(encoding="utf-8").splitlines():
        card, _, said = line.strip().rpartition(" ")
        if card not in boxes:
            if card:
                unknown.append(card)
            continue
        if said == "y":
            known += 1
            boxes[card] = min(boxes[card] + 1, max(DAYS))
        else:
            boxes[card] = 1
        due[card] = input.day + DAYS[boxes[card]]
    return Output(boxes=boxes, due=due, known=known, unknown=unknown)
