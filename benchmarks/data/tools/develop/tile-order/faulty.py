"""Tiles for rooms."""

from math import ceil

from pydantic import BaseModel, Field

TOOL = {
    "name": "tile_order",
    "description": "How many tiles each rectangular room needs (all in mm; rows along its length and width, a cut tile counts as a whole one, offcuts are thrown away), and the order with so many percent to spare, rounded up",
    "effects": ["pure"],
    "dependencies": [],
}


class Room(BaseModel):
    name: str
    length: int = Field(gt=0)
    width: int = Field(gt=0)


class Input(BaseModel):
    rooms: list[Room]
    tile: tuple[int, int] = Field(description="Of a tile the side along the length and the other")
    spare: int = Field(10, ge=0, description="Percent")


class Output(BaseModel):
    tiles: dict[str, int]
    order: int
    square_metres: float


def needed(room: Room, tile: tuple[int, int]) -> int:
    along, across = tile
    return ceil(room.length * room.width / (along * across))


def run(input: Input) -> Output:
    tiles = {room.name: needed(room, input.tile) for room in input.rooms}
    total = sum(tiles.values())
    area = sum(room.length * room.width for room in input.rooms)
    return Output(
        tiles=tiles,
        order=-(-total * (100 + input.spare) // 100),
        square_metres=round(area / 1_000_000, 2),
    )
