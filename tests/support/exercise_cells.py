"""The exercises of a notebook, each with the cells that it needs and no others, run in this process with an
answer in place of the dots.
"""

from __future__ import annotations

import ast
import json
import symtable
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kgot_lab as lab


@dataclass(frozen=True)
class ExerciseCell:
    """An exercise by its name, the source of its cell, and the cells before it that make or change what it
    uses.
    """

    name: str
    source: str
    hint: str
    needed: tuple[str, ...]


def exercise_cells(path: Path) -> Iterator[ExerciseCell]:
    """The exercises of a notebook on file, in their order."""
    every = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in every if cell["cell_type"] == "code"]
    for number, source in enumerate(code):
        for call in ast.walk(ast.parse(source)):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "lab.exercise":
                told = {word.arg: word.value for word in call.keywords}
                name, hint = (ast.literal_eval(told[key]) if key in told else "" for key in ("name", "hint"))
                yield ExerciseCell(name, source, hint, tuple(_needed(code[:number], source)))


class Exercises:
    """All exercises of a notebook; what they need runs once."""

    def __init__(self, path: Path):
        self.cells = list(exercise_cells(path))
        self._space: dict[str, Any] = {}
        wanted = {id(cell): cell for each in self.cells for cell in each.needed}
        for cell in _in_order(path, wanted.values()):
            exec(compile(cell, path.name, "exec"), self._space)

    def say(self, cell: ExerciseCell, answer: Any) -> str:
        """What the exercise says of an answer; raises what its cell raises."""
        tree = ast.parse(cell.source)
        assert ast.unparse(tree.body[0]) == "answer = ..."
        self._space["answer"] = answer
        *before, last = tree.body[1:]
        exec(compile(ast.Module(before, []), cell.name, "exec"), self._space)
        return repr(eval(compile(ast.Expression(last.value), cell.name, "eval"), self._space))

    def value(self, expression: str) -> Any:
        """A solution, worked out among the names of the notebook."""
        self._space.setdefault("lab", lab)
        return eval(expression, self._space)


def _in_order(path: Path, wanted: Any) -> list[str]:
    wanted = set(wanted)
    every = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [
        source
        for cell in every
        if cell["cell_type"] == "code" and (source := "".join(cell["source"])) in wanted
    ]


def _needed(before: list[str], source: str) -> list[str]:
    """Going back, each cell that binds a name which is used later, or does something to it in a line of its
    own.
    """
    names, found = _used(source), []
    for cell in reversed(before):
        if (_bound(cell) | _changed(cell)) & names and "lab.exercise(" not in cell:
            found.append(cell)
            names |= _used(cell)
    return found[::-1]


def _used(source: str) -> set[str]:
    """The names that a cell looks up among those of the notebook; what is local to a function or a
    comprehension is not among them.
    """
    top = symtable.symtable(source, "cell", "exec")
    return {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()} | set(_outside(top))


def _outside(table: symtable.SymbolTable) -> Iterator[str]:
    for inner in table.get_children():
        yield from (symbol.get_name() for symbol in inner.get_symbols() if symbol.is_global())
        yield from _outside(inner)


def _bound(source: str) -> set[str]:
    symbols = symtable.symtable(source, "cell", "exec").get_symbols()
    return {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}


def _changed(source: str) -> set[str]:
    """The names that a line which is no assignment calls something on, and the generators that are asked for
    more.
    """
    tree = ast.parse(source)
    lines = (node.value for node in ast.walk(tree) if isinstance(node, ast.Expr))
    on = (
        call.func
        for line in lines
        for call in ast.walk(line)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
    )
    asked = (
        call.args[0]
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("next", "list") and call.args
    )
    return {node.id for each in (*on, *asked) for node in ast.walk(each) if isinstance(node, ast.Name)} - {
        "lab"
    }
