"""`kgot-lab experts drift`: the dimensions in an expert's graphs that the people who talk to it contradict."""

from __future__ import annotations

from typing import Annotated

import typer

from kgot_lab.cli import options, terminal
from kgot_lab.cli.experts import FolderOfGraphs, StoreOfExperts, open_review_queue
from kgot_lab.cli.memory import print_rows
from kgot_lab.text.counted import counted


def tell_drift(
    expert: Annotated[str, typer.Argument(help="the id of an expert, as `kgot-lab experts list` shows it")],
    store: StoreOfExperts = None,
    graphs: FolderOfGraphs = None,
    days: Annotated[
        int | None, typer.Option("--days", min=1, help="days of conversations to count (default: 90)")
    ] = None,
    words: Annotated[bool, typer.Option("--words", help="show what people said, too")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Tell which values of dimensions people contradict: which way, how many say so, and how likely that were
    if the value is right.
    """
    from kgot_lab.experts.learning.contradictions import DRIFT_DAYS, drift_of_expert

    reports = drift_of_expert(open_review_queue(graphs, store).service, expert, days=days or DRIFT_DAYS)
    rows = [
        {
            "graph": name,
            "node": each.node,
            "dimension": each.dimension,
            "value": each.value,
            "way": each.way,
            "against": each.against,
            "agreeing": each.agreeing,
            "p": each.p,
            "says": str(each),
            **({"words": [one.words for one in each.evidence]} if words else {}),
        }
        for name, report in reports.items()
        for each in report.found
    ]
    print_rows(
        rows,
        as_json,
        lambda row: "  ".join(
            [f"{row['graph']}: {row['says']}", *(f'"{each}"' for each in row.get("words", ()))]
        ),
    )
    watched = sum(report.watched for report in reports.values())
    terminal.say(f"{counted(len(rows), 'value')} contradicted of {watched:,} that people spoke of")
