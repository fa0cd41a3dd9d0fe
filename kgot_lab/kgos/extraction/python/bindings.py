"""Which names a piece of Python binds: in a function they are local, in a class and a module its attributes."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def bound_names(body: Iterable[ast.AST]) -> set[str]:
    """The names that some statements bind in their own scope; what is declared global or nonlocal is not."""
    bound: set[str] = set()
    elsewhere: set[str] = set()
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                bound.add(name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                elsewhere.update(names)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                bound.update(
                    alias.asname or alias.name.split(".")[0] for alias in aliases if alias.name != "*"
                )
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                bound.add(name)
            case ast.MatchMapping(rest=str(name)):
                bound.add(name)
        if isinstance(node, _SCOPES):
            if not isinstance(node, ast.Lambda):
                bound.add(node.name)
            continue  # what is inside is bound there; a default or decorator binds nothing but by :=, which nobody writes
        waiting.extend(ast.iter_child_nodes(node))
    return bound - elsewhere


def declared(body: Iterable[ast.stmt], kind: type[ast.Global] | type[ast.Nonlocal]) -> set[str]:
    """The names that statements of a function declare global, or nonlocal."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, kind):
            found.update(node.names)
        if not isinstance(node, _SCOPES):
            waiting.extend(
                child
                for child in ast.iter_child_nodes(node)
                if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case)
            )
    return found


def own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of some statements but those of the functions and classes in them."""
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _SCOPES):
            waiting.extend(ast.iter_child_nodes(node))


def yields(function: Function) -> bool:
    """Whether a function is a generator."""
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own_nodes(function.body))


def parameters(given: ast.arguments) -> list[ast.arg]:
    """All parameters that have a name, in the order in which they are written."""
    usual = [*given.posonlyargs, *given.args]
    return [
        *usual,
        *([given.vararg] if given.vararg else []),
        *given.kwonlyargs,
        *([given.kwarg] if given.kwarg else []),
    ]
