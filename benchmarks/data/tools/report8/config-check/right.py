"""Faults of a configuration, held against a schema."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

TOOL = {
    "name": "config_check",
    "description": "Faults of a JSON configuration against a schema: type, required, default, min, max, choices, keys (of a table), items (of a list)",
    "effects": ["read"],
    "dependencies": [],
}

TYPES: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "int": (int,),
    "number": (int, float),
    "bool": (bool,),
    "table": (dict,),
    "list": (list,),
}


class Input(BaseModel):
    config: str
    schema_path: str
    strict: bool = Field(default=False, description="Whether unknown keys are faults")


class Output(BaseModel):
    faults: list[str]
    config: dict[str, Any] = Field(description="With the defaults of the keys that were left out")


def fits(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "bool"
    return isinstance(value, TYPES[kind])


def check(value: Any, rule: dict[str, Any], path: str, faults: list[str], strict: bool) -> None:
    """Adds the faults of a value; defaults are filled in."""
    if not fits(value, rule["type"]):
        faults.append(f"{path}: not of type {rule['type']}")
        return
    if "choices" in rule and value not in rule["choices"]:
        faults.append(f"{path}: not one of {', '.join(map(str, rule['choices']))}")
    if "min" in rule and value < rule["min"]:
        faults.append(f"{path}: below {rule['min']}")
    if "max" in rule and value > rule["max"]:
        faults.append(f"{path}: above {rule['max']}")
    if rule["type"] == "table":
        check_table(value, rule.get("keys", {}), path, faults, strict)
    elif rule["type"] == "list" and "items" in rule:
        for number, item in enumerate(value):
            check(item, rule["items"], f"{path}[{number}]", faults, strict)


def check_table(
    table: dict[str, Any], keys: dict[str, Any], path: str, faults: list[str], strict: bool
) -> None:
    for key, rule in keys.items():
        place = f"{path}.{key}" if path else key
        if key not in table:
            if rule.get("required"):
                faults.append(f"{place}: missing")
                continue
            if "default" in rule:
                table[key] = rule["default"]
            continue
        check(table[key], rule, place, faults, strict)
    if strict:
        unknown = [key for key in table if key not in keys]
        faults.extend(f"{path}.{key}: unknown" if path else f"{key}: unknown" for key in unknown)


def run(input: Input) -> Output:
    config = json.loads(Path(input.config).read_text(encoding="utf-8"))
    keys = json.loads(Path(input.schema_path).read_text(encoding="utf-8"))
    faults: list[str] = []
    check_table(config, keys, "", faults, input.strict)
    return Output(faults=faults, config=config)
