"""Sizes of sound files."""

from itertools import accumulate

from pydantic import BaseModel

TOOL = {
    "name": "track_sizes",
    "description": "Size of each track in kB (given, or from kbit/s and seconds, rounded up), the whole, and how many tracks from the first on fit into some MB (1000 kB each)",
    "effects": ["pure"],
    "dependencies": [],
}


class Track(BaseModel):
    name: str
    seconds: int
    kbps: int | None = None
    size_kb: int | None = None

    def size(self) -> int:
        """In kB, rounded up."""
        if self.size_kb is not None:
            return self.size_kb
        if self.kbps is None:
            raise ValueError(f"{self.name} has neither a size nor a bit rate")
        return -(-self.kbps * self.seconds // 8)


class Input(BaseModel):
    tracks: list[Track]
    limit_mb: int


class Output(BaseModel):
    sizes: list[int]
    total_kb: int
    fitting: int


def run(input: Input) -> Output:
    sizes = [track.size() for track in input.tracks]
    fitting = sum(so_far <= input.limit_mb * 1000 for so_far in accumulate(sizes))
    return Output(sizes=sizes, total_kb=sum(sizes), fitting=fitting)
