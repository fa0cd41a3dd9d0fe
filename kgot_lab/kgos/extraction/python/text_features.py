"""What the text of a function shows that its name and its edges do not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kgot_lab.kgos.extraction.python.flow import Function, own_nodes, parameters

MANY_PARAMETERS = 8
_BOXES = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


def marks_of(node: Function, decorators: tuple[str, ...]) -> tuple[str, ...]:
    """The marks of a function: abstract, a default that is shared between calls, an except that names
    nothing, many parameters.
    """
    return tuple(_marks(node, decorators))


def _marks(node: Function, decorators: tuple[str, ...]) -> Iterator[str]:
    if any(each.rpartition(".")[2].startswith("abstract") for each in decorators) or _only_refuses(node):
        yield "abstract"
    defaults = [*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)]
    if any(isinstance(each, _BOXES) for each in defaults):
        yield "mutable default"
    if any(isinstance(each, ast.ExceptHandler) and each.type is None for each in own_nodes(node.body)):
        yield "bare except"
    if len(parameters(node.args)) >= MANY_PARAMETERS:
        yield f"{len(parameters(node.args))} parameters"


def _only_refuses(node: Function) -> bool:
    """Whether a function does nothing but raise NotImplementedError, after its docstring."""
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    match body:
        case [ast.Raise(exc=ast.Name(id=name) | ast.Call(func=ast.Name(id=name)))]:
            return name == "NotImplementedError"
    return False
