"""Look at a memory of claims: review what waits, see what fell, and walk through the times at which facts are
valid.
"""

from kgot_lab.viz.claims import before_and_after, over_time, review

__all__ = ["before_and_after", "over_time", "review"]
