"""How much of what a memory writes is junk: facts taken from 100 messages that no sentence of theirs says, by
a check that asks no model.

python benchmarks/junk_written.py                                          # a simulated model on made-up
messages python benchmarks/junk_written.py --model local --beam DIR --minutes 60    # 100 messages of users in
long chats; goes on where it stopped python benchmarks/junk_written.py --model local --messages FILE
# your own: JSON lines, each {"text": "…"} python benchmarks/junk_written.py --model local --beam DIR --plan
# only what is left, and how long it will take python benchmarks/junk_written.py --model local --table
# only the table, from what is on file

Each message is taught to a memory of its own in two ways: one call by schema, and one call a sentence.
Receipts hold ids, counts and times, no text. A fact counts as said where one sentence names both its ends and
its relation, by their words; so the truth lies between the two shares: one that names the ends may say
another thing of them, and a relation may be said in other words. DIR holds chats.jsonl.gz and
questions.jsonl.gz of BEAM (see docs/memory.md); its locked chats stay closed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from kgot_lab.cli.requirements import need, need_files, need_local_model
from kgot_lab.errors import LabError

if TYPE_CHECKING:
    from kgot_lab.experiments.junk.trial import JunkTrial

RESULTS = Path(__file__).parent / "results" / "junk_written"
SIMULATED = Path(__file__).parent.parent / "runs" / "junk_simulated"
MISSED, INVENTED, MISREAD = (
    0.1,
    0.1,
    0.2,
)  # how often the simulated model omits a fact, makes its object up, takes another


def trial_of(options: argparse.Namespace, folder: Path) -> JunkTrial:
    """The trial that the options name; its model is not asked yet."""
    from kgot_lab.experiments.junk.messages import (
        MESSAGES_DRAWN,
        made_up_messages,
        messages_of_chats,
        messages_of_file,
    )
    from kgot_lab.experiments.junk.trial import JunkTrial
    from kgot_lab.llm import connect

    if options.model == "simulated":
        from kgot_lab.experiments.competence.simulated import Competence

        many = options.many or MESSAGES_DRAWN
        messages, simulated = made_up_messages(
            many, Competence(missed=MISSED, invented=INVENTED, read=MISREAD)
        )
        return JunkTrial(messages, folder, simulated, ("schema",))
    if options.messages:
        messages = messages_of_file(options.messages, options.many)
    else:
        from kgot_lab.experiments.beam.chats import read_chats

        messages = messages_of_chats(read_chats(options.beam), options.many or MESSAGES_DRAWN)
    return JunkTrial(messages, folder, connect(options.model), tuple(options.way))


def show(folder: Path) -> None:
    """Print the table, and keep it with its figures."""
    from kgot_lab.experiments.junk.results import junk_figures, junk_grid
    from kgot_lab.experiments.junk.trial import junk_plan, junk_receipts

    receipts, model = junk_receipts(folder), junk_plan(folder)["model"]["name"]
    grid = junk_grid(receipts, model)
    (folder / "results.md").write_text(f"{grid.markdown}\n", encoding="utf-8")
    (folder / "results.json").write_text(
        json.dumps(junk_figures(receipts, model), indent=1) + "\n", encoding="utf-8"
    )
    print(grid.text)


def teach(options: argparse.Namespace, folder: Path) -> None:
    """Teach what is missing, or only say what that is."""
    from kgot_lab.benchmark.questions.batch import alone_in
    from kgot_lab.experiments.junk.results import expected_rest_grid
    from kgot_lab.experiments.junk.trial import junk_receipts

    trial = trial_of(options, folder)
    if options.plan:
        print(expected_rest_grid(trial, junk_receipts(folder)).text)
        return
    with alone_in(folder):
        for row in trial.receipts(options.minutes):
            told = (
                row.failed
                or f"{row.written} written, {row.no_sentence} said by no sentence, {row.refused} refused"
            )
            print(f"{row.way:8} {row.seconds:6.1f} s  {row.id}: {told}", flush=True)
        left = len(trial.missing())
    if left:
        print(f"{left} left; the same command goes on\n")


def main() -> None:
    """Teach what is missing, then print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model",
        default="simulated",
        help='"simulated", "local", or any other that connect() takes (%(default)s)',
    )
    parser.add_argument("--beam", type=Path, metavar="DIR", help="the folder with the long chats")
    parser.add_argument("--messages", type=Path, metavar="FILE", help="messages of one's own instead")
    parser.add_argument("--many", type=int, help="how many messages (100; of a file all)")
    parser.add_argument(
        "--way", nargs="+", choices=("schema", "grounded"), default=["schema", "grounded"], help="(both)"
    )
    parser.add_argument("--minutes", type=float, help="begin no further message after so many minutes")
    parser.add_argument("--folder", type=Path, help="where the receipts are kept")
    parser.add_argument(
        "--plan", action="store_true", help="only say what is left and how long it will take; asks no model"
    )
    parser.add_argument("--table", action="store_true", help="only the table, from what is on file")
    options = parser.parse_args()
    simulated = options.model == "simulated"
    folder = options.folder or (
        SIMULATED if simulated else RESULTS / options.model.replace(":", "_").replace("/", "_")
    )
    try:
        if options.table:
            need_files(
                f"python benchmarks/junk_written.py --model {options.model} makes it",
                folder / "receipts.json",
            )
        else:
            need(
                simulated or options.beam or options.messages,
                "name the messages: --beam DIR or --messages FILE",
            )
            if options.model == "local" and not options.plan:
                need_local_model()
            teach(options, folder)
            if options.plan:
                return
        show(folder)
    except LabError as error:
        need(False, " ".join(str(error).split()))


if __name__ == "__main__":
    main()
