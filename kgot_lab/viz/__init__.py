"""Show a graph, a table or a whole run: for notebooks and the command line."""

from kgot_lab.viz.page import page
from kgot_lab.viz.svg import Picture, svg
from kgot_lab.viz.table import Table, table

__all__ = ["Picture", "Table", "page", "svg", "table"]
