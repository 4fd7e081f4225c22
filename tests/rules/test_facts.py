"""What rules see: texts made plain, hosts as they are."""

from __future__ import annotations

from typing import Any

import pytest

from agentos.rules.document import rule_of
from agentos.rules.facts import given, hosts, paths, uncovered
from agentos.rules.watching import RunRules


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("сurl х", "curl x"),
        ("r\u200bm -rf /", "rm -rf /"),
        ("ＤＲＯＰ ＴＡＢＬＥ a", "DROP TABLE a"),
        ("{rm,-rf,/}", "rm -rf /"),
        ("H4sIAAAAAAACAytKzc1RAABpvK2rBAAAAA==", ""),  # broken gzip says nothing, and harms nothing
        ("cgBtACAALQByAGYAIAAvAA==", "rm -rf /"),  # UTF-16, as PowerShell's -EncodedCommand
        ("%2572%256d%2520-rf", "rm -rf"),
    ],
)
def test_what_is_hidden_stands_there(text: str, seen: str) -> None:
    assert seen in uncovered(text)


def test_a_look_alike_of_a_host_is_another_host() -> None:
    assert hosts("https://EXAMPLE.com:443/a https://user@b.example/ https://[::1]/") == [
        "example.com",
        "b.example",
        "::1",
    ]
    assert hosts("https://ехample.com/") != ["example.com"]


def test_detours_of_a_path_are_taken_out() -> None:
    assert "/etc/shadow" in paths("cat /tmp/../etc/./shadow")
    assert "src/a.py" in paths("see src/a.py, please")


@pytest.mark.parametrize(
    "value", ["\ud800", 2**70, -(2**70), float("nan"), {"a": [2**2000, "\udfff"]}, None, True]
)
def test_any_json_can_be_judged(value: Any) -> None:
    rule = rule_of(
        "rule/r", {"description": "d", "on": "before_call", "when": "has(args.never)", "enforce": "stop"}
    )
    assert not RunRules([rule]).before_call("t", {"v": value}, []).acts
    given(value)


def test_what_nests_without_end_is_held_back_and_said() -> None:
    deep: Any = "x"
    for _ in range(500):
        deep = [deep]
    rule = rule_of(
        "rule/r", {"description": "d", "on": "before_call", "when": "text == 'no'", "enforce": "stop"}
    )
    (act,) = RunRules([rule]).before_call("t", {"v": deep}, []).acts
    assert act.error
