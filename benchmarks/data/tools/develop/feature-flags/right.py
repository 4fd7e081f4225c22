"""Features that are switched on."""

from configparser import ConfigParser
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "feature_flags",
    "description": "Which features of an INI file's section are on, by name: true, yes, on and 1 mean on; false, no, off, 0 and nothing mean off, in any case; and their number of all",
    "effects": ["read"],
    "dependencies": [],
}

ON = {"true", "yes", "on", "1"}
OFF = {"false", "no", "off", "0", ""}


class Input(BaseModel):
    path: str
    section: str = "flags"


class Output(BaseModel):
    on: list[str]
    off: list[str]
    share: str


def enabled(text: str) -> bool:
    word = text.strip().lower()
    if word not in ON | OFF:
        raise ValueError(f"{text!r} is neither on nor off")
    return word in ON


def run(input: Input) -> Output:
    parser = ConfigParser(interpolation=None)
    parser.read_string(Path(input.path).read_text(encoding="utf-8"))
    flags = dict(parser[input.section]) if parser.has_section(input.section) else {}
    on = sorted(name for name, text in flags.items() if enabled(text))
    return Output(on=on, off=sorted(set(flags) - set(on)), share=f"{len(on)} of {len(flags)}")
