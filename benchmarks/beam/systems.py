"""The systems that are compared on a chat, each a ranking of its turns for a question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from benchmarks.beam.chats import LongChat
from benchmarks.beam.turn_memory import TurnMemory, TurnRules
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.retrieval.dense import dense
from kgot_lab.retrieval.fusion import ranking_scores, rrf, weighted
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.retrieval.stage import Stage
from kgot_lab.text.words import searched_words
from kgot_lab.types import HitColumns, Ranking

TURN_MEMORY = "memory"
CHAT_CONTROLS = ("bm25", "embeddings", "convex", "rrf")  # over all turns, and each over the user's alone
OF_USER = ", user turns"
_LEAST = 1e-6  # a first score of 0 would tie all others with it
_WITHOUT: Mapping[str, TurnRules] = {  # the memory without one of its rules
    "sessions": TurnRules(session=0.0),
    "orders": TurnRules(order=0.0),
    "preferences": TurnRules(preference=0.0),
    "reactions": TurnRules(reaction=0.0),
    "threads": TurnRules(threads=False),
    "replies": TurnRules(replies=False),
    "spread": TurnRules(spread=False),
}


def chat_systems(chat: LongChat, embedder: Embedder) -> dict[str, Stage]:
    """Every system on one chat by name. The first score of a ranking says how sure it is: see `sure_of_words`
    and `sure_of_meaning`.
    """
    stages: dict[str, Stage] = {}
    for of, turns in (("", chat.turns), (OF_USER, tuple(turn for turn in chat.turns if turn.by_user))):
        documents = [turn.document for turn in turns]
        words, means = bm25(documents), dense(documents, embedder)
        stages[f"bm25{of}"] = sure_of_words(words)
        stages[f"embeddings{of}"] = means
        stages[f"convex{of}"] = sure_of_meaning(weighted((0.7, means), (0.3, words)), means)
        stages[f"rrf{of}"] = sure_of_meaning(rrf(means, words), means)
    memory = TurnMemory(chat.turns, embedder)
    stages[TURN_MEMORY] = memory.stage(TURN_MEMORY)
    return stages | {name: memory.with_rules(rules).stage(name) for name, rules in memory_ablations().items()}


def memory_ablations() -> dict[str, TurnRules]:
    """The memory without one of its rules, and without any, by the names of the systems."""
    bare = TurnRules(0.0, 0.0, 0.0, 0.0, False, False, False)
    return {f"{TURN_MEMORY} without {rule}": rules for rule, rules in _WITHOUT.items()} | {
        f"{TURN_MEMORY} without rules": bare
    }


def sure_of_words(words: Stage) -> Stage:
    """BM25 whose scores are divided by the number of the question's searched words, so that long questions
    are not surer.
    """
    return _scaled(
        words,
        lambda ranking: float(ranking_scores(ranking)[0]) / max(1, len(searched_words(ranking.query.text))),
    )


def sure_of_meaning(stage: Stage, means: Stage) -> Stage:
    """A fusion whose scores are scaled so that the first is the highest cosine of a turn: its own first score
    says little.
    """
    return _scaled(stage, lambda ranking: max(_LEAST, means.search(ranking.query).hits[0].score))


def _scaled(stage: Stage, sure: Callable[[Ranking], float]) -> Stage:
    """A stage whose scores go from how sure it is downwards, in the order they have."""

    def step(ranking: Ranking) -> Ranking:
        found = stage(ranking)
        if not found.hits:
            return found
        scores, ids = ranking_scores(found), found.ids
        return replace(found, hits=HitColumns(ids, np.arange(len(ids)), scores * (sure(found) / scores[0])))

    return Stage(stage.name, step)
