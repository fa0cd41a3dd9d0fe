"""What of that which a graph was told before is meant by words such as "the fire in its warehouse": the one
event that they fit, or none.

Names and numbers among the words must all be of the event, more than half of the words must be, and one of
them at least must be more than a name of what it bears upon. Of those that fit, the one with most of the
words is meant; where two have as many, neither is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kgot_lab.domains.investment.monitor.entity_resolution import distinctive_names
from kgot_lab.domains.investment.view import InvestmentView, shown_name
from kgot_lab.text.words import content_words
from kgot_lab.types import Node

_JOINED = ("affects", "about")  # to what an event or an observation bears upon


def meant_by(words: str, view: InvestmentView, types: Sequence[str]) -> list[Node]:
    """The live events, and observations where `types` say so, that words may mean: one, or several that they
    fit equally well, or none.
    """
    asked, names = set(content_words(words)), set(content_words(" ".join(distinctive_names(words))))
    told = [each.node for each in view.nodes(*types) if not each.node.properties.get("action")]
    joined = view.edges_from([node.id for node in told], _JOINED)
    ends = {each.node.id: each.node for each in view.nodes_by_id(each.edge.target for each in joined)}
    found: dict[int, list[Node]] = {}
    for node in told:
        around = _words_of(
            shown_name(ends[each.edge.target]) for each in joined if each.edge.source == node.id
        )
        own = _words_of([str(node.properties["summary"]), str(node.properties["type"]).replace("_", " ")])
        shared = asked & (own | around)
        if names <= shared and 2 * len(shared) > len(asked) and asked & (own - around):
            found.setdefault(len(shared), []).append(node)
    return found[max(found)] if found else []


def _words_of(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in content_words(text)}
