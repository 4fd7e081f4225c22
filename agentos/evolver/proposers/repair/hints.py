"""What the author's words say about the code: which tokens a word of a docstring or a name makes likely.

A weak sign, so it only multiplies an edit's weight among edits of its kind.
"""

from __future__ import annotations

from agentos.evolver.proposers.repair.prior import TOKEN

BOOST = 3.0

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
    brought = set(TOKEN.findall(new)) - set(TOKEN.findall(old))
    return BOOST if any(WORDS[token] & words for token in brought & WORDS.keys()) else 1.0
