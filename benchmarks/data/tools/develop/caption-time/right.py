"""Times of the captions of a video."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "caption_time",
    "description": "How many captions a WebVTT file has, the sum of the seconds that each is shown, the longest one's seconds and the last one's end in seconds (three decimals); hours may be left out of a time (01:30.250)",
    "effects": ["read"],
    "dependencies": [],
}

STAMP = r"(?:(\d+):)?(\d\d):(\d\d\.\d+)"
CUE = re.compile(rf"^{STAMP}[ \t]+-->[ \t]+{STAMP}", re.MULTILINE)


class Input(BaseModel):
    path: str


class Output(BaseModel):
    captions: int
    shown: float
    longest: float
    end: float


def seconds(hours: str, minutes: str, rest: str) -> float:
    return int(hours or 0) * 3600 + int(minutes) * 60 + float(rest)


def run(input: Input) -> Output:
    text = Path(input.path).read_text(encoding="utf-8")
    times = [(seconds(*cue[:3]), seconds(*cue[3:])) for cue in CUE.findall(text)]
    lengths = [end - start for start, end in times]
    return Output(
        captions=len(times),
        shown=round(sum(lengths), 3),
        longest=round(max(lengths, default=0), 3),
        end=round(max((end for _, end in times), default=0), 3),
    )
