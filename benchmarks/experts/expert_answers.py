"""The shipped expert on the curated graph: what it cites, of what it warns, when it says that it does not
know; with its graph and without.

python -m benchmarks.experts.expert_answers --model local                    # the 12 questions of the dev split;
goes on where it stopped python -m benchmarks.experts.expert_answers --model local --split test     # the 60
that were written before the expert was measured python -m benchmarks.experts.expert_answers --model local
--table            # from the replies on file, without a model python -m benchmarks.experts.expert_answers
--model local --split test
--table --score   # and write them where the expert's card tells them

Each question of data/expert-gold is asked twice: of the expert, and of the same model with the same persona
and playbooks and no graph, which cannot cite. No model judges: measures are of ids cited and of words said,
with 95 % bootstrap intervals, paired where both arms have them.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.requirements import require_files, require_local_model, require_or_exit
from kgot_lab.errors import LabError, NotInstalled

if TYPE_CHECKING:
    from kgot_lab.embedding.embedder import Embedder

RESULTS = Path(__file__).parents[1] / "results" / "expert_answers"
SCORES = Path(__file__).parents[2] / "kgot_lab" / "experts" / "shipped" / "scores" / "expert_cookbook.json"
_FILES = {"dev": "develop", "test": "locked"}  # splits, and what the files of replies call them


def searching_with() -> Embedder | None:
    """What the expert searches with beside words: what the server of experts takes."""
    from kgot_lab.embedding.embedders import query_embedder

    try:
        return query_embedder()
    except NotInstalled as error:
        print(f"note: no search by meaning: {error}")
        return None


def ask(options: argparse.Namespace, path: Path) -> None:
    """Ask what is missing, and say what comes back."""
    from benchmarks.experts.asking import ExpertAnswers
    from benchmarks.experts.gold import expert_questions
    from kgot_lab.benchmark.questions.batch import lock_folder
    from kgot_lab.llm import connect

    with lock_folder(path.parent):
        answers = ExpertAnswers(
            expert_questions(options.split), connect(options.model), path, searching_with()
        )
        for reply in answers.replies(options.minutes):
            told = (
                f"{len(reply.cited)} cited, {len(reply.false)} false"
                if reply.arm == "graph"
                else "without the graph"
            )
            print(f"{reply.seconds:6.1f} s  {reply.id}: {told}", flush=True)
        if left := len(answers.missing()):
            print(f"{left} left; the same command goes on")


def show(options: argparse.Namespace, path: Path) -> None:
    """Print the figures that follow from the replies on file, and keep them beside."""
    from benchmarks.experts.answers_table import answers_report, card_scores, measured_answers
    from benchmarks.experts.asking import shipped_cookbook
    from benchmarks.experts.gold import NodeWords, expert_questions
    from benchmarks.experts.measuring import says_not_known
    from benchmarks.experts.replies import ARMS, kept_replies
    from kgot_lab.kgos.schemas.vocabularies import cookbook

    questions, replies, words = expert_questions(options.split), kept_replies(path), NodeWords(cookbook())
    told = answers_report(options.split, questions, replies, words)
    path.with_suffix(".md").write_text(told, encoding="utf-8")
    silent = {
        arm: [reply.id for reply in replies if reply.arm == arm and says_not_known(reply.text)]
        for arm in ARMS
    }
    path.with_name(f"{path.stem}_refusals.json").write_text(
        json.dumps(silent, indent=1) + "\n", encoding="utf-8"
    )
    print(told)
    if options.score:
        require_or_exit(
            len(replies) == 2 * len(questions),
            f"{len(replies)} of {2 * len(questions)} replies are there: a card tells what is whole",
        )
        scores = card_scores(measured_answers(questions, replies, words), replies[0].model)
        about = {"config": shipped_cookbook().digest, "split": options.split, **scores}
        SCORES.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Ask what is missing, then print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model", default="local", help='"local", or any other that connect() takes (%(default)s)'
    )
    parser.add_argument("--split", choices=tuple(_FILES), default="dev", help="(%(default)s)")
    parser.add_argument("--minutes", type=float, help="begin no further reply after so many minutes")
    parser.add_argument("--folder", type=Path, default=RESULTS, help="where the replies are kept")
    parser.add_argument("--table", action="store_true", help="only the table, from what is on file")
    parser.add_argument(
        "--score", action="store_true", help="write the scores that the card of the shipped expert tells"
    )
    options = parser.parse_args()
    command = f"python -m benchmarks.experts.expert_answers --model {options.model} --split {options.split}"
    path = (
        options.folder / f"{_FILES[options.split]}_{options.model.replace(':', '_').replace('/', '_')}.jsonl"
    )
    try:
        if options.table:
            require_files(
                f"{command} makes it",
                path,
            )
        else:
            if options.model == "local":
                require_local_model()
            ask(options, path)
        show(options, path)
    except LabError as error:
        require_or_exit(False, " ".join(str(error).split()))


if __name__ == "__main__":
    main()
