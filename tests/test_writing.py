"""Files that are written whole or not at all: on a disk that takes no more, over a link, a device, and files
of every room.
"""

from __future__ import annotations

import ast
import os
import resource
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import kgot_lab
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.results import Plan
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.snapshots import write_snapshot
from kgot_lab.io.files import bundled_path, write_atomically
from kgot_lab.loop.state import ledger
from kgot_lab.loop.trace import load_run
from kgot_lab.stores.files import write_graph
from kgot_lab.types import Node
from kgot_lab.viz.course import write_course
from kgot_lab.viz.graph.svg import svg
from kgot_lab.viz.html import html
from kgot_lab.viz.page import export_graph
from kgot_lab.viz.plots.figure import new_figure, plot

PACKAGE = Path(kgot_lab.__file__).parent
IN_PLACE = {  # what writes a file otherwise, and why it may
    "io/files.py": "the one place",
    "cli/output_files.py": "an empty file, which says to another command that the place is taken",
    "documents/archives.py": "into a folder of its own, which takes its name when all is there",
    "llm/model_file.py": "gigabytes, in a file that takes its name when it is whole and has been checked",
    "llm/recorded.py": "empties a recording that was stopped in its head, before the next line",
    "loop/trace.py": "event by event",
    "stores/sqlite/salvage.py": "a copy beside what is damaged and stays there until the copy is whole",
}

GRAPH = PropertyGraph.of([Node("Ada Lovelace")], [])
NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "00_tour.ipynb"


@contextmanager
def no_room() -> Iterator[None]:
    """This process may write no file beyond its first 20 bytes, as on a disk that fills up."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


WRITES_WHOLE = {"write_text", "write_bytes"}
WRITES_TO_A_PATH = {"savefig", "savez", "savez_compressed", "write_graphml"}


def writes_in_place(source: str) -> list[str]:
    """The calls in a module that write a file of their own from its beginning."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [ast.unparse(call) for call in calls if _writes(call)]


def _writes(call: ast.Call) -> bool:
    name = (
        call.func.attr
        if isinstance(call.func, ast.Attribute)
        else call.func.id
        if isinstance(call.func, ast.Name)
        else ""
    )
    if name not in {"open", *WRITES_WHOLE, *WRITES_TO_A_PATH}:
        return False
    given = [
        *call.args,
        *(keyword.value for keyword in call.keywords if keyword.arg in {"mode", "file", "path"}),
    ]
    first = ast.unparse(given[0]) if given else ""
    if name == "open":
        modes = [
            each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str)
        ]
        return any(set(mode) <= set("rwxabt+") and set(mode) & set("wx") for mode in modes)
    return name in WRITES_WHOLE or "path" in first


def write_page(path: Path) -> None:
    html(load_run(bundled_path("traces/hotpotqa_demo.jsonl"))).save(path)


def write_export(path: Path) -> None:
    export_graph(GRAPH, path)


def write_notebook(path: Path) -> None:
    pytest.importorskip("nbconvert")
    write_course([NOTEBOOK], path.parent)


def write_ledger(path: Path) -> None:
    ledger(load_run(bundled_path("traces/hotpotqa_demo.jsonl")).events).save(path)


def write_picture(path: Path) -> None:
    svg(GRAPH).save(path)


def write_plot(path: Path) -> None:
    pytest.importorskip("matplotlib")
    with new_figure(2, 2) as (figure, _):
        drawn = plot(figure, "nothing", [])
    drawn.save(path)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("write", "name"),
    [
        (write_page, "run.html"),
        (write_export, "graph.html"),
        (write_notebook, "00_tour.html"),
        (lambda path: write_snapshot(GRAPH, path), "graph.jsonl"),
        (lambda path: write_graph(GRAPH, path), "graph.graphml"),
        (write_ledger, "ledger.jsonl"),
        (write_picture, "graph.svg"),
        (write_plot, "plot.png"),
        (lambda path: Plan("bm25").save(path), "plan.json"),
    ],
    ids=["page", "export", "notebook", "snapshot", "graph", "ledger", "picture", "plot", "plan"],
)
def test_where_there_is_no_room_what_was_there_stays_and_nothing_is_left_half_written(
    tmp_path: Path, write: Callable[[Path], None], name: str
) -> None:
    path = tmp_path / name
    for before in ([], [name]):
        with no_room(), pytest.raises(BadInput, match=f"cannot write the [a-z]+ .*{name}: File too large"):
            write(path)
        assert [file.name for file in tmp_path.iterdir()] == before
        path.write_text("as it was")
    write(path)
    assert not list(tmp_path.glob(".*")) and path.stat().st_size > 20


def test_a_file_keeps_its_rights_and_a_link_its_file(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    file, link = tmp_path / "kept" / "page.html", tmp_path / "page.html"
    file.write_text("before")
    file.chmod(0o640)
    link.symlink_to(file)
    assert write_atomically(link, "after \ud800", "the page") == link
    assert link.is_symlink()
    assert file.read_text() == "after \\ud800"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_pipe_stays_a_pipe_and_is_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()
    write_atomically(tmp_path / "pipe", "through it", "the page")
    reader.join()
    assert read == ["through it"] and stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_no_module_writes_a_result_in_place_but_those_with_a_reason():
    found = {
        path.relative_to(PACKAGE).as_posix(): calls
        for path in sorted(PACKAGE.rglob("*.py"))
        if (calls := writes_in_place(path.read_text(encoding="utf-8")))
    }
    assert {name: calls for name, calls in found.items() if name not in IN_PLACE} == {}
    assert set(IN_PLACE) <= set(found), "a module that writes nothing in place needs no reason"


def test_writing_in_place_is_found_however_it_is_put():
    source = """
path.write_text("whole")
path.write_bytes(b"whole")
path.open("w", encoding="utf-8")
open("file", "xb")
path.open(mode="wb")
figure.savefig(path, dpi=200)
path.open("rb"), path.open("a"), open("w.txt"), figure.savefig(text), write_atomically(path, "whole", "the page")
"""
    assert len(writes_in_place(source)) == 6


def test_a_folder_is_made_and_one_in_the_way_is_named(tmp_path: Path) -> None:
    assert write_atomically(tmp_path / "new" / "page.html", "text", "the page").read_text() == "text"
    with pytest.raises(BadInput, match=r"cannot write the page .*new: Is a directory"):
        write_atomically(tmp_path / "new", "text", "the page")
