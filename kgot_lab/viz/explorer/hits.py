"""Hits of a ranking for display: marked words, score parts, gold, and changes of rank."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from kgot_lab.retrieval.stage import Stage
from kgot_lab.text.words import searched_words
from kgot_lab.types import Document, Json, Ranking
from kgot_lab.viz.explorer.fusion_weights import LETTERS, ScorePart, SearchResults, find_path
from kgot_lab.viz.live import StaticOutput, static_output
from kgot_lab.viz.plots.figure import Plot, bar_pen, bar_plot
from kgot_lab.viz.static.markup import Markup, element, shorten
from kgot_lab.viz.static.pipeline import pipeline
from kgot_lab.viz.static.table import Table, sheet

_MAX_SNIPPET_LENGTH = 210  # characters of a snippet
MAX_TITLE_LENGTH = 120
MAX_PATH_LENGTH = 300
SAME, UP, DOWN, NEW, GONE = "same", "up", "down", "new", "gone"
SIGNS: Mapping[str, str] = {SAME: "=", UP: "▲", DOWN: "▼", NEW: "+", GONE: "−"}

Piece = tuple[str, bool]  # some text, and whether it is marked
Pieces = tuple[Piece, ...]
Gold = Mapping[str, int]  # document id -> grade; above 0 is relevant


@dataclass(frozen=True)
class RankChange:
    """The difference of a hit's rank from another ranking.

    `by` is the number of ranks, and `there` is the rank in the other ranking (0: none).
    """

    kind: str
    by: int = 0
    there: int = 0

    def __str__(self) -> str:
        return f"{SIGNS[self.kind]} {self.kind}" + (f" {self.by}" if self.by else "")


@dataclass(frozen=True)
class ShownHit:
    """A hit as it is shown. `moved` is None if there is no ranking to compare with."""

    rank: int
    id: str
    title: Pieces
    snippet: Pieces
    score: float
    gold: bool
    parts: tuple[ScorePart, ...] = ()
    path: str = ""
    moved: RankChange | None = None

    @property
    def name(self) -> str:
        """The title as plain text."""
        return "".join(text for text, _ in self.title)

    @property
    def to_json(self) -> dict[str, Json]:
        """The hit as JSON."""
        names = ("rank", "id", "title", "snippet", "score", "gold", "name", "path")
        parts = [
            {"retriever": part.retriever, "value": part.value, "numbers": part.numbers} for part in self.parts
        ]
        moved = None
        if self.moved:
            moved = {"text": str(self.moved), "kind": self.moved.kind, "there": self.moved.there}
        return {**{name: getattr(self, name) for name in names}, "parts": parts, "moved": moved}


@dataclass(frozen=True)
class DocumentCollection:
    """The retrievable documents, by id."""

    documents: Mapping[str, Document]

    def title(self, id: str) -> str:
        """Return the title of a document, or the beginning of its text, or its id."""
        document = self.documents.get(id)
        return shorten((document.title or document.text if document else "") or id, MAX_TITLE_LENGTH)

    def missing(self, id: str) -> str:
        """Return why a document is not among some hits."""
        return "not found" if id in self.documents else "not among the documents"

    def pieces(self, id: str, query_words: frozenset[str]) -> tuple[Pieces, Pieces]:
        """Return the title and a snippet of a document, with the wanted words marked."""
        document = self.documents.get(id)
        text = document.text if document else "(not among the documents of this explorer)"
        return _marked_pieces(self.title(id), text, query_words)


@lru_cache(1000)  # while a slider moves, the question and most hits are unchanged
def _marked_pieces(title: str, text: str, query_words: frozenset[str]) -> tuple[Pieces, Pieces]:
    return mark_words(title, query_words), mark_words(excerpt(text, query_words), query_words)


def excerpt(text: str, query_words: Collection[str], length: int = _MAX_SNIPPET_LENGTH) -> str:
    """Return the excerpt of a text with the most distinct wanted words.

    It is cut between words, with … at each cut.
    """
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    words = ((match.start(), match.group().lower()) for match in re.finditer(r"\w+", line))
    matches = [(at, word) for at, word in words if word in query_words]
    starts = [0, *(max(0, line.rfind(" ", 0, max(0, at - 30)) + 1) for at, _ in matches)]

    def match_count(start: int) -> int:
        return len({word for at, word in matches if start <= at < start + length - len(word)})

    best = max(starts, key=lambda start: (match_count(start), -start))
    end = best + length
    snippet = line[best:end] if end >= len(line) else line[best:end].rsplit(" ", 1)[0]
    return ("… " if best > 0 else "") + snippet + (" …" if end < len(line) else "")


def mark_words(text: str, query_words: Collection[str]) -> Pieces:
    """Split a text into pieces and mark those that are wanted words."""
    pieces: list[Piece] = []
    for piece in re.split(r"(\w+)", text):
        is_wanted = piece.lower() in query_words
        if pieces and not is_wanted and not pieces[-1][1]:
            pieces[-1] = (pieces[-1][0] + piece, False)
        elif piece:
            pieces.append((piece, is_wanted))
    return tuple(pieces)


def ranks(ranking: Ranking | None) -> dict[str, int]:
    """Return the rank of each hit, starting at 1."""
    return {id: rank for rank, id in enumerate(ranking.ids, start=1)} if ranking else {}


def rank_change(rank: int, other_rank: int) -> RankChange:
    """Return the change to `rank` from the rank `other_rank`.

    0 means that the other ranking does not have the hit.
    """
    if not other_rank:
        return RankChange(NEW)
    if rank == other_rank:
        return RankChange(SAME, 0, other_rank)
    return RankChange(UP if rank < other_rank else DOWN, abs(rank - other_rank), other_rank)


def rank_changes(hits: Sequence[ShownHit], k: int, other: Ranking, *, is_first: bool) -> list[RankChange]:
    """Return how the rank of each hit differs between two systems.

    In the first system, "gone" marks a hit that is not in the second one's top k. In the second, such a hit
    is "new".
    """
    other_ranks = ranks(other)
    changes = []
    for hit in hits:
        rank = other_ranks.get(hit.id, 0)
        if not 1 <= rank <= k:
            changes.append(RankChange(GONE if is_first else NEW, 0, rank))
        else:
            change = rank_change(rank, hit.rank) if is_first else rank_change(hit.rank, rank)
            changes.append(replace(change, there=rank))
    return changes


# --- gold ---


def format_gold(ranking: Ranking, k: int, gold: Gold, shelf: DocumentCollection) -> str:
    """Describe which relevant documents are in the first `k`, with recall@k and what was missed."""
    relevant = [id for id, grade in gold.items() if grade > 0]
    if not relevant:
        return "No passages are marked as relevant to this question."
    rank_by_id = ranks(ranking)
    found = sorted(rank_by_id[id] for id in relevant if rank_by_id.get(id, k + 1) <= k)
    found_ranks = " and ".join(map(str, found))
    positions = f", at {'ranks' if len(found) > 1 else 'rank'} {found_ranks}" if found else ""
    summary = f"{len(found)} of {len(relevant)} gold in the first {k}{positions} (recall@{k} = {len(found) / len(relevant):.2f})."
    locations = {id: f"rank {rank_by_id[id]}" if id in rank_by_id else shelf.missing(id) for id in relevant}
    missed = [f"“{shelf.title(id)}” ({locations[id]})" for id in relevant if rank_by_id.get(id, k + 1) > k]
    return summary + (f" Missed: {', '.join(missed)}." if missed else "")


# --- as a table ---


def hits_table(hits: Sequence[ShownHit], caption: str) -> Table:
    """Return a table of the hits with the exact numbers behind each score."""
    retrievers = [part.retriever for part in hits[0].parts] if hits else []
    columns = (
        "rank",
        "title",
        "gold",
        "score",
        *(f"{LETTERS[retriever]} {retriever}" for retriever in retrievers),
        "path",
    )
    rows = []
    for hit in hits:
        parts = (part.numbers for part in hit.parts)
        rows.append((str(hit.rank), hit.name, "gold" * hit.gold, f"{hit.score:.4g}", *parts, hit.path))
    return Table((sheet(columns, rows, caption),))


# The retrieval explorer where no live view can be drawn: the question, the pipeline, and the first hits with
# their score parts and texts.

_MAX_HITS_DRAWN = 10
RETRIEVER_COLOURS = {"embedding": "#56B4E9", "text": "#E69F00", "graph": "#009E73", "intent": "#CC79A7"}
RETRIEVER_PENS = {
    name: replace(bar_pen(number), colour=colour)
    for number, (name, colour) in enumerate(RETRIEVER_COLOURS.items())
}


def show_hits(
    question: str,
    hits: Sequence[ShownHit],
    notes: Sequence[str],
    stage: Stage,
    retrievers: Mapping[str, Stage],
) -> StaticOutput:
    """Show the first hits of a pipeline for a question: the pipeline, the parts of their scores, their texts.

    `notes` are the lines above the hits. `retrievers` are the retrievers that the pipeline fuses.
    """
    colours = {retriever.name: RETRIEVER_COLOURS[name] for name, retriever in retrievers.items()}
    diagram = pipeline(stage, colours=colours)
    parts = [element("h4", question or "(no question)"), *(element("p", note) for note in notes)]
    parts.append(Markup(diagram._repr_html_()))
    if hits:
        shown = hits[:_MAX_HITS_DRAWN]
        more = [element("p", f"and {len(hits) - len(shown)} more")] if len(hits) > len(shown) else []
        bars = Markup(_score_bars(question, shown)._repr_html_())
        parts += [bars, element("ol", *map(_hit_markup, shown)), *more]
    return static_output(hits_table(hits, shorten(question, 100)), *parts)


def _score_bars(question: str, hits: Sequence[ShownHit]) -> Plot:
    """Plot the scores of hits as stacked bars, a part for each retriever."""
    retrievers = {
        f"{LETTERS[p.retriever]} {p.retriever}, counts {p.share:.2f}": p.retriever for p in hits[0].parts
    }
    lengths = {label: [hit.parts[row].value for hit in hits] for row, label in enumerate(retrievers)}
    pens = {label: RETRIEVER_PENS[retriever] for label, retriever in retrievers.items()}
    bars = [(f"{hit.rank}. {shorten(hit.name, 50)}{' ★' * hit.gold}", f"{hit.score:.3f}") for hit in hits]
    text = f"The scores of the hits for “{shorten(question, 300)}”: " + "; ".join(map(" ".join, bars))
    return bar_plot((8.6, 1.2, 0.3), lengths, pens, bars=bars, labels=("score",), description=text, rows=())


def _hit_markup(hit: ShownHit) -> Markup:
    """Format a hit: its title, whether it is gold, its snippet with the marked words in bold, and its path."""
    snippet = (element("b", text) if is_marked else text for text, is_marked in hit.snippet)
    path = [element("div", f"path: {hit.path}")] if hit.path else []
    return element("li", element("b", hit.name), " ★ gold" * hit.gold, element("div", *snippet), *path)


# The hits of all retrievers for a question, as columns with which the browser ranks while a weight moves.

MAX_SHEET_DOCUMENTS = 20_000  # maximum documents sent to a browser; with more it asks Python for each ranking
_MAX_TEXTS = 100  # hits per retriever whose texts are included; others are requested when shown


def score_sheet(searched: SearchResults, shelf: DocumentCollection, gold: Gold) -> dict[str, Json] | None:
    """Return the retrievers' hits with scaled scores, titles, snippets and paths.

    Returns None if there are too many documents. `ids` are in the order in which ties are broken. The `rows`
    of a retriever are indices into them, best first.
    """
    ids = sorted({id for ranking in searched.found.values() for id in ranking.ids})
    if len(ids) > MAX_SHEET_DOCUMENTS:
        return None
    row = {id: number for number, id in enumerate(ids)}
    retrievers = []
    text_ids: dict[str, None] = {}
    for name, ranking in searched.found.items():
        scaled, scores = searched.scales(name)
        first_ids = ranking.ids[:_MAX_TEXTS]
        text_ids |= dict.fromkeys(first_ids)
        paths = {id: shorten(path, MAX_PATH_LENGTH) for id in first_ids if (path := find_path(id, ranking))}
        rows = [row[id] for id in ranking.ids]
        retrievers.append({"name": name, "rows": rows, "scaled": scaled, "scores": scores, "paths": paths})
    query_words = frozenset(searched_words(searched.query.text))
    pieces = {id: shelf.pieces(id, query_words) for id in text_ids}
    return {
        "question": searched.query.text,
        "ids": ids,
        "names": [shelf.title(id) for id in ids],
        "retrievers": retrievers,
        "texts": {id: {"title": title, "snippet": snippet} for id, (title, snippet) in pieces.items()},
        "gold": [
            {"title": shelf.title(id), "row": row.get(id, -1), "missing": shelf.missing(id)}
            for id, grade in gold.items()
            if grade > 0
        ],
    }
