"""File systems that run full."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "df_mounts",
    "description": "File systems that run full, from the output of df -P",
    "effects": ["read"],
    "dependencies": [],
}

PSEUDO = {"tmpfs", "devtmpfs", "udev", "overlay"}


class Input(BaseModel):
    path: str = Field(description="Output of df -P: a header, then one file system a line")
    limit: int = Field(90, description="Percent from which one is nearly full")


class Output(BaseModel):
    used: dict[str, int]
    full: list[str]
    to_free: dict[str, int]


@dataclass
class Mount:
    device: str
    blocks: int
    used: int
    place: str

    @property
    def percent(self) -> int:
        """Rounded up, as df does."""
        return -(-self.used * 100 // self.blocks) if self.blocks else 0


def mounts(text: str) -> list[Mount]:
    found = []
    for line in text.splitlines()[1:]:
        if not line.strip():
            continue
        fields = line.split(None, 5)
        found.append(Mount(fields[0], int(fields[1]), int(fields[2]), fields[5]))
    return found


def run(input: Input) -> Output:
    used: dict[str, int] = {}
    to_free: dict[str, int] = {}
    for mount in mounts(Path(input.path).read_text(encoding="utf-8")):
        if mount.device in PSEUDO:
            continue
        used[mount.place] = mount.percent
        if mount.percent >= input.limit:
            to_free[mount.place] = mount.used - mount.blocks * input.limit // 100
    full = sorted(to_free, key=lambda place: (-used[place], place))
    return Output(used=used, full=full, to_free=to_free)
