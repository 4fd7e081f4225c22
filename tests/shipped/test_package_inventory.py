"""The skill package-inventory, on files made here and on those of distributions that are installed."""

from __future__ import annotations

import hashlib
import importlib.metadata
import shutil
from base64 import urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.refusals import raises

Call = Callable[..., Any]


def test_read_metadata(call: Call, workspace: Path) -> None:
    (workspace / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\nSummary: Käse\nLicense: MIT\n        and more\n"
        "Requires-Python: >=3.9\nRequires-Dist: a>=1\nRequires-Dist: b ; python_version < '3.11'\n"
        "Requires-Dist: c ; (python_version > '3') and extra == 'fast'\nRequires-Dist: d; extra==\"slow\"\n"
        "Provides-Extra: slow\nProvides-Extra: fast\n\nName: not this\n",
        encoding="utf-8",
    )
    assert call("read_metadata", path="METADATA") == {
        "name": "demo", "version": "1.0", "summary": "Käse", "license": "MIT", "requires_python": ">=3.9",
        "requires": ["a>=1", "b ; python_version < '3.11'"], "extras": ["fast", "slow"],
    }  # fmt: skip
    (workspace / "other").write_text("hello\n")
    with raises(ValueError, message="inventory.no_metadata"):
        call("read_metadata", path="other")


def test_read_metadata_of_what_is_installed(call: Call, workspace: Path) -> None:
    for name in ("pydantic", "rich", "typer", "jsonschema"):
        distribution = importlib.metadata.distribution(name)
        (workspace / name).write_text(distribution.read_text("METADATA") or "", encoding="utf-8")
        found = call("read_metadata", path=name)
        assert (found["name"].lower(), found["version"]) == (name, distribution.version)
        plain = [line for line in distribution.requires or [] if "extra ==" not in line]
        assert found["requires"] == plain


RECORD = """demo/__init__.py,sha256={good},5
demo/data/a.bin,sha256={good},5
"demo/b,c.py",sha256={bad},5
demo/gone.py,sha256={good},5
demo/__pycache__/x.pyc,,
top.py,md5=abc,7
../../bin/demo,sha256={good},5
demo-1.0.dist-info/RECORD,,
"""


@pytest.fixture
def record(workspace: Path) -> Path:
    good = urlsafe_b64encode(hashlib.sha256(b"hello").digest()).decode().rstrip("=")
    bad = urlsafe_b64encode(hashlib.sha256(b"other").digest()).decode().rstrip("=")
    for name in ("site/demo/__init__.py", "site/demo/data/a.bin", "site/demo/b,c.py", "bin/demo"):
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"hello")
    path = workspace / "RECORD"
    path.write_text(RECORD.format(good=good, bad=bad))
    return path


@pytest.mark.usefixtures("record")
def test_record_sizes(call: Call) -> None:
    assert call("record_sizes", path="RECORD") == {
        "files": 8, "size": 32, "unrecorded": 2,
        "directories": [
            {"name": "demo", "files": 5, "size": 20},
            {"name": ".", "files": 1, "size": 7},
            {"name": "..", "files": 1, "size": 5},
            {"name": "demo-1.0.dist-info", "files": 1, "size": 0},
        ],
    }  # fmt: skip


def test_verify_record(call: Call, record: Path) -> None:
    assert call("verify_record", record="RECORD", root="site") == {
        "verified": 2, "changed": ["demo/b,c.py"], "missing": ["demo/gone.py"],
        "unchecked": ["demo/__pycache__/x.pyc", "top.py", "../../bin/demo", "demo-1.0.dist-info/RECORD"],
    }  # fmt: skip
    (record.parent / "site/demo/__init__.py").write_bytes(b"longer")
    assert "demo/__init__.py" in call("verify_record", record="RECORD", root="site")["changed"]
    record.write_text("a,b\n")
    with raises(ValueError, message="inventory.row"):
        call("verify_record", record="RECORD")


def test_an_installed_distribution_verifies(call: Call, workspace: Path) -> None:
    distribution = importlib.metadata.distribution("annotated-types")
    (workspace / "RECORD").write_text(distribution.read_text("RECORD") or "")
    for file in distribution.files or []:
        if ".." not in file.parts and file.locate().is_file():
            target = workspace / "site" / str(file)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file.locate(), target)
    found = call("verify_record", record="RECORD", root="site")
    assert found["verified"] > 0
    assert (found["changed"], found["missing"]) == ([], [])
