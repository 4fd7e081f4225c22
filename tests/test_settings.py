"""Settings: the file, the variables over it, and one sentence for each fault."""

from __future__ import annotations

import os
import pwd
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentos.daemon.upkeep.heartbeat import settings_digest
from agentos.daemon.views import evolution_view
from agentos.errors import ErrorKind, Invalid
from agentos.home import Home
from agentos.ledger import blobs
from agentos.settings import Settings, claim_uid, first_settings, load_settings
from tests.refusals import raises


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
        ("[budget]\n\nrun_usd = 'much'", ["line 3: 'budget.run_usd' is 'much'"]),
        (
            "[budget]\nday_usd = 1\nweb = true",
            ["line 3: 'budget.web'", "'web' is", "above the first [table]"],
        ),
        ("[providers.local]\negress = []", ["line 2: 'providers.local.egress'", "'egress' is"]),
        ("web = true\n[budgets]\nrun_usd = 1", ["line 2: 'budgets' is no setting"]),
        ("# parallel = 1\nparallel = 'x' # parallel = 2", ["line 2: 'parallel' is 'x'"]),
        ("parallel = 0", ["'parallel' is 0", "at least 1"]),
        ('sandbox = "none"', ["'sandbox' is 'none'", "bubblewrap"]),
        ("parallel = ", ["is not TOML"]),
        ("parallel = " + "9" * 5_000, ["is not TOML"]),
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
    with raises(Invalid, names=["AGENTOS_PARALLEL", "'many'"]):
        load_settings(tmp_path / "agentos.toml")


def test_a_bad_list_in_a_variable_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTOS_SKILLS", "not json")
    with raises(Invalid, names=["AGENTOS_SKILLS", "'not json'"]):
        load_settings(tmp_path / "agentos.toml")


def test_variables_of_a_table_leave_the_rest_of_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(
        tmp_path, '[budget]\nrun_usd = 3\nday_usd = 4\n[providers.local]\napi_base = "http://a.test"\n'
    )
    monkeypatch.setenv("AGENTOS_BUDGET", '{"run_usd": 5, "run_calls": 7}')
    monkeypatch.setenv("AGENTOS_BUDGET__RUN_CALLS", "8")
    monkeypatch.setenv("AGENTOS_PROVIDERS__LOCAL__KEY_ENV", "A_KEY")
    monkeypatch.setenv("AGENTOS_SKILLS", '["/a"]')
    settings = load_settings(path)
    assert (settings.budget.run_usd, settings.budget.day_usd, settings.budget.run_calls) == (5, 4, 8)
    assert settings.providers["local"].model_dump() == {"api_base": "http://a.test", "key_env": "A_KEY"}
    assert settings.skills == [Path("/a")]


def test_a_file_that_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    with raises(Invalid, ErrorKind.UNREADABLE):
        load_settings(tmp_path)


def test_what_an_editor_on_windows_writes_is_read_and_what_is_no_text_is_told(tmp_path: Path) -> None:
    path = tmp_path / "agentos.toml"
    path.write_bytes(b"\xef\xbb\xbfparallel = 3\n")
    assert load_settings(path).parallel == 3
    for content in (b"a = '\xff'", b"a = " + b"[" * 5_000):
        path.write_bytes(content)
        with pytest.raises(Invalid) as caught:
            load_settings(path)
        assert len(caught.value.faults) == 1


def test_whatever_else_looks_into_the_settings_reads_what_an_editor_on_windows_writes(tmp_path: Path) -> None:
    home = Home(tmp_path)
    write(tmp_path, '\ufeffskills = ["~/mine"]\r\nblobs = "file:///elsewhere"\r\n')
    assert list(evolution_view._watched(home)) == ["~/mine"]
    assert blobs._wanted(tmp_path) == "file:///elsewhere"
    with_mark = settings_digest(home)
    write(tmp_path, 'skills = ["~/mine"]\nblobs = "file:///elsewhere"\n')
    assert settings_digest(home) == with_mark
    write(tmp_path, "skills = \n")
    with pytest.raises(Invalid):
        evolution_view._watched(home)


def test_every_fault_is_told_not_only_the_first(tmp_path: Path) -> None:
    with pytest.raises(Invalid) as caught:
        load_settings(write(tmp_path, "parallel = 0\nhold_out = 7\nnope = 1\n"))
    assert len(caught.value.faults) == 3


def home_at(place: Path, claims: Path) -> int:
    """A home as ``init`` makes it."""
    uid = claim_uid(place, claims)
    place.mkdir(parents=True, exist_ok=True)
    (place / "agentos.toml").write_text(first_settings(uid))
    return uid


def test_no_two_homes_share_a_uid_and_none_is_an_accounts(tmp_path: Path) -> None:
    claims = tmp_path / "claims"
    with ThreadPoolExecutor(8) as threads:
        uids = list(threads.map(lambda number: home_at(tmp_path / f"home{number}", claims), range(60)))
    assert len(set(uids)) == 60
    for uid in uids:
        with pytest.raises(KeyError):
            pwd.getpwuid(uid)


def test_uids_that_would_meet_by_their_place_are_kept_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentos.settings._UIDS", range(65_600, 65_603))
    claims = tmp_path / "claims"
    homes = [tmp_path / name for name in "abc"]
    assert {home_at(home, claims) for home in homes} == {65_600, 65_601, 65_602}
    of_b = load_settings(homes[1] / "agentos.toml").run_uid
    shutil.rmtree(homes[1])
    os.utime(claims / str(of_b), (0, 0))
    assert home_at(tmp_path / "d", claims) == of_b, "a home that is gone claims nothing"
    assert home_at(homes[0], claims) == load_settings(homes[0] / "agentos.toml").run_uid


def test_where_no_claim_can_be_kept_a_home_still_gets_a_uid(tmp_path: Path) -> None:
    (tmp_path / "claims").write_text("a file")
    assert claim_uid(tmp_path / "home", tmp_path / "claims") > 60_000


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("parallel = 1.5", "'parallel' is 1.5, but it should be a whole number"),
        ("parallel = 0", "but it should be at least 1"),
        ("hold_out = 1.0", "but it should be at most 0.9"),
        ("hold_out = inf", "but it should be"),
        ('sandbox = "none"', "but it should be one of 'auto', 'bubblewrap', 'docker' or 'kubernetes'"),
        ("skills = 3", "but it should be a list"),
        ('egress = ["https://api.example.org"]', "should be a host without http://"),
        ('database = "mysql://x"', "of the form 'postgresql://user@host/database'"),
        ('otlp = "somewhere"', "but it should be of the form"),
        ('otlp = "http://[::1"', "but it should be an address"),
        ('[notify]\nwebhook = "http://[::1/"', "but it should be an address"),
        ('[workers]\nlisten = "127.0.0.1:99999"', "with a port up to 65535"),
        ("[retention]\ndays = 1e300", "but it should be at most 36500"),
    ],
)
def test_a_wrong_value_is_told_what_it_should_be(tmp_path: Path, line: str, sentence: str) -> None:
    (tmp_path / "agentos.toml").write_text(line)
    with pytest.raises(Invalid) as said:
        load_settings(tmp_path / "agentos.toml")
    assert sentence in str(said.value)
    assert "Input" not in str(said.value)
