"""Task documents: what they may say, and one clear sentence for everything else."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentos.domain import Call, Check, Destination, Effect, InputFile, Limits, Trigger, Watch
from agentos.errors import ErrorKind, Invalid, NotFound
from agentos.taskfile import MAX_BYTES, Draft, drafts_of, read_drafts
from agentos.taskfile.text import parse
from tests.refusals import raises


def drafts(text: str, folder: Path = Path("/")) -> list[Draft]:
    return drafts_of(text.encode(), "task file", folder)


def faults(text: str, folder: Path = Path("/")) -> list[str]:
    with pytest.raises(Invalid) as caught:
        drafts(text, folder)
    return caught.value.faults


def test_a_whole_task_is_read(tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("a,b\n")
    (tmp_path / "more.csv").write_text("a,b\n")
    path = tmp_path / "task.yaml"
    path.write_text(
        """
name: sum the sales
goal: What is the sum of column b?
call: {tool: csv-report/column_sum, args: {path: sales.csv, column: b}}
inputs: [sales.csv, {path: more.csv, as: data/more.csv}]
agent: default
limits: {wall_s: 5, memory_mb: 256}
effects: [read]
checks:
  - equals: {value: 42, path: total}
  - contains: total
schedule: 0 7 * * 1-5
"""
    )
    (draft,) = read_drafts(path)
    assert draft.name == "sum the sales"
    assert draft.call == Call("csv-report/column_sum", {"path": "sales.csv", "column": "b"})
    assert not draft.files  # what a schedule starts reads its inputs when it runs
    assert [(source.path, source.place) for source in draft.sources] == [
        (str(tmp_path / "sales.csv"), "sales.csv"),
        (str(tmp_path / "more.csv"), "data/more.csv"),
    ]
    assert draft.limits == Limits(wall_s=5.0, memory_mb=256)
    assert draft.effects == (Effect.READ,)
    assert draft.checks == (
        Check("equals", {"value": 42, "path": "total"}),
        Check("contains", {"value": "total"}),
    )
    assert draft.schedule == "0 7 * * 1-5"
    task = draft.task("task-1", [InputFile("sales.csv", "0" * 64, 4)], datetime.now(UTC))
    assert task.id == "task-1"
    assert task.goal == draft.goal


def test_one_task_a_list_and_a_mapping_of_tasks_are_the_same() -> None:
    one = "{goal: hello}"
    assert drafts(one) == drafts(f"[{one}]") == drafts(f"tasks: [{one}]")
    assert len(drafts(f"[{one}, {one}]")) == 2


def test_json_and_yaml_say_the_same() -> None:
    document = {"goal": "g", "call": {"tool": "t", "args": {"n": [1, 2.5, None, True, "x"]}}}
    assert drafts(json.dumps(document)) == drafts(
        "goal: g\ncall:\n  tool: t\n  args:\n    n: [1, 2.5, null, true, x]\n"
    )


def test_a_call_alone_gives_the_task_its_name_and_goal() -> None:
    (draft,) = drafts("call: {tool: word-count}")
    assert (draft.name, draft.goal) == ("word-count", "call word-count")


def test_a_name_is_one_line() -> None:
    (draft,) = drafts("name: |\n  sum the\n  sales\ngoal: a")
    assert draft.name == "sum the sales"
    (draft,) = drafts('{name: "\\n", goal: How many?}')
    assert draft.name == "How many?"


def test_a_task_without_a_name_is_called_by_its_goal() -> None:
    (draft,) = drafts("goal: |\n  How many words?\n  Count them.\ncall: {tool: word-count}")
    assert draft.name == "How many words?"
    (draft,) = drafts(f"goal: {'x' * 300}")
    assert draft.name == "x" * 79 + "…"


def test_scalars_follow_yaml_1_2() -> None:
    assert parse("[no, 12:30, 2026-01-31, 0o7, ~, 1e3, .5, -3, 'yes', 1_000]", "x") == [
        "no",
        "12:30",
        "2026-01-31",
        "0o7",
        None,
        1000.0,
        0.5,
        -3,
        "yes",
        "1_000",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it holds nothing"),
        ("- 3", "mapping"),
        ("goal: [", "neither YAML nor JSON"),
        ("goal: [a", "parsing a flow sequence at line 1"),
        ("goal: a\ngoal: b", "line 2: the key 'goal' is given twice"),
        ('{"goal": "a", "goal": "b"}', "'goal' is given twice"),
        ("1: a", "the key 1 is no text"),
        ("[a]: b", "no text"),
        ("a: &x [1]\nb: *x", "aliases"),
        ("goal: !!python/object:os.system x", "tags"),
        ("goal: .nan", "not allowed"),
        ('{"goal": NaN}', "NaN is not allowed"),
        ('{"goal": "a", "limits": {"wall_s": 1e999}}', "what JSON cannot"),
        ('{"goal": "\\ud800"}', "what JSON cannot"),
        ("[" * 100 + "]" * 100, "nested"),
        ("[" * 100_000, "nested"),
        ("goal: a\n---\ngoal: b", "2 documents"),
        ("[]", "0 tasks"),
        ("{}", "'goal', a 'call', or both"),
        ("goal: 3", "'goal' is 3"),
        ("goals: a", "'goals' is no known key"),
        ("{goal: a, limits: {seconds: 3}}", "wall_s"),
        ("{goal: a, limits: {wall_s: -1}}", "'limits.wall_s' is -1"),
        ("{goal: a, limits: {memory_mb: true}}", "memory_mb"),
        ("call: {tool: ../x}", "call.tool"),
        ("call: {tool: x, args: [1]}", "call.args"),
        ("{goal: a, agent: A B}", "agent"),
        ("{goal: a, effects: [nuke]}", "effects"),
        ("{goal: a, schedule: every day}", "cron"),
        ("{goal: a, schedule: R 7 * * *}", "cron"),
        ("{goal: a, schedule: 0 5 4 * * *}", "five fields"),
        ("{goal: ' '}", "needs a 'goal'"),
        ('{goal: a, watch: "in\\0box"}', "zero bytes"),
        ('{goal: a, deliver: {folder: "out\\0"}}', "zero bytes"),
        ("{goal: a, checks: [{equals: {value: 1}, regex: x}]}", "one key"),
        ("{goal: a, checks: [{equal: {value: 1}}]}", "'equal' is no kind of check"),
        ("{goal: a, checks: [{regex: '('}]}", "regular expression"),
        ("{goal: a, checks: [{command: ls}]}", "mapping of its parameters"),
        ("{goal: a, inputs: [nowhere.csv]}", "'nowhere.csv' is no file"),
        ("{goal: a, inputs: [{path: etc/hostname, newer_than: last_run}]}", "newer_than needs a schedule"),
        ("{goal: a, schedule: '0 7 * * *', inputs: [{path: etc, as: ..}]}", "cannot stand in the workspace"),
        ("{goal: a, schedule: '0 7 * * *', timezone: Middle/Earth}", "'timezone'"),
        ("{goal: a, schedule: '0 7 * * *', timezone: ../../etc/passwd}", "'timezone'"),
        ("{goal: a, timezone: Europe/Berlin}", "for a task with a 'schedule'"),
        ("{goal: a, schedule: '0 7 * * *', missed: twice}", "'missed'"),
        ("{goal: a, schedule: '0 7 * * *', watch: etc}", "not both"),
        ("{goal: a, watch: {folder: ''}}", "folder"),
        ("{goal: a, watch: etc, deliver: {folder: etc}}", "where 'watch' looks"),
        (
            "{goal: a, watch: {folder: etc, pattern: '*.pdf'}, deliver: {folder: etc, name: '{input}.pdf'}}",
            "looks",
        ),
        ("{goal: a, schedule: '0 0 31 2 *'}", "'schedule' is '0 0 31 2 *', but it should come on some day"),
        (
            "{goal: a, inputs: [{path: x, newest: 1}]}",
            "'inputs.0.newest' is no known key (there are: path, as,",
        ),
        ("{goal: a, inputs: [3]}", "'inputs.0' is 3, but it should be a mapping (its keys: path, as,"),
        ("{goal: a, watch: 3}", "'watch' is 3, but it should be a mapping (its keys: folder,"),
        ("{goal: a, deliver: {name: x.md}}", "a folder or a command"),
        ("{goal: a, deliver: {folder: out, name: ../x.md}}", "below the folder"),
        ("{goal: a, deliver: {folder: out, name: .bashrc}}", "below the folder"),
        ("{goal: a, deliver: {folder: out, name: '{date.__class__}'}}", "in braces"),
        ("{goal: a, deliver: {folder: out, name: '{nope}.md'}}", "'deliver.0.name' is '{nope}.md'"),
        ("{goal: a, deliver: [{folder: out}, {command: [x], when: never}]}", "when"),
        ("{goal: a, inputs: [{as: x}]}", "names no file"),
        ("{goal: a, inputs: [{path: etc/hostname, as: ../x}]}", "cannot stand in the workspace"),
        ("{goal: a, inputs: [{path: etc/hostname, as: /x}]}", "cannot stand in the workspace"),
        (f"{{goal: a, inputs: [{{path: etc/hostname, as: {'n' * 256}}}]}}", "cannot stand in the workspace"),
        ("{goal: a, inputs: [{path: etc/hostname, as: a/b}, {path: etc/passwd, as: a//b}]}", "two inputs"),
        ("{goal: a, inputs: [etc/hostname, {path: etc/passwd, as: hostname}]}", "two inputs"),
    ],
)
def test_each_fault_is_one_clear_sentence(text: str, words: str) -> None:
    found = faults(text)
    assert any(words in fault for fault in found), found
    assert all("\n" not in fault and len(fault) < 600 for fault in found)


def test_every_fault_of_every_task_is_told() -> None:
    found = faults("[{goal: 3, limits: {steps: 0}}, {goal: fine}, {}]")
    assert [fault[:7] for fault in found] == ["task 1:", "task 1:", "task 3:"]


def test_bytes_that_are_no_text_are_refused() -> None:
    with raises(Invalid, message="task_file.not_text"):
        drafts_of(b"\xff\xfe", "x", Path("/"))


def test_a_huge_file_is_refused_by_its_size_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.yaml"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # more than there is memory for
    with raises(Invalid, names=["1,099,511,627,776 bytes"]):
        read_drafts(path)


@pytest.mark.slow
def test_a_document_of_very_many_values_is_refused() -> None:
    text = "[" + "1," * ((MAX_BYTES - 10) // 2) + "1]"
    assert "tasks" in faults(text)[0]  # as JSON: too many tasks
    assert "values" in faults("goal: a\nx: " + text[:-100] + "]")[0]


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with raises(Invalid, ErrorKind.UNREADABLE):
        read_drafts(tmp_path / "fifo")
    with raises(Invalid, ErrorKind.UNREADABLE):
        read_drafts(tmp_path)
    with raises(NotFound, names=["none.yaml"]):
        read_drafts(tmp_path / "none.yaml")


# How long it takes to draw an example, or to try it, says how busy the machine is: by that one of eight at once failed.
calmly = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@calmly
@given(st.text(max_size=200))
def test_any_text_gives_tasks_or_a_sentence(text: str) -> None:
    try:
        drafts(text)
    except Invalid as error:
        assert error.faults  # noqa: PT017


@calmly
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=20,
    )
)
@pytest.mark.slow
def test_json_values_come_through_unchanged(value: object) -> None:
    assert parse(json.dumps([value]), "x") == [value]


def test_a_task_without_a_call_may_take_longer() -> None:
    (free,) = drafts_of(b"goal: Think it over.", "t", Path())
    assert free.limits == Limits(steps=200, wall_s=600.0)
    (partly,) = drafts_of(b"goal: Think.\nlimits: {wall_s: 30, calls: 5, tokens: 1000}", "t", Path())
    assert partly.limits == Limits(steps=200, wall_s=30.0, calls=5, tokens=1000)
    (call,) = drafts_of(b"call: {tool: a}\nlimits: {memory_mb: 128}", "t", Path())
    assert call.limits == Limits(memory_mb=128)


def test_what_ties_a_task_to_the_day_is_read(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (draft,) = drafts(
        """
        goal: read {file}
        watch: {folder: inbox, pattern: "**/*.pdf", settle_s: 1}
        inputs: [docs, {path: "rules/*.md", live: false}]
        deliver:
          - {folder: ~/out, name: "{date}.md", replace: true}
          - {command: [mail, -s, done, me], when: always}
        """,
        tmp_path,
    )
    assert draft.trigger == Trigger(watch=Watch(str(tmp_path / "inbox"), "**/*.pdf", 1))
    assert [(one.path, one.place) for one in draft.sources] == [(str(tmp_path / "docs"), "docs")]
    assert [(one.path, one.place) for one in draft.trees] == [(str(tmp_path / "rules/*.md"), "rules")]
    folder, command = draft.deliver
    assert folder == Destination(str(Path.home() / "out"), "{date}.md", replace=True)
    assert (command.command, command.when) == (("mail", "-s", "done", "me"), "always")


def test_a_task_without_such_keys_is_as_it_always_was() -> None:
    (draft,) = drafts("{goal: g, schedule: '0 7 * * *'}")
    assert (draft.trigger, draft.deliver, draft.sources, draft.trees) == (None, (), (), ())


@pytest.mark.parametrize(
    ("document", "lines"),
    [
        ("goal: a\ncal: {tool: b}\n", [2]),
        ("goal: a\n\ncall:\n  tool: b\n  arg: {}\n", [5]),
        ("goal: a\ncall:\n  args: {}\n", [2]),  # what is missing is told of what lacks it
        ("goal: a\nlimits:\n  wall_s: soon\n", [3]),
        ("goal: a\nchecks:\n  - regex: {pattern: a}\n  - regx: {pattern: a}\n", [4]),
        ("goal: a\nchecks:\n  - regex: {pattern: '('}\n    equals: 1\n", [3]),
        ("# two\n- goal: a\n- goal: b\n  nam: c\n", [4]),
        ("tasks:\n  - goal: a\n    effects: [sing]\n  - goal: b\n    agent: 3\n", [3, 5]),
        ('{"goal": "a",\n "cal": 1}\n', [2]),
        ('{"goal": "a", "cal": 1}\n', [None]),  # all on one line
    ],
)
def test_a_fault_is_told_with_its_line(document: str, lines: list[int | None], tmp_path: Path) -> None:
    with pytest.raises(Invalid) as refused:
        drafts_of(document.encode(), "tasks.yaml", tmp_path)
    told = [re.match(r"(?:task \d+: )?line (\d+): ", fault) for fault in refused.value.faults]
    assert [int(found[1]) if found else None for found in told] == lines


def test_what_the_command_line_said_has_no_line(tmp_path: Path) -> None:
    with pytest.raises(Invalid) as refused:
        drafts_of(b"goal: a\nschedule: '0 7 * * *'\n", "tasks.yaml", tmp_path, {"schedule": "never"})
    assert not refused.value.faults[0].startswith("line")
