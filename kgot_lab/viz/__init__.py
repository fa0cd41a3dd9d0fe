"""Views of graphs, runs, rankings, texts and tables, for notebooks and the command line."""

from kgot_lab.viz import plots
from kgot_lab.viz.analogy import structure
from kgot_lab.viz.exercises import exercise
from kgot_lab.viz.explorer.explorer import Retrievers, explore, explore_dataset
from kgot_lab.viz.external_requests import find_external_requests
from kgot_lab.viz.graph.svg import Picture, svg
from kgot_lab.viz.graph.view import GraphView, show_graph
from kgot_lab.viz.html import html
from kgot_lab.viz.page import build_run_page, export_graph
from kgot_lab.viz.static.pipeline import pipeline
from kgot_lab.viz.static.table import Table, table
from kgot_lab.viz.stepping.stepper import stepper

__all__ = [
    "GraphView", "Picture", "Retrievers", "Table", "build_run_page", "exercise", "explore", "explore_dataset", "export_graph",
    "find_external_requests", "html", "pipeline", "plots", "show_graph", "stepper", "structure", "svg", "table",
]  # fmt: skip
