"""How strongly a link from passage to passage hints at gold in a data set: what a walk along links can hope
for.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

from kgot_lab.errors import BadInput
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.retrieval.entity_linking import capitalised_names, title_graph
from kgot_lab.types import Json


@dataclass(frozen=True)
class LinkedGold:
    """Shares of pairs of passages that are gold of one question, and how many names and links a gold passage
    has, on average.
    """

    of_all: float  # of all pairs of passages
    of_linked: float  # of the pairs of which one mentions the other's title
    of_touching: float  # of those linked pairs of which at least one is gold
    names: float  # different capitalised names in a gold passage
    links: float  # linked pairs for each gold passage

    @property
    def times(self) -> float:
        """How many times likelier a linked pair is to be gold of one question than any pair."""
        return self.of_linked / self.of_all

    def row(self) -> dict[str, Json]:
        """The numbers for a table."""
        return {
            "pairs that are gold of one question: of all": f"{self.of_all:.3%}",
            "of linked": f"{self.of_linked:.1%}",
            "times": f"{self.times:,.0f}",
            "of linked, one being gold": f"{self.of_touching:.0%}",
            "capitalised names in a gold passage": f"{self.names:.1f}",
            "links at it": f"{self.links:.1f}",
        }


def linked_gold(data: Dataset) -> LinkedGold:
    """What links by title say of gold in a data set; raises BadInput where nothing is linked to a gold
    passage of a question with two.
    """
    linked = {frozenset((edge.source, edge.target)) for edge in title_graph(data.documents).edges}
    together = {frozenset(pair) for gold in data.qrels.values() for pair in combinations(gold, 2)}
    needed = {id for pair in together for id in pair}
    touching = [pair for pair in linked if pair & needed]
    if not touching:
        raise BadInput(
            f"{data.name} has no link at a gold passage of a question with two: nothing can be said of links there"
        )
    both = len(linked & together)
    return LinkedGold(
        of_all=len(together) / comb(len(data.documents), 2),
        of_linked=both / len(linked),
        of_touching=both / len(touching),
        names=sum(
            len(set(capitalised_names(document.text))) for document in data.documents if document.id in needed
        )
        / len(needed),
        links=len(touching) / len(needed),
    )
