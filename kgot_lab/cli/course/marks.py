"""The command that makes a table of what readers handed in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kgot_lab.cli.terminal import require_distinct_paths, say
from kgot_lab.errors import BadInput
from kgot_lab.text.counted import counted

NOT_PROOF = "not proof against cheating: a file says what its writer wanted; the digest notices accidental damage only"


def show_marks(
    files: Annotated[list[Path], typer.Argument(help="files that readers wrote with lab.hand_in(NAME)")],
    as_csv: Annotated[
        Path | None, typer.Option("--csv", help="write the table to this file, for a spreadsheet")
    ] = None,
) -> None:
    """Show who solved which exercise at which try, from files handed in; a damaged file is named and left
    out.
    """
    from kgot_lab.io.files import write_whole
    from kgot_lab.viz.exercises import gathered_marks, read_hand_in
    from kgot_lab.viz.static.table import Table

    handed, damaged = [], 0
    once = {path.resolve(): path for path in reversed(files)}
    if len(once) < len(files):
        say(f"note: {counted(len(files) - len(once), 'file')} given again, and counted once")
    for path in reversed(once.values()):
        require_distinct_paths(handed_in=path, csv=as_csv)
        try:
            handed.append(read_hand_in(path))
        except BadInput as error:
            if len(once) == 1:
                raise
            damaged += 1
            say(f"note: {error}")
    if handed:
        marks = gathered_marks(handed)
        typer.echo(repr(Table((marks.table(),))))
        if as_csv is not None:
            write_whole(as_csv, marks.csv(), "the marks")
            say(f"the table is in {as_csv}")
        say(NOT_PROOF)
    if damaged:
        raise BadInput(
            f"{counted(damaged, 'file')} of {len(handed) + damaged} could not be taken into account"
        )
