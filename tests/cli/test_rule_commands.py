"""``agentos rule …`` as a user types it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Ran
from tests.refusals import assert_golden

RULE = """description = "Not that tool."
on = "before_call"
when = "tool == 'never'"
enforce = "stop"
[[examples.stops]]
tool = "never"
[[examples.passes]]
tool = "always"
"""


def test_a_rule_that_ships_is_turned_on_shown_and_off(agentos: Callable[..., Ran]) -> None:
    listed = {row["rule"]: row for row in json.loads(agentos("rule", "list", "--json").stdout)}
    assert {row["state"] for row in listed.values()} == {"off"}
    added = json.loads(agentos("rule", "add", "secrets-in-answers", "--json").stdout)
    assert (added["rule"], added["change"]) == ("rule/secrets-in-answers", "added")
    listed = {row["rule"]: row for row in json.loads(agentos("rule", "list", "--json").stdout)}
    assert listed["rule/secrets-in-answers"]["state"] == "on"
    assert listed["rule/secrets-in-answers"]["version"] == added["version"]
    assert "before_answer" in agentos("rule", "show", "secrets-in-answers").stdout
    again = json.loads(agentos("rule", "add", "secrets-in-answers", "--json").stdout)
    assert again["change"] == "unchanged"
    agentos("rule", "remove", "secrets-in-answers", "--yes")
    listed = {row["rule"]: row for row in json.loads(agentos("rule", "list", "--json").stdout)}
    assert listed["rule/secrets-in-answers"]["state"] == "off"
    agentos("rule", "remove", "secrets-in-answers", "--yes", code=1)


def test_a_rule_of_ones_own_is_tested_and_added(agentos: Callable[..., Ran], tmp_path: Path) -> None:
    file = tmp_path / "my_rule.toml"
    file.write_text(RULE)
    told = json.loads(agentos("rule", "test", str(file), "--json").stdout)
    assert (told["examples"], told["wrong"], told["runs"]) == (2, [], 0)
    assert json.loads(agentos("rule", "add", str(file), "--json").stdout)["rule"] == "rule/my-rule"


def test_yaml_is_taken(agentos: Callable[..., Ran], tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("description: d\non: before_call\nwhen: tool == 'never'\nenforce: stop\n")
    agentos("rule", "add", str(file))
    assert "before_call" in agentos("rule", "show", "mine").stdout
    file.write_text(file.read_text() + "name:\n")
    assert_golden("rule_add.empty_value", agentos("rule", "add", str(file), code=1).stderr)


def test_an_example_that_does_not_hold_keeps_a_rule_out(agentos: Callable[..., Ran], tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(RULE.replace('tool = "always"', 'tool = "never"'))
    tested = agentos("rule", "test", str(file), code=1)
    assert "passes 1" in tested.stdout
    agentos("rule", "add", str(file), code=1)
    agentos("rule", "show", "mine", code=1)


def test_what_is_wrong_is_said_with_its_place(agentos: Callable[..., Ran], tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(RULE.replace("tool == 'never'", "tol == 'never'"))
    done = agentos("rule", "add", str(file), code=1)
    assert_golden("rule.1_1", done.stderr)
    file.write_bytes(b"#" * (10 << 20))
    agentos("rule", "test", str(file), code=1)
    assert_golden("rule_show.agentos_rule_list", agentos("rule", "show", "nobody", code=1).stderr)
