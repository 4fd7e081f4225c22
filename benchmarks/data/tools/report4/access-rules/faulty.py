"""Who may edit a document."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "access_rules",
    "description": "Who may edit a document: active owners and active editors, but editors only of their own team "
    "and not while it is locked",
    "effects": ["pure"],
    "dependencies": [],
}


class User(BaseModel):
    name: str
    role: str = Field(description="owner, editor or viewer")
    active: bool = True
    teams: list[str] = []


class Document(BaseModel):
    team: str
    locked: bool = False


class Input(BaseModel):
    users: list[User]
    doc: Document


class Output(BaseModel):
    may_edit: list[str]
    may_read: int = Field(description="how many active users there are")


def of_team(user: User, doc: Document) -> bool:
    """Somebody without any team is of every team."""
    return not user.teams or doc.team in user.teams


def may_edit(user: User, doc: Document) -> bool:
    editor = user.role == "editor" and of_team(user, doc) and not doc.locked
    return user.role == "owner" or editor and user.active


def run(input: Input) -> Output:
    allowed = [user.name for user in input.users if may_edit(user, input.doc)]
    return Output(may_edit=sorted(allowed), may_read=sum(user.active for user in input.users))
