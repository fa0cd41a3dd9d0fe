"""The graph before and after a change of claims, side by side, for lesson 60: facts that fell or began to hold, and
the answers that rested on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from side_by_side import comparison_table

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.memory.claims.beliefs import Beliefs
from kgot_lab.memory.claims.certificate import format_fact
from kgot_lab.memory.claims.claim import triple_key
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.stores.tables.history import ChangeEffect
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Diff, Edge, Node, Triple
from kgot_lab.viz.graph.svg import Picture, svg
from kgot_lab.viz.static.markup import Markup, bullet_list, element, first_lines
from kgot_lab.viz.static.table import Table, sheet

_MAX_CELL_FACTS = 12  # facts or answers per cell
_WIDTH, _HEIGHT = 420, 400


@dataclass(frozen=True)
class BeforeAfter:
    """The graph before and after a change, with the same node positions.

    The first picture marks what is about to fall, the second what begins to hold.
    """

    fallen: ChangeEffect
    said: str  # the change, its time and its author
    held: tuple[int, int]  # number of facts that held before and after
    pictured: tuple[Picture, Picture] = field(repr=False)

    def table(self, *, limit: int = 200) -> Table:
        """Return tables of the facts that fell, those that began to hold and the affected answers.

        Each table has at most `limit` rows. The answers are those that rested on a fact that fell.
        """
        lists = {"fell": self.fallen.facts, "began to hold": self.fallen.risen}
        sheets = [
            sheet(("fact",), ((format_fact(fact),) for fact in facts[:limit]), name, len(facts))
            for name, facts in lists.items()
            if facts
        ]
        if answers := self.fallen.answers:
            rows = ((answer.id, answer.text, f"{answer.at:%Y-%m-%d %H:%M}") for answer in answers[:limit])
            sheets.append(sheet(("answer", "text", "given (UTC)"), rows, "rested on what fell", len(answers)))
        return Table(tuple(sheets) or (sheet(("in words",), [(str(self.fallen),)], self.said),))

    def _repr_html_(self) -> str:
        changes = self.fallen
        answers = [
            f"{answer.text} ({answer.id}, {answer.at:%Y-%m-%d %H:%M} UTC)" for answer in changes.answers
        ]
        rows = [
            ("graph", [Markup(picture._repr_html_()) for picture in self.pictured]),
            ("facts that hold", [Markup(f"{count:,}") for count in self.held]),
            (
                "what changed",
                [_fact_section(changes.facts, "fell"), _fact_section(changes.risen, "began to hold")],
            ),
            ("entities", [_list_section("named by no fact after it", changes.entities), Markup()]),
            ("answers", [_list_section("rested on what fell", answers), Markup()]),
        ]
        return comparison_table(self.said, ["before", "after"], [row for row in rows if any(row[1])])

    def __repr__(self) -> str:
        return f"{self.said}\n{self.fallen}\n\n{self.table(limit=_MAX_CELL_FACTS)!r}"


@check_arguments
def before_and_after(claims: Claims, change: ChangeEffect, *, limit: int = 12) -> BeforeAfter:
    """Show the graph before and after a retraction, its undo or a decision.

    `change` is the report that the operation returned. At most `limit` of the changed facts are drawn, and as
    many of the neighbouring ones. Raises BadInput if the report is of a change that changed nothing, or if
    `claims` has no such change.
    """
    require_count(limit, 1, "limit")
    if change.change is None:
        raise BadInput("this report is of a change that changed nothing: there is no before and after")
    logged = next((entry for entry in claims.log() if entry.change == change.change), None)
    if logged is None:
        raise BadInput(f"these claims have no change {change.change}: give the memory that made the report")
    before, after = (
        Beliefs(claims.storage, id, now=claims.now).facts() for id in (logged.change - 1, logged.change)
    )
    author = f" by {logged.by}" if logged.by else ""
    undone = f" of change {logged.undoes}" if logged.undoes else ""
    left, right, drawn_note = _draw_changes(change, {*before} & {*after}, limit)
    what = f"{logged.action}{undone}{author}, {logged.at:%Y-%m-%d %H:%M} UTC"
    description = f"Change {logged.change}: {what}. {str(change).capitalize()}.{drawn_note}"
    return BeforeAfter(change, description, (len(before), len(after)), (left, right))


def _draw_changes(change: ChangeEffect, unchanged: set[Triple], limit: int) -> tuple[Picture, Picture, str]:
    """Draw the changed facts and their neighbours twice, with the same positions.

    Also returns a sentence that says how many are not drawn, or an empty one.
    """
    fell, risen = _interleave_by_subject(change.facts)[:limit], _interleave_by_subject(change.risen)[:limit]
    ends = {end for fact in (*fell, *risen) for end in (fact.subject, fact.object)}
    linked = sorted((fact for fact in unchanged if ends & {fact.subject, fact.object}), key=triple_key)
    neighbouring = _interleave_by_subject(linked)
    drawn_neighbours = sorted(neighbouring, key=lambda fact: -len(ends & {fact.subject, fact.object}))[:limit]
    lasting_ends = ends & {end for fact in unchanged for end in (fact.subject, fact.object)}
    common = PropertyGraph.of(map(Node, sorted(lasting_ends)), _fact_edges(drawn_neighbours), dangling="add")
    removal = Diff(removed_nodes=_new_nodes(fell, lasting_ends), removed_edges=_fact_edges(fell))
    addition = Diff(added_nodes=_new_nodes(risen, lasting_ends), added_edges=_fact_edges(risen))
    changed_graph = PropertyGraph.from_triples([*fell, *risen, *drawn_neighbours])
    positions = svg(changed_graph, width=_WIDTH, height=_HEIGHT).positions

    def drawn(graph: PropertyGraph, mark: Diff) -> Picture:
        return svg(graph, highlight=mark if mark else None, positions=positions, width=_WIDTH, height=_HEIGHT)

    later = PropertyGraph.of(common.nodes, [*common.edges, *_fact_edges(risen)], dangling="add")
    left, right = drawn(common, removal), drawn(later, addition)
    shown, changed = len(fell) + len(risen), len(change.facts) + len(change.risen)
    if shown == changed and len(drawn_neighbours) == len(neighbouring):
        return left, right, ""
    note = f" Drawn: {shown:,} of {changed:,} that changed, {len(drawn_neighbours):,} of {len(neighbouring):,} beside them."
    return left, right, note


def _interleave_by_subject(facts: Sequence[Triple]) -> list[Triple]:
    """Reorder facts round-robin by subject: the first fact of each, then the second, and so on."""
    counts: Counter[str] = Counter()
    round_of: dict[Triple, int] = {}
    for fact in facts:
        round_of[fact] = counts[fact.subject]
        counts[fact.subject] += 1
    return sorted(facts, key=round_of.__getitem__)


def _new_nodes(facts: Sequence[Triple], existing: Collection[str]) -> tuple[Node, ...]:
    """Return the ends of some facts as nodes, except those in the graph both before and after."""
    ends = dict.fromkeys(end for fact in facts for end in (fact.subject, fact.object))
    return tuple(Node(end) for end in ends if end not in existing)


def _fact_edges(facts: Sequence[Triple]) -> tuple[Edge, ...]:
    return tuple(Edge(*fact.identity) for fact in facts)


def _fact_section(facts: Sequence[Triple], verb: str) -> Markup:
    """Format changed facts, interleaved by subject, under their number and what became of them."""
    lines = list(map(format_fact, _interleave_by_subject(facts)))
    return _list_section(f"{format_count(len(facts), 'fact')} {verb}", lines)


def _list_section(heading: str, lines: Sequence[str]) -> Markup:
    """Format lines under a heading, with a count of the rest, or nothing if there are none."""
    if not lines:
        return Markup()
    return element("div", element("div", heading), bullet_list(first_lines(lines, _MAX_CELL_FACTS)))
