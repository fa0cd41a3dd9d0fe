"""The fourteen intents as data: what a query says that has one, which methods it asks for, and which nodes it
is about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kgot_lab.kgos.schemas.dimensions import Bounds

Purpose = Literal["goal", "capability", "composition", "impact", "comparison", "exploration", "search"]


@dataclass(frozen=True)
class IntentRule:
    """An intent: its triggers, the method it asks for, and the nodes that it is about by their types, edges
    and dimensions.

    Phrases and words are those of KG-OS, section 6. The rest is ours but for cost_optimization, the only
    intent of which section 7 says how nodes are scored (decisions C-O1, C-O4): a node of one of `types`, or
    with one of the words in its name, has 1, one with an edge of one of `edges` from or to such a node .7,
    and one within the bounds of a dimension .5, which is a bonus and no filter (C-O5).
    """

    phrases: tuple[str, ...]
    words: tuple[str, ...]
    purpose: Purpose
    types: tuple[str, ...] = ()
    edges: tuple[str, ...] = ()
    dimensions: Mapping[str, Bounds] | None = None


def _said(phrases: str, words: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(phrases.split(", ")), tuple(words.split(", "))


INTENTS: Mapping[str, IntentRule] = {  # in the order of the document's table, which breaks ties
    "cost_optimization": IntentRule(
        *_said("reduce costs, save money, api costs", "cost, expensive, cheap, budget, pricing"),
        purpose="goal",
        types=("cost_strategy",),
        edges=(
            "optimizes",
            "enables",
            "reduces",
        ),  # of the two lists in the document that of section 6 (C-O9)
        dimensions={"pricing_tier": (None, 0.3)},
    ),
    "coding_help": IntentRule(
        *_said("write code, fix bug, refactor", "code, function, class, bug, error, debug"),
        purpose="goal",
        types=("function", "class", "module"),
        edges=("has_limitation", "has_workaround", "caused_by"),
        dimensions={"code_generation_strength": (0.7, None)},
    ),
    "knowledge_graph": IntentRule(
        *_said("knowledge graph, entity extraction", "knowledge, graph, nodes, edges, entity"),
        purpose="search",
        edges=("relates_to", "part_of"),
        dimensions={"relationship_richness": (0.7, None)},
    ),
    "agent_workflow": IntentRule(
        *_said("build agent, autonomous workflow", "agent, workflow, pipeline, automate"),
        purpose="goal",
        types=("workflow",),
        edges=("feeds_into", "requires", "composes_with"),
        dimensions={"agent_compatibility": (0.7, None)},
    ),
    "prompt_engineering": IntentRule(
        *_said("system prompt, few-shot", "prompt, instruction, persona, template"),
        purpose="goal",
        edges=("configures", "enables"),
        dimensions={"system_prompt_control": (0.7, None)},
    ),
    "deployment": IntentRule(
        *_said("deploy to production, docker", "deploy, production, docker, server, monitor"),
        purpose="goal",
        edges=("requires", "enables"),
        dimensions={"maintenance_burden": (None, 0.3)},
    ),
    "embedding_search": IntentRule(
        *_said("semantic search, vector search", "embedding, search, semantic, vector, similarity"),
        purpose="search",
        edges=("feeds_into", "enables"),
        dimensions={"rag_suitability": (0.7, None)},
    ),
    "reasoning": IntentRule(
        *_said("extended thinking, chain of thought", "think, reason, analyze, evaluate, compare"),
        purpose="goal",
        edges=("enables", "optimizes"),
        dimensions={"analytical_reasoning": (0.7, None)},
    ),
    "security": IntentRule(
        *_said("security audit, vulnerability scan", "security, vulnerability, auth, encrypt"),
        purpose="goal",
        edges=("requires", "prevents", "has_limitation"),
        dimensions={"data_sensitivity_level": (0.7, None)},
    ),
    "performance": IntentRule(
        *_said("optimize performance, reduce latency", "performance, optimize, fast, latency, cache"),
        purpose="goal",
        edges=("optimizes", "enables", "reduces"),
        dimensions={"latency_sensitivity": (0.7, None), "cache_effectiveness": (0.7, None)},
    ),
    "composition": IntentRule(
        *_said("combine tools, multi-step workflow", "compose, combine, chain, pipeline, workflow"),
        purpose="composition",
        types=("workflow", "pattern"),
        edges=("feeds_into", "requires", "composes_with"),
        dimensions={"pipeline_composability": (0.7, None)},
    ),
    "impact": IntentRule(
        *_said("what depends on, change impact", "impact, depends, dependency, affect, break"),
        purpose="impact",
        edges=("requires", "feeds_into"),
        dimensions={"relationship_richness": (0.7, None)},
    ),
    "comparison": IntentRule(
        *_said("compare options, alternatives", "compare, alternative, versus, better, which"),
        purpose="comparison",
        edges=("alternative_to", "pattern_alternative_to", "conflicts_with"),
    ),
    "exploration": IntentRule(
        *_said("explore, what's related, show me", "explore, related, around, nearby, connected"),
        purpose="exploration",
        edges=("relates_to", "part_of"),
        dimensions={"relationship_richness": (0.7, None)},
    ),
}

# How a query says its purpose whatever it is about (decision C-O1, ours): the first that is found, in this
# order.
PURPOSES: Mapping[Purpose, tuple[str, ...]] = {
    "capability": (
        *(
            "can it",
            "can we",
            "can you",
            "can i",
            "could it",
            "could we",
            "does it",
            "do you support",
            "is it able",
            "is it possible",
        ),
        *("does it support", "will it", "would it", "is there support"),
    ),
    "goal": (
        "i want",
        "i'd like",
        "i need",
        "we want",
        "we need",
        "how do i",
        "how do we",
        "how can i",
        "how can we",
        "how to",
        "help me",
    ),
}
