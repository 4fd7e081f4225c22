"""What a model answers is read in a time that grows with its length alone: it runs in the daemon."""

from __future__ import annotations

import time

import pytest

from agentos.evolver.advice import Declined, parse
from agentos.models.requests import ANSWER_MAX, Unusable
from agentos.proposers.model.proposer import replaced
from tests.refusals import raises

FINDINGS = (
    '{"cause": "c", "why_this_layer": "w", "summary": "s", "predicted_fixes": ["T1"], "tasks_at_risk": []}'
)


@pytest.mark.parametrize(
    "piece",
    [
        "\n",
        " \n",
        "```\n",
        "<<<<<<< SEARCH\n=======\n",
        "<<<<<<< SEARCH\n",
        "=======\n",
        "<",
        "{",
        "</think>",
    ],
)
def test_an_answer_that_is_all_one_thing_is_soon_read(piece: str) -> None:
    """In quadratic time the worst of these takes minutes, in cubic time days."""
    text = piece * ((ANSWER_MAX - len(FINDINGS) - 10) // len(piece))
    began = time.process_time()
    for said in (FINDINGS + "\n" + text, text):
        try:
            replaced("a = 1\n", parse(said).block)
        except Unusable:
            continue
    assert time.process_time() - began < 20


def test_two_parts_replace_what_they_name() -> None:
    block = (
        "<<<<<<< SEARCH\na = 1\n=======\na = 2\n>>>>>>> REPLACE\n\n"
        "<<<<<<< SEARCH\nc = 1\n=======\n>>>>>>> REPLACE  \n"
    )
    assert replaced("a = 1\nb = 1\nc = 1\n", block) == "a = 2\nb = 1\n"
    answer = f"{FINDINGS}\n```\n{block}\n```\n"
    assert parse(answer.replace("\n", "\r\n")) == parse(answer)


def test_what_is_beside_the_edit_stays_as_it_is() -> None:
    """Some signs end a line for ``splitlines`` alone; within a text of the source they mean what they are."""
    beside = 'SIGNS = "a\u2028b\x1ec"\nPAGE = """one\x0ctwo"""\n'
    block = "<<<<<<< SEARCH\na = 1\n=======\na = 2\n>>>>>>> REPLACE"
    assert replaced(f"{beside}a = 1\n", block) == f"{beside}a = 2\n"


def test_a_part_without_an_end_is_no_edit() -> None:
    with raises(Unusable, message="model_answer.no_part"):
        replaced("a = 1\n", "<<<<<<< SEARCH\na = 1\n=======\na = 2\n")


@pytest.mark.parametrize(
    "quoted", ['The call {"points": 50} fails.', "In {} there is nothing: {a} and {'b': 1}."]
)
def test_what_a_model_quotes_is_not_its_answer(quoted: str) -> None:
    assert parse(f"{quoted}\n{FINDINGS}\n```\nx = 1\n```\n").block == "x = 1"
    with raises(Declined, names=["no use"]):
        parse(f'{quoted}\n{{"no_edit": "no use"}}')
    with raises(Unusable, names=["'cause'"]):
        parse(quoted + FINDINGS.replace('"c"', "1"))


def test_a_model_may_say_that_it_has_no_edit() -> None:
    with raises(Declined, names=["the place is right as it is"]):
        parse('I looked.\n```json\n{"no_edit": "the place is right as it is"}\n```')
    assert parse(FINDINGS[:-1] + ', "no_edit": ""}\n```\nx\n```').block == "x"


@pytest.mark.parametrize(
    "patch",
    [
        "--- a/policy.toml\n+++ b/policy.toml\n@@ -1 +1 @@\n-min_tasks = 3\n+min_tasks = 0",
        "--- a/tests/test_report.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-def test_total():",
        "--- a/tool.py\n+++ b/tool.py\n@@ -1 +1 @@\n-a = 1\n+a = 2",
    ],
    ids=["the policy", "a deleted test", "the file itself"],
)
def test_a_patch_reaches_no_file(patch: str) -> None:
    with pytest.raises(Unusable):
        replaced("a = 1\n", patch)
