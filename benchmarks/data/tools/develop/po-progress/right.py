"""How far a translation is."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "po_progress",
    "description": "How many texts of a translation file (.po) are translated, not translated or marked as fuzzy, the share that is done, and the texts that are still to do; a text may run over several lines, the first of which is then empty",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    translated: int
    fuzzy: int
    todo: list[str]
    percent: int


def entry(block: str) -> tuple[str, str, bool]:
    """The original, its translation, and whether that is fuzzy."""
    texts = {"msgid": "", "msgstr": ""}
    key = ""
    fuzzy = False
    for line in block.splitlines():
        if line.startswith("#"):
            fuzzy = fuzzy or (line.startswith("#,") and "fuzzy" in line)
        elif line.startswith('"'):
            texts[key] += line.strip()[1:-1]
        elif line.strip():
            key, _, text = line.partition(" ")
            texts[key] = text.strip()[1:-1]
    return texts["msgid"], texts["msgstr"], fuzzy


def run(input: Input) -> Output:
    """Entries stand apart by empty lines. That of the empty text is the head of the file, and does not count."""
    translated = fuzzies = 0
    todo = []
    for block in Path(input.path).read_text(encoding="utf-8").split("\n\n"):
        original, translation, fuzzy = entry(block)
        if not original:
            continue
        if not translation:
            todo.append(original)
        elif fuzzy:
            fuzzies += 1
        else:
            translated += 1
    texts = translated + fuzzies + len(todo)
    return Output(
        translated=translated,
        fuzzy=fuzzies,
        todo=todo,
        percent=100 * translated // texts if texts else 100,
    )
