"""An investment graph that stays fresh: what happened, what it affects, whose holdings it reaches, and who is
to hear of it.

Nothing here is financial advice: signals, strengths, decays and lifetimes are inputs and settings of a
demonstration, and a briefing only repeats what a graph was told. What is discovered lies in the graph; who
holds what lies in tables of accounts, in another place, and never in the graph, which knows the owner of a
private node by a key that only the accounts can turn into a user.
"""

from kgot_lab.domains.investment.briefing import Holdings, Wishes, briefings
from kgot_lab.domains.investment.graph import open_investment_graph
from kgot_lab.domains.investment.reach import reach
from kgot_lab.domains.investment.view import investment_node

__all__ = ["Holdings", "Wishes", "briefings", "investment_node", "open_investment_graph", "reach"]
