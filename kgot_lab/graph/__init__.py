"""Property graphs: an immutable graph, diffs, conversions, snapshots and validation."""

from kgot_lab.graph.property_graph import PropertyGraph

__all__ = ["PropertyGraph"]
