"""A Jupyter workbench that shows how a language model grows and queries a knowledge graph, and measures whether it helps."""

__version__ = "0.1.0"
