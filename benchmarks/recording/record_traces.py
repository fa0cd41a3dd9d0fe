"""Record the runs that notebooks, tests and `make run` without a model show: the live local model, nothing
edited.

What no run of that model showed in the time there was is shown by a script, whose head and model say so: runs
named simulated_*.

python -m benchmarks.recording.record_traces                      all of them python -m
benchmarks.recording.record_traces winter_storm         one python -m benchmarks.recording.record_traces
--recordings runs/recordings   and the replies alone, a recording beside each; what a recording holds is not asked again
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from kgot_lab.benchmark.questions.question import Question
from kgot_lab.benchmark.questions.sets import demo_questions, hotpotqa
from kgot_lab.documents.folder import read_documents
from kgot_lab.io.files import bundled_path
from kgot_lab.llm.local import Local
from kgot_lab.llm.model_file import QWEN_CODER
from kgot_lab.llm.recorded import Recorder, Scripted
from kgot_lab.loop.controller import think
from kgot_lab.loop.formatting import summary_line
from kgot_lab.loop.limits import LOCAL, Limits
from kgot_lab.loop.trace import record
from kgot_lab.stores import Store, open_store
from kgot_lab.tools.search import search
from kgot_lab.types import LLM, Document, Json

TRACES = Path(__file__).parents[2] / "data" / "traces"
RAG = Path(__file__).parents[1] / "results" / "hotpotqa_develop_rag.jsonl"
STORM = "Why did the US have a winter storm in late January 2026?"
STORM_LIMITS = LOCAL.but(answer_format="default", unpolled=1, tool_tokens=400, row_tokens=900)
# the model itself writes what reads the answer
IN_ITS_LANGUAGE = LOCAL.but(reading="statements", unpolled=1, steps=2)
# a vote says INSERT or RETRIEVE first, and then why, or the answer
VOTING = LOCAL.but(reading="whole graph", unpolled=1)
LESSON_RUNS: dict[str, tuple[str, Limits, str]] = {  # by the id of a question
    "vote_inserts": ("5ae1e3955542997f29b3c169", VOTING, "in_memory"),
    "vote_split": ("5ae1e3955542997f29b3c169", VOTING.but(votes=5), "in_memory"),
    "rag_beats_graph": (
        "5ae5dab455429929b08079d2",
        LOCAL.but(unpolled=1, votes=1, parses=1, tool_tokens=80),
        "in_memory",
    ),
    "graph_beats_rag": ("5abace1f554299232ef4a396", VOTING, "in_memory"),
}
DAYS = "How many days did the winter storm of late January 2026 last?"
CITY = "Which city was the first to lose power in the winter storm of late January 2026?"
MENDING = LOCAL.but(  # a read is asked for at once, and a repair is sampled so freely that the model does not repeat itself
    reading="statements", unpolled=1, votes=1, parses=1, steps=1, repairs=1, graph_tokens=200,
    reply_tokens={"vote": 120, "read": 120, "mend": 120}, temperatures={"read": 0.8, "mend": 2.0},
)  # fmt: skip
STORM_RUNS = {
    "storm_days": (DAYS, 3, LOCAL.but(unpolled=1, tool_tokens=300), "in_memory"),
    "storm_guess": (CITY, 2, MENDING, "cypher_embedded"),
}
SPELLING = LOCAL.but(writing="statements", reading="statements", unpolled=1, tool_tokens=400)
MENDS: tuple[Json, ...] = (  # replies written for the lesson, in the order in which the loop asks
    {
        "statements": [
            "add('winter storm', 'began on', 'January 23, 2026'",
            "add('winter storm', 'ended on', 'January 26, 2026')",
        ]
    },
    {"statement": "add('winter storm', 'began on', 'January 23, 2026')"},
    {"choice": "RETRIEVE", "text": "result = facts('winter storm', 'began on'"},
    {"choice": "RETRIEVE", "text": "result = facts('the storm', 'ended on'"},
    {"statement": "result = facts('winter storm', 'began on')"},
    {"statement": "result = facts('the storm', 'ended on')"},
    {"statement": "result = facts('winter storm', 'ended on')"},
    {"needed": True},
    {"code": "print(26 - 23 + 1)"},
    {"answer": "4"},
    {"answer": "4"},
)
BRIDGE = "Who founded the company that built the Morrow Bridge?"
BRIDGE_TEXTS = {  # invented, by title; none names both the bridge and the founder
    "The Morrow Bridge": (
        "The Morrow Bridge crosses the river Tessin at Calder. It was built in 1931 by the Halden Steel Company. "
        'It carries two tram lines & one road; "old Halden" <b>workers</b> call it the Iron Lady.'
    ),
    "Halden Steel Company": "The Halden Steel Company was founded by Edda Rönnqvist in 1902. It had its yard in Port Sill.",
    "The Sill Canal": "The Sill Canal was dug in 1850. Its locks were designed by Otto Falk.",
    "Edda Rönnqvist": "Edda Rönnqvist was an engineer born in Luleå. She studied in Zürich.",
}


@dataclass(frozen=True)
class Wanted:
    """How a run is recorded: what is asked, over which texts, of which `k` are found at a time, within which
    limits and in which store.

    `about` is what the head of the trace says of the question besides.
    """

    question: str
    documents: list[Document]
    k: int
    limits: Limits
    store: str = "in_memory"
    about: Mapping[str, Json] = field(default_factory=dict)
    llm: LLM | None = None  # a simulation; None: the live local model


def wanted_runs() -> dict[str, Wanted]:
    """The recorded runs by name; all questions of HotpotQA are of those to tune on."""
    data, (born, album, _) = hotpotqa(), demo_questions()
    storm = list(read_documents(bundled_path("winter-storm")).documents)
    by_id = {question.id: question for question in data.questions}
    wanted = {
        "hotpotqa_demo": Wanted(born.text, data.documents, 8, LOCAL, about=known_beforehand(born)),
        "hotpotqa_two_hops": Wanted(album.text, data.documents, 8, LOCAL, about=known_beforehand(album)),
        "winter_storm": Wanted(STORM, storm, 3, STORM_LIMITS),
    }
    for kind in ("in_memory", "cypher_embedded", "sparql_embedded", "fused"):
        wanted[f"same_question_{kind}"] = Wanted(born.text, data.documents, 8, IN_ITS_LANGUAGE, kind)
    for name, (id, limits, store) in LESSON_RUNS.items():
        question = by_id[id]
        wanted[name] = Wanted(question.text, data.documents, 8, limits, store, known_beforehand(question))
    for name, (text, k, limits, store) in STORM_RUNS.items():
        wanted[name] = Wanted(text, storm, k, limits, store)
    about: dict[str, Json] = {"gold": "Edda Rönnqvist", "data": "invented for the lesson, MIT"}
    bridges = [Document(title, text, title) for title, text in BRIDGE_TEXTS.items()]
    return (
        wanted | {"bridge_two_hops": Wanted(BRIDGE, bridges, 5, LOCAL, about=about)} | simulated_runs(storm)
    )


def simulated_runs(storm: list[Document]) -> dict[str, Wanted]:
    """The run of a script over the texts on the storm."""
    about = {"model": "simulated: a script written for the lesson, no language model"}
    mends = Scripted([json.dumps(reply) for reply in MENDS], "simulated:script")
    return {"simulated_mends": Wanted(DAYS, storm, 2, SPELLING, about=about, llm=mends)}


def known_beforehand(question: Question) -> dict[str, Json]:
    """The question's id and right answer, and what RAG made of it, as it was measured."""
    lines = RAG.read_text(encoding="utf-8").splitlines()[1:]
    row = next(row for row in map(json.loads, lines) if row["id"] == question.id)
    rag = {"answer": row["answer"], "passages": 5, "measured": f"benchmarks/results/{RAG.name}"}
    return {
        "question": question.id,
        "gold": question.answer,
        "rag": rag,
        "data": "HotpotQA, CC BY-SA 4.0, a question to tune on",
    }


def main() -> None:
    """Record each trace whose name is given, or all; where a folder for recordings is given, the replies alone as
    well.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="which to record, all unless named")
    parser.add_argument("--recordings", type=Path, help="a folder for the recordings")
    given = parser.parse_args()
    wanted = wanted_runs()
    if unknown := set(given.names) - set(wanted):
        parser.error(f"there is no recorded run {', '.join(sorted(unknown))}; there are {', '.join(wanted)}")
    names = given.names or list(wanted)
    local = Local() if any(wanted[name].llm is None for name in names) else None
    for name in names:
        llm = wanted[name].llm or (
            Recorder(local, given.recordings / f"{name}.jsonl") if local and given.recordings else local
        )
        assert llm is not None
        with closing(open_store(wanted[name].store)) as store:
            record_run(name, wanted[name], llm, store)


def record_run(name: str, wanted: Wanted, llm: LLM, store: Store) -> None:
    """Record one run."""
    about = {"recorded": str(date.today()), "licence": "Apache-2.0 (model); the texts keep their own"}
    if wanted.llm is None:
        made_by = {
            "model": "Qwen2.5-Coder-1.5B-Instruct Q4_K_M",
            "model_sha256": QWEN_CODER.sha256,
            "engine": getattr(llm, "engine", ""),
        }
        about = made_by | about
    else:
        about["licence"] = "MIT; the texts keep their own"
    path = TRACES / f"{name}.jsonl"
    path.unlink(missing_ok=True)
    tools = [search(wanted.documents, k=wanted.k)]
    for event in record(
        think(wanted.question, llm, store, tools, wanted.limits),
        path,
        run=name,
        metadata={**about, **wanted.about},
    ):
        print(summary_line(event), flush=True)


if __name__ == "__main__":
    main()
