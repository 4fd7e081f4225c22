"""Hex dumps as debuggers print them."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "hex_dump",
    "description": "A hex dump of a text's UTF-8 bytes, a row for each so many: the offset in four hex digits, the bytes padded to the length of a full row, and the bytes as ASCII with a dot for what is not printable, two spaces apart",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    text: str
    width: int = Field(16, ge=1, le=64, description="Bytes in a row")


class Output(BaseModel):
    rows: list[str]
    size: int
    unprintable: int


def letter(byte: int) -> str:
    return chr(byte) if 32 <= byte < 127 else "."


def run(input: Input) -> Output:
    raw = input.text.encode()
    full = 3 * input.width - 1
    rows = []
    for offset in range(0, len(raw), input.width):
        part = raw[offset : offset + input.width]
        numbers = " ".join(f"{byte:02x}" for byte in part)
        rows.append(f"{offset:04x}  {numbers:<{full}}  {''.join(map(letter, part))}")
    return Output(
        rows=rows,
        size=len(raw),
        unprintable=sum(not 32 <= byte < 127 for byte in raw),
    )
