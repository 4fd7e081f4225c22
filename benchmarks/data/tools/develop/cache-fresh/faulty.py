"""How long an answer stays fresh."""

from pydantic import BaseModel

TOOL = {
    "name": "cache_fresh",
    "description": "How many seconds an answer may still be used from a cache, by its Cache-Control header: in a shared cache s-maxage comes before max-age, and both before the time it expires",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    header: str
    expires_in: int | None = None
    age: int = 0
    shared: bool = True


class Output(BaseModel):
    lifetime: int
    left: int
    state: str


def directives(header: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in header.split(","):
        name, _, value = part.partition("=")
        if name.strip():
            found.setdefault(name.strip().lower(), value.strip().strip('"'))
    return found


def run(input: Input) -> Output:
    """No seconds are left of one that may not be stored, or only asked for again."""
    said = directives(input.header)
    names = ("max-age", "s-maxage") if input.shared else ("max-age",)
    lifetime = max(input.expires_in or 0, 0)
    for name in names:
        if said.get(name, "").isdigit():
            lifetime = int(said[name])
            break
    if "no-store" in said or (input.shared and "private" in said):
        return Output(lifetime=0, left=0, state="not stored")
    if "no-cache" in said:
        return Output(lifetime=lifetime, left=0, state="ask again")
    left = max(lifetime - input.age, 0)
    return Output(lifetime=lifetime, left=left, state="fresh" if left else "stale")
