"""Commands that write files to share: a graph or notebooks as self-contained HTML."""

from __future__ import annotations

from pathlib import Path

import typer

from kgot_lab.cli.options import argument, option
from kgot_lab.cli.terminal import require_distinct_paths, say
from kgot_lab.errors import BadInput
from kgot_lab.text.cleaning import format_count, printable_line


def export(
    source: Path = argument(
        "a file with a graph of any program, a store's file, a run's trace, or a folder of documents"
    ),
    out: Path = option("the HTML file to write", default=Path("graph.html")),
) -> None:
    """Write a graph as one interactive HTML file, which works from disk and fetches nothing."""
    from kgot_lab.documents.folder import read_documents
    from kgot_lab.kgos.extraction.entity_graph import entity_graph
    from kgot_lab.kgos.query.graph_loading import load_graph
    from kgot_lab.loop.trace import is_trace
    from kgot_lab.viz.page import export_graph as write_export

    if not source.exists():
        raise BadInput(f"there is no file {source}: name a snapshot, a trace or a folder of documents")
    traced = source.is_file() and is_trace(source)
    require_distinct_paths(source=source, out=out)
    require_distinct_paths(trace=source if traced else None, out=out)
    if out.exists() and out.suffix.lower() not in {".html", ".htm"}:
        raise BadInput(f"{out} is there and no page, and would be lost: name a file that ends in .html")
    if source.is_dir():
        library = read_documents(source)
        say("\n".join(map(str, (library, *library.skipped, *library.doubtful))))
        graph = entity_graph(library.documents)
        for node in graph.nodes:
            if aliases := node.properties.get("aliases"):
                say(f"one entity: {', '.join(aliases)} = {node.id}")
    else:
        graph = load_graph(str(source), say=say)
    typer.echo(f"{graph}: {write_export(graph, out, title=source.stem)}")


def write_pages(
    notebooks: list[Path] = argument("notebooks, in the order in which they are read"),
    folder: Path = option("where the pages go", default=Path("pages")),
    live: bool = option("run the notebooks, so that views on the pages are live", "--live", default=False),
    title: str = option("title of the front page", default="Notebooks"),
) -> None:
    """Write notebooks as linked HTML pages with a front page; nothing is fetched from outside."""
    from kgot_lab.viz.course import write_course

    for page in write_course(notebooks, folder, live=live, title=title, tell=say):
        typer.echo(f"{page} ({page.stat().st_size / 1000:,.0f} kB)")


def list_namespaces(
    address: str = argument("a server: bolt://HOST, neo4j://HOST, or http://HOST of a SPARQL endpoint"),
    delete: str | None = option("delete this namespace with all it holds"),
) -> None:
    """List the namespaces of a server, one graph each, or delete one."""
    from kgot_lab.stores import delete_namespace, namespaces

    if delete is not None:
        delete_namespace(address, namespace=delete)
        typer.echo(f"{delete} is deleted")
        return
    found = namespaces(address)
    for name, size in found.items():
        typer.echo(f"{printable_line(name):40}  {size.nodes:9,} nodes  {size.edges:9,} edges")
    if not found:
        typer.echo("no namespace yet")


# The command that converts notebooks to slides.


def make_slides(
    notebooks: list[Path] = argument("notebooks, as they are stored; nothing is run"),
    folder: Path = option("where the slides go", default=Path("slides")),
) -> None:
    """Write notebooks as slides, one self-contained HTML file each.

    Page Down shows the next slide, and in print each slide starts a page.
    """
    from kgot_lab.viz.notebook_page import write_slides

    for path in write_slides(notebooks, folder):
        typer.echo(f"{path} ({path.stat().st_size / 1000:,.0f} kB)")


# The command that tabulates submitted solutions.

NO_CHEATING_PROTECTION = "not proof against cheating: a file says what its writer wanted; the digest notices accidental damage only"


def show_marks(
    files: list[Path] = argument("files that readers wrote with lab.hand_in(NAME)"),
    as_csv: Path | None = option("write the table to this file, for a spreadsheet", "--csv"),
) -> None:
    """Show who solved which exercise at which attempt, from submitted files.

    Damaged files are named and skipped.
    """
    from kgot_lab.io.files import write_atomically
    from kgot_lab.viz.exercises import collect_marks, read_hand_in
    from kgot_lab.viz.static.table import Table

    handed, damaged = [], 0
    once = {path.resolve(): path for path in reversed(files)}
    if len(once) < len(files):
        say(f"note: {format_count(len(files) - len(once), 'file')} given again, and counted once")
    for path in reversed(once.values()):
        require_distinct_paths(handed_in=path, csv=as_csv)
        try:
            handed.append(read_hand_in(path))
        except BadInput as error:
            if len(once) == 1:
                raise
            damaged += 1
            say(f"note: {error}")
    if handed:
        marks = collect_marks(handed)
        typer.echo(repr(Table((marks.table(),))))
        if as_csv is not None:
            write_atomically(as_csv, marks.csv(), "the marks")
            say(f"the table is in {as_csv}")
        say(NO_CHEATING_PROTECTION)
    if damaged:
        count = f"{format_count(damaged, 'file')} of {len(handed) + damaged}"
        raise BadInput(f"{count} could not be taken into account")
