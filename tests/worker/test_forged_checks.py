"""What a run leaves in its workspace cannot pass a check: each attempt below forges one that is false."""

from __future__ import annotations

import marshal
from typing import Any

import pytest

from agentos import checks
from agentos.sandboxes.plainfiles import write_tar

EXIT = b"import os\nos._exit(0)\n"
# To whatever descriptor leads out: a whole result, as the grader's child frames it.
PIPE = b"""import os, struct
for descriptor in range(3, 64):
    for nonce in (b"", b"\\0" * 32):
        try:
            os.write(descriptor, struct.pack(">Q", len(nonce)) + nonce)
        except OSError:
            pass
def double(n): return 0
"""
PATCH = b"""import builtins, gc, sys
class AssertionError(Exception): pass
builtins.AssertionError = AssertionError
frame = sys._getframe()
while frame:
    frame.f_globals["passed"] = True
    frame.f_globals["answer"] = 42
    frame = frame.f_back
class Yes(int):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
def double(n): return Yes()
"""
EVERYTHING = b"def double(n): return 0\nfor n in range(100): print(n)\n"
PARENT = b"""import os, signal
def double(n):
    for target in (os.getppid(), 1):
        for name in ("fd/3", "mem", "fd/1"):
            try:
                with open(f"/proc/{target}/{name}", "r+b", buffering=0) as file:
                    file.write(b"\\0" * 8)
            except OSError:
                pass
    return 0
"""
WRONG = b"def double(n): return n + 1\n"
PYC = b"\xa7\r\r\n" + bytes(12) + marshal.dumps(compile("def double(n): return 42", "<frozen os>", "exec"))
IMPORT = "import sys\nsys.path.insert(0, str(workspace))\nimport solution\nassert solution.double(21) == 42"

# Name -> files that the run left, and the check that they try to pass.
ATTEMPTS: dict[str, tuple[dict[str, bytes], tuple[str, dict[str, Any]]]] = {
    "json.py before the library": (
        {"json.py": EXIT},
        ("command", {"argv": ["python3", "-c", "import json; assert json.dumps(1) == '2'"]}),
    ),
    "unittest.py before the library": (
        {"unittest.py": EXIT},
        ("command", {"argv": ["python3", "-m", "unittest", "no_such_test"]}),
    ),
    "pytest.py before the library": (
        {"pytest.py": EXIT, "pytest/__main__.py": EXIT},
        ("command", {"argv": ["python3", "-m", "pytest", "-q", "."]}),
    ),
    "sitecustomize.py": (
        {"sitecustomize.py": EXIT, "usercustomize.py": EXIT},
        ("command", {"argv": ["python3", "-c", "raise SystemExit(1)"]}),
    ),
    "a program of the workspace, by its path": (
        {"solution.py": EXIT},
        ("command", {"argv": ["python3", "solution.py"]}),
    ),
    "a program of the workspace, by a shell": (
        {"check.sh": b"exit 0\n"},
        ("command", {"argv": ["sh", "-c", "cd . && sh ./check.sh"]}),
    ),
    "a Makefile": ({"Makefile": b"check:\n\ttrue\n"}, ("command", {"argv": ["make", "check"]})),
    "an import in the judging program ends it": (
        {"solution.py": EXIT},
        ("command", {"argv": ["python3", "-c", "import solution; assert solution.double(21) == 42"]}),
    ),
    "the same, where the check says that it runs files": (
        {"solution.py": EXIT},
        (
            "command",
            {
                "argv": ["python3", "-c", "import solution; print(solution.double(21))"],
                "stdout_equals": "42",
                "runs_workspace": True,
            },
        ),
    ),
    "a command writes to the result pipe": (
        {"solution.py": PIPE},
        (
            "command",
            {
                "argv": ["python3", "-c", "import solution; print(solution.double(21))"],
                "stdout_equals": "42",
                "runs_workspace": True,
            },
        ),
    ),
    "a command prints everything": (
        {"solution.py": EVERYTHING},
        (
            "command",
            {
                "argv": ["python3", "-c", "import solution; print(solution.double(21))"],
                "stdout_equals": "42",
                "runs_workspace": True,
            },
        ),
    ),
    "json.py where files are run": (
        {"json.py": b"print(42)\n" + EXIT, "solution.py": WRONG},
        (
            "command",
            {
                "argv": ["python3", "-c", "import json, solution; print(json.dumps(solution.double(21)))"],
                "stdout_equals": "42",
                "runs_workspace": True,
            },
        ),
    ),
    "a snippet imports a file that ends the process": ({"solution.py": EXIT}, ("python", {"code": IMPORT})),
    "a snippet imports a file that writes to the pipe": ({"solution.py": PIPE}, ("python", {"code": IMPORT})),
    "a snippet imports a file that patches it": ({"solution.py": PATCH}, ("python", {"code": IMPORT})),
    "a snippet executes the file's text": (
        {"solution.py": PATCH},
        ("python", {"code": "exec((workspace / 'solution.py').read_text())\nassert double(21) == 42"}),
    ),
    "a snippet executes it under another name": (
        {"solution.py": PATCH},
        (
            "python",
            {
                "code": "text = (workspace / 'solution.py').read_text()\n"
                "exec(compile(text, '<elsewhere>', 'exec'))\nassert double(21) == 42"
            },
        ),
    ),
    "a snippet runs it by runpy": (
        {"solution.py": PATCH},
        (
            "python",
            {
                "code": "import runpy\nfound = runpy.run_path(str(workspace / 'solution.py'))\n"
                "assert found['double'](21) == 42"
            },
        ),
    ),
    "a snippet loads a compiled file": (
        {"solution.pyc": PYC},
        (
            "python",
            {
                "code": "import importlib.util as u\n"
                "spec = u.spec_from_file_location('solution', str(workspace / 'solution.pyc'))\n"
                "module = u.module_from_spec(spec)\nspec.loader.exec_module(module)\n"
                "assert module.double(21) == 42"
            },
        ),
    ),
    "a snippet loads a pickle": (
        {"data.pickle": b"cos\n_exit\n(I0\ntR."},
        (
            "python",
            {"code": "import pickle\nassert pickle.load((workspace / 'data.pickle').open('rb')) == 42"},
        ),
    ),
    "a snippet starts a program of the workspace": (
        {"solution.py": EXIT},
        (
            "python",
            {
                "code": "import subprocess, sys\n"
                "assert subprocess.run([sys.executable, 'solution.py'], cwd=workspace).returncode == 0"
            },
        ),
    ),
    "the same by os.system": (
        {"solution.py": EXIT},
        ("python", {"code": "import os\nassert os.system('python3 ./solution.py') == 0"}),
    ),
    "json.py before the library of what a snippet starts": (
        {"json.py": EXIT},
        (
            "python",
            {
                "code": "import subprocess, sys\n"
                "code = \"import json; assert json.dumps(1) == '2'\"\n"
                "assert subprocess.run([sys.executable, '-c', code], cwd=workspace).returncode == 0"
            },
        ),
    ),
    "a called function ends its process": (
        {"solution.py": EXIT},
        ("python", {"code": "assert call('solution.py', 'double', 21) == 42", "runs_workspace": True}),
    ),
    "a called function writes to every pipe": (
        {"solution.py": PIPE},
        ("python", {"code": "assert call('solution.py', 'double', 21) == 42", "runs_workspace": True}),
    ),
    "a called function returns what equals everything": (
        {"solution.py": PATCH},
        ("python", {"code": "assert call('solution.py', 'double', 21) == 42", "runs_workspace": True}),
    ),
    "a called function reaches for its parents": (
        {"solution.py": PARENT},
        ("python", {"code": "assert call('solution.py', 'double', 21) == 42", "runs_workspace": True}),
    ),
    "json.py where a function is called": (
        {"json.py": b"def dumps(value): return '{\"value\": 42}'\nload = dumps\n", "solution.py": WRONG},
        ("python", {"code": "assert call('solution.py', 'double', 21) == 42", "runs_workspace": True}),
    ),
    "an import, although the check says that it runs files": (
        {"solution.py": PATCH},
        ("python", {"code": IMPORT, "runs_workspace": True}),
    ),
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_a_false_check_is_not_passed_by_what_the_run_left(worker: Any, attempt: str) -> None:
    files, check = ATTEMPTS[attempt]
    # the check after it tells that the grader itself came through
    done = worker.grade({"n": 1}, check, ("equals", {"path": "n", "value": 1}), tar=write_tar(files))
    assert [found.passed for found in done.checks] == [False, True], done.checks
    assert done.checks[0].detail


HONEST = {"solution.py": b"import json\ndef double(n): return n * 2\ndef same(text): return text\n"}


@pytest.mark.parametrize(
    "check",
    [
        ("command", {"argv": ["python3", "-c", "import solution; print(solution.double(21))"],
                     "stdout_equals": "42", "runs_workspace": True}),
        ("command", {"argv": ["python3", "-c", "import solution; print(solution.same('{nonce}'))"],
                     "stdout_equals": "{nonce}", "runs_workspace": True}),
        ("python", {"code": "assert call('solution.py', 'double', 21) == 42", "runs_workspace": True}),
        ("python", {"code": "assert call('solution.py', 'same', text='ü') == 'ü'", "runs_workspace": True}),
        ("python", {"code": "said = run(['python3', '-c', 'import solution; print(solution.double(4))'])\n"
                            "assert (said.status, said.stdout) == (0, '8\\n')", "runs_workspace": True}),
        ("python", {"code": "import ast\nast.parse((workspace / 'solution.py').read_text())"}),
        ("python", {"code": "from collections import namedtuple\nfrom dataclasses import dataclass\n"
                            "import csv, statistics, decimal\nnamedtuple('A', 'a')(1)\n"
                            "@dataclass\nclass B:\n    b: int\nassert B(1).b == 1"}),
        ("command", {"argv": ["sh", "-c", "wc -l < solution.py"], "stdout_contains": "3"}),
        ("command", {"argv": ["python3", "-c", "import sys; print(len(open(sys.argv[1]).readlines()))",
                              "solution.py"], "stdout_contains": "3"}),
        ("command", {"argv": ["grep", "-c", "def", "solution.py"], "stdout_equals": "2"}),
    ],
)  # fmt: skip
def test_an_honest_file_passes(worker: Any, check: tuple[str, dict[str, Any]]) -> None:
    (found,) = worker.grade(None, check, tar=write_tar(HONEST)).checks
    assert found.passed, found.detail


def test_what_one_check_runs_leaves_nothing_for_the_others(worker: Any) -> None:
    """Whatever stands first: files are looked at before any of them is run, and are laid out anew after."""
    source = (
        b"import pathlib\ndef write():\n"
        b"    there = pathlib.Path('report.txt').exists()\n"
        b"    pathlib.Path('report.txt').write_text('total: 6')\n    return there\n"
    )
    writing = ("python", {"code": "assert call('solution.py', 'write') is False", "runs_workspace": True})
    done = worker.grade(
        None, writing, ("file", {"path": "report.txt"}), writing, tar=write_tar({"solution.py": source})
    )
    assert [found.kind for found in done.checks] == ["python", "file", "python"]
    assert [found.passed for found in done.checks] == [True, False, True], done.checks


def test_a_check_whose_verdict_would_be_the_judged_codes_is_refused() -> None:
    for spec in (
        {"argv": ["python3", "-m", "pytest"], "runs_workspace": True},
        {"argv": ["python3", "-m", "pytest"], "runs_workspace": True, "stdout_contains": "passed"},
        {"argv": ["./solution"], "runs_workspace": True, "stdout_equals": " \n"},
    ):
        (fault,) = checks.faults("command", spec)
        assert "stdout_equals" in fault
    assert checks.faults("command", {"argv": ["true"]}) == []


def test_the_nonce_is_another_each_time(worker: Any) -> None:
    check = ("command", {"argv": ["echo", "{nonce}"], "stdout_equals": "no"})
    one, other = worker.grade(None, check, check).checks
    assert not one.passed
    assert one.detail != other.detail
    assert "{nonce}" not in one.detail
