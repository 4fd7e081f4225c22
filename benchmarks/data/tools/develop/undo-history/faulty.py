"""A text after undo and redo."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "undo_history",
    "description": "The text that is left after typing, undoing and redoing in an editor",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: + text (typed at the end), - number (signs erased at the end), undo or redo")
    depth: int = Field(10, description="Steps that can be undone")


class Output(BaseModel):
    text: str
    undo: int = Field(description="Steps that can still be undone")
    redo: int


def run(input: Input) -> Output:
    text = ""
    done: list[str] = []
    undone: list[str] = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        command = line.strip()
        if command == "undo":
            if done:
                undone.append(text)
                text = done.pop()
        elif command == "redo":
            if undone:
                done.append(text)
                text = undone.pop()
        elif command[:1] in ("+", "-"):
            done.append(text)
            del done[: max(0, len(done) - input.depth)]
            if command[0] == "+":
                text += command[1:].strip()
            else:
                text = text[: max(0, len(text) - int(command[1:]))]
    return Output(text=text, undo=len(done), redo=len(undone))
