"""What a rule's document may say, and the rule that it makes.

The document is a resource ``rule/NAME`` (resource.toml), or a file ``rules/NAME.toml|yaml`` of a skill.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any, TypeVar

from agentos.errors import Invalid, Unavailable
from agentos.records.candidates import Refusal, RefusalKind
from agentos.records.identity import Json, Kind, dataclass, digest, is_rule_file
from agentos.rules.predicate import Predicate, PredicateFault, compiled

T = TypeVar("T", bound=StrEnum)
DOCUMENT_MAX = 64 << 10  # bytes
RULES_MAX = 200  # of one run
_TEXT_MAX = 1_000  # of a description or an advice
_EXAMPLES_MAX = 50


class RuleTrigger(StrEnum):
    """When a rule is asked."""

    BEFORE_CALL = "before_call"  # of a tool; a call in a black-box agent's model reply counts as one
    AFTER_CALL = "after_call"  # its result is there
    BEFORE_MODEL = "before_model"
    BEFORE_CHANGE = "before_change"  # of what lies outside the box: a request, a memory, work handed over
    BEFORE_ANSWER = "before_answer"


class Enforcement(StrEnum):
    """What is done where a rule's predicate holds, the strongest first."""

    STOP = "stop"
    ASK = "ask"
    REFUSE = "refuse"
    REPLACE = "replace"
    REFLECT = "reflect"


STRENGTH = {act: len(Enforcement) - place for place, act in enumerate(Enforcement)}
_NOT_AT: Mapping[Enforcement, frozenset[RuleTrigger]] = {
    # what has happened, or is the last thing that happens, cannot be done otherwise
    Enforcement.REFUSE: frozenset({RuleTrigger.AFTER_CALL, RuleTrigger.BEFORE_ANSWER}),
    Enforcement.REFLECT: frozenset({RuleTrigger.AFTER_CALL, RuleTrigger.BEFORE_ANSWER}),
    Enforcement.REPLACE: frozenset(RuleTrigger) - {RuleTrigger.BEFORE_CALL},
}
_KEYS = (
    "description",
    "on",
    "when",
    "enforce",
    "advice",
    "replace",
    "on_error",
    "examples",
    "evolvable",
    "name",
)


@dataclass(frozen=True, slots=True)
class RunRule:
    """One rule. ``acts_on_error``: a predicate that cannot be evaluated counts as one that holds."""

    name: str  # rule/NAME, or skill/NAME/rules/FILE
    digest: str
    description: str
    on: RuleTrigger
    when: Predicate
    enforce: Enforcement
    advice: str = ""
    replace: Mapping[str, Json] = field(default_factory=dict)
    acts_on_error: bool = True
    stops: tuple[Mapping[str, Json], ...] = ()  # examples: facts, as ``facts.example_facts`` takes them
    passes: tuple[Mapping[str, Json], ...] = ()


def rule_name(path: str) -> str:
    """What a rule is called in records: its resource, or its file within the skill."""
    return str(PurePosixPath(path).parent if path.startswith(f"{Kind.RULE.value}/") else path)


def read_rule(path: str, content: bytes) -> RunRule:
    """The rule of a document. Raises Invalid with all that is wrong, and Unavailable without the library."""
    return rule_of(rule_name(path), document_of(path, content))


def _from_yaml(path: str, text: str) -> object:
    """Raises Invalid, also for aliases, which may go in circles, and for keys that are given twice."""
    import yaml  # 25 ms, and most rules are TOML

    class Strict(yaml.SafeLoader):
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
                raise yaml.constructor.ConstructorError(None, None, "aliases are not allowed", mark)
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen: set[str] = set()
            for key, _ in node.value:
                if str(key.value) in seen:
                    said = f"the key '{key.value}' is given twice"
                    raise yaml.constructor.ConstructorError(None, None, said, key.start_mark)
                seen.add(str(key.value))
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Strict)  # noqa: S506 - it is a SafeLoader
    except RecursionError:
        raise Invalid(path, ["it is not YAML that can be read: it is nested too deeply"]) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise Invalid(path, [f"it is not YAML{place}: {getattr(error, 'problem', error)}"]) from None
    # a tag whose text is none of its kind (!!bool x, or a date of month 13), a key that is a list
    except (ValueError, LookupError, AttributeError, TypeError) as error:
        raise Invalid(path, [f"it is not YAML that can be read: {error}"]) from None


def document_of(path: str, content: bytes) -> Mapping[str, Any]:
    """The document as it was written. Raises Invalid."""
    if len(content) > DOCUMENT_MAX:
        raise Invalid(path, [f"it has {len(content):,} bytes, a rule has at most {DOCUMENT_MAX:,}"])
    try:
        text = content.decode("utf-8-sig")
        found = _from_yaml(path, text) if path.endswith((".yaml", ".yml")) else tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise Invalid(path, [f"it is not UTF-8 text (byte {error.start})"]) from None
    except (ValueError, RecursionError) as error:
        raise Invalid(path, [f"it is not TOML: {error or 'too deep'}"]) from None
    if not isinstance(found, dict):
        raise Invalid(path, ["it has to be a table with description, on, when and enforce"])
    # YAML 1.1 reads the word on as true
    document = {"on" if key is True else str(key): value for key, value in found.items()}
    _require_json(path, document)
    return document


def _require_json(name: str, document: Mapping[str, Any]) -> None:
    try:
        json.dumps(dict(document), allow_nan=False, sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:  # a date, a set, NaN
        raise Invalid(name, [f"it holds what JSON cannot: {error}; put it in quotes"]) from None


def rule_of(name: str, document: Mapping[str, Any]) -> RunRule:
    """The rule that a document makes. Raises Invalid with every fault."""
    _require_json(name, document)
    faults: list[str] = []
    faults += [_unknown(key) for key in document if key not in _KEYS]
    description = _text(document, "description", faults)
    on = _one_of(RuleTrigger, "on", document.get("on"), faults)
    enforce = _one_of(Enforcement, "enforce", document.get("enforce"), faults)
    when = _predicate(document.get("when"), faults)
    advice = _text(document, "advice", faults) if "advice" in document else ""
    replace = document.get("replace", {})
    if not isinstance(replace, dict):
        faults.append("'replace' must be a table: the argument, and the value that stands for it")
    if on and enforce:
        faults += _combination(on, enforce, advice, replace)
    on_error = _one_of(_OnError, "on_error", document.get("on_error", "act"), faults)
    if enforce is Enforcement.STOP and on_error is _OnError.PASS:
        faults.append("'on_error' is always \"act\" where 'enforce' is \"stop\": leave it out")
    if not isinstance(document.get("evolvable", True), bool):
        faults.append("'evolvable' must be true or false")
    stops, passes = _examples(document.get("examples", {}), faults)
    if faults or on is None or enforce is None or when is None:
        raise Invalid(name, faults)
    return RunRule(
        name=name,
        digest=digest({key: value for key, value in document.items() if key != "name"})[:16],
        description=description,
        on=on,
        when=when,
        enforce=enforce,
        advice=advice,
        replace=replace,
        acts_on_error=on_error is _OnError.ACT,
        stops=stops,
        passes=passes,
    )


class _OnError(StrEnum):
    ACT = "act"
    PASS = "pass"  # noqa: S105 - no secret


def _predicate(source: object, faults: list[str]) -> Predicate | None:
    if not isinstance(source, str) or not source.strip():
        faults.append("'when' must be a predicate, such as: tool == 'shell' && text.contains('mkfs')")
        return None
    try:
        return compiled(source)
    except PredicateFault as error:
        faults.append(f"'when' cannot be used: {error}")
        return None


def _combination(on: RuleTrigger, enforce: Enforcement, advice: str, replace: object) -> list[str]:
    faults = []
    if on in _NOT_AT.get(enforce, ()):
        can = ", ".join(act for act in Enforcement if on not in _NOT_AT.get(act, ()))
        faults.append(f'\'enforce\' = "{enforce}" cannot be done at "{on}"; there: {can}')
    if enforce in (Enforcement.REFUSE, Enforcement.REFLECT) and not advice:
        faults.append(f"'enforce' = \"{enforce}\" needs an 'advice': what the agent is told to do instead")
    if (enforce is Enforcement.REPLACE) != bool(replace):
        faults.append("'replace' goes with 'enforce' = \"replace\", and names at least one argument there")
    return faults


def _text(document: Mapping[str, Any], key: str, faults: list[str]) -> str:
    value = document.get(key)
    if not isinstance(value, str) or not value.strip() or len(value) > _TEXT_MAX:
        faults.append(f"'{key}' must be a text of 1 to {_TEXT_MAX:,} characters")
        return ""
    return value


def _one_of(kind: type[T], key: str, value: object, faults: list[str]) -> T | None:
    if isinstance(value, str) and value in set(kind):
        return kind(value)
    found = "nothing" if value is None else repr(value)[:60]
    faults.append(f"'{key}' must be one of {', '.join(kind)}; found {found}")
    return None


def _unknown(key: str) -> str:
    near = difflib.get_close_matches(key, _KEYS, n=1)
    return f"'{key[:60]}' is no key of a rule" + (f"; did you mean '{near[0]}'?" if near else "")


_Examples = tuple[Mapping[str, Json], ...]


def _examples(value: object, faults: list[str]) -> tuple[_Examples, _Examples]:
    if not isinstance(value, dict) or not set(value) <= {"stops", "passes"}:
        faults.append("'examples' must hold the lists 'stops' and 'passes'")
        return (), ()
    found: list[_Examples] = []
    for key in ("stops", "passes"):
        items = value.get(key, [])
        if (
            not isinstance(items, list)
            or len(items) > _EXAMPLES_MAX
            or not all(isinstance(one, dict) for one in items)
        ):
            faults.append(f"'examples.{key}' must be a list of at most {_EXAMPLES_MAX} tables of facts")
            items = []
        found.append(tuple(items))
    return found[0], found[1]


# --- Whether an edit weakens a rule. Evolutions may propose rules and make them stricter, never weaker
# That one predicate implies another cannot be decided in general, so it is not tried: the predicate stays as it is,
# letter by letter, or becomes ``(old) || (more)``. Everything else about a rule that is there may only grow stronger.


def weakened(old: Mapping[str, str], new: Mapping[str, str | None]) -> Refusal | None:
    """Why the edit from ``old`` to ``new`` (registry path -> text, None: gone) is refused, None when it weakens nothing."""
    for path, text in new.items():
        if not is_rule_file(path):
            continue
        try:
            after = read_rule(path, text.encode()) if text is not None else None
        except (Invalid, Unavailable, UnicodeEncodeError) as error:  # half a character, of a model's reply
            return Refusal(RefusalKind.RULE, f"{path}: a rule that cannot be read holds nothing: {error}")
        if path in old and (why := _weaker(path, old[path], after)):
            return Refusal(RefusalKind.RULE, f"{path}: an evolution may not weaken a rule: {why}")
        if path not in old and after is not None and after.enforce is Enforcement.REPLACE:
            told = f"{path}: a rule that writes arguments is for people to add"
            return Refusal(RefusalKind.RULE, told)
    return None


def _weaker(path: str, old: str, after: RunRule | None) -> str:
    if after is None:
        return "it is gone"
    try:
        before = read_rule(path, old.encode())
    except (Invalid, Unavailable):
        return "the rule that is there cannot be read, so nobody can tell"
    if after.on is not before.on:
        return f"it is asked at {after.on} instead of {before.on}"
    asks_instead = before.enforce is Enforcement.REFUSE and after.enforce is Enforcement.ASK
    if STRENGTH[after.enforce] < STRENGTH[before.enforce] or asks_instead:
        return f"it would {after.enforce} where it would {before.enforce}"
    if after.enforce is Enforcement.REPLACE and after.replace != before.replace:
        return "it writes other arguments"
    if before.acts_on_error and not after.acts_on_error:
        return "it would let pass what it cannot judge"
    if not _covers(after.when.source, before.when.source):
        return f"its predicate has to stay, or to become ({before.when.source.strip()}) || (…)"
    if not (_all_in(before.stops, after.stops) and _all_in(before.passes, after.passes)):
        return "examples are gone"
    return ""


def _covers(after: str, before: str) -> bool:
    """Whether the new predicate is the old one, or the old one or something more."""
    if after.strip() == before.strip():
        return True
    head = f"({before.strip()}) || ("
    if (
        not after.strip().startswith(head)
        or not after.strip().endswith(")")
        or "//" in after[: len(head) + 4]
    ):
        return False
    more = after.strip()[len(head) : -1]
    try:
        compiled(more)  # whole by itself, so that no parenthesis of it closes ours
    except PredicateFault:
        return False
    return True


def _all_in(before: tuple[Mapping[str, object], ...], after: tuple[Mapping[str, object], ...]) -> bool:
    return all(one in after for one in before)
