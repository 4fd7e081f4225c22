"""A case that was not thought of, with all that belongs to it: in a function that asks itself, a branch more, at both ends."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from agentos.proposers.repair.operators.idioms.loops import (
    Loop, fresh_name, in_template, names_in, reads, together,
)  # fmt: skip
from agentos.proposers.repair.operators.rewrites import library_text
from agentos.proposers.repair.operators.statements import after, before, block_of, first_statement
from agentos.proposers.repair.scope import NUMBERS, target_names
from agentos.proposers.repair.site import EditSite
from agentos.proposers.repair.source import CodeEdit, Splice

AMOUNTS = NUMBERS | {"Decimal", "Fraction"}
UNDOING = {"append": "remove", "add": "discard"}
LEVELS = ("float", "int", "Decimal", "Fraction", "date", "datetime")
NEVER = ("run",)  # is asked by the program, and with its whole input


# --- a function that asks itself --------------------------------------------------------------------


def by_itself(site: EditSite) -> Iterator[CodeEdit]:
    """A function asks itself for the parts of what it is given, or for the opposite."""
    function, node = site.function, site.node
    if function is None or node is not first_statement(site) or function.name in NEVER:
        return
    given = function.args
    if not given.args or given.vararg or given.kwarg or given.args[0].arg in ("self", "cls"):
        return
    name = given.args[0].arg
    rest = [a.arg for a in given.args[1:]] + [f"{a.arg}={a.arg}" for a in given.kwonlyargs]

    def asked(argument: str) -> str:
        return f"{function.name}({', '.join((argument, *rest))})"

    assert isinstance(node, ast.stmt)
    kind, answer = site.scope.kinds.get(name, ""), _answer(function)
    for test, result in _selves(site, name, kind, answer):
        text = re.sub(r"SELF\(([^@]*?)@\)", lambda match: asked(match[1]), result)
        yield together((before(site, node, f"if {test}:\n    return {text}"),), "asks itself")
    if kind in ("", "str") and answer in ("", *AMOUNTS):
        imports: dict[str, Splice] = {}
        findall = library_text(site, "re", "findall", imports)
        parts = fresh_name(site, "parts", "pieces")
        if findall:
            text = f'{parts} = {findall}(r"[\\d.,]+\\s*[^\\W\\d]+", {name})\nif len({parts}) > 1:\n'
            text += f"    return sum({asked('part')} for part in {parts})"
            yield together((before(site, node, text), *imports.values()), "asks itself")


def _answer(function: ast.FunctionDef) -> str:
    """The kind that it says it returns."""
    node = function.returns
    if isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _selves(site: EditSite, name: str, kind: str, answer: str) -> Iterator[tuple[str, str]]:
    """Tests of what is given, and answers in which ``SELF(x@)`` is the function's own for x."""
    text, number = kind in ("", "str"), kind in ("", *AMOUNTS)
    if text and answer in ("", *AMOUNTS):
        yield f'" " in {name}.strip()', f"sum(SELF(part@) for part in {name}.split())"
        yield f'"+" in {name}', f'sum(SELF(part@) for part in {name}.split("+"))'
        yield f'{name}.startswith("-")', f"-SELF({name}[1:]@)"
        yield f'{name}.endswith("-")', f"-SELF({name}[:-1]@)"
        yield f'{name}.startswith("(")', f'-SELF({name}.strip("()")@)'
        yield f'{name}[-1:] in ("S", "W")', f"-SELF({name}[:-1]@)"
        yield f'{name}.endswith("%")', f"SELF({name}[:-1]@) / 100"
        yield f'"/" in {name}', f'SELF({name}.partition("/")[0]@) / SELF({name}.partition("/")[2]@)'
        for unit in _units(site):
            yield f"{name}[-1:].isdigit()", f"SELF({name} + {unit!r}@)"
    if text and answer in ("", "list", "tuple"):
        for sign in (",", ";", " "):
            parts = f"{name}.split({sign!r})"
            yield f"{sign!r} in {name}", f"[each for part in {parts} for each in SELF(part.strip()@)]"
    if number and answer in ("", "str"):
        yield f"{name} < 0", f'"-" + SELF(-{name}@)'
        yield f"{name} < 0", f'"(" + SELF(-{name}@) + ")"'
    if number and answer in ("", *AMOUNTS):
        yield f"{name} < 0", f"-SELF(-{name}@)"
        yield f"{name} < 0", f"SELF(-{name}@)"
    if kind not in AMOUNTS:
        yield f"isinstance({name}, list)", f"[SELF(each@) for each in {name}]"
        yield f"isinstance({name}, list)", f"sum(SELF(each@) for each in {name})"
        yield f"isinstance({name}, dict)", f"{{key: SELF(each@) for key, each in {name}.items()}}"


def _units(site: EditSite) -> list[str]:
    """Short texts that the module's tables know."""
    tables = [n.value for n in site.program.tree.body if isinstance(n, ast.Assign) and isinstance(n.value, ast.Dict)]
    found = [k.value for table in tables for k in table.keys if isinstance(k, ast.Constant)]
    return [k for k in dict.fromkeys(found) if isinstance(k, str) and len(k) <= 3 and k.isalpha()][:6]


def with_sign(site: EditSite) -> Iterator[CodeEdit]:
    """What is divided with a remainder is the amount; the sign stands before what is written of it."""
    node = site.node
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call) or not node.value.args:
        return
    if site.text(node.value.func) != "divmod" or not isinstance(node.targets[0], ast.Tuple):
        return
    first, whole = target_names(node.targets[0])[:1], site.text(node.value.args[0])
    sign = fresh_name(site, "sign", "minus")
    within = site.function.body if site.function else []
    templates = [n for s in within for n in ast.walk(s) if isinstance(n, ast.JoinedStr) and set(first) & names_in(n)]
    written = [n for n in templates if n.lineno >= node.lineno]
    if not written:
        return
    yield together(
        (
            before(site, node, f'{sign} = "-" if {whole} < 0 else ""'),
            site.program.replace(node.value.args[0], f"abs({whole})"),
            *(site.program.replace(n, f"({sign} + {site.text(n)})") for n in written),
        ),
        "with sign",
    )


# --- a branch more --------------------------------------------------------------------------------


def another_branch(site: EditSite) -> Iterator[CodeEdit]:
    """A branch for a word that failing calls are given and nothing knows: as another branch does, or the opposite."""
    node = site.node
    if not isinstance(node, ast.If) or node.body[0].lineno == node.lineno or node not in block_of(site):
        return
    if site.text(node).startswith("elif"):
        return
    chain = [node]
    while len(chain[-1].orelse) == 1 and isinstance(chain[-1].orelse[0], ast.If):
        chain.append(chain[-1].orelse[0])
    for branch in chain:
        for test in (n for n in ast.walk(branch.test) if isinstance(n, ast.Compare)):
            asked = test.comparators[0]
            if not isinstance(test.ops[0], ast.Eq) or not isinstance(asked, ast.Constant):
                continue
            if not isinstance(asked.value, str):
                continue
            for word in site.facts.given.words:
                yield from _for_word(site, chain, test, word)


def _for_word(site: EditSite, chain: list[ast.If], test: ast.Compare, word: str) -> Iterator[CodeEdit]:
    subject, indent = site.text(test.left), " " * chain[0].col_offset
    pair = f"({site.text(test.comparators[0])}, {word!r})"
    yield together((site.program.replace(test, f"{subject} in {pair}"),), "another branch")
    at = site.program.span(chain[-1].body[-1])[1]
    steps = dict.fromkeys(text for branch in chain for s in branch.body for text in _undone(site, s))
    steps |= dict.fromkeys(text for text in ("continue", "pass") if isinstance(site.parent, Loop) or text == "pass")
    for step in steps:
        text = f"\n{indent}elif {subject} == {word!r}:\n{indent}    {step}"
        yield together((Splice(at, at, text, expression=False),), "another branch", 0.5)


def _undone(site: EditSite, step: ast.stmt) -> Iterator[str]:
    """The opposite of what a statement does."""
    if isinstance(step, ast.AugAssign) and isinstance(step.op, ast.Add | ast.Sub):
        sign = "-" if isinstance(step.op, ast.Add) else "+"
        yield f"{site.text(step.target)} {sign}= {site.text(step.value)}"
    elif isinstance(step, ast.Assign) and isinstance(step.targets[0], ast.Subscript):
        target = step.targets[0]
        yield f"{site.text(target.value)}.pop({site.text(target.slice)}, None)"
    elif isinstance(step, ast.Expr) and isinstance(step.value, ast.Call):
        func = step.value.func
        if isinstance(func, ast.Attribute) and func.attr in UNDOING and step.value.args:
            holder, what = site.text(func.value), site.text(step.value.args[0])
            yield f"if {what} in {holder}:\n        {holder}.{UNDOING[func.attr]}({what})".replace("\n", "\n" + " " * site.node.col_offset)  # type: ignore[attr-defined]


def marked(site: EditSite) -> Iterator[CodeEdit]:
    """A word in the place of a number is nothing, or is counted where the file has a counter for it that never counts."""
    node, above = site.node, site.parent
    if not isinstance(node, ast.Assign) or node not in block_of(site) or above is None:
        return
    target, calls = node.targets[0], [n for n in ast.walk(node.value) if isinstance(n, ast.Call)]
    numbers = [c for c in calls if site.text(c.func) in LEVELS and len(c.args) == 1]
    for call in numbers[:2]:
        what, indent = site.text(call.args[0]), " " * node.col_offset
        for word in site.facts.given.words:
            steps = [f"{name} += 1" for name in _never_counted(site)]
            for ways in ([*steps, f"{site.text(target)} = 0"], *([step, "continue"] for step in steps), ["continue"]):
                if "continue" in ways and not _in_loop(site):
                    continue
                then = "".join(f"\n{indent}    {way}" for way in ways)
                otherwise = site.text(node).replace("\n", "\n    ")
                text = f"if {what} == {word!r}:{then}\n{indent}else:\n{indent}    {otherwise}"
                yield together((Splice(*site.program.span(node), text, expression=False),), "another branch")


def _in_loop(site: EditSite) -> bool:
    above = site.parent
    while above is not None and not isinstance(above, ast.FunctionDef):
        if isinstance(above, Loop):
            return True
        above = site.program.parent.get(above)
    return False


def _never_counted(site: EditSite) -> list[str]:
    """Counters of the function that stay at nought."""
    nodes = site.facts.nodes_in(site.function)
    stored = [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    zeros = [n.targets[0] for n in nodes if isinstance(n, ast.Assign) and site.text(n.value) == "0"]
    return [n.id for n in zeros if isinstance(n, ast.Name) and stored.count(n.id) == 1][:2]


def lists_as_well(site: EditSite) -> Iterator[CodeEdit]:
    """What is done with the entries of a dict is done with the items of a list, by their numbers."""
    node = site.node
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Call) or len(node.body) != 1:
        return
    loop = node.body[0]
    if site.text(node.test.func) != "isinstance" or not isinstance(loop, ast.For) or loop.body[0].lineno == loop.lineno:
        return
    value, kind = (site.text(each) for each in node.test.args[:2])
    target = loop.target
    if kind != "dict" or not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        return
    key, inner = (site.text(each) for each in target.elts)
    indent, start = " " * node.col_offset, site.program.span(loop.body[0])[0]
    body = site.program.data[start : site.program.span(loop)[1]].decode()
    at = site.program.span(loop)[1]
    for head in (f"for {key}, {inner} in enumerate({value}):\n{indent}        {key} = str({key})", f"for {key}, {inner} in enumerate({value}):", f"for {inner} in {value}:"):
        text = f"\n{indent}elif isinstance({value}, list):\n{indent}    {head}\n{indent}        {body}"
        yield together((Splice(at, at, text, expression=False),), "another branch")


# --- the same at all places ------------------------------------------------------------------------


def told_missing(site: EditSite) -> Iterator[CodeEdit]:
    """What is not there is told from None that is there: by another value for what ``get`` does not find."""
    node = site.node
    if not isinstance(node, ast.Assign) or node not in block_of(site):
        return
    calls = [n for n in ast.walk(node.value) if isinstance(n, ast.Call) and len(n.args) == 1]
    calls = [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "get"]
    names = {name for target in node.targets for name in target_names(target)}
    nothing = []
    for test in (n for n in site.facts.nodes_in(site.function) if isinstance(n, ast.Compare)):
        if isinstance(test.ops[0], ast.Is | ast.IsNot) and names & names_in(test.left):
            nothing.append(test.comparators[0])
    if calls and nothing:
        found = [site.program.replace(c, f"{site.text(c).removesuffix(')')}, ...)") for c in calls]
        yield together([*found, *(site.program.replace(n, "...") for n in nothing)], "told missing")


def keys_alike(site: EditSite) -> Iterator[CodeEdit]:
    """Keys are brought into one form wherever a table is asked or filled."""
    node, function = site.node, site.function
    if function is None or node is not first_statement(site):
        return
    by_table: dict[str, list[ast.expr]] = {}
    for each in site.facts.nodes_in(function):
        if isinstance(each, ast.Subscript) and isinstance(each.value, ast.Name) and not isinstance(each.slice, ast.Slice):
            by_table.setdefault(each.value.id, []).append(each.slice)
        elif isinstance(each, ast.Compare) and isinstance(each.ops[0], ast.In | ast.NotIn):
            by_table.setdefault(site.text(each.comparators[0]), []).append(each.left)
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.args:
            if each.func.attr in ("get", "setdefault", "pop", "add", "discard") and isinstance(each.func.value, ast.Name):
                by_table.setdefault(each.func.value.id, []).append(each.args[0])
    for keys in by_table.values():
        plain = [key for key in keys if not isinstance(key, ast.Constant | ast.Tuple) and not in_template(site, key)]
        if 2 <= len(plain) <= 6 and all(site.kind(key) in ("", "str") for key in plain):
            for way in ("lower()", "strip()", "casefold()", "upper()", "strip().lower()"):
                yield together([site.program.replace(k, f"{site.text(k)}.{way}") for k in plain], "keys alike", 0.5)


def at_least(site: EditSite) -> Iterator[CodeEdit]:
    """Where something is asked to be nought, it is held against a limit that the input gives and nothing reads."""
    function = site.function
    if function is None or site.node is not first_statement(site):
        return
    limits = [n for n in site.variables() if n in site.facts.unread and site.scope.kinds.get(n) in ("int", "float")]
    if not limits:
        return
    tests: list[tuple[ast.expr, str, bool]] = []
    for node in site.facts.nodes_in(function):
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and site.text(node.comparators[0]) == "0":
            if isinstance(node.ops[0], ast.Eq | ast.Gt | ast.NotEq):
                tests.append((node, node.left.id, isinstance(node.ops[0], ast.Eq)))
        elif isinstance(node, ast.If | ast.IfExp) and isinstance(node.test, ast.Name):
            tests.append((node.test, node.test.id, False))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Name):
            tests.append((node, node.operand.id, True))
    for limit in limits:
        for names in ({name for _, name, _ in tests}, *({name} for _, name, _ in tests)):
            some = [each for each in tests if each[1] in names]
            for low, high in (("<", ">="), ("<=", ">")):
                texts = [(node, f"{name} {low if zero else high} {limit}") for node, name, zero in some]
                yield together([site.program.replace(node, text) for node, text in texts], "at least")


def as_asked(site: EditSite) -> Iterator[CodeEdit]:
    """A switch of the input that nothing reads turns a list, closes it, or takes case away where texts are compared."""
    node = site.node
    switches = [n for n in site.facts.unread if site.scope.kinds.get(n) == "bool"]
    if not switches or not isinstance(node, ast.stmt | ast.Compare):
        return
    for switch in (each for each in switches if each in site.variables()):
        if isinstance(node, ast.Compare) and not in_template(site, node):
            parts = [node.left, *node.comparators]
            if len(parts) == 2 and all(site.kind(part) in ("", "str") for part in parts):
                one, two = map(site.text, parts)
                sign = site.program.data[site.program.span(node.left)[1] : site.program.span(parts[1])[0]].decode()
                yield site.edit(f"({one}.lower(){sign}{two}.lower() if {switch} else {site.text(node)})", "as asked")
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node not in block_of(site) or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if not isinstance(target, ast.Name):
            continue
        name = target.id
        ways = (
            f"{name}.append({name}[0])", f"{name}.reverse()", f"{name} = {name}[::-1]", f"{name} = sorted({name})",
            f"{name} = {name}.lower()", f"{name} = [each.lower() for each in {name}]", f"{name} = [each for each in {name} if each]",
            f"{name} = list(dict.fromkeys({name}))", f"{name} = -{name}",
        )  # fmt: skip
        for way in ways:
            for test in (switch, f"not {switch}", f"{switch} and len({name}) > 1"):
                step = after(site, node, f"if {test}:\n    {way}")
                yield together((step,), "as asked", 0.3 if test != switch else 1.0)


# --- the first one only ------------------------------------------------------------------------------


def all_of_them(site: EditSite) -> Iterator[CodeEdit]:
    """Not the first that is found, but all of them: each ``return`` yields, and whoever asks takes a list."""
    function = site.function
    if function is None or site.node is not first_statement(site) or function.name in NEVER:
        return
    given = [n for n in site.facts.nodes_in(function) if isinstance(n, ast.Return)]
    some = [n for n in given if n.value is not None and site.text(n.value) not in ("None", "''", '""')]
    calls = [n for n in site.program.nodes(ast.Call) if isinstance(n.func, ast.Name) and n.func.id == function.name]
    if len(some) < 2 or len(some) == len(given) and function.body[-1] in some or not calls:
        return
    splices = [site.program.replace(n, f"yield {site.text(n.value)}") for n in some if n.value is not None]
    splices += [site.program.replace(n, "pass") for n in given if n not in some]
    for call in calls:
        splices.append(site.program.replace(call, f"list({site.text(call)})"))
        kept = site.program.parent.get(call)
        target = kept.targets[0] if isinstance(kept, ast.Assign) else None
        for choice in site.program.nodes(ast.IfExp) if isinstance(target, ast.Name) else ():
            if isinstance(choice.body, ast.List) and site.text(choice) == f"[{target.id}] if {target.id} else []":  # type: ignore[union-attr]
                splices.append(site.program.replace(choice, target.id))  # type: ignore[union-attr]
    yield together(splices, "all of them")


def each_match(site: EditSite) -> Iterator[CodeEdit]:
    """Not the first match alone: what is returned for one is summed up or listed for each."""
    node, block = site.node, block_of(site)
    if not isinstance(node, ast.Assign) or node not in block or not isinstance(node.value, ast.Call):
        return
    func, target = node.value.func, node.targets[0]
    if not isinstance(func, ast.Attribute) or func.attr not in ("match", "search", "fullmatch"):
        return
    if not isinstance(target, ast.Name):
        return
    found = f"{site.text(func.value)}.finditer({', '.join(map(site.text, node.value.args))})"
    for other in block[block.index(node) + 1 :]:
        if isinstance(other, ast.Return) and other.value is not None and reads([other], target.id):
            one = site.text(other.value)
            for way in (f"sum({one} for {target.id} in {found})", f"[{one} for {target.id} in {found}]"):
                yield together((site.program.replace(other.value, way),), "each match")
        elif isinstance(other, ast.If) and reads([other.test], target.id) and not other.orelse:
            if other.body[0].lineno == other.lineno or isinstance(other.body[-1], ast.Return | ast.Raise | ast.Continue):
                continue
            start, end = site.program.span(other)[0], site.program.span(other.body[0])[0]
            head = f"for {target.id} in {found}:\n{' ' * other.body[0].col_offset}"
            yield together((Splice(start, end, head, expression=False),), "each match")


def optional_part(site: EditSite) -> Iterator[CodeEdit]:
    """The first or last group of a pattern need not be there; as a number it is nought then."""
    node = site.node
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or in_template(site, node):
        return
    written = site.text(node)
    groups = list(re.finditer(r"\((?!\?)(?:[^()\\]|\\.)*\)", written))
    if len(groups) < 2 or not written.startswith(("r", "'", '"')):
        return
    ways = []
    first, second, last = groups[0], groups[1], groups[-1]
    ways.append(f"{written[: first.start()]}(?:{written[first.start() : second.start()]})?{written[second.start() :]}")
    ways.append(f"{written[: groups[-2].end()]}(?:{written[groups[-2].end() : last.end()]})?{written[last.end() :]}")
    numbers = [n for n in site.program.nodes(ast.Call) if site.text(n.func) in ("int", "float") and len(n.args) == 1]
    plain = [n.args[0] for n in numbers if isinstance(n.args[0], ast.Name | ast.Subscript | ast.Call)]
    plain = [n for n in plain if not in_template(site, n)][:6]
    for way in ways:
        begun = site.program.replace(node, way)
        yield together((begun,), "optional part")
        for one in plain:
            yield together((begun, site.program.replace(one, f"{site.text(one)} or 0")), "optional part")
        if len(plain) > 1:
            all_of = [site.program.replace(one, f"{site.text(one)} or 0") for one in plain]
            yield together((begun, *all_of), "optional part")


def group_unread(site: EditSite) -> Iterator[CodeEdit]:
    """A group of a pattern that nothing reads is what is given back in place of a default."""
    node, function = site.node, site.function
    if not isinstance(node, ast.stmt) or node not in block_of(site) or function is None:
        return
    read: dict[str, int] = {}
    for each in ast.walk(function):
        if isinstance(each, ast.Subscript) and isinstance(each.value, ast.Name):
            number = each.slice
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "group" and each.args:
            each, number = each.func, each.args[0]
        else:
            continue
        if isinstance(number, ast.Constant) and type(number.value) is int and isinstance(each.value, ast.Name):
            read[each.value.id] = max(number.value, read.get(each.value.id, 0))
    for name, most in read.items():
        hint = next((a.annotation for a in function.args.args if a.arg == name), None)
        if hint is not None and "Match" in site.text(hint):
            group = f"{name}[{most + 1}]"
            yield together((before(site, node, f"if {group} is not None:\n    return {group}"),), "group unread")


# --- ends: ties at a cut, nothing at all, numbers that began anew ---------------------------------------


def with_ties(site: EditSite) -> Iterator[CodeEdit]:
    """Who is as good as the last that is taken is taken, too."""
    node = site.node
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice) or isinstance(node.ctx, ast.Store):
        return
    most = node.slice.upper
    if most is None or node.slice.lower is not None or node.slice.step is not None:
        return
    whole = node.value
    made = whole
    if isinstance(whole, ast.Name):
        for each in site.facts.nodes_in(site.function):
            if isinstance(each, ast.Assign) and site.text(each.targets[0]) == whole.id:
                made = each.value
    if not isinstance(made, ast.Call):
        return
    named = {k.arg: k.value for k in made.keywords}
    key = named.get("key")
    if not isinstance(key, ast.Lambda) or not key.args.args:
        return
    value, own = key.body, key.args.args[0].arg
    if isinstance(value, ast.Tuple) and value.elts:
        value = value.elts[0]
    sign = ">=" if "reverse" in named else "<="
    items, test = site.text(whole), f"(lambda {own}: {site.text(value)})"
    last = f"{test}({items}[:{site.text(most)}][-1])"
    yield site.edit(f"[{own} for {own} in {items} if {site.text(value)} {sign} {last}]", "with ties")


def nothing_at_all(site: EditSite) -> Iterator[CodeEdit]:
    """Where there is nothing, each field of the answer is the nothing of its kind."""
    node = site.node
    if not isinstance(node, ast.stmt) or node not in block_of(site) or site.function is None:
        return
    if not isinstance(site.parent, ast.FunctionDef):
        return
    last = site.function.body[-1]
    call = last.value if isinstance(last, ast.Return) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or not call.keywords or call.args:
        return
    name = call.func.id
    fields = [f for k in site.program.nodes(ast.ClassDef) if k.name == name for f in k.body if isinstance(f, ast.AnnAssign)]
    empty = {site.text(f.target): _nothing(site.text(f.annotation)) for f in fields}
    given = [f"{k.arg}={empty.get(k.arg or '', 'None')}" for k in call.keywords]
    index = site.function.body.index(node)
    above = site.function.body[index - 1] if index else None
    targets = getattr(above, "targets", [getattr(above, "target", None)])
    for known in (t.id for t in targets if isinstance(t, ast.Name)):
        text = f"if not {known}:\n    return {name}({', '.join(given)})"
        yield together((before(site, node, text),), "nothing at all")


def _nothing(annotation: str) -> str:
    for kind, text in (("None", "None"), ("list", "[]"), ("dict", "{}"), ("str", '""'), ("int", "0"), ("float", "0.0")):
        if kind in annotation.partition("[")[0] or (kind == "None" and kind in annotation):
            return text
    return "False" if annotation == "bool" else "None"


def began_anew(site: EditSite) -> Iterator[CodeEdit]:
    """A difference below nought, where a counter began anew; a date of two digits that lies ahead."""
    node = site.node
    if not isinstance(node, ast.Assign) or node not in block_of(site) or not isinstance(node.targets[0], ast.Name):
        return
    name, value = node.targets[0].id, node.value
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub):
        idle = [n for n in site.variables() if n in site.facts.unread and site.scope.kinds.get(n) in ("int", "float")]
        for step in (f"{way}{end}" for n in idle for way, end in ((n, ""), (f"10**{n}", ""), (n, " + 1"))):
            yield together((after(site, node, f"if {name} < 0:\n    {name} += {step}"),), "began anew")
        yield together((after(site, node, f"if {name} < 0:\n    {name} = {site.text(value.left)}"),), "began anew")
    elif '%y' in site.program.source or "[-2:]" in site.program.source:
        for other in site.variables():
            if other != name and site.scope.kinds.get(other, "") == "":
                text = f"if {name} > {other}:\n    {name} = {name}.replace(year={name}.year - 100)"
                yield together((after(site, node, text),), "began anew")


def emptied_first(site: EditSite) -> Iterator[CodeEdit]:
    """What the module gathers for one call is emptied before it gathers for the next."""
    node = site.node
    if not isinstance(node, ast.stmt) or node not in block_of(site) or site.function is None:
        return
    for each in site.program.tree.body:
        target = each.target if isinstance(each, ast.AnnAssign) else getattr(each, "targets", [None])[0]
        value = getattr(each, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.List | ast.Dict | ast.Call | ast.Set):
            if isinstance(value, ast.Call) and site.text(value.func) not in ("set", "list", "dict", "Counter", "defaultdict"):
                continue
            if isinstance(value, ast.List) and value.elts or isinstance(value, ast.Dict) and value.keys:
                continue
            yield together((before(site, node, f"{target.id}.clear()"),), "emptied first")


CASES = (
    by_itself, with_sign, another_branch, marked, lists_as_well, told_missing, keys_alike, at_least, as_asked,
    all_of_them, each_match, optional_part, group_unread, with_ties, nothing_at_all, began_anew, emptied_first,
)  # fmt: skip
