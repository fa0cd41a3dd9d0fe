"""Files that are written whole or not at all: on a disk that takes no more, over a link, a device, and files of every room."""

from __future__ import annotations

import os
import resource
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kgot_lab.bundled import bundled
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.snapshots import write_snapshot
from kgot_lab.loop.trace import load_run
from kgot_lab.types import Node
from kgot_lab.viz import export
from kgot_lab.viz.html import html
from kgot_lab.viz.notebook_page import write_notebook_pages
from kgot_lab.writing import write_whole

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


def write_page(path: Path) -> None:
    html(load_run(bundled("traces/hotpotqa_demo.jsonl"))).save(path)


def write_export(path: Path) -> None:
    pytest.importorskip("pyvis")
    export(GRAPH, path)


def write_notebook(path: Path) -> None:
    pytest.importorskip("nbconvert")
    write_notebook_pages([NOTEBOOK], path.parent)


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (write_page, "run.html"),
        (write_export, "graph.html"),
        (write_notebook, "00_tour.html"),
        (lambda path: write_snapshot(GRAPH, path), "graph.jsonl"),
    ],
    ids=["page", "export", "notebook", "snapshot"],
)
def test_where_there_is_no_room_what_was_there_stays_and_nothing_is_left_half_written(
    tmp_path: Path, write: Callable[[Path], None], name: str
) -> None:
    path = tmp_path / name
    for before in ([], [name]):
        with no_room(), pytest.raises(BadInput, match=f"cannot write the (page|snapshot) .*{name}: File too large"):
            write(path)
        assert [file.name for file in tmp_path.iterdir()] == before
        path.write_text("as it was")
    write(path)
    assert [file.name for file in tmp_path.iterdir()] == [name] and len(path.read_text(encoding="utf-8")) > 20


def test_a_file_keeps_its_rights_and_a_link_its_file(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    file, link = tmp_path / "kept" / "page.html", tmp_path / "page.html"
    file.write_text("before")
    file.chmod(0o640)
    link.symlink_to(file)
    assert write_whole(link, "after \ud800", "the page") == link
    assert link.is_symlink() and file.read_text() == "after \\ud800" and stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_pipe_stays_a_pipe_and_is_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()
    write_whole(tmp_path / "pipe", "through it", "the page")
    reader.join()
    assert read == ["through it"] and stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_folder_is_made_and_one_in_the_way_is_named(tmp_path: Path) -> None:
    assert write_whole(tmp_path / "new" / "page.html", "text", "the page").read_text() == "text"
    with pytest.raises(BadInput, match=r"cannot write the page .*new: Is a directory"):
        write_whole(tmp_path / "new", "text", "the page")
