"""The facts of a file of Python, by its syntax tree."""

from __future__ import annotations

import ast
import warnings

from kgot_lab.errors import BadInput
from kgot_lab.kgos.extraction.facts import Definition, FileFacts
from kgot_lab.kgos.extraction.python.statements import StatementReader, first_paragraph

FLOW_PARTS = ("constraints", "functions", "classes", "boxes", "dictionaries", "names")


def python_facts(text: str, path: str, module: str, *, is_package: bool = False) -> FileFacts:
    """What a module defines, imports and calls; raises BadInput for what does not parse, with the line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an escape that is none, in a text of somebody else's
            tree = ast.parse(text)
    except SyntaxError as error:
        raise BadInput(f"does not parse: {error.msg}, line {error.lineno}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise BadInput(f"does not parse: {error or 'nested too deep'}") from None
    statements = StatementReader(module, module if is_package else module.rpartition(".")[0])
    try:
        statements.read(tree)
    except RecursionError:
        raise BadInput("is nested too deep to be read") from None
    lines = text.count("\n") + 1
    itself = Definition(
        module,
        "module",
        module.rpartition(".")[2],
        1,
        lines,
        "",
        first_paragraph(ast.get_docstring(tree) or ""),
    )
    kept = {part: getattr(statements.flow, part) for part in FLOW_PARTS}
    return FileFacts(
        path, "python", (itself, *statements.definitions), tuple(statements.references), flow=kept
    )
