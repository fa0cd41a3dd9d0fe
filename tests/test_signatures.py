"""What travels together is a value: no public function takes more than eight parameters, but for a short list
with reasons.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import kgot_lab

PACKAGE = Path(kgot_lab.__file__).parent
MOST = 8
ALLOWED = {
    "kgos/methods/selection.py: select_nodes": "one parameter for each filter, most of them left out",
}


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The names that a function takes, the object it belongs to left out."""
    given = function.args
    names = [parameter.arg for parameter in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    names += [each.arg for each in (given.vararg, given.kwarg) if each]
    return names[names[:1] in (["self"], ["cls"]) :]


def public_functions(
    body: list[ast.stmt], owner: str = ""
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every public function and method of a module; a class stands for what makes its instances."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public_functions(node.body, f"{owner}{node.name}.")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (
            not node.name.startswith("_") or node.name in ("__init__", "__call__")
        ):
            yield f"{owner}{node.name}".removesuffix(".__init__"), node


def too_many(source: str) -> dict[str, int]:
    """The public functions of a module that take more than so many parameters, and how many they take."""
    counted = {name: len(parameters(function)) for name, function in public_functions(ast.parse(source).body)}
    return {name: count for name, count in counted.items() if count > MOST}


def test_no_public_function_takes_more_than_eight_parameters_but_those_with_a_reason():
    found = {
        f"{path.relative_to(PACKAGE).as_posix()}: {name}": count
        for path in sorted(PACKAGE.rglob("*.py"))
        for name, count in too_many(path.read_text(encoding="utf-8")).items()
    }
    assert {name: count for name, count in found.items() if name not in ALLOWED} == {}
    assert set(ALLOWED) <= set(found), "a function that takes eight or less needs no reason"


def test_a_new_one_is_found_wherever_it_stands():
    nine, eight = "a, b, c, d, e, f, g, h, i", "a, b, c, d, e, f, g, h"
    source = f"""
def wide({nine}): ...
def narrow({eight}): ...
def _own({nine}): ...
async def later(a, b, /, c, *d, e, f, g, h, **i): ...
class Made:
    def __init__(self, {nine}): ...
    def method(self, {eight}): ...
    @classmethod
    def of(cls, {nine}): ...
class _Hidden:
    def method(self, {nine}): ...
"""
    assert too_many(source) == {"wide": 9, "later": 9, "Made": 9, "Made.of": 9}
