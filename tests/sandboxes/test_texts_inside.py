"""Faults in texts beside the code, searched in real boxes: data that a Python tool reads, and a program's script."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentos.daemon.evolve.benches import BoxBenches
from agentos.domain import Call, Check, Json, Kind, ResourceId
from agentos.evolver.policy import Policy
from agentos.ports import Brief, Case
from agentos.proposers.repair import RepairProposer
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.sandboxes.choice import PlacesHere
from agentos.shipped import seed_files

READER = '''"""The tax of a price."""

import json
from pathlib import Path

from pydantic import BaseModel

TOOL = {"name": "probe", "description": "tax", "effects": ["read"], "dependencies": []}


class Input(BaseModel):
    price: int


class Output(BaseModel):
    tax: float


def run(input: Input) -> Output:
    rates = json.loads(Path(__file__).with_name("rates.json").read_text())
    return Output(tax=input.price * rates["percent"] / 100)
'''
DOCUMENT = """{
  "name": "probe", "description": "the largest number", "effects": ["read"], "command": ["bash", "run.sh"]
}
"""
SCRIPT = """# the largest number of the file
largest=$(sort -n in.txt | head -n 1)
echo "{\\"largest\\": $largest}"
"""


def found(
    tmp_path: Path,
    boxes: Bubblewrap,
    files: dict[str, str],
    main: str,
    cases: list[Case],
    working: list[tuple[Case, Json]],
) -> list[dict[str, str]]:
    """The texts of the proposals, for each of which a person is asked."""
    files = {f"tool/probe/{name}": text for name, text in files.items()}
    registry = Registry.init(tmp_path / "registry.git", seed_files())
    about = {"tool/probe/resource.toml": b'description = "For a test."\n'}
    registry.commit(about | {path: text.encode() for path, text in files.items()}, "Add", "edit")
    brief = Brief(
        "evo-1", registry.stable(), ResourceId(Kind.TOOL, "probe"), f"tool/probe/{main}",
        files[f"tool/probe/{main}"], tuple(cases), tuple(working), 4.0, 6,
        files=files, searched=Policy().surface.searched, surface=Policy().surface.allow,
    )  # fmt: skip
    proposals = list(RepairProposer(BoxBenches(registry, PlacesHere(boxes)), 1).propose(brief))
    texts = [each for each in proposals if not any(path.endswith(".py") for path in each.files)]
    assert all(0 < proposal.prior < Policy().replay.prior_min for proposal in texts)
    return [{**proposal.files} for proposal in proposals]


def case(number: int, args: dict[str, Json], want: Json, **inputs: bytes) -> Case:
    given = {f"{name}.txt": content for name, content in inputs.items()}
    return Case(f"t{number}", Call("probe", args), given, (Check("equals", {"value": want}),))


@pytest.mark.sandbox
def test_a_number_in_the_data_that_a_tool_reads_is_mended_and_the_code_stays(
    tmp_path: Path, worker_sandbox: Bubblewrap
) -> None:
    files = {"tool.py": READER, "rates.json": '{"percent": 190}\n', "note.txt": "19"}
    cases = [case(n, {"price": n}, {"tax": n * 19 / 100}) for n in (100, 50)]
    working = [(case(0, {"price": 0}, {"tax": 0.0}), {"tax": 0.0})]
    made = found(tmp_path, worker_sandbox, files, "tool.py", cases, working)
    assert made[0] == {"tool/probe/rates.json": '{"percent": 19}\n'}


SPLITTER = '''"""Parts of an address."""

from _parts import behind
from pydantic import BaseModel

TOOL = {"name": "probe", "description": "domain", "effects": ["pure"], "dependencies": []}


class Input(BaseModel):
    address: str


class Output(BaseModel):
    domain: str


def run(input: Input) -> Output:
    return Output(domain=behind(input.address))
'''
PARTS = """def behind(address):
    whole = address.strip()
    return whole.split("@")[0].lower()
"""


@pytest.mark.sandbox
def test_a_fault_of_a_helper_module_is_mended_there(tmp_path: Path, worker_sandbox: Bubblewrap) -> None:
    files = {"tool.py": SPLITTER, "_parts.py": PARTS, "_other.py": "X = 1\n"}
    addresses = ("Ann@Post.de", "bob@mail.com ", "cy@Web.net")
    cases = [
        case(n, {"address": text}, {"domain": text.strip().split("@")[1].lower()})
        for n, text in enumerate(addresses)
    ]
    working = [(case(7, {"address": "home@home"}, {"domain": "home"}), {"domain": "home"})]
    made = found(tmp_path, worker_sandbox, files, "tool.py", cases, working)
    assert made
    assert {*made[0]} == {"tool/probe/_parts.py"}
    assert made[0]["tool/probe/_parts.py"] in (PARTS.replace("[0]", "[1]"), PARTS.replace("[0]", "[-1]"))


@pytest.mark.sandbox
def test_a_line_of_a_programs_script_is_mended(tmp_path: Path, worker_sandbox: Bubblewrap) -> None:
    files = {"tool.json": DOCUMENT, "run.sh": SCRIPT}
    cases = [
        case(1, {}, {"largest": 10}, **{"in": b"9\n10\n2\n"}),
        case(2, {}, {"largest": 7}, **{"in": b"7\n1\n"}),
    ]
    working = [(case(3, {}, {"largest": 5}, **{"in": b"5\n"}), {"largest": 5})]
    made = found(tmp_path, worker_sandbox, files, "tool.json", cases, working)
    lines = {each["tool/probe/run.sh"].splitlines()[1] for each in made}
    assert lines <= {
        "largest=$(sort -n in.txt | tail -n 1)",
        "largest=$(sort -n -r in.txt | head -n 1)",
        "largest=$(sort -nr in.txt | head -n 1)",
    }
    assert lines
