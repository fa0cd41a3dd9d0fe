"""The intent lane: which nodes are about what a query is after, whatever its words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from kgot_lab.errors import UnknownName
from kgot_lab.kgos.methods.index import GraphIndex, Reals
from kgot_lab.kgos.methods.intents import INTENTS, IntentRule
from kgot_lab.kgos.schemas.dimensions import inside
from kgot_lab.text.stems import stem

_ABOUT, _JOINED, _DIMENSION = 1.0, 0.7, 0.5  # KG-OS, section 7, for cost_optimization


def intent_scores(index: GraphIndex, intent: str) -> Reals:
    """How far each node is about an intent, from 0 to 1: 1 for its type or a word of the intent in its name,
    .7 for an edge of one of the types of the intent from or to such a node, .5 for each dimension within its
    bounds; added up and divided by the largest.
    """
    if intent not in INTENTS:
        raise UnknownName("intent", intent, INTENTS)
    if intent not in index.of_intent:
        index.of_intent[intent] = _scores(index, INTENTS[intent])
    return index.of_intent[intent]


def dimension_boosts(index: GraphIndex, names: Iterable[str]) -> tuple[Reals, list[str]]:
    """The mean of some dimensions for each node, 0 for one it lacks (decision C-E6), and the names that no
    node has.
    """
    values, absent = [], []
    for name in names:
        try:
            values.append(np.nan_to_num(index.dimension(name).values))
        except UnknownName:
            absent.append(name)
    return np.mean(values, axis=0) if values else np.zeros(len(index.graph)), absent


def from_methods(index: GraphIndex, scores: Mapping[str, float]) -> Reals:
    """What the methods that were invoked found, over the largest."""
    found = np.zeros(len(index.graph))
    for id, score in scores.items():
        found[index.graph.row(id)] = score
    return found / (found.max(initial=0.0) or 1.0)


def _scores(index: GraphIndex, rule: IntentRule) -> Reals:
    about = np.zeros(len(index.graph), bool)
    for label in rule.types:
        about[index.of_label.get(label, [])] = True
    words = {stem(word) for word in rule.words}
    about |= np.fromiter((not words.isdisjoint(stems) for stems in index.name_stems), bool, len(index.graph))
    places, _ = index.places(np.flatnonzero(about).astype(np.int32), index.ways_of(rule.edges))
    joined = np.zeros(len(index.graph), bool)
    joined[index.links.ends.indices[places]] = True
    scores = _ABOUT * about + _JOINED * joined
    for name, bounds in (rule.dimensions or {}).items():
        try:
            scores += _DIMENSION * inside(index.dimension(name).values, bounds)
        except UnknownName:
            continue  # this graph does not know the dimension: no node has the bonus
    return np.asarray(scores / (scores.max(initial=0.0) or 1.0))
