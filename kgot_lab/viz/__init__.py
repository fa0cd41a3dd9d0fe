"""Show a graph, a run, a ranking, two texts or a table: for notebooks and the command line."""

from kgot_lab.viz.explorer import Lanes, explore, explore_dataset
from kgot_lab.viz.export import export
from kgot_lab.viz.graph_view import GraphView, show_graph
from kgot_lab.viz.html import html
from kgot_lab.viz.page import page
from kgot_lab.viz.pipeline import pipeline
from kgot_lab.viz.stepper import stepper
from kgot_lab.viz.structure import structure
from kgot_lab.viz.svg import Picture, svg
from kgot_lab.viz.table import Table, table

__all__ = [
    "GraphView", "Lanes", "Picture", "Table", "explore", "explore_dataset", "export", "html", "page", "pipeline",
    "show_graph", "stepper", "structure", "svg", "table",
]  # fmt: skip
