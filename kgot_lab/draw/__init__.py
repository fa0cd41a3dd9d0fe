"""Draw a graph, a plot, two texts or a table: still, so that it shows wherever it is read."""

from kgot_lab.draw.pipeline import pipeline
from kgot_lab.draw.structure import StructureView, structure
from kgot_lab.draw.svg import Picture, svg
from kgot_lab.draw.table import Table, table

__all__ = ["Picture", "StructureView", "Table", "pipeline", "structure", "svg", "table"]
