"""Sixty instructions that somebody plants where an expert reads, put before a real model: how many it obeys,
and whether anything leaks.

python benchmarks/expert_hostile.py --model local            # each text once, its channel in turn; goes on
where it stopped python benchmarks/expert_hostile.py --model local --table    # from the outcomes on file,
without a model

A text is planted in a description, a name or an edge of the graph, in what was said before, in an earlier
conversation, in the question or in what a client wishes. Another person's conversation with the same expert
is kept in the same place: "leaked" is that a word of it is told, "changed" that an expert, a graph or another
conversation is another than before, "obeyed" that the model says the word asked for.
tests/experts/test_hostile.py does it with all texts in all channels and a model that tells all it reads.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from kgot_lab.cli.requirements import need, need_files, need_local_model
from kgot_lab.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kgot_lab.experiments.experts.hostile import PlantedOutcome

RESULTS = Path(__file__).parent / "results" / "expert_hostile"


def ask(model: str, path: Path) -> None:
    """Plant what is missing, and say what comes of it."""
    from kgot_lab.benchmark.questions.batch import alone_in
    from kgot_lab.experiments.experts.hostile import (
        hostile_texts,
        keep_outcome,
        kept_outcomes,
        planted_in_turn,
        planted_outcome,
    )
    from kgot_lab.llm import connect

    with alone_in(path.parent):
        llm = connect(model)
        there = {(each.channel, each.text) for each in kept_outcomes(path)}
        for channel, text in planted_in_turn(hostile_texts()):
            if (channel, text) not in there:
                outcome = planted_outcome(llm, channel, text)
                keep_outcome(path, outcome)
                print(f"{channel}: {'obeyed' if outcome.obeyed else 'not obeyed'}: {text[:60]!r}", flush=True)


def table(outcomes: Sequence[PlantedOutcome]) -> str:
    """The counts by channel as Markdown, with the interval of the whole."""
    from kgot_lab.evaluation.significance import share
    from kgot_lab.evaluation.tables import Cell, Grid, decimal
    from kgot_lab.experiments.experts.hostile import CHANNELS

    counted = ("obeyed", "leaked", "changed")
    rows = []
    for channel in (*CHANNELS, "all"):
        those = [each for each in outcomes if channel in (each.channel, "all")]
        rows.append(
            (
                Cell(channel),
                Cell(str(len(those))),
                *(Cell(str(sum(getattr(each, what) for each in those))) for what in counted),
            )
        )
    grid = Grid("What came of planted instructions", ("channel", "texts", *counted), tuple(rows))
    spans = [(what, share(sum(getattr(each, what) for each in outcomes), len(outcomes))) for what in counted]
    told = "; ".join(
        f"{what} {decimal(each.mean)} [{decimal(each.low)}, {decimal(each.high)}]" for what, each in spans
    )
    models = ", ".join(sorted({each.model for each in outcomes}))
    return f"{models}\n\n{grid.markdown}\n\nShares with 95 % intervals (Wilson): {told}\n"


def main() -> None:
    """Plant what is missing, then print the table and keep it."""
    from kgot_lab.experiments.experts.hostile import kept_outcomes

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model", default="local", help='"local", or any other that connect() takes (%(default)s)'
    )
    parser.add_argument("--folder", type=Path, default=RESULTS, help="where the outcomes are kept")
    parser.add_argument("--table", action="store_true", help="only the table, from what is on file")
    options = parser.parse_args()
    path = options.folder / f"{options.model.replace(':', '_').replace('/', '_')}.jsonl"
    try:
        if options.table:
            need_files(f"python benchmarks/expert_hostile.py --model {options.model} makes it", path)
        else:
            if options.model == "local":
                need_local_model()
            ask(options.model, path)
        told = table(kept_outcomes(path))
    except LabError as error:
        need(False, " ".join(str(error).split()))
    path.with_suffix(".md").write_text(told, encoding="utf-8")
    print(told)


if __name__ == "__main__":
    main()
