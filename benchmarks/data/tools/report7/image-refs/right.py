"""References of container images."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "image_refs",
    "description": "Tags of container images by registry and name, images of each registry, and those that are latest; digests are left out",
    "effects": ["read"],
    "dependencies": [],
}
HUB = "docker.io"


class Input(BaseModel):
    path: str = Field(description="One reference a line; # begins a comment")


class Output(BaseModel):
    tags: dict[str, str]
    registries: dict[str, int]
    floating: list[str]


def parts(reference: str) -> tuple[str, str, str]:
    """Registry, name and tag."""
    reference = reference.partition("@")[0]
    name, colon, tag = reference.rpartition(":")
    if not colon or "/" in tag:
        name, tag = reference, "latest"
    first, slash, rest = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return first, rest, tag
    return HUB, name, tag


def run(input: Input) -> Output:
    tags = {}
    registries: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        reference = line.partition("#")[0].strip()
        if not reference:
            continue
        registry, name, tag = parts(reference)
        tags[f"{registry}/{name}"] = tag
        registries[registry] = registries.get(registry, 0) + 1
    return Output(
        tags=tags,
        registries=registries,
        floating=sorted(name for name, tag in tags.items() if tag == "latest"),
    )
