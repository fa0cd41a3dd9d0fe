"""Does a graph that lasts help the next question? Chains of MuSiQue questions that share a step, by the mode `paths`, three ways.

fresh: a graph for each question; lasting: one for each chain, of sentences and names; lasting with facts: the model's triples in it too.
The questions are of the part of musique-498 that the comparison of systems does not ask.

python benchmarks/lasting_graph.py --chains 15     # asks the local model, goes on after a stop
python benchmarks/lasting_graph.py --table         # counts what is on file
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import fmean, median

from kgot_lab.evaluation.significance import grouped_interval
from kgot_lab.evaluation.told import span
from kgot_lab.experiments.pays.chains import GRAPHS_OF_A_CHAIN, Chained, related_chains
from kgot_lab.experiments.pays.systems import ANSWER_SYSTEMS, PassageSearches
from kgot_lab.experiments.questions.batch import RECEIPTS, alone_in
from kgot_lab.experiments.questions.receipts import QuestionReceipt, read_receipts
from kgot_lab.experiments.questions.sets import BUNDLED_SETS

FOLDER, PART, LENGTH, SEED = Path(__file__).parent / "results" / "lasting_graph", "test", 3, 20261123


def main() -> None:
    """Ask, keep, print."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--chains", type=int, default=15, help="how many chains of three questions")
    arguments.add_argument("--model", default="local")
    arguments.add_argument("--table", action="store_true", help="ask nothing")
    options = arguments.parse_args()
    whole = BUNDLED_SETS["musique-498"]()
    chains = related_chains(whole.only((whole.parts or {})[PART]), length=LENGTH, most=options.chains, seed=SEED)
    if not options.table:
        from kgot_lab.llm import connect

        system = ANSWER_SYSTEMS["paths"]
        tools = PassageSearches(whole).tools(system, chains[0][0])
        with alone_in(FOLDER):
            run = Chained(FOLDER, connect(options.model), tools, system.limits)
            for chain in chains:
                for graph in GRAPHS_OF_A_CHAIN:
                    for receipt in run.answers(chain, graph):
                        print(f"{graph:20} {receipt.id:45} {receipt.end:16} {receipt.predicted[:40]!r}", flush=True)
    rows = {graph: read_receipts(FOLDER / graph.replace(" ", "-") / RECEIPTS) for graph in GRAPHS_OF_A_CHAIN}
    (FOLDER / "report.json").write_text(json.dumps(report(rows, chains), indent=1) + "\n")
    print((FOLDER / "report.json").read_text())


def report(rows: dict[str, dict[str, QuestionReceipt]], chains: list) -> dict:
    """By graph and place in the chain: F1, calls of the search, prompt tokens; and the lasting graph against the fresh one, paired."""
    places = {question.id: (number, place) for number, chain in enumerate(chains) for place, question in enumerate(chain)}
    both = [id for id in places if all(id in some for some in rows.values())]
    told = {}
    for graph, some in rows.items():
        told[graph] = [
            {
                "place": place + 1, "n": len(here), "f1": round(fmean(row.f1 for row in here), 3),
                "searches": round(fmean(sum(row.tools.values()) for row in here), 2), "calls": round(fmean(row.calls for row in here), 2),
                "prompt_tokens": median(row.prompt_tokens for row in here),
            }
            for place in range(LENGTH)
            if (here := [some[id] for id in both if places[id][1] == place])
        ]  # fmt: skip
    later = [id for id in both if places[id][1]]
    groups = [str(places[id][0]) for id in later]
    for graph in GRAPHS_OF_A_CHAIN[1:]:
        for measure in ("f1", "prompt_tokens"):
            gaps = [getattr(rows[graph][id], measure) - getattr(rows[GRAPHS_OF_A_CHAIN[0]][id], measure) for id in later]
            told[f"{graph} - fresh, {measure}, later questions"] = span(grouped_interval(gaps, groups)) if len(set(groups)) > 1 else ""
    return told


if __name__ == "__main__":
    main()
