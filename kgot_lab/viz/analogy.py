"""Structure view: two texts side by side with their skeletons and alignment."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from math import isfinite
from textwrap import wrap

from kgot_lab.analogy.delta_edges import FoundEdges, Verifier, described
from kgot_lab.analogy.linguistic import Analysis, RoleMap
from kgot_lab.analogy.verdict import Alignment, Cutoffs, Match
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.similarity.delta import DIGITS, HIGH, LOW, MIDDLE, NEGATIVE, SPECIFIED, Pair, Thresholds
from kgot_lab.similarity.delta import Verified as Said
from kgot_lab.text.cleaning import printable_line, replace_surrogates
from kgot_lab.types import Edge, Json
from kgot_lab.viz.analogy_picture import Likeness, PictureRow, Section, Unit, picture
from kgot_lab.viz.static.drawing import StaticPicture
from kgot_lab.viz.static.markup import Markup, folded, image, joined, shortened
from kgot_lab.viz.static.table import Sheet, Table, sheet

# The structure view: two texts, their skeletons and alignment, and the delta of the edge between them.

# The comparison of two texts: the verdict in words, and their aligned sentences and events.

_WHOLE, SKELETON = 14, 8  # maximum lines of a text that is not split into sentences, and of a skeleton
_BANDS = {
    NEGATIVE: "the texts are more alike than their skeletons",
    LOW: "the skeletons are hardly more alike than the texts",
    MIDDLE: "the skeletons are somewhat more alike than the texts",
    HIGH: "the skeletons are much more alike than the texts",
}


@dataclass(frozen=True)
class TextSide:
    """One of the two texts: title, text, skeleton, and the words that leaked into the skeleton."""

    title: str
    text: str
    skeleton: str = ""
    leaks: tuple[str, ...] = ()


@dataclass(frozen=True)
class StoredAlignment:
    """The part of an alignment that an edge stores: the score, and the reason for a veto."""

    score: float
    veto: str


@dataclass(frozen=True)
class Rules:
    """The thresholds and limits by which a pair is judged, and the verdict that the edge stores."""

    thresholds: Thresholds
    whence: str  # where the thresholds come from
    limits: Cutoffs
    kept: StoredAlignment | None = None


def comparison(pair: Pair, sides: tuple[TextSide, TextSide], rules: Rules) -> Likeness:
    """Compare two texts and collect the verdict, its reasons, the aligned rows and the role mapping."""
    alignment = pair.alignment if isinstance(pair.alignment, Alignment) else None
    sign, headline = _headline(pair, rules)
    return Likeness(
        (sides[0].title, sides[1].title),
        sign,
        headline,
        tuple(_reasons(pair, rules)),
        pair.raw,
        pair.skeleton,
        (rules.thresholds.skeleton, rules.thresholds.delta),
        tuple(_sections(pair, sides, rules)),
        alignment.roles.counterparts if alignment else (),
        _about_roles(alignment.roles) if alignment else "",
    )


def likeness_in_words(told: Likeness) -> str:
    """Describe a comparison in a few sentences, as the picture's text alternative."""
    pairs = (
        f"{sum(row.similarity is not None for row in part.rows)} of {len(part.rows)} rows in pairs"
        for part in told.sections
    )
    parts = "; ".join(
        f"{part.name.lower()}: {counted}" for part, counted in zip(told.sections, pairs, strict=True)
    )
    one, other = (shortened(title, 80) for title in told.titles)
    return f"{one} and {other}: {told.headline}. {' '.join(told.reasons)} {parts.capitalize()}."


def signed_delta(number: float) -> str:
    """Format a number with its sign and three decimal places."""
    return f"{round(number, DIGITS) + 0.0:+.3f}".replace("-", "\u2212")


# --- the verdict ---


def _headline(pair: Pair, rules: Rules) -> tuple[str, str]:
    """Return the sign of the verdict ("yes", "no" or "open") and the verdict in one line."""
    passes = bool(rules.thresholds.admits(pair.skeleton, pair.delta))
    if pair.veto:
        below = (
            "the verifier refuses it" if passes else "below the thresholds, and the verifier refuses it too"
        )
        return "no", f"No edge: {below}"
    if not passes:
        return "no", "No edge: below the thresholds"
    if rules.thresholds.too_short(pair) and rules.kept is None:
        return "no", "No edge: too short to compare"
    return (
        ("open", "An edge by its numbers, unverified here") if pair.alignment is None else ("yes", "An edge")
    )


def _reasons(pair: Pair, rules: Rules) -> Iterator[str]:
    """Yield the reasons for the verdict: the band, the thresholds, the length and the verifier's finding."""
    yield f"Delta {signed_delta(pair.delta)}, in the {pair.band} band: {_BANDS[pair.band]}."
    yield _measured(pair, rules)
    if short := rules.thresholds.too_short(pair):
        yield f"They are {short}: unrelated sentences as short as these often reach the thresholds."
    if pair.alignment is None:
        yield "No verifier was asked here, so nothing has looked at the course of events."
    elif pair.veto:
        yield f"The verifier refuses it: {pair.veto}. Measured: {_runs(pair.alignment)}."
    else:
        yield f"The verifier lets it stand. Measured: {_runs(pair.alignment)}."
    if rules.kept is not None and rules.kept != pair.alignment and bool(rules.kept.veto) != bool(pair.veto):
        yield f"The edge itself keeps another verdict: {rules.kept.veto or 'it stands'}."


def _measured(pair: Pair, rules: Rules) -> str:
    """Compare the similarities of a pair with the thresholds, in one sentence."""
    least, by = rules.thresholds.skeleton, rules.thresholds.delta
    low = []
    if round(pair.skeleton, DIGITS) < least:
        low.append(f"the skeletons are not alike enough ({_decimals(pair.skeleton)} of at least {least:g})")
    low += [f"the delta is too small ({signed_delta(pair.delta)} of at least {by:+g})"] * (pair.delta < by)
    if low:
        return f"By the thresholds {rules.whence}, {' and '.join(low)}.".replace("-", "\u2212")
    reached = f"skeletons {_decimals(pair.skeleton)} of at least {least:g}, delta {signed_delta(pair.delta)} of at least {by:+g}"
    return f"Both thresholds {rules.whence} are reached: {reached}.".replace("-", "\u2212")


def _runs(found: Said) -> str:
    """Format the verifier's score, and for an Alignment also its backward score and Kendall's tau."""
    if not isinstance(found, Alignment):
        return f"score {_decimals(found.score)}"
    return f"score {_decimals(found.score)}, read backwards {_decimals(found.backward)}, order (Kendall's tau) {signed_delta(found.order)}"


def _decimals(number: float) -> str:
    return f"{number:.3f}".replace("-", "\u2212")


# --- alignment ---


def _sections(pair: Pair, sides: tuple[TextSide, TextSide], rules: Rules) -> Iterator[Section]:
    """Yield the sections of the picture: texts, skeletons and events.

    The texts are shown sentence by sentence if they were aligned, and whole otherwise. Events are shown only
    if the alignment has any.
    """
    alignment = pair.alignment if isinstance(pair.alignment, Alignment) else None
    told = alignment is not None and bool(alignment.events)
    weak = f"the thicker the line, the more alike; dashed: below {rules.limits.partner:.2f}, no partner"
    if alignment is None:
        whole = PictureRow(_whole_text(sides[0].text), _whole_text(sides[1].text))
        note = "an aligner would lay them side by side: give aligner="
        yield Section("Texts", (whole,), note, lines=_WHOLE)
    else:
        note, least = ("the thicker the line, the more alike", -1.0) if told else (weak, rules.limits.partner)
        yield Section("Texts, sentence by sentence", _rows_of_sentences(alignment), note, least)
    skeletons = PictureRow(_skeleton(sides[0]), _skeleton(sides[1]), pair.skeleton, places=3)
    below = "dashed: below the threshold" * (round(pair.skeleton, DIGITS) < rules.thresholds.skeleton)
    yield Section("Skeletons", (skeletons,), below, rules.thresholds.skeleton if below else -1.0, SKELETON)
    if alignment is not None and told:
        ours, theirs = (
            [Unit(event.phrase, event.denied) for event in text.events]
            for text in (alignment.source, alignment.target)
        )
        rows = _side_by_side(ours, theirs, alignment.events)
        yield Section("Events", rows, f"… stands for a pronoun or a clause; {weak}", rules.limits.partner)


def _rows_of_sentences(alignment: Alignment) -> tuple[PictureRow, ...]:
    """Return a row for each sentence, or for each pair of aligned sentences.

    A match counts only the sentences that have something to compare (a masked form). Its indices are
    converted to indices of all sentences.
    """
    texts = alignment.source, alignment.target
    ours, theirs = ([place for place, each in enumerate(text.sentences) if each.masked] for text in texts)
    matches = [Match(ours[each.source], theirs[each.target], each.similarity) for each in alignment.sentences]
    return _side_by_side(_sentences(texts[0]), _sentences(texts[1]), matches)


def _side_by_side(
    ours: Sequence[Unit], theirs: Sequence[Unit], matches: Iterable[Match]
) -> tuple[PictureRow, ...]:
    """Return a row for each match and for each unmatched unit, in the order of both texts."""
    rows, left, right = [], 0, 0
    for match in (*matches, None):
        ends = (match.source, match.target) if match else (len(ours), len(theirs))
        rows += [PictureRow(left=unit) for unit in ours[left : ends[0]]]
        rows += [PictureRow(right=unit) for unit in theirs[right : ends[1]]]
        if match:
            rows.append(PictureRow(ours[match.source], theirs[match.target], match.similarity))
        left, right = ends[0] + 1, ends[1] + 1
    return tuple(rows)


def _sentences(text: Analysis) -> list[Unit]:
    if not text.sentences:
        return [_whole_text(text.text)]
    bare = "nothing to compare is left without its nouns"
    return [Unit(sentence.text, sentence.denied, bare * (not sentence.masked)) for sentence in text.sentences]


def _whole_text(text: str) -> Unit:
    return Unit(text) if text.strip() else Unit("", note="this text is blank")


def _skeleton(side: TextSide) -> Unit:
    if not side.skeleton.strip():
        return Unit("", note="no skeleton is at hand: give skeletons=")
    return Unit(side.skeleton, note=f"leaked from the text: {', '.join(side.leaks)}" if side.leaks else "")


def _about_roles(roles: RoleMap) -> str:
    """Summarize the mapping of nouns: agreement one to one, votes and identical nouns."""
    if not roles.votes:
        return "no role is filled by a noun in both texts"
    said = f"{roles.consistency:.0%} of {roles.votes} shared roles agree one to one; {roles.same} filled by the same noun"
    return said + "; dashed: against one to one" * (roles.consistency < 1)


Texts = Mapping[str, str]
_YES_NO = {True: "yes", False: "no"}
_WIDE = 48  # characters per column in plain text
NEITHER = "a structure view shows a Pair of compare_texts, a delta edge"


def structure(
    what: Pair | Edge | Iterable[Edge],
    texts: PropertyGraph | Texts | None = None,
    *,
    skeletons: Texts | None = None,
    aligner: Verifier | None = None,
    thresholds: Thresholds | None = None,
) -> StructureView:
    """Show two texts side by side with their similarities, alignment and verdict.

    `what` is a Pair from `compare_texts`, a delta edge, or several edges (also a FoundEdges). Of several, the
    edge with the largest delta is shown; `of` shows another. `texts` maps ids to texts, or is the graph that
    holds them. A Pair of two texts needs none, and uses it only to look up their names. `skeletons` maps
    texts to skeletons, for edges that do not store theirs. `aligner` aligns the two texts if no alignment is
    at hand; an edge stores only the verdict. Without `thresholds`, those stored with the edge are used, or
    else the specified ones.

    Raises BadInput if an edge lacks one of the two similarities, if an id has no text, or if there are no
    edges.
    """
    known, names = _known(texts)
    source = _Source(_in_order(what), known, names, skeletons or {}, (aligner, thresholds))
    return source.view(what if isinstance(what, Pair) else 1)


@dataclass(frozen=True, repr=False)
class StructureView(StaticPicture):
    """A pair as a picture and as tables. The tables have in full what the picture truncates."""

    pair: Pair
    texts: tuple[str, str]
    svg: Markup
    alt: str  # description of the picture in words
    _told: Likeness = field(compare=False)
    _source: _Source = field(compare=False)

    def of(self, which: Edge | Pair | int) -> StructureView:
        """Return the view of another edge or pair, or of the edge with this number in `choices`.

        Raises BadInput if there is no such edge, or if it cannot be shown.
        """
        return self._source.view(which)

    def choices(self, *, limit: int = 50) -> Table:
        """Return a table of at most `limit` edges to choose from, by decreasing delta, vetoed edges last."""
        edges, name = self._source.edges, self._source.name
        rows = []
        for number, edge in enumerate(edges[:limit], 1):
            delta, veto = signed_delta(_pair(edge).delta), str(edge.properties.get("veto") or "")
            rows.append((str(number), name(edge.source), name(edge.target), delta, veto))
        return Table((sheet(("number", "one", "other", "delta", "veto"), rows, "Edges", len(edges)),))

    def table(self) -> Table:
        """Return the full content of the picture as tables: verdict, texts, aligned rows and role mapping.

        No text is truncated.
        """
        told, (one, other) = self._told, self._told.titles
        said = [
            ("verdict", told.headline), *(("why", reason) for reason in told.reasons),
            ("texts, cosine", f"{told.raw:.3f}"), ("skeletons, cosine", f"{told.skeleton:.3f}"),
            ("delta", signed_delta(self.pair.delta)), ("band", self.pair.band),
        ]  # fmt: skip
        sheets = [
            _full_sheet("The verdict", ("", "in words"), said),
            _full_sheet("The texts", told.titles, [self.texts]),
        ]
        columns = (one, "similarity", other, "remarks")
        for part in told.sections:
            sheets.append(_full_sheet(part.name, columns, [_cells(row, part) for row in part.rows]))
        if told.roles:
            who = [(each.source, f"{each.times:,}", each.target, _YES_NO[each.agrees]) for each in told.roles]
            sheets.append(_full_sheet("Who plays whom", (one, "times", other, "one to one"), who))
        return Table(tuple(sheets))

    def html(self) -> Markup:
        """Return the picture and, collapsed below it, the tables, as an HTML fragment."""
        tables = folded("The same as tables, with every text in full", self.table().html)
        return joined([image(self.svg, self.alt), tables])

    def __repr__(self) -> str:
        count = len(self._source.edges)
        return f"<StructureView: {printable_line(self.alt)}{f' One of {count:,} edges, see choices().' if count > 1 else ''}>"


# --- sources of views ---


@dataclass(frozen=True)
class _Source:
    """The data for views: edges to choose from, texts, names, skeletons, and the aligner and thresholds."""

    edges: tuple[Edge, ...]
    texts: Texts | None
    names: Texts
    skeletons: Texts
    judge: tuple[Verifier | None, Thresholds | None]

    def view(self, which: Edge | Pair | int) -> StructureView:
        """Return the view of a pair, of an edge, or of the edge with a number."""
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
        """Return the display name of the text with this id, or the id."""
        return self.names.get(id, id)

    def _numbered(self, number: int) -> Edge:
        if not 1 <= number <= len(self.edges):
            raise BadInput(
                f"there is no edge number {number} among the {len(self.edges):,} to choose from: see choices()"
            )
        return self.edges[number - 1]

    def _side(self, shown: Edge | Pair, pair: Pair, place: int) -> TextSide:
        """Collect the title, text, skeleton and leaked words of one of the two texts."""
        title, text = self._text(shown, (pair.source, pair.target)[place], place)
        leaks = getattr(self.skeletons, "leaks", {})
        skeleton = pair.skeletons[place] or self.skeletons.get(text, "")
        return TextSide(title, text, skeleton, tuple(leaks.get(text, ())))

    def _text(self, shown: Edge | Pair, id: str, place: int) -> tuple[str, str]:
        """Return the title and text of an id.

        The ends of a Pair may be the texts themselves. Raises BadInput if the text of an edge's end is
        missing.
        """
        if self.texts is not None and id in self.texts:
            return self.name(id), self.texts[id]
        if isinstance(shown, Edge):
            among = f"it is not among the {len(self.texts or ()):,} given"
            told = "none was given" if self.texts is None else among
            raise BadInput(
                f"the text of {id[:80]!r} is needed, and {told}: give texts=graph, the graph that the edges are of, or texts={{id: text}}"
            )
        named = next((self.name(key) for key, text in (self.texts or {}).items() if text == id), "")
        read = getattr(getattr(shown.alignment, ("source", "target")[place], None), "text", id)
        return (
            (named or ("First text", "Second text")[place], id)
            if read == replace_surrogates(id)
            else (id, read)
        )

    def _rules(self, shown: Edge | Pair, kept: StoredAlignment | None) -> Rules:
        aligner, thresholds = self.judge
        own = _thresholds(shown.properties.get("thresholds")) if isinstance(shown, Edge) else None
        whence = "given" if thresholds else "kept with the edge" if own else "of the specification"
        limits = getattr(aligner, "limits", None) or Cutoffs()
        return Rules(thresholds or own or SPECIFIED, whence, limits, kept)


def _known(texts: PropertyGraph | Texts | None) -> tuple[Texts | None, Texts]:
    """Return the texts by id, and the names of the nodes that have one."""
    if texts is None or isinstance(texts, Mapping):
        return texts, {}
    if not isinstance(texts, PropertyGraph):
        raise BadInput(f"texts is a graph, or the text of each id: {{id: text}}, not {type(texts).__name__}")
    names = {node.id: str(node.properties["name"]) for node in texts.nodes if node.properties.get("name")}
    return described(texts), names


def _in_order(what: Pair | Edge | Iterable[Edge]) -> tuple[Edge, ...]:
    """Return the edges to choose from, by decreasing delta, vetoed edges last.

    Raises BadInput if there are none, or if one is not an Edge.
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

    def order(edge: Edge) -> tuple[bool, float, str, str]:
        return bool(edge.properties.get("veto")), -_pair(edge).delta, edge.source, edge.target

    return tuple(sorted(edges, key=order))


def _pair(edge: Edge) -> Pair:
    """Build a Pair from the properties of an edge.

    Raises BadInput if the edge does not hold both similarities.
    """
    said = edge.properties
    raw, skeleton = (_number_of(edge, name) for name in ("raw", "skeleton"))
    ends = str(said.get("source_skeleton") or ""), str(said.get("target_skeleton") or "")
    kept = None
    if "alignment_score" in said:
        kept = StoredAlignment(_number_of(edge, "alignment_score"), str(said.get("veto") or ""))
    return Pair(edge.source, edge.target, raw, skeleton, ends, kept)


def _number_of(edge: Edge, name: str) -> float:
    value = edge.properties.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        ends = f"{edge.source[:80]!r} to {edge.target[:80]!r}"
        raise BadInput(
            f"the {edge.type[:80]} edge from {ends} holds no number {name!r}: only edges that delta_edges(…) made can be shown so"
        )
    return float(value)


def _sound(pair: Pair) -> Pair:
    """Return the pair if its similarities are cosines.

    Raises BadInput if one lies outside -1 to 1.
    """
    if not all(abs(cosine) <= 1 for cosine in (pair.raw, pair.skeleton)):
        raise BadInput(
            f"a similarity is a cosine, from -1 to 1; this pair has {pair.raw} and {pair.skeleton}"
        )
    return pair


def _thresholds(kept: Json) -> Thresholds | None:
    """Return the thresholds that are stored with an edge, or None."""
    match kept:
        case {"skeleton": int() | float() as skeleton, "delta": int() | float() as delta}:
            words = kept.get("words", 0)  # edges of earlier versions have no minimum
            return Thresholds(skeleton, delta, words if isinstance(words, int) else 0)
    return None


def _cells(row: PictureRow, part: Section) -> tuple[str, str, str, str]:
    """Format a row as four cells: left text, similarity, right text and remarks."""
    sides = [(side, unit) for side, unit in (("left", row.left), ("right", row.right)) if unit]
    remarks = [f"{side} denies something" for side, unit in sides if unit.denied]
    remarks += [f"{side}: {unit.note}" for side, unit in sides if unit.note]
    remarks += [f"below {part.least:g}"] * (row.similarity is not None and row.similarity < part.least)
    ours, theirs = (unit.text if unit else "" for unit in (row.left, row.right))
    return ours, row.between, theirs, "; ".join(remarks)


_NOTHING_CUT = sys.maxsize


class _Whole(Sheet):
    """A table without truncated cells."""

    @property
    def html(self) -> Markup:
        """The table in HTML."""
        return Markup(self.grid(_NOTHING_CUT).html)

    @property
    def text(self) -> str:
        """The table in plain text, with long cells on several lines."""
        whole = (self.columns, *self.rows)
        grid = [[wrap(printable_line(" ".join(cell.split())), _WIDE) for cell in row] for row in whole]
        columns = zip(*grid, strict=True)
        widths = [max((len(line) for cell in column for line in cell), default=0) for column in columns]
        lines = (line for row in grid for line in zip_longest(*row, fillvalue=""))
        return "\n".join(
            [self.caption, *("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)]
        )


def _full_sheet(name: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Sheet:
    return _Whole(tuple(columns), tuple(map(tuple, rows)), len(rows), name)
