"""Does a graph that lasts help the next question? Chains of MuSiQue questions that share a step, by the mode
`paths`, three ways.

fresh: a graph for each question; lasting: one for each chain, of sentences and names; lasting with facts: the
model's triples in it too. The questions are of the part of musique-498 that the comparison of systems does
not ask.

python benchmarks/lasting_graph.py --chains 15     # asks the local model, goes on after a stop
python benchmarks/lasting_graph.py --table         # counts what is on file
python benchmarks/lasting_graph.py --model MODEL --folder DIR     # another model needs a folder of its own
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import fmean, median

from kgot_lab.benchmark.comparison.systems import ANSWER_SYSTEMS, PassageSearches
from kgot_lab.benchmark.questions.batch import RECEIPTS, alone_in
from kgot_lab.benchmark.questions.plan import PLAN_FILE
from kgot_lab.benchmark.questions.question import Question, QuestionSet
from kgot_lab.benchmark.questions.receipts import QuestionReceipt, read_receipts
from kgot_lab.benchmark.questions.sets import BUNDLED_SETS
from kgot_lab.cli.requirements import need, need_embeddings, need_files, need_local_model
from kgot_lab.errors import LabError, require_count
from kgot_lab.evaluation.significance import grouped_interval
from kgot_lab.evaluation.summary import span
from kgot_lab.experiments.pays.chains import GRAPHS_OF_A_CHAIN, Chained, chain_plan, related_chains

FOLDER, PART, CHAINS, LENGTH, SEED = (
    Path(__file__).parent / "results" / "lasting_graph",
    "test",
    15,
    3,
    20261123,
)


def main() -> None:
    """Ask, keep, print."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument(
        "--chains",
        type=int,
        help=f"how many chains of three questions ({CHAINS}); a folder keeps to its number",
    )
    arguments.add_argument("--model", help="what connect() takes (local)")
    arguments.add_argument(
        "--folder",
        type=Path,
        default=FOLDER,
        help="where the plan, traces and receipts are kept (%(default)s)",
    )
    arguments.add_argument("--table", action="store_true", help="ask nothing")
    options = arguments.parse_args()
    try:
        if options.chains is not None:
            require_count(options.chains, 1, "--chains", "so many chains are asked")
        whole = BUNDLED_SETS["musique-498"]()
        if options.table:
            need(
                options.chains is None and options.model is None,
                "--table shows all that is on file: leave --chains and --model out",
            )
            need_files("python benchmarks/lasting_graph.py makes it", options.folder / PLAN_FILE)
            chains = chains_of(whole, chain_plan(options.folder)["chains"])
        else:
            chains = chains_of(whole, CHAINS if options.chains is None else options.chains)
            ask(whole, chains, options.model or "local", options.folder)
        show(options.folder, chains)
    except LabError as error:
        need(False, " ".join(str(error).split()))


def chains_of(whole: QuestionSet, most: int) -> list[tuple[Question, ...]]:
    """The chains that are asked."""
    return related_chains(whole.only((whole.parts or {})[PART]), length=LENGTH, most=most, seed=SEED)


def ask(whole: QuestionSet, chains: list[tuple[Question, ...]], model: str, folder: Path) -> None:
    """Answer what is missing."""
    from kgot_lab.llm import connect

    if model == "local":
        need_local_model()
    need_embeddings()
    system, llm = ANSWER_SYSTEMS["paths"], connect(model)
    with alone_in(folder):
        run = Chained(folder, llm, PassageSearches(whole).tools(system, chains[0][0]), system.limits)
        run.keep_plan(chains, SEED)
        for chain in chains:
            for graph in GRAPHS_OF_A_CHAIN:
                for receipt in run.answers(chain, graph):
                    print(
                        f"{graph:20} {receipt.id:45} {receipt.end:16} {receipt.predicted[:40]!r}", flush=True
                    )


def show(folder: Path, chains: list[tuple[Question, ...]]) -> None:
    """Print the report, and keep it."""
    rows = {graph: read_receipts(folder / graph.replace(" ", "-") / RECEIPTS) for graph in GRAPHS_OF_A_CHAIN}
    need(any(rows.values()), f"no question is answered yet in {folder}")
    (folder / "report.json").write_text(json.dumps(report(rows, chains), indent=1) + "\n")
    print((folder / "report.json").read_text())


def report(rows: dict[str, dict[str, QuestionReceipt]], chains: list) -> dict:
    """By graph and place in the chain: F1, calls of the search, prompt tokens; and the lasting graph against
    the fresh one, paired.
    """
    places = {
        question.id: (number, place)
        for number, chain in enumerate(chains)
        for place, question in enumerate(chain)
    }
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
            gaps = [
                getattr(rows[graph][id], measure) - getattr(rows[GRAPHS_OF_A_CHAIN[0]][id], measure)
                for id in later
            ]
            told[f"{graph} - fresh, {measure}, later questions"] = (
                span(grouped_interval(gaps, groups)) if len(set(groups)) > 1 else ""
            )
    return told


if __name__ == "__main__":
    main()
