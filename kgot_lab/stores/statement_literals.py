"""What a read statement in Python says by itself, whatever the graph holds; and what all languages need to
find that out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from kgot_lab.stores.protocol import OwnWords, Scalar

LITERAL = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?\d[\d.]*|true|false)"""


def blanked(statement: str) -> str:
    """A statement with all that is quoted made blank, letter for letter."""
    return re.sub(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", lambda found: "_" * len(found[0]), statement)


def python_words(statement: str) -> OwnWords:
    """The keys whose values are constants in what `result` is made of, and the constants that stand in its
    lists.
    """
    tree = _tree(statement)
    if tree is None:
        return OwnWords()
    looks = any(
        isinstance(node, ast.Name) and node.id in {"G", "self", "facts", "names", "paths"}
        for node in ast.walk(tree)
    )
    made = [
        node.value for node in ast.walk(tree) if isinstance(node, ast.Assign) and _is_result(node.targets)
    ]
    keys = frozenset(key for expression in made for key in _fixed_keys(expression))
    return OwnWords(
        looks, keys, frozenset(value for expression in made for value in _fixed_items(expression))
    )


def _tree(statement: str) -> ast.Module | None:
    try:
        return ast.parse(statement)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


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
