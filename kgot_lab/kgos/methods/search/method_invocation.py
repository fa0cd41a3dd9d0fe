"""Which methods a search invokes besides, by the purpose of the query, and what they add."""

from __future__ import annotations

from collections.abc import Collection

from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.compose_for import compose_for
from kgot_lab.kgos.methods.formatting import MethodResult
from kgot_lab.kgos.methods.goals import can_it, want_to
from kgot_lab.kgos.methods.impact_analysis import impact_analysis
from kgot_lab.kgos.methods.intents import Intents
from kgot_lab.kgos.methods.ranking import similar_to
from kgot_lab.kgos.methods.search.results import Invoked
from kgot_lab.kgos.methods.traversal import explore_smart
from kgot_lab.text.counted import counted

_Before = tuple[dict[str, MethodResult], dict[str, float], list[Invoked]]
_After = tuple[dict[str, MethodResult], list[Invoked]]


def before_ranking(
    graph: PropertyGraph, query: str, intents: Intents, boost_types: Collection[str] | None
) -> _Before:
    """What is invoked for a goal, a capability or a composition: the answers, the nodes that go into the
    intent lane, and the trace.
    """
    why = f"the purpose is {intents.purpose}"
    if intents.purpose == "goal":
        goal = want_to(graph, query, boost_types=boost_types)
        return {"want_to": goal}, goal.scores, [Invoked("want_to", why, counted(len(goal.nodes), "node"))]
    if intents.purpose == "capability":
        verdict = can_it(graph, query)
        found = {verdict.node: 1.0} if verdict.node else {}
        told = f"{verdict.status}, {verdict.node or verdict.why[0]}"
        return {"can_it": verdict}, found, [Invoked("can_it", why, told)]
    if intents.purpose == "composition":
        plan = compose_for(graph, query)
        told = " → ".join(plan.tools) or "no step"
        return {"compose_for": plan}, dict.fromkeys(plan.tools, 1.0), [Invoked("compose_for", why, told)]
    return {}, {}, []


def after_ranking(graph: PropertyGraph, best: str, intents: Intents) -> _After:
    """What is invoked about the best node, where the purpose is an impact, a comparison or an exploration
    (KG-OS, lesson 6).
    """
    why = f"the purpose is {intents.purpose}, of the best node"
    if not best:
        return {}, []
    if intents.purpose == "impact":
        impact = impact_analysis(graph, best, direction="forward", follow="dependants")
        return {"impact_analysis": impact}, [Invoked("impact_analysis", why, impact.title)]
    if intents.purpose == "comparison":
        alike = similar_to(graph, best)
        return {"similar_to": alike}, [Invoked("similar_to", why, alike.title)]
    if intents.purpose == "exploration":
        around = explore_smart(graph, best)
        return {"explore_smart": around}, [Invoked("explore_smart", why, around.title)]
    return {}, []
