"""The graph before and after a change of the claims, side by side: what fell or began to hold, and which
answers rested on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from kgot_lab.errors import BadInput, require, require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.memory.claims.beliefs import Beliefs
from kgot_lab.memory.claims.claim import Fallen
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.text.counted import counted
from kgot_lab.types import Diff, Edge, Node, Triple
from kgot_lab.viz.claims import format_claim
from kgot_lab.viz.graph.svg import Picture, svg
from kgot_lab.viz.side_by_side import in_columns
from kgot_lab.viz.static.markup import Markup, element
from kgot_lab.viz.static.table import Sheet, Table

_LISTED = 12  # facts or answers in a cell
_WIDTH, _HEIGHT = 420, 400


@dataclass(frozen=True)
class BeforeAfter:
    """Two pictures with every node in the same place: what is about to fall is marked in the first, what
    begins to hold in the second.
    """

    fallen: Fallen
    said: str  # which change, when, by whom
    held: tuple[int, int]  # how many facts held before it and after
    pictured: tuple[Picture, Picture] = field(repr=False)

    def table(self, *, limit: int = 200) -> Table:
        """What fell, what began to hold and which answers rested on what fell, at most `limit` of each."""
        lists = {"fell": self.fallen.facts, "began to hold": self.fallen.risen}
        sheets = [
            Sheet(("fact",), tuple((format_claim(each),) for each in facts[:limit]), len(facts), name)
            for name, facts in lists.items()
            if facts
        ]
        answers = self.fallen.answers
        told = tuple((answer.id, answer.text, f"{answer.at:%Y-%m-%d %H:%M}") for answer in answers[:limit])
        sheets += (
            [Sheet(("answer", "text", "given (UTC)"), told, len(answers), "rested on what fell")]
            if told
            else []
        )
        return Table(tuple(sheets) or (Sheet(("in words",), ((str(self.fallen),),), 1, self.said),))

    def _repr_html_(self) -> str:
        told = self.fallen
        answers = [f"{answer.text} ({answer.id}, {answer.at:%Y-%m-%d %H:%M} UTC)" for answer in told.answers]
        rose = _listed(f"{counted(len(told.risen), 'fact')} began to hold", _facts(told.risen))
        rows = [
            ("graph", [Markup(picture._repr_html_()) for picture in self.pictured]),
            ("facts that hold", [Markup(f"{count:,}") for count in self.held]),
            ("what changed", [_listed(f"{counted(len(told.facts), 'fact')} fell", _facts(told.facts)), rose]),
            ("entities", [_listed("named by no fact after it", told.entities), Markup()]),
            ("answers", [_listed("rested on what fell", answers), Markup()]),
        ]
        return in_columns(
            self.said, ["before", "after"], [(name, cells) for name, cells in rows if any(cells)]
        )

    def __repr__(self) -> str:
        return f"{self.said}\n{self.fallen}\n\n{self.table(limit=_LISTED)!r}"


def before_and_after(claims: Claims, change: Fallen, *, limit: int = 12) -> BeforeAfter:
    """The graph before and after a retraction, its undo or a decision, by the report that it returned.

    Of what changed at most `limit` facts are drawn, and as many of what stands beside them. Raises BadInput
    for a report of nothing.
    """
    require(claims, Claims, "what is shown before and after a change is a memory of Claims")
    require(change, Fallen, "a change is shown by the report that retract_…, undo or a decision returned")
    require_count(limit, 1, "limit")
    if change.change is None:
        raise BadInput("this report is of a change that changed nothing: there is no before and after")
    logged = next((each for each in claims.log() if each.id == change.change), None)
    if logged is None:
        raise BadInput(
            f"these claims have no change {change.change}: give the memory that returned the report"
        )
    before, after = (
        Beliefs(claims.storage, known, now=claims.now).facts() for known in (logged.id - 1, logged.id)
    )
    who = f" by {logged.by}" * bool(logged.by)
    undone = f" of change {logged.undoes}" if logged.undoes else ""
    pictured, drawn = _pictured(change, {*before} & {*after}, limit)
    said = f"Change {logged.id}: {logged.action}{undone}{who}, {logged.at:%Y-%m-%d %H:%M} UTC. {str(change).capitalize()}.{drawn}"
    return BeforeAfter(change, said, (len(before), len(after)), pictured)


def _pictured(change: Fallen, kept: Collection[Triple], limit: int) -> tuple[tuple[Picture, Picture], str]:
    """What changed with what stands beside it, drawn twice in the same places; and how much of it is not
    drawn.
    """
    fell, rose = _varied(change.facts)[:limit], _varied(change.risen)[:limit]
    ends = {end for fact in (*fell, *rose) for end in (fact.subject, fact.object)}
    near = _varied(
        sorted((fact for fact in kept if ends & {fact.subject, fact.object}), key=lambda fact: fact.identity)
    )
    beside = sorted(near, key=lambda fact: -len(ends & {fact.subject, fact.object}))[:limit]
    lasting = ends & {end for fact in kept for end in (fact.subject, fact.object)}
    common = PropertyGraph.of(map(Node, sorted(lasting)), _edges(beside), dangling="add")
    gone = Diff(removed_nodes=_bare(fell, lasting), removed_edges=_edges(fell))
    come = Diff(added_nodes=_bare(rose, lasting), added_edges=_edges(rose))
    places = svg(PropertyGraph.from_triples([*fell, *rose, *beside]), width=_WIDTH, height=_HEIGHT).positions

    def drawn(graph: PropertyGraph, mark: Diff) -> Picture:
        return svg(graph, highlight=mark if mark else None, positions=places, width=_WIDTH, height=_HEIGHT)

    pictures = (
        drawn(common, gone),
        drawn(PropertyGraph.of(common.nodes, [*common.edges, *_edges(rose)], dangling="add"), come),
    )
    all_changed, all_near = len(change.facts) + len(change.risen), len(near)
    if len(fell) + len(rose) == all_changed and len(beside) == all_near:
        return pictures, ""
    return (
        pictures,
        f" Drawn: {len(fell) + len(rose):,} of {all_changed:,} that changed, {len(beside):,} of {all_near:,} beside them.",
    )


def _varied(facts: Sequence[Triple]) -> list[Triple]:
    """Some facts in another order: one of each subject, then a second of each that has one, and so on."""
    turns: Counter[str] = Counter()
    turn: dict[Triple, int] = {}
    for fact in facts:
        turn[fact] = turns[fact.subject]
        turns[fact.subject] += 1
    return sorted(facts, key=turn.__getitem__)


def _bare(facts: Sequence[Triple], lasting: Collection[str]) -> tuple[Node, ...]:
    """The ends of some facts but those that are in the graph before and after."""
    ends = dict.fromkeys(end for fact in facts for end in (fact.subject, fact.object))
    return tuple(Node(end) for end in ends if end not in lasting)


def _edges(facts: Sequence[Triple]) -> tuple[Edge, ...]:
    return tuple(Edge(*fact.identity) for fact in facts)


def _facts(facts: Sequence[Triple]) -> list[str]:
    return list(map(format_claim, _varied(facts)))


def _listed(what: str, lines: Sequence[str]) -> Markup:
    """Some lines under what they are, the rest counted; nothing where there are none."""
    if not lines:
        return Markup()
    shown = [element("li", line) for line in lines[:_LISTED]]
    more = [element("li", f"and {len(lines) - _LISTED:,} more")] if len(lines) > _LISTED else []
    return element("div", element("div", what), element("ul", *shown, *more))
