"""The order of the rooms: a module imports its own room and lower ones, and only the command line prints."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import kgot_lab

PACKAGE = Path(kgot_lab.__file__).parent
FLOORS = [  # lowest first; rooms of one floor do not import each other
    [{"types", "errors", "bundled"}],
    [{"graph", "columns", "changes", "exchange", "snapshots"}],
    [{"llm"}, {"sandbox"}, {"schemas"}],
    [{"stores"}],
    [{"memory"}, {"retrieval"}],
    [{"methods"}],
    [{"tools"}],
    [{"loop"}],
    [{"evaluation"}, {"domains"}, {"experts"}],
    [{"draw"}],
    [{"doctor"}],
    [{"viz"}],
    [{"terminal"}],  # what the commands share, for them alone
    [{"bench"}, {"sharing"}],  # commands of their own
    [{"cli", "__main__"}],
    [{"__init__"}],  # the front door may open on every room
]
FLOOR_OF = {name: (floor, room) for floor, rooms in enumerate(FLOORS) for room, names in enumerate(rooms) for name in names}
MODULES = sorted(PACKAGE.rglob("*.py"))


def imported(tree: ast.AST, module: str) -> Iterator[tuple[str, bool]]:
    """Every module of the package that some code imports, anywhere in it, and whether only for type checking."""
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            folder = module.split(".")[: -node.level or None] if node.level else []
            source = ".".join([*folder, *([node.module] if node.module else [])])
            names = [f"{source}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from ((name, node in for_types) for name in names if name == "kgot_lab" or name.startswith("kgot_lab."))


def room_of(name: str) -> str:
    """The room (or top-level file) of a dotted name; what the front door re-exports belongs to the front door."""
    second = name.split(".")[1] if "." in name else ""
    return second if second in FLOOR_OF or ((PACKAGE / second).is_dir() and second) else "__init__"


def climbs(source: str, module: str) -> list[str]:
    """The imports of a module that do not go down."""
    own = room_of(module)
    found = []
    for name, for_types in imported(ast.parse(source), module):
        if name == "kgot_lab.__version__" or (own == "sandbox" and for_types and name.startswith("kgot_lab.stores.protocol")):
            continue
        theirs = room_of(name)
        if FLOOR_OF[own] != FLOOR_OF[theirs] and FLOOR_OF[theirs][0] >= FLOOR_OF[own][0]:
            found.append(f"{module} ({own}) imports {name} ({theirs})")
    return found


def prints(source: str) -> list[int]:
    """The lines that call print or typer.echo."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return [call.lineno for call in calls if ast.unparse(call.func) in {"print", "typer.echo"}]


def dotted(path: Path) -> str:
    return ".".join(("kgot_lab", *path.relative_to(PACKAGE).with_suffix("").parts))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_only_go_down(path):
    assert climbs(path.read_text(encoding="utf-8"), dotted(path)) == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_only_the_command_line_prints(path):
    assert path.name in {"cli.py", "bench.py", "sharing.py", "terminal.py"} or prints(path.read_text(encoding="utf-8")) == []


def test_every_room_has_its_place_in_the_order_and_no_file_lies_deeper_than_room_and_file():
    rooms = {path.relative_to(PACKAGE).with_suffix("").parts for path in MODULES}
    assert {parts[0] for parts in rooms} <= set(FLOOR_OF)
    assert max(map(len, rooms)) <= 2


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("kgot_lab.graph", "from kgot_lab.stores.protocol import Schema"),
        ("kgot_lab.graph", "import kgot_lab.llm.local as local"),
        ("kgot_lab.llm.local", "def load():\n    from kgot_lab import sandbox"),
        ("kgot_lab.llm.local", "from ..loop import think"),
        ("kgot_lab.memory.extract", "from kgot_lab.retrieval.bm25 import bm25"),
        ("kgot_lab.loop.think", "from kgot_lab.viz import svg"),
        ("kgot_lab.loop.think", "from kgot_lab import solve"),
        ("kgot_lab.llm.local", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from kgot_lab.stores.protocol import Schema"),
        ("kgot_lab.sandbox.inside.worker", "from kgot_lab.stores.protocol import Execute"),
        ("kgot_lab.types", "import kgot_lab"),
        ("kgot_lab.viz.diagnosis", "from kgot_lab.cli.terminal import say"),
    ],
)
def test_an_import_that_climbs_is_found(module, source):
    assert climbs(source, module)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("kgot_lab.bundled", "from kgot_lab.errors import UnknownName"),
        ("kgot_lab.graph", "from kgot_lab import exchange"),
        ("kgot_lab.llm.local", "from .tape import Tape\nfrom kgot_lab.types import Prompt\nimport networkx"),
        ("kgot_lab.stores.in_memory", "from kgot_lab.sandbox import run"),
        ("kgot_lab.sandbox.inside.worker", "import typing\nif typing.TYPE_CHECKING:\n    from kgot_lab.stores.protocol import Execute"),
        ("kgot_lab.viz.page", "from kgot_lab import __version__\nfrom kgot_lab.loop.events import Asked"),
        ("kgot_lab.__init__", "from kgot_lab.loop import think"),
    ],
)
def test_an_import_that_goes_down_is_fine(module, source):
    assert climbs(source, module) == []


def test_a_print_is_found_wherever_it_hides():
    assert prints("x = 1\ndef f():\n    return [print(y) for y in ()]\n# print(x)\ntext = 'print(x)'") == [3]
