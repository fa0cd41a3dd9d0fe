"""What lies on the graph of a world: a log of its sessions, texts with vectors, and both searched as one of
those in it may.
"""

from kgot_lab.domains.layers.hot import HotBudget, hot_context
from kgot_lab.domains.layers.memory import WorldLayers
from kgot_lab.domains.layers.things import Chunk, LogEntry

__all__ = ["Chunk", "HotBudget", "LogEntry", "WorldLayers", "hot_context"]
