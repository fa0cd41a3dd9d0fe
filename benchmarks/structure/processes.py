"""A hundred short texts on processes, some of which people have called analogous: a graph to draw delta edges
in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.structure.analogies import choices, jsonl_rows, locked_in
from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Edge, Json, Node

# a column, the edge's property
_NUMBERS = {"texts": "raw", "skeletons": "skeleton", "delta": "weight", "alignment": "alignment_score"}


@dataclass(frozen=True, repr=False)
class Processes:
    """Texts on processes as the nodes of a graph without edges, and the pairs of texts that people have
    called analogous.
    """

    graph: PropertyGraph
    known: frozenset[frozenset[str]]

    def is_known(self, edge: Edge) -> bool:
        """Whether people were shown the two texts that an edge joins, and agreed that they are analogous."""
        return (
            frozenset((self._about(edge.source, "summary"), self._about(edge.target, "summary")))
            in self.known
        )

    def row(self, edge: Edge) -> dict[str, Json]:
        """An edge for a table: what its texts are on, its four numbers, and whether the pair is known."""
        ends = {"one": self._about(edge.source, "name"), "other": self._about(edge.target, "name")}
        numbers = {column: round(edge.properties[key], 2) for column, key in _NUMBERS.items()}
        return ends | numbers | {"known": "yes" if self.is_known(edge) else ""}

    def known_at_top(
        self, edges: Iterable[Edge], depths: tuple[int, ...] = (10, 25, 100)
    ) -> list[dict[str, Json]]:
        """How many known pairs stand among the first edges, for each of the four numbers that one may order
        them by.
        """
        edges = list(edges)
        return [
            {"in the order of": by}
            | {f"among the first {k}": sum(map(self.is_known, best_by(by, edges)[:k])) for k in depths}
            for by in _NUMBERS
        ]

    def _about(self, id: str, what: str) -> str:
        return str(self.graph.node(id).properties[what])

    def __repr__(self) -> str:
        return f"<{len(self.graph)} texts on processes; {len(self.known)} pairs are known to be analogous>"


def processes() -> Processes:
    """The texts of ParallelPARC's develop part: for each process that a pair starts from, the first pair that
    crosses fields.

    A node's label is its field; its properties are `name`, what the text is on, and `summary`, the text.
    """
    locked = locked_in("parallelparc")
    gold = [row for row in jsonl_rows("parallelparc/gold.jsonl.gz") if row["_id"] not in locked]
    first: dict[str, Json] = {}
    for row in gold:
        if row["analogy_type"] == "far":
            first.setdefault(row["source_subject"], row)
    nodes = [_node(row, side) for row in reversed(first.values()) for side in ("source", "target")]
    return Processes(
        PropertyGraph.of(nodes), frozenset(frozenset((row["source"], row["target"])) for row in gold)
    )


def noun_traps(count: int) -> list[tuple[str, str]]:
    """Stories of StoryAnalogy's first develop questions, each with the wrong choice that shares its nouns and
    not its course.
    """
    questions = choices("storyanalogy-mc").develop.questions[:count]
    return [
        (question.source, choice)
        for question in questions
        for choice, kind in zip(question.choices, question.kinds, strict=True)
        if kind == "noun"
    ]


def best_by(number: str, edges: Iterable[Edge]) -> list[Edge]:
    """Edges in the order of one of their numbers ("texts", "skeletons", "delta", "alignment"), the largest
    first.
    """
    return sorted(edges, key=lambda edge: (-edge.properties[_NUMBERS[number]], edge.source, edge.target))


def _node(row: Json, side: str) -> Node:
    return Node(
        f"{row['_id']} {side}",
        (row[f"{side}_domain"],),
        {"name": row[f"{side}_subject"], "summary": row[side]},
    )
