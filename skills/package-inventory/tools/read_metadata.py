"""What the METADATA file of an installed distribution says."""

from email.parser import HeaderParser
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "read_metadata",
    "description": "Read name, version, summary and requirements from a distribution's METADATA file",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The METADATA file, in the workspace")


class Output(BaseModel):
    name: str
    version: str
    summary: str
    license: str = Field(description='License-Expression, else License, else ""')
    requires_python: str
    requires: list[str] = Field(description="Requirements without an extra, as written")
    extras: list[str]


def run(input: Input) -> Output:
    """Headers are those of a mail, in UTF-8; the description after them is left out."""
    headers = HeaderParser().parsestr(Path(input.path).read_text(encoding="utf-8"))
    for needed in ("Metadata-Version", "Name", "Version"):
        if not headers[needed]:
            raise ValueError(f"{input.path} is no METADATA file: it has no {needed}")
    return Output(
        name=headers["Name"],
        version=headers["Version"],
        summary=headers.get("Summary", ""),
        license=headers.get("License-Expression") or first_line(headers.get("License", "")),
        requires_python=headers.get("Requires-Python", ""),
        requires=[line for line in headers.get_all("Requires-Dist", []) if not for_extra(line)],
        extras=sorted(headers.get_all("Provides-Extra", [])),
    )


def for_extra(requirement: str) -> bool:
    """Whether the requirement holds only when an extra was asked for."""
    _, _, marker = requirement.partition(";")
    return "extra" in marker.replace("(", " ").replace("=", " ").split()


def first_line(text: str) -> str:
    """Some distributions put the whole licence there."""
    return text.strip().split("\n")[0]
