"""What of the methods one would write in SQL, on an SQLite file in memory, and the triggers of intents one
after another in Python.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping

from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.intents import INTENTS
from kgot_lab.text.words import searched_words


class InSql:
    """The nodes of a graph in a table, their properties in JSON."""

    name = "SQL"

    def __init__(self, graph: PropertyGraph) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.execute(
            "CREATE TABLE nodes (id TEXT, type TEXT, name TEXT, description TEXT, properties TEXT)"
        )
        rows = (
            (id, labels[0], known["name"], known["description"], json.dumps(known))
            for id, labels, known in zip(graph.ids, graph.node_labels, graph.node_properties, strict=True)
        )
        self._connection.executemany("INSERT INTO nodes VALUES (?, ?, ?, ?, ?)", rows)

    def keywords(self, query: str) -> dict[str, int]:
        """How many of the words each node has somewhere, by LIKE."""
        words = [f"%{word}%" for word in dict.fromkeys(searched_words(query))]
        counted = " + ".join(["(type LIKE ? OR name LIKE ? OR description LIKE ?)"] * len(words))
        asked = f"SELECT id, found FROM (SELECT id, {counted} AS found FROM nodes) WHERE found > 0"
        return dict(self._connection.execute(asked, [word for word in words for _ in range(3)]))

    def within(self, filters: Mapping[str, Mapping[str, float]]) -> list[str]:
        """The nodes within bounds, by json_extract, as the document writes it."""
        signs = {"min": ">=", "max": "<="}
        bounds = [
            (f"$.{name}", signs[end], bound) for name, each in filters.items() for end, bound in each.items()
        ]
        conditions = " AND ".join(f"json_extract(properties, ?) {sign} ?" for _, sign, _ in bounds)
        asked = f"SELECT id FROM nodes WHERE {conditions} ORDER BY rowid"
        return [
            id
            for (id,) in self._connection.execute(
                asked, [value for path, _, bound in bounds for value in (path, bound)]
            )
        ]


def plain_intents(query: str) -> dict[str, float]:
    """The intents of a query and their scores, trigger by trigger."""
    text = query.lower()
    words = set(text.split()) | {word.removesuffix("s") for word in text.split()}
    scored = {
        name: sum(phrase in text for phrase in rule.phrases) + 0.3 * len(words & {*rule.words})
        for name, rule in INTENTS.items()
    }
    return {name: round(score, 9) for name, score in scored.items() if score >= 0.3}
