"""Memory of conversations as triples: stores, extraction from text, and an agent that uses them."""

from kgot_lab.memory.agent import Agent, AgentConfig, ConversationMemory, EntityMemory
from kgot_lab.memory.knowledge import KnowledgeGraphMemory

__all__ = ["Agent", "AgentConfig", "ConversationMemory", "EntityMemory", "KnowledgeGraphMemory"]
