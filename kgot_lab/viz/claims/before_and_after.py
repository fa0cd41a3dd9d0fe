"""The graph before and after a change of the claims, side by side: what fell or began to hold, and which answers rested on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kgot_lab.draw.graph.svg import Picture, svg
from kgot_lab.draw.markup import Markup, element
from kgot_lab.draw.table import Sheet, Table
from kgot_lab.errors import BadInput, require, require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.memory.claims.beliefs import Beliefs
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.claims.reports import Fallen
from kgot_lab.text.counted import counted
from kgot_lab.types import Diff, Edge, Node, Triple
from kgot_lab.viz.claims.written import fact_said, time_said
from kgot_lab.viz.side_by_side import in_columns

_LISTED = 12  # facts or answers in a cell
_WIDTH, _HEIGHT = 420, 400


@dataclass(frozen=True)
class BeforeAfter:
    """Two pictures with every node in the same place: what is about to fall is marked in the first, what begins to hold in the second."""

    fallen: Fallen
    said: str  # which change, when, by whom
    held: tuple[int, int]  # how many facts held before it and after
    pictured: tuple[Picture, Picture] = field(repr=False)

    def table(self) -> Table:
        """What fell, what began to hold and which answers rested on what fell, each in full."""
        lists = {"fell": self.fallen.facts, "began to hold": self.fallen.risen}
        sheets = [Sheet(("fact",), tuple((fact_said(each),) for each in facts), len(facts), name) for name, facts in lists.items() if facts]
        told = tuple((answer.id, answer.text, time_said(answer.at)) for answer in self.fallen.answers)
        sheets += [Sheet(("answer", "text", "given"), told, len(told), "rested on what fell")] if told else []
        return Table(tuple(sheets) or (Sheet(("in words",), ((str(self.fallen),),), 1, self.said),))

    def _repr_html_(self) -> str:
        before, after = self.fallen.facts, self.fallen.risen
        rows = [
            ("graph", [Markup(picture._repr_html_()) for picture in self.pictured]),
            ("facts held", [Markup(f"{count:,}") for count in self.held]),
            ("changed", [_listed("fell", map(fact_said, before)), _listed("began to hold", map(fact_said, after))]),
        ]
        if self.fallen.entities:
            rows.append(("entities", [_listed("named by no fact after it", self.fallen.entities), Markup()]))
        if self.fallen.answers:
            answers = (f"{answer.text} ({answer.id}, {time_said(answer.at)})" for answer in self.fallen.answers)
            rows.append(("answers", [_listed("rested on what fell", answers), Markup()]))
        return in_columns(self.said, ["before", "after"], rows)

    def __repr__(self) -> str:
        return f"{self.said}\n{self.fallen}\n\n{self.table()!r}"


def before_and_after(claims: Claims, change: Fallen, *, limit: int = 40) -> BeforeAfter:
    """The graph before and after a retraction, its undo or a decision, by the report that it returned.

    At most `limit` nodes are drawn: the ends of what changed, then what stands next to them. Raises BadInput for a report of nothing.
    """
    require(claims, Claims, "what is shown before and after a change is a memory of Claims")
    require(change, Fallen, "a change is shown by the report that retract_…, undo or a decision returned")
    require_count(limit, 1, "limit")
    if change.change is None:
        raise BadInput("this report is of a change that changed nothing: there is no before and after")
    logged = next((each for each in claims.log() if each.id == change.change), None)
    if logged is None:
        raise BadInput(f"these claims have no change {change.change}: give the memory that returned the report")
    then = [Beliefs(claims.storage, known, now=claims.now).facts() for known in (logged.id - 1, logged.id)]
    who = f" by {logged.by}" * bool(logged.by)
    undone = f" of change {logged.undoes}" if logged.undoes else ""
    said = f"Change {logged.id}: {logged.action}{undone}{who}, {logged.at:%Y-%m-%d %H:%M} UTC. {str(change).capitalize()}."
    return BeforeAfter(change, said, (len(then[0]), len(then[1])), _pictured(change, *then, limit))


def _pictured(change: Fallen, before: Sequence[Triple], after: Sequence[Triple], limit: int) -> tuple[Picture, Picture]:
    """What changed with what stands around it, drawn twice in the same places."""
    fell, rose = change.facts, change.risen
    ends = {end for fact in (*fell, *rose) for end in (fact.subject, fact.object)}
    kept = sorted({*before} & {*after}, key=lambda fact: (-len(ends & {fact.subject, fact.object}), fact.identity))
    near = [fact for fact in kept if ends & {fact.subject, fact.object}]
    common = PropertyGraph.from_triples(near)
    with_risen = PropertyGraph.from_triples([*near, *rose])
    gone = Diff(removed_nodes=_bare(fell, common), removed_edges=_edges(fell))
    come = Diff(added_nodes=_bare(rose, common), added_edges=_edges(rose))
    union = svg(PropertyGraph.from_triples([*fell, *rose, *near]), width=_WIDTH, height=_HEIGHT, limit=10 * limit)
    look = {"width": _WIDTH, "height": _HEIGHT, "limit": limit}
    first = svg(common, highlight=gone if fell else None, positions=union.positions, **look)
    return first, svg(with_risen, highlight=come if rose else None, positions=union.positions, **look)


def _bare(facts: Sequence[Triple], graph: PropertyGraph) -> tuple[Node, ...]:
    """The ends of some facts that are not in a graph."""
    ends = dict.fromkeys(end for fact in facts for end in (fact.subject, fact.object))
    return tuple(Node(end) for end in ends if end not in graph)


def _edges(facts: Sequence[Triple]) -> tuple[Edge, ...]:
    return tuple(Edge(*fact.identity) for fact in facts)


def _listed(what: str, items: object) -> Markup:
    """Some lines under what they are, the rest counted."""
    lines = list(items)  # type: ignore[call-overload]
    if not lines:
        return Markup()
    shown = [element("li", line) for line in lines[:_LISTED]]
    more = [element("li", f"and {len(lines) - _LISTED:,} more")] if len(lines) > _LISTED else []
    return element("div", element("div", f"{counted(len(lines), 'of these', 'of these')} {what}"), element("ul", *shown, *more))
