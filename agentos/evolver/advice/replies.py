"""What a model answered: findings as JSON, then one block with the edit. Anything else cannot be used."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

M = TypeVar("M", bound=BaseModel)

ANSWER_MAX = 200_000  # characters; what is longer is no small edit
PLACEHOLDERS = frozenset({"what went wrong, in a sentence", "the edit in a few words", "the new line"})
BRACES_MAX = 50  # places at which the JSON object is looked for
_THOUGHTS = re.compile(r"^.*</think(?:ing)?>", re.DOTALL)  # of models that think aloud
# Within a line: over many empty lines it would look at each of them again from every other.
_FENCE = re.compile(r"^[ \t]*(```+|~~~+)[\w.+-]*[ \t\r]*$", re.MULTILINE)


class Unusable(Exception):
    """The answer is no edit; the text says what is wrong with it, for the model that gave it."""


class Declined(Exception):
    """The model sees no edit in this place that would help; the text says why."""


def _line(value: Any) -> Any:
    """On one line, and without what is no text at all: JSON may spell half of a character."""
    return " ".join(value.encode("utf-8", "replace").decode().split()) if isinstance(value, str) else value


Line = Annotated[str, BeforeValidator(_line)]


class ReplyManifest(BaseModel):
    """The manifest as the model writes it; other keys are not looked at."""

    cause: Line = Field(min_length=1, max_length=1_000)
    why_this_layer: Line = Field(min_length=1, max_length=1_000)
    summary: Line = Field(min_length=1, max_length=200)
    predicted_fixes: list[Line] = Field(min_length=1, max_length=100)
    tasks_at_risk: list[Line] = Field(max_length=100)
    name: Line = ""
    description: Line = Field("", max_length=1_000)
    block: str = Field("", max_length=ANSWER_MAX)  # the edit, where all was asked for in one object

    def tasks(self, names: list[str], labels: Mapping[str, str]) -> tuple[str, ...]:
        """The ids of those tasks that it was told of."""
        known = {label.lower(): task_id for label, task_id in labels.items()}
        known |= {task_id: task_id for task_id in labels.values()}
        return tuple(dict.fromkeys(known[name.lower()] for name in names if name.lower() in known))


class NoEdit(BaseModel):
    """What a model answers that has no edit to propose."""

    no_edit: Line = Field(min_length=1, max_length=1_000)


@dataclass(frozen=True, slots=True)
class EditReply:
    """Both parts."""

    findings: ReplyManifest
    block: str


def parse(text: str) -> EditReply:
    """Raises Unusable with the first fault, and Declined."""
    said = spoken(text)
    with suppress(Unusable):
        declined, _ = json_in(said, NoEdit)
        raise Declined(declined.no_edit)
    found, rest = json_in(said, ReplyManifest)
    if found.cause in PLACEHOLDERS or found.summary in PLACEHOLDERS or found.block.strip() in PLACEHOLDERS:
        raise Unusable("it repeats the example; fill in what you found")
    return EditReply(found, _unfenced(found.block) if found.block.strip() else _block(rest))


def _unfenced(block: str) -> str:
    """The text without a fence around all of it."""
    fences = list(_FENCE.finditer(block.strip()))
    whole = len(fences) == 2 and fences[0].start() == 0 and fences[1].end() == len(block.strip())
    return _block(block) if whole else block.strip("\n")


def chosen_number(text: str, most: int) -> int:
    """The first whole number from 1 to ``most`` in the answer; 0 where there is none."""
    numbers = (int(found) for found in re.findall(r"(?<![\d.])\d{1,3}(?!\.?\d)", spoken(text)))
    return next((number for number in numbers if 1 <= number <= most), 0)


def spoken(text: str) -> str:
    """The answer without thoughts that were spoken aloud; raises Unusable when it is endless."""
    if len(text) > ANSWER_MAX:
        raise Unusable(f"it has {len(text)} characters, at most {ANSWER_MAX} are read")
    return _THOUGHTS.sub("", text, count=1).encode("utf-8", "replace").decode()


def json_in(text: str, kind: type[M]) -> tuple[M, str]:
    """The first JSON object of the text as ``kind``, and what follows it; raises Unusable."""
    decoder = json.JSONDecoder(strict=False)  # models write line breaks into texts
    fault = "there is no JSON object in it"
    for found in islice(re.finditer(r"\{", text), BRACES_MAX):
        try:
            value, end = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError) as error:
            fault = f"its JSON object cannot be read ({error})"
            continue
        try:
            return kind.model_validate(value), text[end:]
        except ValidationError as error:
            raise Unusable("; ".join(_faults(error))) from None
    raise Unusable(fault)


def _faults(error: ValidationError) -> list[str]:
    return [f"'{'.'.join(map(str, one['loc']))}': {one['msg']}" for one in error.errors()[:3]]


def _block(rest: str) -> str:
    """What stands between the first and the last fence: a page may have fences of its own."""
    fences = list(_FENCE.finditer(rest))
    if fences and not rest[: fences[0].start()].strip() and len(fences) % 2:
        fences = fences[1:]  # the one that closes the JSON object's own block
    if len(fences) < 2:
        raise Unusable("after the JSON object there is no block between two lines of three backticks")
    inner = rest[fences[0].end() : fences[-1].start()]
    return inner.strip("\n")
