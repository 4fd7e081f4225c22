"""Faces of a mesh."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "obj_mesh",
    "description": "The faces of a mesh in Wavefront's OBJ format, by positions from 0; a negative number counts back from the vertex that was defined last before the face",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    faces: list[list[int]]
    triangles: int
    loose: int = Field(description="vertices in no face")


def run(input: Input) -> Output:
    points: list[list[float]] = []
    faces: list[list[int]] = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        words = line.partition("#")[0].split()
        if words[:1] == ["v"]:
            points.append([float(word) for word in words[1:4]])
        elif words[:1] == ["f"]:
            faces.append([int(word.split("/")[0]) - 1 for word in words[1:]])
    used = {corner for face in faces for corner in face}
    return Output(faces=faces, triangles=sum(len(face) - 2 for face in faces), loose=len(points) - len(used))
