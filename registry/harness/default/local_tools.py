"""Does what is in the catalog and no tool of the registry: asks the kernel, or reads what is at hand."""

from __future__ import annotations

from typing import Any

from observations import PAGE_MAX, Outputs
from tool_catalog import Entry, ToolCatalog

from agentos.worker.sdk import Clip, Failed, Refused, Sdk, SkillCard, ToolResult, WireFault, fault


class LocalTools:
    """Answers each as a tool's result, whatever happens."""

    def __init__(self, sdk: Sdk, catalog: ToolCatalog, outputs: Outputs) -> None:
        self._sdk = sdk
        self._catalog = catalog
        self._outputs = outputs

    def run(self, entry: Entry, args: dict[str, Any]) -> ToolResult:
        """Do it. Safe from many threads."""
        try:
            return _result(output=getattr(self, f"_{entry.kind}")(entry, args))
        except (Refused, Failed) as error:
            return _result(error.fault)
        except LookupError as error:
            return _result(fault("input", str(error.args[0])))

    def _read_output(self, entry: Entry, args: dict[str, Any]) -> str:
        offset, limit = _number(args, "offset", 0), _number(args, "limit", PAGE_MAX)
        return self._outputs.page(_text(args, "reference"), offset, limit)

    def _read_skill(self, entry: Entry, args: dict[str, Any]) -> str:
        name, file = _text(args, "skill"), args.get("file") or "SKILL.md"
        skills = {skill.name: skill for skill in self._catalog.skills}
        if name not in skills:
            raise LookupError(f"there is no skill '{name}'; there are: {', '.join(skills)}")
        skill = skills[name]
        if file not in skill.files:
            raise LookupError(f"'{name}' has no text '{file}'; it has: {', '.join(skill.files)}")
        try:
            text = self._sdk.read(f"skill/{name}/{file}")
        except UnicodeDecodeError:
            raise LookupError(f"'{file}' is no text; it lies at {skill.folder}/{file}") from None
        return _placed(text, skill) if file == "SKILL.md" else text

    def _find_skills(self, entry: Entry, args: dict[str, Any]) -> dict[str, Any]:
        found = self._sdk.find_skills(_text(args, "query"), _number(args, "limit", 3))
        return {
            "skills": found,
            "these_are": "texts alone: the tools and scripts that they bring are not at hand",
        }

    def _recall(self, entry: Entry, args: dict[str, Any]) -> dict[str, Any]:
        found = self._sdk.recall(_text(args, "query"), _number(args, "limit", 5))
        return {"memories": [memory["text"] for memory in found], "these_are": "reference, not rules"}

    def _remember(self, entry: Entry, args: dict[str, Any]) -> dict[str, Any]:
        self._sdk.remember(_text(args, "text"), str(args.get("why") or ""))
        return {"proposed": True}

    def _person(self, entry: Entry, args: dict[str, Any]) -> dict[str, Any]:
        return {"answer": self._sdk.ask_person(_text(args, "question"), _texts(args, "choices"))}

    def _agent(self, entry: Entry, args: dict[str, Any]) -> Any:
        given = self._sdk.delegate(entry.ref, _text(args, "goal"), _texts(args, "inputs"))
        if not given.get("ok"):
            raise Failed(fault("agent", f"{entry.ref} did not succeed: {given.get('reason', '')}"))
        return given.get("answer")


def _placed(text: str, skill: SkillCard) -> str:
    """With what its author could not know: where its files lie, and how its scripts are run."""
    for name in ("{baseDir}", "${CLAUDE_SKILL_DIR}"):
        text = text.replace(name, skill.folder)
    others = [file for file in skill.files[1:] if not file.startswith("tools/")]
    if others:
        text += f"\n\n[Its files, in {skill.folder}: {', '.join(others)}]"
    if skill.scripts:
        text += f"\n[run_script runs, with the workspace as current directory: {', '.join(skill.scripts)}]"
    return text


def _result(found: WireFault | None = None, output: Any = None) -> ToolResult:
    return ToolResult(found is None, output, found, Clip(), Clip(), 0.0)


def _text(args: dict[str, Any], name: str) -> str:
    value = args.get(name)
    if not isinstance(value, str) or not value.strip():
        raise Failed(fault("input", f"'{name}' has to be a text that is not empty"))
    return value


def _number(args: dict[str, Any], name: str, otherwise: int) -> int:
    value = args.get(name, otherwise)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Failed(fault("input", f"'{name}' has to be a whole number"))
    return value


def _texts(args: dict[str, Any], name: str) -> list[str]:
    value = args.get(name) or []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise Failed(fault("input", f"'{name}' has to be a list of texts"))
    return value
