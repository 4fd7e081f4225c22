"""Profiles that build on one another."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "profile_chain",
    "description": "Settings of profiles: each takes over its parent's settings (defined before it), puts its own over them and appends its tags to the parent's",
    "effects": ["pure"],
    "dependencies": [],
}


class Profile(BaseModel):
    name: str
    parent: str | None = None
    set: dict[str, str | list[str]] = Field(default_factory=dict)
    add_tags: list[str] = Field(default_factory=list)


class Input(BaseModel):
    profiles: list[Profile]


class Output(BaseModel):
    settings: dict[str, dict[str, str | list[str]]]
    most_tags: str | None


def merge(parent: dict[str, str | list[str]], profile: Profile) -> dict[str, str | list[str]]:
    settings = {**parent, **profile.set}
    tags = settings.get("tags", [])
    tags += profile.add_tags
    settings["tags"] = tags
    return settings


def run(input: Input) -> Output:
    settings: dict[str, dict[str, str | list[str]]] = {}
    for profile in input.profiles:
        if profile.parent is not None and profile.parent not in settings:
            raise ValueError(f"{profile.name}: no profile {profile.parent}")
        parent = settings[profile.parent] if profile.parent is not None else {}
        settings[profile.name] = merge(parent, profile)
    most = max(settings, key=lambda name: len(settings[name]["tags"]), default=None)
    return Output(settings=settings, most_tags=most)
