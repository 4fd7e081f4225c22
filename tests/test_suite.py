"""The suite's own promise: where everything is demanded, a skip is a failure."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

from tests.conftest import rewrite_asserts
from tests.refusals import messages

ROOT = Path(__file__).resolve().parent.parent
SKIPS = """
import pytest

@pytest.mark.skipif(True, reason="by mark")
def test_by_mark():
    pass

def test_by_call():
    pytest.skip("by call")

@pytest.fixture
def missing():
    pytest.skip("by fixture")

def test_by_fixture(missing):
    pass
"""


@pytest.mark.slow
@pytest.mark.parametrize(("demanded", "code"), [("bubblewrap", 0), ("bubblewrap,everything", 1)])
def test_no_skip_passes_where_everything_is_demanded(tmp_path: Path, demanded: str, code: int) -> None:
    (tmp_path / "test_skips.py").write_text(SKIPS)
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [
            *command,
            f"--basetemp={tmp_path}/base",
            "--rootdir",
            str(tmp_path),
            "-c",
            os.devnull,
            str(tmp_path),
        ],
        cwd=ROOT,
        # none of what plugins import, which is most of the time, has a part in it
        env=os.environ | {"AGENTOS_REQUIRE": demanded, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout
    assert ("3 skipped" in done.stdout) == (code == 0)


def test_a_module_whose_asserts_are_rewritten_is_not_rewritten_again(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    path = tmp_path / "test_one.py"
    compiled = rewrite.get_cache_dir(path) / f"test_one{rewrite.PYC_TAIL}"
    for number in range(2):
        path.write_text(f"def test_one():\n    assert {number}\n")
        assert rewrite._read_pyc(path, compiled) is None
        rewrite_asserts([path], pytestconfig)
        written = compiled.stat().st_ino
        assert rewrite._read_pyc(path, compiled) is not None
        rewrite_asserts([path], pytestconfig)
        assert compiled.stat().st_ino == written


def test_each_message_of_the_golden_file_is_asked_for() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    asked = re.findall(r'(?:message=|assert_golden\(\s*)(f?)"([^"{]+)', sources)
    whole = {text for _, text in asked}
    begun = tuple(text for is_made, text in asked if is_made)
    assert [key for key in messages() if key not in whole and not key.startswith(begun)] == []
