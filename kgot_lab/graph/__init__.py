"""Hold a graph still: its columns, what changed, its way in and out, and the truth that a parent process
keeps.
"""

from kgot_lab.graph.property_graph import PropertyGraph

__all__ = ["PropertyGraph"]
