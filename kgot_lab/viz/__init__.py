"""Show a graph, a run, a ranking, two texts or a table, live where that is possible: for notebooks and the
command line.
"""

from kgot_lab.draw import plots
from kgot_lab.draw.exercise import exercise
from kgot_lab.draw.graph.svg import Picture, svg
from kgot_lab.draw.outside import references
from kgot_lab.draw.pipeline import pipeline
from kgot_lab.draw.structure.view import structure
from kgot_lab.draw.table import Table, table
from kgot_lab.viz.explorer import Lanes, explore, explore_dataset
from kgot_lab.viz.export import export
from kgot_lab.viz.graph_view import GraphView, show_graph
from kgot_lab.viz.html import html
from kgot_lab.viz.page import page
from kgot_lab.viz.probe import doctor
from kgot_lab.viz.side_by_side import side_by_side
from kgot_lab.viz.stepping.stepper import stepper

__all__ = [
    "GraphView", "Lanes", "Picture", "Table", "doctor", "exercise", "explore", "explore_dataset", "export", "html", "page", "pipeline",
    "plots", "references", "show_graph", "side_by_side", "stepper", "structure", "svg", "table",
]  # fmt: skip
