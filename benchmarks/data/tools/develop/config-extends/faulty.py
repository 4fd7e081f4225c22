"""A section with what it extends."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "config_extends",
    "description": "The settings of a section of a file of settings together with those of the section that it extends, and of the one which that extends, and so on; the nearer section counts",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    section: str


class Output(BaseModel):
    settings: dict[str, str]
    chain: list[str]
    own: int


def read_sections(path: str) -> dict[str, dict[str, str]]:
    sections: dict[str, dict[str, str]] = {}
    current: dict[str, str] = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        line = line.split(";")[0].strip()
        if line.startswith("[") and line.endswith("]"):
            current = sections.setdefault(line[1:-1].strip(), {})
        elif "=" in line:
            name, value = line.split("=", 1)
            current[name.strip()] = value.strip()
    return sections


def run(input: Input) -> Output:
    """Settings by name; a section that is not there is empty, and a circle of sections ends where it closes."""
    sections = read_sections(input.path)
    chain = [input.section]
    settings = dict(sections.get(input.section, {}))
    own = len(settings) - ("extends" in settings)
    parent = settings.pop("extends", None)
    if parent is not None and parent not in chain:
        chain.append(parent)
        inherited = dict(sections.get(parent, {}))
        inherited.pop("extends", None)
        settings = inherited | settings
    return Output(settings=dict(sorted(settings.items())), chain=chain, own=own)
