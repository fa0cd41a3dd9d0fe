"""What a run will take, reckoned from its limits before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence

from kgot_lab.llm.budget import CostEstimate, Rate, estimate
from kgot_lab.loop.limits import Limits
from kgot_lab.text.words import sentences

# Tokens a call of each role reads and writes: medians of recorded runs with small graphs, rounded up.
_SIZES = {
    "vote": (650, 60), "merge": (200, 60), "tools": (500, 40), "write": (650, 300), "sentence": (230, 40),
    "read": (650, 60), "arithmetic": (500, 40), "parse": (450, 15), "choose": (500, 10),
    "path": (350, 8), "hops": (320, 30), "wide": (650, 8), "facts": (320, 80),
}  # fmt: skip


def forecast(
    limits: Limits, *, steps: int | None = None, calls: int = 1, rate: Rate | None = None
) -> CostEstimate:
    """Calls, tokens, seconds and dollars of a run that takes so many INSERT turns (by default all) with so
    many tool calls each.

    Without failures and repairs. Ballots and parses are counted in full, so an early decision costs less; a
    sentence has 35 tokens.
    """
    counts = calls_by_role(limits, steps=steps, calls=calls)
    return estimate(counts, _SIZES, rate or Rate())


def forecast_of_texts(limits: Limits, texts: Sequence[str], *, rate: Rate | None = None) -> CostEstimate:
    """What taking the facts of some texts takes: one call a sentence, or one a text where the model writes
    statements.
    """
    by_sentence = limits.writing == "operations"
    counts = (
        {"sentence": sum(len(sentences(text)) for text in texts)} if by_sentence else {"write": len(texts)}
    )
    return estimate(counts, _SIZES, rate or Rate())


def calls_by_role(limits: Limits, *, steps: int | None = None, calls: int = 1) -> dict[str, int]:
    """How often a model is asked for what; arithmetic is one check for each candidate, or none where it
    depends on the question.
    """
    if limits.reading == "paths":  # what an open question takes whose first path is not sure
        later = max((limits.steps if steps is None else min(steps, limits.steps)) - 1, 0)
        return {
            "path": limits.paths * (1 + later) + 2 * limits.hops,
            "hops": int(limits.hops),
            "wide": int(limits.wide_tokens > 0),
            "facts": int(limits.typed_facts),
        }
    turns = max(
        limits.steps if steps is None else min(steps, limits.steps), min(limits.unpolled, limits.steps)
    )
    forced, sampled, by_sentence = (
        turns == limits.steps,
        limits.vote_temperature > 0,
        limits.writing == "operations",
    )
    votes, parses = (limits.votes, limits.parses) if sampled else (1, 1)
    polled = max(turns - limits.unpolled, 0)
    reads = 0 if limits.reading == "whole graph" or not forced else limits.forced_reads if sampled else 1
    won = votes // 2 + 1  # a majority of ballots, each with its own statement; the vote stops there
    candidates = 1 if limits.pool else (reads or 1) if forced else won
    return {
        "vote": votes * (polled + (not forced)),
        "merge": polled * (limits.merge and votes > 1),
        "tools": max(turns - limits.open_with_question, 0),
        "write": 0 if by_sentence else turns * calls,
        "sentence": turns * calls * limits.tool_tokens // 35 if by_sentence else 0,
        "read": reads,
        "arithmetic": candidates if limits.arithmetic == "always" else 0,
        "parse": parses * candidates,
        "choose": int(not limits.pool and parses * candidates > 1),
    }
