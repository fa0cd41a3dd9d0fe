"""Edit a graph in a notebook: a node at a time, with what the rules answer."""

from kgot_lab.viz.editing import Editing, edit

__all__ = ["Editing", "edit"]
