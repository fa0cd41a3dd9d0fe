"""The hits of a ranking as a reader looks at them: marked words, what made the score, gold, and how each one
moved.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from kgot_lab.text.words import searched_words
from kgot_lab.types import Document, Json, Ranking
from kgot_lab.viz.explorer.fusion_weights import LETTERS, ScorePart
from kgot_lab.viz.static.markup import shortened
from kgot_lab.viz.static.table import Sheet, Table

_LONGEST = 210  # characters of a snippet
LONGEST_TITLE = 120
LONGEST_PATH = 300
SAME, UP, DOWN, NEW, GONE = "same", "up", "down", "new", "gone"
SIGNS: Mapping[str, str] = {SAME: "=", UP: "▲", DOWN: "▼", NEW: "+", GONE: "−"}

Piece = tuple[str, bool]  # some text, and whether it is marked
Gold = Mapping[str, int]  # document id -> grade; above 0 is relevant


@dataclass(frozen=True)
class Move:
    """How a hit's rank differs from another ranking: by how many ranks, and which rank it has there (0:
    none).
    """

    kind: str
    by: int = 0
    there: int = 0

    def __str__(self) -> str:
        return f"{SIGNS[self.kind]} {self.kind}" + (f" {self.by}" if self.by else "")


@dataclass(frozen=True)
class Shown:
    """One hit as it is shown; `moved` is None where there is nothing to compare with."""

    rank: int
    id: str
    title: tuple[Piece, ...]
    snippet: tuple[Piece, ...]
    score: float
    gold: bool
    parts: tuple[ScorePart, ...] = ()
    path: str = ""
    moved: Move | None = None

    @property
    def name(self) -> str:
        """The title as plain text."""
        return "".join(text for text, _ in self.title)

    @property
    def told(self) -> dict[str, Json]:
        """The hit as JSON."""
        plain = {
            "rank": self.rank,
            "id": self.id,
            "title": self.title,
            "snippet": self.snippet,
            "score": self.score,
            "gold": self.gold,
        }
        parts = [{"lane": part.lane, "value": part.value, "numbers": part.numbers} for part in self.parts]
        moved = (
            {"text": str(self.moved), "kind": self.moved.kind, "there": self.moved.there}
            if self.moved
            else None
        )
        return {**plain, "name": self.name, "path": self.path, "parts": parts, "moved": moved}


@dataclass(frozen=True)
class DocumentShelf:
    """The documents that can be found, by id."""

    documents: Mapping[str, Document]

    def title(self, id: str) -> str:
        """What a reader calls a document: its title, or the beginning of its text, or its id."""
        document = self.documents.get(id)
        return shortened((document.title or document.text if document else "") or id, LONGEST_TITLE)

    def pieces(self, id: str, wanted: frozenset[str]) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
        """The title and a snippet of a document, with some words marked."""
        document = self.documents.get(id)
        text = document.text if document else "(not among the documents of this explorer)"
        return _pieces(self.title(id), text, wanted)


@lru_cache(1000)  # while a slider moves, the question and most of the hits stay
def _pieces(title: str, text: str, wanted: frozenset[str]) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    return marked_words(title, wanted), marked_words(excerpt(text, wanted), wanted)


def excerpt(text: str, wanted: Collection[str], length: int = _LONGEST) -> str:
    """The stretch of a text that holds the most different wanted words, cut between words, with … where it
    was cut.
    """
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    found = [
        (match.start(), word)
        for match in re.finditer(r"\w+", line)
        if (word := match.group().lower()) in wanted
    ]
    starts = [0, *(max(0, line.rfind(" ", 0, max(0, at - 30)) + 1) for at, _ in found)]
    best = max(
        starts,
        key=lambda start: (
            len({word for at, word in found if start <= at < start + length - len(word)}),
            -start,
        ),
    )
    end = best + length
    cut = line[best:end] if end >= len(line) else line[best:end].rsplit(" ", 1)[0]
    return "… " * (best > 0) + cut + " …" * (end < len(line))


def marked_words(text: str, wanted: Collection[str]) -> tuple[Piece, ...]:
    """A text in pieces, of which those are marked that are wanted words."""
    pieces: list[Piece] = []
    for piece in re.split(r"(\w+)", text):
        is_wanted = piece.lower() in wanted
        if pieces and not is_wanted and not pieces[-1][1]:
            pieces[-1] = (pieces[-1][0] + piece, False)
        elif piece:
            pieces.append((piece, is_wanted))
    return tuple(pieces)


def shown_hits(
    ranking: Ranking,
    k: int,
    shelf: DocumentShelf,
    gold: Gold,
    *,
    why: Callable[[str], tuple[tuple[ScorePart, ...], str]],
    before: Ranking | None = None,
) -> list[Shown]:
    """The first k hits of a ranking; `why` gives the parts of a hit's score and its path, `before` is the
    ranking to compare with.
    """
    wanted = frozenset(searched_words(ranking.query.text))
    there = ranks(before)
    hits = []
    for rank, (id, score) in enumerate(ranking.hits[:k], start=1):
        title, snippet = shelf.pieces(id, wanted)
        parts, path = why(id)
        moved = None if before is None else move(rank, there.get(id, 0))
        hits.append(
            Shown(
                rank,
                id,
                title,
                snippet,
                score,
                gold.get(id, 0) > 0,
                parts,
                shortened(path, LONGEST_PATH),
                moved,
            )
        )
    return hits


def ranks(ranking: Ranking | None) -> dict[str, int]:
    """The rank of each hit."""
    return {id: rank for rank, id in enumerate(ranking.ids, start=1)} if ranking else {}


def move(rank: int, there: int) -> Move:
    """How a hit came to a rank from another one, 0 being none."""
    if not there:
        return Move(NEW)
    if rank == there:
        return Move(SAME, 0, there)
    return Move(UP if rank < there else DOWN, abs(rank - there), there)


def moves_between(hits: Sequence[Shown], k: int, other: Ranking, *, is_first: bool) -> list[Move]:
    """How each hit differs between two systems: in the first one "gone" is what the second has not among its
    k, there "new" is the like.
    """
    there = ranks(other)
    moves = []
    for hit in hits:
        rank = there.get(hit.id, 0)
        if not 1 <= rank <= k:
            moves.append(Move(GONE if is_first else NEW, 0, rank))
        else:
            moves.append(replace(move(rank, hit.rank) if is_first else move(hit.rank, rank), there=rank))
    return moves


# --- gold
# -------------------------------------------------------------------------------------------------------------


def format_gold(ranking: Ranking, k: int, gold: Gold, shelf: DocumentShelf) -> str:
    """What a ranking found of the relevant documents among its first k, in words, with recall@k."""
    relevant = [id for id, grade in gold.items() if grade > 0]
    if not relevant:
        return "No gold is known for this question."
    place = ranks(ranking)
    found = sorted(place[id] for id in relevant if place.get(id, k + 1) <= k)
    at = f", at {'ranks' if len(found) > 1 else 'rank'} {' and '.join(map(str, found))}" if found else ""
    told = f"{len(found)} of {len(relevant)} gold in the first {k}{at} (recall@{k} = {len(found) / len(relevant):.2f})."
    missed = [
        f"“{shelf.title(id)}” ({_place(id, place, shelf)})" for id in relevant if place.get(id, k + 1) > k
    ]
    return told + (f" Missed: {', '.join(missed)}." if missed else "")


def _place(id: str, place: Mapping[str, int], shelf: DocumentShelf) -> str:
    if id in place:
        return f"rank {place[id]}"
    return "not found" if id in shelf.documents else "not among the documents"


# --- as a table
# -------------------------------------------------------------------------------------------------------


def hits_table(hits: Sequence[Shown], caption: str) -> Table:
    """Hits with the exact numbers behind each score, a row each."""
    lanes = [part.lane for part in hits[0].parts] if hits else []
    columns = ("rank", "title", "gold", "score", *(f"{LETTERS[lane]} {lane}" for lane in lanes), "path")
    rows = tuple(
        (
            str(hit.rank),
            hit.name,
            "gold" if hit.gold else "",
            f"{hit.score:.4g}",
            *(part.numbers for part in hit.parts),
            hit.path,
        )
        for hit in hits
    )
    return Table((Sheet(columns, rows, len(rows), caption),))
