"""Look at a world of characters: what someone sees of it, and the same question put to several of them side
by side.
"""

from kgot_lab.viz.worlds import compare_visibility, seen_graph

__all__ = ["compare_visibility", "seen_graph"]
