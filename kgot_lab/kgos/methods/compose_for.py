"""Plans for goals of several parts: a node for each part, checked against the edges between them (KG-OS,
method 4).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

import networkx as nx

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.formatting import MethodResult, NodeHit
from kgot_lab.kgos.methods.goals import want_to
from kgot_lab.kgos.methods.index import GraphIndex, graph_index
from kgot_lab.kgos.methods.traversal import trace_path
from kgot_lab.text.cleaning import format_count
from kgot_lab.text.words import stem
from kgot_lab.types import Edge

# Split a goal into parts. The split is conservative, since "read and analyse" may be one step or two.

_AFTER_PATTERN = re.compile(r"\bafter (?!that\b|this\b|which\b|wards\b)", re.I)
_SEPARATOR_PATTERN = re.compile(
    r"\s*(?:[,;]|\band then\b|\bthen\b|\band\b|\bafter(?: that| this| which|wards)\b|\bbefore\b)\s*", re.I
)
_OPENING_PATTERN = re.compile(
    r"^(?:first(?:ly)?|finally|lastly|next|also|(?:i|we) want(?: to)?|how (?:do|can) (?:i|we)|how to|help me|please|to)\b\s*",
    re.I,
)
_VERB_POSITIONS = 3  # words at the beginning of a part among which its verb is looked for
# The verbs that make a part a step of its own (ours). "and JSON files" has none and joins the part before it.
_ACTION_VERBS = Path(__file__).with_name("action_verbs.txt").read_text(encoding="utf-8")
_ACTION_STEMS = frozenset(map(stem, _ACTION_VERBS.split()))


def split_goal(goal: str) -> tuple[str, ...]:
    """Split a goal into its parts, in the order in which they are to be done.

    "A and B", "A, then B" and "B after A" are A, B. The goal is split at commas and at the
    words and, then, after, before. A part without an action verb joins the part before it, or the next one if
    it is the first. If no part has one, each part is a sub-goal.
    """
    halves = _AFTER_PATTERN.split(goal.strip(" .?!"))
    fragments = [part for half in reversed(halves) for part in _SEPARATOR_PATTERN.split(half)]
    parts = [part for part in (_OPENING_PATTERN.sub("", f.strip(" .?!")).strip() for f in fragments) if part]
    if not any(map(_has_action_verb, parts)):
        return tuple(parts)
    steps: list[str] = []
    waiting = ""
    for part in parts:
        if _has_action_verb(part):
            steps.append(f"{waiting} and {part}" if waiting else part)
            waiting = ""
        elif steps:
            steps[-1] += f" and {part}"
        else:
            waiting = f"{waiting} and {part}" if waiting else part
    return tuple(steps)


def _has_action_verb(part: str) -> bool:
    return any(stem(word) in _ACTION_STEMS for word in re.findall(r"[a-z]+", part.lower())[:_VERB_POSITIONS])


_CANDIDATES_PER_PART = 3  # candidates for each part
_PASSIVE_TYPES = frozenset(("anti_pattern", "benefit", "limitation", "metric", "parameter"))  # no steps
_MAX_CHAIN_LENGTH = 3  # feeds_into edges that may join two steps
_MAX_CYCLES = 5  # reported; a dense graph with cyclic requires edges has thousands
_REQUIRES_TYPES, _FEEDS_TYPES, _CONFLICT_TYPES = ("requires",), ("feeds_into",), ("conflicts_with",)


class PlanStep(NamedTuple):
    """A step: its node, the part of the goal it is for, and alternatives. `added` steps were inserted between
    two others.
    """

    tool: str
    name: str
    action: str
    score: float
    alternatives: tuple[str, ...] = ()
    added: bool = False


@dataclass(frozen=True, repr=False)
class Composition(MethodResult):
    """A plan: its steps in order, the edges between them, prerequisites, and warnings."""

    goal: str
    parts: tuple[str, ...]
    steps: tuple[PlanStep, ...]
    edges: tuple[Edge, ...]
    prerequisites: tuple[str, ...]
    conflicts: tuple[tuple[str, str], ...]
    cycles: tuple[tuple[str, ...], ...]
    warnings: tuple[str, ...]
    why: tuple[str, ...]

    COLUMNS = ("tool", "name", "action", "score", "alternatives", "added")

    @property
    def tools(self) -> tuple[str, ...]:
        """The ids of the steps, in order."""
        return tuple(step.tool for step in self.steps)

    @property
    def sound(self) -> bool:
        """Whether the plan has no warnings: no conflict, no cycle, and an edge from each step to the next."""
        return not self.warnings

    @property
    def title(self) -> str:
        warned = f", {format_count(len(self.warnings), 'warning')}" if self.warnings else ""
        return f"plan for {self.goal!r}: {format_count(len(self.steps), 'step')}{warned}"

    def rows(self) -> Sequence[PlanStep]:
        return self.steps


@check_arguments
def compose_for(graph: PropertyGraph, goal: str, *, max_tools: int = 5) -> Composition:
    """Compose a plan for a goal: split it into parts, and choose the best unused node for each.

    Candidates are the nodes that `want_to` finds. A node that limits another does nothing and is no
    candidate, nor is one of a type that cannot be done: a parameter, metric, benefit, limitation or
    anti-pattern. Consecutive steps should be joined by `feeds_into`. If a
    chain of such edges joins them, the nodes between are added and marked, up to `max_tools`. `prerequisites`
    are what the steps require, over any number of edges, with what is needed first at the front. There are
    warnings for steps joined by `conflicts_with`, with other candidates for them, for cycles of `requires`
    and `feeds_into`, and for a step before what it requires. Raises BadInput.
    """
    if not goal.strip():
        raise BadInput("the goal is blank; say what is wanted, as in 'read CSV files and analyse trends'")
    require_count(max_tools, 1, "max_tools", "it is how many steps a plan has at most")
    index, parts = graph_index(graph), split_goal(goal)
    why = [f"parts of the goal: {' | '.join(parts)}" if parts else "the goal has no part that says anything"]
    chosen, lacking = _choose_nodes(graph, parts[:max_tools])
    if len(parts) > max_tools:
        why.append(f"more than max_tools={max_tools} parts, left out: {' | '.join(parts[max_tools:])}")
    steps = _insert_between(index, chosen, max_tools)
    rows = [graph.row(step.tool) for step in steps]
    tools = [step.tool for step in steps]
    pairs = ((one, _conflicting(graph, one, tools[number:])) for number, one in enumerate(tools, start=1))
    conflicts = tuple((one, other) for one, others in pairs for other in others)
    required = _collect_prerequisites(index, rows)
    required_cycles = islice(_find_cycles(index, required[::-1], _REQUIRES_TYPES[0]), _MAX_CYCLES)
    cycles = (*required_cycles, *_find_cycles(index, rows, _FEEDS_TYPES[0]))
    edges = tuple(_edges_between(index, rows))
    warnings = (
        *(f"nothing in the graph says {part!r}" for part in lacking),
        *(
            f"no feeds_into edge leads from {a.tool} to {b.tool}"
            for a, b in pairwise(steps)
            if not _has_feed_edge(edges, a, b)
        ),
        *(_format_conflict(graph, pair, steps) for pair in conflicts),
        *(f"cycle: {' → '.join(cycle)}" for cycle in cycles),
        *_order_warnings(steps, edges),
    )
    prerequisites = tuple(graph.ids[row] for row in required if row not in rows)
    why += [f"prerequisites that are no step: {', '.join(prerequisites)}"] if prerequisites else []
    told = (*why, *warnings)
    return Composition(goal, parts, steps, edges, prerequisites, conflicts, cycles, warnings, told)


def _choose_nodes(graph: PropertyGraph, parts: Sequence[str]) -> tuple[list[PlanStep], list[str]]:
    """Choose the best node for each part that no earlier part has, and list the parts without one."""
    steps: list[PlanStep] = []
    lacking = []
    passive = {row for rows in graph_index(graph).targets_by_row("has_limitation").values() for row in rows}
    passive |= {row for row, labels in enumerate(graph.node_labels) if not _PASSIVE_TYPES.isdisjoint(labels)}
    for part in parts:
        nearest = want_to(graph, part, _CANDIDATES_PER_PART + len(passive)).nodes
        candidates = [node for node in nearest if graph.row(node.id) not in passive][:_CANDIDATES_PER_PART]
        free: list[NodeHit] = [
            candidate for candidate in candidates if candidate.id not in {step.tool for step in steps}
        ]
        if free:
            others = tuple(each.id for each in free[1:])
            steps.append(PlanStep(free[0].id, free[0].name, part, free[0].score, others))
        else:
            lacking.append(part)
    return steps, lacking


def _insert_between(index: GraphIndex, steps: Sequence[PlanStep], max_tools: int) -> tuple[PlanStep, ...]:
    """Insert the nodes between two steps that only a chain of feeds_into joins."""
    if not set(_FEEDS_TYPES) & set(index.graph.type_names):
        return tuple(steps)
    capacity, filled, taken = max_tools - len(steps), list(steps[:1]), {step.tool for step in steps}
    for before, step in pairwise(steps):
        ends = (before.tool, step.tool)
        path = trace_path(index.graph, *ends, max_depth=_MAX_CHAIN_LENGTH, types=_FEEDS_TYPES, directed=True)
        between = [id for id in path.ids[1:-1] if id not in taken]
        if 0 < len(between) <= capacity and len(between) == path.length - 1:
            action = f"between {before.tool} and {step.tool}"
            names = [index.names[index.graph.row(id)] for id in between]
            filled += map(lambda id, name: PlanStep(id, name, action, 0.0, (), True), between, names)
            capacity, taken = capacity - len(between), taken | set(between)
        filled.append(step)
    return tuple(filled)


def _conflicting(graph: PropertyGraph, id: str, others: Sequence[str]) -> list[str]:
    """Return which of some other nodes conflict with a node."""
    edges = (edge for edge in graph.neighbours(id, "both") if edge.type in _CONFLICT_TYPES)
    ends = {end for edge in edges for end in (edge.source, edge.target)} - {id}
    return [other for other in others if other in ends]


def _edges_between(index: GraphIndex, rows: Sequence[int]) -> Iterator[Edge]:
    """Yield the feeds_into, requires and conflicts_with edges between steps, in the order of the steps."""
    types = (*_FEEDS_TYPES, *_REQUIRES_TYPES, *_CONFLICT_TYPES)
    for row in rows:
        for edge in index.graph.neighbours(index.graph.ids[row], "out"):
            if edge.type in types and index.graph.row(edge.target) in rows and edge.source != edge.target:
                yield edge


def _collect_prerequisites(index: GraphIndex, rows: Sequence[int]) -> list[int]:
    """Return all that some rows require, themselves included, with what is needed first at the front."""
    requires = _edges_of_type(index, _REQUIRES_TYPES[0])
    requires.add_nodes_from(rows)
    return list(dict.fromkeys(row for start in rows for row in nx.dfs_postorder_nodes(requires, start)))


def _find_cycles(index: GraphIndex, rows: Sequence[int], type: str) -> Iterator[tuple[str, ...]]:
    """Yield the shortest cycle of edges of a type through each of some rows, within these, each cycle once."""
    joined = _edges_of_type(index, type).subgraph(rows)
    cyclic = {row for part in nx.strongly_connected_components(joined) if len(part) > 1 for row in part}
    seen: set[frozenset[int]] = set()
    for start in (row for row in rows if row in cyclic):
        paths = nx.single_target_shortest_path(joined, start)
        cycle = [start, *min((paths[after] for after in joined[start] if after in paths), key=len)]
        if frozenset(cycle) not in seen:
            seen.add(frozenset(cycle))
            yield tuple(index.graph.ids[row] for row in cycle)


def _edges_of_type(index: GraphIndex, type: str) -> nx.DiGraph[int]:
    targets = index.targets_by_row(type).items()
    return nx.DiGraph([(row, end) for row, ends in targets for end in ends])


def _has_feed_edge(edges: Sequence[Edge], before: PlanStep, after: PlanStep) -> bool:
    return any(e.type in _FEEDS_TYPES and (e.source, e.target) == (before.tool, after.tool) for e in edges)


def _format_conflict(graph: PropertyGraph, pair: tuple[str, str], steps: Sequence[PlanStep]) -> str:
    """Format a conflict, with alternatives to either step that do not conflict with the rest of the plan."""
    tools = [step.tool for step in steps]
    instead = []
    for step in (step for step in steps if step.tool in pair):
        rest = [tool for tool in tools if tool != step.tool]
        for other in (alternative for alternative in step.alternatives if alternative not in tools):
            if not _conflicting(graph, other, rest):
                instead.append(f"{other} instead of {step.tool}")
    return f"{pair[0]} conflicts with {pair[1]}" + (
        f"; possible: {', '.join(instead)}" if instead else "; no other candidate is free of it"
    )


def _order_warnings(steps: Sequence[PlanStep], edges: Sequence[Edge]) -> Iterator[str]:
    position = {step.tool: number for number, step in enumerate(steps)}
    for edge in edges:
        if edge.type in _REQUIRES_TYPES and position[edge.target] > position[edge.source]:
            yield f"{edge.source} requires {edge.target}, which comes later"
