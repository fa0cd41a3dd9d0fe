"""Four tools that take half a second each in one turn: seconds of the turn, side by side and one after the other.

python -m benchmarks.speed.side_by_side

The model replies at once. Medians of several runs; the aim is that all four take less than a second together.
"""

from __future__ import annotations

import json
import statistics
import time

from kgot_lab.loop.controller import think
from kgot_lab.loop.limits import REFERENCE
from kgot_lab.stores import InMemory
from kgot_lab.tools.tool import Result, TextTool
from kgot_lab.types import Prompt, Reply

TOOLS, SECONDS, RUNS = 4, 0.5, 5
AIM = 1.0  # seconds of all


class Instant:
    """A model that replies at once: it calls all tools, writes nothing and guesses."""

    name = "simulation: an instant model"

    def __call__(self, prompt: Prompt) -> Reply:
        """Reply to what is asked, by the names of the schema."""
        asked = (prompt.schema or {}).get("properties", {})
        replies = {
            "choice": {"choice": "INSERT", "text": "more"},
            "calls": {"calls": [{"tool": f"slow{n}", "arguments": {"what": "it"}} for n in range(TOOLS)]},
            "statements": {"statements": []},
            "statement": {"statement": "result = facts()"},
            "answer": {"answer": "unknown"},
        }
        return Reply(json.dumps(next(value for name, value in replies.items() if name in asked)))


def _slow(what: str) -> Result:
    time.sleep(SECONDS)
    return Result(f"{what} took its time.")


def measure(parallel: int) -> float:
    """Return the seconds of a run of one turn."""
    tools = [TextTool(f"slow{n}", "waits", {"what": "anything"}, _slow) for n in range(TOOLS)]
    limits = REFERENCE.but(steps=1, votes=1, forced_reads=1, rereads=0, parses=1, arithmetic="never")
    with InMemory() as store:
        began = time.perf_counter()
        for _ in think("What took its time?", Instant(), store, tools, limits, parallel=parallel):
            pass
        return time.perf_counter() - began


def main() -> None:
    """Print the medians."""
    for parallel in (TOOLS, 1):
        seconds = statistics.median(measure(parallel) for _ in range(RUNS))
        verdict = f" (aim: below {AIM:g})" if parallel > 1 else ""
        print(
            f"{TOOLS} tools of {SECONDS} s, {parallel} at once: {seconds:.2f} s, median of {RUNS} runs{verdict}"
        )


if __name__ == "__main__":
    main()
