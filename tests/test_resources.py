"""What a resource may look like, kind by kind, and the sentences for what it may not."""

from __future__ import annotations

import json
from codecs import BOM_UTF8

import pytest

from agentos import shipped
from agentos.domain import Kind, ResourceId
from agentos.errors import ErrorKind, Invalid, NotFound, UserError
from agentos.programs import LOCK_FILE
from agentos.resources import (
    examine,
    is_tool_file,
    missing_references,
    parse_id,
    path_fault,
    read,
    resource_of,
    tool_faults,
    tool_name,
    tool_path,
    tool_reference,
)
from agentos.resources.declarations import definition_of, server_tool, without_server_locks
from agentos.resources.documents import FILE_MAX
from tests.refusals import raises

SKILL = ResourceId(Kind.SKILL, "counting")
GOOD = "---\nname: counting\ndescription: Counts.\n---\nBody\n"
TOOL = b'''"""Count."""
from pydantic import BaseModel
TOOL = {"name": "count_up", "description": "Counts.", "effects": ["read"], "dependencies": []}
class Input(BaseModel):
    n: int
class Output(BaseModel):
    n: int
def run(input: Input) -> Output:
    return Output(n=input.n + 1)
'''


def skill(front: str, **files: bytes) -> dict[str, bytes]:
    return {
        "skill/counting/SKILL.md": front.encode(),
        **{f"skill/counting/{path}": content for path, content in files.items()},
    }


def test_everything_that_ships_is_right() -> None:
    files = shipped.seed_files()
    resources = {found for path in files if (found := resource_of(path))}
    # only people have them
    assert {resource.kind for resource in resources} == set(Kind) - {Kind.MODEL, Kind.RULE}
    for resource in resources:
        found = examine(
            resource, {path: data for path, data in files.items() if path.startswith(f"{resource}/")}
        )
        assert (found.faults, found.warnings) == ((), ()), resource
    for name in ("registry", "evolver", "skills", "sandboxes"):
        assert shipped.folder(name).is_dir()


def test_a_skill_says_what_it_is() -> None:
    front = (
        "---\nname: counting\ndescription: Counts.\nlicense: MIT\ncompatibility: Linux\n"
        'allowed-tools: Read Write\nmetadata:\n  agentos-evolvable: "false"\n---\nBody\n'
    )
    found = read(SKILL, skill(front, **{"tools/count_up.py": TOOL, "tools/_helper.py": b"x = 1\n"}))
    assert (found.description, found.evolvable) == ("Counts.", False)
    assert found.tools == ("skill/counting/tools/count_up.py",)


def test_a_helper_module_without_the_contract_is_no_tool() -> None:
    assert read(SKILL, skill(GOOD, **{"tools/helper.py": b"def add(): ...\n"})).tools == ()
    half = examine(SKILL, skill(GOOD, **{"tools/helper.py": b"def run(input): ...\n"}))
    assert half.faults == tuple(
        f"tools/helper.py: '{name}' is missing" for name in ("TOOL", "Input", "Output")
    )


def test_a_helper_module_that_is_not_python_is_a_warning() -> None:
    found = examine(SKILL, skill(GOOD, **{"tools/count_up.py": TOOL, "tools/_helper.py": b"def f(:\n"}))
    assert found.resource is not None
    assert [said.split(":")[0] for said in found.warnings] == ["tools/_helper.py is not Python"]


@pytest.mark.parametrize(
    ("text", "description", "said"),
    [
        ("# Count\n\nCounts *all* lines.\n", "Counts all lines.", "no front matter"),
        ("---\nname: counting\ndescription: Counts.\n\n# Body\n", "Counts.", "has no end"),
        ("---\nname: [\ndescription: Counts.\n---\n", "Counts.", "is not YAML"),
        ("---\n- a\n- b\n---\nCounts.\n", "Counts.", "no keys and values"),
        ("---\ndescription: Counts.\n---\n", "Counts.", "no 'name'"),
        ("---\nname: other\ndescription: Counts.\n---\n", "Counts.", "called 'counting'"),
        ("---\nname: counting\n---\n# H\n\nCounts\nlines.\n\nMore.", "Counts lines.", "no 'description'"),
        ("---\nname: counting\ndescription: ' '\n---\n# Counts\n", "Counts", "no 'description'"),
        ("---\nname: counting\ndescription: [a, 3]\n---\n", "a 3", "is no text"),
        (f"---\nname: counting\ndescription: {'x' * 1025}\n---\n", "x" * 1024, "has 1025 characters"),
        ("---\nname: counting\nname: counting\ndescription: x\n---\n", "x", "'name' stands there twice"),
        ("---\nname: counting\ndescription: x\nmetadata: {a: 1, b: [2]}\n---\n", "x", "taken as texts"),
        ("---\nname: counting\ndescription: x\nmetadata: more\n---\n", "x", "was passed over"),
        ("---\nname: counting\ndescription: x\nallowed-tools: {a: 1}\n---\n", "x", "'allowed-tools'"),
        ("---\nname: counting\ndescription: x\nversion: 2024-01-02\n---\n", "x", "unknown key 'version'"),
        ("---\nname: counting\ndescription: Use when: it counts\n---\n", "Use when: it counts", "not YAML"),
        ('---\nname: counting\ndescription: Use: "this"\n---\n', 'Use: "this"', "not YAML"),
        ('---\nname: counting\ndescription: "Use: this"\nlicense: a: b\n---\n', "Use: this", "not YAML"),
        ("---\nname: counting\ndescription:\n  - one\n  - two\nx: a: b\n---\n", "one two", "is no text"),
        ("---\nname: counting\ndescription: >\n  Use: it\n  counts\nlicense: a: b\n---\n", "Use: it counts", "not YAML"),
        ("---\nname: &a counting\ndescription: *a\n---\n", "*a", "aliases"),
        ("---\nname: !!python/object/apply:os.system ['true']\ndescription: x\n---\n", "x", "is not YAML"),
        ("---\nname: counting\ndescription: x\nuser-invocable: !!bool often\n---\n", "x", "is not YAML"),
        ("---\nname: counting\ndescription: x\nsince: !!timestamp lately\n---\n", "x", "is not YAML"),
        ("---\nname: counting\nlicense: !!bool maybe\ndescription: x\n---\n", "x", "is not YAML"),
        ("---\nname: counting\nlicense: !!timestamp soon\ndescription: x\n---\n", "x", "is not YAML"),
        ("---\n" + "[" * 5_000 + "\n---\nCounts.\n", "Counts.", "is not YAML"),
    ],
)  # fmt: skip
def test_a_skill_is_loaded_as_it_is_and_what_was_assumed_is_said(
    text: str, description: str, said: str
) -> None:
    found = examine(SKILL, skill(text))
    assert found.resource is not None, found.faults
    assert (found.resource.description, found.resource.evolvable) == (description, True)
    assert any(said in warning for warning in found.warnings), found.warnings


def test_ends_of_lines_and_a_byte_order_mark_are_nothing_to_speak_of() -> None:
    found = examine(SKILL, skill("\ufeff" + GOOD.replace("\n", "\r\n")))
    assert (found.resource and found.resource.description, found.warnings) == ("Counts.", ())


@pytest.mark.parametrize("said", ["'no'", "maybe", "false", "'False'"])
def test_only_a_yes_lets_a_skill_evolve(said: str) -> None:
    for front in (
        f"metadata: {{agentos-evolvable: {said}}}",
        f"metadata:\n  agentos-evolvable: {said}\nx: y: z",
    ):
        assert not read(SKILL, skill(f"---\nname: counting\ndescription: x\n{front}\n---\n")).evolvable


def test_unknown_keys_are_a_warning() -> None:
    found = examine(SKILL, skill("---\nname: counting\ndescription: x\nversion: '1'\n---\n"))
    assert found.resource is not None
    assert "unknown key 'version'" in found.warnings[0]
    tool = ResourceId(Kind.TOOL, "count-up")
    files = {
        "tool/count-up/tool.py": TOOL,
        "tool/count-up/resource.toml": b'description = "x"\ncolour = "red"\n',
    }
    assert examine(tool, files).warnings == ("resource.toml: unknown key 'colour'",)


def test_text_must_be_utf_8_and_files_small() -> None:
    assert "not UTF-8" in examine(SKILL, {"skill/counting/SKILL.md": b"---\n\xff"}).faults[0]
    big = examine(SKILL, skill(GOOD, **{"data.bin": b"x" * (FILE_MAX + 1)}))
    assert "at most" in big.faults[0]
    many = examine(SKILL, skill(GOOD, **{f"{number}.txt": b"" for number in range(501)}))
    assert "at most 500" in many.faults[0]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b"TOOL = {", b"CARD = {", "'TOOL' is missing"),
        (b"class Input", b"class In", "'Input' is missing"),
        (b"def run", b"def go", "'run' is missing"),
        (b"def run(input: Input)", b"async def run()", "must be a function of one argument"),
        (b"(input: Input)", b"(input: Input, more: int)", "must be a function of one argument"),
        (b'"effects": ["read"]', b'"effects": ["nuke"]', "effect 'nuke' is not one of pure, read"),
        (b'"effects": ["read"], ', b"", "'effects' must be a list"),
        (b'"count_up"', b'"count"', "but the file makes it 'count_up'"),
        (b'"Counts."', b'""', "'description' must be a text"),
        (b'"dependencies": []', b'"dependencies": "x"', "'dependencies' must be a list"),
        (b'"dependencies"', b'"colour"', "unknown key 'colour'"),
        (b'{"name"', b'{print(1): 2, "name"', "must be a literal dictionary"),
        (b"def run(", b"def run(:", "is not Python: line 8"),
        (b"Count.", b"\xff", "not Python source in UTF-8"),
        (b"Count.", b"\x00", "tools/count_up.py is not Python"),
    ],
)
def test_each_fault_of_a_tool_has_a_sentence(old: bytes, new: bytes, said: str) -> None:
    found = tool_faults("skill/counting/tools/count_up.py", TOOL.replace(old, new, 1))
    assert any(said in fault for fault in found), found


def test_a_tool_may_be_asynchronous() -> None:
    assert tool_faults("skill/counting/tools/count_up.py", TOOL.replace(b"def run", b"async def run")) == []


def test_source_that_would_exhaust_the_parser_is_a_fault() -> None:
    assert tool_faults("tool/x/tool.py", b"x = " + b"(" * 100_000)
    assert tool_faults("tool/x/tool.py", b"x = " + b"-" * 100_000 + b"1")


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        (Kind.AGENT, "description = 3", "'description' must be a text"),
        (Kind.AGENT, "description = 'x'\nharness = ''", "'harness' must be a text"),
        (Kind.AGENT, "description = 'x'\ntools = 'all'", "'tools' must be a list"),
        (Kind.AGENT, "description = 'x'\nevolvable = 'no'", "'evolvable' must be true or false"),
        (Kind.AGENT, "description = ", "is not TOML"),
        (Kind.AGENT, "description = " + "9" * 5_000, "is not TOML"),
        (
            Kind.AGENT,
            "description = 'x'\nasks = ['money']",
            "'money' cannot be asked; 'asks' may hold recall",
        ),
        (Kind.AGENT, "description = 'x'\ncompaction = 'none'", "'compaction' must be one of digest, model"),
        (Kind.AGENT, "description = 'x'\n[limits]\ncolour = 3", "limit 'colour' is not one of steps"),
        (Kind.ENVIRONMENT, "description = 'x'\nlimits = 3", "'limits' must be a table"),
        (Kind.ENVIRONMENT, "description = 'x'\n[limits]\ncolour = 3", "limit 'colour' is not one of steps"),
        (Kind.ENVIRONMENT, "description = 'x'\n[limits]\nsteps = true", "must be a number"),
        (Kind.ENVIRONMENT, "description = 'x'\n[limits]\nsteps = -1", "must be a number"),
        (Kind.ENVIRONMENT, "description = 'x'\n[limits]\nwall_s = inf", "must be a number"),
        (Kind.PROMPT, "description = 'x'", "prompt.md is missing"),
        (Kind.MEMORY, "description = 'x'", "memory.md is missing"),
        (Kind.HARNESS, "description = 'x'", "harness.py is missing"),
        (Kind.HARNESS, "description = 'For the command line'", "harness.py is missing"),
        (Kind.MODEL, "description = 'x'\n[parameters]\nseed = 2026-01-31", "'parameters' must be a table"),
        (Kind.MODEL, "description = 'x'\n[parameters]\ntop_p = nan", "'parameters' must be a table"),
    ],
)
def test_each_fault_of_a_document_has_a_sentence(kind: Kind, text: str, said: str) -> None:
    resource = ResourceId(kind, "default")
    found = examine(resource, {f"{resource}/resource.toml": text.encode()}).faults
    assert any(said in fault for fault in found), found


def test_a_missing_document_is_one_fault() -> None:
    resource = ResourceId(Kind.AGENT, "default")
    assert [fault for fault in examine(resource, {}).faults if "missing" in fault] == [
        "resource.toml is missing"
    ]
    with raises(Invalid, message="resource.no_document"):
        read(resource, {})


def test_agents_name_what_exists() -> None:
    agent = read(
        ResourceId(Kind.AGENT, "mine"), {"agent/mine/resource.toml": b"description = 'x'\nprompt = 'mine'\n"}
    )
    known = [ResourceId(kind, "default") for kind in Kind]
    assert missing_references(agent, known) == ["agent/mine: prompt 'mine' does not exist"]


@pytest.mark.parametrize(
    "text", ["skill", "skill/", "/", "", "gadget/x", "skill/A", "skill/a/b", "skill/a@1", "skill/-a"]
)
def test_names_are_checked(text: str) -> None:
    with pytest.raises(UserError):
        parse_id(text)


def test_paths_and_resources() -> None:
    assert parse_id("skill/csv-report") == ResourceId(Kind.SKILL, "csv-report")
    assert resource_of("skill/a/b/c.txt") == ResourceId(Kind.SKILL, "a")
    assert resource_of("skill/a") is None
    assert "levels deep" in path_fault("skill/a/1/2/3/4/5/6/7")
    assert path_fault("skill/a/data (1), new=2@x.csv") == ""


def test_tool_references() -> None:
    paths = [
        "tool/word-count/tool.py",
        "skill/a/tools/sum.py",
        "skill/b/tools/sum.py",
        "skill/a/tools/word_count.py",
    ]
    assert tool_path("word-count", paths) == tool_path("word_count", paths) == paths[0]
    assert tool_path("a/word_count", paths) == paths[3]
    assert tool_path("b/sum", paths) == paths[2]
    with raises(UserError, ErrorKind.AMBIGUOUS, names=["a/sum, b/sum"]):
        tool_path("sum", paths)
    for unknown in ("c/sum", "nothing", "", "a/b/sum", "../sum"):
        with pytest.raises(NotFound):
            tool_path(unknown, paths)
    assert [tool_path(tool_reference(path), paths) for path in paths] == paths
    assert tool_name("tool/word-count/tool.py") == "word_count"
    assert not is_tool_file("skill/a/tools/_helper.py")
    assert not is_tool_file("skill/a/tools/deep/x.py")


@pytest.mark.parametrize("text", ["", " \n", "---\n{}\n---\n", "---\n" + "a" * (1 << 17) + "\n---\n", None])
def test_a_skill_file_that_cannot_be_read_is_one_fault(text: str | None) -> None:
    files = {} if text is None else {f"{SKILL}/SKILL.md": text.encode()}
    assert len(examine(SKILL, files).faults) == 1


def test_what_a_server_brings_is_not_for_a_runs_box() -> None:
    tool = b'{"command": ["x"], "mcp": {"tool": "a", "definition": "0"}}'
    files = {
        f"skill/s/{LOCK_FILE}": b"",
        "skill/s/tools/a/tool.json": tool,
        f"skill/t/{LOCK_FILE}": b"",
    }
    assert [*without_server_locks(files)] == [
        "skill/s/tools/a/tool.json",
        f"skill/t/{LOCK_FILE}",
    ]
    found = server_tool("skill/s/tools/a/tool.json", tool)
    assert found is not None
    assert (found.resource, found.tool, found.command, found.brings) == ("skill/s", "a", ("x",), "")
    for broken in (b'{"mcp": 1}', b'{"mcp": {}', b'{"mcp": {"tool": "a", "definition": "0"}, "command": 7}'):
        assert server_tool("skill/s/tools/a/tool.json", broken) is None
    one = {"name": "a", "description": "x", "inputSchema": {}, "_meta": {"now": 1}}
    assert definition_of(one) == definition_of({**one, "_meta": {"now": 2}, "annotations": None})
    assert definition_of(one) != definition_of({**one, "description": "y"})


def test_a_document_that_cannot_be_read_is_told_once_and_of_nothing_else() -> None:
    for kind in ("agent", "model", "environment", "rule"):
        for broken in (b"[[[", b"\xff", b"a = " + b"[" * 5000):
            found = examine(parse_id(f"{kind}/x"), {f"{kind}/x/resource.toml": broken})
            assert found.resource is None
            assert len(found.faults) == 1, (kind, found.faults)


def test_a_document_may_begin_with_a_byte_order_mark() -> None:
    content = BOM_UTF8 + b'description = "As an editor on Windows writes it"\n'
    found = examine(parse_id("environment/x"), {"environment/x/resource.toml": content})
    assert found.resource is not None, found.faults


def test_near_names_are_told() -> None:
    files = {"agent/x/resource.toml": b'description = "x"\nharness = "defualt"\nprompt = "zzz"\nskils = []\n'}
    found = examine(parse_id("agent/x"), files)
    assert found.resource is not None
    assert [warning.count("did you mean skills?") for warning in found.warnings] == [1]
    known = [parse_id(name) for name in ("harness/default", "prompt/default", "environment/default")]
    harness, prompt = missing_references(found.resource, known)
    assert "did you mean default?" in harness
    assert "did you mean" not in prompt


MCP = {
    "tool": "now",
    "definition": "d" * 64,
    "environment": {},
    "brings": "",
    "hosts": ["a.example"],
    "inputs": ["*.txt"],
}


def manifest(mcp: object) -> bytes:
    """A ``tool.json`` of a server's tool; the key ``mcp`` stands in its fourth line."""
    says = {"name": "now", "description": "The time.", "effects": ["read"], "command": ["./clock"]}
    head = json.dumps(says)[1:-1]
    return f'{{\n{head},\n\n"mcp": {json.dumps(mcp, indent=1)}\n}}\n'.encode()


@pytest.mark.parametrize(
    ("mcp", "line", "key"),
    [
        ("now", 4, "mcp"),
        ([MCP], 4, "mcp"),
        ({}, 4, "definition"),
        ({"definition": "d"}, 4, "tool"),
        (MCP | {"tool": 3}, 5, "tool"),
        (MCP | {"definition": ""}, 6, "definition"),
        (MCP | {"environment": ["A=b"]}, 7, "environment"),
        (MCP | {"environment": {"A": {}}}, 7, "environment"),
        (MCP | {"brings": "../../etc"}, 8, "brings"),
        (MCP | {"hosts": "a.example"}, 9, "hosts"),
        (MCP | {"inputs": "*.txt"}, 12, "inputs"),
        (MCP | {"url": 5}, 15, "url"),
    ],
)
def test_what_is_wrong_with_a_servers_document_is_told_by_file_line_and_key(
    mcp: object, line: int, key: str
) -> None:
    path = "skill/clock/tools/now/tool.json"
    assert tool_faults(path, manifest(MCP)) == []
    told = [fault for fault in tool_faults(path, manifest(mcp)) if f"'{key}'" in fault]
    assert [fault.split(": ")[:2] for fault in told] == [["tools/now/tool.json", f"line {line}"]]


@pytest.mark.parametrize(
    "content", [b"", b"\0", b"\xff", b"{", b"[1]", b"3", b"[" * 100_000, b'{"mcp": {', b"null", b'"mcp"']
)
def test_garbage_for_a_servers_document_is_told_by_file(content: bytes) -> None:
    (fault, *_) = tool_faults("skill/clock/tools/now/tool.json", content)
    assert "tools/now/tool.json" in fault
