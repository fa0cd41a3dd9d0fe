"""The structure view: two texts, their skeletons, what answers what, and the delta of the edge between them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from math import isfinite
from textwrap import wrap

from kgot_lab.analogy.candidates import described
from kgot_lab.analogy.delta_edges import FoundEdges, Verifier
from kgot_lab.analogy.verdict import Cutoffs
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.similarity.delta import SPECIFIED, Pair, Thresholds
from kgot_lab.text.harmless import harmless
from kgot_lab.text.surrogates import whole
from kgot_lab.types import Edge, Json
from kgot_lab.viz.analogy.view import (
    Rules,
    StoredAlignment,
    TextSide,
    comparison,
    likeness_in_words,
    signed_delta,
)
from kgot_lab.viz.analogy_picture import Likeness, PictureRow, Section, picture
from kgot_lab.viz.static.drawing import StaticPicture
from kgot_lab.viz.static.markup import Markup, element, image, joined
from kgot_lab.viz.static.table import Sheet, Table

Texts = Mapping[str, str]
_WIDE = 48  # characters of a column in plain text
NEITHER = "a structure view shows a Pair of compare_texts, a delta edge"


def structure(
    what: Pair | Edge | Iterable[Edge],
    texts: PropertyGraph | Texts | None = None,
    *,
    skeletons: Texts | None = None,
    aligner: Verifier | None = None,
    thresholds: Thresholds | None = None,
) -> StructureView:
    """Two texts side by side: how alike they and their skeletons are, what answers what in them, and what
    that says of an edge.

    `what` is a Pair of `compare_texts`, a delta edge, or several of these (a FoundEdges too): then the one
    with the largest delta is shown, and `of` shows another. `texts` gives the text of each id, or is the
    graph they are in; a Pair of two texts needs none, and takes from it the names they have there.
    `skeletons` gives the skeleton of a text, for edges that do not keep theirs. `aligner` lays two texts side
    by side where that is not at hand; an edge keeps only the verdict. Without `thresholds` those count that
    an edge keeps, or else the specified ones. Raises BadInput for an edge without both similarities, for an
    id without a text, and for no edges.
    """
    known, names = _known(texts)
    source = _Source(_in_order(what), known, names, skeletons or {}, (aligner, thresholds))
    return source.view(what if isinstance(what, Pair) else 1)


@dataclass(frozen=True, repr=False)
class StructureView(StaticPicture):
    """A pair as a picture and as tables that say the same; the tables hold in full what the picture cuts."""

    pair: Pair
    texts: tuple[str, str]
    svg: Markup
    alt: str  # what the picture shows, in words
    _told: Likeness = field(compare=False)
    _source: _Source = field(compare=False)

    def of(self, which: Edge | Pair | int) -> StructureView:
        """The same view of another edge or pair, or of the edge with this number in `choices`; raises
        BadInput.
        """
        return self._source.view(which)

    def choices(self, *, limit: int = 50) -> Table:
        """The edges there are to choose from, by delta, the vetoed ones last; at most `limit` of them."""
        edges, name = self._source.edges, self._source.name
        rows = [
            (
                str(number),
                name(edge.source),
                name(edge.target),
                signed_delta(_pair(edge).delta),
                str(edge.properties.get("veto") or ""),
            )
            for number, edge in enumerate(edges[:limit], 1)
        ]
        return Table((Sheet(("number", "one", "other", "delta", "veto"), tuple(rows), len(edges), "Edges"),))

    def table(self) -> Table:
        """Everything that the picture shows and nothing cut: the verdict, the texts, what answers what, and
        who plays whom.
        """
        told, (one, other) = self._told, self._told.titles
        numbers = [
            ("texts, cosine", f"{told.raw:.3f}"),
            ("skeletons, cosine", f"{told.skeleton:.3f}"),
            ("delta", signed_delta(self.pair.delta)),
        ]
        said = [
            ("verdict", told.headline),
            *(("why", reason) for reason in told.reasons),
            *numbers,
            ("band", self.pair.band),
        ]
        sheets = [
            _whole("The verdict", ("", "in words"), said),
            _whole("The texts", told.titles, [self.texts]),
        ]
        for part in told.sections:
            sheets.append(
                _whole(
                    part.name, (one, "similarity", other, "remarks"), [_cells(row, part) for row in part.rows]
                )
            )
        if not told.roles:
            return Table(tuple(sheets))
        who = [
            (each.source, f"{each.times:,}", each.target, "yes" if each.agrees else "no")
            for each in told.roles
        ]
        return Table((*sheets, _whole("Who plays whom", (one, "times", other, "one to one"), who)))

    def html(self) -> Markup:
        """The picture, and below it the tables, folded away: a piece of a page."""
        tables = element(
            "details", element("summary", "The same as tables, with every text in full"), self.table().html
        )
        return joined([image(self.svg, self.alt), tables])

    def __repr__(self) -> str:
        count = len(self._source.edges)
        return f"<StructureView: {harmless(self.alt)}{f' One of {count:,} edges, see choices().' if count > 1 else ''}>"


# --- what is shown
# ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Source:
    """What views can be made of: edges to choose from, what is known of their texts, and what they are judged
    by.
    """

    edges: tuple[Edge, ...]
    texts: Texts | None
    names: Texts
    skeletons: Texts
    judge: tuple[Verifier | None, Thresholds | None]

    def view(self, which: Edge | Pair | int) -> StructureView:
        """The view of a pair, of an edge, or of the edge with a number."""
        shown = self._numbered(which) if isinstance(which, int) else which
        if not isinstance(shown, Pair | Edge):
            raise BadInput(f"{NEITHER}, not {type(shown).__name__}")
        pair = _sound(shown if isinstance(shown, Pair) else _pair(shown))
        sides = self._side(shown, pair, 0), self._side(shown, pair, 1)
        pair = replace(pair, skeletons=(sides[0].skeleton, sides[1].skeleton))
        kept = pair.alignment if isinstance(pair.alignment, StoredAlignment) else None
        if self.judge[0] is not None and (pair.alignment is None or kept is not None):
            pair = replace(pair, alignment=self.judge[0].align(sides[0].text, sides[1].text))
        told = comparison(pair, sides, self._rules(shown, kept))
        alt = likeness_in_words(told)
        return StructureView(pair, (sides[0].text, sides[1].text), picture(told, alt), alt, told, self)

    def name(self, id: str) -> str:
        """What a reader would call the text with this id."""
        return self.names.get(id, id)

    def _numbered(self, number: int) -> Edge:
        if not 1 <= number <= len(self.edges):
            raise BadInput(
                f"there is no edge number {number} among the {len(self.edges):,} to choose from: see choices()"
            )
        return self.edges[number - 1]

    def _side(self, shown: Edge | Pair, pair: Pair, place: int) -> TextSide:
        """One of the two texts with all that is known of it."""
        title, text = self._text(shown, (pair.source, pair.target)[place], place)
        leaks = getattr(self.skeletons, "leaks", {})
        return TextSide(
            title, text, pair.skeletons[place] or self.skeletons.get(text, ""), tuple(leaks.get(text, ()))
        )

    def _text(self, shown: Edge | Pair, id: str, place: int) -> tuple[str, str]:
        """The title and the words behind an id; the ends of a Pair may be texts themselves. Raises BadInput."""
        if self.texts is not None and id in self.texts:
            return self.name(id), self.texts[id]
        if isinstance(shown, Edge):
            told = (
                "none was given" if self.texts is None else f"it is not among the {len(self.texts):,} given"
            )
            raise BadInput(
                f"the text of {id[:80]!r} is needed, and {told}: give texts=graph, the graph that the edges are of, or texts={{id: text}}"
            )
        named = next((self.name(key) for key, text in (self.texts or {}).items() if text == id), "")
        read = getattr(getattr(shown.alignment, ("source", "target")[place], None), "text", id)
        return (named or ("First text", "Second text")[place], id) if read == whole(id) else (id, read)

    def _rules(self, shown: Edge | Pair, kept: StoredAlignment | None) -> Rules:
        aligner, thresholds = self.judge
        own = _thresholds(shown.properties.get("thresholds")) if isinstance(shown, Edge) else None
        whence = "given" if thresholds else "kept with the edge" if own else "of the specification"
        return Rules(
            thresholds or own or SPECIFIED, whence, getattr(aligner, "limits", None) or Cutoffs(), kept
        )


def _known(texts: PropertyGraph | Texts | None) -> tuple[Texts | None, Texts]:
    """The texts by id, and what some of them are called."""
    if texts is None or isinstance(texts, Mapping):
        return texts, {}
    if not isinstance(texts, PropertyGraph):
        raise BadInput(f"texts is a graph, or the text of each id: {{id: text}}, not {type(texts).__name__}")
    return described(texts), {
        node.id: str(node.properties["name"]) for node in texts.nodes if node.properties.get("name")
    }


def _in_order(what: Pair | Edge | Iterable[Edge]) -> tuple[Edge, ...]:
    """The edges to choose from: by delta, the largest first, the vetoed ones last. Raises BadInput where
    there are none.
    """
    if isinstance(what, Pair):
        return ()
    several = what if isinstance(what, Iterable) and not isinstance(what, str) else [what]
    edges = [*several, *(what.vetoed if isinstance(what, FoundEdges) else ())]
    if odd := [edge for edge in edges if not isinstance(edge, Edge)]:
        raise BadInput(f"{NEITHER} or several, not {type(odd[0]).__name__}")
    if not edges:
        raise BadInput(
            "there is no edge to show: compare_texts(one, other, skeletons, embedder) makes a Pair of any two texts"
        )
    return tuple(
        sorted(
            edges,
            key=lambda edge: (
                bool(edge.properties.get("veto")),
                -_pair(edge).delta,
                edge.source,
                edge.target,
            ),
        )
    )


def _pair(edge: Edge) -> Pair:
    """What an edge says of its two ends. Raises BadInput for one that does not hold both similarities."""
    said = edge.properties
    raw, skeleton = (_number(edge, name) for name in ("raw", "skeleton"))
    ends = str(said.get("source_skeleton") or ""), str(said.get("target_skeleton") or "")
    kept = (
        StoredAlignment(_number(edge, "alignment_score"), str(said.get("veto") or ""))
        if "alignment_score" in said
        else None
    )
    return Pair(edge.source, edge.target, raw, skeleton, ends, kept)


def _number(edge: Edge, name: str) -> float:
    value = edge.properties.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        ends = f"{edge.source[:80]!r} to {edge.target[:80]!r}"
        raise BadInput(
            f"the {edge.type[:80]} edge from {ends} holds no number {name!r}: only edges that delta_edges(…) made can be shown so"
        )
    return float(value)


def _sound(pair: Pair) -> Pair:
    """A pair whose similarities are cosines; raises BadInput."""
    if not all(abs(cosine) <= 1 for cosine in (pair.raw, pair.skeleton)):
        raise BadInput(
            f"a similarity is a cosine, from -1 to 1; this pair has {pair.raw} and {pair.skeleton}"
        )
    return pair


def _thresholds(kept: Json) -> Thresholds | None:
    """The thresholds that an edge keeps, if it does."""
    match kept:
        case {"skeleton": int() | float() as skeleton, "delta": int() | float() as delta}:
            words = kept.get("words", 0)  # edges of before refused none
            return Thresholds(skeleton, delta, words if isinstance(words, int) else 0)
    return None


def _cells(row: PictureRow, part: Section) -> tuple[str, str, str, str]:
    """A row as texts: both units, what stands between them, and what is to be said of them."""
    ours, theirs = ((unit.text, unit) if unit else ("", None) for unit in (row.left, row.right))
    remarks = [
        f"{side} denies something"
        for side, (_, unit) in (("left", ours), ("right", theirs))
        if unit and unit.denied
    ]
    remarks += [
        f"{side}: {unit.note}"
        for side, (_, unit) in (("left", ours), ("right", theirs))
        if unit and unit.note
    ]
    remarks += [f"below {part.least:g}"] * (row.similarity is not None and row.similarity < part.least)
    return ours[0], row.between, theirs[0], "; ".join(remarks)


_NOTHING_CUT = sys.maxsize


class _Whole(Sheet):
    """A grid in which no cell is cut."""

    @property
    def html(self) -> Markup:
        """The table in HTML."""
        return Markup(self.grid(_NOTHING_CUT).html)

    @property
    def text(self) -> str:
        """The grid in plain text, long cells in several lines."""
        grid = [
            [wrap(harmless(" ".join(cell.split())), _WIDE) for cell in row]
            for row in (self.columns, *self.rows)
        ]
        widths = [
            max((len(line) for cell in column for line in cell), default=0)
            for column in zip(*grid, strict=True)
        ]
        lines = [line for row in grid for line in zip_longest(*row, fillvalue="")]
        return "\n".join(
            [self.caption, *("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)]
        )


def _whole(name: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Sheet:
    return _Whole(tuple(columns), tuple(map(tuple, rows)), len(rows), name)
