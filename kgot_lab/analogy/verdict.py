"""The alignment of two texts, and the reasons against calling them analogous."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from textwrap import wrap
from typing import TypeVar

from kgot_lab.analogy.linguistic import Analysis, RoleMap, map_roles
from kgot_lab.arguments import CheckedRecord, bounded, check_arguments

UnitT = TypeVar("UnitT")
_COLUMN_WIDTH = 48  # characters of a column


@dataclass(frozen=True)
class Cutoffs(CheckedRecord):
    """The limits beyond which an edge is vetoed.

    The first five defaults are what `calibrated` chose on dev splits with all-MiniLM. The others were set by
    hand.
    """

    partners: float = bounded(0.25, -1)  # minimum share of events with a partner, in the text with fewer
    turned: float = bounded(0.03, -1)  # maximum gain of the score when one text is reversed
    same: float = bounded(0.8, -1)  # maximum share of roles filled by the same nouns (the same story)
    consistency: float = bounded(0.6, -1)  # minimum share of roles that agree with a one-to-one mapping
    score: float = bounded(0.34, -1)  # minimum score
    partner: float = bounded(0.3, -1)  # minimum similarity of aligned events to be partners
    denial: float = bounded(0.6, -1)  # minimum similarity of sentences for a contradiction
    votes: int = 2  # minimum number of roles to judge their nouns


@dataclass(frozen=True)
class Match:
    """A unit of the source and one of the target, by index, with their similarity."""

    source: int
    target: int
    similarity: float


@check_arguments
@dataclass(frozen=True, repr=False)
class Alignment:
    """Two aligned texts: the pairs of sentences and events, and the mapping of nouns that they imply.

    `score` is the similarity of `Aligner`. `backward` is the same with the target's units in reverse. `order`
    is Kendall's tau between the source's units and their best matches: 1 in order, -1 reversed. The units are
    events if both texts have several, else sentences. `veto` is the reason against an edge, or "".
    """

    source: Analysis
    target: Analysis
    sentences: tuple[Match, ...]  # indices in `units`
    events: tuple[Match, ...]  # empty if a text has no event
    score: float
    backward: float
    order: float
    veto: str = ""

    @cached_property
    def roles(self) -> RoleMap:
        """The mapping of nouns that fill the same role in aligned events."""
        ours, theirs = self.source.events, self.target.events
        return map_roles((ours[match.source], theirs[match.target]) for match in self.events)

    @property
    def shorter_length(self) -> int:
        """The number of events in the text with fewer, or of sentences if a text has no event."""
        texts = (self.source, self.target)
        return min(len(text.events) for text in texts) or min(len(text.units) for text in texts)

    def partners(self, similarity: float) -> int:
        """Count the units aligned with a similarity of at least this."""
        return sum(match.similarity >= similarity for match in self.events or self.sentences)

    def count_contradictions(self, similarity: float) -> int:
        """Count the aligned sentences of at least this similarity of which exactly one is negated."""
        return sum(m.similarity >= similarity and self._is_contradiction(m) for m in self.sentences)

    def _is_contradiction(self, match: Match) -> bool:
        return self.source.units[match.source].denied != self.target.units[match.target].denied

    def __str__(self) -> str:
        lines = [f"<Alignment {self.score:.2f}, order {self.order:+.2f}: {self.veto or 'the edge stands'}>"]
        texts = (self.source, self.target)
        units = [[unit.text for unit in text.units] for text in texts]
        marks = {sentence: "!" for sentence in self.sentences if self._is_contradiction(sentence)}
        lines += _format_columns(units, self.sentences, marks)
        if self.events:
            lines.append("events")
            phrases = [[event.phrase for event in text.events] for text in texts]
            lines += _format_columns(phrases, self.events, {})
        roles = self.roles
        if roles.votes:
            same = f"{roles.same} of {roles.votes} with the same noun"
            lines.append(f"roles: {roles.consistency:.0%} agree one to one, {same}")
        for noun in roles.counterparts:
            times = f"{noun.times}x" if noun.agrees else f"({noun.times}x)"
            lines += _format_row(noun.source, times, noun.target)
        return "\n".join(line.rstrip() for line in lines)

    __repr__ = __str__


def judge_alignment(alignment: Alignment, limits: Cutoffs) -> Alignment:
    """Return an alignment with its verdict under some limits: every reason against an edge, or none."""
    settled = _obvious_reason(alignment)
    return replace(alignment, veto=settled or "; ".join(_find_reasons(alignment, limits)))


def _obvious_reason(alignment: Alignment) -> str:
    """Return the reason against an edge that needs no measurement, if any."""
    texts = {"first": alignment.source, "second": alignment.target}
    for position, text in texts.items():
        if not text.text.strip():
            return f"the {position} text is blank"
    if alignment.source.text.casefold().split() == alignment.target.text.casefold().split():
        return "the same text"
    bare = [position for position, text in texts.items() if not text.units]
    why = "has no English sentence that tells anything: nothing in it can be aligned"
    return f"the {bare[0]} text {why}" if bare else ""


# lower limits; the others are upper limits
_LOWER_LIMITS = ("partners", "consistency", "score")


def _measure(alignment: Alignment, limits: Cutoffs) -> dict[str, float]:
    """Return the values that the first five limits are compared with.

    Too few roles say nothing about their nouns, so they pass.
    """
    roles, few = alignment.roles, alignment.roles.votes < max(1, limits.votes)
    return {
        "partners": alignment.partners(limits.partner) / max(1, alignment.shorter_length),
        "turned": alignment.backward - alignment.score,
        "same": 0.0 if few else roles.same / roles.votes,
        "consistency": 1.0 if few else roles.consistency,
        "score": alignment.score,
    }


def _find_reasons(alignment: Alignment, limits: Cutoffs) -> Iterator[str]:
    measured, roles, of = _measure(alignment, limits), alignment.roles, alignment.shorter_length
    unit, found = "event" if alignment.events else "sentence", alignment.partners(limits.partner)
    sentence = {
        "partners": f"{f'only {found}' if found else 'none'} of {of} {unit}{'s' * (of > 1)} finds a partner",
        "turned": f"the order of {unit}s is turned round (tau {alignment.order:.2f}): "
        f"backwards they line up better ({alignment.backward:.2f}) than in order ({alignment.score:.2f})",
        "same": f"{roles.same} of {roles.votes} roles are filled by the same nouns: the same story, not an analogy",
        "consistency": f"the nouns do not answer one to one: {roles.consistency:.0%} of {roles.votes} roles agree",
        "score": f"they do not run alike (score {alignment.score:.2f})",
    }
    for name, value in measured.items():
        if value < getattr(limits, name) if name in _LOWER_LIMITS else value > getattr(limits, name):
            yield sentence[name]
    if alignment.count_contradictions(limits.denial) > len(alignment.sentences) / 2:
        yield "one denies what the other says"


def align_units(
    ours: Sequence[UnitT], theirs: Sequence[UnitT], matches: Iterable[Match]
) -> Iterator[tuple[UnitT | None, UnitT | None, Match | None]]:
    """Yield a row for each match and for each unmatched unit, in the order of both texts."""
    left, right = 0, 0
    for match in (*matches, None):
        positions = (match.source, match.target) if match else (len(ours), len(theirs))
        yield from ((unit, None, None) for unit in ours[left : positions[0]])
        yield from ((None, unit, None) for unit in theirs[right : positions[1]])
        if match:
            yield ours[match.source], theirs[match.target], match
        left, right = positions[0] + 1, positions[1] + 1


def _format_columns(
    units: Sequence[Sequence[str]], matches: Iterable[Match], marks: Mapping[Match, str]
) -> Iterator[str]:
    """Format the units of two texts in two columns.

    A match is on one line with its similarity and mark. Other units are alone, in their order.
    """
    ours, theirs = units
    for left, right, match in align_units(ours, theirs, matches):
        middle = f"{match.similarity:.2f}{marks.get(match, '')}" if match else ""
        yield from _format_row(left or "", middle, right or "")


def _format_row(one: str, middle: str, other: str) -> Iterator[str]:
    """Format two texts in two columns, with a separator on the first line."""
    lines = zip_longest(wrap(one, _COLUMN_WIDTH), wrap(other, _COLUMN_WIDTH), fillvalue="")
    for number, (left, right) in enumerate(lines):
        yield f"  {left:{_COLUMN_WIDTH}}  {middle if number == 0 else '':^5}  {right}"
