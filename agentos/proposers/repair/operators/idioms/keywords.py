"""Arguments that a library call usually has: by keyword, or by position."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from agentos.proposers.repair.site import EditSite
from agentos.proposers.repair.source import CodeEdit

ENCODINGS = ("'utf-8-sig'", "'utf-8'", "'latin-1'", "'cp1252'")
KEYWORDS: dict[str, tuple[str, ...]] = {
    "dumps": ("ensure_ascii=False", "indent=2", "sort_keys=True", "default=str"),
    "reader": ("delimiter=';'", "delimiter='\\t'", "skipinitialspace=True", 'quotechar="\'"'),
    "DictReader": ("delimiter=';'", "delimiter='\\t'", "skipinitialspace=True", "restval=''"),
    "sub": ("flags=re.IGNORECASE", "flags=re.MULTILINE", "count=1"),
    "findall": ("flags=re.IGNORECASE", "flags=re.MULTILINE"),
    "finditer": ("flags=re.IGNORECASE", "flags=re.MULTILINE"),
    "search": ("flags=re.IGNORECASE", "flags=re.MULTILINE"),
    "match": ("flags=re.IGNORECASE",),
    "fullmatch": ("flags=re.IGNORECASE",),
    "compile": ("flags=re.IGNORECASE", "flags=re.MULTILINE", "flags=re.DOTALL"),
    "splitlines": ("keepends=True",),
    "max": ("default=''", "default=0.0", "default=1"),
    "min": ("default=''", "default=0.0", "default=1"),
    "next": ("None", "0", "''"),
    "strptime": (),
    "most_common": ("1",),
    "isoformat": ("timespec='minutes'", "timespec='seconds'", "sep=' '"),
    "replace": ("tzinfo=None", "day=1"),
}
POSITIONAL: dict[str, tuple[str, ...]] = {
    "int": ("16", "2", "8"),
    "sum": ("[]", "()"),
    "enumerate": ("1", "2"),
    "range": ("2", "-1"),
    "ljust": (),
    "getattr": ("None",),
}
CUT = frozenset({"split", "rsplit", "replace"})


def keywords(site: EditSite) -> Iterator[CodeEdit]:
    """A keyword or a last argument that the call has not yet."""
    node = site.node
    if not isinstance(node, ast.Call):
        return
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    present = {keyword.arg for keyword in node.keywords}
    for keyword in KEYWORDS.get(name, ()):
        if keyword.partition("=")[0] not in present and _makes_sense(site, name, keyword):
            yield _with(site, node, keyword, "keyword")
    for value in POSITIONAL.get(name, ()):
        yield _with(site, node, value, "keyword")
    if name in CUT and len(node.args) == (2 if name == "replace" else 1) and not node.keywords:
        yield _with(site, node, "1", "keyword")
    if name in ("open", "read_text", "decode", "write_text"):
        yield from _encodings(site, node)


def _makes_sense(site: EditSite, name: str, keyword: str) -> bool:
    assert isinstance(site.node, ast.Call)
    return not (keyword.startswith("flags=") and site.text(site.node.func) != f"re.{name}")


def _with(site: EditSite, node: ast.Call, argument: str, operator: str) -> CodeEdit:
    written = [site.text(a) for a in node.args]
    given = [f"{k.arg}={site.text(k.value)}" if k.arg else f"**{site.text(k.value)}" for k in node.keywords]
    parts = [*written, *given, argument] if "=" in argument else [*written, argument, *given]
    return site.edit(f"{site.text(node.func)}({', '.join(parts)})", operator, 0.7)


def _encodings(site: EditSite, node: ast.Call) -> Iterator[CodeEdit]:
    if not any(keyword.arg == "encoding" for keyword in node.keywords):
        for encoding in ENCODINGS:
            yield _with(site, node, f"encoding={encoding}", "encoding")
        return
    for keyword in node.keywords:
        if keyword.arg == "encoding":
            for encoding in ENCODINGS:
                yield site.edit(encoding, "encoding", 1.0, node=keyword.value)
    if not any(keyword.arg == "errors" for keyword in node.keywords):
        yield _with(site, node, "errors='replace'", "encoding")
