"""Does a certificate say so? A gold passage taken away from 100 questions, a contradicting one put in for 50,
and the same untouched.

python -m benchmarks.certificates.certificates                                # a simulated model on a few
made-up questions python -m benchmarks.certificates.certificates --model local --minutes 60     # the real
questions; goes on where it stopped python -m benchmarks.certificates.certificates --model local --plan
# only what is left, and how long it will take python -m benchmarks.certificates.certificates --model local
--table          # only the tables, from what is on file
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from kgot_lab.cli.requirements import (
    require_embeddings,
    require_files,
    require_local_model,
    require_or_exit,
    require_sandbox,
)
from kgot_lab.errors import LabError

if TYPE_CHECKING:
    from benchmarks.certificates.trial import CertificateTrial

RESULTS = Path(__file__).parents[1] / "results" / "certificates"
COMPARISON = Path(__file__).parents[1] / "results" / "graph_pays"  # its receipts say how long an answer takes
SIMULATED = Path(__file__).parents[2] / "runs" / "certificates_simulated"
# how often the simulated model misreads, and how many of those it holds likely
READ_WRONG, LOOKS_SURE = (0.3, 0.5)


def simulated_trial(folder: Path, questions: int) -> CertificateTrial:
    """The trial of a simulated model on made-up questions of two and three hops and of two things compared."""
    from benchmarks.certificates.cases import TriedSet, certificate_cases
    from benchmarks.certificates.trial import CertificateTrial
    from benchmarks.competence.gold import GoldSet
    from benchmarks.competence.simulated import Competence, Simulated
    from benchmarks.competence.worlds import chain_world, comparing_world
    from kgot_lab.retrieval.lexical import bm25

    worlds = {
        "2-hops": chain_world(questions, 2),
        "3-hops": chain_world(questions, 3),
        "compared": comparing_world(questions, 1),
    }
    sets = {name: TriedSet.of_world(world, name) for name, world in worlds.items()}
    gold = GoldSet(tuple(chain for world in worlds.values() for chain in world.gold.chains))
    llm = Simulated(gold, Competence(read=READ_WRONG, assured=LOOKS_SURE))
    return CertificateTrial(
        sets,
        certificate_cases(sets, without=questions, contradicted=questions // 2),
        folder,
        llm,
        retriever=bm25,
    )


def real_trial(folder: Path, model: str) -> CertificateTrial:
    """The trial of a model on questions of 2WikiMultiHopQA and MuSiQue."""
    from benchmarks.certificates.cases import certificate_cases, tried_sets
    from benchmarks.certificates.trial import CertificateTrial
    from kgot_lab.llm import connect

    sets = tried_sets()
    return CertificateTrial(sets, certificate_cases(sets), folder, connect(model))


def show(folder: Path) -> None:
    """Print the tables, and keep them with their figures."""
    from benchmarks.certificates.results import certificate_figures, certificate_grids
    from benchmarks.certificates.trial import certified_cases, trial_plan

    rows, model = certified_cases(folder), trial_plan(folder)["model"]["name"]
    text = "\n\n".join(grid.markdown for grid in certificate_grids(rows, model))
    (folder / "results.md").write_text(f"{text}\n")
    (folder / "results.json").write_text(json.dumps(certificate_figures(rows, model), indent=1) + "\n")
    print(text)


def main() -> None:
    """Answer and certify what is missing, then print the tables."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument(
        "--model",
        default="simulated",
        help='"simulated", "local", or any other that connect() takes (%(default)s)',
    )
    arguments.add_argument("--questions", type=int, default=12, help="of the simulated model (%(default)s)")
    arguments.add_argument("--minutes", type=float, help="begin no further question after so many minutes")
    arguments.add_argument("--folder", type=Path, help="where answers and certificates are kept")
    arguments.add_argument(
        "--plan", action="store_true", help="only say what is left and how long it will take; asks no model"
    )
    arguments.add_argument("--table", action="store_true", help="only the tables, from what is on file")
    options = arguments.parse_args()
    simulated = options.model == "simulated"
    folder = options.folder or (
        SIMULATED if simulated else RESULTS / options.model.replace(":", "_").replace("/", "_")
    )
    try:
        if options.table:
            require_files(
                f"python -m benchmarks.certificates.certificates --model {options.model} makes it",
                folder / "certificates.json",
            )
        else:
            trial = (
                simulated_trial(folder, options.questions) if simulated else real_trial(folder, options.model)
            )
            if options.plan:
                from benchmarks.certificates.expected import expected_cases_grid

                print(expected_cases_grid(trial, COMPARISON).text)
                return
            answer(trial, options, simulated=simulated)
        show(folder)
    except LabError as error:
        require_or_exit(False, " ".join(str(error).split()))


def answer(trial: CertificateTrial, options: argparse.Namespace, *, simulated: bool) -> None:
    """Answer and certify what is missing."""
    from kgot_lab.benchmark.questions.batch import lock_folder

    if options.model == "local":
        require_local_model()
    if not simulated:
        require_embeddings()
    require_sandbox()
    with lock_folder(trial.folder):
        for row in trial.answers(options.minutes):
            print(
                f"{row.change:12} {row.set:12} {row.ruling:9} em {row.em:.0f} {row.id} -> {row.predicted[:40]!r}",
                flush=True,
            )
    if left := len(trial.missing()):
        print(f"{left} left; the same command goes on\n")


if __name__ == "__main__":
    main()
