"""Checks of other distributions: each is one module, whose text judges in the grader's box like a ``python`` check.

The module has ``faults(spec)``, a list of sentences that is empty where the parameters may be used (asked on the
host), and ``judge(spec, answer, workspace)``, why the answer fails or "" (asked in the box, where there are the
standard library and pydantic, no network, no host files, and nothing else of the plug-in).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentos import checks
from agentos.domain import Check, CheckResult
from agentos.errors import Unavailable, UserError
from agentos.plugins import registry
from agentos.plugins.registry import Plugin, PluginFailed

if TYPE_CHECKING:
    from agentos.messages import WireCheck, WireCheckResult

SOURCE_MAX = 256 << 10
_ASSERTED = "the assertion failed: "
_ENDING = """

_why = judge(__import__("json").loads({spec!r}), answer, workspace)
if not isinstance(_why, str):
    raise TypeError(f"judge gave a {{type(_why).__name__}}, and no text")
assert not _why, _why
"""


def faults(kind: str, spec: Mapping[str, Any]) -> list[str]:
    """As ``checks.faults``, for checks of any kind that there is."""
    if kind in checks.KINDS:
        return checks.faults(kind, spec)
    try:
        plugin = registry.named("checks", kind)
    except UserError:
        return [f"'{kind}' is no kind of check: use one of {', '.join(registry.names('checks'))}"]
    try:
        module = registry.load(plugin)
        _source(plugin, module)
        return [
            f"{kind}: {fault}" for fault in registry.call(plugin, lambda: list(module.faults(_own(spec))))
        ]
    except PluginFailed as error:
        return [str(error)]


@dataclass(frozen=True, slots=True)
class SentChecks:
    """Checks as a box gets them, and how what comes back is read."""

    asked: Sequence[Check]
    wire: Sequence[WireCheck]
    by: Sequence[str]  # name, distribution and version of the plug-in, or ""

    def results(self, found: Sequence[WireCheckResult]) -> tuple[CheckResult, ...]:
        """One for each check, under its own kind."""
        return tuple(
            CheckResult(check.kind, result.passed, _detail(result.detail, by), by)
            for check, result, by in zip(self.asked, found, self.by, strict=True)
        )


def sent(asked: Sequence[Check]) -> SentChecks:
    """Raises Unavailable where the plug-in of a check is not here: its outcome would say nothing of the run."""
    pairs = [_sent(check) for check in asked]
    return SentChecks(asked, [wire for wire, _ in pairs], [by for _, by in pairs])


def _sent(check: Check) -> tuple[WireCheck, str]:
    from agentos.messages import WireCheck  # its models take long to build, and a task file needs none

    if check.kind in checks.KINDS:
        return WireCheck(kind=check.kind, spec=dict(check.spec)), ""
    try:
        plugin = registry.named("checks", check.kind)
        code = _source(plugin, registry.load(plugin))
    except UserError as error:
        raise Unavailable(f"a check cannot be applied: {error}") from None
    code += _ENDING.format(spec=json.dumps(_own(check.spec)))
    return WireCheck(kind="python", spec={"code": code}), str(plugin)


def _own(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters without what the kernel says of where they are from."""
    return {key: value for key, value in spec.items() if key != "made_by"}


def _source(plugin: Plugin, module: Any) -> str:
    try:
        text = Path(module.__file__).read_text("utf-8")
    except (AttributeError, TypeError, OSError, UnicodeDecodeError):
        raise plugin.failed("it is no module whose text can be read") from None
    if len(text) > SOURCE_MAX:
        raise plugin.failed(
            f"its text has {len(text):,} characters, at most {SOURCE_MAX:,} are sent to a box"
        )
    return text


def _detail(detail: str, by: str) -> str:
    return detail.removeprefix(_ASSERTED) if by else detail
