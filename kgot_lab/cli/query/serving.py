"""`kgot-lab mcp GRAPH`: a graph for assistants, by the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgot_lab.cli import terminal
from kgot_lab.errors import BadInput

if TYPE_CHECKING:
    from kgot_lab.graph import PropertyGraph
    from kgot_lab.types import Diff


def serve_mcp(
    graph: Annotated[str, typer.Argument(help="a graph's file, a store's address, SQLite, or a folder of code, settings and Markdown")],
    namespace: Annotated[str | None, typer.Option("--namespace", help="which graph of a server")] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--http", min=1, max=65535, help="serve streamable HTTP on this port of this computer; without it standard input and output"
        ),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option("--write", help="let assistants change the graph: each change is checked, and the whole kept in this new file"),
    ] = None,
) -> None:
    """Serve a graph to assistants by the Model Context Protocol: questions as tools, the graph as resources; read-only without --write."""
    from kgot_lab.cli.query.shared import Named
    from kgot_lab.editing.editor import Editor
    from kgot_lab.stores.files import check_graph_file
    from kgot_lab.toolkit.mcp_server import graph_server

    if write is not None:
        check_graph_file(write)
        if write.exists():
            raise BadInput(f"{write} is there already, and would be lost: name another file")
    found = Named(graph, namespace).graph
    editor = None if write is None else Editor(found, by="assistant", store=_Kept(found, write))
    server = graph_server(found, name=Path(graph).name or graph, editor=editor)
    if port is None:
        terminal.say(f"serving {found} on standard input and output")
        server.run("stdio")
    else:
        terminal.say(f"serving {found} at http://127.0.0.1:{port}/mcp; Ctrl-C ends it")
        server.run("streamable-http", host="127.0.0.1", port=port)


class _Kept:
    """A file that is written whole after each change."""

    def __init__(self, graph: PropertyGraph, path: Path):
        self._graph, self._path = graph, path

    def apply(self, diff: Diff) -> None:
        from kgot_lab.stores.files import write_graph

        self._graph = self._graph.apply(diff)
        write_graph(self._graph, self._path)
