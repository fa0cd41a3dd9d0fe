"""Which rows of a read rest on the graph, and which hold only what the statement itself says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from kgot_lab.stores.looking_up import holds_value
from kgot_lab.stores.protocol import Scalar, Store
from kgot_lab.types import Json, Rows

_LITERAL = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?\d[\d.]*|true|false)"""
_ALIAS = re.compile(rf"^{_LITERAL}(?:\s+AS\s+`?(\w+)`?)?$", re.I | re.S)
_BOUND = re.compile(rf"\(\s*{_LITERAL}(?:@\w+|\^\^\S+?)?\s+AS\s+[?$](\w+)\s*\)", re.I | re.S)


def constants(store: Store, statement: str, rows: Rows) -> tuple[int, ...]:
    """The numbers of the rows that nothing was read for: the graph is empty, the statement looks at nothing in it, or it says them itself.

    A value that the statement says counts as read where the graph holds it and the statement does not give it out as a constant.
    A value that it does not say was read or worked out from what was. What a statement pieces together on purpose is not seen.
    """
    if not rows:
        return ()
    language = store.dialect.name
    if not store.schema().nodes or not _LOOKS.get(language, _always)(statement):
        return tuple(range(len(rows)))
    given = _GIVEN.get(language, _nothing)(statement)
    said = _flat(statement)
    held: dict[Scalar, bool] = {}

    def is_read(value: Scalar) -> bool:
        if f" {_flat(str(value))} " not in f" {said} ":
            return True
        if value not in held:
            held[value] = not isinstance(value, bool) and holds_value(store, value)
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
    return (value for value in scalars(row) if value not in fixed)


# --- languages: does a statement look at the graph, and which columns or values does it give out as they stand in it? --------

_Given = tuple[frozenset[str], frozenset[Scalar]]


def _always(_: str) -> bool:
    return True


def _nothing(_: str) -> _Given:
    return frozenset(), frozenset()


def _python_looks(statement: str) -> bool:
    tree = _tree(statement)
    return tree is None or any(isinstance(node, ast.Name) and node.id in {"G", "self", "facts", "names"} for node in ast.walk(tree))


def _python_given(statement: str) -> _Given:
    """The constants that `result` is made of as they stand, in lists and under keys."""
    tree = _tree(statement)
    made = [node.value for node in ast.walk(tree) if isinstance(node, ast.Assign) and _is_result(node.targets)] if tree else []
    return frozenset(), frozenset(value for expression in made for value in _given_out(expression))


def _is_result(targets: Iterable[ast.expr]) -> bool:
    return any(isinstance(target, ast.Name) and target.id == "result" for target in targets)


def _given_out(expression: ast.expr) -> Iterator[Scalar]:
    match expression:
        case ast.Constant(value=value) if isinstance(value, Scalar):
            yield value
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            for item in items:
                yield from _given_out(item)
        case ast.Dict(values=items):
            for item in items:
                yield from _given_out(item)
        case ast.IfExp(body=one, orelse=other):
            yield from _given_out(one)
            yield from _given_out(other)


def _tree(statement: str) -> ast.Module | None:
    try:
        return ast.parse(statement)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _cypher_looks(statement: str) -> bool:
    return re.search(r"\b(MATCH|CALL)\b", _without_texts(statement), re.I) is not None


def _cypher_given(statement: str) -> _Given:
    """The columns of the last RETURN that are literals."""
    *_, last = re.split(r"\bRETURN\b(?:\s+DISTINCT\b)?", statement, flags=re.I)
    last = re.split(r"\b(?:ORDER\s+BY|SKIP|LIMIT|UNION)\b", last, flags=re.I)[0]
    columns = (found for item in _items(last) if (found := _ALIAS.match(item.strip())))
    return frozenset(found[1] or found[0].strip() for found in columns), frozenset()


def _sparql_looks(statement: str) -> bool:
    """Whether anything but BIND, VALUES and FILTER stands between the braces."""
    text = re.sub(r"\bVALUES\b[^{]*\{[^}]*\}", " ", _without_texts(statement), flags=re.I)
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


def _without_texts(statement: str) -> str:
    return re.sub(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", "''", statement)


def _flat(text: str) -> str:
    """A text as its words: case, signs and underscores do not count."""
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))
