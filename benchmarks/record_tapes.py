"""Record the runs that notebooks, tests and `make run` without a model show: the live local model, nothing edited."""

from __future__ import annotations

import sys
from contextlib import closing
from datetime import date
from pathlib import Path

from kgot_lab.bundled import bundled
from kgot_lab.documents.folder import read_documents
from kgot_lab.draw.lines import line
from kgot_lab.experiments.questions.hotpotqa import demo_questions, hotpotqa
from kgot_lab.llm.local import Local
from kgot_lab.llm.model_file import QWEN_CODER
from kgot_lab.loop.limits import LOCAL, Limits
from kgot_lab.loop.trace import record
from kgot_lab.loop.walk import think
from kgot_lab.stores import Store, open_store
from kgot_lab.tools.search import search
from kgot_lab.types import Document

TAPES = Path(__file__).parent.parent / "data" / "tapes"
STORM = "Why did the US have a winter storm in late January 2026?"
STORM_LIMITS = LOCAL.but(answer_format="default", unpolled=1, tool_tokens=400, row_tokens=900)
IN_ITS_LANGUAGE = LOCAL.but(reading="statements", unpolled=1, steps=2)  # the model itself writes what reads the answer


def main() -> None:
    """Record each tape whose name is given, or all."""
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
    llm = Local()
    for name in sys.argv[1:] or wanted:
        with closing(open_store(name.removeprefix("same_question_") if name.startswith("same_question_") else "in_memory")) as store:
            tape(name, *wanted[name], llm=llm, store=store)


def tape(name: str, question: str, documents: list[Document], k: int, limits: Limits, *, llm: Local, store: Store) -> None:
    """Record one run."""
    about = {
        "model": "Qwen2.5-Coder-1.5B-Instruct Q4_K_M", "model_sha256": QWEN_CODER.sha256,
        "engine": llm.engine,
        "recorded": str(date.today()), "licence": "Apache-2.0 (model); the texts keep their own",
    }  # fmt: skip
    path = TAPES / f"{name}.jsonl"
    path.unlink(missing_ok=True)
    for event in record(think(question, llm, store, [search(documents, k=k)], limits), path, run=name, about=about):
        print(line(event), flush=True)


if __name__ == "__main__":
    main()
