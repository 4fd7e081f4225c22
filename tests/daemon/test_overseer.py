"""What is read out of a reply of the model that looks on."""

from __future__ import annotations

import pytest

from agentos.daemon.requests.overseer import verdict_in

LOST = '{"lost": true, "reason": "it loops"}'


@pytest.mark.parametrize(
    "said",
    [
        LOST,
        f'It calls {{"n": 1}} again and again.\n{LOST}',
        f"<think>{{it}} has a plan</think>{LOST}",
        f"{LOST} as {{shown}} above",
    ],
)
def test_a_run_that_is_called_lost_is_lost(said: str) -> None:
    assert verdict_in({"choices": [{"message": {"content": said}}]}) == "it loops"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"choices": []},
        {"choices": [None]},
        {"choices": [{"message": {"content": '{"lost": "yes", "reason": "r"}'}}]},
        {"choices": [{"message": {"content": '{"lost":' + "[" * 200_000}}]},
        {"choices": [{"message": {"content": None}}]},
    ],
)
def test_what_is_no_verdict_says_nothing(body: object) -> None:
    assert verdict_in(body) == ""
