"""The settings of models: tables in the file, variables over them, sentences for faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentos.errors import Invalid
from agentos.settings import load_settings


def test_tables_are_read_and_a_variable_wins_over_one_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "agentos.toml"
    path.write_text('[providers.a]\napi_base = "http://x/v1"\n[budget]\nday_usd = 3\nrun_usd = 2\n')
    monkeypatch.setenv("AGENTOS_BUDGET__DAY_USD", "7")
    settings = load_settings(path)
    assert (settings.budget.day_usd, settings.budget.run_usd) == (7, 2)
    assert (settings.budget.day.usd, settings.budget.run.usd) == (7, 2)
    assert settings.providers["a"].api_base == "http://x/v1"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[budget]\nday_eur = 1", "'budget.day_eur' is no setting (Did you mean day_usd"),
        ("[providers.a]\nkey = 'sk-x'", "'providers.a.key' is no setting (Did you mean key_env"),
        ("[providers.a]\napi_base = 'file:///x'", "providers.a.api_base"),
        ("[budget]\nrun_usd = -1", "budget.run_usd"),
        ("model_calls = 0", "'model_calls' is 0"),
        ("recording = 'some'", "'recording'"),
    ],
)
def test_each_fault_names_the_table_and_key(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "agentos.toml"
    path.write_text(text)
    with pytest.raises(Invalid) as caught:
        load_settings(path)
    assert words in str(caught.value)
