"""Look at a world of characters: what someone sees of it, and the same question put to several of them side
by side.
"""

from kgot_lab.viz.worlds.comparison import sights_beside
from kgot_lab.viz.worlds.visible_graph import seen_graph

__all__ = ["seen_graph", "sights_beside"]
