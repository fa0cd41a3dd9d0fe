"""Structure view: two texts side by side with their skeletons and alignment."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from math import isfinite
from textwrap import wrap

from kgot_lab.analogy.delta_edges import ComputedEdges, Verifier, texts_by_node
from kgot_lab.analogy.linguistic import Analysis, RoleMap
from kgot_lab.analogy.verdict import Alignment, Cutoffs, Match, align_units
from kgot_lab.arguments import check_names
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.similarity.delta import DEFAULT_THRESHOLDS, DIGITS, TextPair, Thresholds, VerifierVerdict
from kgot_lab.text.cleaning import printable_line, replace_surrogates
from kgot_lab.types import Edge, Json
from kgot_lab.viz.analogy_picture import PictureRow, Section, TextComparison, Unit, comparison_picture
from kgot_lab.viz.static.drawing import StaticPicture
from kgot_lab.viz.static.markup import Markup, shorten
from kgot_lab.viz.static.table import Sheet, Table, sheet

# The structure view: two texts, their skeletons and alignment, and the delta of the edge between them.

# The comparison of two texts: the verdict in words, and their aligned sentences and events.

_MAX_TEXT_LINES = 14  # of a text that is not split into sentences
MAX_SKELETON_LINES = 8
_BAND_TEXTS = {
    "negative": "the texts are more alike than their skeletons",
    "low": "the skeletons are hardly more alike than the texts",
    "middle": "the skeletons are somewhat more alike than the texts",
    "high": "the skeletons are much more alike than the texts",
}


@dataclass(frozen=True)
class TextSide:
    """One of the two texts: title, text and skeleton."""

    title: str
    text: str
    skeleton: str = ""


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


def compare_sides(pair: TextPair, sides: tuple[TextSide, TextSide], rules: Rules) -> TextComparison:
    """Compare two texts and collect the verdict, its reasons, the aligned rows and the role mapping."""
    alignment = pair.alignment if isinstance(pair.alignment, Alignment) else None
    sign, headline = _headline(pair, rules)
    return TextComparison(
        (sides[0].title, sides[1].title),
        sign,
        headline,
        tuple(_reasons(pair, rules)),
        pair.raw,
        pair.skeleton,
        (rules.thresholds.skeleton, rules.thresholds.delta),
        tuple(_sections(pair, sides, rules)),
        alignment.roles.counterparts if alignment else (),
        _describe_roles(alignment.roles) if alignment else "",
    )


def describe_comparison(comparison: TextComparison) -> str:
    """Describe a comparison in a few sentences, as the picture's text alternative."""
    parts = []
    for part in comparison.sections:
        paired = sum(row.similarity is not None for row in part.rows)
        parts.append(f"{part.name.lower()}: {paired} of {len(part.rows)} rows in pairs")
    rows = "; ".join(parts).capitalize()
    first, second = (shorten(title, 80) for title in comparison.titles)
    return f"{first} and {second}: {comparison.headline}. {' '.join(comparison.reasons)} {rows}."


def format_delta(number: float) -> str:
    """Format a number with its sign and three decimal places."""
    return f"{round(number, DIGITS) + 0.0:+.3f}".replace("-", "\u2212")


# --- the verdict ---


def _headline(pair: TextPair, rules: Rules) -> tuple[str, str]:
    """Return the sign of the verdict ("yes", "no" or "open") and the verdict in one line."""
    passes = bool(rules.thresholds.are_reached(pair.skeleton, pair.delta))
    if pair.veto:
        refused = "the verifier refuses it"
        return "no", f"No edge: {refused if passes else f'below the thresholds, and {refused} too'}"
    if not passes:
        return "no", "No edge: below the thresholds"
    if rules.thresholds.explain_short_skeletons(pair) and rules.kept is None:
        return "no", "No edge: too short to compare"
    return ("open", "An edge by its numbers, unverified") if pair.alignment is None else ("yes", "An edge")


def _reasons(pair: TextPair, rules: Rules) -> Iterator[str]:
    """Yield the reasons for the verdict: the band, the thresholds, the length and the verifier's finding."""
    yield f"Delta {format_delta(pair.delta)}, in the {pair.band} band: {_BAND_TEXTS[pair.band]}."
    yield _compare_with_thresholds(pair, rules)
    if short := rules.thresholds.explain_short_skeletons(pair):
        yield f"They are {short}: unrelated sentences as short as these often reach the thresholds."
    if pair.alignment is None:
        yield "No verifier was used here, so the order of events was not checked."
    elif pair.veto:
        yield f"The verifier rejects it: {pair.veto}. Measured: {_format_verifier_scores(pair.alignment)}."
    else:
        yield f"The verifier accepts it. Measured: {_format_verifier_scores(pair.alignment)}."
    if rules.kept is not None and rules.kept != pair.alignment and bool(rules.kept.veto) != bool(pair.veto):
        yield f"The edge itself keeps another verdict: {rules.kept.veto or 'it stands'}."


def _compare_with_thresholds(pair: TextPair, rules: Rules) -> str:
    """Compare the similarities of a pair with the thresholds, in one sentence."""
    thresholds, failures = rules.thresholds, []
    skeletons = f"{_decimals(pair.skeleton)} of at least {thresholds.skeleton:g}"
    delta = f"{format_delta(pair.delta)} of at least {thresholds.delta:+g}"
    if round(pair.skeleton, DIGITS) < thresholds.skeleton:
        failures.append(f"the skeletons are not alike enough ({skeletons})")
    if pair.delta < thresholds.delta:
        failures.append(f"the delta is too small ({delta})")
    if failures:
        finding = f"By the thresholds {rules.whence}, {' and '.join(failures)}."
    else:
        finding = f"Both thresholds {rules.whence} are reached: skeletons {skeletons}, delta {delta}."
    return finding.replace("-", "\u2212")


def _format_verifier_scores(found: VerifierVerdict) -> str:
    """Format the verifier's score, and for an Alignment also its backward score and Kendall's tau."""
    if not isinstance(found, Alignment):
        return f"score {_decimals(found.score)}"
    return f"score {_decimals(found.score)}, read backwards {_decimals(found.backward)}, order (Kendall's tau) {format_delta(found.order)}"


def _decimals(number: float) -> str:
    return f"{number:.3f}".replace("-", "\u2212")


# --- alignment ---


def _sections(pair: TextPair, sides: tuple[TextSide, TextSide], rules: Rules) -> Iterator[Section]:
    """Yield the sections of the picture: texts, skeletons and events.

    The texts are shown sentence by sentence if they were aligned, and whole otherwise. Events are shown only
    if the alignment has any.
    """
    alignment = pair.alignment if isinstance(pair.alignment, Alignment) else None
    has_events = alignment is not None and bool(alignment.events)
    partner = rules.limits.partner
    weak = f"the thicker the line, the more alike; dashed: below {partner:.2f}, no partner"
    if alignment is None:
        whole = PictureRow(_text_unit(sides[0].text), _text_unit(sides[1].text))
        note = "an aligner would lay them side by side: give aligner="
        yield Section("Texts", (whole,), note, lines=_MAX_TEXT_LINES)
    else:
        note, least = ("the thicker the line, the more alike", -1.0) if has_events else (weak, partner)
        yield Section("Texts, sentence by sentence", _rows_of_sentences(alignment), note, least)
    skeletons = PictureRow(_skeleton_unit(sides[0]), _skeleton_unit(sides[1]), pair.skeleton, places=3)
    below = "dashed: below the threshold" if round(pair.skeleton, DIGITS) < rules.thresholds.skeleton else ""
    least = rules.thresholds.skeleton if below else -1.0
    yield Section("Skeletons", (skeletons,), below, least, MAX_SKELETON_LINES)
    if alignment is not None and has_events:
        ours, theirs = (
            [Unit(event.phrase, event.denied) for event in text.events]
            for text in (alignment.source, alignment.target)
        )
        rows = _align_rows(ours, theirs, alignment.events)
        yield Section("Events", rows, f"… stands for a pronoun or a clause; {weak}", partner)


def _rows_of_sentences(alignment: Alignment) -> tuple[PictureRow, ...]:
    """Return a row for each sentence, or for each pair of aligned sentences.

    A match counts only the sentences that have something to compare (a masked form). Its indices are
    converted to indices of all sentences.
    """
    texts = alignment.source, alignment.target
    ours, theirs = ([place for place, each in enumerate(text.sentences) if each.masked] for text in texts)
    matches = [
        Match(ours[sentence.source], theirs[sentence.target], sentence.similarity)
        for sentence in alignment.sentences
    ]
    return _align_rows(_sentence_units(texts[0]), _sentence_units(texts[1]), matches)


def _align_rows(ours: list[Unit], theirs: list[Unit], matches: Iterable[Match]) -> tuple[PictureRow, ...]:
    rows = align_units(ours, theirs, matches)
    return tuple(PictureRow(left, right, match.similarity if match else None) for left, right, match in rows)


def _sentence_units(text: Analysis) -> list[Unit]:
    if not text.sentences:
        return [_text_unit(text.text)]
    bare = "without its nouns, nothing is left to compare"
    return [Unit(sentence.text, sentence.denied, bare * (not sentence.masked)) for sentence in text.sentences]


def _text_unit(text: str) -> Unit:
    return Unit(text) if text.strip() else Unit("", note="this text is blank")


def _skeleton_unit(side: TextSide) -> Unit:
    if not side.skeleton.strip():
        return Unit("", note="no skeleton is at hand: give skeletons=")
    return Unit(side.skeleton)


def _describe_roles(roles: RoleMap) -> str:
    """Summarize the mapping of nouns: agreement one to one, votes and identical nouns."""
    if not roles.votes:
        return "no role is filled by a noun in both texts"
    summary = f"{roles.consistency:.0%} of {roles.votes} shared roles agree one to one; {roles.same} filled by the same noun"
    return summary + ("; dashed: against one to one" if roles.consistency < 1 else "")


Texts = Mapping[str, str]
_YES_NO = {True: "yes", False: "no"}
_COLUMN_WIDTH = 48  # characters per column in plain text
WRONG_TYPE = "a structure view shows a Pair of compare_texts, a delta edge"


@check_names
def structure(
    what: TextPair | Edge | Iterable[Edge],
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
    texts_by_id, names = _texts_and_names(texts)
    source = _ViewSource(_sorted_edges(what), texts_by_id, names, skeletons or {}, (aligner, thresholds))
    return source.view(what if isinstance(what, TextPair) else 1)


@dataclass(frozen=True, repr=False)
class StructureView(StaticPicture):
    """A pair as a picture and as tables. The tables have in full what the picture truncates."""

    pair: TextPair
    texts: tuple[str, str]
    svg: Markup
    alt: str  # description of the picture in words
    _comparison: TextComparison = field(compare=False)
    _source: _ViewSource = field(compare=False)

    def of(self, which: Edge | TextPair | int) -> StructureView:
        """Return the view of another edge or pair, or of the edge with this number in `choices`.

        Raises BadInput if there is no such edge, or if it cannot be shown.
        """
        return self._source.view(which)

    def choices(self, *, limit: int = 50) -> Table:
        """Return a table of at most `limit` edges to choose from, by decreasing delta, vetoed edges last."""
        edges, name = self._source.edges, self._source.name
        rows = []
        for number, edge in enumerate(edges[:limit], 1):
            delta, veto = format_delta(_edge_pair(edge).delta), str(edge.properties.get("veto") or "")
            rows.append((str(number), name(edge.source), name(edge.target), delta, veto))
        return Table((sheet(("number", "one", "other", "delta", "veto"), rows, "Edges", len(edges)),))

    def table(self) -> Table:
        """Return the full content of the picture as tables: verdict, texts, aligned rows and role mapping.

        No text is truncated.
        """
        comparison, (one, other) = self._comparison, self._comparison.titles
        verdict_rows = [
            ("verdict", comparison.headline), *(("why", reason) for reason in comparison.reasons),
            ("texts, cosine", f"{comparison.raw:.3f}"), ("skeletons, cosine", f"{comparison.skeleton:.3f}"),
            ("delta", format_delta(self.pair.delta)), ("band", self.pair.band),
        ]  # fmt: skip
        sheets = [
            _full_sheet("The verdict", ("", "in words"), verdict_rows),
            _full_sheet("The texts", comparison.titles, [self.texts]),
        ]
        columns = (one, "similarity", other, "remarks")
        for part in comparison.sections:
            sheets.append(_full_sheet(part.name, columns, [_row_cells(row, part) for row in part.rows]))
        if roles := comparison.roles:
            rows = [(role.source, f"{role.times:,}", role.target, _YES_NO[role.agrees]) for role in roles]
            sheets.append(_full_sheet("Who plays whom", (one, "times", other, "one to one"), rows))
        return Table(tuple(sheets))

    def __repr__(self) -> str:
        count = len(self._source.edges)
        return f"<StructureView: {printable_line(self.alt)}{f' One of {count:,} edges, see choices().' if count > 1 else ''}>"


# --- sources of views ---


@dataclass(frozen=True)
class _ViewSource:
    """The data for views: edges to choose from, texts, names, skeletons, and the aligner and thresholds."""

    edges: tuple[Edge, ...]
    texts: Texts | None
    names: Texts
    skeletons: Texts
    judge: tuple[Verifier | None, Thresholds | None]

    def view(self, which: Edge | TextPair | int) -> StructureView:
        """Return the view of a pair, of an edge, or of the edge with a number."""
        subject = self._numbered(which) if isinstance(which, int) else which
        if not isinstance(subject, TextPair | Edge):
            raise BadInput(f"{WRONG_TYPE}, not {type(subject).__name__}")
        pair = _check_cosines(subject if isinstance(subject, TextPair) else _edge_pair(subject))
        sides = self._side(subject, pair, 0), self._side(subject, pair, 1)
        texts = sides[0].text, sides[1].text
        pair = replace(pair, skeletons=(sides[0].skeleton, sides[1].skeleton))
        stored = pair.alignment if isinstance(pair.alignment, StoredAlignment) else None
        if self.judge[0] is not None and (pair.alignment is None or stored is not None):
            pair = replace(pair, alignment=self.judge[0].align(*texts))
        comparison = compare_sides(pair, sides, self._rules(subject, stored))
        alt = describe_comparison(comparison)
        return StructureView(pair, texts, comparison_picture(comparison, alt), alt, comparison, self)

    def name(self, id: str) -> str:
        """Return the display name of the text with this id, or the id."""
        return self.names.get(id, id)

    def _numbered(self, number: int) -> Edge:
        if not 1 <= number <= len(self.edges):
            raise BadInput(f"there is no edge number {number} among the {len(self.edges):,}: see choices()")
        return self.edges[number - 1]

    def _side(self, subject: Edge | TextPair, pair: TextPair, index: int) -> TextSide:
        """Collect the title, text and skeleton of one of the two texts."""
        title, text = self._text(subject, (pair.source, pair.target)[index], index)
        skeleton = pair.skeletons[index] or self.skeletons.get(text, "")
        return TextSide(title, text, skeleton)

    def _text(self, subject: Edge | TextPair, id: str, index: int) -> tuple[str, str]:
        """Return the title and text of an id.

        The ends of a Pair may be the texts themselves. Raises BadInput if the text of an edge's end is
        missing.
        """
        if self.texts is not None and id in self.texts:
            return self.name(id), self.texts[id]
        if isinstance(subject, Edge):
            count_note = f"it is not among the {len(self.texts or ()):,} given"
            problem = "none was given" if self.texts is None else count_note
            raise BadInput(
                f"the text of {id[:80]!r} is needed, and {problem}: give texts=graph, the graph that the edges are of, or texts={{id: text}}"
            )
        title = next((self.name(key) for key, text in (self.texts or {}).items() if text == id), "")
        analysed = getattr(getattr(subject.alignment, ("source", "target")[index], None), "text", id)
        if analysed != replace_surrogates(id):
            return id, analysed
        return title or ("First text", "Second text")[index], id

    def _rules(self, subject: Edge | TextPair, stored: StoredAlignment | None) -> Rules:
        aligner, thresholds = self.judge
        properties = subject.properties if isinstance(subject, Edge) else {}
        from_edge = _stored_thresholds(properties.get("thresholds"))
        whence = "given" if thresholds else "kept with the edge" if from_edge else "of the specification"
        limits = getattr(aligner, "limits", None) or Cutoffs()
        return Rules(thresholds or from_edge or DEFAULT_THRESHOLDS, whence, limits, stored)


def _texts_and_names(texts: PropertyGraph | Texts | None) -> tuple[Texts | None, Texts]:
    """Return the texts by id, and the names of the nodes that have one."""
    if texts is None or isinstance(texts, Mapping):
        return texts, {}
    if not isinstance(texts, PropertyGraph):
        raise BadInput(f"texts is a graph, or the text of each id: {{id: text}}, not {type(texts).__name__}")
    names = {node.id: str(node.properties["name"]) for node in texts.nodes if node.properties.get("name")}
    return texts_by_node(texts), names


def _sorted_edges(what: TextPair | Edge | Iterable[Edge]) -> tuple[Edge, ...]:
    """Return the edges to choose from, by decreasing delta, vetoed edges last.

    Raises BadInput if there are none, or if one is not an Edge.
    """
    if isinstance(what, TextPair):
        return ()
    candidates = what if isinstance(what, Iterable) and not isinstance(what, str) else [what]
    edges = [*candidates, *(what.vetoed if isinstance(what, ComputedEdges) else ())]
    if wrong := [edge for edge in edges if not isinstance(edge, Edge)]:
        raise BadInput(f"{WRONG_TYPE} or several, not {type(wrong[0]).__name__}")
    if not edges:
        raise BadInput(
            "there is no edge to show: compare_texts(one, other, skeletons, embedder) makes a Pair"
        )

    def order(edge: Edge) -> tuple[bool, float, str, str]:
        return bool(edge.properties.get("veto")), -_edge_pair(edge).delta, edge.source, edge.target

    return tuple(sorted(edges, key=order))


def _edge_pair(edge: Edge) -> TextPair:
    """Build a Pair from the properties of an edge.

    Raises BadInput if the edge does not hold both similarities.
    """
    properties = edge.properties
    raw, skeleton = (_number_property(edge, name) for name in ("raw", "skeleton"))
    ends = str(properties.get("source_skeleton") or ""), str(properties.get("target_skeleton") or "")
    stored = None
    if "alignment_score" in properties:
        stored = StoredAlignment(_number_property(edge, "alignment_score"), str(properties.get("veto") or ""))
    return TextPair(edge.source, edge.target, raw, skeleton, ends, stored)


def _number_property(edge: Edge, name: str) -> float:
    value = edge.properties.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        ends = f"{edge.source[:80]!r} to {edge.target[:80]!r}"
        problem = f"the {edge.type[:80]} edge from {ends} holds no number {name!r}"
        raise BadInput(f"{problem}: only edges that delta_edges(…) made can be shown so")
    return float(value)


def _check_cosines(pair: TextPair) -> TextPair:
    """Return the pair if its similarities are cosines.

    Raises BadInput if one lies outside -1 to 1.
    """
    if not all(abs(cosine) <= 1 for cosine in (pair.raw, pair.skeleton)):
        raise BadInput(f"a similarity is a cosine, from -1 to 1, and not {pair.raw} and {pair.skeleton}")
    return pair


def _stored_thresholds(stored: Json) -> Thresholds | None:
    """Return the thresholds that are stored with an edge, or None."""
    match stored:
        case {"skeleton": int() | float() as skeleton, "delta": int() | float() as delta}:
            words = stored.get("words", 0)  # edges of earlier versions have no minimum
            return Thresholds(skeleton, delta, words if isinstance(words, int) else 0)
    return None


def _row_cells(row: PictureRow, part: Section) -> tuple[str, str, str, str]:
    """Format a row as four cells: left text, similarity, right text and remarks."""
    sides = [(side, unit) for side, unit in (("left", row.left), ("right", row.right)) if unit]
    remarks = [f"{side} denies something" for side, unit in sides if unit.denied]
    remarks += [f"{side}: {unit.note}" for side, unit in sides if unit.note]
    remarks += [f"below {part.least:g}"] if row.similarity is not None and row.similarity < part.least else []
    left_text, right_text = (unit.text if unit else "" for unit in (row.left, row.right))
    return left_text, row.between, right_text, "; ".join(remarks)


class _FullSheet(Sheet):
    """A table without truncated cells."""

    max_cell_length = sys.maxsize

    @property
    def text(self) -> str:
        """The table in plain text, with long cells on several lines."""
        rows = (self.columns, *self.rows)
        grid = [[wrap(printable_line(" ".join(cell.split())), _COLUMN_WIDTH) for cell in row] for row in rows]
        columns = zip(*grid, strict=True)
        widths = [max((len(line) for cell in column for line in cell), default=0) for column in columns]
        lines = (line for row in grid for line in zip_longest(*row, fillvalue=""))
        body = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
        return "\n".join([self.caption, *body])


def _full_sheet(name: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Sheet:
    return _FullSheet(tuple(columns), tuple(map(tuple, rows)), len(rows), name)
