"""Record the runs that notebooks, tests and `make run` without a model show: the live local model, nothing edited.

python benchmarks/record_traces.py                      all of them
python benchmarks/record_traces.py winter_storm         one
python benchmarks/record_traces.py --tapes runs/tapes   and the replies alone, a tape beside each; what a tape holds is not asked again
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from kgot_lab.bundled import bundled
from kgot_lab.documents.folder import read_documents
from kgot_lab.experiments.questions.hotpotqa import demo_questions, hotpotqa
from kgot_lab.experiments.questions.question import Question
from kgot_lab.llm.local import Local
from kgot_lab.llm.model_file import QWEN_CODER
from kgot_lab.llm.recorded import Recorder
from kgot_lab.loop.limits import LOCAL, Limits
from kgot_lab.loop.telling import line
from kgot_lab.loop.trace import record
from kgot_lab.loop.walk import think
from kgot_lab.stores import Store, open_store
from kgot_lab.tools.search import search
from kgot_lab.types import LLM, Document, Json

TRACES = Path(__file__).parent.parent / "data" / "traces"
RAG = Path(__file__).parent / "results" / "hotpotqa_develop_rag.jsonl"
STORM = "Why did the US have a winter storm in late January 2026?"
STORM_LIMITS = LOCAL.but(answer_format="default", unpolled=1, tool_tokens=400, row_tokens=900)
IN_ITS_LANGUAGE = LOCAL.but(reading="statements", unpolled=1, steps=2)  # the model itself writes what reads the answer
VOTING = LOCAL.but(reading="whole graph", unpolled=1)  # a ballot says INSERT or RETRIEVE first, and then why, or the answer
LESSON_RUNS: dict[str, tuple[str, Limits, str]] = {  # by the id of a question
    "vote_inserts": ("5ae1e3955542997f29b3c169", VOTING, "in_memory"),
    "vote_split": ("5ae1e3955542997f29b3c169", VOTING.but(votes=5), "in_memory"),
    "graph_beats_rag": ("5abace1f554299232ef4a396", VOTING, "in_memory"),
}
STORM_RUNS: dict[str, tuple[str, int, Limits, str]] = {}


@dataclass(frozen=True)
class Wanted:
    """How a run is recorded: what is asked, over which texts, of which `k` are found at a time, within which limits and in which store.

    `about` is what the head of the trace says of the question besides.
    """

    question: str
    documents: list[Document]
    k: int
    limits: Limits
    store: str = "in_memory"
    about: Mapping[str, Json] = field(default_factory=dict)


def wanted_runs() -> dict[str, Wanted]:
    """The recorded runs by name; all questions of HotpotQA are of those to tune on."""
    data, (born, album, _) = hotpotqa(), demo_questions()
    storm = list(read_documents(bundled("winter-storm")).documents)
    by_id = {question.id: question for question in data.questions}
    wanted = {
        "hotpotqa_demo": Wanted(born.text, data.documents, 8, LOCAL),
        "hotpotqa_two_hops": Wanted(album.text, data.documents, 8, LOCAL),
        "winter_storm": Wanted(STORM, storm, 3, STORM_LIMITS),
    }
    for kind in ("in_memory", "cypher_embedded", "sparql_embedded", "fused"):
        wanted[f"same_question_{kind}"] = Wanted(born.text, data.documents, 8, IN_ITS_LANGUAGE, kind)
    for name, (id, limits, store) in LESSON_RUNS.items():
        question = by_id[id]
        wanted[name] = Wanted(question.text, data.documents, 8, limits, store, known_beforehand(question))
    for name, (text, k, limits, store) in STORM_RUNS.items():
        wanted[name] = Wanted(text, storm, k, limits, store)
    return wanted


def known_beforehand(question: Question) -> dict[str, Json]:
    """The question's id and right answer, and what RAG made of it, as it was measured."""
    lines = RAG.read_text(encoding="utf-8").splitlines()[1:]
    row = next(row for row in map(json.loads, lines) if row["id"] == question.id)
    rag = {"answer": row["answer"], "passages": 5, "measured": f"benchmarks/results/{RAG.name}"}
    return {"question": question.id, "gold": question.answer, "rag": rag, "data": "HotpotQA, CC BY-SA 4.0, a question to tune on"}


def main() -> None:
    """Record each trace whose name is given, or all; where a folder for tapes is given, the replies alone as well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="which to record, all unless named")
    parser.add_argument("--tapes", type=Path, help="a folder for the tapes")
    given = parser.parse_args()
    wanted = wanted_runs()
    if unknown := set(given.names) - set(wanted):
        parser.error(f"there is no recorded run {', '.join(sorted(unknown))}; there are {', '.join(wanted)}")
    local = Local()
    for name in given.names or wanted:
        llm = Recorder(local, given.tapes / f"{name}.jsonl") if given.tapes else local
        with closing(open_store(wanted[name].store)) as store:
            record_run(name, wanted[name], llm, store)


def record_run(name: str, wanted: Wanted, llm: LLM, store: Store) -> None:
    """Record one run."""
    about = {
        "model": "Qwen2.5-Coder-1.5B-Instruct Q4_K_M", "model_sha256": QWEN_CODER.sha256,
        "engine": llm.engine,
        "recorded": str(date.today()), "licence": "Apache-2.0 (model); the texts keep their own",
        **wanted.about,
    }  # fmt: skip
    path = TRACES / f"{name}.jsonl"
    path.unlink(missing_ok=True)
    tools = [search(wanted.documents, k=wanted.k)]
    for event in record(think(wanted.question, llm, store, tools, wanted.limits), path, run=name, about=about):
        print(line(event), flush=True)


if __name__ == "__main__":
    main()
