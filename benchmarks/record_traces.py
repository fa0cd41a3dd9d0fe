"""Record the runs that notebooks, tests and `make run` without a model show: the live local model, nothing edited.

python benchmarks/record_traces.py                      all of them
python benchmarks/record_traces.py winter_storm         one
python benchmarks/record_traces.py --tapes runs/tapes   and the replies alone, a tape beside each; what a tape holds is not asked again
"""

from __future__ import annotations

import argparse
from contextlib import closing
from datetime import date
from pathlib import Path

from kgot_lab.bundled import bundled
from kgot_lab.documents.folder import read_documents
from kgot_lab.experiments.questions.hotpotqa import demo_questions, hotpotqa
from kgot_lab.llm.local import Local
from kgot_lab.llm.model_file import QWEN_CODER
from kgot_lab.llm.recorded import Recorder
from kgot_lab.loop.limits import LOCAL, Limits
from kgot_lab.loop.telling import line
from kgot_lab.loop.trace import record
from kgot_lab.loop.walk import think
from kgot_lab.stores import Store, open_store
from kgot_lab.tools.search import search
from kgot_lab.types import LLM, Document

TRACES = Path(__file__).parent.parent / "data" / "traces"
STORM = "Why did the US have a winter storm in late January 2026?"
STORM_LIMITS = LOCAL.but(answer_format="default", unpolled=1, tool_tokens=400, row_tokens=900)
IN_ITS_LANGUAGE = LOCAL.but(reading="statements", unpolled=1, steps=2)  # the model itself writes what reads the answer


def main() -> None:
    """Record each trace whose name is given, or all; where a folder for tapes is given, the replies alone as well."""
    data = hotpotqa()
    demo = demo_questions()
    storm = list(read_documents(bundled("winter-storm")).documents)
    wanted = {
        "hotpotqa_demo": (demo[0].text, data.documents, 8, LOCAL),
        "hotpotqa_two_hops": (demo[1].text, data.documents, 8, LOCAL),
        "winter_storm": (STORM, storm, 3, STORM_LIMITS),
    }
    for kind in ("in_memory", "cypher_embedded", "sparql_embedded", "fused"):
        wanted[f"same_question_{kind}"] = (demo[0].text, data.documents, 8, IN_ITS_LANGUAGE)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"which to record: {', '.join(wanted)}")
    parser.add_argument("--tapes", type=Path, help="a folder for the tapes")
    given = parser.parse_args()
    if unknown := set(given.names) - set(wanted):
        parser.error(f"there is no recorded run {', '.join(sorted(unknown))}; there are {', '.join(wanted)}")
    local = Local()
    for name in given.names or wanted:
        llm = Recorder(local, given.tapes / f"{name}.jsonl") if given.tapes else local
        with closing(open_store(name.removeprefix("same_question_") if name.startswith("same_question_") else "in_memory")) as store:
            record_run(name, *wanted[name], llm=llm, store=store)


def record_run(name: str, question: str, documents: list[Document], k: int, limits: Limits, *, llm: LLM, store: Store) -> None:
    """Record one run."""
    about = {
        "model": "Qwen2.5-Coder-1.5B-Instruct Q4_K_M", "model_sha256": QWEN_CODER.sha256,
        "engine": llm.engine,
        "recorded": str(date.today()), "licence": "Apache-2.0 (model); the texts keep their own",
    }  # fmt: skip
    path = TRACES / f"{name}.jsonl"
    path.unlink(missing_ok=True)
    for event in record(think(question, llm, store, [search(documents, k=k)], limits), path, run=name, about=about):
        print(line(event), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="which to record; all of them unless named")
    parser.parse_args()
    main()
