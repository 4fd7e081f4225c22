"""Signs that speak for an edit beside its kind and place: the author's words, and an endless loop.

Weak signs, so they only multiply an edit's weight among edits of its kind.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache

from agentos.proposers.repair.prior import TOKEN, tokens_in
from agentos.proposers.repair.scope import target_names
from agentos.proposers.repair.source import CodeEdit, Program

BOOST = 3.0
ENDS_LOOP = 20.0

# token of the new code -> words that speak for it
WORDS: dict[str, frozenset[str]] = {
    token: frozenset(words.split())
    for token, words in {
        "abs": "absolute distance difference magnitude close closer deviation",
        "set": "unique distinct duplicate duplicates common once",
        "sorted": "sorted sort order ordered ascending descending alphabetical",
        "sort": "sorted sort order ordered ascending descending alphabetical",
        "reverse": "reverse reversed descending backwards",
        "reversed": "reverse reversed descending backwards",
        "sum": "sum total add added",
        "len": "length long count size average mean number",
        "max": "max maximum largest biggest greatest highest most latest longest",
        "min": "min minimum smallest least lowest earliest shortest fewest",
        "round": "round rounded nearest decimal decimals closest",
        "floor": "floor down",
        "ceil": "ceil ceiling up",
        "int": "integer integers whole",
        "float": "float decimal fraction average mean",
        "lower": "lowercase lower insensitive case",
        "casefold": "insensitive case",
        "upper": "uppercase upper capital",
        "swapcase": "flip swap case",
        "strip": "whitespace strip stripped trim trimmed blank",
        "splitlines": "lines line",
        "startswith": "start starts starting prefix begins beginning",
        "endswith": "end ends ending suffix",
        "even": "even",
        "**": "cube squared square power exponent",
        "encode": "bytes encoding digest hash md5 sha",
        "all": "all every",
        "any": "any some",
        "None": "none missing empty",
        "not": "not without except non",
        "append": "append add list",
        "isdigit": "digit digits number",
        "isalpha": "letter letters alphabetical",
    }.items()
}


def boost(old: str, new: str, words: frozenset[str]) -> float:
    """The factor for replacing ``old`` by ``new`` in code that says ``words`` of itself."""
    spoken_for = _spoken_for(words)
    brought = spoken_for.intersection(tokens_in(new))
    return BOOST if brought and not brought.issubset(tokens_in(old)) else 1.0


@lru_cache(maxsize=64)
def _spoken_for(words: frozenset[str]) -> frozenset[str]:
    """The tokens that one of the words speaks for."""
    return frozenset(token for token, speaking in WORDS.items() if speaking & words)


def ends_a_loop(program: Program) -> Callable[[CodeEdit], float]:
    """The factor for an edit when the failing calls never end: does it tie a loop's test to its body?

    Either the test gets to use a name that the body changes, or the body to change one that it uses.
    """
    loops = []
    for node in program.nodes(ast.While):
        used = {n.id for n in ast.walk(node.test) if isinstance(n, ast.Name)}
        changed = {name for statement in node.body for name in _changed(statement)}
        body = program.span(node.body[0])[0], program.span(node.body[-1])[1]
        loops.append((program.span(node.test), body, used, changed))

    def factor(edit: CodeEdit) -> float:
        first = edit.splices[0]
        brought = set(TOKEN.findall(first.text)) - set(
            TOKEN.findall(program.data[first.start : first.end].decode())
        )
        for test, body, used, changed in loops:
            if test[0] <= first.start < test[1] and brought & (changed - used):
                return ENDS_LOOP
            if body[0] <= first.start <= body[1] and any(
                first.text.strip().startswith((f"{name} =", f"{name} -=", f"{name} +=")) for name in used
            ):
                return ENDS_LOOP
        return 1.0

    return factor


def _changed(statement: ast.stmt) -> list[str]:
    return [
        name
        for node in ast.walk(statement)
        if isinstance(node, ast.Assign | ast.AugAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        for name in target_names(target)
    ]
