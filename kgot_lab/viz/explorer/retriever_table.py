"""What the lanes of an explorer found for a question, as columns: with them the browser ranks anew whenever a
weight moves.
"""

from __future__ import annotations

from kgot_lab.text.words import searched_words
from kgot_lab.types import Json
from kgot_lab.viz.explorer.fusion_weights import Searched, path_to
from kgot_lab.viz.explorer.hits import LONGEST_PATH, DocumentShelf, Gold
from kgot_lab.viz.static.markup import shortened

MOST_MIXED = 20_000  # documents found that are sent to a browser; with more it asks Python for each ranking
_TOLD = 100  # of each lane: the hits whose texts are sent along; those of others are asked for when they are shown


def lane_sheet(searched: Searched, shelf: DocumentShelf, gold: Gold) -> dict[str, Json] | None:
    """The lanes' hits with the scores as the fusion scales them, and titles, texts and paths; None where
    these are too many.

    `ids` are in the order in which ties are broken; a lane's `rows` are places among them, best first.
    """
    ids = sorted({id for found in searched.found.values() for id in found.ids})
    if len(ids) > MOST_MIXED:
        return None
    row = {id: number for number, id in enumerate(ids)}
    lanes = []
    told: dict[str, None] = {}
    for name, found in searched.found.items():
        scaled, scores = searched.scales(name)
        first = found.ids[:_TOLD]
        told |= dict.fromkeys(first)
        paths = {id: shortened(path, LONGEST_PATH) for id in first if (path := path_to(id, found))}
        lanes.append(
            {
                "name": name,
                "rows": [row[id] for id in found.ids],
                "scaled": scaled,
                "scores": scores,
                "paths": paths,
            }
        )
    wanted = frozenset(searched_words(searched.query.text))
    pieces = {id: shelf.pieces(id, wanted) for id in told}
    return {
        "question": searched.query.text,
        "ids": ids,
        "names": [shelf.title(id) for id in ids],
        "lanes": lanes,
        "texts": {id: {"title": title, "snippet": snippet} for id, (title, snippet) in pieces.items()},
        "gold": [
            {
                "title": shelf.title(id),
                "row": row.get(id, -1),
                "missing": "not found" if id in shelf.documents else "not among the documents",
            }
            for id, grade in gold.items()
            if grade > 0
        ],
    }
