"""What a check may say, and how an answer is held against it.

Read on the host (a task file is refused there when a check breaks its rules) and inside the grader
sandbox (where the answer is judged). So it imports only the standard library and pydantic, and
jsonschema where a schema is really used. Nothing here starts a process or runs foreign code:
``command`` and ``python`` are carried out by ``agentos/worker/jobs/grading.py``.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

FILE_MAX = 64 << 20
DETAIL_MAX = 2_000  # characters of why a check fails, as it is stored
COMPARED_MAX = 32 << 10  # bytes of JSON, of a check and an answer together, that ``compared`` takes
_SHOWN = 300  # characters of a value in a sentence


# --- parameters -------------------------------------------------------------------------------


def _is_pattern(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"is not a regular expression ({error})") from None
    return text


def _is_schema(schema: dict[str, Any]) -> dict[str, Any]:
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"is not a JSON schema ({error.message[:_SHOWN]})") from None
    return schema


def _is_python(code: str) -> str:
    try:
        compile(code, "<check>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"does not compile ({error})") from None
    return code


def _is_inside(path: str) -> str:
    pure = PurePosixPath(path)
    if not path or pure.is_absolute() or ".." in pure.parts or "\0" in path:
        raise ValueError("must be a relative path inside the workspace")
    return path


class Spec(BaseModel):
    """A check's parameters. ``made_by`` names what the kernel made it of, where no person wrote it as it is.

    ``feedback-…`` is a person's word on a run, ``skill/NAME`` a skill that ships it, ``invariant`` what held in
    all good runs and a person accepted.
    """

    model_config = ConfigDict(extra="forbid")

    made_by: str = Field("", max_length=200)


class _OnAnswer(Spec):
    """``path`` leads to a part of the answer, dotted: ``rows.0.name``; without it, the whole."""

    path: str | None = None


class Equals(_OnAnswer):
    """The same JSON value; numbers may differ by ``tolerance``."""

    value: Any
    tolerance: float = Field(0.0, ge=0)


class Contains(_OnAnswer):
    """A part of a text, an element or sub-list of a list, or some of an object's entries.

    A text is looked for in a number as it is written: an agent's answer ``12`` is a number.
    """

    value: Any


class Regex(_OnAnswer):
    """A match anywhere in the text (in the JSON text, if the value is no text)."""

    pattern: Annotated[str, AfterValidator(_is_pattern)]


class JsonSchema(_OnAnswer):
    """Fits the JSON schema (2020-12); references to other documents are not followed."""

    schema_: Annotated[dict[str, Any], AfterValidator(_is_schema)] = Field(alias="schema")


class File(Spec):
    """A file that the run left in its workspace (new or changed)."""

    path: Annotated[str, AfterValidator(_is_inside)]
    equals: str | None = None
    contains: str | None = None
    sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$")
    exists: bool = True

    @model_validator(mode="after")
    def _absent_has_no_content(self) -> File:
        if not self.exists and (self.equals, self.contains, self.sha256) != (None, None, None):
            raise ValueError("a file that must not exist cannot have content to compare")
        return self


NONCE = "{nonce}"  # in a command's words and expected output: a random text, another each time


class Command(Spec):
    """A program started in the workspace ends with ``exit`` and prints ``stdout_contains`` or ``stdout_equals``.

    All files in the workspace are the run's. One whose program runs them says ``runs_workspace``: its exit
    status is then the word of the code that is judged, so what it prints is held against ``stdout_equals``.
    """

    argv: list[str] = Field(min_length=1)
    exit: int = 0
    stdout_contains: str | None = None
    stdout_equals: str | None = None  # but for white space at the end
    runs_workspace: bool = False

    def with_nonce(self, nonce: str) -> Command:
        """The same with ``{nonce}`` filled in."""
        filled: dict[str, Any] = {"argv": [word.replace(NONCE, nonce) for word in self.argv]}
        for name in ("stdout_contains", "stdout_equals"):
            text = getattr(self, name)
            filled[name] = text and text.replace(NONCE, nonce)
        return self.model_copy(update=filled)

    @model_validator(mode="after")
    def _says_what_comes_out(self) -> Command:
        if not self.argv[0] or any("\0" in word for word in self.argv):
            raise ValueError("argv: name a program, and hold no zero bytes")
        if self.runs_workspace and not (self.stdout_equals or "").strip():
            raise ValueError(
                "with runs_workspace the program's exit status is the judged code's own word: "
                "say in stdout_equals what it has to print"
            )
        return self


class Python(Spec):
    """A snippet that sees ``answer`` and ``workspace`` (a Path) and asserts, or sets ``passed``.

    With ``runs_workspace`` it also gets ``run(argv)`` and ``call(file, function, ...)``, which run files of
    the workspace in processes of their own.
    """

    code: Annotated[str, AfterValidator(_is_python)]
    runs_workspace: bool = False


KINDS: Mapping[str, type[Spec]] = {
    "equals": Equals,
    "contains": Contains,
    "regex": Regex,
    "json_schema": JsonSchema,
    "file": File,
    "command": Command,
    "python": Python,
}


def faults(kind: str, spec: Mapping[str, Any]) -> list[str]:
    """One sentence for each rule that the check breaks; empty when it may be used."""
    if kind not in KINDS:
        return [f"'{kind}' is no kind of check: use one of {', '.join(KINDS)}"]
    try:
        parse(kind, spec)
    except ValidationError as error:
        return [f"{kind}: {sentence}" for sentence in plain_sentences(error)]
    return []


# What pydantic calls a fault -> what is told to whoever wrote the document.
_TOLD = {
    "missing": "it is missing",
    "extra_forbidden": "there is no such key",
    "string_type": "it should be a text",
    "bool_type": "it should be true or false",
    "bool_parsing": "it should be true or false",
    "int_type": "it should be a whole number",
    "int_parsing": "it should be a whole number",
    "int_from_float": "it should be a whole number",
    "float_type": "it should be a number",
    "float_parsing": "it should be a number",
    "finite_number": "it should be a number, not infinity",
    "list_type": "it should be a list",
    "tuple_type": "it should be a list",
    "dict_type": "it should be a mapping of keys to values",
    "model_type": "it should be a mapping of keys to values",
    "literal_error": "it should be {expected}",
    "enum": "it should be {expected}",
    "greater_than": "it should be more than {gt}",
    "greater_than_equal": "it should be at least {ge}",
    "less_than": "it should be less than {lt}",
    "less_than_equal": "it should be at most {le}",
    "string_too_long": "it should have at most {max_length} characters",
    "string_too_short": "it should have at least {min_length} characters",
    "too_long": "it should hold at most {max_length}",
    "too_short": "it should hold at least {min_length}",
    "string_pattern_mismatch": "it should be of the form {pattern}",
}


def told(fault: Mapping[str, Any]) -> str:
    """What is wrong, of one of ``ValidationError.errors()``, in words for a person; of a kind without any, its own."""
    if (words := _TOLD.get(fault["type"])) is not None:
        return words.format(**fault.get("ctx", {}))
    return str(fault["msg"]).removeprefix("Value error, ").replace("Input should be ", "it should be ")


def plain_sentences(error: ValidationError) -> list[str]:
    """What is wrong with a document that a person wrote, ``where: what``."""
    found = [(".".join(map(str, item["loc"])), told(item)) for item in error.errors(include_url=False)]
    return [f"{where}: {what}" if where else what for where, what in found]


def sentences(error: ValidationError) -> list[str]:
    """A pydantic error as plain sentences, ``where: what``: of values in runs, whose failures are known by these words."""
    found = []
    for item in error.errors():
        where = ".".join(str(part) for part in item["loc"])
        found.append(f"{where + ': ' if where else ''}{item['msg'].removeprefix('Value error, ')}")
    return found


# --- judging ----------------------------------------------------------------------------------


def parse(kind: str, spec: Mapping[str, Any]) -> Spec:
    """The parameters, validated; raises KeyError for an unknown kind and ValidationError."""
    return KINDS[kind].model_validate(dict(spec))


def judge(check: Spec, answer: Any, workspace: Path) -> str:
    """Why the answer fails this check; ``""`` when it passes.

    For every kind but ``command`` and ``python``. A pattern or a schema may be slow on purpose:
    the caller sets the time limit.
    """
    try:
        if isinstance(check, _OnAnswer) and check.path is not None:
            answer = _part(answer, check.path)
        return JUDGES[type(check)](check, answer, workspace)
    except _Missing as error:
        return f"the answer has no '{error}'"
    except RecursionError:
        return "the answer is nested too deeply to compare"


def compared(kind: str, spec: Mapping[str, Any], answer: Any) -> str | None:
    """As ``judge``, where any process may do it: within milliseconds, whoever wrote the check and the answer.

    None where a box has to: for every kind that does more than compare two values, for what is large, and for what is
    not plain JSON. ``difference`` takes the length of a value times that of the path to a part; a list that is looked
    for in another takes both lengths, and so always needs a box.
    """
    if kind not in ("equals", "contains"):
        return None
    try:
        text = json.dumps([dict(spec), answer], ensure_ascii=False, allow_nan=False).encode()
        if len(text) > COMPARED_MAX:
            return None
        own, found = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None
    if kind == "contains" and isinstance(own.get("value"), list):
        return None
    return "; ".join(faults(kind, own)) or judge(parse(kind, own), found, Path())


class _Missing(Exception):
    """The dotted path leads nowhere; the text is the path up to the missing part."""


def _part(value: Any, path: str) -> Any:
    walked: list[str] = []
    for key in path.split("."):
        walked.append(key)
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif (number := place_in(value, key)) is not None:
            value = value[number]
        else:
            raise _Missing(".".join(walked))
    return value


def place_in(value: Any, key: str) -> int | None:
    """Which element of a list this part of a path names, from the end where negative; None where it names none."""
    if not isinstance(value, list) or not re.fullmatch(r"-?\d{1,9}", key):
        return None
    return int(key) if -len(value) <= int(key) < len(value) else None


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def difference(expected: Any, found: Any, tolerance: float = 0.0, at: str = "") -> str:
    """The first place where two JSON values differ, as a sentence; ``""`` when they are equal.

    JSON's equality: 1 and 1.0 are the same number, true is not 1.
    """
    place = f"at '{at}': " if at else ""
    if isinstance(expected, dict) and isinstance(found, dict):
        return _difference_of_objects(expected, found, tolerance, at)
    if isinstance(expected, list) and isinstance(found, list):
        for index, (left, right) in enumerate(zip(expected, found, strict=False)):
            if different := difference(left, right, tolerance, f"{at}.{index}".lstrip(".")):
                return different
        if len(expected) != len(found):
            return f"{place}expected {len(expected)} elements, found {len(found)}"
        return ""
    if _same_scalar(expected, found, tolerance):
        return ""
    return f"{place}expected {_shown(expected)}, found {_shown(found)}"


def _difference_of_objects(expected: dict[str, Any], found: dict[str, Any], tolerance: float, at: str) -> str:
    place = f"at '{at}': " if at else ""
    for key, value in expected.items():
        if key not in found:
            return f"{place}expected the key {_shown(key)}, found {_shown(sorted(found))}"
        if different := difference(value, found[key], tolerance, f"{at}.{key}".lstrip(".")):
            return different
    if surplus := sorted(found.keys() - expected.keys()):
        return f"{place}found keys that were not expected: {_shown(surplus)}"
    return ""


def _same_scalar(expected: Any, found: Any, tolerance: float) -> bool:
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    if isinstance(expected, int | float) and isinstance(found, int | float):
        if expected == found:
            return True
        try:
            return math.isfinite(found) and abs(expected - found) <= tolerance
        except OverflowError:
            return False
    return bool(expected == found)


def _equals(check: Equals, answer: Any, _: Path) -> str:
    return difference(check.value, answer, check.tolerance)


def _contains(check: Contains, answer: Any, _: Path) -> str:
    return "" if _holds(answer, check.value) else f"{_shown(check.value)} is not in {_shown(answer)}"


def _holds(whole: Any, part: Any) -> bool:
    if isinstance(whole, str):
        return isinstance(part, str) and part in whole
    if isinstance(whole, dict):
        return isinstance(part, dict) and all(
            key in whole and not difference(value, whole[key]) for key, value in part.items()
        )
    if isinstance(whole, list):
        wanted = part if isinstance(part, list) else [part]
        return any(not difference(part, element) for element in whole) or all(
            any(not difference(value, element) for element in whole) for value in wanted
        )
    if isinstance(whole, int | float) and not isinstance(whole, bool):
        return isinstance(part, str) and part in json.dumps(whole)
    return False


def _regex(check: Regex, answer: Any, _: Path) -> str:
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    return "" if re.search(check.pattern, text) else f"nothing in {_shown(answer)} matches {check.pattern!r}"


def _json_schema(check: JsonSchema, answer: Any, _: Path) -> str:
    from jsonschema import Draft202012Validator
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    # An empty registry: the default one would fetch a remote reference.
    validator = Draft202012Validator(check.schema_, registry=Registry())
    try:
        error = next(iter(validator.iter_errors(answer)), None)
    except Unresolvable as missing:
        return f"the schema refers to {str(missing)[:_SHOWN]}, which is not in it"
    if error is None:
        return ""
    place = f"at '{'.'.join(str(part) for part in error.path)}': " if error.path else ""
    return f"{place}{error.message[:_SHOWN]}"


def _file(check: File, _: Any, workspace: Path) -> str:
    if not check.exists:  # nor a folder of that name: it is there only with files in it
        return f"{check.path} exists and must not" if os.path.lexists(workspace / check.path) else ""
    content = _content(workspace / check.path)
    if content is None:
        return f"{check.path} is not among the files that the run left"
    if check.sha256 is not None and (found := hashlib.sha256(content).hexdigest()) != check.sha256:
        return f"{check.path} has the SHA-256 {found}, expected {check.sha256}"
    text = content.decode("utf-8", "replace")
    if check.equals is not None and text != check.equals:
        return f"{check.path} holds {_shown(text)}, expected {_shown(check.equals)}"
    if check.contains is not None and check.contains not in text:
        return f"{check.path} holds {_shown(text)}, which does not contain {_shown(check.contains)}"
    return ""


def _content(path: Path) -> bytes | None:
    """A regular file's bytes, never through a link and never waiting on a fifo; None otherwise."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    with open(descriptor, "rb") as file:
        return file.read(FILE_MAX)


JUDGES: Mapping[type[Spec], Callable[[Any, Any, Path], str]] = {
    Equals: _equals,
    Contains: _contains,
    Regex: _regex,
    JsonSchema: _json_schema,
    File: _file,
}
