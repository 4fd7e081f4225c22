"""Ranks the players of a club."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "club_ranking",
    "description": "The table of a club: players by points, the most first, and by name where they have as many; players with as many points share a rank, and the ranks after it are left out (1, 1, 3); and the names of those on the first rank",
    "effects": ["pure"],
    "dependencies": [],
}


class Player(BaseModel):
    name: str
    points: int = Field(ge=0)


class Input(BaseModel):
    players: list[Player]


class Row(BaseModel):
    rank: int
    name: str
    points: int


class Output(BaseModel):
    table: list[Row]
    leaders: list[str]


def run(input: Input) -> Output:
    ordered = sorted(input.players, key=lambda player: (-player.points, player.name))
    table = []
    for player in ordered:
        rank = 1 + sum(other.points > player.points for other in ordered)
        table.append(Row(rank=rank, name=player.name, points=player.points))
    leaders = [row.name for row in table if row.rank == 1]
    return Output(table=table, leaders=leaders)
