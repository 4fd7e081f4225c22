"""The unit that systemd gets: whole, of this home, and never written over another's."""

from __future__ import annotations

import configparser
import logging
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agentos.cli.admin import service
from agentos.daemon.control import systemd
from agentos.daemon.control.systemd import SystemdUnit
from agentos.daemon.process import LogFile, set_up_logs
from agentos.errors import Conflict, ErrorKind, NotFound, UserError
from agentos.home import Home
from tests.refusals import raises


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PATH", str(tmp_path))  # the systemd of whoever runs the suite is left alone
    root = tmp_path / "a home of 100%"
    root.mkdir()
    (root / "agentos.toml").touch()
    (root / "registry.git").mkdir()
    return Home(root)


def read(text: str) -> configparser.ConfigParser:
    parsed = configparser.ConfigParser(interpolation=None, strict=True)
    parsed.optionxform = str  # type: ignore[assignment, method-assign]
    parsed.read_string(text)
    return parsed


@pytest.mark.parametrize("user", [True, False])
def test_the_unit_is_whole(place: Home, user: bool) -> None:
    parsed = read(SystemdUnit(place, "agentos", user).text())
    assert parsed.sections() == ["Unit", "Service", "Install"]
    service = parsed["Service"]
    assert service["Delegate"] == "yes"
    assert service["KillMode"] == "mixed"
    assert service["StandardError"] == "journal"
    assert ("User" in service) is not user
    words = [word.replace("%%", "%") for word in shlex.split(service["ExecStart"])]
    assert words == [sys.executable, "-P", "-m", "agentos", "--home", str(place.root), "daemon", "run"]
    assert parsed["Install"]["WantedBy"] == ("default.target" if user else "multi-user.target")


def test_one_that_cannot_start_is_tried_again_without_end(place: Home) -> None:
    parsed = read(SystemdUnit(place, "agentos", user=False).text())
    assert parsed["Unit"]["StartLimitIntervalSec"] == "0"
    assert parsed["Service"]["Restart"] == "on-failure"


def test_the_unit_of_a_stand_by_stands_by(place: Home) -> None:
    parsed = read(SystemdUnit(place, "agentos", user=False, stand_by=True).text())
    assert shlex.split(parsed["Service"]["ExecStart"])[-3:] == ["daemon", "run", "--stand-by"]


def test_a_stand_by_stays_one_when_its_service_is_installed_again(
    place: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systemd, "BOOTED", place.root / "nowhere")
    monkeypatch.setenv("AGENTOS_HOME", str(place.root))
    unit = SystemdUnit(place, "agentos", user=True)
    for words, stands_by in ([], False), (["--stand-by"], True), ([], True), (["--no-stand-by"], False):
        assert CliRunner().invoke(service.app, ["install", "--user", *words]).exit_code == 0
        assert unit.stands_by == stands_by


ANALYZE = shutil.which("systemd-analyze")


@pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze")
def test_systemd_finds_nothing_wrong_with_it(place: Home, tmp_path: Path) -> None:
    unit = tmp_path / "agentos.service"
    unit.write_text(SystemdUnit(place, "agentos", user=False).text())
    done = subprocess.run([str(ANALYZE), "verify", str(unit)], capture_output=True, text=True)
    assert "agentos.service" not in done.stderr


def test_where_systemd_does_not_run_no_command_is_named_that_would_fail(
    place: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = SystemdUnit(place, "agentos", user=True)
    monkeypatch.setattr(systemd, "BOOTED", place.root / "nowhere")
    left = unit.install()
    assert unit.path.exists()
    assert not any("systemctl" in line or "journalctl" in line for line in left)


def test_it_is_installed_once_and_removed(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    unit = SystemdUnit(place, "agentos", user=True)
    monkeypatch.setattr(systemd, "BOOTED", place.root)
    assert not unit.status().installed
    left = unit.install()
    assert any("start agentos" in line for line in left)
    assert unit.path.read_text() == unit.text()
    assert unit.status().installed
    unit.install()
    assert unit.uninstall()
    assert not unit.path.exists()
    assert not unit.uninstall()


def test_the_unit_of_another_home_is_left_alone(place: Home, tmp_path: Path) -> None:
    SystemdUnit(place, "agentos", user=True).install()
    other = Home(tmp_path / "other")
    shutil.copytree(place.root, other.root)
    stranger = SystemdUnit(other, "agentos", user=True)
    for act in (stranger.install, stranger.uninstall):
        with raises(Conflict, ErrorKind.TAKEN, names=["--name"]):
            act()
    SystemdUnit(other, "agentos-two", user=True).install()


def test_a_user_without_a_home_directory_is_told_to_name_one(
    place: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    with pytest.raises(UserError, match="set HOME"):
        SystemdUnit(place, "agentos", user=True).path  # noqa: B018


def test_without_a_home_there_is_no_service(place: Home, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        SystemdUnit(Home(tmp_path / "nowhere"), "agentos", user=True).install()


def test_the_journal_gets_text_with_levels_and_the_file_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    monkeypatch.setenv("JOURNAL_STREAM", "8:1")
    try:
        set_up_logs(tmp_path / "daemon.log", "info", 1, console=True)
        logging.getLogger("agentos.test").error("it went wrong")
        said = capsys.readouterr().err
        assert said.startswith("<3>")
        assert "it went wrong" in said
        assert (tmp_path / "daemon.log").read_text().startswith("{")
    finally:
        for handler in root.handlers:
            if handler not in before:
                handler.close()
        root.handlers, root.level = before, level


def test_the_log_goes_on_in_a_new_file_when_one_is_full(tmp_path: Path) -> None:
    for _ in range(2):  # also in a file that is there already
        file = LogFile(tmp_path / "daemon.log", maxBytes=1000, backupCount=2, encoding="utf-8")
        for number in range(25):
            file.emit(logging.LogRecord("agentos", logging.INFO, "", 0, f"{number:099d}", None, None))
        file.close()
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert sizes == {"daemon.log": 1000, "daemon.log.1": 1000, "daemon.log.2": 1000}


def test_the_log_goes_on_where_it_was_when_its_folder_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    file = LogFile(folder / "daemon.log", maxBytes=1000, backupCount=2, encoding="utf-8")
    for number in range(3):
        file.emit(logging.LogRecord("agentos", logging.INFO, "", 0, str(number), None, None))
        if number == 0:
            folder.rename(tmp_path / "away")
    file.close()
    assert (tmp_path / "away" / "daemon.log").read_text() == "0\n"
    assert (folder / "daemon.log").read_text() == "1\n2\n"
