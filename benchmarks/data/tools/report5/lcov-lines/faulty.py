"""Line coverage from an LCOV trace."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "lcov_lines",
    "description": "Share of lines that tests ran in each source file of an LCOV trace, and the lines they did not run",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="An LCOV trace: SF, DA:line,count and end_of_record")
    least: float = Field(0.0, description="Name the files with a share below this")


class Output(BaseModel):
    shares: dict[str, float]
    missing: dict[str, str]
    below: list[str]


def ranges(lines: list[int]) -> str:
    """3, 4, 5 and 9 as 3-5,9."""
    parts: list[list[int]] = []
    for line in sorted(lines):
        if parts and parts[-1][1] == line - 1:
            parts[-1][1] = line
        else:
            parts.append([line, line])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def records(text: str) -> dict[str, dict[int, bool]]:
    """Whether each line of each file ran; a file may have several records, one for each test."""
    files: dict[str, dict[int, bool]] = {}
    name = ""
    for entry in text.splitlines():
        key, _, value = entry.strip().partition(":")
        if key == "SF":
            name = value
            files.setdefault(name, {})
        elif key == "DA":
            number, count, *_ = value.split(",")
            line = int(number)
            files[name][line] = files[name].get(line, False) or bool(count)
    return files


def run(input: Input) -> Output:
    shares: dict[str, float] = {}
    missing: dict[str, str] = {}
    for name, lines in records(Path(input.path).read_text(encoding="utf-8")).items():
        ran = sum(lines.values())
        shares[name] = round(ran / len(lines), 3) if lines else 1.0
        idle = [line for line, hit in lines.items() if not hit]
        if idle:
            missing[name] = ranges(idle)
    below = sorted(name for name, share in shares.items() if share < input.least)
    return Output(shares=shares, missing=missing, below=below)
