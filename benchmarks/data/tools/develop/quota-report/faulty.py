"""Who uses more than the quota."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "quota_report",
    "description": "Who uses more than the quota, from sizes such as 900K, 1.5M or 2G (of 1024 each) or plain numbers of bytes, and how much all use together",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    quota: str


class Output(BaseModel):
    over: list[str]
    total: str
    free: int


UNITS = {"K": 1024, "M": 1024**2, "G": 1024**3}


def size(text: str) -> int:
    """In bytes."""
    text = text.upper()
    return int(float(text[:-1]) * UNITS[text[-1]])


def short(count: int) -> str:
    """With the largest unit of which there is one at least, and one place."""
    for unit in ("G", "M", "K"):
        if count >= UNITS[unit]:
            return f"{count / UNITS[unit]:.1f}{unit}"
    return str(count)


def run(input: Input) -> Output:
    """Lines: user, size. The largest users first; free is what those below the quota have left of it together."""
    quota = size(input.quota)
    used = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            user, text = line.split()
            used[user] = size(text)
    over = sorted((user for user in used if used[user] > quota), key=lambda user: (-used[user], user))
    free = sum(max(quota - count, 0) for count in used.values())
    return Output(over=over, total=short(sum(used.values())), free=free)
