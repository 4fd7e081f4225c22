"""Which built packages fit a machine."""

from pydantic import BaseModel

TOOL = {
    "name": "wheel_names",
    "description": "Which wheel files, by their names, can be installed with a Python (such as cp312) on a platform, which versions of a project there are among them, and which files are no wheels",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    files: list[str]
    python: str = "cp312"
    platform: str = "linux_x86_64"


class Output(BaseModel):
    fits: list[str]
    versions: dict[str, list[str]]
    others: list[str]


def number(tag: str) -> int:
    """cp312 is 312; of what is no such tag, 0."""
    return int(tag[2:]) if tag.startswith("cp") and tag[2:].isdigit() else 0


def run(input: Input) -> Output:
    """NAME-VERSION-PYTHON-ABI-PLATFORM.whl, with a number of the build after the version where there were several; a part may name several tags, with points between."""
    fits: list[str] = []
    versions: dict[str, list[str]] = {}
    others: list[str] = []
    for file in input.files:
        if not file.endswith(".whl"):
            others.append(file)
            continue
        project, version, python, abi, platform = file.removesuffix(".whl").split("-")
        pythons = python.split(".")
        right_python = input.python in pythons or "py3" in pythons
        if abi == "abi3":  # also with every later Python
            right_python = right_python or any(0 < number(tag) <= number(input.python) for tag in pythons)
        elif abi != "none":
            right_python = right_python and abi == input.python
        if right_python and {"any", input.platform} & set(platform.split(".")):
            fits.append(file)
            known = versions.setdefault(project.lower(), [])
            if version not in known:
                known.append(version)
    return Output(fits=fits, versions=versions, others=others)
