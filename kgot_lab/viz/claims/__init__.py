"""Look at a memory of claims: review what waits, see what fell, and walk through the times at which facts are
valid.
"""

from kgot_lab.viz.claims.before_and_after import before_and_after
from kgot_lab.viz.claims.over_time import over_time
from kgot_lab.viz.claims.review import review

__all__ = ["before_and_after", "over_time", "review"]
