"""The graph that somebody names: a file of any known form, a store's address, or a folder, which is read
first.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.extraction.folder import FileProgress, graph_of_folder
from kgot_lab.kgos.extraction.patterns import with_patterns
from kgot_lab.kgos.query.graph_loading import is_store_file, read_store_file
from kgot_lab.loop.evidence import sourced
from kgot_lab.loop.trace import graph_after, is_trace, load_run
from kgot_lab.stores.files import read_named_graph
from kgot_lab.stores.opening import login_of, open_store

SayTo = Callable[[str], None]


def opened_graph(
    where: str,
    *,
    namespace: str | None = None,
    cache: Path | Literal[False] | None = None,
    say: SayTo | None = None,
    progress: FileProgress | None = None,
    client: Any = None,
) -> PropertyGraph:
    """The graph at a place; what is there stays as it is. `say` is told what had to be guessed, `progress` of
    the files of a folder.

    A Dask `client` shares out the reading of a folder.
    Raises BadInput where nothing can be read, and what opening a store raises.
    """
    told = say or (lambda _: None)
    if "://" in where:
        if not namespace:
            raise BadInput(
                f"say which graph of the server: --namespace NAME before its address; kgot-lab namespaces {where} lists them"
            )
        with closing(open_store(where, namespace=namespace, **login_of(where))) as kept:
            return kept.graph()
    path = Path(where).expanduser()
    if path.is_dir():
        found = graph_of_folder(path, cache=cache, progress=progress, client=client)
        whole = with_patterns(found.graph)
        told(
            f"{found.describe(None)}\n  with the patterns in it {len(whole):,} nodes, {len(whole.edge_keys):,} edges"
        )
        return whole
    if not path.is_file():
        raise BadInput(
            f"no graph at {where}: name a folder, a snapshot, a GraphML, Turtle or CSV file, a trace, SQLite, a store's file or address"
        )
    if is_trace(path):
        events = load_run(path).events
        return sourced(graph_after(events), events)
    read = read_store_file(path) if is_store_file(path) else read_named_graph(path)
    if read.note:
        told(f"note: {where}: {read.note}")
    return read.graph
