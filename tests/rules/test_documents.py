"""What a rule's document may say; what is refused, and why it can be mended by whoever wrote it."""

from __future__ import annotations

import time
from datetime import date
from typing import Any

import pytest

from agentos.domain import is_rule_file
from agentos.errors import Invalid
from agentos.rules.document import DOCUMENT_MAX, Enforcement, read_rule, rule_of
from agentos.rules.trying import faults_of
from tests.refusals import raises

GOOD = {"description": "d", "on": "before_call", "when": "tool == 'x'", "enforce": "stop"}


def faults(**changes: Any) -> list[str]:
    document = {key: value for key, value in {**GOOD, **changes}.items() if value is not None}
    with pytest.raises(Invalid) as caught:
        rule_of("rule/mine", document)
    return caught.value.faults


def test_toml_and_yaml_make_the_same_rule() -> None:
    toml = b"description = 'd'\non = 'before_call'\nwhen = 'tool == \"x\"'\nenforce = 'stop'\n"
    yaml = b"description: d\n'on': before_call\nwhen: tool == \"x\"\nenforce: stop\n"
    one = read_rule("skill/a/rules/r.toml", toml)
    assert one.digest == read_rule("skill/a/rules/r.yaml", yaml).digest
    assert one.enforce is Enforcement.STOP


def test_on_is_a_key_in_yaml_without_quotes_too() -> None:
    yaml = b'description: d\non: before_call\nwhen: tool == "x"\nenforce: stop\n'
    assert read_rule("skill/a/rules/r.yaml", yaml).on.value == "before_call"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"on": "sometimes"}, "before_call"),
        ({"enforce": None}, "reflect"),
        ({"enforced": "stop"}, "did you mean 'enforce'"),
        ({"enforce": "refuse"}, "advice"),
        ({"enforce": "replace"}, "replace"),
        ({"on": "before_answer", "enforce": "refuse", "advice": "a"}, "stop, ask"),
        ({"on_error": "pass"}, "on_error"),
        ({"when": "tool == 3"}, "1:6"),
        ({"when": "tool ==\n  tol"}, "2:3"),
        ({"when": "tol == 'x'"}, "seen_hosts"),
        ({"when": "tool"}, "true or false"),
        ({"when": "text.matches('[')"}, "1:14"),
        ({"when": r"text.matches('\?')"}, "regular expression"),  # CEL's escape of a mark that begins none
        ({"when": "text.matches(r'(a){1000}{1000}')"}, "regular expression"),
        ({"when": ""}, "such as"),
        ({"examples": {"stop": []}}, "stops"),
        ({"evolvable": 3}, "evolvable"),
        ({"enforce": "replace", "replace": {"day": date(2026, 1, 31)}}, "date"),
        ({"enforce": "replace", "replace": {"x": float("nan")}}, "JSON"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_type(changes: dict[str, Any], told: str) -> None:
    assert told in "; ".join(faults(**changes))


@pytest.mark.parametrize(
    "when",
    [
        "args.l.map(x, x) == []",
        "text.matches(tool)",
        "text.matches(r'a' + tool)",
        "args.l.exists(x, text.matches(r'a'))",
        "args.l.exists(x, x + x == 'a')",
        "args.a.exists(a, a.exists(b, b.exists(c, c.exists(d, d.exists(e, e == 'x')))))",
        "(" * 500 + "true" + ")" * 500,
        "tool == '" + "x" * 5_000 + "'",
        "text + text + text + text + text + text + text + text + text + text == 'x'",
    ],
)
def test_a_predicate_whose_cost_is_not_bounded_is_refused(when: str) -> None:
    assert faults(when=when)


@pytest.mark.parametrize(
    "when", ["text.matches(r'(a+)+$')", "text.matches(r'(a|a)*b')", "text.matches(r'(.*){20}z')"]
)
def test_a_pattern_that_explodes_elsewhere_ends_here(when: str) -> None:
    from agentos.rules.watching import RunRules

    watch = RunRules([rule_of("rule/mine", {**GOOD, "when": when})])
    began = time.process_time()
    watch.before_call("x", {"a": "a" * 50_000 + "!"}, [])
    assert time.process_time() - began < 20  # backtracking would not end at all


def test_a_document_of_10_mb_is_refused_before_it_is_read() -> None:
    with raises(Invalid, names=[f"{DOCUMENT_MAX:,}"]):
        read_rule("rule/x/resource.toml", b"a = [" + b"1," * 5_000_000 + b"]")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a = [", b"- a", b"[" * 5_000])
@pytest.mark.slow
def test_what_is_no_document_is_said(content: bytes) -> None:
    for path in ("skill/a/rules/x.toml", "skill/a/rules/x.yaml"):
        with pytest.raises(Invalid):
            read_rule(path, content)


def test_which_files_are_rules() -> None:
    assert is_rule_file("rule/a/resource.toml")
    assert is_rule_file("skill/a/rules/b.yaml")
    for path in ("skill/a/rules/b.py", "skill/a/rules/c/b.toml", "tool/a/rules/b.toml", "rule/a/notes.md"):
        assert not is_rule_file(path)


@pytest.mark.parametrize(
    "text",
    [
        "description: &a [*a]\non: before_call\n",
        "description: d\non: before_call\non: after_call\n",
        "a: &a [x]\nb: [*a, *a]\n",
        "a: " + "[" * 600,
        "a: {x: 1, x: 2}\n",
        "a: !!python/object/apply:os.system ['true']\n",
        "a: !!bool maybe\n",
        "a: 2026-13-01\n",
        "? [a]\n: b\n",
    ],
)
def test_yaml_in_circles_twice_named_or_too_deep_is_one_fault(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        read_rule("skill/a/rules/r.yaml", text.encode())
    assert len(caught.value.faults) == 1


WRITTEN = "description: d\non: before_call\nwhen: tool == 'x'\nenforce: stop\n"


@pytest.mark.parametrize(
    "more",
    [
        *("? [a]\n: b", "x: 2020-13-45", "x: !!bool often", "x: !!timestamp soon", "x: !!int many"),
        f"x: {'9' * 5_000}",
        *(
            f"examples: {{stops: [{{args: {value}}}]}}"
            for value in ("2020-01-01", ".nan", "!!set {a}", "{1: a, b: c}")
        ),
    ],
)
def test_yaml_that_makes_no_value_of_json_is_a_fault(more: str) -> None:
    with pytest.raises(Invalid):
        read_rule("skill/a/rules/r.yaml", f"{WRITTEN}{more}\n".encode())


@pytest.mark.parametrize("value", ["2020-01-01", "07:32:00", "nan", "9" * 5_000])
def test_toml_that_makes_no_value_of_json_is_a_fault(value: str) -> None:
    lines = ["description = 'd'", "on = 'before_call'", "when = 'true'", "enforce = 'replace'"]
    with pytest.raises(Invalid):
        read_rule("rule/a/resource.toml", "\n".join([*lines, f"replace = {{day = {value}}}"]).encode())


@pytest.mark.parametrize("on", ["before_call", "before_answer"])
@pytest.mark.parametrize(
    "example",
    [
        *(
            {"before": ["x"]},
            {"before": 5},
            {"before": None},
            {"before": [{"effects": 7}]},
            {"before": [{"before": [1]}]},
        ),
        *(
            {"tokens": "many"},
            {"usd": []},
            {"args": "a"},
            {"before": [{"args": [1]}]},
            {"files": 5},
            {"files": [1, "a"]},
            {"effects": 5},
            {"tool": 5},
        ),
    ],
)
def test_an_example_of_another_kind_is_a_fault_of_it(on: str, example: dict[str, Any]) -> None:
    rule = rule_of("rule/mine", {**GOOD, "on": on, "examples": {"stops": [{"tool": "x"}, example]}})
    assert 2 in [fault.number for fault in faults_of(rule)]


def test_an_example_of_a_rule_that_writes_arguments_has_arguments() -> None:
    writes = {"enforce": "replace", "replace": {"n": 1}, "examples": {"stops": [{"tool": "x", "args": "n"}]}}
    assert [fault.number for fault in faults_of(rule_of("rule/mine", {**GOOD, **writes}))] == [1]


def test_an_example_may_have_spent_any_sum() -> None:
    rule = {**GOOD, "when": "usd > 5.0", "examples": {"stops": [{"usd": 10**400}]}}
    assert faults_of(rule_of("rule/mine", rule)) == []
