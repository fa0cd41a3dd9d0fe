"""A folder of code read into a graph by a process of its own, so that a server goes on answering meanwhile."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.query.graph_loading import opened_graph


def read_graph_in_worker(folder: Path) -> PropertyGraph:
    """The graph of a folder; raises BadInput where it cannot be read."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as apart:
        try:
            return apart.submit(opened_graph, str(folder)).result()
        except BrokenProcessPool:
            raise BadInput(
                f"reading the folder {folder.name} ended before its time, perhaps for lack of memory"
            ) from None
