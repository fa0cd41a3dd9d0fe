"""Find what helps to reach a goal, with its enablers and prerequisites (KG-OS, method 2), and what is
possible (method 3).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from kgot_lab.arguments import check_arguments
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadInput, require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.property_graph import Ints
from kgot_lab.kgos.methods.formatting import MethodResult, NodesFound
from kgot_lab.kgos.methods.index import GraphIndex, Reals, graph_index
from kgot_lab.retrieval.fusion import WEIGHT_PRESETS
from kgot_lab.retrieval.lexical import INTENT_VERBS
from kgot_lab.retrieval.neighbours import BOOST_SEEDS, INCOMING_BOOST, OUTGOING_BOOST
from kgot_lab.text.words import searched_words, topic_words

# edges from what helps to what it helps; the last type is ours
ENABLING_TYPES = ("enables", "optimizes", "reduces", "contributes_to")
PREREQUISITE_TYPES = ("requires",)  # edges to prerequisites


@check_arguments
def want_to(
    graph: PropertyGraph, goal: str, k: int = 10, *, boost_types: Collection[str] | None = None
) -> NodesFound:
    """Rank the nodes that help to reach a goal: score = 2/3 of the text score + 1/3 of the boost.

    Ties are broken by id. Text: the larger of BM25 (k1 1.5, b .75, the eight intent verbs weighted five
    times) and FTS5, each over its maximum. Boost, from the ten best: against `enables`, `optimizes`,
    `reduces` and `contributes_to` to what enables them (+.3), and along `requires` to their prerequisites
    (+.5), over the largest. The document has both directions reversed. With `boost_types`, as
    goal mappings have them, these are followed instead, in both directions. The shares are those of text and
    graph in the preset for goals. Raises BadInput if the goal is blank or not a text.
    """
    if not goal.strip():
        raise BadInput("the goal is blank; say what is wanted, as in 'reduce API costs'")
    require_count(k, 1, "k", "it is how many nodes are kept")
    index = graph_index(graph)
    found, text = index.rows_and_scores(index.goal_retriever.search(goal))
    texts = np.zeros(len(graph))
    texts[found] = text
    seeds = found[:BOOST_SEEDS].astype(np.int32)
    boosts, first = index.links.boosts(seeds, _edge_type_weights(index, boost_types))
    weights = WEIGHT_PRESETS["goal-oriented"]
    scores = (weights.text * texts + weights.graph * boosts) / (weights.text + weights.graph)
    ranked = index.rows_by_score(scores)
    order = ranked[:k]
    reasons = (_format_reason(index, row, texts, first) for row in order.tolist())
    nodes = index.hits(order.tolist(), scores[order].tolist(), reasons)
    why = tuple(_explain_ranking(index, goal, len(found), boost_types, len(ranked) - k))
    return NodesFound(f"want to {goal!r}", nodes, why)


def _edge_type_weights(index: GraphIndex, boost_types: Collection[str] | None) -> Reals:
    if boost_types is not None:
        return index.edge_type_weights(boost_types, along=OUTGOING_BOOST, against=INCOMING_BOOST)
    return index.edge_type_weights(
        ENABLING_TYPES, along=0.0, against=INCOMING_BOOST
    ) + index.edge_type_weights(PREREQUISITE_TYPES, along=OUTGOING_BOOST, against=0.0)


def _format_reason(index: GraphIndex, row: int, texts: Reals, first: Ints) -> str:
    parts = [f"text {texts[row]:.2f}"] if texts[row] else []
    return "; ".join([*parts, index.links.path([int(first[row])])] if first[row] >= 0 else parts)


def _explain_ranking(
    index: GraphIndex, goal: str, found_count: int, boost_types: Collection[str] | None, more: int
) -> list[str]:
    words = list(dict.fromkeys(searched_words(goal)))
    listed_words = ", ".join(f"{word} (weight 5)" if word in INTENT_VERBS else word for word in words)
    none = "no word to look for: stop words and single letters are left out"
    why = [f"words looked for: {listed_words}" if words else none]
    types = [*ENABLING_TYPES, *PREREQUISITE_TYPES] if boost_types is None else sorted(boost_types)
    if not found_count:
        why.append("no node holds one of them")
    elif not set(types) & set(index.graph.type_names):
        why.append(f"no edge of the graph has one of the types {', '.join(types)}")
    elif more > 0:
        why.append(f"{more:,} more score above 0")
    return why


# Whether something can be done, its limitations, and their workarounds (KG-OS, method 3).

CapabilityStatus = Literal["yes", "yes_with_limitations", "no", "unknown"]
_MIN_COVERAGE, _MIN_COVERAGE_OF_OTHERS = (
    0.5,
    2 / 3,
)  # of a question's words by weight, in a node that it is about
_MIN_COSINE = 0.4  # of a question with a node that it is about
_MAX_CANDIDATES = 5


class Limitation(NamedTuple):
    """A limitation, its workarounds, and whether it blocks."""

    id: str
    name: str
    description: str
    workarounds: tuple[str, ...]
    blocking: bool


@dataclass(frozen=True, repr=False)
class Capability(MethodResult):
    """The verdict on a question, with limitations, workarounds and prerequisites."""

    asked: str
    status: CapabilityStatus
    node: str
    limitations: tuple[Limitation, ...]
    prerequisites: tuple[str, ...]
    others: tuple[str, ...]
    why: tuple[str, ...]

    COLUMNS = ("limitation", "name", "description", "workarounds", "blocking")

    @property
    def ids(self) -> list[str]:
        """The node of the verdict, its limitations, their workarounds, and its prerequisites."""
        limits = (limitation.id for limitation in self.limitations)
        return list(dict.fromkeys(filter(None, [self.node, *limits, *self.workarounds, *self.prerequisites])))

    @property
    def workarounds(self) -> tuple[str, ...]:
        """The workarounds of all limitations, each once."""
        return tuple(dict.fromkeys(w for limitation in self.limitations for w in limitation.workarounds))

    @property
    def title(self) -> str:
        return f"can it {self.asked!r}: {self.status}" + (f" ({self.node})" if self.node else "")

    def rows(self) -> Sequence[Limitation]:
        return self.limitations


@check_arguments
def can_it(graph: PropertyGraph, capability: str, *, embedder: Embedder | None = None) -> Capability:
    """Decide whether something can be done, from the node that best matches the question.

    `others` are further nodes that match. yes: the node has no limitation. no: one of its limitations blocks,
    that is, it has no workaround and is not marked blocking: false. yes_with_limitations: otherwise. unknown:
    no node is about it. With an embedder, a node is about it from a cosine of .4, measured with MiniLM. Without
    one it has at least half of the question's words by weight, or two thirds if its type is not capability,
    where rare words weigh more, and the first word in its name; or all words, some of them in its name. A node
    that limits another, and an anti-pattern, does nothing, so no verdict is about it. A workaround edge may
    leave the limitation or the limited node. Raises BadInput.
    """
    if not capability.strip():
        raise BadInput("nothing is asked; say what it should be able to do, as in 'edit binary files'")
    index = graph_index(graph)
    matches = _best_matches(index, capability, embedder)
    limitation_rows = index.targets_by_row("has_limitation").items()
    limited = {limitation: row for row, limitations in limitation_rows for limitation in limitations}
    rows = [match.row for match in matches if match.is_about and match.row not in limited][:_MAX_CANDIDATES]
    if not rows:
        return Capability(
            capability, "unknown", "", (), (), (), (_explain_unknown(graph.ids, matches, limited),)
        )
    row, node = rows[0], graph.ids[rows[0]]
    limitations = limitations_by_row(index, [row]).get(row, ())
    blocking = [limitation.id for limitation in limitations if limitation.blocking]
    status: CapabilityStatus = "no" if blocking else "yes_with_limitations" if limitations else "yes"
    why = [next(f"{node} {match.text} what is asked" for match in matches if match.row == row)]
    why += [f"blocked by {', '.join(blocking)}, without a workaround"] if blocking else []
    why += ["no limitation is known"] if not limitations else []
    prerequisites = tuple(graph.ids[required] for required in index.outgoing(row, ("requires",)))
    why += [f"requires {', '.join(prerequisites)}"] if prerequisites else []
    others = tuple(graph.ids[row] for row in rows[1:])
    return Capability(capability, status, node, limitations, prerequisites, others, tuple(why))


def _explain_unknown(ids: Sequence[str], matches: Sequence[_Match], limited: Mapping[int, int]) -> str:
    if not matches:
        return "no node is about what is asked, and none has a word of it"
    nearest = matches[0]
    subject = "no node but a limitation" if nearest.is_about else "no node"
    why = f"{subject} is about what is asked; nearest is {ids[nearest.row]}, which {nearest.text} it"
    return why + (f", and limits {ids[limited[nearest.row]]}" if nearest.row in limited else "")


def limitations_by_row(index: GraphIndex, rows: Sequence[int]) -> dict[int, tuple[Limitation, ...]]:
    """Return the limitations of some nodes with their workarounds, by row.

    A node without limitations is left out.
    """
    graph, limits = index.graph, index.edge_ends(rows, ("has_limitation",))
    around = index.edge_ends(
        [*limits, *dict.fromkeys(each for found in limits.values() for each in found)], ("has_workaround",)
    )
    found = {}
    for row, limitation_rows in limits.items():
        limitations = []
        for each in limitation_rows:
            helping = dict.fromkeys([*around.get(each, ()), *around.get(row, ())])
            workarounds, known = tuple(graph.ids[other] for other in helping), graph.node_properties[each]
            blocking = not workarounds and known.get("blocking") is not False
            about = str(known.get("description") or "")
            limitations.append(Limitation(graph.ids[each], index.names[each], about, workarounds, blocking))
        found[row] = tuple(limitations)
    return found


class _Match(NamedTuple):
    """A node, how well it matches a question in words, and whether it is what the question is about."""

    row: int
    text: str
    is_about: bool


def _best_matches(index: GraphIndex, capability: str, embedder: Embedder | None) -> list[_Match]:
    """Return the nodes that match a question, best first.

    The weight of a word is ln(1 + nodes / nodes that have it), so a word that no node has weighs most. A node
    whose whole name, of two words or more, is in the question is what the question is about, whatever else it
    says.
    """
    words = topic_words(capability)
    holding = {word: index.rows_by_topic.get(word, np.zeros(0, np.int32)) for word in words}
    weight = {word: math.log(1 + len(index.graph) / max(len(rows), 1)) for word, rows in holding.items()}
    total = sum(weight.values())
    shares, cosines = np.zeros(len(index.graph)), np.zeros(len(index.graph))
    for word, rows in holding.items():
        shares[rows] += weight[word] / total
    if embedder is not None:
        near, scores = index.rows_and_scores(index.dense_retriever(embedder).search(capability))
        cosines[near] = scores
    found = []
    for row in np.flatnonzero((shares > 0) | (cosines >= _MIN_COSINE)).tolist():
        name, labels = topic_words(index.names[row]).keys(), index.graph.node_labels[row]
        shared = name & words.keys()
        is_named = 1 < len(name) == len(shared)
        share, cosine = 1.0 if is_named else float(shares[row]), float(cosines[row])
        if embedder is None:
            least = _MIN_COVERAGE if "capability" in labels else _MIN_COVERAGE_OF_OTHERS
            in_name = sum(weight[word] for word in shared) / total
            is_about = (share >= least and next(iter(words)) in name) or (share > 0.999 and in_name > 0)
            score, text = share + in_name, f"holds {share:.2f} of"
        else:
            is_about, score, text = cosine >= _MIN_COSINE, cosine, f"has a cosine of {cosine:.2f} with"
        is_about = (is_named or is_about) and "anti_pattern" not in labels
        found.append(((is_named, is_about, score), _Match(row, text, is_about)))
    return [match for _, match in sorted(found, key=lambda each: each[0], reverse=True)]
