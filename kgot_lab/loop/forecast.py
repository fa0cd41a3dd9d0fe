"""What a run will take, reckoned from its limits before anything is sent."""

from __future__ import annotations

from kgot_lab.llm.budget import Estimate, Rate, estimate
from kgot_lab.loop.limits import Limits

# Tokens a call of each role reads and writes: medians of recorded runs with small graphs, rounded up.
SIZES = {
    "vote": (650, 60), "merge": (200, 60), "tools": (500, 40), "write": (650, 300), "sentence": (230, 40),
    "read": (650, 60), "arithmetic": (500, 40), "parse": (450, 15), "choose": (500, 10),
}  # fmt: skip


def forecast(limits: Limits, *, steps: int | None = None, calls: int = 1, rate: Rate | None = None) -> Estimate:
    """Calls, tokens, seconds and dollars of a run that takes so many INSERT turns (by default all) with so many tool calls each.

    Without failures and repairs; ballots are counted in full, so an early decision costs less.
    """
    turns = limits.steps if steps is None else min(steps, limits.steps)
    votes = limits.votes if limits.vote_temperature > 0 else 1
    parses = limits.parses if limits.vote_temperature > 0 else 1
    candidates = 1 if limits.pool else votes
    polled = turns - limits.unpolled + (turns < limits.steps)  # the vote that ends it, unless the steps run out
    by_sentence = limits.writing == "operations"
    counts = {
        "vote": votes * max(polled, 0),
        "merge": turns * (limits.merge and votes > 1),
        "tools": turns - limits.open_with_question,
        "write": 0 if by_sentence else turns * calls,
        "sentence": turns * calls * limits.tool_tokens // 35 if by_sentence else 0,
        "read": limits.forced_reads if turns == limits.steps else 0,
        "arithmetic": candidates if limits.arithmetic == "always" else 0,
        "parse": parses * candidates,
        "choose": int(not limits.pool),
    }
    return estimate(counts, SIZES, rate or Rate())
