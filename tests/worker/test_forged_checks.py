"""What a run leaves in its workspace cannot pass a check: each attempt below forges one that is false."""

from __future__ import annotations

import io
import marshal
import zipfile
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


TRUE = b"exit 0\n"


def zipped(*names: str) -> bytes:
    """An archive whose files end the process."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name in names:
            file.writestr(name, EXIT)
    return made.getvalue()


def cmd(*argv: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return ("command", {"argv": list(argv), **more})


IMP = "import sys; sys.path.insert(0, '.'); import solution; assert solution.double(21) == 42"
# A second look: fair checks of people who do not think of it, by which what was left would be run.
MORE: dict[str, tuple[dict[str, bytes], tuple[str, dict[str, Any]]]] = {
    "env": ({"solution.py": EXIT}, cmd("env", "python3", "solution.py")),
    "env -S": ({"solution.py": EXIT}, cmd("env", "-S", "python3 solution.py")),
    "env -S and a quote that nothing closes": ({"it's.py": EXIT}, cmd("env", "-S", "python3 it's.py")),
    "env -i A=1": ({"solution.py": EXIT}, cmd("env", "-i", "A=1", "/usr/bin/python3", "solution.py")),
    "timeout": ({"solution.py": EXIT}, cmd("timeout", "5", "python3", "solution.py")),
    "nice": ({"solution.py": EXIT}, cmd("nice", "-n", "5", "python3", "solution.py")),
    "xargs": ({"solution.py": EXIT}, cmd("sh", "-c", "echo solution.py | xargs python3")),
    "-W": ({"solution.py": EXIT}, cmd("python3", "-W", "ignore", "solution.py")),
    "-X": ({"solution.py": EXIT}, cmd("python3", "-X", "dev", "solution.py")),
    "path insert": ({"solution.py": EXIT}, cmd("python3", "-c", IMP)),
    "zip": (
        {"a.zip": zipped("solution.py", "__main__.py")},
        cmd("python3", "-c", IMP.replace("'.'", "'a.zip'")),
    ),
    "zip direct": ({"a.zip": zipped("solution.py", "__main__.py")}, cmd("python3", "a.zip")),
    "exec open": (
        {"solution.py": EXIT},
        cmd("python3", "-c", "exec(open('solution.py').read()); assert double(21) == 42"),
    ),
    "runpy": (
        {"solution.py": EXIT},
        cmd("python3", "-c", "import runpy; assert runpy.run_path('solution.py')['double'](21) == 42"),
    ),
    "importlib": (
        {"solution.py": EXIT},
        cmd(
            "python3",
            "-c",
            "import importlib.util as u; s=u.spec_from_file_location('s','solution.py'); m=u.module_from_spec(s); s.loader.exec_module(m); assert m.double(21)==42",
        ),
    ),
    "pickle": (
        {"d.pickle": b"cos\n_exit\n(I0\ntR."},
        cmd("python3", "-c", "import pickle; assert pickle.load(open('d.pickle','rb')) == 42"),
    ),
    "subprocess": (
        {"solution.py": EXIT},
        cmd("python3", "-c", "import subprocess; subprocess.run(['python3','solution.py'], check=True)"),
    ),
    "os.system": ({"x.sh": TRUE}, cmd("python3", "-c", "import os; assert os.system('sh x.sh') == 0")),
    "conftest": (
        {"conftest.py": EXIT, "test_a.py": b"def test_a(): assert 0\n"},
        cmd("python3", "-m", "pytest", "-q"),
    ),
    "pytest": ({"conftest.py": EXIT, "test_a.py": b"def test_a(): assert 0\n"}, cmd("pytest", "-q")),
    "unittest": ({"test_a.py": EXIT}, cmd("python3", "-m", "unittest", "discover")),
    "unittest named": ({"test_a.py": EXIT}, cmd("python3", "-m", "unittest", "test_a.py")),
    "doctest": ({"solution.py": EXIT}, cmd("python3", "-m", "doctest", "solution.py")),
    "runpy -m": ({"solution.py": EXIT}, cmd("python3", "-m", "runpy", "solution")),
    "timeit": (
        {"solution.py": EXIT},
        cmd(
            "python3",
            "-m",
            "timeit",
            "-s",
            "import sys; sys.path.insert(0,'.')",
            "import solution; solution.double(1)",
        ),
    ),
    "trace": ({"solution.py": EXIT}, cmd("python3", "-m", "trace", "--count", "solution.py")),
    "cProfile": ({"solution.py": EXIT}, cmd("python3", "-m", "cProfile", "solution.py")),
    "pdb": ({"solution.py": EXIT}, cmd("python3", "-m", "pdb", "-c", "c", "solution.py")),
    "directory": ({"__main__.py": EXIT}, cmd("python3", ".")),
    "directory named": ({"pkg/__main__.py": EXIT}, cmd("python3", "pkg")),
    "dot": ({"check.sh": TRUE}, cmd("sh", "-c", ". ./check.sh; false")),
    "source": ({"check.sh": TRUE}, cmd("bash", "-c", "source check.sh; false")),
    "stdin": ({"check.sh": TRUE}, cmd("sh", "-c", "sh < check.sh")),
    "cat pipe": ({"check.sh": TRUE}, cmd("sh", "-c", "cat check.sh | sh")),
    "eval": ({"check.sh": TRUE}, cmd("sh", "-c", 'eval "$(cat check.sh)"; false')),
    "cd sub": ({"sub/check.sh": TRUE}, cmd("sh", "-c", "cd sub && sh check.sh")),
    "if": ({"check.sh": TRUE}, cmd("sh", "-c", "if sh ./check.sh; then exit 0; else exit 1; fi")),
    "assign": ({"check.sh": TRUE}, cmd("sh", "-c", "A=1 sh ./check.sh")),
    "brace": ({"check.sh": TRUE}, cmd("sh", "-c", "{ sh ./check.sh; }")),
    "exec": ({"check.sh": TRUE}, cmd("sh", "-c", "exec sh ./check.sh")),
    "bang": ({"check.sh": b"exit 1\n"}, cmd("sh", "-c", "! sh ./check.sh")),
    "var": ({"check.sh": TRUE}, cmd("sh", "-c", "F=check.sh; sh $F")),
    "glob": ({"check.sh": TRUE}, cmd("sh", "-c", "sh ./*.sh")),
    "for": ({"check.sh": TRUE}, cmd("sh", "-c", "for f in *.sh; do sh $f || exit 1; done")),
    "find exec": ({"check.sh": TRUE}, cmd("find", ".", "-name", "*.sh", "-exec", "sh", "{}", ";")),
    "awk -f": ({"check.awk": b"BEGIN { exit 0 }\n"}, cmd("awk", "-f", "check.awk", "check.awk")),
    "sed -f": ({"check.sed": b"Q0\n"}, cmd("sh", "-c", "sed -n -f check.sed check.sed")),
    "make -f": ({"rules.mk": b"all:\n\ttrue\n"}, cmd("make", "-f", "rules.mk")),
    "make -C": ({"sub/Makefile": b"all:\n\ttrue\n"}, cmd("make", "-C", "sub")),
    "shell --rcfile": ({"rc": TRUE}, cmd("bash", "--rcfile", "rc", "-i", "-c", "false")),
    "bash -O opt": ({"check.sh": TRUE}, cmd("bash", "-O", "extglob", "check.sh")),
    "busybox": ({"check.sh": TRUE}, cmd("busybox", "sh", "check.sh")),
    "perl": ({"check.pl": b"exit 0;\n"}, cmd("perl", "-w", "check.pl")),
    "perl -I": ({"check.pl": b"exit 0;\n"}, cmd("perl", "-I", ".", "check.pl")),
    "node": ({"a.js": b"process.exit(0)\n"}, cmd("node", "--require", "./a.js", "-e", "process.exit(1)")),
    "setsid": ({"solution.py": EXIT}, cmd("setsid", "-w", "python3", "solution.py")),
    "stdbuf": ({"solution.py": EXIT}, cmd("stdbuf", "-oL", "python3", "solution.py")),
    "python isolated": (
        {"solution.py": EXIT},
        cmd("python3", "-Ic", "import sys; sys.path.insert(0, '.'); import solution"),
    ),
    "python -bc": ({"solution.py": EXIT}, cmd("python3", "-Bc", IMP)),
    "stdin python": ({"solution.py": EXIT}, cmd("sh", "-c", "python3 < solution.py")),
    "python -": ({"solution.py": EXIT}, cmd("sh", "-c", "cat solution.py | python3 -")),
    "huge": ({"big.txt": b"x" * 3_000_000}, cmd("sh", "-c", "cat big.txt", stdout_contains="total: 6")),
    "copied": ({"check.sh": TRUE}, cmd("sh", "-c", "cp check.sh /tmp/y.sh; sh /tmp/y.sh")),
    "git": (
        {
            ".git/config": b"[core]\n repositoryformatversion = 0\n[alias]\n st = !exit 0\n",
            ".git/HEAD": b"ref: refs/heads/main\n",
            ".git/objects/a": b"",
            ".git/refs/a": b"",
        },
        cmd("git", "st"),
    ),
    "snippet sys.modules": (
        {"solution.py": EXIT},
        (
            "python",
            {
                "code": "import types\nm=types.ModuleType('s')\nexec(open(workspace/'solution.py').read().replace('x','x'), m.__dict__)\nassert m.double(21)==42"
            },
        ),
    ),
    "snippet partial exec": (
        {"solution.py": b"import os\nos._exit(0)\n#"},
        ("python", {"code": "exec('\\n' + (workspace/'solution.py').read_text())\nassert double(21)==42"}),
    ),
    "snippet eval": (
        {"a.txt": b"__import__('os')._exit(0)"},
        ("python", {"code": "assert eval((workspace/'a.txt').read_text()) == 42"}),
    ),
    "snippet eval part": (
        {"a.txt": b"1\n__import__('os')._exit(0)\n"},
        (
            "python",
            {
                "code": "for line in (workspace/'a.txt').read_text().splitlines():\n    eval(line)\nassert False"
            },
        ),
    ),
    "snippet eval namespace": (
        {"a.txt": b"[f.f_globals.update(passed=True) for f in [__import__('sys')._getframe(1)]]"},
        ("python", {"code": "passed = False\neval((workspace/'a.txt').read_text().strip() + ' ')"}),
    ),
    "snippet zip": (
        {"a.zip": zipped("solution.py", "__main__.py")},
        (
            "python",
            {
                "code": "import sys\nsys.path.insert(0,str(workspace/'a.zip'))\nimport solution\nassert solution.double(21)==42"
            },
        ),
    ),
    "snippet env": (
        {"solution.py": EXIT},
        (
            "python",
            {
                "code": "import subprocess\nassert subprocess.run(['env','python3','solution.py'],cwd=workspace).returncode==0"
            },
        ),
    ),
    "snippet shell": (
        {"solution.py": EXIT},
        (
            "python",
            {
                "code": "import subprocess\nassert subprocess.run('timeout 5 python3 solution.py',shell=True,cwd=workspace).returncode==0"
            },
        ),
    ),
    "snippet -m unittest": (
        {"test_a.py": EXIT},
        (
            "python",
            {
                "code": "import subprocess,sys\nassert subprocess.run([sys.executable,'-m','unittest','discover'],cwd=workspace).returncode==0"
            },
        ),
    ),
    "snippet -c import": (
        {"solution.py": EXIT},
        (
            "python",
            {
                "code": "import subprocess,sys\nassert subprocess.run([sys.executable,'-c','import sys; sys.path.insert(0,\".\"); import solution'],cwd=workspace).returncode==0"
            },
        ),
    ),
    "snippet yaml-ish ast": (
        {"a.txt": b"(" * 5000},
        ("python", {"code": "import ast\nassert ast.literal_eval((workspace/'a.txt').read_text()) == 1"}),
    ),
    "snippet huge": (
        {"a.txt": b"9" * 5000},
        ("python", {"code": "assert int((workspace/'a.txt').read_text()) == 1"}),
    ),
    "snippet json dup": (
        {"a.json": b'{"total": 5, "total": 5}'},
        (
            "python",
            {"code": "import json\nassert json.loads((workspace/'a.json').read_text())['total'] == 6"},
        ),
    ),
    "file symlink": ({"x": b"a"}, ("file", {"path": "report.txt"})),
    "run declared exit": (
        {"solution.py": EXIT},
        (
            "python",
            {"code": "assert run(['python3','solution.py']).stdout == '42\\n'", "runs_workspace": True},
        ),
    ),
    "call returns twice": (
        {
            "solution.py": b"import sys, json, os\nout=[o for o in range(3,50) if os.path.exists(f'/proc/self/fd/{o}')]\nfor o in out:\n    try: os.write(o, json.dumps({'value': 42}).encode()); os._exit(0)\n    except OSError: pass\n"
        },
        ("python", {"code": "assert call('solution.py','double',21) == 43", "runs_workspace": True}),
    ),
}


@pytest.mark.parametrize("attempt", [*ATTEMPTS, *MORE])
def test_a_false_check_is_not_passed_by_what_the_run_left(worker: Any, attempt: str) -> None:
    files, check = (ATTEMPTS | MORE)[attempt]
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
        ("python", {"code": "assert call('solution.py', 'same', 'x' * 200_000) == 'x' * 200_000", "runs_workspace": True}),
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
        ("command", {"argv": ["env", "LC_ALL=C", "grep", "-c", "def", "solution.py"], "stdout_equals": "2"}),
        ("command", {"argv": ["timeout", "5", "wc", "-l", "solution.py"], "stdout_contains": "3"}),
        ("command", {"argv": ["sh", "-c", "test -f solution.py && ! grep -q triple solution.py"]}),
        ("command", {"argv": ["sh", "-c", "for f in *.py; do grep -c def $f; done"], "stdout_equals": "2"}),
        ("command", {"argv": ["sh", "-c", "sort < solution.py | head -n 1 | cut -c1-3"], "stdout_equals": "def"}),
        ("command", {"argv": ["awk", "/def/ { n++ } END { print n }", "solution.py"], "stdout_equals": "2"}),
        ("command", {"argv": ["sed", "-n", "1p", "solution.py"], "stdout_equals": "import json"}),
        ("command", {"argv": ["find", ".", "-name", "*.py"], "stdout_equals": "./solution.py"}),
        ("command", {"argv": ["python3", "-m", "py_compile", "solution.py"]}),
        ("command", {"argv": ["python3", "-c", "import re\ncode = re.compile('def')\n"
                                              "assert code.search(open('solution.py').read())"]}),
        ("python", {"code": "import re, subprocess\nassert re.compile('def')\n"
                            "done = subprocess.run(['sort', 'solution.py'], cwd=workspace, capture_output=True)\n"
                            "assert done.stdout.startswith(b'def')"}),
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
