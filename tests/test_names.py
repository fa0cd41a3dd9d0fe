"""One name means one thing: a public name is defined in one module, but for a short list of names with their
reasons.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import kgot_lab

PACKAGE = Path(kgot_lab.__file__).parent
ALLOWED = {
    "ask": "the command and the function do the same thing",
    "bench": "the command and the function do the same thing",
    "doctor": "the command and what a cell calls do the same thing",
    "export": "the command and the function do the same thing",
    "extract": "the command and the function do the same thing",
    "launch": "one function for each kind of sandbox, called by the name of its module",
    "main": "where a program begins: the commands, and each worker inside the sandbox",
    "resume": "the command and the function do the same thing",
    "show": "the command shows a run, the function a run and whatever else is at hand",
    "situation": "the text, and the prompt that holds it; prompts are read as `prompts.situation`",
    "verify": "the command and the function do the same thing",
}


def names_of(node: ast.stmt) -> Iterator[str]:
    """The names that a statement at the top level of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AnnAssign)
        else []
    )
    yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))


def defined_twice(sources: dict[str, str]) -> dict[str, list[str]]:
    """Every public name that two modules or more define, with the modules."""
    homes: dict[str, set[str]] = defaultdict(set)
    for module, source in sources.items():
        for node in ast.parse(source).body:
            for name in names_of(node):
                homes[name].add(module)
    return {
        name: sorted(where) for name, where in homes.items() if len(where) > 1 and not name.startswith("_")
    }


def test_no_public_name_is_defined_twice_but_those_with_a_reason():
    sources = {
        path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8")
        for path in PACKAGE.rglob("*.py")
    }
    double = defined_twice(sources)
    assert {name: where for name, where in double.items() if name not in ALLOWED} == {}
    assert set(ALLOWED) <= set(double), "a name that is no longer double needs no reason"


def test_a_new_double_name_is_found():
    double = defined_twice(
        {"a.py": "def same(): ...\n_own = 1", "b.py": "same: int = 3\n_own = 2", "c.py": "class Other: ..."}
    )
    assert double == {"same": ["a.py", "b.py"]}
