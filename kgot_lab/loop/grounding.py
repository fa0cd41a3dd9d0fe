"""Which rows of a read rest on the graph, and which hold only what the statement itself says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import unquote

from kgot_lab.stores.looking_up import holds_value
from kgot_lab.stores.protocol import Scalar, Store
from kgot_lab.types import Json, Rows

_LITERAL = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?\d[\d.]*|true|false)"""
_ALIAS = re.compile(rf"^{_LITERAL}(?:\s+AS\s+`?(\w+)`?)?$", re.I | re.S)
_NAMED = re.compile(rf"(?:\bWITH\b|,)\s*{_LITERAL}\s+AS\s+`?(\w+)`?", re.I | re.S)
_TRUTHS = frozenset(("yes", "no", "true", "false"))
_BOUND = re.compile(rf"\(\s*(?:{_LITERAL}|<[^<>\s]*>|\w*:[\w%.-]+)(?:@\w+|\^\^\S+?)?\s+AS\s+[?$](\w+)\s*\)", re.I | re.S)


def constants(store: Store, statement: str, rows: Rows) -> tuple[int, ...]:
    """The numbers of the rows that nothing was read for: the graph is empty, the statement looks at nothing in it, or it says them itself.

    A text that the statement says counts as read where the graph holds it and the statement does not give it out as a constant; one that
    it does not say was read, or worked out from what was. Numbers, truth values, yes and no are worked out, unless they are given out as
    they stand. What a statement pieces together on purpose is not seen.
    """
    if not rows:
        return ()
    language = store.dialect.name
    if not store.schema().nodes or not _LOOKS.get(language, _always)(statement):
        return tuple(range(len(rows)))
    given = _GIVEN.get(language, _nothing)(statement)
    said = _flat(unquote(statement))
    held: dict[Scalar, bool] = {}

    def is_read(value: Scalar) -> bool:
        if not isinstance(value, str) or value.casefold() in _TRUTHS:
            return True
        if not (flat := _flat(value)):
            return False
        if f" {flat} " not in f" {said} ":
            return True
        if value not in held:
            held[value] = holds_value(store, value)
        return held[value]

    return tuple(number for number, row in enumerate(rows) if not any(map(is_read, _values(row, given))))


def scalars(row: Json) -> Iterator[Scalar]:
    """The texts, numbers and truth values of a row, whatever it is nested in."""
    if isinstance(row, Mapping):
        for value in row.values():
            yield from scalars(value)
    elif isinstance(row, list | tuple):
        for value in row:
            yield from scalars(value)
    elif row is not None:
        yield row


def _values(row: Json, given: _Given) -> Iterator[Scalar]:
    """The values of a row, without those that the statement gives out as constants."""
    columns, fixed = given
    if isinstance(row, Mapping):
        row = {name: value for name, value in row.items() if name not in columns}
    return (value for value in scalars(row) if (type(value), value) not in fixed)


# --- languages: does a statement look at the graph, and which columns or values does it give out as they stand in it? --------

_Given = tuple[frozenset[str], frozenset[tuple[type, Scalar]]]  # names of columns, and values with their types


def _always(_: str) -> bool:
    return True


def _nothing(_: str) -> _Given:
    return frozenset(), frozenset()


def _python_looks(statement: str) -> bool:
    tree = _tree(statement)
    return tree is None or any(isinstance(node, ast.Name) and node.id in {"G", "self", "facts", "names"} for node in ast.walk(tree))


def _python_given(statement: str) -> _Given:
    """The keys whose values are constants in what `result` is made of, and the constants that stand in its lists."""
    tree = _tree(statement)
    made = [node.value for node in ast.walk(tree) if isinstance(node, ast.Assign) and _is_result(node.targets)] if tree else []
    return frozenset(key for each in made for key in _fixed_keys(each)), frozenset(value for each in made for value in _fixed_items(each))


def _is_result(targets: Iterable[ast.expr]) -> bool:
    return any(isinstance(target, ast.Name) and target.id == "result" for target in targets)


def _fixed_keys(expression: ast.expr) -> Iterator[str]:
    """The keys of a dictionary, or of those in a list, that have a constant for a value."""
    match expression:
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
                    yield str(key.value)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            for item in items:
                yield from _fixed_keys(item)


def _fixed_items(expression: ast.expr) -> Iterator[tuple[type, Scalar]]:
    """The constants that stand alone or in lists; what a condition chooses between is worked out."""
    match expression:
        case ast.Constant(value=value) if isinstance(value, str | int | float):
            yield type(value), value
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            for item in items:
                yield from _fixed_items(item)


def _tree(statement: str) -> ast.Module | None:
    try:
        return ast.parse(statement)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _cypher_looks(statement: str) -> bool:
    return re.search(r"\b(MATCH|CALL)\b", _blanked(statement), re.I) is not None


def _cypher_given(statement: str) -> _Given:
    """The columns that are literals, or names of literals, in every branch of a UNION."""
    plain = re.sub(r"//[^\n]*|/\*.*?\*/", lambda found: " " * len(found[0]), _blanked(statement), flags=re.S)
    ends = [found.span() for found in re.finditer(r"\bUNION\b(?:\s+ALL\b)?", plain, re.I)]
    bounds = zip([0, *(end for _, end in ends)], [*(start for start, _ in ends), len(plain)], strict=True)
    columns = [_literal_columns(statement[start:end], plain[start:end]) for start, end in bounds]
    return frozenset.intersection(*columns), frozenset()


def _literal_columns(branch: str, plain: str) -> frozenset[str]:
    """The columns of the last RETURN of a statement that are literals; `plain` is the same text with all that is quoted blanked."""
    *_, start = [0, *(found.end() for found in re.finditer(r"\bRETURN\b(?:\s+DISTINCT\b)?", plain, re.I))]
    stop = re.search(r"\b(?:ORDER\s+BY|SKIP|OFFSET|LIMIT)\b|;|$", plain[start:], re.I)
    last = branch[start : start + stop.start() if stop else None]
    named = {found[1] for found in _NAMED.finditer(branch[:start])}
    columns = set()
    for item in map(str.strip, _items(last)):
        if literal := _ALIAS.match(item):
            columns.add(literal[1] or literal[0].strip())
        elif (alias := re.fullmatch(r"(\w+)(?:\s+AS\s+`?(\w+)`?)?", item, re.I)) and alias[1] in named:
            columns.add(alias[2] or alias[1])
    return frozenset(columns)


def _blanked(statement: str) -> str:
    """A statement with all that is quoted made blank, letter for letter."""
    return re.sub(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", lambda found: "_" * len(found[0]), statement)


def _sparql_looks(statement: str) -> bool:
    """Whether anything but BIND, VALUES and FILTER stands between the braces."""
    text = re.sub(r"\bVALUES\b[^{]*\{[^}]*\}", " ", _blanked(statement), flags=re.I)
    for _ in range(20):
        text, changed = re.subn(r"\b(?:BIND|FILTER)?\s*\([^()]*\)", " ", text, flags=re.I)
        if not changed:
            break
    inside = re.sub(r"\b(?:BIND|FILTER|UNION|OPTIONAL|MINUS)\b", " ", text[text.find("{") :] if "{" in text else "", flags=re.I)
    return re.search(r"[^\s{}.;]", inside) is not None


def _sparql_given(statement: str) -> _Given:
    """The variables that are bound to literals, in SELECT and in BIND."""
    return frozenset(found[1] for found in _BOUND.finditer(statement)), frozenset()


_LOOKS = {"Python (NetworkX)": _python_looks, "Cypher": _cypher_looks, "SPARQL": _sparql_looks}
_GIVEN = {"Python (NetworkX)": _python_given, "Cypher": _cypher_given, "SPARQL": _sparql_given}


def _items(text: str) -> Iterator[str]:
    """The parts of a text between commas that stand in no brackets and no quotes."""
    depth, item = 0, ""
    for piece in re.findall(rf"{_LITERAL}|.", text, re.S):
        depth += (piece in "([{") - (piece in ")]}") if len(piece) == 1 else 0
        if piece == "," and depth == 0:
            yield item
            item = ""
        else:
            item += piece
    yield item


def _flat(text: str) -> str:
    """A text as its words: case, signs and underscores do not count."""
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))
