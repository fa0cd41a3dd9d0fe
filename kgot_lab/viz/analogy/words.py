"""What is told of two texts: the verdict in plain words, and which of their sentences and events answer each
other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kgot_lab.analogy.linguistic import Analysis
from kgot_lab.analogy.roles import RoleMap
from kgot_lab.analogy.verdict import Alignment, Cutoffs, Match
from kgot_lab.similarity.delta import DIGITS, HIGH, LOW, MIDDLE, NEGATIVE, Pair, Thresholds
from kgot_lab.similarity.delta import Verified as Said
from kgot_lab.viz.analogy_picture import Likeness, PictureRow, Section, Unit
from kgot_lab.viz.static.markup import shortened

_WHOLE, SKELETON = 14, 8  # lines of a text that is not taken apart into sentences, and of a skeleton
_BANDS = {
    NEGATIVE: "the texts are more alike than their skeletons",
    LOW: "the skeletons are hardly more alike than the texts",
    MIDDLE: "the skeletons are somewhat more alike than the texts",
    HIGH: "the skeletons are much more alike than the texts",
}


@dataclass(frozen=True)
class TextSide:
    """One of the two texts: what it is called, its words, and its skeleton with the words that leaked into
    it.
    """

    title: str
    text: str
    skeleton: str = ""
    leaks: tuple[str, ...] = ()


@dataclass(frozen=True)
class StoredAlignment:
    """What an edge keeps of its alignment: how well the texts run alike, and what speaks against the edge."""

    score: float
    veto: str


@dataclass(frozen=True)
class Rules:
    """By what a pair is judged, and what the edge itself says of that."""

    thresholds: Thresholds
    whence: str  # who set the thresholds
    limits: Cutoffs
    kept: StoredAlignment | None = None


def comparison(pair: Pair, sides: tuple[TextSide, TextSide], rules: Rules) -> Likeness:
    """All that is told of two texts."""
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
    """A comparison in a few sentences, for those who do not see the picture."""
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
    """A number with its sign, at three places."""
    return f"{round(number, DIGITS) + 0.0:+.3f}".replace("-", "\u2212")


# --- the verdict
# --------------------------------------------------------------------------------------------------------


def _headline(pair: Pair, rules: Rules) -> tuple[str, str]:
    """The sign of the verdict, and the verdict in one line."""
    passes = bool(rules.thresholds.admits(pair.skeleton, pair.delta))
    if pair.veto:
        return (
            "no",
            "No edge: the verifier refuses it"
            if passes
            else "No edge: below the thresholds, and the verifier refuses it too",
        )
    if not passes:
        return "no", "No edge: below the thresholds"
    if rules.thresholds.too_short(pair) and rules.kept is None:
        return "no", "No edge: too short to compare"
    return (
        ("open", "An edge by its numbers, unverified here") if pair.alignment is None else ("yes", "An edge")
    )


def _reasons(pair: Pair, rules: Rules) -> Iterator[str]:
    """Why: the band, the thresholds, and what the verifier says."""
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
    """How the pair stands to the thresholds."""
    least, by = rules.thresholds.skeleton, rules.thresholds.delta
    low = [f"the skeletons are not alike enough ({_number(pair.skeleton)} of at least {least:g})"] * (
        round(pair.skeleton, DIGITS) < least
    )
    low += [f"the delta is too small ({signed_delta(pair.delta)} of at least {by:+g})"] * (pair.delta < by)
    if low:
        return f"By the thresholds {rules.whence}, {' and '.join(low)}.".replace("-", "\u2212")
    reached = f"skeletons {_number(pair.skeleton)} of at least {least:g}, delta {signed_delta(pair.delta)} of at least {by:+g}"
    return f"Both thresholds {rules.whence} are reached: {reached}.".replace("-", "\u2212")


def _runs(found: Said) -> str:
    """How alike the two run, as far as a verifier says it."""
    if not isinstance(found, Alignment):
        return f"score {_number(found.score)}"
    return f"score {_number(found.score)}, read backwards {_number(found.backward)}, order (Kendall's tau) {signed_delta(found.order)}"


def _number(number: float) -> str:
    return f"{number:.3f}".replace("-", "\u2212")


# --- what answers what
# --------------------------------------------------------------------------------------------------


def _sections(pair: Pair, sides: tuple[TextSide, TextSide], rules: Rules) -> Iterator[Section]:
    """The texts, sentence by sentence where they were aligned; their skeletons; and their events."""
    alignment = pair.alignment if isinstance(pair.alignment, Alignment) else None
    told = alignment is not None and bool(alignment.events)
    weak = f"the thicker the line, the more alike; dashed: below {rules.limits.partner:.2f}, no partner"
    if alignment is None:
        whole = PictureRow(_whole(sides[0].text), _whole(sides[1].text))
        yield Section(
            "Texts", (whole,), "an aligner would lay them side by side: give aligner=", lines=_WHOLE
        )
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
    """The sentences of two texts; a match names its places among those that have something to compare."""
    texts = alignment.source, alignment.target
    ours, theirs = (
        [place for place, sentence in enumerate(text.sentences) if sentence.masked] for text in texts
    )
    matches = [
        Match(ours[match.source], theirs[match.target], match.similarity) for match in alignment.sentences
    ]
    return _side_by_side(_sentences(texts[0]), _sentences(texts[1]), matches)


def _side_by_side(
    ours: Sequence[Unit], theirs: Sequence[Unit], matches: Iterable[Match]
) -> tuple[PictureRow, ...]:
    """A row for each match, and for each unit that stands alone, in the order of both texts."""
    rows, left, right = [], 0, 0
    for match in matches:
        rows += [PictureRow(left=unit) for unit in ours[left : match.source]] + [
            PictureRow(right=unit) for unit in theirs[right : match.target]
        ]
        rows.append(PictureRow(ours[match.source], theirs[match.target], match.similarity))
        left, right = match.source + 1, match.target + 1
    return (
        *rows,
        *(PictureRow(left=unit) for unit in ours[left:]),
        *(PictureRow(right=unit) for unit in theirs[right:]),
    )


def _sentences(text: Analysis) -> list[Unit]:
    if not text.sentences:
        return [_whole(text.text)]
    bare = "nothing to compare is left without its nouns"
    return [Unit(sentence.text, sentence.denied, bare * (not sentence.masked)) for sentence in text.sentences]


def _whole(text: str) -> Unit:
    return Unit(text) if text.strip() else Unit("", note="this text is blank")


def _skeleton(side: TextSide) -> Unit:
    if not side.skeleton.strip():
        return Unit("", note="no skeleton is at hand: give skeletons=")
    return Unit(side.skeleton, note=f"leaked from the text: {', '.join(side.leaks)}" if side.leaks else "")


def _about_roles(roles: RoleMap) -> str:
    """What the mapping of nouns amounts to."""
    if not roles.votes:
        return "no role is filled by a noun in both texts"
    said = f"{roles.consistency:.0%} of {roles.votes} shared roles agree one to one; {roles.same} filled by the same noun"
    return said + "; dashed: against one to one" * (roles.consistency < 1)
