"""Convert every notebook to a page and say how large it is, what it would fetch from outside, and how many
links a reader may click.

With --out FOLDER the pages are kept. It fails when a page would fetch anything.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from kgot_lab.cli.requirements import need_packages
from kgot_lab.viz.course import write_course
from kgot_lab.viz.external_requests import links, notebook_references, references

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def told(page: Path, notebook: Path) -> tuple[str, bool]:
    """A line about one page, and whether nothing in it or its notebook is fetched."""
    text = page.read_text(encoding="utf-8")
    fetched, stored = references(text, beside=True), notebook_references(notebook)
    counts = (
        f"{len(fetched)} fetched, {len(stored)} in the notebook, {len(links(text))} links outside to click"
    )
    return f"{page.name:<40} {len(text.encode()) / 1000:6.0f} kB   {counts}", not fetched and not stored


def main(notebooks: list[Path], folder: Path) -> bool:
    """Print a line for each notebook; whether all of them fetch nothing."""
    found = [
        told(page, notebook)
        for page, notebook in zip(write_course(notebooks, folder)[1:], notebooks, strict=True)
    ]
    for line, _ in found:
        print(line)
    return all(clean for _, clean in found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="keep the pages in this folder")
    parser.add_argument("notebooks", nargs="*", type=Path, default=sorted(NOTEBOOKS.glob("*.ipynb")))
    given = parser.parse_args()
    need_packages("lab", "nbconvert")
    with tempfile.TemporaryDirectory() as scratch:
        sys.exit(not main(given.notebooks, given.out or Path(scratch)))
