"""One element of XML."""

from pydantic import BaseModel

TOOL = {
    "name": "xml_element",
    "description": "Writes one element of XML with its attributes and text; &, <, > are written as entities, and in attributes quotation marks as well",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    tag: str
    attributes: dict[str, str] = {}
    text: str = ""


class Output(BaseModel):
    xml: str
    entities: int


def escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace(">", "&gt;").replace("&", "&amp;")


def run(input: Input) -> Output:
    """An element without text closes itself. Counts how many characters became entities."""
    if not input.tag or not (input.tag[0].isalpha() or input.tag[0] == "_"):
        raise ValueError(f"{input.tag!r} is no name of an element")
    parts = [input.tag]
    entities = sum(input.text.count(mark) for mark in "&<>")
    for name, value in input.attributes.items():
        quoted = escaped(value).replace('"', "&quot;")
        parts.append(f'{name}="{quoted}"')
        entities += sum(value.count(mark) for mark in '&<>"')
    start = " ".join(parts)
    if input.text:
        xml = f"<{start}>{escaped(input.text)}</{input.tag}>"
    else:
        xml = f"<{start}/>"
    return Output(xml=xml, entities=entities)
