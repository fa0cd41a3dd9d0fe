"""Show a graph, a table or a whole run: for notebooks and the command line."""

from kgot_lab.viz.graph_view import GraphView, show_graph
from kgot_lab.viz.page import page
from kgot_lab.viz.svg import Picture, svg
from kgot_lab.viz.table import Table, table

__all__ = ["GraphView", "Picture", "Table", "page", "show_graph", "svg", "table"]
