"""Returns what is not its schema."""

from pydantic import BaseModel

TOOL = {
    "name": "liar",
    "description": "Returns what is not its schema.",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    n: int = 0


class Output(BaseModel):
    n: int


def run(input: Input) -> Output:
    return {"m": "no number"}  # type: ignore[return-value]
