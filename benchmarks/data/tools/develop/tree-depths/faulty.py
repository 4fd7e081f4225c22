"""Distances in a family tree of species."""

import re

from pydantic import BaseModel

TOOL = {
    "name": "tree_depths",
    "description": "Distance of each leaf from the root of a tree in Newick form, such as ((ape:1,bat:2):3,cat:4); where a missing length is 0",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    tree: str


class Output(BaseModel):
    depths: dict[str, float]
    deepest: str | None
    leaves: int


class Reader:
    def __init__(self, text: str) -> None:
        self.words = re.findall(r"[(),;]|[^(),;\s]+", text)
        self.place = 0

    def take(self) -> str:
        self.place += 1
        return self.words[self.place - 1]

    def node(self) -> dict[str, float]:
        """Leaves below a node, by distance from the node above it."""
        leaves: dict[str, float] = {}
        if self.words[self.place] == "(":
            while self.take() in "(,":
                leaves.update(self.node())
        name, _, length = ("" if self.words[self.place] in ",);" else self.take()).partition(":")
        if not leaves:
            return {name: float(length or 0)}
        return leaves


def run(input: Input) -> Output:
    depths = Reader(input.tree.strip().rstrip(";") + ";").node()
    depths.pop("", None)
    deepest = max(sorted(depths), key=depths.__getitem__, default=None)
    return Output(depths=depths, deepest=deepest, leaves=len(depths))
