"""Layers on the graph of a world: a session log and texts with embeddings, searched as a character may."""

from kgot_lab.domains.npc.layers.memory import WorldLayers, hot_context
from kgot_lab.domains.npc.layers.models import Chunk, LogEntry
from kgot_lab.domains.npc.layers.tools import memory_tools

__all__ = ["Chunk", "LogEntry", "WorldLayers", "hot_context", "memory_tools"]
