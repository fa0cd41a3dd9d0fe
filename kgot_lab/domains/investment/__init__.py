"""An investment graph that stays fresh: events, what they affect, whose holdings they reach, and briefings.

Nothing here is financial advice. Signals, strengths, decays and lifetimes are inputs and settings of a
demonstration, and a briefing only repeats what the graph was told. Discoveries are stored in the graph.
Holdings are stored in tables of accounts, in another place, and never in the graph, which knows the owner of
a private node by a key that only the accounts can map to a user.
"""

from kgot_lab.domains.investment.briefing import Holdings, Wishes, briefings
from kgot_lab.domains.investment.graph import open_investment_graph
from kgot_lab.domains.investment.reach import reach
from kgot_lab.domains.investment.view import investment_node

__all__ = ["Holdings", "Wishes", "briefings", "investment_node", "open_investment_graph", "reach"]
