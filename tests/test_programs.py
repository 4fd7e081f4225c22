"""What is a program of a skill, what it may do, and what it needs."""

from __future__ import annotations

import pytest

from agentos.programs import is_manifest, is_script, requirements
from agentos.registry.wheels import faults, needed, unlocked
from agentos.resources import is_tool_file, tool_faults, tool_name, tool_path, tool_reference
from agentos.resources.declarations import declared

SCRIPT = "skill/forms/scripts/fill.py"
MANIFEST = "skill/forms/tools/count_rows/tool.json"
INLINE = b'# /// script\n# dependencies = ["rich>=13", "tomli; python_version < \'3.11\'"]\n# ///\nprint(1)\n'


@pytest.mark.parametrize(
    ("path", "script", "manifest"),
    [
        (SCRIPT, True, False),
        ("skill/forms/scripts/run", True, False),
        ("skill/forms/ooxml/scripts/pack.PY", True, False),
        ("skill/forms/tools/fill.py", False, False),
        ("skill/forms/assets/a.txt", False, False),
        ("skill/forms/.wheels/x/y.py", False, False),
        ("tool/forms/tool.py", False, False),
        (MANIFEST, False, True),
        ("tool/count-rows/tool.json", False, True),
        ("skill/forms/tools/_own/tool.json", False, False),
        ("skill/forms/tools/a/b/tool.json", False, False),
    ],
)
def test_a_path_says_whether_it_is_a_program(path: str, script: bool, manifest: bool) -> None:
    assert (is_script(path), is_manifest(path)) == (script, manifest)


def test_programs_are_named_as_tools_are() -> None:
    paths = [SCRIPT, MANIFEST, "tool/count-rows/tool.json"]
    assert [tool_path(tool_reference(path), paths) for path in paths] == paths
    assert tool_reference(SCRIPT) == "forms/scripts/fill.py"
    assert [tool_name(path) for path in paths[1:]] == ["count_rows", "count_rows"]
    assert [is_tool_file(path) for path in paths] == [False, True, True]


@pytest.mark.parametrize(
    ("source", "effects"),
    [
        (b'{"effects": ["pure"]}', {"pure"}),
        (b"{}", {"external"}),
        (b"[", {"external"}),
        (b"[1]", {"external"}),
    ],
)
def test_the_kernel_reads_the_effects_itself(source: bytes, effects: set[str]) -> None:
    assert declared(MANIFEST, source).effects == effects
    assert declared(SCRIPT, source).effects == {"read", "write"}


@pytest.mark.parametrize(
    "source",
    [b"", b"[]", b'{"name": "other", "description": "x", "effects": ["read"], "command": ["sh"]}',
     b'{"name": "count_rows", "description": "x", "effects": ["magic"], "command": ["sh"]}',
     b'{"name": "count_rows", "description": "x", "effects": ["read"], "command": "sh x"}'],
)  # fmt: skip
def test_a_manifest_that_breaks_its_rules_is_refused(source: bytes) -> None:
    assert tool_faults(MANIFEST, source)


def test_requirements_of_scripts_are_wanted_and_their_lack_is_only_said() -> None:
    files = {
        "skill/forms/requirements.txt": b"# all\nrich>=13  # nice\n-r other.txt\nx @ https://example.org/x\n\n",
        SCRIPT: INLINE,
    }
    assert requirements(files) == {"rich>=13", "tomli", "x @ https://example.org/x"}
    assert needed(files) == ("rich>=13", "tomli")
    assert faults(files) == []
    assert "rich>=13" in unlocked(files)[0]
    assert unlocked({SCRIPT: b"print(1)\n"}) == []
