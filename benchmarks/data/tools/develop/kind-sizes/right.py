"""What kinds of files take the space."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "kind_sizes",
    "description": "How many files of each kind a list of sizes and paths has and how many bytes they take, the largest kind first; the kind is the ending of the name in small letters, and a name without one (Makefile, .profile) is of the kind (none)",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Kind(BaseModel):
    ending: str
    files: int
    size: int


class Output(BaseModel):
    kinds: list[Kind]
    total: int
    empty: list[str]


def run(input: Input) -> Output:
    """Lines as du writes them: bytes, a tabulator, path. Of kinds of one size the order is that of the alphabet."""
    sizes: dict[str, list[int]] = {}
    empty = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line:
            continue
        size, path = line.split("\t", 1)
        ending = Path(path).suffix.lower() or "(none)"
        sizes.setdefault(ending, []).append(int(size))
        if int(size) == 0:
            empty.append(path)
    kinds = [Kind(ending=ending, files=len(known), size=sum(known)) for ending, known in sizes.items()]
    kinds.sort(key=lambda kind: (-kind.size, kind.ending))
    return Output(kinds=kinds, total=sum(kind.size for kind in kinds), empty=empty)
