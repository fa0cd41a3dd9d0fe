"""The order of the rooms: a module imports its own room and lower ones, and only the command line prints."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import kgot_lab

PACKAGE = Path(kgot_lab.__file__).parent
FLOORS = [  # lowest first; rooms that stand side by side do not import each other
    [{"errors"}],
    [{"types", "bundled", "copies", "inherited", "locking", "reading", "timing", "workers", "writing"}],
    [{"text"}, {"http"}],
    [{"graph"}, {"evaluation"}],
    [{"sandbox.inside"}, {"llm"}],
    [{"sandbox"}, {"embedding"}, {"schemas"}],
    [{"schemas.dimensions"}, {"schemas.rules"}],
    [{"schemas.profiles"}],  # reading a file finds what two of the rules ask for
    [{"documents"}, {"stores"}, {"extraction.facts"}],
    [{"extraction.python"}, {"extraction.scripts"}, {"extraction.texts"}],
    [{"stores.cypher"}, {"stores.sparql"}, {"stores.sqlite"}, {"stores.postgres"}],
    [{"stores.files"}],
    [{"retrieval", "retrieval.trail"}, {"pairs"}, {"extraction"}],
    [{"extraction.patterns"}, {"extraction.concepts"}],
    [{"analogy"}],
    [{"memory"}, {"methods"}],
    [{"memory.tables"}, {"methods.search"}, {"methods.structure"}],
    [{"memory.claims"}],
    [{"tools.web"}, {"editing"}],
    [{"tools"}],
    [{"paths"}],
    [{"loop", "loop.along"}],  # its mode for paths has a sub-room
    [{"loop.again"}, {"loop.certified"}, {"loop.lasting"}, {"experts.delegation"}, {"experts.trials"}],
    [
        {"domains.npc"},
        {"domains.investment"},
        {"experiments.recall"},
        {"experiments.questions"},
        {"experiments.stores"},
    ],
    [{"experiments.beside"}],
    [{"domains.monitor"}, {"domains.layers"}],  # keeps an investment graph up; lie on a world of npc
    [{"experiments.pays"}, {"experiments.beam"}],  # pays answers as questions does
    [{"experiments.trails"}],  # learns on the questions that recall has
    [{"experiments.kgos"}],  # compares systems and puts claims to the data as recall does
    [{"experiments.structure"}],  # takes its texts and reports where recall has them
    [{"experiments.competence"}],  # makes its names as recall does
    [
        {"experiments.certificates"},
        {"experiments.junk"},
        {"experiments.briefings"},
        {"experiments.town"},
    ],  # simulate as competence does; the first changes what pays asks
    [
        {"experiments.delta"},
        {"experiments.transfer"},
    ],  # walk over the texts of structure, and ask its questions again
    [{"draw"}, {"toolkit"}],
    [{"experts", "experts.chat"}],  # finds graphs as the toolkit does
    [{"experts.learning"}],
    [{"experts.doors"}, {"experiments.experts"}],
    [{"draw.graph"}, {"draw.structure"}, {"draw.plots"}, {"draw.methods"}],
    [{"examine"}],
    [{"viz", "viz.stepping"}],  # pages show a run, too
    [{"viz.claims"}, {"viz.course"}, {"viz.slides"}, {"viz.worlds"}],
    [{"viz.editing"}, {"viz.experts"}],  # write down as claims does
    [{"front"}],  # what the front door does in one line: ask, show
    [{"cli", "cli.course", "cli.experts", "cli.query", "__main__"}],  # groups of commands are sub-rooms
    [{"__init__"}],  # the front door may open on every room
]
FLOOR_OF = {
    name: (floor, room)
    for floor, rooms in enumerate(FLOORS)
    for room, names in enumerate(rooms)
    for name in names
}
MODULES = sorted(PACKAGE.rglob("*.py"))
HOUSES = {"experiments", "domains"}  # hold rooms and nothing else


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
        yield from (
            (name, node in for_types) for name in names if name == "kgot_lab" or name.startswith("kgot_lab.")
        )


def room_of(name: str) -> str:
    """The room, sub-room or top-level file of a dotted name; what the front door offers belongs to the front
    door.
    """
    parts = name.split(".")[1:]
    for room in (".".join(parts[:2]), parts[0] if parts else ""):
        if room in FLOOR_OF or (room and (PACKAGE / room.replace(".", "/")).is_dir()):
            return room
    return "__init__"


def climbs(source: str, module: str) -> list[str]:
    """The imports of a module that do not go down."""
    own = room_of(module)
    found = []
    for name, for_types in imported(ast.parse(source), module):
        if name == "kgot_lab.__version__" or (
            own.startswith("sandbox") and for_types and name.startswith("kgot_lab.stores.protocol")
        ):
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


def test_imports_only_go_down():
    assert [
        climb for path in MODULES for climb in climbs(path.read_text(encoding="utf-8"), dotted(path))
    ] == []


def test_only_the_command_line_prints():
    quiet = [path for path in MODULES if "cli" not in path.relative_to(PACKAGE).parts]
    assert [path for path in quiet if prints(path.read_text(encoding="utf-8"))] == []


def test_what_is_loaded_inside_the_sandbox_imports_nothing_of_the_parent():
    """That nothing else is loaded there is tested inside a real one: tests/sandbox/test_worker.py."""
    inside = [path for path in MODULES if path.parent.name == "inside"]
    reached = {
        name
        for path in inside
        for name, _ in imported(ast.parse(path.read_text(encoding="utf-8")), dotted(path))
    }
    assert inside and {name for name in reached if not name.startswith("kgot_lab.sandbox.inside.")} == set()


def test_every_room_has_its_place_in_the_order_and_no_file_lies_deeper_than_sub_room_and_file():
    rooms = {path.relative_to(PACKAGE).parent for path in MODULES if path.parent != PACKAGE}
    assert {".".join(room.parts) for room in rooms} - HOUSES <= set(FLOOR_OF)
    assert {path.stem for path in MODULES if path.parent == PACKAGE} <= set(FLOOR_OF)
    assert max(len(room.parts) for room in rooms) <= 2


def test_no_room_holds_more_files_than_one_overlooks():
    assert {
        room.name: n for room in {path.parent for path in MODULES} if (n := len(list(room.glob("*.py")))) > 22
    } == {}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("kgot_lab.graph.dict_graph", "from kgot_lab.stores.protocol import Schema"),
        ("kgot_lab.graph.dict_graph", "import kgot_lab.llm.local as local"),
        ("kgot_lab.llm.local", "def load():\n    from kgot_lab import sandbox"),
        ("kgot_lab.llm.local", "from ..loop import think"),
        ("kgot_lab.memory.extract", "from kgot_lab.tools.search import search"),
        ("kgot_lab.loop.think", "from kgot_lab.viz import svg"),
        ("kgot_lab.loop.think", "from kgot_lab import solve"),
        (
            "kgot_lab.llm.local",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from kgot_lab.stores.protocol import Schema",
        ),
        ("kgot_lab.sandbox.inside.worker", "from kgot_lab.stores.protocol import Execute"),
        ("kgot_lab.sandbox.inside.worker", "from kgot_lab.sandbox.process import Sandbox"),
        ("kgot_lab.stores.embedded_store", "from kgot_lab.stores.cypher.embedded import CypherEmbedded"),
        ("kgot_lab.stores.cypher.embedded", "from kgot_lab.stores.sparql.triples import triples_of"),
        ("kgot_lab.evaluation.runs", "from kgot_lab.retrieval.stage import Stage"),
        ("kgot_lab.types", "import kgot_lab"),
        ("kgot_lab.diagnostics.components", "from kgot_lab.cli.terminal import say"),
    ],
)
def test_an_import_that_climbs_is_found(module, source):
    assert climbs(source, module)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("kgot_lab.io.bundled", "from kgot_lab.errors import UnknownName"),
        ("kgot_lab.graph.property_graph", "from kgot_lab.graph import exchange"),
        ("kgot_lab.llm.local", "from .tape import Tape\nfrom kgot_lab.types import Prompt\nimport networkx"),
        ("kgot_lab.stores.in_memory", "from kgot_lab.sandbox import run"),
        ("kgot_lab.stores.cypher.embedded", "from kgot_lab.stores.embedded_store import Kept"),
        (
            "kgot_lab.sandbox.process",
            "import typing\nif typing.TYPE_CHECKING:\n    from kgot_lab.stores.protocol import Execute",
        ),
        ("kgot_lab.viz.page", "from kgot_lab import __version__\nfrom kgot_lab.loop.events import Asked"),
        ("kgot_lab.__init__", "from kgot_lab.loop import think"),
    ],
)
def test_an_import_that_goes_down_is_fine(module, source):
    assert climbs(source, module) == []


def test_a_print_is_found_wherever_it_hides():
    assert prints("x = 1\ndef f():\n    return [print(y) for y in ()]\n# print(x)\ntext = 'print(x)'") == [3]
