"""Record the forks that notebooks and tests show: a recorded run with one thing changed by hand, and the live
local model for the rest.
"""

from __future__ import annotations

import argparse
import sys
from collections import deque
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from kgot_lab.benchmark.questions.sets import hotpotqa
from kgot_lab.documents.folder import read_documents
from kgot_lab.errors import TraceError
from kgot_lab.io.files import bundled_path
from kgot_lab.llm.local import Local
from kgot_lab.llm.model_file import QWEN_CODER
from kgot_lab.loop.replay.forks import fork_to_file, recorded_fork
from kgot_lab.loop.replay.replay import Resources
from kgot_lab.loop.trace import Trace, load_run
from kgot_lab.tools.search import search
from kgot_lab.tools.tool import Tool

TRACES = Path(__file__).parents[2] / "data" / "traces"


@dataclass(frozen=True)
class Plan:
    """Which event of which trace is changed, and to what; texts in place of a tool's are written for the
    lesson.
    """

    trace: str
    at: int
    change: str


PLANS = {
    "winter_storm_fork_volcano": Plan(
        "winter_storm", 3,
        "In January 2026 the ash of a volcano blocked the sun over the United States. "
        "The blocked sun caused the winter storm of late January 2026.",
    ),
    "hotpotqa_two_hops_fork_oregon": Plan(
        "hotpotqa_two_hops", 19,
        "M. Ward | born in | October 4, 1973\nM. Ward | is a | singer-songwriter\nM. Ward | is a | guitarist\n"
        "M. Ward | is from the state of | Oregon",
    ),
}  # fmt: skip


def main() -> None:
    """Record each fork whose name is given, or all; one that still fits its trace stays as it is."""
    llm = Local()
    for name in sys.argv[1:] or PLANS:
        path = TRACES / f"{name}.jsonl"
        if fits(PLANS[name], path):
            print(f"{path.name} fits its trace: delete it to record it again")
            continue
        print(name, flush=True)
        record_fork(PLANS[name], path, llm)


def fits(plan: Plan, path: Path) -> bool:
    """Whether a fork is on file that changes this, in the trace as it is now."""
    try:
        recorded = load_run(path)
        recorded_fork(load_run(TRACES / f"{plan.trace}.jsonl"), recorded)
    except TraceError:
        return False
    return (recorded.about["at"], recorded.about["change"]) == (plan.at, plan.change)


def record_fork(plan: Plan, path: Path, llm: Local) -> None:
    """Record one fork."""
    original = load_run(TRACES / f"{plan.trace}.jsonl")
    about = {
        "model": "Qwen2.5-Coder-1.5B-Instruct Q4_K_M", "model_sha256": QWEN_CODER.sha256,
        "engine": llm.engine,
        "recorded": str(date.today()), "licence": "Apache-2.0 (model); the texts keep their own",
        "written": "the change was written by hand for a lesson: it is no source on anything",
    }  # fmt: skip
    path.unlink(missing_ok=True)
    live = Resources([tool_of(original)], llm)
    deque(fork_to_file(original, plan.at, plan.change, path, live=live, about=about), maxlen=0)
    print(recorded_fork(original, load_run(path)), flush=True)


def tool_of(original: Trace) -> Tool:
    """The search that a trace was recorded with."""
    if original.run == "winter_storm":
        return search(list(read_documents(bundled_path("winter-storm")).documents), k=3)
    return search(hotpotqa().documents, k=8)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="which to record; all of them unless named")
    parser.parse_args()
    main()
