"""Edits of texts beside the code: what is offered, what stays, and that nothing is loosened."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from agentos.domain import Call
from agentos.domain import RefusalKind as K
from agentos.evolver.documents import policy_from_json
from agentos.evolver.policy import Policy, SurfacePolicy
from agentos.evolver.propose.validation import screen
from agentos.ports import Case
from agentos.programs import is_kept_line, widened
from agentos.proposers.repair.places import text_stocks, texts_of
from agentos.proposers.repair.source import TextFile


def made(name: str, text: str, *, code: str = "", said: str = "", given: str = "") -> Iterator[str]:
    """Every text that an edit makes of this one."""
    file = TextFile(f"tool/probe/{name}", text, code)
    case = Case("t1", Call("probe", {"text": given}), {}, ())
    for stock in text_stocks(file, [case], [0], [{"error": "KeyError", "message": said}]):
        for each in stock.plain:
            change = file.change(each.edit)
            if change is not None:
                yield change[0]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("a.json", '{"rate": 190}', '{"rate": 19}'),
        ("a.json", '{"rate": 4.99}', '{"rate": 5.00}'),
        ("a.toml", "hour = 360 # seconds\n", "hour = 3600 # seconds\n"),
        ("a.toml", "[net]\nup = false\n", "[net]\nup = true\n"),
        ("a.yaml", "# how\nsep: ','  # between\n", "# how\nsep: ';'  # between\n"),
        ("a.yaml", "days:\n  - Mon\n  - Wed\n  - Tue\n", "days:\n  - Mon\n  - Tue\n  - Wed\n"),
        ("a.json", '{"form": "%m.%d.%Y"}', '{"form": "%d.%m.%Y"}'),
        ("a.json", r'{"p": "^\\d{4}-\\d{2}-\\d$"}', r'{"p": "^\\d{4}-\\d{2}-\\d+$"}'),
        ("a.json", '{"p": "^[0-9]{2,4}$"}', '{"p": "^[0-9]{2,6}$"}'),
        ("a.json", '{"level": ["low", "top", "mid"]}', '{"level": ["low", "mid", "top"]}'),
        ("a.json", '{"level": ["low", "low"]}', '{"level": ["low"]}'),
        ("run.sh", 'sort -n "$f"  # rank\n', 'sort -r -n "$f"  # rank\n'),
        ("run.sh", "sort -u $f\n", 'sort -u "$f"\n'),
        ("run.sh", "awk -F',' '{print $1}' \"$f\"\n", "awk -F';' '{print $1}' \"$f\"\n"),
        ("run.sh", "awk '{print $1}' \"$f\"\n", "awk '{print $2}' \"$f\"\n"),
        ("run.sh", "tail -n +1 x | sort\n", "tail -n +2 x | sort\n"),
        ("run.sh", "grep -c ERROR x\n", "grep -c ERROR x || true\n"),
        ("run.sh", "sort x | head -n 3 | uniq\n", "sort x | uniq | head -n 3\n"),
    ],
)  # fmt: skip
def test_the_slips_of_data_and_scripts_are_within_reach_and_layout_stays(
    name: str, old: str, new: str
) -> None:
    found = list(made(name, old))
    assert new in found
    assert all("#" not in old or text.count("#") == old.count("#") for text in found), "comments stay"


def test_a_key_becomes_a_name_that_the_code_looks_up_and_the_failure_names() -> None:
    code = 'def answer(settings):\n    return settings["greet_formal"]\n'
    first, *_ = made("a.json", '{"greetFormal": "Dear", "n": 3}', code=code, said="'greet_formal'")
    assert '{"greet_formal": "Dear", "n": 3}' in {
        first,
        *made("a.json", '{"greetFormal": "Dear", "n": 3}', code=code),
    }


def test_a_list_and_a_pattern_get_a_word_of_the_failing_call_and_no_expected_value() -> None:
    assert '{"yes": ["y", "on"]}' in set(made("a.json", '{"yes": ["y"]}', given="ON"))
    assert r'{"p": "(?:RE|INV)-"}' in set(made("a.json", r'{"p": "(?:INV)-"}', given="RE 5"))


DOCUMENT = {
    "name": "probe",
    "description": "first column",
    "effects": ["read"],
    "command": ["awk", "-F,", "{print $1}", "in.csv"],
    "input_schema": {"type": "object", "properties": {"n": {"type": "integer", "maximum": 10}}},
    "timeout_s": 5,
    "memory_mb": 100,
    "dependencies": ["tabulate==0.9"],
}
SCRIPT = """#!/bin/bash
set -eu
ulimit -t 5
export PATH=/usr/bin
timeout 3 sort -n "$1" | head -n 2
LC_ALL=C sort "$1"
grep -c x "$1"
[ -s "$1" ] || exit 3
"""


def test_of_a_programs_document_only_words_of_its_command_change() -> None:
    found = [json.loads(text) for text in made("tool.json", json.dumps(DOCUMENT), given="write external")]
    assert found
    for each in found:
        assert {**each, "command": 0} == {**DOCUMENT, "command": 0}
        assert each["command"][0] == "awk"
    assert any(each["command"][2] == "{print $2}" for each in found) or any(
        each["command"][1] != "-F," for each in found
    )


def test_lines_that_set_limits_or_the_environment_or_end_the_script_stay() -> None:
    kept = [line for line in SCRIPT.splitlines() if is_kept_line(line)]
    assert len(kept) == 6
    found = list(made("run.sh", SCRIPT))
    assert found
    for text in found:
        assert [line for line in text.splitlines() if is_kept_line(line)] == kept
        assert not widened("tool/probe/run.sh", SCRIPT, text)


def test_a_long_word_takes_no_time_to_be_looked_through() -> None:
    word = "a" * 30_000 + "\n" * 10_000
    began = time.process_time()
    assert not widened("tool/probe/data.json", f'["{word}", 1]', f'["{word}", 2]')
    assert time.process_time() - began < 1.0


def test_keys_that_grant_or_bound_something_stay_wherever_they_are() -> None:
    text = '[box]\ntimeout_s = 5\nmemory_mb = 100\n\n[own]\nmost = 5\n\n[egress]\nhosts = ["a.example"]\n'
    found = list(made("limits.toml", text, given="b.example"))
    assert any("most = 6" in each for each in found)
    for each in found:
        assert "timeout_s = 5\nmemory_mb = 100\n" in each
        assert "[egress]" in each


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("tool.json", DOCUMENT, {**DOCUMENT, "effects": ["read", "external"]}),
        ("tool.json", DOCUMENT, {**DOCUMENT, "timeout_s": 50}),
        ("tool.json", DOCUMENT, {**DOCUMENT, "memory_mb": 1000}),
        ("tool.json", DOCUMENT, {**DOCUMENT, "dependencies": []}),
        ("tool.json", DOCUMENT, {**DOCUMENT, "input_schema": {"type": "object"}}),
        ("tool.json", DOCUMENT, {k: v for k, v in DOCUMENT.items() if k != "timeout_s"}),
        ("tool.json", DOCUMENT, {**DOCUMENT, "secrets": ["token"]}),
        ("tool.json", DOCUMENT, {**DOCUMENT, "command": ["bash", "-c", "id"]}),
        ("tool.json", DOCUMENT, {**DOCUMENT, "command": [*DOCUMENT["command"], "/etc/passwd"]}),  # type: ignore[misc]
        ("run.sh", SCRIPT, SCRIPT.replace("ulimit -t 5\n", "")),
        ("run.sh", SCRIPT, SCRIPT.replace("ulimit -t 5", "ulimit -t 50")),
        ("run.sh", SCRIPT, SCRIPT.replace("timeout 3", "timeout 30")),
        ("run.sh", SCRIPT, SCRIPT.replace("exit 3", "exit 0")),
        ("run.sh", SCRIPT, SCRIPT.replace("set -eu", "set -u")),
        ("run.sh", SCRIPT, SCRIPT.replace("export PATH=/usr/bin", "export PATH=.:/usr/bin")),
        ("run.sh", SCRIPT, SCRIPT.replace("LC_ALL=C sort", "sort")),
        ("run.sh", SCRIPT, SCRIPT + "curl example.org\n"),
        ("run.sh", SCRIPT, SCRIPT.replace("grep -c x", "grep -c x `id`")),
        ("run.sh", SCRIPT, SCRIPT.replace('grep -c x "$1"', 'grep -c x "$1" > "$1"')),
        ("run.sh", SCRIPT, SCRIPT.replace('grep -c x "$1"', 'grep -c x "$1" | tee y')),
        ("a.yaml", "timeout_s: 5\n", "timeout_s: 50\n"),
        ("a.json", '{"effects": ["read"]}', '{"effects": ["external"]}'),
        ("a.json", '{"limits": {"n": 1}}', '{"limits": {"n": 2}}'),
        ("a.toml", 'allow = ["a"]\n', 'allow = ["a", "b"]\n'),
        ("a.toml", "[checks]\na = 1\n", "a = 1\n"),
    ],
)  # fmt: skip
def test_what_loosens_grants_limits_or_the_environment_is_refused_whoever_made_it(
    name: str, old: object, new: object
) -> None:
    texts = [text if isinstance(text, str) else json.dumps(text, indent=1) for text in (old, new)]
    path = f"tool/probe/{name}"
    assert widened(path, *texts)
    refused = screen({path: texts[0]}, {path: texts[1]}, (), SurfacePolicy(), searched=True)
    assert refused is not None
    assert refused.kind is K.SURFACE


def test_a_text_beside_the_code_is_on_the_surface_of_the_search_alone() -> None:
    path, rules = "tool/probe/rates.json", SurfacePolicy()
    old, new = {path: '{"rate": 190}'}, {path: '{"rate": 19}'}
    refused = screen(old, new, (), rules)
    assert refused is not None
    assert refused.kind is K.SURFACE
    assert screen(old, new, (), rules, searched=True) is None
    assert screen(old, new, (), replace(rules, searched=()), searched=True) is not None
    for beyond in (
        "tool/probe/deep/rates.json",
        "skill/s/tests/check.yaml",
        "skill/s/rules/a.toml",
        "rule/a/b.json",
    ):
        assert screen({beyond: "a: 1\n"}, {beyond: "a: 2\n"}, (), rules, searched=True) is not None


def test_documents_of_the_registry_are_no_texts_of_a_tool(brief) -> None:  # type: ignore[no-untyped-def]
    files = {f"tool/probe/{name}": "a = 1\n" for name in ("resource.toml", "own.toml", "tool.py")}
    made = replace(
        brief("x = 1\n", []),
        files={**files, "tool/other/own.toml": "a = 1\n"},
        searched=SurfacePolicy().searched,
    )
    assert list(texts_of(made)) == ["tool/probe/own.toml"]
    assert not texts_of(replace(made, searched=()))


def test_a_policy_that_was_stored_before_lets_nothing_be_searched() -> None:
    old = json.loads(json.dumps({"surface": {"allow": ["tool/*/*.py"]}}))
    assert policy_from_json(old).surface.searched == ()
    assert Policy().surface.searched
