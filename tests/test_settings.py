"""Settings: the file, the variables over it, and one sentence for each fault."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from agentos.errors import Invalid
from agentos.settings import Settings, first_settings, free_uid, load_settings


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"AGENTOS_{name.upper()}", raising=False)


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "agentos.toml"
    path.write_text(text)
    return path


def test_without_a_file_everything_has_its_default(tmp_path: Path) -> None:
    settings = load_settings(tmp_path / "none.toml")
    assert settings.sandbox == "auto"
    assert settings.parallel == (os.cpu_count() or 1)
    assert settings.hold_out == 0.2


def test_the_file_is_read_and_a_variable_overrides_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, 'parallel = 3\nevolve = "manual"\nskills = ["/a", "/b"]\n')
    monkeypatch.setenv("AGENTOS_PARALLEL", "5")
    settings = load_settings(path)
    assert (settings.parallel, settings.evolve) == (5, "manual")
    assert settings.skills == [Path("/a"), Path("/b")]


def test_the_first_file_is_valid_and_names_every_setting(tmp_path: Path) -> None:
    text = first_settings(61400)
    assert load_settings(write(tmp_path, text)).run_uid == 61400
    assert all(name in text for name in Settings.model_fields)
    uncommented = re.sub("(?m)^# ", "", first_settings(None).split("\n\n", 1)[1])
    assert load_settings(write(tmp_path, uncommented)).parallel == 4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("paralell = 2", ["'paralell' is no setting", "parallel"]),
        ("parallel = 0", ["'parallel' is 0", "greater than or equal to 1"]),
        ('sandbox = "none"', ["'sandbox' is 'none'", "bubblewrap"]),
        ("parallel = ", ["is not TOML"]),
        ("run_uid = 0", ["'run_uid' is 0"]),
    ],
)
def test_each_fault_is_a_sentence_that_names_the_file_and_key(
    tmp_path: Path, text: str, words: list[str]
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(Invalid) as caught:
        load_settings(path)
    assert str(path) in str(caught.value)
    assert all(word in str(caught.value) for word in words)


def test_a_bad_variable_is_named_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTOS_PARALLEL", "many")
    with pytest.raises(Invalid, match="variable AGENTOS_PARALLEL is 'many'"):
        load_settings(tmp_path / "agentos.toml")


def test_a_bad_list_in_a_variable_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTOS_SKILLS", "not json")
    with pytest.raises(Invalid, match="skills"):
        load_settings(tmp_path / "agentos.toml")


def test_a_file_that_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="cannot be read"):
        load_settings(tmp_path)


def test_every_fault_is_told_not_only_the_first(tmp_path: Path) -> None:
    with pytest.raises(Invalid) as caught:
        load_settings(write(tmp_path, "parallel = 0\nhold_out = 7\nnope = 1\n"))
    assert len(caught.value.faults) == 3


def test_the_free_uid_belongs_to_no_account() -> None:
    import pwd

    with pytest.raises(KeyError):
        pwd.getpwuid(free_uid())
