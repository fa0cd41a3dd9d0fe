"""The command that makes slides from notebooks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def make_slides(
    notebooks: Annotated[list[Path], typer.Argument(help="notebooks, as they are stored; nothing is run")],
    folder: Annotated[Path, typer.Option("--folder", help="where the slides go")] = Path("slides"),
) -> None:
    """Write notebooks as slides, one HTML file each that fetches nothing: Page Down turns them, and on paper
    each begins a page.
    """
    from kgot_lab.viz.notebook_page import write_slides

    for path in write_slides(notebooks, folder):
        typer.echo(f"{path} ({path.stat().st_size / 1000:,.0f} kB)")
