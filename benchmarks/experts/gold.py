"""The questions to the expert on the curated graph, with what an answer should cite, and the words of that;
see data/expert-gold.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from kgot_lab.errors import UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import bundled_path, read_regular_text
from kgot_lab.text.words import searched_words, stem

QuestionSplit = Literal["dev", "test"]
QUESTION_SPLITS: Mapping[QuestionSplit, str] = {"dev": "develop.jsonl", "test": "questions.jsonl"}


@dataclass(frozen=True)
class ExpertQuestion:
    """A question; the nodes that an answer should cite, the limitations it should warn of, and whether the
    graph answers it at all.
    """

    id: str
    question: str
    gold_nodes: tuple[str, ...]
    gold_limitations: tuple[str, ...]
    answerable: bool
    kind: str  # goal, can, compare, compose, why, none

    @property
    def wanted(self) -> frozenset[str]:
        """Every node that is right to cite."""
        return frozenset((*self.gold_nodes, *self.gold_limitations))


def expert_questions(split: QuestionSplit) -> tuple[ExpertQuestion, ...]:
    """The questions of a split: the dev questions, or the sixty that are asked once. Raises UnknownName for
    another split.
    """
    if split not in QUESTION_SPLITS:
        raise UnknownName("split", split, QUESTION_SPLITS)
    rows = map(
        json.loads, read_regular_text(bundled_path(f"expert-gold/{QUESTION_SPLITS[split]}")).splitlines()
    )
    return tuple(
        ExpertQuestion(**row | {field: tuple(row[field]) for field in ("gold_nodes", "gold_limitations")})
        for row in rows
    )


def telling_stems(text: str) -> frozenset[str]:
    """The words of a text of three letters or more without their endings, stop words left out."""
    return frozenset(
        stem(word) for word in searched_words(text.replace("_", " ").replace("-", " ")) if len(word) > 2
    )


@dataclass(frozen=True, eq=False)
class NodeWords:
    """The names and descriptions of a graph's nodes by id."""

    graph: PropertyGraph

    @cached_property
    def _told(self) -> Mapping[str, tuple[frozenset[str], frozenset[str]]]:
        rows = zip(self.graph.ids, self.graph.node_properties, strict=True)
        return {
            id: (telling_stems(str(known["name"])), telling_stems(str(known.get("description", ""))))
            for id, known in rows
        }

    def of_name(self, id: str) -> frozenset[str]:
        """The words of the name of a node; raises UnknownName."""
        return self._of(id)[0]

    def of_names(self, ids: Iterable[str]) -> frozenset[str]:
        """The words of the names of nodes."""
        return frozenset().union(*(self._of(id)[0] for id in ids))

    def of_descriptions(self, ids: Iterable[str]) -> frozenset[str]:
        """The words of the descriptions of nodes, those of their names left out."""
        return frozenset().union(*(self._of(id)[1] for id in ids)) - self.of_names(ids)

    def _of(self, id: str) -> tuple[frozenset[str], frozenset[str]]:
        if id not in self._told:
            raise UnknownName("node", id, self._told)
        return self._told[id]
